#!/bin/sh
# Fails if what a group has pending does not reach all of its hosts. Local steps on three hosts
# whose exchange goes on while the next round computes, with groups of one host and of two.
# waits
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/local_hosts.sh"

hosts_slots 2 2 2
keys="$keys train.overlap=yes"
one late3 3
one late2 2
good late 6
same late late3
good late-over 6 train.groups=2 run.checkpoint_steps=8 run.keep=0 export.best=no test.slow_rank=1 \
    test.slow_secs=0.05
same late-over late2
# What a group of two hosts has pending goes back to both. A checkpoint is passed over where the one
# before is not written yet, as on a slow disk.
resumed=
for at in 000000016 000000040; do
    from=$tmp/late-over/ckpt/step-$at.h5
    [ -f "$from" ] || continue
    resumed=$at
    good late-$at 6 train.groups=2 run.resume="$from"
    same late-$at late2
done
[ "$resumed" ] || fail "neither checkpoint: $(ls "$tmp/late-over/ckpt")"
one late-wire 2 train.wire=q8
good late-wire3 6 train.groups=2 train.wire=q8
same late-wire3 late-wire
