#!/bin/sh
# Fails if a stop loses a step, is not agreed on by all ranks, or comes before the save. A run that
# is asked to stop ends with 75 and a checkpoint, and ends as if undisturbed when started again:
# USR1 to mpirun, TERM to one rank, USR1 to one process.
# waits
. "$(dirname "$0")/lib.sh"
"$recipes/exp-data.sh" "$tmp/data"
run() {
    dir=$1
    shift
    job 3 "$recipes/exp-curve.ini" run.dir="$tmp/$dir" data.train="$tmp/data/train.csv" \
        data.eval="$tmp/data/test.csv" train.epochs=20 eval.steps=-1 "$@"
}
run whole 2>"$tmp/out" || fail_with "$tmp/out" 'the undisturbed run'

# stop NAME: starts a run whose steps are slow, calls `ask`, and resumes.
stop() {
    run "$1" test.slow_rank=1 test.slow_secs=0.2 run.log_steps=5 2>"$tmp/err" &
    wait_until grep -q '"kind":"train"' "$tmp/$1/metrics.jsonl" ||
        fail_with "$tmp/err" "$1 does not start"
    ask "$1"
    wait $!
    check_eq "exit code of $1" $? 75
    check_eq "status of $1" "$(record "$tmp/$1" final status)" stopped
    check_eq "checkpoint of $1" "$(record "$tmp/$1" checkpoint step)" \
        "$(record "$tmp/$1" final step)"
    check_le "step of $1" "$(record "$tmp/$1" final step)" 319
    run "$1" 2>"$tmp/out" || fail_with "$tmp/out" "$1 resumed"
    check_eq "params_crc32c of $1" "$(crc "$tmp/$1")" "$(crc "$tmp/whole")"
}
ask() { kill -USR1 "$(pid "$tmp/$1" mpirun)"; }
stop usr1
ask() { kill -TERM "$(pid "$tmp/$1" dtrain)"; }
stop term

# One process alone, which starts no daemon of MPI (that may crash it at its end), and makes no
# directory of MPI's, which all such processes would share.
OMPI_MCA_orte_tmpdir_base=/proc/none "$dtrain" "$recipes/exp-curve.ini" run.dir="$tmp/alone" \
    data.train="$tmp/data/train.csv" data.eval= test.slow_rank=0 test.slow_secs=0.2 2>"$tmp/err" &
wait_until grep -q 'starting at step' "$tmp/err" || fail_with "$tmp/err" 'it does not start alone'
children=$(for child in $(cat "/proc/$!/task/$!/children"); do cat "/proc/$child/comm"; done)
[ "${children:-dtrain-hdf5}" = dtrain-hdf5 ] || fail "alone, it has started $children"
kill -USR1 $!
wait $!
check_eq 'exit code of one process' $? 75

run whole 2>"$tmp/err" || fail 'a finished run started again'
expect_line "$tmp/err" '^dtrain: .*complete' 'a finished run does not say so'
