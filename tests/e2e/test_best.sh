#!/bin/sh
# Fails if the best model is never exported although the run exits with 0, or loses its records.
# An export fails, the best is deleted, a complete run is started again; the best's checkpoint takes
# no other one's place.
# seconds: 60
# waits
. "$(dirname "$0")/lib.sh"
always='run.checkpoint_steps=100 run.keep=3 export.keep=2'
. "$root/tests/e2e/rising.sh"


# ---- no checkpoint's place -----------------------------------------------------------------------
# Slowed: a save that is due while another one is pending would be passed over.
good 1 plain test.slow_rank=0 test.slow_secs=0.03
best plain
check_eq 'checkpoints' "$(ls "$tmp/plain/ckpt" | grep -c '^step')" 3
check_eq 'their steps' "$(records "$tmp/plain" checkpoint step | awk '$1 % 100' | wc -l)" 0
at=$(highest plain best)

# ---- deleted, in a run that is complete ----------------------------------------------------------
good 1 gone train.max_steps="$at"
rm -r "$tmp/gone/export/best"
good 1 gone train.max_steps="$at"
expect_line "$tmp/err" 'is complete' 'the run is not complete'
best gone
check_eq 'best that is back' "$(highest gone best)" "$at"
rm -r "$tmp/plain/export/best"
good 1 plain
expect_line "$tmp/err" "warning:.*export/best: the best model, of step $at, is missing here" \
    'a best that no checkpoint holds is not missed'

# ---- an export that fails to the end -------------------------------------------------------------
mkdir -p "$tmp/blocked/export"
: >"$tmp/blocked/export/best"
run 1 blocked 2>"$tmp/err" && fail 'exit 0 without the best'
check_eq 'error lines' "$(grep -c '^dtrain: error:.*export/best' "$tmp/err")" 1
check_eq 'last checkpoint' "$(record "$tmp/blocked" checkpoint step)" 800
rm "$tmp/blocked/export/best"
good 1 blocked
best blocked
check_eq 'best made good' "$(highest blocked best)" "$at"
check_eq 'bits' "$(crc "$tmp/blocked")" "$(crc "$tmp/plain")"

# ---- taken into another run directory ------------------------------------------------------------
# The best of the run before comes along, from where that run has it.
good 1 before
good 1 taken run.resume="$tmp/before/ckpt/latest.h5" train.epochs=55
best_is() { expect_line "$tmp/err" "the model is in $tmp/$1/export/$2;" "where $1's model is"; }
best_is taken best
check_eq 'best that was taken' "$(highest taken best)" "$at"
check_eq 'its rmse' "$("$dtrain" eval "$tmp/taken/export/best" | json rmse)" "$(least before)"
# Or from the directory of the checkpoint, but not from a checkpoint of another run there.
mkdir "$tmp/beside"
name=$(readlink "$tmp/gone/ckpt/latest.h5") # of the best's step, with the same weights
cp "$tmp/before/ckpt/latest.h5" "$tmp/beside/last.h5"
cp "$tmp/gone/ckpt/$name" "$tmp/beside"
good 1 found run.resume="$tmp/beside/last.h5" train.epochs=55
best_is found best
good 1 other train.max_steps="$at" train.lr=0.5
cp "$tmp/other/ckpt/$name" "$tmp/beside"
good 1 not-found run.resume="$tmp/beside/last.h5" train.epochs=55
best_is not-found latest
cp -r "$tmp/plain" "$tmp/bare" # which has lost it
good 1 bare train.epochs=55
best_is bare latest

# ---- other rows that are held out ----------------------------------------------------------------
# Their values start again, however much worse they are, as does the count of an early stop.
good 1 anew train.max_steps=200
awk -F, -v OFS=, 'NR > 1 { $NF += 9 } 1' "$tmp/data/test.csv" >"$tmp/shifted.csv"
good 1 anew train.max_steps=240 data.eval="$tmp/shifted.csv"
expect_line "$tmp/err" 'the held-out rows or eval.metric changed' 'not a word of other rows'
check_eq 'best of other rows' "$(highest anew best)" 240
check_eq 'best of other rows, compared' \
    "$("$dtrain" compare "$tmp/anew" --json | json best_step)" 240
good 1 anew train.max_steps=280 data.eval="$tmp/shifted.csv"
expect_no_line "$tmp/err" 'other rows' 'the same rows are other ones'
# The same after a restart, which finds the best of the old rows exported, and none of the new ones.
apart='eval.dedicated=yes eval.steps=0 run.checkpoint_steps=20'
good 4 apart $apart train.max_steps=40
run 4 apart $apart data.eval="$tmp/shifted.csv" eval.start_delay_secs=1000 \
    test.slow_rank=1 test.slow_secs=0.02 2>"$tmp/err" &
goes_on() { [ "$(record "$tmp/apart" checkpoint step)" -ge 60 ]; }
wait_until goes_on || fail_with "$tmp/err" 'other rows: the run gets no farther'
kill -KILL "$(pid "$tmp/apart" dtrain 1)"
wait $!
at=$(readlink "$tmp/apart/ckpt/latest.h5" | tr -dc '0-9\n' | sed 's/5$//; s/^0*//')
good 4 apart $apart data.eval="$tmp/shifted.csv" train.max_steps=$((at + 20))
check_eq 'best of other rows after another start' \
    "$(sed -n 's/.*best rmse on the rows held out: \([0-9]*\)\..*/\1/p' "$tmp/err")" \
    "$(records "$tmp/apart" eval rmse | tail -n 2 | sort -g | head -n 1 | cut -d. -f1)"

# ---- an evaluator's, unknown to any checkpoint ---------------------------------------------------
# It measured the last one. The run goes on without it, and gets no better.
good 4 without eval.dedicated=yes eval.steps=0 train.max_steps=100
check_eq 'best of the evaluator' "$(highest without best)" 100
good 1 without train.max_steps=140 train.lr=0
check_eq 'evaluations in place' "$(records "$tmp/without" eval step | tail -n 2 | xargs)" '120 140'
check_eq 'best after them' "$(highest without best)" 100
expect_line "$tmp/err" 'best rmse on the rows held out: .*, at step 100;' 'another best'

# ---- records that are deleted --------------------------------------------------------------------
run 1 lost test.slow_rank=0 test.slow_secs=0.03 2>"$tmp/err" &
started() { [ "$(record "$tmp/lost" eval step)" -ge 80 ]; }
wait_until started || fail_with "$tmp/err" 'the run gets no farther'
rm "$tmp/lost/metrics.jsonl"
wait $! || fail_with "$tmp/err" 'deleted records end the run'
expect_line "$tmp/err" 'warning:.*metrics.jsonl: was deleted' 'not a word of deleted records'
check_eq 'evaluations' "$(records "$tmp/lost" eval step | wc -l)" \
    "$(records "$tmp/plain" eval step | wc -l)"
