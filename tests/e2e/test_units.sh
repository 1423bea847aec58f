#!/bin/sh
# Fails if a loss, a prediction or an export is not in the targets' own units.
# data.normalize_target: targets far from 1 are learned standardised, and everything that is said of
# them is in their own
# units: training and evaluation losses, predictions, served and exported ones, an evaluator's,
# after a resume and in a run that starts from the model. Targets near 1 keep their bits.
# seconds: 25
. "$(dirname "$0")/lib.sh"
awk 'BEGIN {
    srand(7)
    print "a,b,price,near"
    for (i = 0; i < 800; i++) {
        a = 2 * rand() - 1
        b = 2 * rand() - 1
        v = a * b + a / 2
        printf "%.5f,%.5f,%.2f,%.5f\n", a, b, 5000 + 900 * v, v
    }
}' >"$tmp/a.csv"
train() {
    np=$1 dir=$tmp/$2
    shift 2
    job "$np" data.train="$tmp/a.csv" data.label=price data.ignore=near data.eval_fraction=0.2 \
        model.task=regress model.hidden=16 model.activation=tanh train.optimizer=adam \
        train.lr=0.02 train.epochs=20 run.replicas=2 run.log_steps=10 run.dir="$dir" "$@" \
        2>"$tmp/log" || fail_with "$tmp/log" "$dir"
}
rmse() { "$dtrain" eval "$1" data.eval="$tmp/a.csv" 2>/dev/null | json rmse; }

train 1 one
expect_line "$tmp/log" 'targets are standardised for training: mean [45]...' \
    'the start does not say it'
train 3 three
check_eq 'bits at np=1 and 3' "$(crc "$tmp/three")" "$(crc "$tmp/one")"
check_le 'rmse, of a deviation of some 400' "$(record "$tmp/one" eval rmse)" 100
check_le 'loss of training, squared units' "$(record "$tmp/one" final loss)" 10000
check_ge 'loss of training, squared units' "$(record "$tmp/one" final loss)" 10
train 3 resumed train.max_steps=30
train 1 resumed train.max_steps=-1
check_eq 'bits after a resume' "$(crc "$tmp/resumed")" "$(crc "$tmp/one")"
train 3 dedicated eval.dedicated=yes
check_eq 'rmse of dtrain eval' "$("$dtrain" eval "$tmp/dedicated" 2>/dev/null | json rmse)" \
    "$(records "$tmp/dedicated" eval rmse | sort -g | head -n 1)"
"$dtrain" inspect "$tmp/one" | grep -q 'standardised for training: mean' || fail inspect

# The values of predict are the targets', and so are those of the ONNX graph.
"$dtrain" predict "$tmp/one" <"$tmp/a.csv" >"$tmp/said" 2>/dev/null || fail predict
sed 1d "$tmp/a.csv" | cut -d, -f3 >"$tmp/truth"
off=$(sed 's/.*"value":\([^}]*\)}/\1/' "$tmp/said" | paste -d' ' - "$tmp/truth" |
    awk '{s += ($1 - $2) ^ 2} END {print sqrt(s / NR)}')
check_eq 'rmse of predictions, rounded' "$(printf '%.2f' "$off")" \
    "$(printf '%.2f' "$(rmse "$tmp/one")")"
if /usr/bin/python3 -c 'import onnx, numpy' 2>/dev/null; then
    "$dtrain" export "$tmp/one" "$tmp/one.onnx" 2>/dev/null || fail export
    sed '1d; s/\(.*\),\(.*\),.*,.*/[\1,\2]/' "$tmp/a.csv" >"$tmp/rows.jsonl"
    /usr/bin/python3 tests/e2e/onnx_run.py "$tmp/one.onnx" "$tmp/said" <"$tmp/rows.jsonl" \
        >"$tmp/diff" || fail onnx
    check_le 'difference of the graph' "$(sed 's/.*difference=\([^ ]*\).*/\1/' "$tmp/diff")" 0.05
fi

# A run that starts from the newest checkpoint, on other rows and units, predicts what that does.
newest=$(rmse "$tmp/one/ckpt/latest.h5")
awk -F, 'NR == 1 || $1 > 0' "$tmp/a.csv" >"$tmp/b.csv"
train 1 fresh run.init="$tmp/one" data.train="$tmp/b.csv" data.eval="$tmp/a.csv" \
    data.eval_fraction=0 train.max_steps=0
check_eq 'rmse of a new start, rounded' "$(printf '%.1f' "$(rmse "$tmp/fresh")")" \
    "$(printf '%.1f' "$newest")"
