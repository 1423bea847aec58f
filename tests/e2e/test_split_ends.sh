#!/bin/sh
# Fails if a checkpoint lacks parts of split layers, or they come back to another place. Split
# layers without shared memory or space on the disk, and over a stop and a resume.
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/split.sh"

train one 1
short='model.layers= model.hidden=64,80 model.dropout=0.2 model.activation=relu model.split=5000'
train short 1 $short
# Without memory that the ranks of a host share, the bank alone has the layers whole: its workers do
# not evaluate.
if can_do_without_shm; then
    without_shm expect_error 1 'evaluation in place' 3 $keys "run.dir=$tmp/apart" \
        "model.layers=$layers"
    keys_without=$(echo "$keys" | sed 's/data.eval_fraction=0.1//')
    without_shm job 3 $keys_without "run.dir=$tmp/apart" "model.layers=$layers" 2>"$tmp/err" ||
        fail "$(cat "$tmp/err")"
    job 1 $keys_without "run.dir=$tmp/together" "model.layers=$layers" 2>"$tmp/err" ||
        fail "$(cat "$tmp/err")"
    check_eq 'bits without shared memory' "$(crc "$tmp/apart")" "$(crc "$tmp/together")"
    # Gradients have room there, rows of split layers have not.
    for shm in 400k 2m; do
        without_shm job 3 $keys_without "run.dir=$tmp/little-$shm" "model.layers=$layers" \
            2>"$tmp/err" || fail "$(cat "$tmp/err")"
        check_eq "bits with $shm of shared memory" "$(crc "$tmp/little-$shm")" \
            "$(crc "$tmp/together")"
    done
    shm=
fi

# Where the whole layers are much of the memory, and the disk has no room for them, the run ends
# before its first step.
if [ "$(id -u)" = 0 ] && mkdir "$tmp/disk" &&
    mount -t tmpfs -o size=512k none "$tmp/disk" 2>/dev/null; then
    at_exit "umount $tmp/disk"
    (
        ulimit -v 4000000
        expect_error 1 "for the bank's books: No space left" 3 $keys "run.dir=$tmp/disk/run" \
            train.optimizer=adam "model.layers=dense 4096 relu, dense 6000 relu split"
    ) || exit
    check_eq 'files left behind' "$(find "$tmp/disk/run" -type f -name '*dtrain*' | wc -l)" 0
fi

# A stop, and a kill, and a resume with other ranks.
train stop 5 train.max_steps=8
train stop 3 train.max_steps=16
train stop 2
check_eq 'bits behind resumes' "$(crc "$tmp/stop")" "$(crc "$tmp/one")"
expect_error 1 run.parts 3 $keys "run.dir=$tmp/stop" "model.layers=$layers" run.parts=8
# The key that splits is one of the run's.
train key 2 $short train.max_steps=12
train key 3 $short
check_eq 'bits behind a resume by model.split' "$(crc "$tmp/key")" "$(crc "$tmp/short")"
