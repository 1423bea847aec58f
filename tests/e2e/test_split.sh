#!/bin/sh
# Split layers: one network, whoever has its columns. Would catch a sum whose order depends on ranks or hosts, rows
# that go to the wrong worker, parts that a checkpoint lacks or that come back to another place, a gradient that
# travels all the same, and a wait that one worker alone has.
# seconds: 200
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/corners.sh"
data=/usr/share/datasets/fashion-mnist
[ -d "$data" ] || skip 'no Fashion-MNIST'
layers='dense 64 relu split, dropout 0.2, dense 80 tanh split'
keys="data.train=$data/t10k-images-idx3-ubyte.gz data.train_labels=$data/t10k-labels-idx1-ubyte.gz data.scale=0.0039 \
data.eval_fraction=0.1 train.batch=129 train.max_steps=50 run.replicas=4 train.optimizer=adam train.lr=0.001 \
run.reproducible=yes export.best=no"

# train NAME NP KEYS...
train() {
    name=$1 ranks=$2
    shift 2
    job "$ranks" $keys "run.dir=$tmp/$name" "model.layers=$layers" "$@" 2>"$tmp/$name.err" ||
        { cat "$tmp/$name.err"; fail "$name ends with $?"; }
}

# The unsplit layers say the same, but for the order of sums.
train one 1
train whole 1 "model.layers=$(echo "$layers" | sed 's/ split//g')"
for key in loss eval_loss; do
    kind=final
    [ $key = loss ] || kind=eval
    awk -v a="$(record "$tmp/one" $kind loss)" -v b="$(record "$tmp/whole" $kind loss)" \
        'BEGIN {d = a - b; exit !(a > 0 && d * d < 1e-12)}' || fail "$key of split layers is another"
done
train short 1 model.layers= model.hidden=64,80 model.dropout=0.2 model.activation=relu model.split=5000
train long 1 "model.layers=dense 64 relu split, dropout 0.2, dense 80 relu split, dropout 0.2"
check_eq 'bits by model.split' "$(crc "$tmp/short")" "$(crc "$tmp/long")"
train other 3 run.parts=5
[ "$(crc "$tmp/other")" != "$(crc "$tmp/one")" ] || fail 'run.parts changes nothing'

# A convolution behind a split layer is not the first one: the gradient of what it read is wanted.
train line 2 train.max_steps=3 "model.layers=dense 64 relu split, conv1d 4 3 pad same relu, dense 32 relu"

# What does not go together is refused by both names.
for key in train.local_steps=2 train.mode=async train.wire=q8 train.exchange=reduce; do
    expect_error 2 "${key%%=*}" 3 $keys run.reproducible=no "run.dir=$tmp/no" "model.layers=$layers" $key
    grep -q 'error: .*model.split' "$tmp/err" || fail "$key: no key of the split layer"
done
expect_error 2 run.parts 3 $keys "run.dir=$tmp/no" "model.layers=$layers" run.parts=65

# A model is whole wherever it is used.
"$dtrain" export "$tmp/one" "$tmp/one.onnx" || fail 'export to ONNX'
for name in one whole; do
    "$dtrain" eval "$tmp/$name" "data.eval=$data/t10k-images-idx3-ubyte.gz" \
        "data.eval_labels=$data/t10k-labels-idx1-ubyte.gz" eval.json=yes >"$tmp/$name.eval" || fail "eval of $name"
done
awk -v a="$(json loss <"$tmp/one.eval")" -v b="$(json loss <"$tmp/whole.eval")" \
    'BEGIN {d = a - b; exit !(a > 0 && d * d < 1e-12)}' || fail 'eval of the exported model differs'
"$dtrain" inspect "$tmp/one" | grep -q 'dense 64 relu split' || fail 'inspect does not know of split layers'
train init 2 "run.init=$tmp/one" "model.layers=dense 64 relu, dense 80 tanh" train.max_steps=0

for setting in run.seed=1 run.precision=bf16 'train.optimizer=lamb train.lr=0.01' \
    'train.optimizer=sgd train.momentum=0.9 train.clip_norm=0.1'; do
    of=$(echo "$setting" | tr -c 'a-z0-9\n' _)
    train "$of" 1 $setting
    for np in 2 3 5 9; do
        train "$of-$np" $np $setting
        check_eq "$setting, $np ranks" "$(crc "$tmp/$of-$np")" "$(crc "$tmp/$of")"
    done
done
# An output layer of many classes: its softmax is that of the whole layer, whoever has its parts.
make_classes "$tmp/classes.csv" 1200
many="data.train=$tmp/classes.csv data.train_labels= data.label=0 data.scale=0.01 model.task=classify train.batch=120 \
train.lr=0.01 train.max_steps=25 eval.steps=-1"
train classes 1 $many "model.layers=dense 32 relu, output dense 1200 split"
train unsplit 1 $many "model.layers=dense 32 relu"
train least 1 $many "model.layers=dense 32 relu" model.split=38000
check_eq 'bits of a softmax by model.split' "$(crc "$tmp/least")" "$(crc "$tmp/classes")"
for kind in final eval; do
    awk -v a="$(record "$tmp/classes" $kind loss)" -v b="$(record "$tmp/unsplit" $kind loss)" \
        'BEGIN {d = a - b; exit !(a > 0 && d * d < 1e-12)}' || fail "$kind loss of a split softmax is another"
