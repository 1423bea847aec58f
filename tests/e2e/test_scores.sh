#!/bin/sh
# Fails if metrics are recorded that were not asked for, weights of held-out rows are not counted,
# or eval.metric chooses nothing.
# seconds: 60
. "$(dirname "$0")/lib.sh"
# table FILE SEED ROWS: with weights of 0, 1 and 2.
table() {
    awk -v seed="$2" -v n="$3" 'BEGIN {
        srand(seed)
        print "a,b,w,y"
        for (i = 0; i < n; i++) {
            a = 2 * rand() - 1; b = 2 * rand() - 1
            printf "%.6g,%.6g,%d,%s\n", a, b, i % 3, (a + b + rand() > 0.6 ? "yes" : "no")
        }
    }' >"$1"
}
table "$tmp/train.csv" 1 600
table "$tmp/eval.csv" 2 400
# The same rows, each as often as its weight says.
awk -F, 'NR == 1 { print; next } { for (i = 0; i < $3; i++) print }' "$tmp/eval.csv" \
    >"$tmp/again.csv"
job 1 run.dir="$tmp/run" data.train="$tmp/train.csv" data.eval="$tmp/eval.csv" data.weight=w \
    data.label=y train.epochs=3 eval.metric=f1 2>"$tmp/err" || fail_with "$tmp/err" 'training'
expect_line "$tmp/err" 'best f1 on the rows held out: 0\.' 'the best f1'
check_eq 'metrics that nobody asked for' "$(grep -c '"brier"' "$tmp/run/metrics.jsonl")" 0
best=$(records "$tmp/run" eval f1 | sort -g | tail -n 1)
check_eq 'f1 of the best model' "$("$dtrain" eval "$tmp/run" 2>/dev/null | json f1)" "$best"
# Weights count as repetitions.
"$dtrain" eval "$tmp/run" eval.weighted=yes eval.full=yes 2>/dev/null >"$tmp/weighted"
"$dtrain" eval "$tmp/run" data.eval="$tmp/again.csv" eval.full=yes 2>/dev/null >"$tmp/repeated"
for key in loss accuracy auc f1 balanced_accuracy average_precision brier ece; do
    awk -v a="$(json $key <"$tmp/weighted")" -v b="$(json $key <"$tmp/repeated")" \
        'BEGIN { d = a - b; exit !(a != "" && d * d < 1e-18) }' ||
        fail "$key: $(cat "$tmp/weighted" "$tmp/repeated")"
done
[ "$(json accuracy <"$tmp/weighted")" != \
    "$("$dtrain" eval "$tmp/run" 2>/dev/null | json accuracy)" ] || fail 'weights change nothing'
"$dtrain" eval "$tmp/run" data.eval="$tmp/again.csv" eval.weighted=yes >"$tmp/out" 2>&1 ||
    fail 'a file with weights'
cut -d, -f1,2,4 "$tmp/eval.csv" >"$tmp/none.csv"
"$dtrain" eval "$tmp/run" data.eval="$tmp/none.csv" eval.weighted=yes >"$tmp/out" 2>&1
check_eq 'exit code without weights' $? 1
grep -q "lacks 'w'" "$tmp/out" || fail "$(cat "$tmp/out")"
for pair in "log_loss model.task=regress" "mape model.task=classify" \
    "pinball train.loss=mae model.task=regress" "average_precision model.task=multilabel"; do
    # shellcheck disable=SC2086
    set -- $pair
    "$dtrain" data.train="$tmp/train.csv" run.dir="$tmp/none" eval.metric="$1" "$2" ${3:-} \
        2>"$tmp/err"
    check_eq "exit code of $pair" $? 2
    grep -q "eval.metric" "$tmp/err" || fail "$pair: $(cat "$tmp/err")"
done
# Intervals are the same each time, hold the value, and are narrower with more rows; other metrics
# stay.
"$dtrain" eval "$tmp/run" eval.full=yes 2>/dev/null >"$tmp/full"
"$dtrain" eval "$tmp/run" eval.full=yes 2>/dev/null | cmp -s - "$tmp/full" ||
    fail 'intervals change'
ends() { sed -n "s/.*\"$1_interval\":\\[\\([^]]*\\)\\].*/\\1/p" "$2"; }
for key in loss accuracy auc f1 brier; do
    echo "$(json $key <"$tmp/full"),$(ends $key "$tmp/full")" |
        awk -F, '{ w = $3 - $2; exit !(NF == 3 && $2 < $1 && $1 < $3 && w > 0.01 && w < 0.3) }' ||
        fail "$key: $(cat "$tmp/full")"
done
# The deviation of a mean of n rights and wrongs is known: the interval is 3.92 of it wide.
echo "$(json accuracy <"$tmp/full"),$(ends accuracy "$tmp/full")" |
    awk -F, '{ w = 3.92 * sqrt($1 * (1 - $1) / 400); d = ($3 - $2) / w }
        END { exit !(d > 0.75 && d < 1.3) }' ||
    fail "width: $(cat "$tmp/full")"
