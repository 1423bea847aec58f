#!/bin/sh
# Fails if the bits of split layers depend on hosts, a host sends more than rows, or a resume brings
# a part to the wrong host.
# waits
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/netns.sh"
data=/usr/share/datasets/fashion-mnist
[ -d "$data" ] || skip 'no Fashion-MNIST'
hosts_up 4
keys="data.train=$data/t10k-images-idx3-ubyte.gz data.train_labels=$data/t10k-labels-idx1-ubyte.gz
    data.scale=0.0039 data.eval_fraction=0.1 train.batch=129 train.max_steps=24 run.replicas=4
    train.optimizer=adam train.lr=0.001 run.reproducible=yes export.best=no export.latest=no"
layers='dense 64 relu split, dropout 0.2, dense 80 tanh split'

# train NAME NP KEYS...
train() {
    name=$1 ranks=$2
    shift 2
    hosts_job "$ranks" "$dtrain" $keys "run.dir=$tmp/$name" "model.layers=$layers" "$@" \
        2>"$tmp/$name.err" || fail_with "$tmp/$name.err" "$name ends with $?"
}

# with SETTING...: one process. on 'RANKS OF EACH HOST': the same bits.
with() {
    setting=$*
    hosts_slots 1
    train "$1" 1 $setting
}
on() {
    hosts_slots $1
    np=$(echo "$1" | awk '{for (i = 1; i <= NF; i++) sum += $i; print sum}')
    train "${setting%% *}-$np" "$np" $setting
    check_eq "$setting, hosts with $1 ranks" "$(crc "$tmp/${setting%% *}-$np")" \
        "$(crc "$tmp/${setting%% *}")"
}
with run.precision=bf16
on '3 3 3'
with train.optimizer=lamb train.lr=0.01
on '2 1 1'
with train.optimizer=sgd train.momentum=0.9 train.clip_norm=0.1
on '3 1 2 2'
with run.seed=1
on '2 1 1'
on '3 1 2 2'
on '3 3 3'
check_eq 'evaluation on four hosts' "$(record "$tmp/run.seed=1-8" eval loss)" \
    "$(record "$tmp/run.seed=1" eval loss)"

# A model that a host has no memory for is refused before it takes any, with the key that helps.
hosts_slots 2 1
cat >"$tmp/small" <<END
#!/bin/sh
ulimit -v 3000000 && exec "\$@"
END
chmod +x "$tmp/small"
hosts_job 3 "$tmp/small" "$dtrain" $keys "run.dir=$tmp/no" \
    "model.layers=dense 20000 relu, dense 20000 relu" 2>"$tmp/err" &&
    fail 'more than memory: exit 0'
expect_line "$tmp/err" 'error: .*expected model.split=15680000, with which' 'no word of model.split'
layers='dense 64 relu split, dropout 0.2, dense 80 tanh split'

# Steps on three hosts, then on two, then on one.
hosts_slots 2 1 1
train moved 4 train.max_steps=8
hosts_slots 2 2
train moved 4 train.max_steps=16
hosts_slots 3
train moved 3
check_eq 'bits of a run that moved' "$(crc "$tmp/moved")" "$(crc "$tmp/run.seed=1")"

# The bank's host evaluates.
hosts_slots 1 2
hosts_job 3 "$dtrain" $keys "run.dir=$tmp/none" "model.layers=$layers" 2>"$tmp/err" &&
    fail 'nobody evaluates: exit 0'
expect_line "$tmp/err" 'error: .*eval.dedicated=yes' 'the bank alone: no advice'

# A host sends rows: at most what the start says, and something for the layer that is whole.
wide='dense 512 relu split, dense 512 relu split'
hosts_slots 2 1
before=$(host_sent 2)
layers=$wide train bytes 3 train.max_steps=50 data.eval_fraction=0 train.batch=64
said=$(sed -n 's/.*a host sends \([0-9.]*\) MB if the layer is split.*/\1/p' "$tmp/bytes.err" |
    awk '{sum += $1} END {print int(sum * 1e6)}')
check_ge 'bytes a step as the start says' "$said" 300000
check_le 'bytes a step of a host' $((($(host_sent 2) - before) / 50)) \
    $((said + said / 10 + 4 * 513 * 10 + 40000))
expect_line "$tmp/bytes.err" 'less if split$' 'the start does not say which way is less'
train advised 3 "model.layers=dense 512 relu, dense 512 relu" train.max_steps=1 \
    data.eval_fraction=0 train.batch=64
expect_line "$tmp/advised.err" 'with model.split=262144 it would send' 'no advice to split'
