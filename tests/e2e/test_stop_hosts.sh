#!/bin/sh
# Fails if a request to stop does not leave its host. A signal to one rank of the last host stops
# the job of three hosts: in training, sync and async, and while the bank surveys data; it ends as
# if undisturbed when started again.
# seconds: 120
# waits
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/netns.sh"
hosts_up 3
"$recipes/exp-data.sh" "$tmp/data"
run() {
    dir=$tmp/$1
    shift
    hosts_job 3 "$dtrain" "$recipes/exp-curve.ini" run.dir="$dir" data.train="$tmp/data/train.csv" \
        data.eval="$tmp/data/test.csv" train.epochs=20 eval.steps=-1 "$@" 2>"$tmp/err"
}
# stops NAME: rank 2 gets a TERM.
stops() {
    kill -TERM "$(pid "$tmp/$1" dtrain 2)"
    wait $!
    check_eq "exit code of $1" $? 75
    wait_until gone || fail "a process of $1 is left"
}
run whole || fail_with "$tmp/err" whole
for mode in sync async; do
    # A bound keeps the fast worker of async from being through before the signal comes.
    keys="train.mode=$mode" && [ $mode = sync ] || keys="$keys train.staleness=4"
    run $mode $keys test.slow_rank=1 test.slow_secs=0.1 run.log_steps=5 &
    wait_until grep -q '"kind":"train"' "$tmp/$mode/metrics.jsonl" || fail_with "$tmp/err" $mode
    stops $mode
    check_eq "checkpoint of $mode" "$(record "$tmp/$mode" checkpoint step)" \
        "$(record "$tmp/$mode" final step)"
    run $mode $keys || fail_with "$tmp/err" "$mode resumed"
    check_eq "status of $mode" "$(record "$tmp/$mode" final status)" completed
done
check_eq 'bits of sync' "$(crc "$tmp/sync")" "$(crc "$tmp/whole")"
check_eq 'gradients of async' "$(record "$tmp/async" final gradients_applied)" \
    "$(record "$tmp/async" final step)"

run survey $(slow_survey) &
wait_until test -f "$tmp/survey/lock" || fail 'no lock'
sleep 1
stops survey
grep '^dtrain: stopped' "$tmp/err" || fail_with "$tmp/err" 'it does not say so'
