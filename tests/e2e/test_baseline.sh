#!/bin/sh
# Outputs start at the baseline of their loss, the constant of least loss, and the end compares the chosen model with it.
# Would catch counts that training does not reach, a start that depends on the number of ranks, an old run that goes on
# as a new one, and a model that is worse than a constant without a word.
. tests/e2e/lib.sh

# sums FILE RUN: the sum of the predictions over that of the targets, which stand in column 2.
sums() {
    "$dtrain" -q predict "$2" <"$1" | sed 's/.*"value":\([^}]*\)}/\1/' |
        awk -F, 'NR == FNR {said += $1; next} FNR > 1 {true += $2} END {print said / true}' - "$1"
}

# ---- counts of any size -----------------------------------------------------------------------------
for mean in 0.001 50 1000000; do
    awk -v mean=$mean 'BEGIN {srand(2); print "x,n"; for (i = 0; i < 2000; i++) {
        x = rand(); n = mean * exp(0.5 * x) * (0.8 + 0.4 * rand()); print x "," (mean < 1 ? n : int(n))}}' >"$tmp/$mean.csv"
    job 1 data.train="$tmp/$mean.csv" data.eval_fraction=0.2 model.task=regress train.loss=poisson run.dir="$tmp/$mean" \
        2>"$tmp/log" || { cat "$tmp/log"; fail "counts near $mean"; }
    sum=$(sums "$tmp/$mean.csv" "$tmp/$mean")
    check_ge "predicted of a mean of $mean" "$sum" 0.98
    check_le "predicted of a mean of $mean" "$sum" 1.02
done

# ---- the start --------------------------------------------------------------------------------------
# Without a step the model is the baseline that the start prints: the mean, with a preset or without, as the key says.
awk 'BEGIN {print "x,n"; for (i = 0; i < 200; i++) print i % 10 "," 40 + 3 * (i % 10) + i % 7}' >"$tmp/counts.csv"
start() { name=$1; shift; job 1 data.train="$tmp/counts.csv" data.eval="$tmp/counts.csv" model.task=regress train.loss=poisson \
    model.kind=linear train.max_steps=0 run.dir="$tmp/$name" "$@" 2>"$tmp/log" || { cat "$tmp/log"; fail "$name"; }; }
value() { printf 'x\n0\n' | "$dtrain" -q predict "$tmp/$1" | sed 's/.*"value":\([^}]*\)}/\1/'; }
start table
check_eq 'the baseline' "$(sed -n 's/.*the baseline, always \([^,]*\), has loss.*/\1/p' "$tmp/log")" 56.47
check_eq 'prediction at the start' "$(printf '%.3f' "$(value table)")" 56.470
start plain run.preset=none
check_eq 'prediction without a preset' "$(printf '%.3f' "$(value plain)")" 56.470
start zero model.output_bias=zero data.clamp_target=no
check_le 'prediction from 0' "$(value zero)" 5
start mse train.loss=mse run.preset=none data.normalize_target=no
check_le 'prediction of another loss' "$(value mse)" 50.5
grep -q '^output_bias = zero$' "$tmp/mse/config.ini" || fail 'config.ini lacks the key'

# The same bits on any number of ranks, of rows and classes that have weights.
awk 'BEGIN {srand(3); print "a,w,y"; for (i = 0; i < 900; i++) {y = rand() < 0.05; print rand() + y "," 1 + i % 3 "," (y ? "yes" : "no")}}' >"$tmp/rare.csv"
for np in 1 3 5; do
    job $np data.train="$tmp/rare.csv" data.eval_fraction=0.2 data.weight=w train.class_weight=balanced run.replicas=3 train.max_steps=9 \
        run.dir="$tmp/np$np" 2>"$tmp/log" || { cat "$tmp/log"; fail "np $np"; }
    check_eq "bits at np $np" "$(crc "$tmp/np$np")" "$(crc "$tmp/np1")"
done
job 1 "$tmp/np1/config.ini" run.dir="$tmp/again" 2>"$tmp/log" || { cat "$tmp/log"; fail 'from config.ini'; }
check_eq 'bits from config.ini' "$(crc "$tmp/again")" "$(crc "$tmp/np1")"

# ---- run.init ---------------------------------------------------------------------------------------
# The old bias stays where the output layer fits; where it does not, or means something else, outputs start anew.
start kept run.init="$tmp/zero" data.clamp_target=no
check_eq 'prediction with the old bias' "$(value kept)" "$(value zero)"
start other run.init="$tmp/mse"
check_eq 'prediction where the old outputs mean something else' "$(grep -c 'layers/0/bias starts at the baseline' "$tmp/log")" 1

# ---- old runs ---------------------------------------------------------------------------------------
# A run of before the key goes on as it began: from 0, with decay of the bias. Its other numbers were 0.364 and 6.15.
mkdir -p "$tmp/old/ckpt"
cp tests/data/counts-step20.h5 "$tmp/old/ckpt/step-000000020.h5"
(cd "$tmp" && timeout "$limit" "$dtrain" data.train=counts.csv model.task=regress train.loss=poisson model.kind=linear \
    train.weight_decay=1 train.epochs=100 run.dir=old train.max_steps=120 2>log) || { cat "$tmp/log"; fail 'an old run'; }
check_eq 'predictions of an old run' "$(printf 'x\n0\n9\n' | "$dtrain" -q predict "$tmp/old" | sed 's/.*"value":\(......\).*/\1/' | xargs)" '0.3637 6.1461'

# ---- the end ----------------------------------------------------------------------------------------
# Every metric of the chosen model, after an early stop too: here no rate lets it learn, and its losses are those of random weights.
awk 'BEGIN {srand(4); print "a,b,k,v"; for (i = 0; i < 400; i++) print 9 * rand() "," 9 * rand() "," (rand() < 0.7) "," 4 * rand()}' >"$tmp/chance.csv"
ends() { name=$1; shift; job 1 data.train="$tmp/chance.csv" data.eval_fraction=0.25 train.lr=0 train.epochs=9 eval.patience=2 \
    run.dir="$tmp/$name" "$@" 2>"$tmp/log" || { cat "$tmp/log"; fail "$name"; }; }
ends class data.label=k data.ignore=v
grep -q '^dtrain: early_stopped' "$tmp/log" && grep -q 'warning: the chosen model is worse than the baseline, a constant: loss .* (baseline 0\.[56].*).*look at the data' "$tmp/log" ||
    { cat "$tmp/log"; fail 'a loss worse than a constant in silence'; }
ends value data.label=v data.ignore=k model.task=regress data.normalize_target=no
grep -q '^dtrain: early_stopped' "$tmp/log" && grep -q 'warning: the chosen model is worse than the baseline.* r2 -.* (baseline .*data.normalize_target=yes may help' "$tmp/log" ||
    { cat "$tmp/log"; fail 'an r2 below 0 in silence'; }
# Not what says nothing: a model that learns, and accuracy where classes weigh the same.
grep 'worse than the baseline\|not clearly' "$tmp/log" >/dev/null || fail 'the warning has gone'
job 1 data.train="$tmp/rare.csv" data.eval_fraction=0.2 data.ignore=w train.class_weight=balanced eval.metric=auc run.dir="$tmp/auc" 2>"$tmp/log" || fail auc
grep -q 'than the baseline' "$tmp/log" && { cat "$tmp/log"; fail 'a warning of a good model'; }
exit 0
