# Sourced after lib.sh: what the tests of split layers share.
data=/usr/share/datasets/fashion-mnist
[ -d "$data" ] || skip 'no Fashion-MNIST'
layers='dense 64 relu split, dropout 0.2, dense 80 tanh split'
keys="data.train=$data/t10k-images-idx3-ubyte.gz data.train_labels=$data/t10k-labels-idx1-ubyte.gz
    data.scale=0.0039 data.eval_fraction=0.1 train.batch=129 train.max_steps=24 run.replicas=4
    train.optimizer=adam train.lr=0.001 run.reproducible=yes export.best=no"

# train NAME NP KEYS...
train() {
    name=$1 ranks=$2
    shift 2
    job "$ranks" $keys "run.dir=$tmp/$name" "model.layers=$layers" "$@" 2>"$tmp/$name.err" ||
        fail_with "$tmp/$name.err" "$name ends with $?"
}
