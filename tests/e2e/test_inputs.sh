#!/bin/sh
# Fails if the order of day and month in dates is not kept, a label is looked up as a name, or a
# pipe is opened twice. A model learns the weekday from dates, to the same bits at np = 1 and 3,
# over a stop and a resume, and from a pipe; eval, predict of CSV and JSON, and shards read them
# alike.
. "$(dirname "$0")/lib.sh"
awk 'BEGIN {
    srand(4)
    print "when,shop,y"
    split("31,28,31,30,31,30,31,31,30,31,30,31", days, ",")
    for (i = 0; i < 400; i++) {
        m = 1 + int(12 * rand())
        d = 1 + int(days[m] * rand())
        # Zeller: the weekday in 2021, 0 for Sunday. January and February are months 11 and 12.
        t = m < 3 ? m + 10 : m - 2
        w = (d + int((13 * t - 1) / 5) + 15 + (m < 3 ? -1 : 0)) % 7
        date = rand() < .05 ? "" : d "." m ".2021"
        printf "%s,s%d,%d\n", date, 3 * rand(), w == 0 || w == 6 ? 2 : w < 3
    }
}' >"$tmp/a.csv"
printf 'early\nlate, in the week\nweekend\n' >"$tmp/names"
train() {
    np=$1 dir=$tmp/$2
    shift 2
    job "$np" data.train="$tmp/a.csv" data.missing=flag data.eval_fraction=0.2 \
        data.class_names="$tmp/names" run.replicas=2 data.normalize=robust model.hidden=32 \
        train.optimizer=adam train.lr=0.01 train.epochs=60 train.batch=32 run.dir="$dir" "$@" \
        2>"$tmp/log" || fail_with "$tmp/log" "$dir"
}
train 1 one
expect_line "$tmp/log" \
    'column 0 (when): dates, written d.m.Y, become numbers: days, year, month, weekday'
check_ge accuracy "$(record "$tmp/one" eval accuracy)" 0.85
train 3 three train.max_steps=20
train 3 three
check_eq 'bits at np = 3 after a resume' "$(crc "$tmp/three")" "$(crc "$tmp/one")"
mkfifo "$tmp/rows"
sleep 1000 >"$tmp/rows" & # whoever looks at it first must not find its end
holder=$!
at_exit "kill $holder 2>/dev/null"
{ cat "$tmp/a.csv" >"$tmp/rows"; kill $holder; } &
train 3 fifo data.train="$tmp/rows"
wait
train 3 stdin data.train=/dev/stdin <"$tmp/a.csv"
cat "$tmp/a.csv" | train 1 alone data.train=/dev/stdin
for name in fifo stdin alone; do
    check_eq "bits from a pipe, $name" "$(crc "$tmp/$name")" "$(crc "$tmp/one")"
done
# piped NAME KEY...: a run of the rows on standard input, its messages in $tmp/log.
piped() {
    dir=$tmp/$1
    shift
    "$dtrain" data.train=/dev/stdin run.dir="$dir" "$@" 2>"$tmp/log"
}
gzip -c "$tmp/a.csv" | piped packed && fail 'a packed pipe is no error'
expect_line "$tmp/log" '^dtrain: error: .*/dev/stdin: this is packed by gzip'
printf '0 3:1 7:2\n1 2:1\n' >"$tmp/rows.svm"
cat "$tmp/rows.svm" | piped svm && fail 'LIBSVM is taken for CSV'
expect_line "$tmp/log" 'expected data.format=libsvm'
cat "$tmp/rows.svm" | piped svm data.format=libsvm train.max_steps=1 || fail_with "$tmp/log"
piped no data.format=hdf5 </dev/null && fail 'HDF5 from a pipe is no error'
expect_line "$tmp/log" '^dtrain: error: .*/dev/stdin: a pipe: expected'
cat "$tmp/a.csv" | "$dtrain" inspect /dev/stdin 2>&1 | grep -q '400 rows, 3 columns' ||
    fail 'inspect of a pipe'

# ---- names ---------------------------------------------------------------------------------------
# Labels stay numbers where the data is measured, or are names; predictions say names.
sed 's/,0$/,early/; s/,1$/,"late, in the week"/; s/,2$/,weekend/' "$tmp/a.csv" >"$tmp/named.csv"
for file in a named; do
    into "$tmp/$file.json" "$dtrain" eval "$tmp/one" data.eval="$tmp/$file.csv"
done
cmp "$tmp/a.json" "$tmp/named.json" || fail 'labels by number and by name differ'
expect_line "$tmp/a.json" '"labels": *\["early", *"late, in the week", *"weekend"\]'
into "$tmp/csv" "$dtrain" predict "$tmp/one" <"$tmp/a.csv"
awk -F, 'NR > 1 {
    print "{\"shop\":\"" $2 "\",\"when\":" ($1 == "" ? "null" : "\"" $1 "\"") "}"
}' "$tmp/a.csv" >"$tmp/rows.jsonl"
into "$tmp/json" "$dtrain" predict "$tmp/one" <"$tmp/rows.jsonl"
cmp "$tmp/csv" "$tmp/json" || fail 'rows of CSV and of JSON differ'
check_eq 'labels' "$(sed 's/.*"label":"\(.*\)","prob.*/\1/' "$tmp/csv" | sort -u | paste -sd/)" \
    'early/late, in the week/weekend'
sed 's/\([0-9]*\)\.\([0-9]*\)\.2021/2021-\2-\1/' "$tmp/a.csv" |
    "$dtrain" predict "$tmp/one" 2>"$tmp/log" |
    cmp - "$tmp/csv" || fail 'dates with the year in front are read in another way'
printf 'when,shop\n12/31/2021,s1\n' | "$dtrain" predict "$tmp/one" 2>/dev/null |
    grep -q "the date '12/31/2021' has another format" ||
    fail 'another order of day and month is no error'
wrong() { # TEXT KEY...
    text=$1
    shift
    "$dtrain" data.train="$tmp/a.csv" data.missing=mean run.dir="$tmp/wrong" "$@" 2>"$tmp/log" &&
        fail "no error: $*"
    expect_line "$tmp/log" "^dtrain: error: .*$text"
}
wrong 'data.class_names has 2 names, but the labels are 3 different numbers, 0 to 2' \
    data.class_names=a,b
wrong "'7' cannot name class 1" data.class_names=a,7,c
wrong "'' cannot name class 1" data.class_names=a,,c
wrong "two classes are named 'a'" data.class_names=a,b,a
wrong 'there is no such file' data.class_names=nothing
wrong 'only model.task=classify has classes' data.class_names=a,b,c model.task=regress

# ---- shards --------------------------------------------------------------------------------------
into "$tmp/out" "$dtrain" shard "$tmp/shards" 2 data.train="$tmp/a.csv" data.missing=flag \
    data.class_names="$tmp/names"
into "$tmp/json" "$dtrain" eval "$tmp/one" data.eval="$tmp/shards/*.h5"
check_eq 'accuracy on shards' "$(json accuracy <"$tmp/json")" "$(json accuracy <"$tmp/a.json")"
