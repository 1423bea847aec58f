#!/bin/sh
# Fails if a checkpoint forgets the count of evaluations without progress, or a repeated evaluation
# raises it. Early stopping in place comes at the same step, with the same weights, whether the run
# was undisturbed, stopped and resumed with another number of ranks, or killed again and again.
# seconds: 180
# waits
. "$(dirname "$0")/lib.sh"
# Checkpoints come between evaluations.
always='eval.patience=5 run.checkpoint_steps=30'
. "$root/tests/e2e/rising.sh"
same() {
    check_eq "status of $1" "$(record "$tmp/$1" final status)" early_stopped
    check_eq 'step of the early stop' "$(record "$tmp/$1" final step)" "$stop"
    check_eq params_crc32c "$(crc "$tmp/$1")" "$(crc "$tmp/whole")"
}
good 3 whole
stop=$(record "$tmp/whole" final step)
same whole
expect_line "$tmp/err" 'stopped early: 5 evaluations in a row brought no better rmse$'
check_le 'it stops early' "$stop" 799
best=$(awk -F'[:,]' '
    /"eval"/ {
        for (i = 1; i < NF; i++) {
            if ($i == "\"step\"") s = $(i + 1)
            if ($i == "\"rmse\"" && (!n++ || $(i + 1) < least)) {
                least = $(i + 1)
                at = s
            }
        }
    }
    END { print at }' "$tmp/whole/metrics.jsonl")
check_eq 'five evaluations after the best' "$stop" $((best + 5 * 40))

# Halfway through the count, at an evaluation and between two.
for at in $((best + 120)) $((best + 130)); do
    good 3 "half-$at" train.max_steps=$at
    good 2 "half-$at"
    same "half-$at"
done

# Killed three times, each time after an evaluation that no checkpoint has.
for rank in 0 1 2; do
    before=$(record "$tmp/killed" eval step 2>/dev/null)
    run 3 killed test.slow_rank=1 test.slow_secs=0.04 2>"$tmp/err" &
    farther() {
        at=$(record "$tmp/killed" eval step)
        [ "$at" -ge $((40 << rank)) ] && [ "$at" -gt "${before:-0}" ]
    }
    wait_until farther || fail_with "$tmp/err" 'a run gets no farther'
    kill -KILL "$(pid "$tmp/killed" dtrain $rank)" || fail 'the run ends before it is killed'
    wait $!
    wait_until gone || fail 'a process is left'
done
good 3 killed
same killed

# What stopped early is complete, until there is more patience.
good 3 whole
expect_line "$tmp/err" 'stopped early at step .*; eval.patience=0 continues' \
    'a run that stopped early goes on'
"$dtrain" top --once "$tmp/whole" >"$tmp/top" || fail top
expect_line "$tmp/top" "^step $(record "$tmp/whole" final step)  epoch 45.00  ran " \
    'top does not show the step of an early stop'
good 3 whole eval.patience=100
check_eq 'with more patience' "$(record "$tmp/whole" final status)" completed

# An end that is due at a start, cleared by an evaluation that comes first: no rank still waits for
# it.
good 3 back eval.patience=0 train.max_steps=40
good 3 back eval.patience=0 train.max_steps=80 train.weight_decay=1
good 3 back eval.patience=0 train.max_steps=320 eval.steps=1000 run.checkpoint_steps=300 \
    run.keep=0 train.weight_decay=0
from_back="run.resume=$tmp/back/ckpt/step-000000300.h5 eval.steps=100 eval.patience=1 \
train.max_steps=500"
good 3 forth $from_back
good 1 alone $from_back run.replicas=2
expect_line "$tmp/forth/metrics.jsonl" '"eval".*"step":300' 'no evaluation at the start'
check_ge 'it goes on' "$(record "$tmp/forth" final step)" 400
check_eq 'its step' "$(record "$tmp/forth" final step)" "$(record "$tmp/alone" final step)"
check_eq 'its weights' "$(crc "$tmp/forth")" "$(crc "$tmp/alone")"
