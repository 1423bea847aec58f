#!/bin/sh
# Runs a fuzzer from samples of what it reads: tests/fuzz/fuzz.sh PROGRAM SECS. An input that it
# fails on stays in $BUILD/fuzz and is named at the end.
. "$(dirname "$0")/../e2e/lib.sh"
program=$root/$1 secs=$2
need clang
seeds=$tmp/seeds data=$recipes/data
mkdir "$seeds"
# seed NAME FILE: behind a byte of options.
seed() { { printf '\2'; cat "$2"; } >"$seeds/$1"; }
set --
case $program in
*_config)
    cp "$recipes"/*.ini "$seeds"
    set -- -dict="$root"/tests/fuzz/config.dict
    ;;
*_space)
    echo 'train.lr=log 1e-4..1e-1; model.hidden=64|128|256,128; model.dropout=0|0.1..0.4' \
        >"$seeds/usual"
    echo 'model.activation=turn relu|tanh; train.batch=8..64;train.optimizer=adamw' >"$seeds/words"
    ;;
*_checkpoint)
    "$recipes/exp-data.sh" "$tmp/data"
    "$dtrain" "$recipes/exp-curve.ini" run.dir="$tmp/run" data.train="$tmp/data/train.csv" \
        model.hidden=4 data.eval="$tmp/data/test.csv" train.max_steps=2 2>"$tmp/err" ||
        { cat "$tmp/err"; fail 'a checkpoint'; }
    # Of a table's columns: gaps and texts whole, texts as entries, hashed ones.
    n=0
    for columns in data.missing=flag 'data.missing=mean model.embedding=2' \
        'data.hash_bits=4 model.embedding=2' data.encode=ple \
        'data.encode=cosine model.embedding=2'; do
        # shellcheck disable=SC2086 # words
        "$dtrain" run.dir="$tmp/table/run$((n += 1))" data.train="$data/penguins.csv" \
            data.label=species data.missing=mean model.hidden=3 train.max_steps=1 $columns \
            2>"$tmp/err" || { cat "$tmp/err"; fail 'a table'; }
    done
    for file in "$tmp"/run/ckpt/step-*.h5 "$tmp"/run/export/best/*/model.h5 \
        "$tmp"/table/run*/export/latest/*/model.h5; do
        "$program" --table "$file" >"$seeds/$(echo "$file" | tr / -)" || fail "no table of $file"
    done
    set -- -max_len=32768
    ;;
*_csv | *_rows)
    head -n 20 "$data/penguins.csv" >"$tmp/rows"
    seed penguins "$tmp/rows"
    printf '1,2,3\n4,"5",6e-3\n' >"$tmp/rows"
    seed numbers "$tmp/rows"
    printf '1.5,99999999999999999999,x,2\n' >"$tmp/rows"
    seed long "$tmp/rows"
    printf '[1,2,3]\n{"instances": [[1,2,3],[4,5,6]]}\n' >"$tmp/rows"
    seed json "$tmp/rows"
    # Behind the byte: which columns, and that they are requests too.
    printf '\021{"instances": [{"a":1,"b":[-2.5e1],"c":3},{"input":[1,2,3]},[[1],2,3]]}' \
        >"$seeds/names"
    printf '\024{"inputs": {"a":[1,null,"NA"],"b":["red",1,"r\\u00e9d"]}}' >"$seeds/columns"
    printf '\034{"instances": [[null,"red"],{"b":0.1,"a":2}]}' >"$seeds/table"
    tensor='{"name":"input","datatype":"FP32","shape":[2,3],"data":[[1,2,3],[4,5,6]]}'
    printf '\021{"id":"7","inputs":[%s]}' "$tensor" >"$seeds/tensor"
    ;;
*_libsvm)
    printf '1 1:0.5 3:2\n0 2:1\n' >"$tmp/rows"
    seed rows "$tmp/rows"
    ;;
*_json)
    printf '{"a":1,"b":"r\\u00e9d","y":0}\n{"y":1,"a":null,"b":""}\n' >"$tmp/rows"
    seed rows "$tmp/rows"
    ;;
*_idx)
    {
        printf '\0\0\10\3\0\0\0\2\0\0\0\2\0\0\0\1abcd'
        printf '\0\0\10\1\0\0\0\2\0\1______'
    } >"$tmp/rows"
    seed images "$tmp/rows"
    ;;
esac
cd "$tmp" || exit 1
"$program" -max_total_time="$secs" -rss_limit_mb=4096 -timeout="$((5 * PATIENCE))" \
    -print_final_stats=1 "$@" "$seeds" >"$tmp/log" 2>&1
status=$?
grep -E 'SUMMARY|stat::(number_of_exec|new_units)|terminate' "$tmp/log"
[ $status -eq 0 ] && exit 0
tail -n 60 "$tmp/log"
for input in crash-* timeout-* oom-* leak-*; do
    [ -f "$input" ] && cp "$input" "$root/$BUILD/fuzz/" && echo "input: $BUILD/fuzz/$input"
done
fail "the fuzzer ends with $status"
