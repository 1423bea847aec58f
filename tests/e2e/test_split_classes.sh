#!/bin/sh
# Fails if a softmax depends on who has its parts, a host sends its outputs, or a norm counts rows
# twice. A split output layer of many classes on several hosts, also after an embedding whose rows
# are distributed.
# waits
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/corners.sh"
. "$root/tests/e2e/netns.sh"
hosts_up 4
keys="data.eval_fraction=0.1 model.task=classify train.batch=200 train.max_steps=50 run.replicas=4
    train.optimizer=adam train.lr=0.001 run.reproducible=yes export.best=no export.latest=no"

# train NAME NP KEYS...
train() {
    name=$1 ranks=$2
    shift 2
    hosts_job "$ranks" "$dtrain" $keys "run.dir=$tmp/$name" "model.layers=$layers" "$@" \
        2>"$tmp/$name.err" || fail_with "$tmp/$name.err" "$name ends with $?"
}

# The softmax of an output layer over parts, and what it sends: three floats of a row and part, not
# its outputs.
make_classes "$tmp/classes.csv" 2000
many="data.train=$tmp/classes.csv data.label=0 data.scale=0.01"
layers='dense 32 relu, output dense 2000 split'
hosts_slots 1
train classes 1 $many
hosts_slots 2 1 1
before=$(host_sent 2)
train classes-4 4 $many
check_eq 'a split softmax on three hosts' "$(crc "$tmp/classes-4")" "$(crc "$tmp/classes")"
# Its outputs would be 1,070,000 bytes.
check_le 'bytes a step of a split softmax' $((($(host_sent 2) - before) / 50)) 120000
# After an embedding whose rows are distributed to hosts; stopped half-way.
make_words "$tmp/words.csv" 1500
words="data.train=$tmp/words.csv data.label=label model.embedding=8 eval.steps=20"
layers='dense 32 relu, output dense 1500 split'
hosts_slots 1
train words 1 $words
hosts_slots 2 1 1
train words-4 4 $words train.max_steps=30
train words-4 4 $words
check_eq 'a split softmax behind dealt rows' "$(crc "$tmp/words-4")" "$(crc "$tmp/words")"
check_eq 'its evaluation' "$(record "$tmp/words-4" eval loss)" "$(record "$tmp/words" eval loss)"
# The norm has squares of split parts, and of blocks that dealt rows share.
train clipped-4 4 $words train.clip_norm=0.1
hosts_slots 1
train clipped 1 $words train.clip_norm=0.1
check_eq 'a clipped one behind dealt rows' "$(crc "$tmp/clipped-4")" "$(crc "$tmp/clipped")"
