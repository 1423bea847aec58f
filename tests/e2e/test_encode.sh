#!/bin/sh
# data.encode: any number of ranks, a stream, a kill and a resume have the same bits, and evaluation, predictions of every
# format and the server the same digits. Runs that are older than the key encode nothing; new weights start from a model that
# encodes alike. Would catch quantiles that are learned of other rows, bins or frequencies that a model lacks, rows that a
# window has without z, and inputs of a file that follow another layout than those of a batch.
# seconds: 60
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/serve.sh"
awk 'BEGIN { srand(3); print "a,b,flag,zeros,shop,y"; for (i = 0; i < 22000; i++) {
    a = 4 * rand() - 2; b = exp(3 * rand()); k = rand() < 0.5; z = rand() < 0.6 ? 0 : rand(); s = int(30 * rand())
    printf "%.6g,%s,%d,%.4g,s%d,%.6g\n", a, (rand() < 0.05 ? "" : sprintf("%.6g", b)), k, z, s, sin(5 * a) + cos(b) + z + s % 3 } }' >"$tmp/all.csv"
head -n 1200 "$tmp/all.csv" >"$tmp/rows.csv"
cut -d, -f1-5 "$tmp/rows.csv" >"$tmp/some.csv"
sed '1d; s/,,/,null,/; s/\(.*\),\(.*\),\(.*\),\(.*\),\(.*\)/{"shop":"\5","zeros":\4,"flag":\3,"b":\2,"a":\1}/' "$tmp/some.csv" >"$tmp/rows.jsonl"
keys="data.train=$tmp/rows.csv data.label=y model.task=regress data.eval_fraction=0.2 data.missing=flag run.replicas=3 \
train.batch=60 train.schedule=constant eval.patience=0 eval.steps=16 run.checkpoint_steps=8 train.epochs=100000"
train() { # NP NAME KEY...
    np=$1 name=$2
    shift 2
    # shellcheck disable=SC2086
    job "$np" run.dir="$tmp/$name" $keys "$@" 2>"$tmp/err" || { cat "$tmp/err"; fail "training $name"; }
}
for kind in ple cosine; do
    encode="data.encode=$kind data.encode_bins=6 data.encode_width=3"
    # shellcheck disable=SC2086
    train 1 $kind $encode train.max_steps=48
    # shellcheck disable=SC2086
    train 4 $kind-4 $encode train.max_steps=48
    check_eq "$kind: bits of 4 ranks" "$(crc "$tmp/$kind-4")" "$(crc "$tmp/$kind")"
    # shellcheck disable=SC2086
    "$dtrain" run.dir="$tmp/$kind-killed" $keys $encode >"$tmp/log" 2>&1 &
    killed=$!
    has_three() { [ "$(records "$tmp/$kind-killed" checkpoint step | wc -l)" -ge 3 ]; }
    settle has_three || fail "$(cat "$tmp/log")"
    kill -9 $killed
    wait $killed 2>/dev/null
    last=$(ls "$tmp/$kind-killed/ckpt" | sed -n 's/^step-0*\([1-9][0-9]*\).h5$/\1/p' | tail -n 1)
    # shellcheck disable=SC2086
    train 2 $kind-killed $encode train.max_steps=$((last + 16))
    # shellcheck disable=SC2086
    train 1 $kind-straight $encode train.max_steps=$((last + 16))
    check_eq "$kind: bits of a resume" "$(crc "$tmp/$kind-killed")" "$(crc "$tmp/$kind-straight")"

    "$dtrain" eval "$tmp/$kind" >"$tmp/said" 2>"$tmp/err" || fail "$(cat "$tmp/err")"
    check_eq "$kind: error of the best model" "$(json rmse <"$tmp/said")" "$(grep '"rmse"' "$tmp/$kind/metrics.jsonl" |
        grep "\"step\":$(json step <"$tmp/said")," | json rmse)"
    "$dtrain" predict "$tmp/$kind" <"$tmp/rows.jsonl" >"$tmp/objects" 2>"$tmp/err" || fail "$(cat "$tmp/err")"
    "$dtrain" predict "$tmp/$kind" <"$tmp/some.csv" >"$tmp/lines" 2>"$tmp/err" || fail "$(cat "$tmp/err")"
    "$dtrain" predict "$tmp/$kind" data.eval="$tmp/rows.csv" >"$tmp/files" 2>"$tmp/err" || fail "$(cat "$tmp/err")"
    cmp "$tmp/objects" "$tmp/lines" && cmp "$tmp/objects" "$tmp/files" || fail "$kind: predictions differ by format"
    serve "$tmp/$kind"
    head -n 40 "$tmp/rows.jsonl" | paste -sd, | sed 's/.*/{"instances":[&]}/' >"$tmp/body"
    ask /v1/models/default:predict "$(cat "$tmp/body")" | sed 's/.*\[//; s/\].*//; s/ //g' | tr , '\n' | grep . >"$tmp/answers"
    head -n 40 "$tmp/objects" | sed 's/{"value"://; s/}//' | cmp - "$tmp/answers" || fail "$kind: the server's answers differ"
    ask /v1/models/default:predict "{\"instances\":[$(sed -n 7p "$tmp/rows.jsonl")]}" | sed 's/.*\[//; s/\].*//; s/ //g' | tr , '\n' | grep . >"$tmp/answers"
    sed -n '7{s/{"value"://; s/}//;p}' "$tmp/objects" | cmp - "$tmp/answers" || fail "$kind: an answer of one row differs"
    kill $server

    for np in 1 4; do # one rank streams what three have room for
        # shellcheck disable=SC2086
        train $np $kind-of-$np $encode data.train="$tmp/all.csv" data.memory_mb=1 train.max_steps=200
    done
    check_eq "$kind: bits of a stream" "$(crc "$tmp/$kind-of-1")" "$(crc "$tmp/$kind-of-4")"
    for memory in 1 1024; do
        "$dtrain" eval "$tmp/$kind" data.eval="$tmp/all.csv" data.memory_mb=$memory 2>"$tmp/err" | json rmse >"$tmp/rmse-$memory"
    done
    check_eq "$kind: error on streamed rows" "$(cat "$tmp/rmse-1")" "$(cat "$tmp/rmse-1024")"
