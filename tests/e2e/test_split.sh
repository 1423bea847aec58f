#!/bin/sh
# Fails if a split layer's sum depends on ranks or hosts, rows go to the wrong worker, a gradient is
# sent all the same, or one worker alone waits. Split layers are one network, whoever has its
# columns.
# seconds: 150
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/split.sh"

# The unsplit layers say the same, but for the order of sums.
train one 1
train whole 1 "model.layers=$(echo "$layers" | sed 's/ split//g')"
for key in loss eval_loss; do
    kind=final
    [ $key = loss ] || kind=eval
    awk -v a="$(record "$tmp/one" $kind loss)" -v b="$(record "$tmp/whole" $kind loss)" \
        'BEGIN {d = a - b; exit !(a > 0 && d * d < 1e-12)}' ||
        fail "$key of split layers is another"
done
train short 1 model.layers= model.hidden=64,80 model.dropout=0.2 model.activation=relu \
    model.split=5000
train long 1 "model.layers=dense 64 relu split, dropout 0.2, dense 80 relu split, dropout 0.2"
check_eq 'bits by model.split' "$(crc "$tmp/short")" "$(crc "$tmp/long")"
train other 3 run.parts=5
[ "$(crc "$tmp/other")" != "$(crc "$tmp/one")" ] || fail 'run.parts changes nothing'

# A convolution after a split layer is not the first layer: it needs the gradient of its input.
train line 2 train.max_steps=3 \
    "model.layers=dense 64 relu split, conv1d 4 3 pad same relu, dense 32 relu"

# Keys that exclude each other are refused, both by name.
for key in train.local_steps=2 train.mode=async train.wire=q8 train.exchange=reduce; do
    expect_error 2 "${key%%=*}" 3 $keys run.reproducible=no "run.dir=$tmp/no" \
        "model.layers=$layers" $key
    expect_line "$tmp/err" 'error: .*model.split' "$key: no key of the split layer"
done
expect_error 2 run.parts 3 $keys "run.dir=$tmp/no" "model.layers=$layers" run.parts=65

# A model is whole wherever it is used.
"$dtrain" export "$tmp/one" "$tmp/one.onnx" || fail 'export to ONNX'
for name in one whole; do
    "$dtrain" eval "$tmp/$name" "data.eval=$data/t10k-images-idx3-ubyte.gz" \
        "data.eval_labels=$data/t10k-labels-idx1-ubyte.gz" eval.json=yes >"$tmp/$name.eval" ||
        fail "eval of $name"
done
awk -v a="$(json loss <"$tmp/one.eval")" -v b="$(json loss <"$tmp/whole.eval")" \
    'BEGIN {d = a - b; exit !(a > 0 && d * d < 1e-12)}' || fail 'eval of the exported model differs'
"$dtrain" inspect "$tmp/one" | grep -q 'dense 64 relu split' ||
    fail 'inspect does not know of split layers'
train init 2 "run.init=$tmp/one" "model.layers=dense 64 relu, dense 80 tanh" train.max_steps=0

# same_at NUMBERS SETTING...: has the bits of one process at each of these numbers of ranks.
same_at() {
    numbers=$1
    shift
    train "$1" 1 "$@"
    for np in $numbers; do
        train "$1-$np" "$np" "$@"
        check_eq "$*, $np ranks" "$(crc "$tmp/$1-$np")" "$(crc "$tmp/$1")"
    done
}
same_at '2 3 9' run.seed=1
same_at '5' run.precision=bf16
same_at '5' train.optimizer=lamb train.lr=0.01
same_at '3' train.optimizer=sgd train.momentum=0.9 train.clip_norm=0.1
# Shares that are empty in some steps, and workers without a part.
train few 2 data.train="$data/t10k-images-idx3-ubyte.gz" train.batch=3 run.parts=2
train few-6 6 data.train="$data/t10k-images-idx3-ubyte.gz" train.batch=3 run.parts=2
check_eq 'few rows and parts, 6 ranks' "$(crc "$tmp/few-6")" "$(crc "$tmp/few")"
# A loss that is not finite ends the run, and no worker waits for another.
expect_error 1 'the loss of replica' 5 $keys "run.dir=$tmp/nan" \
    "model.layers=dense 64 relu split, dense 64 relu split" train.optimizer=sgd train.lr=1e9
