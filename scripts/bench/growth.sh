#!/bin/sh
# How samples/s and a step's time grow with ranks, with parameters and with the batch: one run each.
# The cases' rows are named by the number that grows.
. "$(dirname "$0")/lib.sh"

# measure CASE X NP
measure() {
    case=$1
    train "$3" || return
    note_rate "$2" "$(rate)"
    note "$2" step_ms "$(calc "1000 * $batch / $(rate)")"
}

params_of() {
    echo "$1" | awk -F- '{ for (i = 1; i < NF; i++) n += ($i + 1) * $(i + 1); print n }'
}

net=784-512-256-10 batch=128
for np in 1 2 3 5; do measure "ranks, $net, batch 128" $np $np; done
for batch in 16 32 64 128 256 512 1024 2048; do measure "batch, $net" $batch "$full"; done
batch=128
for width in 32 128 512 1024 2048 4096; do
    net=784-$width-$width-10
    measure "parameters, 784-N-N-10, batch 128" "$(params_of $net)" "$full"
done
