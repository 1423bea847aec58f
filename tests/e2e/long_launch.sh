#!/bin/sh
# Fails if a job on three hosts does not end by itself with the undisturbed bits after EVENTS (4)
# events: `dtrain launch`, while a random rank is killed, a host is cut off, or all its processes
# are killed, at a random moment. Prints the time that each event cost.
# seconds: 600
# waits
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/netns.sh"
hosts_up 3
hosts_slots 2 1 1
"$recipes/exp-data.sh" "$tmp/data"
launch() { # launch NAME
    on_host 1 "$dtrain" launch --hostfile "$hostfile" --mca plm rsh --mca plm_rsh_agent \
        "$bed/agent" "$recipes/exp-curve.ini" data.train="$tmp/data/train.csv" \
        data.eval="$tmp/data/test.csv" eval.steps=-1 run.replicas=3 run.log_steps=10 \
        run.checkpoint_steps=50 train.max_steps=600 run.stall_secs=20 test.slow_rank=1 \
        test.slow_secs=0.01 run.dir="$tmp/$1" >"$tmp/out" 2>"$tmp/err"
}
random() { echo $(($(od -An -N2 -tu2 /dev/urandom) % $1)); }
# those_of I: processes of a host, but for the one that holds it; in one look, for a job goes on
# meanwhile.
those_of() {
    holder=$(cat "$1")
    find /proc/[0-9]*/ns/net -printf '%h %l\n' 2>/dev/null |
        awk -v net="$(readlink "/proc/$holder/ns/net")" -v holder="$holder" \
            '{split($1, part, "/")} $2 == net && part[3] != holder {print part[3]}'
}
# A host that is cut off cannot be reached by the agent either; it comes back after the job.
disturb() {
    nth=$((2 + $(random 2)))
    holds=$bed/$(host_name $nth)
    case $1 in
    0)
        rank=$(random 4) && what="rank $rank killed" &&
            kill -KILL "$(pid "$tmp/$name" dtrain "$rank")"
        ;;
    1) what="host $nth cut off" && on_host $nth ip link set eth0 down && mv "$holds" "$bed/away" ;;
    2) what="processes of host $nth killed" && kill -KILL $(those_of "$holds") ;;
    esac
}
come_back() {
    [ -f "$bed/away" ] || return 0
    kill -KILL $(those_of "$bed/away") 2>/dev/null
    mv "$bed/away" "$holds"
    on_host $nth ip link set eth0 up
}
start=$(now)
launch quiet || fail_with "$tmp/err" 'undisturbed'
undisturbed=$(millis_since "$start")
first=$(random 3)
for event in $(seq "${EVENTS:-4}"); do
    name=run$event step=$((10 * (1 + $(random 20))))
    start=$(now)
    launch $name &
    job=$!
    wait_until grep -q '"kind":"train","step":'$step, "$tmp/$name/metrics.jsonl" ||
        fail_with "$tmp/err" 'no start'
    disturb $(((first + event) % 3))
    echo "event $event: $what at step $step"
    wait $job || fail_with "$tmp/err" "$what: the job ends with $?"
    cost=$(($(millis_since "$start") - undisturbed))
    echo "    cost $cost ms, $(records "$tmp/$name" launch event | wc -l) restarts"
    check_eq "    params_crc32c" "$(crc "$tmp/$name")" "$(crc "$tmp/quiet")"
    check_ge '    restarts' "$(records "$tmp/$name" launch event | grep -c restart)" 1
    come_back
    rm -rf "${tmp:?}/$name"
done
