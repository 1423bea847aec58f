#!/bin/sh
# Fails if a kind of layer, a stride, a padding or a layout is not what the field calls by that
# name: networks of convolutions, pooling, normalisation and residuals follow PyTorch from the same
# weights for 50 steps, running statistics too.
# seconds: 120
. "$(dirname "$0")/lib.sh"
/usr/bin/python3 -c 'import torch, h5py' 2>/dev/null ||
    skip 'python3-torch or python3-h5py is not installed'

# 60 pictures of 8 x 6 points and 2 channels; the class is where the bright spot is.
awk 'BEGIN {srand(5); for (i = 0; i < 60; i++) {k = i % 3
    for (p = 0; p < 96; p++) printf "%.5f,", 2 * rand() - 1 + (int(p / 32) == k ? 1 : 0)
    print k}}' >"$tmp/pictures.csv"

# descend NAME LAYERS
descend() {
    run=$tmp/$1
    job 1 "data.train=$tmp/pictures.csv" data.header=no data.shape=8x6x2 "model.layers=$2" \
        train.batch=0 train.epochs=50 train.lr=0.05 run.log_steps=1 run.replicas=1 \
        export.latest=no "run.dir=$run" 2>"$tmp/err" || fail_with "$tmp/err" "$1"
    echo "$run" >>"$tmp/runs"
}
descend pooled 'conv 5 3x3 pad same tanh, maxpool 2, conv 6 3x2 stride 2 pad 1 gelu, dense 8 silu'
descend normal 'conv 6 3x3 pad same, batchnorm tanh, residual(conv 8 3x3 stride 2 pad same,
    batchnorm softplus, conv 8 3x3 pad same, batchnorm), leaky_relu, globalpool'
descend grouped 'conv 4 3x3 groups 2 tanh, layernorm, avgpool 2, upsample 2, flatten, dense 6 tanh'
descend plain \
    'residual(conv 2 5x4 stride 1 pad same sigmoid), avgpool 3x2 stride 2, dense 7, layernorm gelu'
/usr/bin/python3 tests/e2e/follow_layers.py "$tmp/pictures.csv" 8 6 2 <"$tmp/runs" >"$tmp/off" ||
    fail 'follow_layers.py'
check_eq 'runs followed' "$(wc -l <"$tmp/off")" 4
while read -r run && read -r losses weights states <&3; do
    check_le "${run##*/}: losses off" "$losses" 1e-4
    check_le "${run##*/}: weights off" "$weights" 1e-4
    check_le "${run##*/}: statistics off" "$states" 1e-4
done <"$tmp/runs" 3<"$tmp/off"