train 1 plain run.init="$tmp/one" data.normalize_target=no train.max_steps=0
check_eq 'rmse of a start without units' "$(printf '%.1f' "$(rmse "$tmp/plain")")" \
    "$(printf '%.1f' "$newest")"

# Predictions stay within the range of the training targets, in the units of these, in predict and
# eval, after a resume and in a model that is made of it; without the key, and with counts, a trend
# goes on.
awk 'BEGIN {print "a,y"; for (i = 0; i < 200; i++) print i % 40 "," 20 + i % 40}' >"$tmp/trend.csv"
printf 'a,y\n-100,0\n10,30\n400,0\n' >"$tmp/far.csv"
values() {
    "$dtrain" -q predict "$1" <"$tmp/far.csv" 2>/dev/null | sed 's/.*"value":\([^}]*\)}/\1/' |
        paste -s -d ' '
}
trend() {
    train 1 "$@" data.train="$tmp/trend.csv" data.label=y data.ignore= model.kind=linear \
        model.hidden=9
}
trend held data.clamp_target=yes train.max_steps=20
trend held data.clamp_target=yes train.max_steps=-1
check_eq 'the range of the targets' "$(values "$tmp/held" | cut -d ' ' -f 1,3)" '20 59'
check_ge 'within it' "$(values "$tmp/held" | cut -d ' ' -f 2)" 20.5
check_eq 'rmse of held predictions' "$(printf 'a,y\n-100,20\n400,59\n' >"$tmp/ends.csv"
    "$dtrain" eval "$tmp/held" data.eval="$tmp/ends.csv" 2>/dev/null | json rmse)" 0
trend free
check_ge 'a trend that goes on' "$(values "$tmp/free" | cut -d ' ' -f 3)" 100
check_eq 'bits of the weights' "$(crc "$tmp/free")" "$(crc "$tmp/held")"
trend counted data.clamp_target=yes train.loss=poisson model.output_bias=baseline
check_eq 'the range of counts' "$(values "$tmp/counted" | cut -d ' ' -f 1,3)" '20 59'
"$dtrain" inspect "$tmp/held" | grep -q 'predictions 20 to 59' ||
    fail 'inspect does not show the range'

# The run says if the outputs were of another target, or of another kind.
train 1 other run.init="$tmp/one" data.label=near data.ignore=price train.max_steps=0
expect_line "$tmp/log" 'warning: run.init: .* was trained on other targets, price' \
    'another target in silence'
train 1 counts run.init="$tmp/one" train.loss=poisson train.max_steps=0
expect_line "$tmp/log" 'warning: run.init: .* has another train.loss' \
    'another kind of outputs in silence'

# A guess has a loss of one deviation or its square, as the loss counts it: targets that differ by
# little cause no warning, a loss of many deviations does.
awk -F, '{print $1 "," $2 "," (NR == 1 ? "price" : 5 + 0.004 * $4)}' "$tmp/a.csv" >"$tmp/little.csv"
told() { grep -c 'warning: step .* a guess has' "$tmp/log"; }
for loss in mse mae quantile; do
    train 1 "$loss" data.train="$tmp/little.csv" data.ignore= train.loss=$loss
    check_eq "warnings of $loss" "$(told)" 0
    train 1 "$loss-far" train.loss=$loss train.lr=20 train.max_steps=10
    check_eq "warnings of $loss at a rate of 20" "$(told)" 1
done

# An input that the model did not have starts fresh: its weight is not converted.
awk -F, -v OFS=, 'NR > 1 {$3 /= 100} {print $1, $2, $3}' "$tmp/a.csv" >"$tmp/c.csv"
train 1 narrow model.kind=linear data.ignore=near,b
train 1 wider model.kind=linear data.train="$tmp/c.csv" data.ignore= run.init="$tmp/narrow" \
    train.max_steps=0
expect_line "$tmp/log" 'layers/0/weight: 1 of 2 inputs by their names' 'no input by its name'
check_le 'what a fresh input changes, of a deviation of 4' "$(printf 'a,b\n0,0\n0,1\n' |
    "$dtrain" -q predict "$tmp/wider" | sed 's/.*"value":\([^}]*\)}/\1/' |
    awk '{sum += NR == 1 ? -$1 : $1} END {print sum < 0 ? -sum : sum}')" 20

# Targets near 1 are as they were.
train 1 auto data.label=near data.ignore=price
train 1 no data.label=near data.ignore=price data.normalize_target=no
check_eq 'bits of targets near 1' "$(crc "$tmp/auto")" "$(crc "$tmp/no")"
grep -q standardised "$tmp/log" && fail 'units are said where there are none'
exit 0
