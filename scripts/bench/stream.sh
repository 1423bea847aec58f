#!/bin/sh
# Data read from disk in every epoch against data held in memory: Fashion-MNIST repeated 20 times in
# 8-bit HDF5 shards, 0.9 GB, in the page cache.
. "$(dirname "$0")/lib.sh"
shards=$tmp/shards

make_shards() {
    mkdir "$tmp/copies"
    for i in $(seq -w 20); do
        ln -s "$images" "$tmp/copies/x$i.gz"
        ln -s "$labels" "$tmp/copies/y$i.gz"
    done
    "$dtrain" shard "$shards" 4 data.train="$tmp/copies/x*.gz" \
        data.train_labels="$tmp/copies/y*.gz" >"$tmp/log" 2>&1 ||
        { remark "no shards: $(tail -n 1 "$tmp/log")"; return 1; }
    cat "$shards"/* >/dev/null
}

turn() {
    for place in memory:2048 stream:64; do
        train "$full" data.train="$shards/*.h5" data.train_labels= data.memory_mb=${place#*:} ||
            continue
        note_rate "${place%:*}" "$(rate)"
    done
}

measure() {
    make_shards || return
    take_turns turn
    compare samples_per_sec stream memory 0.9
}

each_case measure 784-512-256-10:128
