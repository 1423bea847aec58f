#!/bin/sh
# Fails if a job that is stopped, stops early or fails leaves its dedicated evaluator behind or
# blames it, if a stop waits for an evaluation, or if it changes bits.
# seconds: 180
# waits
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/evaluator.sh"

good whole
# ---- stopped: during an evaluation; by a signal to the evaluator alone, and resumed --------------
started() { [ "$(record "$tmp/$name" checkpoint step)" -ge 100 ]; }
# begin NAME OPTION...: starts a run and waits for its checkpoint of step 100.
begin() {
    name=$1
    run "$@" 2>"$tmp/err" &
    wait_until started || fail_with "$tmp/err" "$name does not start"
}
# interrupt NAME: by USR1 to mpirun.
interrupt() {
    kill -USR1 "$(pid "$tmp/$1" mpirun)"
    wait $!
    check_eq "exit code after USR1, $1" $? 75
}
# continue_to_stop NAME: another start, to the step of the stop, evaluates the last checkpoint.
continue_to_stop() {
    good "$1" train.max_steps="$(record "$tmp/$1" final step)" train.epochs=100000
    last "$1" completed
}
begin busy test.slow_rank=3 test.slow_secs=0.1 train.epochs=100000
interrupt busy
# On a slow machine the stop gives up its last evaluation, which the next start makes up for.
check_eq 'status of busy' "$(record "$tmp/busy" final status)" stopped
continue_to_stop busy
begin slowest test.slow_rank=3 test.slow_secs=4 train.epochs=100000
interrupt slowest
check_eq 'evaluations given up' "x$(record "$tmp/slowest" eval step)" x
continue_to_stop slowest
begin term test.slow_rank=1 test.slow_secs=0.03
kill -TERM "$(pid "$tmp/term" dtrain 3)"
wait $!
check_eq 'exit code after TERM to the evaluator' $? 75
check_eq 'status of term' "$(record "$tmp/term" final status)" stopped
good term
last term completed
check_eq 'bits of a stopped and resumed run' "$(crc "$tmp/term")" "$(crc "$tmp/whole")"

# ---- stopped early: the metric gets no better ----------------------------------------------------
still='train.lr=0 train.schedule=constant eval.patience=3 train.epochs=100000'
good early $still run.checkpoint_steps=20 test.slow_rank=1 test.slow_secs=0.02
last early early_stopped
run early $still 2>&1 | grep -q 'has stopped early' || fail 'a run that stopped early goes on'

# ---- failed: a loss that is not finite, a dead evaluator, one that hangs at the end --------------
# broken WHAT TEXT: the job ends by itself with one error line that holds TEXT.
broken() {
    wait $!
    status=$?
    [ $status -ne 0 ] && [ $status -ne 75 ] || fail "exit $status: $1"
    by_itself $status
    [ -z "$2" ] || grep -q "^dtrain: error:.*$2" "$tmp/err" || fail_with "$tmp/err" "$1"
    wait_until gone || fail "a process is left: $1"
}
run nan train.optimizer=sgd train.lr=1e9 model.kind=linear 2>"$tmp/err" &
broken 'a loss that is not finite' 'the loss of'
begin killed test.slow_rank=1 test.slow_secs=0.03
wait_until grep -q '"rank":3,[^}]*"role":"evaluator"' "$tmp/killed/status.json" ||
    fail 'status.json knows no evaluator'
kill -KILL "$(pid "$tmp/killed" dtrain 3)"
broken 'a killed evaluator' ''
good killed
last killed completed
check_eq 'bits of a killed and resumed run' "$(crc "$tmp/killed")" "$(crc "$tmp/whole")"
over() { [ "$(record "$tmp/hangs" checkpoint step)" = 800 ]; }
run hangs test.slow_rank=3 test.slow_secs=1 run.stall_secs=20 2>"$tmp/err" &
wait_until test -f "$tmp/hangs/lock" || fail_with "$tmp/err" 'it does not start'
evaluator=$(pid "$tmp/hangs" dtrain 3)
wait_until over || fail 'training does not end'
kill -STOP "$evaluator"
broken 'a stopped evaluator' 'rank 3 on'
# A run that is started again reports what it could not report before.
good hangs
last hangs completed

# ---- start-up ------------------------------------------------------------------------------------
expect_error 2 eval.dedicated 2 "$recipes/exp-curve.ini" run.dir="$tmp/two" eval.dedicated=yes
expect_error 1 'No such' 3 "$recipes/exp-curve.ini" run.dir="$tmp/none" eval.dedicated=yes \
    data.train="$tmp/data/train.csv" data.eval="$tmp/nowhere.csv"
