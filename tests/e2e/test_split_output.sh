#!/bin/sh
# Fails if a split output layer has the softmax of one part, a norm without it, or a model that
# predicts otherwise. It has many classes, also after an embedding: its softmax is that of the whole
# layer, whoever has its parts.
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/corners.sh"
keys="data.eval_fraction=0.1 model.task=classify train.batch=120 train.lr=0.01 train.max_steps=25
    eval.steps=-1 run.replicas=4 train.optimizer=adam run.reproducible=yes export.best=no"

# train NAME NP KEYS...
train() {
    name=$1 ranks=$2
    shift 2
    job "$ranks" $keys "run.dir=$tmp/$name" "$@" 2>"$tmp/$name.err" ||
        fail_with "$tmp/$name.err" "$name ends with $?"
}

make_classes "$tmp/classes.csv" 1200
many="data.train=$tmp/classes.csv data.label=0 data.scale=0.01"
train classes 1 $many "model.layers=dense 32 relu, output dense 1200 split"
train unsplit 1 $many "model.layers=dense 32 relu"
train least 1 $many "model.layers=dense 32 relu" model.split=38000
check_eq 'bits of a softmax by model.split' "$(crc "$tmp/least")" "$(crc "$tmp/classes")"
for kind in final eval; do
    awk -v a="$(record "$tmp/classes" $kind loss)" -v b="$(record "$tmp/unsplit" $kind loss)" \
        'BEGIN {d = a - b; exit !(a > 0 && d * d < 1e-12)}' ||
        fail "$kind loss of a split softmax is another"
done
train classes-3 3 $many "model.layers=dense 32 relu, output dense 1200 split"
check_eq 'a split softmax, 3 ranks' "$(crc "$tmp/classes-3")" "$(crc "$tmp/classes")"
train clipped 2 $many "model.layers=output dense 1200 split" train.clip_norm=0.1
train clipped-4 4 $many "model.layers=output dense 1200 split" train.clip_norm=0.1
check_eq 'a split softmax alone, clipped' "$(crc "$tmp/clipped-4")" "$(crc "$tmp/clipped")"
for name in classes unsplit; do
    head -n 40 "$tmp/classes.csv" | "$dtrain" predict "$tmp/$name" 2>/dev/null |
        sed 's/.*"class":\([0-9]*\).*/\1/' >"$tmp/$name.class"
done
[ "$(wc -l <"$tmp/classes.class")" = 40 ] && cmp "$tmp/classes.class" "$tmp/unsplit.class" ||
    fail 'a split softmax predicts otherwise'
expect_error 2 'output layer' 1 $keys "run.dir=$tmp/no" $many model.task=regress \
    "model.layers=output dense 1 split"
# After an embedding: its rows are sparse, the layer's inputs are not.
make_words "$tmp/words.csv" 1100
words="data.train=$tmp/words.csv data.label=label model.embedding=8"
train words 1 $words "model.layers=dense 32 relu, output dense 1100 split"
train words-whole 1 $words "model.layers=dense 32 relu"
for kind in final eval; do
    awk -v a="$(record "$tmp/words" $kind loss)" -v b="$(record "$tmp/words-whole" $kind loss)" \
        'BEGIN {d = a - b; exit !(a > 0 && d * d < 1e-12)}' ||
        fail "$kind loss behind an embedding is another"
done
train words-4 4 $words "model.layers=dense 32 relu, output dense 1100 split"
check_eq 'a split softmax behind an embedding, 4 ranks' "$(crc "$tmp/words-4")" \
    "$(crc "$tmp/words")"
for row in $(seq 40); do echo "$((row % 2)) $row:1 $((row + 60)):2"; done >"$tmp/sparse.libsvm"
expect_error 2 'expected a whole one, or an embedding first' 2 data.train="$tmp/sparse.libsvm" \
    data.features=20000 "run.dir=$tmp/no" "model.layers=dense 32 relu split"
