#!/bin/sh
# Fails if a sparse row is omitted, counted twice or updated by a batch without it, moments age
# where they should stay, or a rule is not what the field calls by that name. Sparse rows follow
# PyTorch from the same weights through 50 batches: LIBSVM rows straight into the first layer, texts
# through an embedding, with a linear path besides the layers. Gradients there are sparse too where
# a rule touches the rows of a batch alone: sgd without momentum, adagrad, and train.lazy, which is
# SparseAdam.
# seconds: 120
. "$(dirname "$0")/lib.sh"
/usr/bin/python3 -c 'import torch, h5py' 2>/dev/null ||
    skip 'python3-torch or python3-h5py is not installed'

# 1600 rows, which are 50 batches; the first features, and the first texts, are the frequent ones.
awk -v dir="$tmp" 'BEGIN {
    srand(4)
    for (i = 1; i <= 1600; i++) {
        class = int(rand() * 3)
        line = class
        for (k = f = 0; k < 8; k++) {
            f += 1 + int(rand() * rand() * 400)
            line = line " " f ":" 0.2 + int(100 * rand() + 60 * (f % 3 == class)) / 100
        }
        print line " 3300:1" >dir "/rows.svm"
        color = int(40 * rand() * rand())
        if (i == 1) print "x,color,shape,y" >dir "/table.csv"
        x = 2 * rand() - 1
        shape = int(7 * rand() * rand())
        y = color % 2 == 0 ? 1 : rand() < 0.3
        print x ",c" color ",s" shape "," y >dir "/table.csv"
        print 1000, i ":1" >dir "/order.svm"
    }
}'

# train DIR DATA OPTIONS...
train() {
    run=$tmp/$1 data=$2
    shift 2
    job 1 run.dir="$run" data.train="$data" data.label=-1 train.batch=32 train.epochs=1 \
        run.log_steps=1 run.replicas=1 export.latest=no model.activation=tanh "$@" \
        >"$tmp/out" 2>&1 || fail_with "$tmp/out" "$run"
}
# The change of a row's weight shows when the row was drawn.
train order "$tmp/order.svm" model.task=regress data.normalize_target=no model.kind=linear \
    train.momentum=0 train.lr=1e-5 train.warmup_steps=50

# descend NAME DATA RULE LR OPTIONS...
descend() {
    name=$1-$3 data=$2 rule=$3 lr=$4
    shift 4
    case $rule in
    sgd) set -- "$@" train.momentum=0 ;;
    momentum) ;;
    lazy) set -- "$@" train.optimizer=adam train.lazy=yes train.epsilon=1e-15 ;;
    *) set -- "$@" train.optimizer="$rule" ;;
    esac
    train "$name" "$data" train.lr="$lr" "$@"
    echo "$tmp/$name $data $rule $lr" >>"$tmp/runs"
}
for rule in 'sgd 0.5' 'adagrad 0.1' 'lazy 0.01' 'momentum 0.1' 'adam 0.01'; do
    # shellcheck disable=SC2086  # a rule and its rate
    set -- $rule
    descend linear "$tmp/rows.svm" "$1" "$2" model.kind=linear
    descend mlp "$tmp/rows.svm" "$1" "$2" model.hidden=12,6
    descend wide "$tmp/table.csv" "$1" "$2" model.embedding=4 model.wide=yes model.hidden=12,6
done
/usr/bin/python3 tests/e2e/follow_sparse.py "$tmp/order" <"$tmp/runs" >"$tmp/off" ||
    fail 'follow_sparse.py'
check_eq 'runs followed' "$(wc -l <"$tmp/off")" 15
while read -r run _ && read -r losses weights <&3; do
    check_le "${run##*/}: losses off" "$losses" 1e-5
    check_le "${run##*/}: weights off" "$weights" 1e-4
done <"$tmp/runs" 3<"$tmp/off"
