#!/bin/sh
# Fails if another host rounds a sum in other blocks, errors stay at their host, or a wire carries
# floats. train.wire on two hosts: the bits of one host, with groups within hosts and groups that
# reach over them; errors come to the bank for a checkpoint and go back; fewer bytes on the link.
# seconds: 60
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/netns.sh"
hosts_up 2
"$recipes/exp-data.sh" "$tmp/data"
keys="run.replicas=5 data.train=$tmp/data/train.csv data.eval=$tmp/data/test.csv
    model.hidden=300,200 train.lr=0.002 train.batch=64 train.epochs=4 train.decay_steps=32
    eval.steps=-1 export.latest=no export.best=no"

# train NAME NP KEYS...: on the hosts.
train() {
    name=$1 ranks=$2
    shift 2
    hosts_job "$ranks" "$dtrain" "$recipes/exp-curve.ini" "run.dir=$tmp/$name" $keys "$@" \
        2>"$tmp/$name.err" || fail_with "$tmp/$name.err" "$name"
}
one() {
    name=$1
    shift
    job 1 "$recipes/exp-curve.ini" "run.dir=$tmp/$name" $keys "$@" 2>"$tmp/err" ||
        fail_with "$tmp/err" "$name"
}
same() { check_eq "params_crc32c of $1" "$(crc "$tmp/$1")" "$(crc "$tmp/$2")"; }

hosts_slots 2 2
for wire in bf16 q8; do
    one $wire-one train.wire=$wire train.groups=2
    train $wire 4 train.wire=$wire
    check_eq 'groups of two hosts' "$(record "$tmp/$wire" start groups)" 2
    same $wire $wire-one
done
one local-one train.wire=q8 train.groups=2 train.local_steps=4
train local 4 train.wire=q8 train.local_steps=4
same local local-one
one over-one train.wire=q8 train.groups=3 train.clip_norm=0.5
# Both hosts have workers of the second group.
train over 4 train.wire=q8 train.groups=3 train.clip_norm=0.5 train.max_steps=12
one over train.wire=q8 train.groups=3 train.clip_norm=0.5 train.max_steps=20
train over 4 train.wire=q8 train.groups=3 train.clip_norm=0.5
same over over-one

# Each host gives half the gradient and half the weights a step; start and end cost the same with
# each wire.
hosts_slots 2 1
for wire in f32 bf16 q8; do
    before=$(host_sent 2)
    train bytes-$wire 3 run.replicas=2 train.groups=2 train.epochs=9 train.wire=$wire
    eval "sent_$wire=$(($(host_sent 2) - before))"
done
check_le 'bytes in bf16, of those in f32' "$(echo "$sent_bf16 $sent_f32" | awk '{print $1 / $2}')" \
    0.65
check_le 'bytes in q8, of those in f32' "$(echo "$sent_q8 $sent_f32" | awk '{print $1 / $2}')" 0.42