done
train classes-3 3 $many "model.layers=dense 32 relu, output dense 1200 split"
check_eq 'a split softmax, 3 ranks' "$(crc "$tmp/classes-3")" "$(crc "$tmp/classes")"
train clipped 2 $many "model.layers=output dense 1200 split" train.clip_norm=0.1
train clipped-4 4 $many "model.layers=output dense 1200 split" train.clip_norm=0.1
check_eq 'a split softmax alone, clipped' "$(crc "$tmp/clipped-4")" "$(crc "$tmp/clipped")"
for name in classes unsplit; do
    head -n 40 "$tmp/classes.csv" | "$dtrain" predict "$tmp/$name" 2>/dev/null | sed 's/.*"class":\([0-9]*\).*/\1/' >"$tmp/$name.class"
done
[ "$(wc -l <"$tmp/classes.class")" = 40 ] && cmp "$tmp/classes.class" "$tmp/unsplit.class" || fail 'a split softmax predicts otherwise'
expect_error 2 'output layer' 1 $keys "run.dir=$tmp/no" $many model.task=regress "model.layers=output dense 1 split"
# Behind an embedding: its rows are sparse, the layer's inputs are not.
make_words "$tmp/words.csv" 1100
words="data.train=$tmp/words.csv data.train_labels= data.label=label data.scale=1 model.task=classify train.batch=120 \
train.lr=0.01 train.max_steps=25 eval.steps=-1 model.embedding=8"
train words 1 $words "model.layers=dense 32 relu, output dense 1100 split"
train words-whole 1 $words "model.layers=dense 32 relu"
for kind in final eval; do
    awk -v a="$(record "$tmp/words" $kind loss)" -v b="$(record "$tmp/words-whole" $kind loss)" \
        'BEGIN {d = a - b; exit !(a > 0 && d * d < 1e-12)}' || fail "$kind loss behind an embedding is another"
done
train words-4 4 $words "model.layers=dense 32 relu, output dense 1100 split"
check_eq 'a split softmax behind an embedding, 4 ranks' "$(crc "$tmp/words-4")" "$(crc "$tmp/words")"
for row in $(seq 40); do echo "$((row % 2)) $row:1 $((row + 60)):2"; done >"$tmp/sparse.libsvm"
expect_error 2 'expected a whole one, or an embedding first' 2 data.train="$tmp/sparse.libsvm" data.features=20000 \
    "run.dir=$tmp/no" "model.layers=dense 32 relu split"
# Shares that are empty in some steps, and workers without a part.
train few 2 data.train="$data/t10k-images-idx3-ubyte.gz" train.batch=3 run.parts=2
train few-6 6 data.train="$data/t10k-images-idx3-ubyte.gz" train.batch=3 run.parts=2
check_eq 'few rows and parts, 6 ranks' "$(crc "$tmp/few-6")" "$(crc "$tmp/few")"
# A loss that is not finite ends the run, and no worker waits for another.
expect_error 1 'the loss of replica' 5 $keys "run.dir=$tmp/nan" "model.layers=dense 64 relu split, dense 64 relu split" \
    train.optimizer=sgd train.lr=1e9

# Without memory that the ranks of a host share, the bank alone has the layers whole: its workers do not evaluate.
if can_do_without_shm; then
    without_shm expect_error 1 'evaluation in place' 3 $keys "run.dir=$tmp/apart" "model.layers=$layers"
    keys_without=$(echo "$keys" | sed 's/data.eval_fraction=0.1//')
    without_shm job 3 $keys_without "run.dir=$tmp/apart" "model.layers=$layers" 2>"$tmp/err" || fail "$(cat "$tmp/err")"
    job 1 $keys_without "run.dir=$tmp/together" "model.layers=$layers" 2>"$tmp/err" || fail "$(cat "$tmp/err")"
    check_eq 'bits without shared memory' "$(crc "$tmp/apart")" "$(crc "$tmp/together")"
    # Gradients have room there, rows of split layers have not.
    for shm in 400k 1m 2m; do
        without_shm job 3 $keys_without "run.dir=$tmp/little-$shm" "model.layers=$layers" 2>"$tmp/err" || fail "$(cat "$tmp/err")"
        check_eq "bits with $shm of shared memory" "$(crc "$tmp/little-$shm")" "$(crc "$tmp/together")"
    done
    shm=
fi

# Where the whole layers are much of the memory, and the disk has no room for them, the run ends before its first step.
if [ "$(id -u)" = 0 ] && mkdir "$tmp/disk" && mount -t tmpfs -o size=512k none "$tmp/disk" 2>/dev/null; then
    at_exit "umount $tmp/disk"
    (
        ulimit -v 4000000
        expect_error 1 "for the bank's books: No space left" 3 $keys "run.dir=$tmp/disk/run" train.optimizer=adam \
            "model.layers=dense 4096 relu, dense 6000 relu split"
    ) || exit
    check_eq 'files left behind' "$(find "$tmp/disk/run" -type f -name '*dtrain*' | wc -l)" 0
fi

# A stop, and a kill, and a resume with other ranks.
train stop 5 run.checkpoint_steps=10 train.max_steps=20
train stop 3 run.checkpoint_steps=10 train.max_steps=30
train stop 2 run.checkpoint_steps=10
check_eq 'bits behind resumes' "$(crc "$tmp/stop")" "$(crc "$tmp/one")"
expect_error 1 run.parts 3 $keys "run.dir=$tmp/stop" "model.layers=$layers" run.parts=8
# The key that splits is one of the run's.
short='model.layers= model.hidden=64,80 model.dropout=0.2 model.activation=relu model.split=5000'
train key 2 $short train.max_steps=20
train key 3 $short
check_eq 'bits behind a resume by model.split' "$(crc "$tmp/key")" "$(crc "$tmp/short")"
