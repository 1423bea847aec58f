#!/bin/sh
# Fails if a resume forgets loss sums of the open window or weights of rows, draws twice or not at
# all, counts rows of before in the speed of now, or takes other data. It goes on as if nothing had
# been: from a checkpoint in the middle of a log window the records and the bits are those of the
# whole run. In async weights depend on timing: with a rate of 0 and one worker the losses say what
# was drawn.
# waits
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/corners.sh"
make_csv "$tmp/data.csv"

run() {
    np=$1 dir=$2
    shift 2
    job "$np" run.dir="$tmp/$dir" data.train="$tmp/data.csv" model.hidden=12 model.dropout=0.2 \
        train.batch=90 train.epochs=5 run.log_steps=40 run.checkpoint_steps=25 run.keep=0 \
        run.replicas=3 eval.steps=-1 "$@" 2>"$tmp/err"
}
good() { run "$@" || fail_with "$tmp/err" "exit $?: $*"; }
# losses DIR FROM: step and loss of the train records after a step.
losses() {
    records "$tmp/$1" train step >"$tmp/steps"
    records "$tmp/$1" train loss | paste -d' ' "$tmp/steps" - | awk -v from="$2" '$1 > from' |
        tr '\n' ' '
}
for mode in sync async; do
    np=3 lr='0.003 train.optimizer=adam'
    [ $mode = async ] && np=2 lr=0
    # Slow enough that no save is passed over because the one before is under way; where one is, the
    # next try is slower.
    for try in 1 2 3; do
        rm -rf "$tmp/$mode"
        good $np $mode train.mode=$mode train.lr=$lr export.latest=no test.slow_rank=1 \
            test.slow_secs="$(echo "$try" | awk '{print 0.02 * 5 ^ ($1 - 1)}')"
        [ "$(ls "$tmp/$mode/ckpt" | grep -c 'step-0000000\(25\|50\|75\)')" -lt 3 ] || break
    done
    for step in 25 50 75; do
        slow='' && [ $step = 75 ] && slow='test.slow_rank=1 test.slow_secs=0.05'
        # shellcheck disable=SC2086  # words
        good $np $mode-$step train.mode=$mode train.lr=$lr $slow \
            run.resume="$tmp/$mode/ckpt/step-0000000$step.h5"
        check_eq "$mode from step $step: losses" "$(losses $mode-$step $step)" \
            "$(losses $mode $step)"
        check_eq "$mode from step $step: samples" "$(record "$tmp/$mode-$step" final samples)" \
            "$(record "$tmp/$mode" final samples)"
        # At least 20 ms a step before.
        check_ge "$mode from step $step: wall_secs" "$(record "$tmp/$mode-$step" final wall_secs)" \
            "$(echo "$step" | awk '{print $1 * 0.02}')"
        check_eq "$mode from step $step: bits" "$(crc "$tmp/$mode-$step")" "$(crc "$tmp/$mode")"
    done
    # 90 rows in 50 ms are 1,800 a second, also where the rows of a log window were computed before,
    # in part; a record may come late.
    check_le "$mode from step 75: greatest speed" \
        "$(records "$tmp/$mode-75" train samples_per_sec | sort -g | tail -n 1)" 6000
    # The same command goes there once more, and says what it discards.
    grep -q 'discards the run' "$tmp/err" && fail 'a new run discards nothing'
    good $np $mode-75 train.mode=$mode train.lr=$lr run.resume="$tmp/$mode/ckpt/step-000000075.h5"
    last=$(record "$tmp/$mode" final step)
    grep -q "warning: run.resume=.*/step-000000075.h5: .* discards .* to step $last " "$tmp/err" ||
        fail_with "$tmp/err" 'a run discards its checkpoints in silence'
done

