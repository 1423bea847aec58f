#!/bin/sh
# Fails if the sum of sparse gradients omits a row, takes it twice or in another order, a version of
# the weights lacks one, or a checkpoint forgets state. The gradient is of the rows that a batch
# touches, summed over the replicas and updated by the workers, each its part. The bits are those of
# whole gradients, which go through train.exchange=reduce, at any number of ranks and over a resume:
# with rules that touch the rows of a batch alone and with those that update all, with clipping, and
# over a batch that goes through the network in slices; and in async with one worker.
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/corners.sh"
rows=$tmp/rows.svm
make_sparse "$rows" 4700 700

# run NP DIR OPTIONS...
run() {
    np=$1 dir=$tmp/$2
    shift 2
    job "$np" run.dir="$dir" data.train="$rows" data.eval_fraction=0.1 eval.steps=-1 \
        run.replicas=4 model.kind=linear train.batch=61 train.epochs=2 run.checkpoint_steps=30 \
        "$@" >"$tmp/out" 2>&1 || fail_with "$tmp/out" "np $np: $*"
}
# same WHAT NP OPTIONS...: ends with the bits of whole gradients.
same() {
    name=$1 ranks=$2
    shift 2
    if [ ! -d "$tmp/$name-whole" ]; then
        run 2 "$name-whole" train.exchange=reduce "$@"
        expect_line "$tmp/out" 'sends the whole gradient' "$name: gradients are not whole"
    fi
    run "$ranks" "$name-$ranks" "$@"
    ! grep -q 'sends the whole gradient' "$tmp/out" || fail "$name: gradients are whole"
    check_eq "$name at np=$ranks" "$(crc "$tmp/$name-$ranks")" "$(crc "$tmp/$name-whole")"
}

for np in 1 3 5; do
    same adagrad $np train.optimizer=adagrad train.lr=0.1 train.clip_norm=0.05
done
same ftrl 3 train.optimizer=ftrl train.lr=0.5 train.l1=0.02
same sgd 3 train.momentum=0 train.lr=0.5
same momentum 3 train.lr=0.1 run.replicas=7
same adam 3 train.optimizer=adam train.clip_norm=0.05 model.kind=mlp model.hidden=33,20
same slices 3 train.optimizer=adagrad train.batch=0 train.epochs=4 run.replicas=1 model.kind=mlp \
    model.hidden=9

# FTRL leaves weights at 0, and inspect says how many are not.
"$dtrain" inspect "$tmp/ftrl-3" >"$tmp/inspect" || fail inspect
set -- $(sed -n 's/^parameters *\([0-9]*\), \([0-9]*\) not zero.*/\1 \2/p' "$tmp/inspect")
check_le 'weights that are not zero' "$2" $(($1 / 2))
check_ge 'weights that are not zero' "$2" 50
# Exported are the rows that are not 0, where they are few, and the same weights are read from them.
run 1 few train.optimizer=ftrl train.lr=0.5 train.l1=1
"$dtrain" inspect "$tmp/few/export/latest" >"$tmp/inspect" || fail inspect
grep -q "params_crc32c $(crc "$tmp/few")" "$tmp/inspect" ||
    fail "the export has other weights: $(cat "$tmp/inspect")"
exported=$(ls -t "$tmp"/few/export/latest/*/model.h5 | head -n 1)
check_le 'bytes of a sparse export' "$(wc -c <"$exported")" 40000

# Rows that travel rounded have no rounding errors: a checkpoint has none of theirs.
run 3 rounded train.optimizer=adagrad train.lr=0.1 train.wire=q8 train.groups=4
bytes_of() { wc -c <"$tmp/$1/ckpt/latest.h5"; }
check_le 'bytes of a checkpoint with a rounded wire' "$(bytes_of rounded)" \
    $(($(bytes_of adagrad-3) + 60000))

# Lazy: rows without a gradient keep weight and state. Not what adam does else, the same at any np.
run 1 lazy-1 train.optimizer=adam train.lazy=yes
run 3 lazy-3 train.optimizer=adam train.lazy=yes
run 1 eager train.optimizer=adam
check_eq 'lazy at np=3' "$(crc "$tmp/lazy-3")" "$(crc "$tmp/lazy-1")"
[ "$(crc "$tmp/lazy-1")" != "$(crc "$tmp/eager")" ] || fail 'train.lazy changes nothing'

# Stopped and resumed with another number of ranks.
run 3 half train.optimizer=adagrad train.lr=0.1 train.clip_norm=0.05 train.max_steps=51
run 2 half train.optimizer=adagrad train.lr=0.1 train.clip_norm=0.05
check_eq resumed "$(crc "$tmp/half")" "$(crc "$tmp/adagrad-1")"

# Async: one worker, whose gradients follow each other directly, ends with the bits of whole
# gradients in sync. (While a checkpoint waits, so does a gradient, and the next one is of weights
# without it.)
one='run.replicas=1 train.mode=async run.checkpoint_steps=0'
alone() {
    name=$1
    shift
    run 2 "$name-sync" run.replicas=1 train.exchange=reduce "$@"
    run 2 "$name-async" $one "$@"
    ! grep -qE 'sends (the )?whole gradient' "$tmp/out" || fail "$name: gradients are whole"
    check_eq "$name in async" "$(crc "$tmp/$name-async")" "$(crc "$tmp/$name-sync")"
}
alone alone train.optimizer=adagrad train.lr=0.1 train.clip_norm=0.05
alone alone-ftrl train.optimizer=ftrl train.lr=0.5 train.l1=0.02
alone alone-momentum train.lr=0.1
alone alone-adam train.optimizer=adam model.kind=mlp model.hidden=33,20
alone alone-slices train.optimizer=adagrad train.batch=0 train.epochs=4 model.kind=mlp \
    model.hidden=9
run 2 alone-lazy-sync train.optimizer=adam train.lazy=yes run.replicas=1
run 2 alone-lazy $one train.optimizer=adam train.lazy=yes
check_eq 'lazy in async' "$(crc "$tmp/alone-lazy")" "$(crc "$tmp/alone-lazy-sync")"
for steps in 51 1000; do
    run 2 alone-half $one train.optimizer=adagrad train.lr=0.1 train.clip_norm=0.05 \
        train.max_steps=$steps
done
check_eq 'resumed in async' "$(crc "$tmp/alone-half")" "$(crc "$tmp/alone-async")"

# With several workers each gradient is applied once, over a resume with other ranks, and the model
# learns.
for rule in 'adagrad train.lr=0.1' 'adam train.lr=0.005 train.clip_norm=1'; do
    rm -rf "$tmp/several"
    run 4 several train.mode=async train.staleness=4 run.replicas=6 train.optimizer=$rule \
        train.max_steps=250
    run 3 several train.mode=async train.staleness=4 run.replicas=6 train.optimizer=$rule
    for count in step gradients_sent gradients_applied; do
        check_eq "$rule: $count" "$(record "$tmp/several" final $count)" 840
    done
    check_le "$rule: loss" "$(record "$tmp/several" final loss)" 1.55
done

expect_error 2 'train.lazy=yes: expected train.exchange=auto, node or ordered' 3 run.dir="$tmp/no" \
    data.train="$rows" train.lazy=yes train.exchange=reduce
expect_error 2 'train.l1: expected train.optimizer=ftrl' 1 run.dir="$tmp/no" data.train="$rows" \
    train.l1=1
expect_error 2 'train.optimizer=ftrl: expected train.lr above 0' 1 run.dir="$tmp/no" \
    data.train="$rows" train.optimizer=ftrl train.schedule=cosine
