#!/bin/sh
# Fails if async loses gradients or counts them twice, over a stop or a resume too, exceeds the
# bound of the clock gap, waits for a slow worker without a bound, or differs from sync with the
# bound 0. Also fails if an option breaks the run, or an error does not say what helps.
# seconds: 180
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/corners.sh"

make_csv "$tmp/data.csv"

# run NP NAME KEYS...: an async run below $tmp/NAME; its output in $tmp/out.
run() {
    np=$1 dir=$tmp/$2
    shift 2
    job "$np" run.dir="$dir" data.train="$tmp/data.csv" data.eval_fraction=0.1 model.hidden=24 \
        train.mode=async train.batch=60 train.epochs=10 train.lr=0.05 train.momentum=0.5 \
        run.log_steps=50 "$@" >"$tmp/out" 2>&1
}
good() {
    run "$@" || fail_with "$tmp/out" "exit $?: $*"
    ! grep -i "[ -]nan " "$tmp/out" || fail "progress of nothing: $*"
}

# accounts NAME STEPS: every gradient was sent, applied and counted once.
accounts() {
    check_eq "$1: steps" "$(record "$tmp/$1" final step)" "$2"
    check_eq "$1: sent" "$(record "$tmp/$1" final gradients_sent)" "$2"
    check_eq "$1: applied" "$(record "$tmp/$1" final gradients_applied)" "$2"
}
# counts NAME KEY: a list of the final record, as words.
counts() {
    sed -n "/\"final\"/s/.*\"$2\": *\[\([0-9, ]*\)\].*/\1/p" "$tmp/$1/metrics.jsonl" |
        tail -n 1 | tr , ' '
}

# 1800 rows, 30 steps an epoch and replica.
for np in 2 3 5; do
    good $np np$np
    accounts np$np $((10 * 30 * (np - 1)))
    check_eq "staleness counted at np=$np" "$(counts np$np staleness_histogram | tr ' ' '\n' |
        awk '{n += $1} END {print n}')" $((300 * (np - 1)))
    check_ge "accuracy at np=$np" "$(record "$tmp/np$np" eval accuracy)" 0.85
    # Each moment of training counts once.
    check_ge "seconds at np=$np" "$(record "$tmp/np$np" final wall_secs)" "$(
        echo "$(record "$tmp/np$np" final samples) $(record "$tmp/np$np" final samples_per_sec)" |
            awk '{print $1 / $2}')"
done
# What dtrain(1) says of the records is in them.
has() {
    kind=$1
    shift
    for key; do
        [ -n "$(record "$tmp/np5" "$kind" "$key")" ] || fail "a record '$kind' has no $key"
    done
}
has start step mode exchange size workers replicas hosts params batch kernel threads
has start samples_per_epoch config_crc32c time_unix metric
has train step epoch samples wall_secs loss lr samples_per_sec staleness_mean staleness_max
has eval step rows loss confusion secs wall_secs
has checkpoint step file secs
has final status step epoch samples loss samples_per_sec wall_secs bank_cpu_secs params_crc32c
has final gradients_sent gradients_applied clock_gap_max staleness_histogram bank_busy_secs
has final worker_sent worker_applied worker_wait_ms slice_applied
good 4 options train.staleness_lr=yes train.clip_norm=1 \
    train.optimizer=adam train.lr=0.005 train.warm_start_steps=200 model.dropout=0.1
accounts options 900
set -- $(counts options worker_applied)
check_ge 'warm start: gradients of the first worker' "$1" 200
check_ge 'accuracy with every option' "$(record "$tmp/options" eval accuracy)" 0.85

# Checkpoints by the clock, at whatever step it is: the weights rest for them, and nothing is lost.
good 3 clock run.checkpoint_secs=0.02 export.latest=no export.best=no train.epochs=300
accounts clock 18000
check_ge 'checkpoints by the clock' "$(records "$tmp/clock" checkpoint step | wc -l)" 4

# Uneven: more replicas than workers, fewer, and a cap on steps.
good 3 many run.replicas=5 train.max_steps=333
accounts many 333
expect_no_line "$tmp/out" ' idle: ' 'workers that have replicas are said to idle'
good 5 few run.replicas=2 train.epochs=5
accounts few 300

# A worker without a replica waits and does not compute.
good 3 idle run.replicas=1 train.epochs=5 test.slow_rank=1 test.slow_secs=0.005
expect_line "$tmp/out" '1 of 2 workers have no replica and idle: run.replicas=1' \
    'idle workers are not reported'
check_le 'of the time of a worker at work and one that idles, per cent' \
    "$(sed -n "s/.*a worker's time: compute and update \([0-9]*\) %.*/\1/p" "$tmp/out")" 60
set -- $(counts idle worker_sent) $(counts idle worker_wait_ms)
check_eq 'gradients of the one that idles' "$2" 0
check_ge 'milliseconds that it waits' "$4" 300

# With fewer rows than replicas each gradient still has one row.
good 4 tiny train.batch=1 train.epochs=0.1
expect_line "$tmp/out" 'warning: train.mode=async: .* an epoch is up to 3 epochs'

# Without a bound no worker waits for the slow one; with a bound none runs ahead.
slow='test.slow_rank=2 test.slow_secs=0.02'
good 4 unbounded $slow test.slow_secs=1 train.epochs=4
set -- $(counts unbounded worker_applied)
check_le 'gradients of the slow worker' "$2" $((($1 + $3) / 4))
good 4 bounded $slow train.epochs=1 train.staleness=4
accounts bounded 90
check_le 'clock gap' "$(record "$tmp/bounded" final clock_gap_max)" 4
set -- $(counts bounded worker_applied)
check_le 'lead of the fast worker' $(($1 - $2)) 10
# A worker is killed: the job ends soon and names it; the next start goes on from the checkpoint.
run 3 kill train.epochs=1000000 run.checkpoint_steps=100 &
await_checkpoint "$tmp/kill" || fail 'no checkpoint'
kill -9 "$(pid "$tmp/kill" dtrain 2)"
wait $!
status=$?
[ $status -ne 0 ] || fail 'a killed worker: exit 0'
by_itself $status
expect_rank 2 $status "$tmp/out"
wait_until gone || fail 'a process is left'
at=$(latest_step "$tmp/kill")
good 3 kill train.epochs=1000000 train.max_steps=$((at + 400))
check_eq 'resumed from' "$(record "$tmp/kill" start step)" "$at"
accounts kill $((at + 400))

# Every loss is infinite before the checkpoint that is due: pending gradients keep no rank waiting.
yes "$(printf '3e38,-3e38,north\n3e38,-3e38,west')" | head -n 200 >"$tmp/huge.csv"
expect_error 1 'the loss of replica' 3 data.train="$tmp/huge.csv" data.normalize=none \
    run.dir="$tmp/huge" train.mode=async train.batch=20 run.checkpoint_steps=1

# One worker alone cannot be a bank; an error says that there is no room for shared memory.
expect_error 2 train.mode=async 1 data.train="$tmp/data.csv" run.dir="$tmp/none" train.mode=async
! can_do_without_shm || without_shm expect_error 1 '/dev/shm has 0 MB free' 3 \
    data.train="$tmp/data.csv" run.dir="$tmp/none" train.mode=async
