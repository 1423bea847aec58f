#!/bin/sh
# Fails if a checkpoint forgets state, or sums or draws depend on the number of ranks.
# With four replicas, dropout, momentum, a cosine schedule and a batch that divides nothing, any
# number of ranks ends with one checksum. So does a run that is stopped at half and resumed, with
# the same number of ranks or another, or in another directory. The reduce exchange promises the
# bits for the same number of ranks only.

# seconds: 180
. "$(dirname "$0")/lib.sh"
"$recipes/exp-data.sh" "$tmp/data"
# A wide net, so that buckets and slices are several.
run() {
    np=$1 dir=$tmp/$2
    shift 2
    job "$np" "$recipes/exp-curve.ini" run.dir="$dir" run.replicas=4 \
        data.train="$tmp/data/train.csv" data.eval="$tmp/data/test.csv" \
        model.hidden=200,150 model.dropout=0.1 train.optimizer=sgd \
        train.lr=0.05 train.batch=37 train.epochs=8 train.decay_steps=112 eval.steps=-1 "$@" \
        >"$tmp/out" 2>&1 ||
        fail_with "$tmp/out" "np $np: $*"
}
run 1 np1
for np in 2 3 7; do
    run $np np$np
    check_eq "params_crc32c at np=$np" "$(crc "$tmp/np$np")" "$(crc "$tmp/np1")"
done

# half NP THEN EXCHANGE: stopped at half with NP ranks, resumed with THEN; $crc is the end's.
half() {
    half=half-$1-$2-$3
    run "$1" "$half" train.exchange="$3" train.max_steps=56
    check_eq 'stopped at' "$(record "$tmp/$half" final step)" 56
    run "$2" "$half" train.exchange="$3"
    crc=$(crc "$tmp/$half")
}
half 3 3 auto
check_eq 'resumed at np=3' "$crc" "$(crc "$tmp/np1")"
half 3 5 auto
check_eq 'resumed at np=5' "$crc" "$(crc "$tmp/np1")"
half 5 1 auto
check_eq 'resumed at np=1' "$crc" "$(crc "$tmp/np1")"
# From a checkpoint of another directory, which the new one holds before it goes on.
run 3 elsewhere run.resume="$tmp/half-5-1-auto/ckpt/step-000000056.h5"
check_eq 'first checkpoint elsewhere' "$(records "$tmp/elsewhere" checkpoint step | head -n 1)" 56
check_eq 'resumed elsewhere' "$(crc "$tmp/elsewhere")" "$(crc "$tmp/np1")"
run 3 reduce train.exchange=reduce
# A rule over whole tensors.
run 1 lamb-1 train.optimizer=lamb
run 7 lamb-7 train.optimizer=lamb
check_eq 'lamb at np=7' "$(crc "$tmp/lamb-7")" "$(crc "$tmp/lamb-1")"
half 3 3 reduce
check_eq 'reduce, resumed at np=3' "$crc" "$(crc "$tmp/reduce")"
