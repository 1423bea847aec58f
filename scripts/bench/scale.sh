#!/bin/sh
# The exchange of a sync step alone on 2, 4, 8 and 16 hosts (namespaces, limited links), in floats
# and with fewer bits on the wire, and the same on simulated hosts (scripts/sim); the cost model
# that is fitted to it (cost_model.awk has the formula), and what it says of up to 1,024 hosts.
. "$(dirname "$0")/lib.sh"
. "$bench/simulated.sh"
speed=$root/$BUILD/scripts/bench/exchange_speed
measured=$tmp/measured
: >"$measured"

# Simulated hosts share this machine's cores as the namespaces do (sim.py says what the costs are
# fitted to).
shared="--cores $(nproc) --message ${MESSAGE_US:-4.5} --byte ${BYTE_NS:-0.3}"

# rate_bits RATE: bits a second of what tc is given.
rate_bits() { echo "$1" | sed 's/mbit/e6/; s/gbit/e9/'; }

# wired TEXT WIRE: the text, and the wire if it is not f32.
wired() { echo "$1$([ "$2" = f32 ] || echo " $2")"; }

# measure NET RATE STEPS WIRE: the bed of this shell.
measure() {
    net=$1 rate=$2 wire=$4
    case=$(wired "$net, $rate" "$wire")
    for round in $(seq "$ROUNDS"); do
        ms=$(hosts_job $((hosts + 1)) "$speed" "$net" "$3" "$spans" "$wire" 2>"$tmp/err" |
            sed -n 's/.*median_ms \([0-9.]*\).*/\1/p')
        [ -n "$ms" ] || { remark "$hosts hosts: $(tail -n 1 "$tmp/err")"; continue; }
        say "$hosts hosts: $ms ms a step"
        note "$hosts hosts" measured_ms "$ms"
        echo "$net $(rate_bits "$rate") $hosts $ms $wire" >>"$measured"
    done
    round=
    [ -n "$simulator" ] || return 0
    # shellcheck disable=SC2086  # words
    note "$hosts hosts" simulated_ms \
        "$(simulate "$net" $hosts "$(calc "$(rate_bits "$rate") / 1e9")" $shared train.wire=$wire |
            awk '{ print $3 }')"
}

# bed HOSTS RATE: a bed of its own, and the networks on it.
bed() (
    hosts=$1
    . "$root/tests/e2e/netns.sh"
    # A bed that cannot be made ends this one.
    skip() { case=beds remark "skipped: $*"; exit 0; }
    finish() { status=$?; trap - EXIT; eval "$cleanups"; rm -rf "$bed"; exit $status; }
    cleanups=
    trap finish EXIT
    hosts_up "$hosts" "$2"
    # Many hosts at 1 Gbit/s: BBR paces their short bursts too low, with steps of 150 ms for 36. The
    # queues of 200 Mbit/s are too short for Reno: they drop.
    [ "$2" != 1gbit ] || for i in $(seq "$hosts"); do
        on_host "$i" sysctl -q -w net.ipv4.tcp_congestion_control=reno
    done
    # shellcheck disable=SC2046  # words
    hosts_slots 2 $(yes 1 | head -n $((hosts - 1)))
    steps=6
    [ "$2" = 1gbit ] && steps=15 && measure 784-32-10 "$2" 100 f32
    for wire in f32 bf16 q8; do measure 784-512-256-10 "$2" $steps $wire; done
)

if [ "$ROUNDS" -gt 1 ]; then spans=5; else spans=3; fi
case=machine
simulator=
if have_simulator; then simulator=yes; fi
for hosts in 2 4 8 16; do
    for rate in 200mbit 1gbit; do bed $hosts $rate; done
done
[ -s "$measured" ] || exit 0

awk -f "$bench/cost_model.awk" -v cores="$(nproc)" "$measured" >"$tmp/model"
# shellcheck disable=SC2034  # of note
while read -r kind net bits hosts a b c wire; do
    link=$(calc "($bits >= 1e9) ? $bits / 1e9 \"gbit\" : $bits / 1e6 \"mbit\"")
    case $kind in
    fit) case=model remark "latency $net us, $bits ns a byte, $hosts us a message" ;;
    predicted)
        case=$(wired "$net, $link" "$wire")
        note "$hosts hosts" predicted_ms "$b"
        note "$hosts hosts" predicted_by_measured "$(calc "$b / $a")"
        note "$hosts hosts" bound_ms "$c"
        ;;
    project)
        case="projection: $net, $link, ms a step" note "$hosts hosts" "$(wired "H=$a" "$c")" "$b"
        ;;
    start)
        case="projection: $net, $link, ms a step"
        note "$hosts hosts" first_weights_s "$a"
        note "$hosts hosts" gather_adam_s "$b"
        ;;
    esac
done <"$tmp/model"
