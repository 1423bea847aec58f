#!/bin/sh
# The watchdog, on one host: a stopped worker, bank or evaluator ends the job at run.stall_secs, by one
# error line with its rank and phase; long loads, slow evaluations and a job that was suspended as a
# whole do not. Would catch a wait that nobody watches, and progress that is not shown.
# seconds: 240
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/watchdog.sh"
"$recipes/exp-data.sh" "$tmp/data"
awk 'NR == 1 {print; next} {for (i = 0; i < 10; i++) print}' "$tmp/data/test.csv" >"$tmp/eval.csv"
host=$(uname -n)
# run NP DIR OPTION...: endless, unless an option ends it.
run() {
    np=$1 dir=$tmp/$2
    shift 2
    job "$np" "$recipes/exp-curve.ini" run.dir="$dir" data.train="$tmp/data/train.csv" run.replicas=2 \
        data.eval="$tmp/eval.csv" eval.steps=-1 run.stall_secs=$stall train.epochs=1000000 "$@"
}
# begin NP DIR OPTION...: in the background, until there are records.
begin() {
    run "$@" 2>"$tmp/err" >"$tmp/out" &
    settle 20 grep -q '"kind":"train"' "$tmp/$2/metrics.jsonl" || { cat "$tmp/err"; fail "$2 does not start"; }
}

run 3 worker run.log_steps=1000000000 run.checkpoint_secs=0 2>"$tmp/err" >"$tmp/out" &
settle 20 grep -q 'starting at step' "$tmp/err" || { cat "$tmp/err"; fail 'worker does not start'; }
sleep 0.5
stalls "$tmp/worker" 1 "$host" 'gradient, step '
begin 3 bank
stalls "$tmp/bank" 0 "$host" 'serving, step '
begin 3 meeting run.log_steps=1
stalls "$tmp/meeting" 2 "$host" ''
run 3 evaluation eval.steps=2 run.log_steps=1 test.slow_rank=2 test.slow_secs=0.5 2>"$tmp/err" >"$tmp/out" &
settle 20 grep -q '"kind":"train","step":2' "$tmp/evaluation/metrics.jsonl" || fail 'no evaluation'
sleep 0.5
stalls "$tmp/evaluation" 2 "$host" 'evaluation, step 2'
begin 4 evaluator eval.dedicated=yes run.checkpoint_steps=200
stalls "$tmp/evaluator" 3 "$host" ''
begin 3 async-worker train.mode=async
stalls "$tmp/async-worker" 2 "$host" ''
begin 3 async-bank train.mode=async
stalls "$tmp/async-bank" 0 "$host" ''

# A survey of several seconds: one file under many names.
yes 0.25,0.5,0.125,0.75,1.5,2.5,0.25,0.5,0.125,0.75,1.5,2.5,1 | head -n 400000 >"$tmp/long-0.csv"
for i in $(seq 200); do ln -s long-0.csv "$tmp/long-$i.csv"; done
start=$(date +%s)
run 2 survey data.train="$tmp/long-*.csv" data.label=-1 data.header=no data.eval= data.memory_mb=8 train.max_steps=2 \
    2>"$tmp/err" || { cat "$tmp/err"; fail 'a long survey'; }
check_ge 'seconds of a long survey' $(($(date +%s) - start)) 3

# Four seconds of an evaluation, half a second a chunk.
run 2 slow train.max_steps=4 test.slow_rank=1 test.slow_secs=0.5 2>"$tmp/err" ||
    { cat "$tmp/err"; fail 'a slow evaluation'; }

# All ranks are stopped for longer than run.stall_secs, and go on.
begin 3 suspended train.epochs=400 test.slow_rank=1 test.slow_secs=0.001
for rank in 0 1 2; do kill -STOP "$(pid "$tmp/suspended" dtrain $rank)"; done
sleep $((stall + 2))
for rank in 2 1 0; do kill -CONT "$(pid "$tmp/suspended" dtrain $rank)"; done
wait $! || { cat "$tmp/err"; fail 'a job that was suspended'; }
