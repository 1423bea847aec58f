#!/bin/sh
# Fails if a checkpoint loses statistics of batch normalisation, or ranks average them in another
# order. A network with convolutions, batch normalisation, dropout and changed pictures has the same
# bits at any number of ranks and over a stop and a resume; async, the evaluator, eval, predict and
# inspect take it.
# seconds: 150
. "$(dirname "$0")/lib.sh"

awk 'BEGIN {
    srand(5)
    for (i = 0; i < 600; i++) {
        k = i % 3
        for (p = 0; p < 96; p++) printf "%.5f,", 2 * rand() - 1 + (int(p / 32) == k ? 1 : 0)
        print k
    }
}' >"$tmp/pictures.csv"
set -- "data.train=$tmp/pictures.csv" data.header=no data.shape=8x6x2 data.eval_fraction=0.2 \
    'data.augment=shift 1, flip, cutout 2, noise 0.05' train.batch=21 train.epochs=6 \
    train.optimizer=adam train.lr=0.003 train.clip_norm=1 run.replicas=4 \
    'model.layers=conv 6 3x3 pad same, batchnorm relu,
        residual(conv 8 3x3 stride 2 pad same, batchnorm), relu, dropout 0.2, globalpool'
# train NP NAME OPTION...
train() {
    np=$1 name=$2
    shift 2
    job "$np" "run.dir=$tmp/$name" "$@" 2>"$tmp/err" || fail_with "$tmp/err" "$name"
}

train 1 one "$@"
crc=$(crc "$tmp/one")
for np in 2 3 5; do
    train $np np$np "$@"
    check_eq "np = $np: params_crc32c" "$(crc "$tmp/np$np")" "$crc"
done
train 3 halves "$@" train.max_steps=37
train 2 halves "$@"
check_eq 'resumed: params_crc32c' "$(crc "$tmp/halves")" "$crc"

train 3 async "$@" train.mode=async
check_ge 'async: accuracy' "$(record "$tmp/async" eval accuracy)" 0.8
train 3 evaluator "$@" eval.dedicated=yes
accuracy=$(record "$tmp/evaluator" eval accuracy)
check_ge 'accuracy' "$accuracy" 0.9
into "$tmp/out" "$dtrain" eval "$tmp/evaluator/ckpt"
check_eq 'eval says what the evaluator said' "$(json accuracy <"$tmp/out")" "$accuracy"
cut -d, -f1-96 "$tmp/pictures.csv" | head -n 5 >"$tmp/rows.csv"
into "$tmp/out" "$dtrain" predict "$tmp/one" <"$tmp/rows.csv"
check_eq 'predicted' "$(wc -l <"$tmp/out")" 5
into "$tmp/out" "$dtrain" inspect "$tmp/one/ckpt/latest.h5"
expect_line "$tmp/out" 'batchnorm relu' 'inspect names no layers'
into "$tmp/out" "$dtrain" inspect "$tmp/one" "$tmp/pictures.csv" data.label=3
check_eq 'the run by its newest checkpoint' "$(head -n 1 "$tmp/out")" \
    "$(ls "$tmp"/one/ckpt/step-* | tail -n 1)"
check_eq 'labels of the table' "$(grep -c ' label ' "$tmp/out")" 1

# Batch normalisation is over all rows of a replica, however many: with a rate of 0 the loss of all
# rows is the same in each order of them.
awk 'BEGIN {
    srand(4)
    print "a,y"
    for (i = 0; i < 5000; i++) {
        a = rand() * rand()
        print a "," (a > rand() / 2)
    }
}' >"$tmp/many.csv"
normal="data.train=$tmp/many.csv train.max_steps=1"
layers='model.layers=dense 3 tanh, batchnorm'
train 1 many $normal "$layers" train.batch=0 train.lr=0 train.max_steps=3 run.log_steps=1
check_eq 'losses of many rows' \
    "$(records "$tmp/many" train loss | awk '{printf "%.5f\n", $1}' | uniq | wc -l)" 1

# One row has no statistics: a warning says so.
# warnings BATCH: how many, of a run with two replicas.
warnings() {
    train 1 "few$1" $normal "$layers" run.replicas=2 train.batch="$1"
    grep -c 'warning: .batchnorm. has no effect' "$tmp/err"
}
check_eq 'warnings of replicas with one row, and with two' "$(warnings 2) $(warnings 4)" '1 0'
