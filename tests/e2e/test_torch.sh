#!/bin/sh
# Fails if a loss, gradient, optimizer or average is not what the field calls by that name:
# full-batch gradient descent follows PyTorch from the same weights for 50 steps.
# seconds: 240
. "$(dirname "$0")/lib.sh"
/usr/bin/python3 -c 'import torch, h5py' 2>/dev/null ||
    skip 'python3-torch or python3-h5py is not installed'

# rows TARGET: 90 rows of four features and a target, or several, awk expressions of a to d.
rows() {
    awk -v n=90 "BEGIN {srand(3); for (i = 0; i < n; i++) {a = 2 * rand() - 1; b = 2 * rand() - 1
        c = rand(); d = 2 * rand() - 1; printf \"%.6f,%.6f,%.6f,%.6f,%s\n\", a, b, c, d, $1}}"
}
rows 'sin(2 * a) + b * c' >"$tmp/regress.csv"
rows '(a + b * d > 0.1) + 0' >"$tmp/two.csv"
rows '(a > 0.2) + (b + c > 0.6)' >"$tmp/three.csv"

# descend DATA TASK NETWORK OPTIMIZER LR [LOSS [KEY=VALUE...]]: on $ranks ranks; NETWORK is a kind,
# or layers.
ranks=1
descend() {
    run=$tmp/run-$(wc -l <"$tmp/runs") data=$tmp/$1.csv task=$2 network=$3 optimizer=$4 lr=$5 \
        loss=${6:-auto}
    echo "$run $data $(echo "${6:-$2}" | sed s/mse/regress/) $4 $5" >>"$tmp/runs"
    shift $(($# < 6 ? $# : 6))
    case $network in
    dense*) set -- "model.layers=$network" "$@" ;;
    *) set -- "model.kind=$network" model.hidden=8,6 model.activation=tanh "$@" ;;
    esac
    job $ranks "data.train=$data" data.header=no "model.task=$task" train.batch=0 train.epochs=50 \
        "train.optimizer=$optimizer" "train.lr=$lr" train.weight_decay=0.001 "train.loss=$loss" \
        train.huber_delta=0.3 train.quantiles=0.1,0.5,0.9 run.log_steps=1 run.replicas=3 \
        export.latest=no "run.dir=$run" "$@" 2>"$tmp/err" ||
        fail_with "$tmp/err" "$task $network $optimizer"
}
: >"$tmp/runs"
# Rates at which the path is not chaotic: there, no two ways of rounding stay together.
for optimizer in sgd nesterov adagrad adam adamw lamb; do
    descend three classify mlp $optimizer 0.05
done
descend three classify mlp rmsprop 0.002
for model in linear mlp; do
    descend regress regress $model nesterov 0.05
    descend two classify $model adam 0.05
done
descend three classify linear sgd 0.05
rows 'exp(a) + int(3 * rand())' >"$tmp/counts.csv"
for loss in mae huber poisson; do descend counts regress mlp nesterov 0.01 $loss; done
rows 'a + c "," b * d' >"$tmp/pairs.csv"
rows '(a > 0.2) "," (b + c > 0.6) "," (rand() > 0.5)' >"$tmp/labels.csv"
descend pairs regress mlp nesterov 0.05 mse data.label=-2,-1
descend labels multilabel mlp adam 0.05 "" data.label=4,5,6
descend pairs regress mlp adam 0.01 quantile data.label=4,5
# Layers whose columns are dealt to two workers, in uneven parts; a softmax's classes too.
ranks=3
for optimizer in sgd adam lamb; do
    descend three classify mlp $optimizer 0.05 "" model.split=1 run.parts=5
done
descend regress regress mlp nesterov 0.05 "" model.split=1 run.parts=5
descend three classify 'dense 8 tanh split, dense 6 tanh, output dense 3 split' adam 0.05 "" \
    run.parts=3
/usr/bin/python3 tests/e2e/follow.py <"$tmp/runs" >"$tmp/off" || fail 'follow.py'
check_eq 'runs followed' "$(wc -l <"$tmp/off")" 23
while read -r run && read -r losses weights <&3; do
    check_le "$run: losses off" "$losses" 1e-5
    check_le "$run: weights off" "$weights" 1e-4
done <"$tmp/runs" 3<"$tmp/off"
