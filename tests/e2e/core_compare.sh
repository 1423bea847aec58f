#!/bin/sh
# Fails if `dtrain compare` shows other numbers than the records have, or hides what differs. Three
# runs as a table, as CSV and as JSON: the best first; what is not a run is named, and the rest is
# compared.
. "$(dirname "$0")/lib.sh"
for lr in 0.1 0.02 0.0001; do
    job 2 "$recipes/penguins.ini" run.dir="$tmp/lr$lr" train.lr=$lr train.epochs=4 2>"$tmp/err" ||
        fail "$(cat "$tmp/err")"
done
"$dtrain" compare "$tmp/lr0.0001" "$tmp/lr0.02/" "$tmp/lr0.1" >"$tmp/table" || fail compare
cat "$tmp/table"
expect_line "$tmp/table" '^All runs: metric accuracy, .*status completed$' \
    'what is common does not stand above'
check_eq 'columns that differ' "$(sed -n '3s/.*secs *//; 3s/ *$//p' "$tmp/table")" train.lr
check_eq 'columns' "$(sed -n 3p "$tmp/table" | awk '{print $1, $2, $NF}')" 'run best train.lr'
check_eq 'the last one' "$(sed -n '$s/ .*//p' "$tmp/table")" "$tmp/lr0.0001"
"$dtrain" compare --csv "$tmp"/lr* >"$tmp/csv"
check_eq 'CSV header' "$(head -n 1 "$tmp/csv")" \
    run,metric,best,best_step,step,samples_per_sec,wall_secs,status,train.lr
check_eq 'best of CSV' "$(grep lr0.0001 "$tmp/csv" | cut -d, -f3)" \
    "$(records "$tmp/lr0.0001" eval accuracy | sort -g | tail -n 1)"
check_eq 'speed of CSV' "$(grep lr0.02 "$tmp/csv" | cut -d, -f6)" \
    "$(record "$tmp/lr0.02" final samples_per_sec)"
"$dtrain" compare "$tmp"/lr* --json >"$tmp/json"
"$dtrain" compare "$tmp"/lr* --csv --json >"$tmp/both"
check_eq 'the form that is named last alone' "$(cksum <"$tmp/both")" "$(cksum <"$tmp/json")"
check_eq 'status of JSON' "$(grep 'lr0.1"' "$tmp/json" | json status)" completed
check_eq 'rate of JSON' "$(grep 'lr0.1"' "$tmp/json" | json train.lr)" 0.1

# A run that goes on after its end has the speed and the time of now, not of the record of that end.
cp -r "$tmp/lr0.1" "$tmp/again"
step=$(record "$tmp/again" final step)
{
    echo "{\"kind\":\"start\",\"step\":$step}"
    echo "{\"kind\":\"train\",\"step\":$((step + 1)),\"samples_per_sec\":7,\"wall_secs\":123456}"
} >>"$tmp/again/metrics.jsonl"
"$dtrain" compare --json "$tmp/again" >"$tmp/json"
went_on="$(json step <"$tmp/json") $(json samples_per_sec <"$tmp/json")"
check_eq 'steps, speed and time of a run that goes on' \
    "$went_on $(json wall_secs <"$tmp/json")" "$((step + 1)) 7 123456"

# Runs of one metric stand together; what has no configuration hides no differences of the others.
eval_run() {
    mkdir "$tmp/$1"
    echo "{\"kind\":\"start\",\"step\":0,\"metric\":\"$2\"}
{\"kind\":\"eval\",\"step\":1,\"loss\":1,\"$2\":$3}" >"$tmp/$1/metrics.jsonl"
}
eval_run low accuracy 0.3
eval_run far rmse 5
eval_run high accuracy 0.4
eval_run near rmse 2
"$dtrain" compare --csv "$tmp/low" "$tmp/far" "$tmp/high" "$tmp/near" "$tmp/lr0.1" "$tmp/lr0.02" \
    >"$tmp/csv" || fail 'compare of two metrics'
check_eq 'order' "$(cut -d, -f1 "$tmp/csv" | tail -n 4 | sed 's,.*/,,' | paste -s -d ' ')" \
    'high low near far'
check_eq 'columns without a configuration' "$(head -n 1 "$tmp/csv" | cut -d, -f9-)" train.lr
# Letters of more bytes than one stand in their columns.
for name in u ü; do
    eval_run $name accuracy 0.5
    printf '[data]\ntrain = %s\n[run]\nseed = %s\n' "$name/$(printf ' ü%.0s' $(seq 12))" $name \
        >"$tmp/$name/config.ini"
done
"$dtrain" compare "$tmp/u" "$tmp/ü" | grep -q '^run  *best' ||
    fail 'a best that all have is not in its column'
"$dtrain" compare "$tmp/u" "$tmp/ü" | sed "s,.*/,,; s/ü/u/g" | tail -n 2 | uniq >"$tmp/out"
check_eq 'lines that ü makes another of' "$(wc -l <"$tmp/out")" 1
check_eq 'a text that is cut' "$(sed 's/.*\(\.\.\..*[^ ]\)  u$/\1/' "$tmp/out")" \
    "...$(printf 'u %.0s' $(seq 8))u"
# What a terminal obeys is not printed: ESC [, and in one character U+009B.
eval_run odd accuracy 0.5
printf '[data]\ntrain = a\033[1m\302\2331mb\n' >"$tmp/odd/config.ini"
"$dtrain" compare "$tmp/odd" "$tmp/low" "$tmp/u" >"$tmp/out"
check_eq 'a text with controls' "$(grep -a -o 'a[^ ]*1mb' "$tmp/out")" 'a?[1m?1mb'
mkdir "$tmp/notes"
"$dtrain" compare "$tmp/lr0.1" "$tmp/csv" "$tmp/notes" >"$tmp/out" 2>"$tmp/err" ||
    fail 'compare with what is not a run'
check_eq 'named as no runs' "$(grep -cE 'warning:.*/(csv|notes) is not a run' "$tmp/err")" 2
expect_line "$tmp/out" 'lr0.1 .*completed' 'the runs beside it are not shown'
ln -s metrics.jsonl "$tmp/notes/metrics.jsonl" # nobody can tell whether that is a run
"$dtrain" compare "$tmp/lr0.1" "$tmp/notes" >"$tmp/out" 2>"$tmp/err"
check_eq 'exit code with what cannot be looked at' $? 1
"$dtrain" compare "$tmp/csv" >"$tmp/out" 2>"$tmp/err"
check_eq 'exit code without a run' $? 1
"$dtrain" compare "$tmp/lr0.1" "$tmp/lr0.2" >"$tmp/out" 2>"$tmp/err"
check_eq 'exit code with nothing there' $? 1
expect_line "$tmp/out" 'lr0.1 .*completed' 'the run beside nothing is not shown'
check_eq 'error lines' "$(grep -c '^dtrain: error:.*metrics.jsonl' "$tmp/err")" 1
