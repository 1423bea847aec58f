#!/bin/sh
# Fails if a reader, an index or a shuffle holds in memory what it should stream. 2 GB of data, as
# HDF5 shards and as one CSV, train with every rank under 300 MB at memory_mb=128. MEGABYTES sets
# another size.
# seconds: 900
. "$(dirname "$0")/lib.sh"
megabytes=${MEGABYTES:-2000}
[ "$(df -Pm "$tmp" | awk 'NR == 2 {print $4}')" -gt $((megabytes * 3)) ] ||
    skip "needs $((megabytes * 3)) MB in $tmp"

# 64 features of 8 bits and a label make a line of about 230 bytes; a block of rows is repeated.
awk 'BEGIN {
    srand(5)
    for (i = 0; i < 45000; i++) {
        sum = 0; line = ""
        for (j = 0; j < 64; j++) { v = int(rand() * 256); if (j < 4) sum += v; line = line v "," }
        print line int(sum / 256)
    }
}' >"$tmp/block"
block=$(($(wc -c <"$tmp/block") / 1000000))
blocks=$((megabytes / block + 1))
i=0
while [ $i -lt $blocks ]; do cat "$tmp/block"; i=$((i + 1)); done >"$tmp/data.csv"
rows=$((blocks * 45000))
echo "$(du -m "$tmp/data.csv" | cut -f 1) MB of CSV, $rows rows"

# watched NAME COMMAND...: runs it, and notes in $peak the greatest VmHWM, in MB, of any dtrain
# process that has $tmp/NAME among its arguments.
watched() {
    name=$1
    shift
    { "$@" 2>"$tmp/$name.err"; echo $? >"$tmp/$name.exit"; } &
    peak=0
    while [ ! -s "$tmp/$name.exit" ]; do
        for kb in $(all_pids "$tmp/$name" | sed 's|.*|/proc/&/status|' |
            xargs -r sed -n '/^VmHWM/s/[^0-9]*//gp' 2>/dev/null); do
            [ "$kb" -le $((peak * 1024)) ] || peak=$(((kb + 1023) / 1024))
        done
        sleep 0.2
    done
    check_eq "exit code of $name" "$(cat "$tmp/$name.exit")" 0
    check_ge "peak MB of $name" $peak 10
    check_le "peak MB of $name" $peak 300
}
all_pids() {
    echo "$1" | grep -lFf - /proc/[0-9]*/cmdline 2>/dev/null | cut -d/ -f3 |
        while read -r id; do [ "$(cat "/proc/$id/comm" 2>/dev/null)" != dtrain ] || echo "$id"; done
}
limit=600
train() {
    watched "$1" job 3 run.dir="$tmp/$1" data.train="$2" data.memory_mb=128 data.scale=0.004 \
        model.hidden=64 train.batch=256 train.lr=0.05 train.epochs=1 eval.steps=-1
    check_eq "samples of $1" "$(record "$tmp/$1" final samples)" $rows
    check_le "loss of $1" "$(records "$tmp/$1" train loss | tail -n 1)" 1
}
train csv "$tmp/data.csv"
# HDF5 keeps the numbers in 8 bits: 2 GB of them take several copies.
watched shard "$dtrain" shard "$tmp/shards" 4 data.train="$tmp/data.csv" data.memory_mb=128
i=1
while [ "$(du -m "$tmp/shards" | cut -f 1)" -lt "$megabytes" ]; do
    for shard in "$tmp/shards"/shard-0000?-of-*.h5; do
        cp "$shard" "$tmp/shards/copy-$i-$(basename "$shard")"
    done
    i=$((i + 1))
done
rm "$tmp/data.csv"
rows=$((rows * i))
train hdf5 "$tmp/shards/*.h5"
