#!/bin/sh
# Async on two hosts over a rounded wire, its weights dealt to owners. Would catch a wire that loses gradients, carries
# floats, or rounds where nothing is sent, and owners that miss gradients. See test_async_ends.sh.
# waits
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/async_hosts.sh"

# A rate that falls: with a constant one the last few gradients move the accuracy of these 200 rows by 0.1.
for wire in bf16 q8; do
    good $wire train.wire=$wire train.schedule=cosine
    grep -q "wire: gradients, and the weights that workers read, are rounded to $wire" "$tmp/out" ||
        fail 'the start does not say it'
    check_eq 'the start record' "$(record "$tmp/$wire" start wire)" $wire
    accounts $wire 900 4
    check_ge "accuracy with $wire" "$(record "$tmp/$wire" eval accuracy)" 0.9
done
good options train.wire=q8 train.schedule=cosine train.clip_norm=0.5 train.optimizer=adam train.lr=0.005 train.staleness=2 \
    train.warm_start_steps=200
accounts options 900 4
check_ge 'accuracy with options' "$(record "$tmp/options" eval accuracy)" 0.9
good ftrl train.wire=q8 train.optimizer=ftrl train.lr=0.1
accounts ftrl 900 4
check_ge 'accuracy with ftrl' "$(record "$tmp/ftrl" eval accuracy)" 0.85
job 4 run.dir="$tmp/near" $keys model.hidden=24 train.wire=q8 >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail 'q8 on one host'; }
check_eq 'lines about no effect' "$(grep -c 'train.wire=q8 has no effect' "$tmp/out")" 1
[ -z "$(record "$tmp/near" start wire)" ] || fail 'one host has a wire'

hosts_slots 2 1
for wire in f32 q8; do
    before=$(host_sent 2)
    hosts_job 3 "$dtrain" run.dir="$tmp/bytes-$wire" $keys model.hidden=500,300 train.epochs=2 train.wire=$wire \
        >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "bytes-$wire"; }
    eval "sent_$wire=$(($(host_sent 2) - before))"
done
# Whoever computes a gradient: a half of it, or of the weights for it, leaves the host of one of two owners.
check_le 'bytes of a host in q8, of those in f32' "$(echo "$sent_q8 $sent_f32" | awk '{print $1 / $2}')" 0.42
