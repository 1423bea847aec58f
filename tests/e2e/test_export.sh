#!/bin/sh
# Fails if a version is torn, a resume forgets the best, or a kill before its export loses it.
# Exports appear whole or not at all, export.keep of them stay, and the best has the model of the
# best metric that was recorded, also over kills and resumes in which worse models follow.
# seconds: 240
# waits
. "$(dirname "$0")/lib.sh"
always='run.checkpoint_steps=20 export.keep=2'
. "$root/tests/e2e/rising.sh"
# labelled_best DIR: as best; the metric is stored in the model, too.
labelled_best() {
    best "$1"
    "$dtrain" inspect "$tmp/$1/export/best/$(highest "$1" best)/model.h5" | grep -q 'best.*rmse' ||
        fail 'the metric is not stored in the best'
}

good 3 whole
labelled_best whole
check_le 'step of the best' "$(highest whole best)" 799
check_eq 'latest' "$(highest whole latest)" 800
# When best models follow each other faster than they are written, only the last is exported.
check_eq 'latest that stay' "$(versions whole latest | wc -l)" 2
check_ge 'best that stay' "$(versions whole best | wc -l)" 1
check_le 'best that stay' "$(versions whole best | wc -l)" 2
size() { wc -c <"$1"; }
check_le 'bytes of an export' "$(size "$tmp/whole/export/latest/800/model.h5")" \
    "$(size "$tmp/whole/ckpt/latest.h5")"

# ---- killed: what is there is whole --------------------------------------------------------------
# A version may go while it is looked at, but not break.
whole() {
    for kind in latest best; do
        for version in $(versions killed $kind); do
            path=$tmp/killed/export/$kind/$version
            "$dtrain" inspect "$path/model.h5" >"$tmp/out" 2>&1 || [ ! -e "$path" ] ||
                fail_with "$tmp/out" "$kind version $version is not whole"
        done
    done
}
for kill in 1 2; do
    run 3 killed test.slow_rank=1 test.slow_secs=0.03 2>"$tmp/err" &
    before=$(record "$tmp/killed" checkpoint step 2>/dev/null)
    farther() { [ "$(record "$tmp/killed" checkpoint step)" -ge $((${before:-0} + 60)) ]; }
    wait_until farther || fail_with "$tmp/err" 'a run gets no farther'
    whole
    kill -KILL "$(pid "$tmp/killed" dtrain 0)" || fail 'the run ends before it is killed'
    wait $!
    wait_until gone || fail 'a process is left'
    whole
done
good 3 killed
labelled_best killed
check_eq 'bits' "$(crc "$tmp/killed")" "$(crc "$tmp/whole")"
check_eq 'best of the killed run' "$(highest killed best)" "$(highest whole best)"
ls -A "$tmp"/killed/export/* | grep -q '^\.' && fail 'a torn version is left'

# ---- killed between the best checkpoint and its export -------------------------------------------
at=$(highest whole best)
good 3 gap train.max_steps="$at"
rm -r "$tmp/gap/export/best/$at" "$tmp/gap/export/latest/$at"
good 3 gap
labelled_best gap
check_eq 'best after the gap' "$(highest gap best)" "$at"

# ---- a dedicated evaluator, killed and resumed where only worse ones follow ----------------------
measured() { [ "$(record "$tmp/apart" eval step)" -ge 560 ]; }
run 4 apart eval.dedicated=yes train.epochs=1000 test.slow_rank=1 test.slow_secs=0.02 2>"$tmp/err" &
wait_until measured || fail_with "$tmp/err" 'the evaluator measures nothing'
kill -KILL "$(pid "$tmp/apart" dtrain 3)" || fail 'the run ends before it is killed'
wait $!
wait_until gone || fail 'a process is left'
before=$(highest apart best)
good 4 apart eval.dedicated=yes train.epochs=1000 \
    train.max_steps=$(($(record "$tmp/apart" checkpoint step) + 100))
labelled_best apart
echo "best before the kill: $before, at the end: $(highest apart best)"

# The verdict on a last checkpoint comes after its save: only its export remembers it.
later() { good 4 later eval.dedicated=yes eval.start_delay_secs=1000 "$@"; }
later train.max_steps="$at"
later
check_eq 'evaluations' "$(records "$tmp/later" eval step | paste -sd' ')" "$at 800"
check_eq 'best that an export remembers' "$(highest later best)" "$at"
labelled_best later

# ---- off -----------------------------------------------------------------------------------------
good 3 none export.latest=no export.best=no train.max_steps=80
[ ! -e "$tmp/none/export" ] || fail 'exports although both are off'
