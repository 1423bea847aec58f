#!/bin/sh
# Fails if export.best=better exports a worse model, measures the old one on other rows, or forgets
# it over a resume. The old export stays until a better model is there, whenever the run is killed.
# seconds: 120
. "$(dirname "$0")/lib.sh"
# table FILE SEED ROWS SIGN: two classes by the sum of two numbers, or its negative (SIGN -1).
table() {
    awk -v seed="$2" -v n="$3" -v sign="$4" 'BEGIN {
        srand(seed)
        print "a,b,y"
        for (i = 0; i < n; i++) {
            a = 2 * rand() - 1; b = 2 * rand() - 1
            yes = sign * (a + b) + 0.6 * (rand() - 0.5) > 0
            printf "%.6g,%.6g,%s\n", a, b, yes ? "yes" : "no"
        }
    }' >"$1"
}
table "$tmp/train.csv" 1 400 1
table "$tmp/worse.csv" 2 400 -1
table "$tmp/eval.csv" 3 600 1
common="data.eval=$tmp/eval.csv data.label=y run.preset=none train.batch=32 run.replicas=2 \
model.hidden=4 train.lr=0.05"
from_old="run.init=$tmp/run/export/best"
worse="data.train=$tmp/worse.csv $from_old export.best=better train.epochs=6"
# train NP OPTION...
train() {
    np=$1
    shift
    job "$np" run.dir="$tmp/run" $common "$@" 2>"$tmp/err"
}
# accuracy MODEL OPTION...
accuracy() { "$dtrain" eval "$@" 2>/dev/null | json accuracy; }
train 1 data.train="$tmp/train.csv" train.epochs=2 || fail_with "$tmp/err" 'the old model'
old=$(ls "$tmp/run/export/best" | sort -n | tail -n 1)
accuracy=$(accuracy "$tmp/run/export/best" data.eval="$tmp/eval.csv")
mkdir "$tmp/keep" && cp -r "$tmp/run/export" "$tmp/keep"
fresh() { rm -rf "$tmp/run" && mkdir "$tmp/run" && cp -r "$tmp/keep/export" "$tmp/run"; }
exports() { (cd "$tmp/$1/export/best" && cksum ./*/model.h5); }
same() { check_eq "exports, $1" "$(exports run)" "$(exports keep)"; }
# recorded KEY: the accuracy in the record that starts with this key.
recorded() {
    sed -n "s/^{\"kind\":\"eval\",$1,.*\"accuracy\":\([^,]*\).*/\1/p" "$tmp/run/metrics.jsonl"
}
init() { recorded '"set":"init"'; }
for np in 1 3; do
    fresh
    train $np $worse || fail_with "$tmp/err" "np $np"
    same "a worse model at np $np"
    check_eq "the old model at np $np" "$(init)" "$accuracy"
    expect_line "$tmp/err" 'the old model on the rows held out: loss'
    expect_line "$tmp/err" 'it is not beaten, and export/best stays'
done
# A dedicated evaluator exports.
fresh
train 3 $worse eval.dedicated=yes run.replicas=1 run.checkpoint_steps=8 ||
    fail_with "$tmp/err" 'an evaluator'
same 'a worse model of an evaluator'
# Killed at several moments, and resumed; at last its end.
fresh
for pause in 0.15 0.3 0.45 0.6 0.75 0.9; do
    timeout -s KILL $pause "$dtrain" run.dir="$tmp/run" $common $worse run.checkpoint_steps=4 \
        eval.steps=4 test.slow_rank=0 test.slow_secs=0.02 2>"$tmp/err"
    same "killed after $pause s"
done
train 1 $worse run.checkpoint_steps=4 eval.steps=4 || fail_with "$tmp/err" 'the resume'
same 'after the last resume'
check_eq 'the old model is measured once' "$(init | sort -u)" "$accuracy"
# Where there is no old export, a resume makes none either.
for steps in 20 40; do
    job 1 run.dir="$tmp/new" $common $worse run.init="$tmp/keep/export/best" eval.steps=20 \
        train.max_steps=$steps 2>"$tmp/err" || fail_with "$tmp/err" "up to step $steps"
    [ ! -e "$tmp/new/export/best" ] || fail "an export of step $steps: $(ls "$tmp/new/export/best")"
done
# A better one takes its place.
fresh
train 1 data.train="$tmp/train.csv" $from_old export.best=better train.epochs=30 ||
    fail_with "$tmp/err" 'a better model'
now=$(accuracy "$tmp/run")
awk -v a="$now" -v b="$accuracy" 'BEGIN { exit !(a > b) }' || fail "no better: $now after $accuracy"
expect_line "$tmp/err" 'export/best has the new one' 'nothing says that it is better'
# Rows held out of the training data; an old model that cannot be measured; what contradicts.
fresh
train 1 data.train="$tmp/train.csv" data.eval= data.eval_fraction=0.3 $from_old train.max_steps=0 ||
    fail_with "$tmp/err" 'a fraction'
check_eq 'digits on rows held out of the training data' "$(init)" "$(recorded '"step":0')"
sed '1s/a,b/c,d/' "$tmp/train.csv" >"$tmp/other.csv"
sed '1s/a,b/c,d/' "$tmp/eval.csv" >"$tmp/other_eval.csv"
fresh
train 1 data.train="$tmp/other.csv" data.eval="$tmp/other_eval.csv" $from_old export.best=better \
    train.epochs=1
check_eq 'exit code of other columns' $? 1
expect_line "$tmp/err" 'run.init: measuring the old model' 'other columns'
same 'after an error'
train 1 data.train="$tmp/train.csv" export.best=better
check_eq 'exit code without run.init' $? 2
for word in true on 1; do
    "$dtrain" run.dir="$tmp/word" data.train="$tmp/train.csv" data.eval="$tmp/eval.csv" \
        data.label=y train.max_steps=1 export.best=$word 2>"$tmp/err" ||
        fail_with "$tmp/err" "export.best=$word"
done
expect_line "$tmp/word/config.ini" '^best = yes' 'yes has another word now'
[ "$old" -gt 0 ] || fail 'the old model has no step'