done
check_eq 'inputs of a network with fractions' "$("$dtrain" inspect "$tmp/ple" 2>"$tmp/err" | grep -o '^input .*' | awk '{print $2}')" \
    $((4 + 1 + 31 + 3 * 7)) # numbers, the flag, texts, three encoded

# Older runs, and weights to start from.
train 1 none data.encode=none train.max_steps=9
grep -vE '^(encode|preset)' "$tmp/none/config.ini" >"$tmp/old.ini"
job 1 "$tmp/old.ini" run.dir="$tmp/old" 2>"$tmp/err" || fail "$(cat "$tmp/err")"
check_eq 'bits of a configuration without the key' "$(crc "$tmp/old")" "$(crc "$tmp/none")"
train 1 more data.encode=ple data.encode_bins=6 run.init="$tmp/ple" train.max_steps=0
! grep -q 'starts fresh' "$tmp/err" || fail "$(cat "$tmp/err")"
for other in 'data.encode=cosine' 'data.encode=ple data.encode_bins=5' 'data.encode=none'; do
    # shellcheck disable=SC2086
    train 1 other $other run.init="$tmp/ple" train.max_steps=0
    grep -q 'layers/0/weight starts fresh: its inputs are encoded otherwise there' "$tmp/err" || fail "$other: $(cat "$tmp/err")"
    rm -r "$tmp/other"
done

# shellcheck disable=SC2086
expect_error 1 'data.encode=cosine: the run to resume has ple' 1 run.dir="$tmp/ple" $keys data.encode=cosine train.max_steps=60
expect_error 2 'data.encode and data.shape' 1 run.dir="$tmp/no" data.train="$tmp/rows.csv" data.encode=ple data.shape=2x2x1
train 1 texts data.ignore=a,b,zeros data.encode=ple train.max_steps=5
grep -q 'warning: data.encode: .* nothing is encoded' "$tmp/err" || fail "$(cat "$tmp/err")"
