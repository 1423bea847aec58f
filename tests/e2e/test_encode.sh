#!/bin/sh
# Fails if data.encode learns quantiles of other rows, loses bins or frequencies from a model, or
# gives a row other inputs in a stream, a file, a batch, the server or a prediction of some format.
# Any number of ranks, a stream, a kill and a resume must have the same bits. Runs older than the
# key must encode nothing, and new weights start only from a model that encodes alike.
# seconds: 60
# shellcheck disable=SC2086 # lists of keys are words
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/serve.sh"
awk 'BEGIN {
    srand(3)
    print "a,b,flag,zeros,shop,y"
    for (i = 0; i < 22000; i++) {
        a = 4 * rand() - 2
        b = exp(3 * rand())
        k = rand() < 0.5
        z = rand() < 0.6 ? 0 : rand()
        s = int(30 * rand())
        given = rand() < 0.05 ? "" : sprintf("%.6g", b)
        y = sin(5 * a) + cos(b) + z + s % 3
        printf "%.6g,%s,%d,%.4g,s%d,%.6g\n", a, given, k, z, s, y
    }
}' >"$tmp/all.csv"
head -n 1200 "$tmp/all.csv" >"$tmp/rows.csv"
cut -d, -f1-5 "$tmp/rows.csv" >"$tmp/some.csv"
awk -F, 'NR > 1 {
    b = $2 == "" ? "null" : $2
    print "{\"shop\":\"" $5 "\",\"zeros\":" $4 ",\"flag\":" $3 ",\"b\":" b ",\"a\":" $1 "}"
}' "$tmp/some.csv" >"$tmp/rows.jsonl"
keys="data.train=$tmp/rows.csv data.label=y model.task=regress data.eval_fraction=0.2 \
data.missing=flag run.replicas=3 train.batch=60 train.schedule=constant train.epochs=100000 \
eval.patience=0 eval.steps=16 run.checkpoint_steps=8"
train() { # NP NAME KEY...
    np=$1 name=$2
    shift 2
    job "$np" run.dir="$tmp/$name" $keys "$@" 2>"$tmp/err" || fail_with "$tmp/err" "training $name"
}
# answers ROWS: the server's numbers for the instances, which are separated by commas.
answers() {
    ask /v1/models/default:predict "{\"instances\":[$1]}" |
        sed 's/.*\[//; s/\].*//; s/ //g' | tr , '\n' | grep .
}
plain() { sed 's/{"value"://; s/}//'; }
for kind in ple cosine; do
    encode="data.encode=$kind data.encode_bins=6 data.encode_width=3"
    train 1 $kind $encode train.max_steps=48
    train 4 $kind-4 $encode train.max_steps=48
    check_eq "$kind: bits of 4 ranks" "$(crc "$tmp/$kind-4")" "$(crc "$tmp/$kind")"
    "$dtrain" run.dir="$tmp/$kind-killed" $keys $encode >"$tmp/log" 2>&1 &
    killed=$!
    has_three() { [ "$(records "$tmp/$kind-killed" checkpoint step | wc -l)" -ge 3 ]; }
    wait_until has_three || fail_with "$tmp/log"
    kill -9 $killed
    wait $killed 2>/dev/null
    last=$(ls "$tmp/$kind-killed/ckpt" | sed -n 's/^step-0*\([1-9][0-9]*\).h5$/\1/p' | tail -n 1)
    train 2 $kind-killed $encode train.max_steps=$((last + 16))
    train 1 $kind-straight $encode train.max_steps=$((last + 16))
    check_eq "$kind: bits of a resume" "$(crc "$tmp/$kind-killed")" "$(crc "$tmp/$kind-straight")"

    into "$tmp/said" "$dtrain" eval "$tmp/$kind"
    step=$(json step <"$tmp/said")
    check_eq "$kind: error of the best model" "$(json rmse <"$tmp/said")" \
        "$(grep '"rmse"' "$tmp/$kind/metrics.jsonl" | grep "\"step\":$step," | json rmse)"
    into "$tmp/objects" "$dtrain" predict "$tmp/$kind" <"$tmp/rows.jsonl"
    into "$tmp/lines" "$dtrain" predict "$tmp/$kind" <"$tmp/some.csv"
    into "$tmp/files" "$dtrain" predict "$tmp/$kind" data.eval="$tmp/rows.csv"
    cmp "$tmp/objects" "$tmp/lines" && cmp "$tmp/objects" "$tmp/files" ||
        fail "$kind: predictions differ by format"
    serve "$tmp/$kind"
    answers "$(head -n 40 "$tmp/rows.jsonl" | paste -sd,)" >"$tmp/answers"
    head -n 40 "$tmp/objects" | plain | cmp - "$tmp/answers" ||
        fail "$kind: the server's answers differ"
    answers "$(sed -n 7p "$tmp/rows.jsonl")" >"$tmp/answers"
    sed -n 7p "$tmp/objects" | plain | cmp - "$tmp/answers" ||
        fail "$kind: an answer of one row differs"
    kill $server

    for np in 1 4; do # one rank streams what three have room for
        train $np $kind-of-$np $encode data.train="$tmp/all.csv" data.memory_mb=1 \
            train.max_steps=200
    done
    check_eq "$kind: bits of a stream" "$(crc "$tmp/$kind-of-1")" "$(crc "$tmp/$kind-of-4")"
    for memory in 1 1024; do
        "$dtrain" eval "$tmp/$kind" data.eval="$tmp/all.csv" data.memory_mb=$memory 2>"$tmp/err" |
            json rmse >"$tmp/rmse-$memory"
    done
    check_eq "$kind: error on streamed rows" "$(cat "$tmp/rmse-1")" "$(cat "$tmp/rmse-1024")"
done
into "$tmp/out" "$dtrain" inspect "$tmp/ple"
check_eq 'inputs of a network with fractions' "$(awk '$1 == "input" {print $2}' "$tmp/out")" \
    $((4 + 1 + 31 + 3 * 7)) # numbers, the flag, texts, three encoded

# Older runs, and weights to start from.
train 1 none data.encode=none train.max_steps=9
grep -vE '^(encode|preset)' "$tmp/none/config.ini" >"$tmp/old.ini"
job 1 "$tmp/old.ini" run.dir="$tmp/old" 2>"$tmp/err" || fail_with "$tmp/err"
check_eq 'bits of a configuration without the key' "$(crc "$tmp/old")" "$(crc "$tmp/none")"
train 1 more data.encode=ple data.encode_bins=6 run.init="$tmp/ple" train.max_steps=0
expect_no_line "$tmp/err" 'starts fresh'
for other in 'data.encode=cosine' 'data.encode=ple data.encode_bins=5' 'data.encode=none'; do
    train 1 other $other run.init="$tmp/ple" train.max_steps=0
    expect_line "$tmp/err" 'layers/0/weight starts fresh: its inputs are encoded otherwise there'
    rm -r "$tmp/other"
done

expect_error 1 'data.encode=cosine: the run to resume has ple' 1 \
    run.dir="$tmp/ple" $keys data.encode=cosine train.max_steps=60
expect_error 2 'data.encode and data.shape' 1 \
    run.dir="$tmp/no" data.train="$tmp/rows.csv" data.encode=ple data.shape=2x2x1
train 1 texts data.ignore=a,b,zeros data.encode=ple train.max_steps=5
expect_line "$tmp/err" 'warning: data.encode: .* nothing is encoded'
