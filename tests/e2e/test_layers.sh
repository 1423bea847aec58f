#!/bin/sh
# seconds: 150
# A network with convolutions, batch normalisation, dropout and changed pictures has the same bits at any
# number of ranks and over a stop and a resume; async, the evaluator, eval, predict and inspect take it.
# Would catch: statistics that are averaged in another order, or lost by a checkpoint.
. "$(dirname "$0")/lib.sh"

awk 'BEGIN {srand(5); for (i = 0; i < 600; i++) {k = i % 3
    for (p = 0; p < 96; p++) printf "%.5f,", 2 * rand() - 1 + (int(p / 32) == k ? 1 : 0)
    print k}}' >"$tmp/pictures.csv"
set -- "data.train=$tmp/pictures.csv" data.header=no data.shape=8x6x2 data.eval_fraction=0.2 \
    'data.augment=shift 1, flip, cutout 2, noise 0.05' train.batch=21 train.epochs=6 \
    train.optimizer=adam train.lr=0.003 train.clip_norm=1 run.replicas=4 'model.layers=conv 6 3x3 pad same,
    batchnorm relu, residual(conv 8 3x3 stride 2 pad same, batchnorm), relu, dropout 0.2, globalpool'

job 1 "$@" "run.dir=$tmp/one" 2>"$tmp/err" || { cat "$tmp/err"; fail 'np = 1'; }
crc=$(crc "$tmp/one")
for np in 2 3 5; do
    job $np "$@" "run.dir=$tmp/np$np" 2>"$tmp/err" || { cat "$tmp/err"; fail "np = $np"; }
    check_eq "np = $np: params_crc32c" "$(crc "$tmp/np$np")" "$crc"
done
job 3 "$@" "run.dir=$tmp/halves" train.max_steps=37 2>"$tmp/err" || fail 'the first half'
job 2 "$@" "run.dir=$tmp/halves" 2>"$tmp/err" || { cat "$tmp/err"; fail 'the second half'; }
check_eq 'resumed: params_crc32c' "$(crc "$tmp/halves")" "$crc"

job 3 "$@" "run.dir=$tmp/async" train.mode=async 2>"$tmp/err" || { cat "$tmp/err"; fail 'async'; }
check_ge 'async: accuracy' "$(record "$tmp/async" eval accuracy)" 0.8
job 3 "$@" "run.dir=$tmp/evaluator" eval.dedicated=yes 2>"$tmp/err" || { cat "$tmp/err"; fail 'evaluator'; }
accuracy=$(record "$tmp/evaluator" eval accuracy)
check_ge 'accuracy' "$accuracy" 0.9
"$dtrain" eval "$tmp/evaluator/ckpt" >"$tmp/out" 2>"$tmp/err" || { cat "$tmp/err"; fail 'eval'; }
check_eq 'eval says what the evaluator said' "$(sed 's/.*"accuracy": *\([0-9.]*\).*/\1/' "$tmp/out")" "$accuracy"
cut -d, -f1-96 "$tmp/pictures.csv" | head -n 5 | "$dtrain" predict "$tmp/one" >"$tmp/out" 2>"$tmp/err" ||
    { cat "$tmp/err"; fail 'predict'; }
check_eq 'predicted' "$(wc -l <"$tmp/out")" 5
"$dtrain" inspect "$tmp/one/ckpt/latest.h5" >"$tmp/out" || fail 'inspect'
grep -q 'batchnorm relu' "$tmp/out" || { cat "$tmp/out"; fail 'inspect names no layers'; }
"$dtrain" inspect "$tmp/one" "$tmp/pictures.csv" data.label=3 >"$tmp/out" || fail 'inspect of a run and a table'
check_eq 'the run by its newest checkpoint' "$(head -n 1 "$tmp/out")" "$(ls "$tmp"/one/ckpt/step-* | tail -n 1)"
check_eq 'labels of the table' "$(grep -c ' label ' "$tmp/out")" 1

# Batch normalisation is over the whole share, however large: with a rate of 0 the loss of all rows is the same in each
# order of them.
awk 'BEGIN {srand(4); print "a,y"; for (i = 0; i < 5000; i++) {a = rand() * rand(); print a "," (a > rand() / 2)}}' >"$tmp/many.csv"
"$dtrain" data.train="$tmp/many.csv" model.layers='dense 3 tanh, batchnorm' train.batch=0 train.lr=0 train.max_steps=3 \
    run.log_steps=1 run.dir="$tmp/many" 2>"$tmp/err" || { cat "$tmp/err"; fail 'a large share'; }
check_eq 'losses of a large share' "$(records "$tmp/many" train loss | awk '{printf "%.5f\n", $1}' | uniq | wc -l)" 1

# Statistics of one row are none, and that is said.
few() { rm -rf "$tmp/few"; "$dtrain" data.train="$tmp/many.csv" model.layers='dense 3 tanh, batchnorm' run.replicas=2 train.batch=$1 \
    train.max_steps=1 run.dir="$tmp/few" 2>&1 | grep -c 'warning: .batchnorm. has no effect'; }
check_eq 'warnings of shares of one row, and of two' "$(few 2) $(few 4)" '1 0'
