#!/bin/sh
# Fails if sums or draws depend on ranks, rows are not evaluated, or a checkpoint lacks state. The
# same bits, losses and evaluation at any number of ranks, with a dedicated evaluator, and over a
# kill and a resume; `dtrain eval` measures what was recorded; other data or another network is not
# resumed.
# waits
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/corners.sh"
make_csv "$tmp/data.csv"

# run NP DIR KEY...: 100 steps of 70 rows or less, by three replicas; 600 rows are held out, three
# chunks.
run() {
    np=$1 dir=$2
    shift 2
    job "$np" run.dir="$tmp/$dir" data.train="$tmp/data.csv" data.eval_fraction=0.3 \
        model.hidden=12 model.dropout=0.2 train.optimizer=adam train.lr=0.01 train.batch=70 \
        train.epochs=5 run.replicas=3 run.log_steps=40 run.checkpoint_steps=25 run.keep=0 "$@" \
        2>"$tmp/err"
}
good() { run "$@" || fail_with "$tmp/err" "exit $?: $*"; }
# losses DIR FROM: steps and losses of the train records after a step.
losses() {
    records "$tmp/$1" train step >"$tmp/steps"
    records "$tmp/$1" train loss | paste -d' ' "$tmp/steps" - | awk -v from="$2" '$1 > from' |
        uniq | xargs
}
# same DIR: ends as one process does.
same() {
    check_eq "bits of $1" "$(crc "$tmp/$1")" "$(crc "$tmp/one")"
    for key in step loss samples; do
        check_eq "$key of $1" "$(record "$tmp/$1" final $key)" "$(record "$tmp/one" final $key)"
    done
    for key in rows loss accuracy; do
        check_eq "evaluated $key of $1" "$(record "$tmp/$1" eval $key)" \
            "$(record "$tmp/one" eval $key)"
    done
}

# ---- any number of ranks -------------------------------------------------------------------------
good 1 one
check_eq 'rows held out' "$(record "$tmp/one" eval rows)" 600
check_ge 'accuracy' "$(record "$tmp/one" eval accuracy)" 0.8
check_ge 'loss in training, with dropout' "$(record "$tmp/one" final loss)" \
    "$(record "$tmp/one" eval loss)"
check_le 'last of the losses between records' "$(record "$tmp/one" train loss)" \
    "$(records "$tmp/one" train loss | head -n 1)"
good 3 three
same three
check_eq 'losses of three ranks' "$(losses three 0)" "$(losses one 0)"
good 3 evaluator eval.dedicated=yes
same evaluator
"$dtrain" eval "$tmp/three/export/latest" >"$tmp/json" || fail eval
for key in rows loss accuracy confusion; do
    check_eq "$key by dtrain eval" "$(json $key <"$tmp/json")" "$(record "$tmp/three" eval $key)"
done

# ---- killed, and resumed with other ranks --------------------------------------------------------
run 3 killed test.slow_rank=1 test.slow_secs=0.1 &
wait_until grep -q '"kind":"checkpoint","step":[5-9]' "$tmp/killed/metrics.jsonl" ||
    fail 'no checkpoint'
kill -KILL "$(pid "$tmp/killed" dtrain 2)"
wait $! && fail 'a killed rank is no failure'
by_itself $?
wait_until gone || fail 'a process is left'
from=$(readlink "$tmp/killed/ckpt/latest.h5" | sed 's/^step-0*\([0-9]*\).h5$/\1/')
good 2 killed test.slow_rank=1 test.slow_secs=0.05
check_eq 'resumed from' "$(record "$tmp/killed" start step)" "$from"
same killed
check_eq 'losses after the resume' "$(losses killed "$from")" "$(losses one "$from")"
# Time adds up over the starts. Speed is that of this start: 70 rows in 0.05 s are 1,400 a second,
# and a record may come late; with rows of before the kill it is 3,700.
check_ge 'seconds of both starts' "$(record "$tmp/killed" final wall_secs)" 7.4
check_le 'greatest speed' "$(records "$tmp/killed" train samples_per_sec | sort -g | tail -n 1)" \
    2400

# ---- refused -------------------------------------------------------------------------------------
run 1 one model.hidden=13 train.epochs=6 && fail 'another network is resumed'
expect_line "$tmp/err" '^dtrain: error:.*model.hidden=13' 'the key is not named'
sed -i '2s/^./7/' "$tmp/data.csv"
run 1 one train.epochs=6 && fail 'other data is resumed'
expect_line "$tmp/err" '^dtrain: error:.*data.train' 'the data is not named'
