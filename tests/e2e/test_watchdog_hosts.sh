#!/bin/sh
# The watchdog across hosts, in sync and async: whichever rank is stopped, alone on its host or not, the
# job ends at run.stall_secs by one error line that names rank and host. Would catch hosts that hear
# nothing of each other, that all blame each other, or that hang inside MPI; and a busy host taken for
# a dead one.
# seconds: 240
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/netns.sh"
. "$root/tests/e2e/watchdog.sh"
slack=6500 # mpirun takes three seconds to end ranks of other hosts
hosts_up 3
"$recipes/exp-data.sh" "$tmp/data"
awk 'NR == 1 {print; next} {for (i = 0; i < 10; i++) print}' "$tmp/data/test.csv" >"$tmp/eval.csv"
# run NP DIR OPTION...: endless, unless an option ends it.
run() {
    np=$1 dir=$tmp/$2
    shift 2
    hosts_job "$np" "$dtrain" "$recipes/exp-curve.ini" run.dir="$dir" data.train="$tmp/data/train.csv" \
        data.eval="$tmp/eval.csv" eval.steps=-1 run.stall_secs=$stall train.epochs=1000000 \
        run.replicas=3 "$@"
}
begin() {
    run "$@" 2>"$tmp/err" >"$tmp/out" &
    settle 30 grep -q '"kind":"train"' "$tmp/$2/metrics.jsonl" || { cat "$tmp/err"; fail "$2 does not start"; }
}
for mode in sync async; do
    hosts_slots 1 2 1
    for rank in 0 1 2 3; do
        case $rank in 0) host=1 ;; 3) host=3 ;; *) host=2 ;; esac
        begin 4 $mode-$rank train.mode=$mode
        stalls "$tmp/$mode-$rank" $rank "$(host_name $host)" ''
    done
done

# The bank surveys for several seconds, while nobody else has anything to do; then a host evaluates.
hosts_slots 1 1 1
yes 0.25,0.5,0.125,0.75,1.5,2.5,0.25,0.5,0.125,0.75,1.5,2.5,1 | head -n 400000 >"$tmp/long-0.csv"
for i in $(seq 200); do ln -s long-0.csv "$tmp/long-$i.csv"; done
run 3 survey data.train="$tmp/long-*.csv" data.label=-1 data.header=no data.eval= data.memory_mb=8 train.max_steps=2 \
    2>"$tmp/err" || { cat "$tmp/err"; fail 'a long survey'; }
run 3 slow train.max_steps=4 test.slow_rank=2 test.slow_secs=0.5 2>"$tmp/err" ||
    { cat "$tmp/err"; fail 'a slow evaluation'; }
