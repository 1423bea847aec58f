#!/bin/sh
# Fails if a named set of rows decides the best model, takes unknown classes for known ones, or
# changes its sample. Sets are measured with the rows held out and choose nothing; each has its
# records, its line at the end and its part of `dtrain eval`, with the same digits at any number of
# ranks and by a dedicated evaluator.
# seconds: 120
. "$(dirname "$0")/lib.sh"
# table FILE SEED ROWS NOISE CLASSES
table() {
    awk -v seed="$2" -v n="$3" -v noise="$4" -v classes="$5" 'BEGIN {
        srand(seed)
        print "a,b,y"
        for (i = 0; i < n; i++) {
            a = 2 * rand() - 1; b = 2 * rand() - 1
            y = int(1.5 + a + b + noise * rand()); if (y < 0) y = 0
            if (y > 2) y = 2
            if (classes > 3 && i % 20 == 0) y = 9
            printf "%.6g,%.6g,c%d\n", a, b, y
        }
    }' >"$1"
}
table "$tmp/train.csv" 1 900 0.2 3
table "$tmp/eval.csv" 2 600 0.2 3
table "$tmp/later.csv" 3 300 2 3
table "$tmp/a:b.csv" 4 200 0.2 3
table "$tmp/wild.csv" 5 400 0.2 4
table "$tmp/test.csv" 6 300 0.2 3
cd "$tmp" || exit 1
awk -F, 'NR == 1 || $3 == "c1"' eval.csv >easy.csv # a class that most rows are taken for
also="easy:easy.csv,shift:later.csv,./a:b.csv,wild:wild.csv,train:500,test:test.csv"
# run NAME NP OPTION...
run() {
    name=$1 np=$2
    shift 2
    job "$np" run.dir="$tmp/$name" data.train=train.csv data.eval=eval.csv data.label=y \
        train.epochs=4 train.batch=64 run.replicas=2 model.hidden=8 model.activation=tanh \
        run.preset=none "$@" 2>"$tmp/err.$name" || fail_with "$tmp/err.$name" "training $name"
}
# sets RUN SET KEY: the values of a set's records.
sets() {
    sed -n "s/^{\"kind\":\"eval\",\"set\":\"$2\".*\"$3\":\([^,}]*\).*/\1/p" "$tmp/$1/metrics.jsonl"
}
run plain 1
run one 1 eval.also="$also"
# They choose nothing: the weights and the best are those of a run without them.
for name in plain one; do
    sed -n 's/.*"params_crc32c":"\([^"]*\)".*/\1/p' "$tmp/$name/metrics.jsonl"
    (cd "$tmp/$name/export/best" && ls | sort -n | tail -n 1)
    grep -v '"set"' "$tmp/$name/metrics.jsonl" | sed -n '/"kind":"eval"/s/,"secs".*//p'
    grep 'best accuracy on the rows held out' "$tmp/err.$name"
done >"$tmp/both"
lines=$(($(wc -l <"$tmp/both") / 2))
check_eq 'the run next to its sets' "$(head -n $lines "$tmp/both" | cksum)" \
    "$(tail -n $lines "$tmp/both" | cksum)"
check_eq 'evaluations of a set' "$(sets one shift rows | wc -l)" \
    "$(grep -v '"set"' "$tmp/one/metrics.jsonl" | grep -c '"kind":"eval"')"
check_eq 'rows of two files' "$(sets one shift rows | sort -u)" 500
check_eq 'rows of the sample' "$(sets one train rows | sort -u)" 500
check_eq 'rows of unknown classes' "$(sets one wild unknown | sort -u)" 20
expect_line "$tmp/err.one" "set 'wild': 400 rows, .*, 20 of classes that training never saw" \
    'unknown rows are printed'
# The test set comes once, at the end, under the best model.
best=$(cd "$tmp/one/export/best" && ls | sort -n | tail -n 1)
check_eq 'tests' "$(sets one test step)" "$best"
expect_line "$tmp/err.one" "this model on the set 'test': loss 0\.[0-9]*, accuracy 0\." \
    'its line at the end'
[ "$(grep -c "this model on the set" "$tmp/err.one")" = 5 ] || fail 'a line for each set'
# Equal digits at np 3, and what `dtrain eval` prints; unknown rows are wrong.
run three 3 eval.also="$also"
digits() { sed -n '/"set"/s/,"secs".*//p' "$tmp/$1/metrics.jsonl"; }
check_eq 'the digits at np 3' "$(digits three | cksum)" "$(digits one | cksum)"
"$dtrain" eval "$tmp/one" 2>"$tmp/err" >"$tmp/json" || fail_with "$tmp/err" 'eval'
for set in shift wild train test; do
    value=$(sed -n "s/.*\"$set\":{[^}]*\"accuracy\":\([^,}]*\).*/\1/p" "$tmp/json")
    check_eq "accuracy of $set" "$value" \
        "$(grep "\"set\":\"$set\",\"step\":$best," "$tmp/one/metrics.jsonl" |
            sed 's/.*"accuracy":\([^,]*\).*/\1/')"
