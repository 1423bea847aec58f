#!/bin/sh
# The program itself on simulated clusters of 2 to 512 hosts (scripts/sim): ms of the exchange
# alone, its bound, 2 (H - 1) / H of the weights over a link, and the cost model with the same
# constants; and how much of its computing rate each worker keeps, with 64 rows each at the
# rate of one core of this machine (sgemm_peak).
# HOSTS: other numbers of them.
. "$(dirname "$0")/lib.sh"
. "$bench/simulated.sh"
case=machine
have_simulator || exit 0
rows=64
hosts=2,8,32,128 gbits=10
[ "$ROUNDS" -le 1 ] || hosts=2,4,8,16,32,64,128,256,512 gbits='1 10 100'
hosts=${HOSTS:-$hosts}
measure_peak

for net in 784-512-256-10 784-4096-4096-10; do
    for gbit in $gbits; do
        case="$net, $gbit Gbit/s"
        awk -f "$bench/cost_model.awk" -v given="$(calc "2e-6 * $us") 0 ${message}e-6" \
            -v sizes_given="$(echo "$hosts" | tr , ' ')" </dev/null >"$tmp/model"
        simulate "$net" "$hosts" "$gbit" | while read -r h _ ms bound _ cpu; do
            say "$h hosts: $ms ms"
            note "$h hosts" exchange_ms "$ms"
            note "$h hosts" bound_ms "$bound"
            note "$h hosts" model_ms "$(awk -v net="$net" -v bits="${gbit}e9" -v h="$h" '
                $1 == "project" && $2 == net && $3 == bits + 0 && $4 == h && $5 == 1 &&
                $7 == "f32" {print $6}' "$tmp/model")"
            note "$h hosts" cpu_s "$cpu"
        done
        for wire in f32 q8; do
            simulate "$net" "$hosts" "$gbit" --flops "$(calc "$peak_one * 5e8")" --rows $rows \
                train.wire=$wire |
                while read -r h _ ms _; do
                    note "$h hosts" "${wire}_efficiency" \
                        "$(calc "$(flops_of "$net") * $rows / $peak_one / 1e6 / $ms")"
                done
        done
    done
done
