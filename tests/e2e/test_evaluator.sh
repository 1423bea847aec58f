#!/bin/sh
# Fails if a dedicated evaluator prints other digits than evaluation in place, makes training wait
# or changes its bits, or loses a checkpoint under evaluation. It measures checkpoints while
# training goes on, always the last one. See test_evaluator_ends.sh.
# waits
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/evaluator.sh"
# ---- completed: in sync and async, all and throttled ---------------------------------------------
good whole
last whole completed
job 3 "$recipes/exp-curve.ini" run.dir="$tmp/place" data.train="$tmp/data/train.csv" \
    data.eval="$tmp/eval.csv" run.replicas=2 run.checkpoint_steps=100 train.epochs=50 \
    2>"$tmp/err" || fail_with "$tmp/err" 'in place'
check_eq 'bits with an evaluator' "$(crc "$tmp/whole")" "$(crc "$tmp/place")"
check_eq 'loss in place' "$(record "$tmp/place" eval loss)" "$(record "$tmp/whole" eval loss)"
good async train.mode=async train.epochs=40
last async completed
# Slowed, so that the evaluator is there before the end.
good throttled eval.throttle_secs=1000 eval.start_delay_secs=0 train.epochs=20 test.slow_rank=1 \
    test.slow_secs=0.04
last throttled completed
check_le 'evaluations, throttled' "$(records "$tmp/throttled" eval step | wc -l)" 2
good delayed eval.start_delay_secs=1000
last delayed completed
check_eq 'evaluations, delayed' "$(records "$tmp/delayed" eval step | wc -l)" 1
# The best that it recorded is the best that it exported.
least=$(records "$tmp/whole" eval rmse | sort -g | head -n 1)
check_eq 'best exported' "$("$dtrain" eval "$tmp/whole/export/best" | json rmse)" "$least"

# ---- a slow evaluator, stopped for a while: 8 chunks of two seconds ------------------------------
newest() { record "$tmp/slow" checkpoint step; }
evaluates() { grep -q '"rank":3,[^}]*"phase":"evaluation"' "$tmp/slow/status.json"; }
grows() { [ "$(newest)" -ge $((at + 1000)) ]; }
niceness() { awk '{print $19}' "/proc/$(pid "$tmp/slow" dtrain "$1")/stat"; }
run slow test.slow_rank=3 test.slow_secs=2 run.keep=2 run.checkpoint_steps=200 train.epochs=1500 \
    model.hidden=256,256 2>"$tmp/err" &
wait_until evaluates || fail_with "$tmp/err" 'the evaluator does not start'
evaluator=$(pid "$tmp/slow" dtrain 3)
kill -STOP "$evaluator"
at=$(newest) oldest=$(ls "$tmp"/slow/ckpt/step-*.h5 | head -n 1)
wait_until grows || fail_with "$tmp/err" 'training waits for the evaluator'
nice=$(niceness 1) # of a job that is nicer than that, its own
check_eq 'niceness of the evaluator' "$(niceness 3)" "$((nice > 10 ? nice : 10))"
[ -f "$oldest" ] || fail 'a checkpoint is deleted under evaluation'
kill -CONT "$evaluator"
wait $! || fail_with "$tmp/err" 'the slow evaluator'
last slow completed
[ ! -f "$oldest" ] || fail 'a checkpoint is kept after its evaluation'
