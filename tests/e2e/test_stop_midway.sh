#!/bin/sh
# Fails if a survey or an evaluation delays a stop until the batch system loses patience, or a stop
# loses an evaluation or counts it twice, for the best model or early stopping. A request to stop
# comes while data is surveyed, in an evaluation, or twice.
# seconds: 180
# waits
. "$(dirname "$0")/lib.sh"
"$recipes/exp-data.sh" "$tmp/data"
awk 'NR == 1 {print; next} {for (i = 0; i < 80; i++) print}' "$tmp/data/test.csv" >"$tmp/eval.csv"
# The rate rises until the model gets worse. `run DIR OPTION...`
run() {
    dir=$tmp/$1
    shift
    job 3 "$recipes/exp-curve.ini" run.dir="$dir" data.train="$tmp/data/train.csv" \
        data.eval="$tmp/eval.csv" run.replicas=2 train.epochs=20 train.schedule=constant \
        train.optimizer=sgd train.lr=1 train.warmup_steps=400 eval.steps=20 eval.patience=4 \
        run.log_steps=20 "$@" 2>"$tmp/err"
}
good() { run "$@" || fail_with "$tmp/err" "$1"; }
# aim NAME RANK|mpirun: at a process of the job in the background, as soon as it is there; its pid
# in $id.
aim() {
    wait_until test -f "$tmp/$1/lock" || fail_with "$tmp/err" "$1 does not start"
    case $2 in mpirun) id=$(pid "$tmp/$1" mpirun) ;; *) id=$(pid "$tmp/$1" dtrain "$2") ;; esac
}
# stops SIGNAL NAME: the job ends with 75 after a signal to $id.
stops() {
    kill -"$1" "$id"
    wait $!
    status=$?
    # A rank that is stopped twice exits without MPI_Finalize, and Hydra kills the others: maybe 9.
    [ "$mpi $2 $status" = 'mpich twice 9' ] || check_eq "exit code of $2" $status 75
    wait_until gone || fail "a process of $2 is left"
}
# evals DIR: step and metric of each evaluation; what was recorded twice counts once.
evals() {
    sed -n 's/.*"eval","step":\([0-9]*\).*"rmse":\([^,]*\).*/\1 \2/p' "$tmp/$1/metrics.jsonl" |
        sort -n -u
}

# ---- an evaluation: of some 30 chunks a worker, for which the slow one takes seconds -------------
slow='test.slow_rank=1 test.slow_secs=0.3'
# midway NAME STEP RANK|mpirun SIGNAL WHOLE OPTION...: stopped while STEP is evaluated, and resumed:
# it ends as the run WHOLE did.
midway() {
    name=$1 step=$2 whom=$3 signal=$4 whole=$5
    shift 5
    run "$name" $slow "$@" &
    aim "$name" "$whom"
    wait_until grep -q '"kind":"train","step":'"$step," "$tmp/$name/metrics.jsonl" ||
        fail "$name does not start"
    stops "$signal" "$name"
    check_eq 'its checkpoint' "$(record "$tmp/$name" checkpoint step)" "$step"
    check_eq 'status' "$(record "$tmp/$name" final status)" stopped
    records "$tmp/$name" eval step | grep -qx "$step" && fail 'the evaluation was not given up'
    good "$name" "$@"
    evals "$name" >"$tmp/evals"
    evals "$whole" | cmp - "$tmp/evals" || fail_with "$tmp/evals" 'evaluations differ'
    for key in status step params_crc32c; do
        check_eq "$key of $name" "$(record "$tmp/$name" final $key)" \
            "$(record "$tmp/$whole" final $key)"
    done
    check_eq "best of $name" "$(best "$name")" "$(best "$whole")"
}
best() { ls "$tmp/$1/export/best" | sort -n | tail -n 1; }

good whole
check_eq 'the undisturbed run' "$(record "$tmp/whole" final status)" early_stopped
midway mpirun 40 mpirun USR1 whole
midway worker 20 2 INT whole
# The last evaluation of all.
good short train.max_steps=30
midway last 30 mpirun USR1 short train.max_steps=30

# Async: stopped in an evaluation, the next start makes up for it.
run async train.mode=async eval.patience=0 train.lr=0.01 test.slow_rank=1 test.slow_secs=0.02 &
aim async mpirun
wait_until grep -q '"kind":"train","step":20,' "$tmp/async/metrics.jsonl" ||
    fail 'async does not start'
stops USR1 async
good async train.mode=async eval.patience=0 train.lr=0.01
check_eq 'evaluations of async' "$(evals async | wc -l)" \
    "$(($(record "$tmp/async" final step) / 20))"

# ---- a survey of several seconds: nothing to save yet --------------------------------------------
for signal in USR1 TERM; do
    run "survey-$signal" $(slow_survey) eval.patience=0 &
    case $signal in USR1) whom=mpirun ;; *) whom=1 ;; esac
    aim "survey-$signal" $whom
    sleep 1
    stops $signal "survey-$signal"
    grep '^dtrain: stopped' "$tmp/err" || fail_with "$tmp/err" 'it does not say so'
    [ -z "$(ls "$tmp/survey-$signal/ckpt")" ] || fail 'a checkpoint of nothing'
done

# ---- twice: the second signal, five seconds after the first, ends the job ------------------------
rm -f "$tmp/err"
run twice test.slow_rank=1 test.slow_secs=60 eval.steps=-1 eval.patience=0 &
aim twice mpirun
wait_until grep -q 'starting at step' "$tmp/err" || fail 'twice does not start'
sleep 0.5
kill -USR1 "$id"
sleep 7
[ -n "$(pid "$tmp/twice" dtrain 0)" ] || fail 'the first signal did not wait for the step'
stops USR1 twice
