#!/bin/sh
# Fails if outputs do not start at the baseline of their loss, the constant of least loss: counts
# that training does not reach, a start that depends on the number of ranks, an old run that does
# not go on as it began. Also fails if a model worse than a constant ends without a warning.
. tests/e2e/lib.sh

# train NAME NP OPTION...: a run below $tmp/NAME, its output in $tmp/log.
train() {
    name=$1 np=$2
    shift 2
    job "$np" run.dir="$tmp/$name" "$@" 2>"$tmp/log" || fail_with "$tmp/log" "$name"
}
# values RUN: its predictions for the rows on standard input, one a line.
values() { "$dtrain" -q predict "$tmp/$1" | sed 's/.*"value":\([^}]*\)}/\1/'; }

# ---- counts of any size --------------------------------------------------------------------------
# counts MEAN: rows of a number and a count, or a fraction where the mean is below 1.
counts() {
    awk -v mean="$1" 'BEGIN {
        srand(2)
        print "x,n"
        for (i = 0; i < 2000; i++) {
            x = rand()
            n = mean * exp(0.5 * x) * (0.8 + 0.4 * rand())
            print x "," (mean < 1 ? n : int(n))
        }
    }'
}
# sums RUN FILE: the sum of the predictions over that of the targets, which are in column 2.
sums() {
    values "$1" <"$2" |
        awk -F, 'NR == FNR {said += $1; next} FNR > 1 {true += $2} END {print said / true}' - "$2"
}
for mean in 0.001 50 1000000; do
    counts $mean >"$tmp/$mean.csv"
    train $mean 1 data.train="$tmp/$mean.csv" data.eval_fraction=0.2 model.task=regress \
        train.loss=poisson
    sum=$(sums $mean "$tmp/$mean.csv")
    check_ge "predicted of a mean of $mean" "$sum" 0.98
    check_le "predicted of a mean of $mean" "$sum" 1.02
done

# ---- the start -----------------------------------------------------------------------------------
# Without a step the model is the baseline that the start prints, with a preset or without.
awk 'BEGIN {
    print "x,n"
    for (i = 0; i < 200; i++) print i % 10 "," 40 + 3 * (i % 10) + i % 7
}' >"$tmp/counts.csv"
start() {
    name=$1
    shift
    train "$name" 1 data.train="$tmp/counts.csv" data.eval="$tmp/counts.csv" model.task=regress \
        train.loss=poisson model.kind=linear train.max_steps=0 "$@"
}
value() { printf 'x\n0\n' | values "$1"; }
start table
check_eq 'the baseline' \
    "$(sed -n 's/.*the baseline, always \([^,]*\), has loss.*/\1/p' "$tmp/log")" 56.47
check_eq 'prediction at the start' "$(printf '%.3f' "$(value table)")" 56.470
start plain run.preset=none
check_eq 'prediction without a preset' "$(printf '%.3f' "$(value plain)")" 56.470
start zero model.output_bias=zero data.clamp_target=no
check_le 'prediction from 0' "$(value zero)" 5
start mse train.loss=mse run.preset=none data.normalize_target=no
check_le 'prediction of another loss' "$(value mse)" 50.5
expect_line "$tmp/mse/config.ini" '^output_bias = zero$' 'config.ini lacks the key'

# The same bits on any number of ranks, with weights of rows and of classes.
awk 'BEGIN {
    srand(3)
    print "a,w,y"
    for (i = 0; i < 900; i++) {
        y = rand() < 0.05
        print rand() + y "," 1 + i % 3 "," (y ? "yes" : "no")
    }
}' >"$tmp/rare.csv"
rare="data.train=$tmp/rare.csv data.eval_fraction=0.2 train.class_weight=balanced"
for np in 1 3 5; do
    train np$np $np $rare data.weight=w run.replicas=3 train.max_steps=9
    check_eq "bits at np $np" "$(crc "$tmp/np$np")" "$(crc "$tmp/np1")"
done
train again 1 "$tmp/np1/config.ini"
check_eq 'bits from config.ini' "$(crc "$tmp/again")" "$(crc "$tmp/np1")"

# ---- run.init ------------------------------------------------------------------------------------
# The old bias stays where the output layer fits. Outputs start again where it does not, or where it
# means something else.
start kept run.init="$tmp/zero" data.clamp_target=no
check_eq 'prediction with the old bias' "$(value kept)" "$(value zero)"
start other run.init="$tmp/mse"
check_eq 'prediction where the old outputs mean something else' \
    "$(grep -c 'layers/0/bias starts at the baseline' "$tmp/log")" 1

# ---- old runs ------------------------------------------------------------------------------------
# A run from before the key goes on as it began: from 0, with decay of the bias.
mkdir -p "$tmp/old/ckpt"
cp tests/data/counts-step20.h5 "$tmp/old/ckpt/step-000000020.h5"
(
    cd "$tmp" && timeout "$limit" "$dtrain" data.train=counts.csv model.task=regress \
        train.loss=poisson model.kind=linear train.weight_decay=1 train.epochs=100 run.dir=old \
        train.max_steps=120 2>log
) || fail_with "$tmp/log" 'an old run'
check_eq 'predictions of an old run' \
    "$(printf 'x\n0\n9\n' | values old | cut -c1-6 | xargs)" '0.3637 6.1461'

# ---- the end -------------------------------------------------------------------------------------
# The end compares every metric of the chosen model, after an early stop too. With the rate 0 no run
# learns, and its losses are those of random weights.
awk 'BEGIN {
    srand(4)
    print "a,b,k,v"
    for (i = 0; i < 400; i++)
        print 9 * rand() "," 9 * rand() "," (rand() < 0.7) "," 4 * rand()
}' >"$tmp/chance.csv"
# worse NAME METRICS OPTION...: the run stops early, and is worse than the baseline in METRICS.
worse() {
    name=$1 metrics=$2
    shift 2
    train "$name" 1 data.train="$tmp/chance.csv" data.eval_fraction=0.25 train.lr=0 train.epochs=9 \
        eval.patience=2 "$@"
    expect_line "$tmp/log" '^dtrain: early_stopped'
    expect_line "$tmp/log" "warning: the chosen model is worse than the baseline.*$metrics"
}
worse class ', a constant: loss .* (baseline 0\.[56].*).*look at the data' \
    data.label=k data.ignore=v
worse value ' r2 -.* (baseline .*data.normalize_target=yes may help' \
    data.label=v data.ignore=k model.task=regress data.normalize_target=no
# No warning of a model that learns, nor of its accuracy where classes have equal weights.
train auc 1 $rare data.ignore=w eval.metric=auc
expect_no_line "$tmp/log" 'than the baseline' 'a warning of a good model'
