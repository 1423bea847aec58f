# Sourced after lib.sh: jobs whose ranks are stopped, and what the watchdog makes of them. After
# hosts_up the jobs are of its hosts.

# run.stall_secs of these jobs: ranks that are not stopped take a step within it on any machine.
stall=10

watchdog_data() {
    "$recipes/exp-data.sh" "$tmp/data"
    awk 'NR == 1 {print; next} {for (i = 0; i < 10; i++) print}' "$tmp/data/test.csv" \
        >"$tmp/eval.csv"
}
# watched NP NAME OPTION...: a job in $tmp/NAME, endless unless an option ends it.
watched() {
    np=$1 name=$2
    shift 2
    set -- "$recipes/exp-curve.ini" run.dir="$tmp/$name" data.train="$tmp/data/train.csv" \
        data.eval="$tmp/eval.csv" eval.steps=-1 run.replicas=2 run.stall_secs=$stall \
        train.epochs=1000000 "$@"
    case ${bed:-} in '') job "$np" "$@" ;; *) hosts_job "$np" "$dtrain" "$@" ;; esac
}
# begin NP NAME OPTION...: in the background, until its first train record.
begin() {
    watched "$@" 2>"$tmp/err" >"$tmp/out" &
    wait_until grep -q '"kind":"train"' "$tmp/$2/metrics.jsonl" ||
        fail_with "$tmp/err" "$2 does not start"
}

# stalls NAME RANK HOST PHASE: stops a rank of the job in the background ($!), whose stderr is
# $tmp/err: the job ends by itself, and one error line names the rank and what it did.
stalls() {
    victim=$(pid "$tmp/$1" dtrain "$2")
    [ -n "$victim" ] || fail_with "$tmp/err" "rank $2 is not there"
    kill -STOP "$victim"
    wait $!
    status=$?
    line=$(grep '^dtrain: error:' "$tmp/err")
    echo "$1: exit $status: $line"
    [ "$(grep -c '^dtrain: error:' "$tmp/err")" -eq 1 ] || fail_with "$tmp/err" 'error lines'
    case $line in
    *"run.stall_secs"*"rank $2 on $3 ("*${4:-[a-z]}*) ;;
    *) fail "expected rank $2 on $3 ($4)" ;;
    esac
    [ $status -ne 0 ] && [ $status -ne 75 ] || fail "exit $status"
    by_itself $status
    wait_until no_rank "$tmp/$1" || fail 'a rank is left'
}
no_rank() { [ -z "$(pid "$1" dtrain)" ]; }

# long_work NP: neither a survey nor an evaluation that takes longer than run.stall_secs is a stall.
# (The evaluation has 8 chunks for all workers together.)
long_work() {
    watched "$1" survey-$1 run.stall_secs=60 $(slow_survey) test.slow_secs=0.6 train.max_steps=2 \
        2>"$tmp/survey.err" &
    survey=$!
    watched "$1" slow-$1 run.stall_secs=60 train.max_steps=1 test.slow_rank=1 \
        test.slow_secs=$((9 * ($1 - 1))) 2>"$tmp/err" ||
        fail_with "$tmp/err" 'a slow evaluation'
    wait $survey || fail_with "$tmp/survey.err" 'a long survey'
}

# gone NAME RANK HOST: kills a rank of the job in the background ($!): one error line names it, or
# Hydra is faster.
gone() {
    kill -KILL "$(pid "$tmp/$1" dtrain "$2")"
    wait $!
    status=$?
    line=$(grep '^dtrain: error:' "$tmp/err")
    if ! untold $status "$tmp/err"; then
        [ "$(grep -c '^dtrain: error:' "$tmp/err")" -eq 1 ] ||
            fail_with "$tmp/err" 'error lines'
        case $line in *"rank $2 on $3 ("*"is gone"*) ;; *) fail "$line" ;; esac
    fi
    [ $status -ne 0 ] && [ $status -ne 75 ] || fail "exit $status"
    wait_until no_rank "$tmp/$1" || fail 'a rank is left'
}
