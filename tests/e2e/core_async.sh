#!/bin/sh
# Fails if async loses a gradient, counts it or its time twice, or assigns a ticket twice. Every
# gradient is sent, applied and counted once, over a stop (75) and a resume with another number of
# ranks; a bound of 0 is sync; checkpoints come when they are due.
# waits
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/corners.sh"
make_csv "$tmp/data.csv"

# run NP DIR KEY...: 34 gradients an epoch and replica.
run() {
    np=$1 dir=$2
    shift 2
    job "$np" run.dir="$tmp/$dir" data.train="$tmp/data.csv" data.eval_fraction=0.1 \
        model.hidden=24 train.mode=async train.batch=60 train.epochs=10 train.lr=0.05 \
        train.momentum=0.5 run.log_steps=50 "$@" 2>"$tmp/err"
}
good() { run "$@" || fail_with "$tmp/err" "exit $?: $*"; }
# accounts DIR STEPS: every gradient was sent, applied and counted once.
accounts() {
    for count in step gradients_sent gradients_applied; do
        check_eq "$1: $count" "$(record "$tmp/$1" final $count)" "$2"
    done
}

good 3 whole
accounts whole 600
check_eq 'staleness counted' "$(sed -n 's/.*"staleness_histogram": *\[\([^]]*\).*/\1/p' \
    "$tmp/whole/metrics.jsonl" | tr , '\n' | awk '{n += $1} END {print n}')" 600
check_ge accuracy "$(record "$tmp/whole" eval accuracy)" 0.8
check_ge seconds "$(record "$tmp/whole" final wall_secs)" \
    "$(echo "$(record "$tmp/whole" final samples) $(record "$tmp/whole" final samples_per_sec)" |
        awk '{print $1 / $2}')"

run 3 stopped train.epochs=1000000 &
wait_until grep -q '"kind":"train"' "$tmp/stopped/metrics.jsonl" ||
    fail_with "$tmp/err" 'it does not start'
kill -USR1 "$(pid "$tmp/stopped" mpirun)"
wait $!
check_eq 'exit code of a stop' $? 75
at=$(record "$tmp/stopped" final step)
accounts stopped "$at"
good 4 stopped train.epochs=1000000 train.max_steps=$((at + 300))
accounts stopped $((at + 300))
check_eq 'samples over the resume' "$(record "$tmp/stopped" final samples)" $(((at + 300) * 30))

good 3 zero train.staleness=0 train.epochs=2
good 1 sync train.mode=sync train.epochs=2 run.replicas=2
check_eq 'bits at bound 0' "$(crc "$tmp/zero")" "$(crc "$tmp/sync")"

# A save that is due while another one is written is passed over: slower steps give it time.
for secs in 0.02 0.5; do
    rm -rf "$tmp/saves"
    good 2 saves test.slow_rank=1 test.slow_secs=$secs train.max_steps=25 run.checkpoint_steps=10 \
        eval.steps=-1
    ! records "$tmp/saves" checkpoint step | grep -qx '[12]0' || break
done
records "$tmp/saves" checkpoint step | grep -qx '[12]0' ||
    fail "checkpoints of steps $(records "$tmp/saves" checkpoint step | xargs)"
