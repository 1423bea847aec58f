# Sourced behind lib.sh: jobs whose ranks are stopped, and what the watchdog makes of them. Behind
# hosts_up the jobs are of its hosts.

stall=2          # run.stall_secs of these jobs
slack=2500       # ms behind it, within which the watchdog must speak; mpirun takes seconds to end other hosts
bank_slack=14000 # of a bank that is alone on its host: another host speaks, and gives it time to do so

watchdog_data() {
    "$recipes/exp-data.sh" "$tmp/data"
    awk 'NR == 1 {print; next} {for (i = 0; i < 10; i++) print}' "$tmp/data/test.csv" >"$tmp/eval.csv"
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
    settle 30 grep -q '"kind":"train"' "$tmp/$2/metrics.jsonl" || { cat "$tmp/err"; fail "$2 does not start"; }
}

# stalls NAME RANK HOST PHASE: stops a rank of the job in the background ($!), whose stderr is
# $tmp/err: the job ends in time, and one error line names the rank and what it did.
stalls() {
    victim=$(pid "$tmp/$1" dtrain "$2")
    [ -n "$victim" ] || { cat "$tmp/err"; fail "rank $2 is not there"; }
    start=$(now)
    kill -STOP "$victim"
    settle $((stall + 20)) grep -q '^dtrain: error:' "$tmp/err"
    millis=$(millis_since "$start")
    wait $!
    status=$?
    line=$(grep '^dtrain: error:' "$tmp/err")
    echo "$1: $millis ms; exit $status, $(millis_since "$start") ms: $line"
    [ "$(grep -c '^dtrain: error:' "$tmp/err")" -eq 1 ] || { cat "$tmp/err"; fail 'error lines'; }
    case $line in *"run.stall_secs"*"rank $2 on $3 ("*${4:-[a-z]}*) ;; *) fail "expected rank $2 on $3 ($4)" ;; esac
    [ $status -ne 0 ] && [ $status -ne 75 ] && [ $status -ne 110 ] || fail "exit $status"
    # On a busy machine its last progress may be older than the stop.
    [ $millis -ge $(((stall * 1000 - 300) / ${PATIENCE:-1})) ] || fail 'too early'
    [ $millis -le $((stall * 1000 + $(patience $slack))) ] || fail 'too late'
    settle 3 no_rank "$tmp/$1" || fail 'a rank is left'
}
no_rank() { [ -z "$(pid "$1" dtrain)" ]; }

# long_work NP: a survey of several seconds does not count as a stall, nor does an evaluation that takes half a second
# a chunk.
long_work() {
    watched "$1" survey run.stall_secs=3 $(slow_survey) train.max_steps=2 2>"$tmp/survey.err" &
    survey=$!
    watched "$1" slow train.max_steps=4 test.slow_rank=1 test.slow_secs=0.5 2>"$tmp/err" ||
        { cat "$tmp/err"; fail 'a slow evaluation'; }
    wait $survey || { cat "$tmp/survey.err"; fail 'a long survey'; }
}

# gone NAME RANK HOST: kills a rank of the job in the background ($!): one error line names it, or Hydra is faster.
gone() {
    kill -KILL "$(pid "$tmp/$1" dtrain "$2")"
    wait $!
    status=$?
    line=$(grep '^dtrain: error:' "$tmp/err")
    if ! untold $status "$tmp/err"; then
        [ "$(grep -c '^dtrain: error:' "$tmp/err")" -eq 1 ] || { cat "$tmp/err"; fail 'error lines'; }
        case $line in *"rank $2 on $3 ("*"is gone"*) ;; *) fail "$line" ;; esac
    fi
    [ $status -ne 0 ] && [ $status -ne 75 ] || fail "exit $status"
    settle 3 no_rank "$tmp/$1" || fail 'a rank is left'
}
