#!/bin/sh
# Fails if run.precision=bf16 has other bits at another number of ranks, from factors of gradients
# or from whole ones, over a kill or a resume. Evaluation and prediction are in f32; a resume in
# another precision is refused by name. bf16 is rounding in f32 here, so the test runs on any CPU.
. "$(dirname "$0")/lib.sh"
data=$tmp/data.csv
awk 'BEGIN {
    OFS = ","
    for (i = 0; i < 1500; i++) print i % 7 / 7, i % 11 / 11, i % 13 / 13, i % 17 / 17, i % 5 % 3
}' >"$data"

# bf16 NP NAME ARGS...: a run in bf16 of 40 steps.
bf16() {
    np=$1 name=$2
    shift 2
    job "$np" train run.dir="$tmp/$name" data.train="$data" data.header=no data.eval_fraction=0.2 \
        model.hidden=96,80 model.dropout=0.1 train.optimizer=adam train.lr=0.003 train.batch=60 \
        train.max_steps=40 run.replicas=3 run.log_steps=10 run.precision=bf16 \
        run.kernel=Haswell-bf16-reference "$@" >"$tmp/log" 2>&1
}

bf16 1 one || fail_with "$tmp/log" 'a run in bf16'
check_eq 'kernel' "$(record "$tmp/one" start kernel)" Haswell-bf16-reference
check_eq 'warnings of a kernel that was asked for' \
    "$(grep warning "$tmp/log" | grep -vc baseline)" 0
for np in 2 3 5; do
    bf16 $np np$np || fail "np $np"
    check_eq "crc at np $np" "$(crc "$tmp/np$np")" "$(crc "$tmp/one")"
done
# The second layer's gradient stays factors; with the norm it is whole.
bf16 3 whole train.clip_norm=1e9 || fail 'whole gradients'
check_eq 'crc with whole gradients' "$(crc "$tmp/whole")" "$(crc "$tmp/one")"
bf16 1 exact run.precision=f32 run.kernel=Haswell || fail 'f32'
[ "$(crc "$tmp/exact")" != "$(crc "$tmp/one")" ] || fail 'bf16 has the bits of f32'

bf16 3 half train.max_steps=17 || fail 'the first half'
bf16 2 half || fail 'the second half'
check_eq 'crc behind a resume' "$(crc "$tmp/half")" "$(crc "$tmp/one")"
bf16 1 half run.precision=f32 run.kernel=Haswell train.max_steps=50 &&
    fail 'a resume in another precision'
check_eq 'refusals' "$(grep -c 'run.precision=f32: the run to resume has bf16' "$tmp/log")" 1

# The digits of the last evaluation come again without bf16.
loss=$(record "$tmp/one" eval loss)
check_eq 'loss by dtrain eval' \
    "$("$dtrain" eval "$tmp/one/ckpt" run.kernel=Haswell 2>"$tmp/log" | json loss)" "$loss"

job 3 train run.dir="$tmp/async" data.train="$data" data.header=no model.hidden=48,32 \
    train.mode=async train.max_steps=200 run.precision=bf16 run.kernel=Haswell-bf16-reference \
    >"$tmp/log" 2>&1 || fail 'async in bf16'
check_eq 'async steps' "$(record "$tmp/async" final step)" 200
