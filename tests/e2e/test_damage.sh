#!/bin/sh
# Fails if a damaged checkpoint is taken, an older one is thrown away, or a full disk hangs the run.
# The run falls back to the newest good checkpoint, or goes on, or ends with one error; it says so,
# and loses nothing.
# seconds: 180
# waits
. "$(dirname "$0")/lib.sh"
"$recipes/exp-data.sh" "$tmp/data"
# 800 KB a checkpoint.
run() {
    dir=$1
    shift
    job 3 "$recipes/exp-curve.ini" run.dir="$dir" data.train="$tmp/data/train.csv" run.replicas=2 \
        data.eval="$tmp/data/test.csv" eval.steps=-1 model.hidden=256,256 run.checkpoint_steps=10 \
        train.epochs=20 train.schedule=constant run.keep=3 run.log_steps=1000 export.latest=no \
        export.best=no "$@" 2>"$tmp/err"
}
good() { run "$@" || fail_with "$tmp/err" "$1"; }
steps() { ls "$1"/ckpt/step-* | sed -n 's/.*step-0*\([0-9]*\).h5/\1/p' | sort -n; }
good "$tmp/whole"
# ends_as_whole RUN_DIR FROM: it resumed from step FROM and ended with the undisturbed bits.
ends_as_whole() {
    check_eq 'resumed from' "$(sed -n 's/.*resuming at step \([0-9]*\).*/\1/p' "$tmp/err")" "$2"
    check_eq 'params_crc32c' "$(crc "$1")" "$(crc "$tmp/whole")"
}
# one_error TEXT STATUS: the job ended with 1 and one error line that holds TEXT.
one_error() {
    check_eq 'exit code' "$2" 1
    check_eq 'error lines' "$(grep -c '^dtrain: error:' "$tmp/err")" 1
    grep '^dtrain: error:' "$tmp/err" | grep -F "$1" || fail_with "$tmp/err" "the error lacks '$1'"
    wait_until gone || fail 'a process is left'
}

# ---- damaged -------------------------------------------------------------------------------------
good "$tmp/half" train.max_steps=100 test.slow_rank=1 test.slow_secs=0.03
ckpt=ckpt/step-000000100.h5
older=$(steps "$tmp/half" | tail -n 2 | head -n 1)
flip() { printf '\377' | dd of="$1" bs=1 seek=400000 conv=notrunc 2>/dev/null; }
for damage in 'truncate -s 400000' 'truncate -s 0' flip 'rm -f'; do
    rm -rf "$tmp/run"
    cp -a "$tmp/half" "$tmp/run"
    $damage "$tmp/run/$ckpt"
    good "$tmp/run"
    ends_as_whole "$tmp/run" "$older"
    [ "$damage" = 'rm -f' ] || expect_line "$tmp/err" "^dtrain: warning: passed over: .*$ckpt"
done
# None is good: an error, and the files stay as they are.
rm -rf "$tmp/run"
cp -a "$tmp/half" "$tmp/run"
there=$(ls "$tmp/run"/ckpt/step-*.h5 | wc -l)
check_ge 'checkpoints' "$there" 2
truncate -s 1000 "$tmp/run"/ckpt/step-*.h5
run "$tmp/run"
one_error "$tmp/run/ckpt: none of its" $?
check_eq 'checkpoints left' "$(ls "$tmp/run"/ckpt/step-*.h5 | wc -l)" "$there"

# ---- weights that are not finite: never saved ----------------------------------------------------
for kind in linear mlp; do
    run "$tmp/$kind" model.kind=$kind model.activation=relu data.scale=1e15 train.optimizer=sgd \
        train.lr=1e9 train.max_steps=1
    one_error 'step 1: a weight is not finite' $?
    check_eq 'what latest.h5 names' "$(readlink "$tmp/$kind/ckpt/latest.h5")" step-000000000.h5
done

# ---- a full disk ---------------------------------------------------------------------------------
mkdir "$tmp/disk"
[ "$(id -u)" -eq 0 ] && mount -t tmpfs -o size=5m none "$tmp/disk" 2>/dev/null ||
    skip 'in part: no mounts here, a full disk was not tried'
at_exit "umount -l $tmp/disk"
fill() { dd if=/dev/zero of="$tmp/disk/filler" bs=4k 2>/dev/null; }
later() { [ "$(record "$tmp/disk/run" checkpoint step)" -ge "$1" ]; }

# During the run, for a while: no save that fails, and no record, ends it.
run "$tmp/disk/run" test.slow_rank=1 test.slow_secs=0.05 run.log_steps=5 &
wait_until later 20 || fail_with "$tmp/err" 'no checkpoints'
fill
wait_until grep -q '^dtrain: warning: checkpoint of step .*No space' "$tmp/err" || fail 'no warning'
rm "$tmp/disk/filler"
wait $! || fail_with "$tmp/err" 'a disk that was full for a while'
grep '^dtrain: warning: checkpoint' "$tmp/err" | head -n 1
check_eq 'records' "$(records "$tmp/disk/run" train step | xargs)" "$(seq 5 5 320 | xargs)"
check_eq 'params_crc32c' "$(crc "$tmp/disk/run")" "$(crc "$tmp/whole")"

# Until the end: what was saved before still loads. The error is the save's, not a pending record's.
rm -rf "$tmp/disk/run"
run "$tmp/disk/run" test.slow_rank=1 test.slow_secs=0.05 run.log_steps=5 &
wait_until later 20 || fail_with "$tmp/err" 'no checkpoints'
fill
wait $!
one_error 'step-000000320.h5' $?
rm "$tmp/disk/filler"
good "$tmp/disk/run"
from=$(sed -n 's/.*resuming at step \([0-9]*\).*/\1/p' "$tmp/err")
check_ge 'resumed from' "$from" 20
check_eq 'params_crc32c' "$(crc "$tmp/disk/run")" "$(crc "$tmp/whole")"

# At an early stop, with nothing saved but step 0.
rm -rf "$tmp/disk/run"
run "$tmp/disk/run" test.slow_rank=1 test.slow_secs=0.15 run.checkpoint_steps=0 eval.steps=20 \
    eval.patience=2 train.lr=0 &
wait_until grep -q 'starting at step' "$tmp/err" || fail_with "$tmp/err" 'no start'
fill
wait $!
one_error 'No space' $?
rm "$tmp/disk/filler"

# Under an evaluator whose first export finds the disk full and ends the job: the bank has to stop,
# and cannot save.
rm -rf "$tmp/disk/run"
run "$tmp/disk/run" test.slow_rank=1 test.slow_secs=0.1 eval.dedicated=yes \
    eval.start_delay_secs=20 export.best=yes run.replicas=1 &
wait_until later 20 || fail_with "$tmp/err" 'no checkpoints'
fill
wait $!
one_error 'No space' $?
rm "$tmp/disk/filler"

# From the start.
rm -rf "$tmp/disk/run"
fill
run "$tmp/disk/run"
one_error 'No space' $?
