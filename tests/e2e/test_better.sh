#!/bin/sh
# A retraining starts from the old model, which is measured on the same rows first; with
# export.best=better the old export stays until a better model is there, whenever the run is killed.
# Would catch an export that is worse, an old model that is measured on other rows, and one that is
# forgotten by a resume.
# seconds: 120
. "$(dirname "$0")/lib.sh"
# table FILE SEED ROWS SIGN
table() {
    awk -v seed="$2" -v n="$3" -v sign="$4" 'BEGIN {
        srand(seed)
        print "a,b,y"
        for (i = 0; i < n; i++) {
            a = 2 * rand() - 1; b = 2 * rand() - 1
            printf "%.6g,%.6g,%s\n", a, b, (sign * (a + b) + 0.6 * (rand() - 0.5) > 0 ? "yes" : "no")
        }
    }' >"$1"
}
table "$tmp/train.csv" 1 400 1
table "$tmp/worse.csv" 2 400 -1
table "$tmp/eval.csv" 3 600 1
# train NP OPTION...
train() {
    np=$1
    shift
    job "$np" run.dir="$tmp/run" data.eval="$tmp/eval.csv" data.label=y run.preset=none train.batch=32 \
        run.replicas=2 model.hidden=4 train.lr=0.05 "$@" 2>"$tmp/err"
}
train 1 data.train="$tmp/train.csv" train.epochs=2 || { cat "$tmp/err"; fail 'the old model'; }
old=$(ls "$tmp/run/export/best" | sort -n | tail -n 1)
accuracy=$("$dtrain" eval "$tmp/run/export/best" data.eval="$tmp/eval.csv" 2>/dev/null | json accuracy)
mkdir "$tmp/keep" && cp -r "$tmp/run/export" "$tmp/keep"
fresh() { rm -rf "$tmp/run" && mkdir "$tmp/run" && cp -r "$tmp/keep/export" "$tmp/run"; }
same() {
    (cd "$tmp/run/export/best" && cksum ./*/model.h5) >"$tmp/now"
    (cd "$tmp/keep/export/best" && cksum ./*/model.h5) | cmp -s - "$tmp/now" || fail "$1: $(cat "$tmp/now")"
}
init() { sed -n 's/^{"kind":"eval","set":"init".*"accuracy":\([^,]*\).*/\1/p' "$tmp/run/metrics.jsonl"; }
for np in 1 3; do
    fresh
    train $np data.train="$tmp/worse.csv" run.init="$tmp/run/export/best" export.best=better train.epochs=6 ||
        { cat "$tmp/err"; fail "np $np"; }
    same "a worse model at np $np"
    check_eq "the old model at np $np" "$(init)" "$accuracy"
    grep -q 'the old model on the rows held out: loss' "$tmp/err" || { cat "$tmp/err"; fail 'the old model is not printed'; }
    grep -q 'it is not beaten, and export/best stays' "$tmp/err" || { cat "$tmp/err"; fail 'nothing says so'; }
done
# A dedicated evaluator exports.
fresh
train 3 data.train="$tmp/worse.csv" run.init="$tmp/run/export/best" export.best=better train.epochs=6 eval.dedicated=yes \
    run.replicas=1 run.checkpoint_steps=8 || { cat "$tmp/err"; fail 'an evaluator'; }
same 'a worse model of an evaluator'
# Killed at several moments, and resumed; at last its end.
fresh
for pause in 0.15 0.3 0.45 0.6 0.75 0.9; do
    timeout -s KILL $pause "$dtrain" run.dir="$tmp/run" data.eval="$tmp/eval.csv" data.label=y run.preset=none \
        train.batch=32 run.replicas=2 model.hidden=4 train.lr=0.05 data.train="$tmp/worse.csv" run.init="$tmp/run/export/best" \
        export.best=better train.epochs=6 run.checkpoint_steps=4 eval.steps=4 test.slow_rank=0 test.slow_secs=0.02 2>"$tmp/err"
    same "killed after $pause s"
done
train 1 data.train="$tmp/worse.csv" run.init="$tmp/run/export/best" export.best=better train.epochs=6 \
    run.checkpoint_steps=4 eval.steps=4 || { cat "$tmp/err"; fail 'the resume'; }
same 'after the last resume'
check_eq 'the old model is measured once' "$(init | sort -u)" "$accuracy"
# Where there is no old export, a resume makes none either.
for steps in 20 40; do
    job 1 run.dir="$tmp/new" data.eval="$tmp/eval.csv" data.label=y run.preset=none train.batch=32 run.replicas=2 model.hidden=4 \
        train.lr=0.05 data.train="$tmp/worse.csv" run.init="$tmp/keep/export/best" export.best=better eval.steps=20 \
        train.max_steps=$steps 2>"$tmp/err" || { cat "$tmp/err"; fail "up to step $steps"; }
    [ ! -e "$tmp/new/export/best" ] || fail "an export of step $steps: $(ls "$tmp/new/export/best")"
done
# A better one takes its place.
fresh
train 1 data.train="$tmp/train.csv" run.init="$tmp/run/export/best" export.best=better train.epochs=30 ||
    { cat "$tmp/err"; fail 'a better model'; }
now=$("$dtrain" eval "$tmp/run" 2>/dev/null | json accuracy)
awk -v a="$now" -v b="$accuracy" 'BEGIN { exit !(a > b) }' || fail "no better: $now after $accuracy"
grep -q 'export/best has the new one' "$tmp/err" || { cat "$tmp/err"; fail 'nothing says that it is better'; }
# Rows held out of the training data; an old model that cannot be measured; what contradicts.
fresh
train 1 data.train="$tmp/train.csv" data.eval= data.eval_fraction=0.3 run.init="$tmp/run/export/best" train.max_steps=0 ||
    { cat "$tmp/err"; fail 'a fraction'; }
check_eq 'digits on rows held out of the training data' "$(init)" \
    "$(grep -v '"set"' "$tmp/run/metrics.jsonl" | sed -n 's/^{"kind":"eval","step":0,.*"accuracy":\([^,]*\).*/\1/p')"
sed '1s/a,b/c,d/' "$tmp/train.csv" >"$tmp/other.csv"
sed '1s/a,b/c,d/' "$tmp/eval.csv" >"$tmp/other_eval.csv"
fresh
train 1 data.train="$tmp/other.csv" data.eval="$tmp/other_eval.csv" run.init="$tmp/run/export/best" export.best=better train.epochs=1
check_eq 'exit code of other columns' $? 1
grep -q 'run.init: measuring the old model' "$tmp/err" || { cat "$tmp/err"; fail 'other columns'; }
same 'after an error'
train 1 data.train="$tmp/train.csv" export.best=better
check_eq 'exit code without run.init' $? 2
for word in true on 1; do
    "$dtrain" run.dir="$tmp/word" data.train="$tmp/train.csv" data.eval="$tmp/eval.csv" data.label=y train.max_steps=1 \
        export.best=$word 2>"$tmp/err" || { cat "$tmp/err"; fail "export.best=$word"; }
done
grep -q '^best = yes' "$tmp/word/config.ini" || fail 'yes has another word now'
[ "$old" -gt 0 ] || fail 'the old model has no step'