# A run that was killed after its last checkpoint records its whole end when started again.
cp -r "$tmp/sync" "$tmp/untold"
sed -i '/"kind":"final"/d' "$tmp/untold/metrics.jsonl"
good 3 untold train.mode=sync train.lr=0.003 train.optimizer=adam
for key in status step loss samples params_crc32c; do
    check_eq "$key at an end that was not told" "$(record "$tmp/untold" final $key)" \
        "$(record "$tmp/sync" final $key)"
done

# Weights of the rows and of the classes are no part of a model: a resume learns them again.
awk 'NR == 1 {print "w,a,b,c,d,y"} {print NR % 7 "," $0}' "$tmp/data.csv" >"$tmp/weighted.csv"
for weights in data.weight=w data.weight=0 train.class_weight=balanced; do
    weighed="data.train=$tmp/weighted.csv train.lr=0.1 $weights"
    [ $weights = train.class_weight=balanced ] && weighed="$weighed data.ignore=w"
    good 2 "$weights" $weighed train.max_steps=60
    good 2 "$weights-cut" $weighed train.max_steps=25
    good 2 "$weights-cut" $weighed train.max_steps=60
    check_eq "$weights, stopped and resumed: bits" "$(crc "$tmp/$weights-cut")" \
        "$(crc "$tmp/$weights")"
done

# Where the workers' time goes adds up to the time: nothing is counted twice.
all=0
for part in compute data wait reduce update network; do
    all="$all + $(record "$tmp/sync" final ${part}_secs)"
done
samples=$(record "$tmp/sync" final samples) rate=$(record "$tmp/sync" final samples_per_sec)
check_le 'parts of the time' "$(echo "$samples $rate $all" | awk '{
    for (i = 3; i <= NF; i++) sum += $i
    print sum / ($1 / $2)
}')" 1.05

sed 1d "$tmp/data.csv" >"$tmp/fewer.csv"
mv "$tmp/fewer.csv" "$tmp/data.csv"
expect_error 1 data.train= 3 run.dir="$tmp/other" data.train="$tmp/data.csv" model.hidden=12 \
    model.dropout=0.2 train.batch=90 train.epochs=5 run.replicas=3 train.optimizer=adam \
    run.resume="$tmp/sync/ckpt/step-000000050.h5"
[ ! -e "$tmp/other/metrics.jsonl" ] || fail 'a run on other data has begun'
# So are other values in as many rows: of text each is compared, of binary files blocks.
for kind in csv idx; do
    if [ $kind = csv ]; then
        printf 'a,b,y\n1,2,0\n3,4,1\n5,6,0\n' >"$tmp/values"
        set -- "$tmp/values"
        change='s/5,6/6,5/'
    else
        printf '\0\0\10\2\0\0\0\4\0\0\0\2abcdefgh' >"$tmp/values"
        printf '\0\0\10\1\0\0\0\4\0\1\0\1' >"$tmp/labels"
        set -- "$tmp/values" data.train_labels="$tmp/labels"
        change='s/gh$/hg/'
    fi
    "$dtrain" -q run.dir="$tmp/$kind" data.train="$@" data.format=$kind train.max_steps=1 ||
        fail "$kind"
    touch "$tmp/$kind/config.ini.tmp-0123456789abcdef" "$tmp/$kind/notes.tmp-1"
    "$dtrain" -q run.dir="$tmp/$kind" data.train="$@" data.format=$kind train.max_steps=2 ||
        fail "$kind, on the same data"
    check_eq 'what a kill left, and what is of others' "$(cd "$tmp/$kind" && ls -d *.tmp-*)" \
        notes.tmp-1
    sed -i "$change" "$tmp/values"
    for steps in 2 3; do # a run that is over, and one that goes on
        "$dtrain" -q run.dir="$tmp/$kind" data.train="$@" data.format=$kind train.max_steps=$steps \
            2>"$tmp/err" && fail "$kind: other values are taken for the same"
        grep -q 'values, the order of rows, or how they are written, are not those' "$tmp/err" ||
            fail "$(cat "$tmp/err")"
    done
done
