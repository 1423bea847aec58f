#!/bin/sh
# Fails if async on two hosts loses gradients over a stop, a killed bank or worker, or a resume, or
# if the optimizer's state does not reach other owners.
# waits
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/async_hosts.sh"

keys="$keys train.epochs=1000000"
run stop &
wait_until grep -q '"kind":"train"' "$tmp/stop/metrics.jsonl" ||
    fail_with "$tmp/out" 'no train record'
kill -TERM "$(pid "$tmp/stop" dtrain 3)"
wait $!
check_eq 'exit of the stopped run' $? 75
stopped=$(record "$tmp/stop" final step)
accounts stop "$stopped" 4
good stop train.max_steps=$((stopped + 500))
accounts stop $((stopped + 500)) 4
# Other owners, and other workers, find the optimizer's state.
good stop train.max_steps=$((stopped + 600)) train.owners=1
accounts stop $((stopped + 600)) 1
good stop train.max_steps=$((stopped + 700)) train.owners=9
accounts stop $((stopped + 700)) 4
check_le 'loss after all that' "$(record "$tmp/stop" final loss)" 0.7
no_dtrain() { [ -z "$(pid "$1" dtrain)" ]; }
for rank in 0 3; do
    run killed-$rank run.checkpoint_steps=100 &
    await_checkpoint "$tmp/killed-$rank" || fail 'no checkpoint'
    kill -9 "$(pid "$tmp/killed-$rank" dtrain $rank)"
    wait $!
    status=$?
    [ $status -ne 0 ] || fail "rank $rank is killed: exit 0"
    expect_rank $rank $status "$tmp/out"
    wait_until no_dtrain "$tmp/killed-$rank" || fail 'a rank is left'
    at=$(latest_step "$tmp/killed-$rank")
    good killed-$rank train.max_steps=$((at + 300))
    accounts killed-$rank $((at + 300)) 4
done
