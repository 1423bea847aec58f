#!/bin/sh
# Exports appear whole or not at all, export.keep of them stay, and the best holds the model of the best
# metric that was recorded: also over kills and resumes in which worse ones follow. Would catch a best
# that a resume forgets, one whose export a kill came before, and torn versions.
# seconds: 240
# waits
. "$(dirname "$0")/lib.sh"
always='run.checkpoint_steps=20 export.keep=2'
. "$root/tests/e2e/rising.sh"
least() { records "$tmp/$1" eval rmse | sort -g | head -n 1; }
# best DIR: the highest version of the best measures what the best record says.
best() {
    check_eq "rmse of $1's best" "$("$dtrain" eval "$tmp/$1/export/best" | json rmse)" "$(least "$1")"
    "$dtrain" inspect "$tmp/$1/export/best/$(highest "$1" best)/model.h5" | grep -q 'best.*rmse' ||
        fail 'the metric is not stored in the best'
}
versions() { ls "$tmp/$1/export/$2" | grep -x '[0-9]*' | sort -n; }
highest() { versions "$@" | tail -n 1; }

good 3 whole
best whole
check_le 'step of the best' "$(highest whole best)" 799
check_eq 'latest' "$(highest whole latest)" 800
# Of best models that follow each other faster than they are written only the last is exported.
check_eq 'latest that stay' "$(versions whole latest | wc -l)" 2
check_ge 'best that stay' "$(versions whole best | wc -l)" 1
check_le 'best that stay' "$(versions whole best | wc -l)" 2
size() { wc -c <"$1"; }
check_le 'bytes of an export' "$(size "$tmp/whole/export/latest/800/model.h5")" \
    "$(size "$tmp/whole/ckpt/latest.h5")"

# ---- killed: what is there is whole ---------------------------------------------------------------
# A version may go while it is looked at, but not break.
whole() {
    for version in $(versions killed latest | sed 's|^|latest/|') $(versions killed best | sed 's|^|best/|'); do
        path=$tmp/killed/export/$version
        "$dtrain" inspect "$path/model.h5" >"$tmp/out" 2>&1 || [ ! -e "$path" ] ||
            { cat "$tmp/out"; fail "version $version is not whole"; }
    done
}
for kill in 1 2; do
    run 3 killed test.slow_rank=1 test.slow_secs=0.03 2>"$tmp/err" &
    before=$(record "$tmp/killed" checkpoint step 2>/dev/null)
    farther() { [ "$(record "$tmp/killed" checkpoint step)" -ge $((${before:-0} + 60)) ]; }
    settle farther || { cat "$tmp/err"; fail 'a run gets no farther'; }
    whole
    kill -KILL "$(pid "$tmp/killed" dtrain 0)" || fail 'the run ends before it is killed'
    wait $!
    settle gone || fail 'a process is left'
    whole
done
good 3 killed
best killed
check_eq 'bits' "$(crc "$tmp/killed")" "$(crc "$tmp/whole")"
check_eq 'best of the killed run' "$(highest killed best)" "$(highest whole best)"
ls -A "$tmp"/killed/export/* | grep -q '^\.' && fail 'a torn version is left'

# ---- killed between the best checkpoint and its export ----------------------------------------------
at=$(highest whole best)
good 3 gap train.max_steps="$at"
rm -r "$tmp/gap/export/best/$at" "$tmp/gap/export/latest/$at"
good 3 gap
best gap
check_eq 'best behind the gap' "$(highest gap best)" "$at"

# ---- a dedicated evaluator, killed and resumed where only worse ones follow ---------------------------
measured() { [ "$(record "$tmp/apart" eval step)" -ge 560 ]; }
run 4 apart eval.dedicated=yes train.epochs=1000 test.slow_rank=1 test.slow_secs=0.02 2>"$tmp/err" &
settle measured || { cat "$tmp/err"; fail 'the evaluator measures nothing'; }
kill -KILL "$(pid "$tmp/apart" dtrain 3)" || fail 'the run ends before it is killed'
wait $!
settle gone || fail 'a process is left'
before=$(highest apart best)
good 4 apart eval.dedicated=yes train.epochs=1000 train.max_steps=$(($(record "$tmp/apart" checkpoint step) + 100))
best apart
echo "best before the kill: $before, at the end: $(highest apart best)"

# The verdict on a last checkpoint comes behind its save: its export alone remembers it.
later() { good 4 later eval.dedicated=yes eval.start_delay_secs=1000 "$@"; }
later train.max_steps="$at"
later
check_eq 'evaluations' "$(records "$tmp/later" eval step | paste -sd' ')" "$at 800"
check_eq 'best that an export remembers' "$(highest later best)" "$at"
best later

# ---- off ------------------------------------------------------------------------------------------------
good 3 none export.latest=no export.best=no train.max_steps=80
[ ! -e "$tmp/none/export" ] || fail 'exports that nobody wants'
