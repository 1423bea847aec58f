#!/bin/sh
# Async on two hosts: stopped, and killed at the bank and at a worker; each goes on from its
# checkpoint. Would catch gradients that are lost over a stop, a killed rank or a resume, and state that other owners do
# not find.
# waits
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/async_hosts.sh"

keys="$keys train.epochs=1000000"
run stop &
settle grep -q '"kind":"train"' "$tmp/stop/metrics.jsonl" || { cat "$tmp/out"; fail 'no train record'; }
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
check_le 'loss behind all that' "$(record "$tmp/stop" final loss)" 0.7
no_dtrain() { [ -z "$(pid "$1" dtrain)" ]; }
for rank in 0 3; do
    run killed-$rank run.checkpoint_steps=100 &
    settle grep -q '"kind":"checkpoint","step":[1-9]' "$tmp/killed-$rank/metrics.jsonl" || fail 'no checkpoint'
    kill -9 "$(pid "$tmp/killed-$rank" dtrain $rank)"
    wait $!
    status=$?
    [ $status -ne 0 ] || fail "rank $rank is killed: exit 0"
    grep -q "rank $rank" "$tmp/out" || untold $status "$tmp/out" || { cat "$tmp/out"; fail 'the killed rank is not named'; }
    settle no_dtrain "$tmp/killed-$rank" || fail 'a rank is left'
    at=$(readlink "$tmp/killed-$rank/ckpt/latest.h5" | sed 's/^step-0*\([0-9]*\).h5$/\1/')
    good killed-$rank train.max_steps=$((at + 300))
    accounts killed-$rank $((at + 300)) 4
done