done
awk -F, 'FNR == NR { if ($3 != "c9") print; next }' wild.csv >known.csv
known=$("$dtrain" eval "$tmp/one" data.eval=known.csv 2>/dev/null | json accuracy)
awk -v a="$known" -v b="$(sed -n 's/.*"wild":{[^}]*"accuracy":\([^,}]*\).*/\1/p' "$tmp/json")" \
    'BEGIN { d = a * 380 - b * 400; exit !(d * d < 1e-12) }' ||
    fail "unknown rows are not wrong: $known"
# A best model that is not the last one is the one that is tested.
run early 1 eval.also=test:test.csv train.lr=2 eval.steps=3
best=$(cd "$tmp/early/export/best" && ls | sort -n | tail -n 1)
[ "$best" -lt \
    "$(sed -n 's/.*"kind":"final".*"step":\([0-9]*\).*/\1/p' "$tmp/early/metrics.jsonl")" ] ||
    fail 'the best is the last'
check_eq 'the step that is tested' "$(sets early test step)" "$best"
check_eq 'digits of the test' "$(sets early test loss)" \
    "$("$dtrain" eval "$tmp/early" 2>/dev/null | sed 's/.*"test":{[^}]*"loss":\([^,]*\).*/\1/')"
# The sample is of rows that the run trained on, also where other rows are measured.
job 1 run.dir="$tmp/part" data.train=train.csv data.label=y data.eval_fraction=0.2 \
    data.test_fraction=0.1 train.epochs=1 model.hidden=8 run.preset=none eval.also=train:300 \
    2>"$tmp/err" || fail_with "$tmp/err" 'a part'
check_eq 'loss of the sample' "$(sets part train loss)" \
    "$("$dtrain" eval "$tmp/part" data.eval=eval.csv eval.also=train:300 2>/dev/null |
        sed 's/.*"train":{[^}]*"loss":\([^,]*\).*/\1/')"
# A dedicated evaluator measures them too; a dead one's run is taken up again.
run other 3 eval.also="$also" eval.dedicated=yes run.replicas=1 run.checkpoint_steps=15
[ "$(sets other shift rows | wc -l)" -ge 1 ] || fail 'the evaluator measures no set'
check_eq 'tests of the evaluator' "$(sets other test rows | wc -l)" 1
# A curve of its own.
"$dtrain" report "$tmp/one" "$tmp/page.html" 2>"$tmp/err" || fail_with "$tmp/err" report
expect_line "$tmp/page.html" '"set":"shift"' 'no curve'
# IDX: labels apart, and a class that no training row has.
idx() { # FILE ROWS CLASSES
    awk -v n="$2" -v k="$3" 'BEGIN {
        printf "0000080300%06x0000000200000002", n >"/dev/stdout"
        for (i = 0; i < n; i++)
            printf "%02x%02x%02x%02x", 255 * (i % k == 0), 255 * (i % k == 1), 100 * (i % k), i % 7
    }' | xxd -r -p >"$1.img"
    awk -v n="$2" -v k="$3" \
        'BEGIN { printf "0000080100%06x", n; for (i = 0; i < n; i++) printf "%02x", i % k }' |
        xxd -r -p >"$1.lab"
}
if command -v xxd >/dev/null; then
    idx i 300 2
    idx j 90 3
    job 1 run.dir="$tmp/idx" data.train=i.img data.train_labels=i.lab data.eval=i.img \
        data.eval_labels=i.lab train.epochs=5 data.scale=0.01 eval.also=more:j.img \
        eval.also_labels=more:j.lab 2>"$tmp/err" || fail_with "$tmp/err" 'IDX'
    check_eq 'unknown labels of IDX' "$(sets idx more unknown | sort -u)" 30
    awk -v a="$(sets idx more accuracy | tail -n 1)" 'BEGIN { exit !(a > 0.5 && a < 0.67) }' ||
        fail 'labels of IDX'
fi
# What is refused, with the key.
for pair in 'later.csv|expected NAME:FILES' 'a:later.csv,a:test.csv|is taken' \
    'init:later.csv|is taken' 'train:later.csv|number of training rows' \
    'a:|expected files after the colon' 'a:none.csv|none.csv'; do
    timeout 20 "$dtrain" run.dir="$tmp/bad" data.train=train.csv data.eval=eval.csv data.label=y \
        eval.also="${pair%%|*}" 2>"$tmp/err" && fail "$pair is taken"
    expect_line "$tmp/err" "error: eval.also.*${pair#*|}" "$pair"
done
timeout 20 "$dtrain" run.dir="$tmp/bad" data.train=train.csv data.label=y eval.also=a:later.csv \
    2>"$tmp/err"
check_eq 'exit code without rows held out' $? 2
