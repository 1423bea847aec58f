#!/bin/sh
# Fails if the step's path allocates: by malloc, or by a library call that needs it. A long run
# makes as many allocations as a short one, in the program and in every library but MPI's own, those
# of matrix products, which keep memory for packed blocks that way (OpenBLAS, oneDNN), and jansson,
# which writes the last record: an async one has as many numbers as there were degrees of staleness.
. "$(dirname "$0")/lib.sh"
counter=$tmp/alloc_count.so
data=$tmp/data.csv
few=100 many=500 spare=40 # start-up varies by a few
others='/libjansson|/libopenblas|/libdnnl|/libstdc|/libgomp|/openmpi/|/libmpi|/libopen-|/libpmix'
others="$others|/libmca|/libevent|/libhwloc|/libpsm|/libucp|/libucs|/libuct|/libfabric"

need_cc
${CC:-cc} -O1 -shared -fPIC -o "$counter" tests/e2e/alloc_count.c -ldl || fail 'alloc_count.c'
awk 'BEGIN {
    OFS = ","
    for (i = 0; i < 60000; i++)
        print i % 7 / 7, i % 11, i % 13, i % 17, i % 19, i % 23, i % 29, i % 31, i % 37, i % 41,
            i % 5 % 3
}' >"$tmp/large.csv" # 2.4 MB in memory, as f32
head -n 3000 "$tmp/large.csv" >"$data"

# allocations STEPS ARGS...: of all ranks of a run of so many steps.
allocations() {
    steps=$1
    shift
    rm -rf "$tmp/run" "$tmp"/count.*
    mpirun --timeout "$limit" --oversubscribe -np 3 -x LD_PRELOAD="$counter" \
        -x ALLOC_COUNT="$tmp/count" "$dtrain" train run.dir="$tmp/run" data.train="$data" \
        data.header=no model.hidden=64,32 train.max_steps="$steps" run.log_steps=1000000 "$@" \
        >"$tmp/log" 2>&1 || fail_with "$tmp/log" "$*"
    awk -v others="$others" '$2 !~ others { n += $1 } END { print n }' "$tmp"/count.*
}

check_mode() {
    short=$(allocations $few "$@") || fail "$short"
    long=$(allocations $many "$@") || fail "$long"
    check_ge "$*: allocations of $few steps" "$short" 100
    check_le "$*: further ones of $((many - few)) steps" $((long - short)) $spare
}

check_mode data.memory_mb=1 data.train="$tmp/large.csv" # streamed
check_mode data.memory_mb=1 data.train="$tmp/large.csv" data.encode=cosine data.encode_width=3
check_mode data.encode=ple data.encode_bins=4
check_mode train.exchange=reduce train.clip_norm=1
check_mode train.clip_norm=1 model.dropout=0.2 train.optimizer=adamw
# Long enough for the status file, which is written every two seconds.
check_mode train.mode=async train.staleness=1 test.slow_rank=1 test.slow_secs=0.01
