#!/bin/sh
# Fails if a sample is omitted or drawn twice (with a rate of 0 an epoch's training loss is the loss
# over all rows), an epoch's ragged end hangs, or bits depend on the number of ranks. Seven CSV
# shards of very different sizes, three replicas, a batch that divides nothing, fewer and more
# workers than replicas.
. "$(dirname "$0")/lib.sh"
mkdir "$tmp/data"
seed=0
for rows in 1 13 57 100 403 1200 203; do
    seed=$((seed + 1))
    awk -v n=$rows -v seed=$seed 'BEGIN {
        srand(seed)
        print "a,b,y"
        for (i = 0; i < n; i++) {
            a = rand()
            b = rand()
            printf "%.6f,%.6f,%.6f\n", a, b, a * a + 3 * b + seed
        }
    }' >"$tmp/data/part-$seed.csv"
done
train() {
    ranks=$1 dir=$tmp/$2
    shift 2
    job "$ranks" run.dir="$dir" run.replicas=3 data.train="$tmp/data/part-*.csv" \
        data.eval="$tmp/data/*.csv" model.task=regress model.hidden=20 train.batch=100 \
        train.epochs=3 run.log_steps=20 "$@" >"$tmp/out" 2>&1 || fail_with "$tmp/out" "np $ranks"
}
for np in 2 3 4 8; do
    train $np np$np
    check_eq "steps at np=$np" "$(record "$tmp/np$np" final step)" 60
    check_eq "samples at np=$np" "$(record "$tmp/np$np" final samples)" 5931
    check_eq "params_crc32c at np=$np" "$(crc "$tmp/np$np")" "$(crc "$tmp/np2")"
done
expect_line "$tmp/out" '^dtrain: warning:.*idle' 'no warning of idle workers'
expect_line "$tmp/out" 'batch 100 (33.3 rows a worker), 20 steps an epoch' \
    'rows of those that have a replica'
train 8 few run.replicas=7 train.max_steps=1
expect_line "$tmp/out" '^dtrain: warning: a worker has 14.3 rows per step' 'no warning of few rows'
train 1 alone train.batch=15 train.max_steps=1
! grep 'rows per step' "$tmp/out" || fail 'a worker alone is warned of few rows'
train 4 still train.lr=0
all=$(record "$tmp/still" eval loss)
check_eq 'epochs seen' "$(records "$tmp/still" train loss | wc -l)" 3
for loss in $(records "$tmp/still" train loss); do
    echo "$loss $all" | awk '{exit !($1 - $2 < 1e-6 * $2 && $2 - $1 < 1e-6 * $2)}' ||
        fail "an epoch's loss is $loss, over all rows it is $all"
done
