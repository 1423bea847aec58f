#!/bin/sh
# Fails if `dtrain predict` mixes rows up between batches, scales otherwise than training, or lets a
# bad row take others with it. It agrees with a numpy forward pass from the exported file, gives one
# record a row in order whatever the format of the rows, answers each bad row with its line and goes
# on, and does not keep answers back while input pauses.
# seconds: 180
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/corners.sh"
/usr/bin/python3 -c 'import h5py, numpy' 2>/dev/null && numpy=yes || numpy=no
train() {
    run=$tmp/$1 recipe=$recipes/$2
    shift 2
    job 3 "$recipe" run.dir="$run" eval.steps=-1 "$@" 2>"$tmp/err" || fail_with "$tmp/err" "$run"
}
# predict MODEL ARGS...: stdin to $tmp/out.
predict() {
    "$dtrain" predict "$tmp/$1/export/best" >"$tmp/out" 2>"$tmp/err" || fail "$(cat "$tmp/err")"
}
# agree MODEL DATA: $tmp/out agrees with numpy.
agree() {
    [ $numpy = yes ] || return 0
    /usr/bin/python3 tests/e2e/outside.py predict "$tmp/$1"/export/best/*/model.h5 "$2" "$tmp/out" \
        >"$tmp/diff" || fail "numpy's predictions of $1"
    check_le "numpy's difference" "$(sed 's/.*difference=\([^ ]*\).*/\1/' "$tmp/diff")" 1e-5
    check_eq 'other classes or labels' "$(sed 's/.*wrong=//' "$tmp/diff")" 0
}

# ---- text labels, normalised features: the same rows in every form -------------------------------
rows=$recipes/data/penguins.csv
train penguins penguins.ini
predict penguins <"$rows"
agree penguins "$rows"
mv "$tmp/out" "$tmp/want"
"$dtrain" predict "$tmp/penguins" data.eval="$rows" predict.target=yes 2>"$tmp/err" | head -n 1 |
    grep -q '"target":0,"target_label":"Adelie"' ||
    fail "the true class has no name: $(cat "$tmp/err")"
check_eq records "$(wc -l <"$tmp/want")" "$(($(wc -l <"$rows") - 1))"
features() { cut -d, -f3-6 "$rows" | tail -n +2; }
# same WHAT: the rows in $tmp/rows give the same records.
same() {
    predict penguins <"$tmp/rows"
    cmp "$tmp/want" "$tmp/out" || fail "$1 differ"
    echo "$1: the same"
}
features >"$tmp/rows"
same 'features alone, without header'
awk -F, '{print $6 "," $4 "," $3 "," $5}' "$rows" >"$tmp/rows"
same 'columns in another order, by name'
sed 's/^\([^,]*\),/"\1",/; s/$/\r/' "$rows" >"$tmp/rows"
same 'quotes and CRLF'
features | sed 's/^/[/; s/$/]/' >"$tmp/rows"
same 'JSON lines'
features | sed 's/^/ [ /; s/,/ , /g; s/$/e0 ]/' >"$tmp/rows"
same 'JSON with blanks and exponents'
{
    printf '{"instances": ['
    features | sed 's/.*/[&]/' | paste -sd, | tr -d '\n'
    echo ']}'
} >"$tmp/rows"
same 'JSON instances'
features | awk -F, '{print "0 1:" $1 " 2:" $2 " 3:" $3 " 4:" $4}' >"$tmp/rows"
same 'LIBSVM'
"$dtrain" predict "$tmp/penguins" data.eval="$rows" >"$tmp/out" </dev/null &&
    cmp "$tmp/want" "$tmp/out" || fail 'predictions of a file differ'

# ---- a row's digits do not depend on the rows with it --------------------------------------------
train broad penguins.ini model.hidden=700,40 train.epochs=1
features >"$tmp/rows"
for kernel in auto Haswell Prescott; do
    digits() {
        "$dtrain" predict "$tmp/broad" run.kernel=$kernel 2>"$tmp/err" || fail "$(cat "$tmp/err")"
    }
    digits <"$tmp/rows" >"$tmp/all"
    for count in 1 2 13 100; do
        head -n $count "$tmp/rows" | digits >"$tmp/out"
        head -n $count "$tmp/all" | cmp - "$tmp/out" ||
            fail "$count rows under $kernel have other digits"
    done
done
echo 'digits of 1, 2, 13, 100 and all rows: the same'

# ---- bad rows ------------------------------------------------------------------------------------
features | awk 'NR == 3 {print "[1,2]"} NR == 5 {print "[1,2,3,\"x\"]"} NR == 7 {print "[1,"}
    {print "[" $0 "]"} END {print "{\"instances\": [[39.1,18.7,181,3750], [1]]}"}' >"$tmp/bad"
"$dtrain" predict "$tmp/penguins" <"$tmp/bad" >"$tmp/out" 2>"$tmp/err"
check_eq 'exit code with bad rows' $? 1
check_eq 'error lines' "$(grep -c '^dtrain: error:' "$tmp/err")" 1
check_eq 'lines of bad rows' "$(sed -n 's/^{"line": *\([0-9]*\),"error":".*"}$/\1/p' "$tmp/out" |
    paste -sd' ')" "3 6 9 $(wc -l <"$tmp/bad" | tr -d ' ')"
check_eq 'their places among the answers' \
    "$(grep -n '"error"' "$tmp/out" | cut -d: -f1 | paste -sd' ')" \
    "3 6 9 $(wc -l <"$tmp/out" | tr -d ' ')"
sed -n '1p;$!{/"line"/!p}' "$tmp/out" | sed 1d | head -n "$(wc -l <"$tmp/want")" |
    cmp - "$tmp/want" || fail 'other rows suffer from bad ones'
printf 'bill_length_mm,bill_depth_mm,flipper_length_mm,body_mass_g\n39.1,18.7,181,3750\n1,x,3,4\n' |
    "$dtrain" predict "$tmp/penguins" 2>/dev/null >"$tmp/out"
check_eq 'line of a bad CSV row' "$(json line <"$tmp/out")" 3
echo '[1,2,3,4]' | "$dtrain" predict "$tmp/nothing" >"$tmp/out" 2>"$tmp/err"
check_eq 'exit code without a model' $? 1

# refused CODE TEXT ARGS...: one error line with TEXT, and no record.
refused() {
    code=$1 text=$2
    shift 2
    "$dtrain" predict "$tmp/penguins" "$@" <"$tmp/rows" >"$tmp/out" 2>"$tmp/err"
    check_eq "exit code of '$*'" $? "$code"
    check_eq 'error lines' "$(grep -c '^dtrain: error:' "$tmp/err")" 1
    grep -qF -e "$text" "$tmp/err" || fail "'$(cat "$tmp/err")' does not hold '$text'"
    [ ! -s "$tmp/out" ] || fail "a record in spite of it: $(head -n 1 "$tmp/out")"
}
printf 'body_mass_g,flipper_length_mm,bill_depth_mm,bill_length\n3750,181,18.7,39.1\n' >"$tmp/rows"
refused 1 "standard input:1: the header lacks 'bill_length_mm'"
refused 1 "rows:1: the header lacks 'species', 'bill_length_mm'" data.eval="$tmp/rows"
refused 2 'data.eval=: expected files' data.eval=
refused 2 'data.scale: not a key of dtrain predict' data.scale=2
refused 2 'run.kernel=Nehalen: expected a kernel' run.kernel=Nehalen

# ---- a stream ------------------------------------------------------------------------------------
mkfifo "$tmp/in"
"$dtrain" predict "$tmp/penguins" <"$tmp/in" >"$tmp/out" &
exec 3>"$tmp/in"
answers() { [ "$(wc -l <"$tmp/out")" -ge "$1" ]; }
for n in 1 2; do
    echo '[39.1,18.7,181,3750]' >&3
    wait_until answers $n || fail "no answer to row $n while input pauses"
done
exec 3>&-
wait $! || fail 'a stream that ends'

# ---- sparse rows: the same digits from a file and from rows ---------------------------
awk 'BEGIN {
    srand(3)
    for (i = 0; i < 300; i++) {
        y = int(2 * rand())
        line = y
        at = 0
        for (j = 0; j < 12; j++) {
            at += 1 + int(rand() * 350)
            if (at <= 4000) line = line " " at ":" (y ? 1 : 0.5) * rand()
        }
        print line
    }
}' >"$tmp/rows.svm"
job 2 data.train="$tmp/rows.svm" data.eval="$tmp/rows.svm" run.dir="$tmp/sparse" model.hidden=8 \
    train.epochs=3 2>"$tmp/err" || fail "$(cat "$tmp/err")"
"$dtrain" predict "$tmp/sparse" data.eval="$tmp/rows.svm" >"$tmp/want" 2>"$tmp/err" ||
    fail "$(cat "$tmp/err")"
"$dtrain" predict "$tmp/sparse" <"$tmp/rows.svm" >"$tmp/out" 2>"$tmp/err" ||
    fail "$(cat "$tmp/err")"
cmp "$tmp/want" "$tmp/out" || fail 'sparse rows differ'
check_eq 'sparse rows' "$(wc -l <"$tmp/out")" 300

# ---- values --------------------------------------------------------------------------------------
"$recipes/exp-data.sh" "$tmp/data"
train curve exp-curve.ini data.train="$tmp/data/train.csv" data.eval="$tmp/data/test.csv" \
    train.epochs=20
predict curve <"$tmp/data/test.csv"
agree curve "$tmp/data/test.csv"
head -n 1 "$tmp/out" | grep -qx '{"value":[-0-9.e]*}' || fail 'a value'

# Rows whose value is beyond all floats: an error each, in their places.
make_plane "$tmp/linear.csv"
job 1 data.train="$tmp/linear.csv" run.dir="$tmp/linear" model.task=regress model.kind=linear \
    train.epochs=20 train.lr=0.1 2>"$tmp/err" || fail "$(cat "$tmp/err")"
printf '[1,2]\n[3e38,3e38]\n{"instances":[[1,1],[3e38,3e38]]}\n{"instances":[]}\n' >"$tmp/rows"
"$dtrain" predict "$tmp/linear" <"$tmp/rows" >"$tmp/out" 2>"$tmp/err"
check_eq 'exit code with values that overflow' $? 1
grep -q '^dtrain: error: 3 of 5 rows' "$tmp/err" || fail "$(cat "$tmp/err")"
! grep null "$tmp/out" || fail 'a value that is none'
check_eq 'records of rows that overflow' \
    "$(sed -n 's/"error":"\(instance 1\|its prediction\|instances: no rows\).*/\1/p' \
    "$tmp/out" | paste -sd' ')" \
    '{"line":2,its prediction {"line":3,instance 1 {"line":4,instances: no rows'
check_eq 'their places' "$(grep -n '"error"' "$tmp/out" | cut -d: -f1 | paste -sd' ')" '2 4 5'
printf 'a,b,y\n1,1,1\n3e38,3e38,1\n' >"$tmp/huge.csv"
"$dtrain" predict "$tmp/linear" data.eval="$tmp/huge.csv" >"$tmp/out" 2>"$tmp/err"
check_eq 'exit code with a file of such a row' $? 1
tail -n 1 "$tmp/out" | grep -q '^{"row":1,"error":"its prediction' || fail "$(cat "$tmp/out")"

# Quantiles are columns of CSV by their names. An evaluation has the metric of the baseline next to
# the loss.
job 1 data.train="$tmp/linear.csv" run.dir="$tmp/between" model.task=regress train.loss=quantile \
    train.quantiles=0.1,0.9 model.kind=linear train.epochs=1 data.eval_fraction=0.2 2>"$tmp/err" ||
    fail "$(cat "$tmp/err")"
grep -q 'the baseline, always .* to .*, has loss .*, rmse' "$tmp/err" &&
    grep -q 'eval at step .*: loss .*, rmse ' "$tmp/err" || fail "$(cat "$tmp/err")"
check_eq 'columns of quantiles' \
    "$("$dtrain" predict "$tmp/between" predict.format=csv <"$tmp/linear.csv" 2>"$tmp/err" |
        head -n 1)" 'values 0.1,values 0.9,error'
# Several targets are, by theirs; without a header by their numbers.
awk -F, 'NR > 1 { print $1 "," $2 "," $3 "," $1 - $2 }' "$tmp/linear.csv" >"$tmp/nameless.csv"
{ echo 'a,b,"sum, of both",gap'; cat "$tmp/nameless.csv"; } >"$tmp/targets.csv"
columns() { # RUN LABELS KEY=VALUE...
    name=$1 labels=$2
    shift 2
    job 1 data.train="$tmp/$name.csv" data.label="$labels" run.dir="$tmp/$name" model.task=regress \
        model.kind=linear train.epochs=1 2>"$tmp/err" || fail "$(cat "$tmp/err")"
    "$dtrain" predict "$tmp/$name" predict.format=csv "$@" data.eval="$tmp/$name.csv" \
        2>"$tmp/err" | head -n 1
}
check_eq 'columns of targets' "$(columns targets 'sum\, of both,gap' predict.target=yes)" \
    '"values sum, of both",values gap,"target sum, of both",target gap,error'
check_eq 'columns of targets without names' "$(columns nameless 2,3)" 'values 0,values 1,error'

# ---- CSV out, and columns that are carried through -----------------------------------------------
# Fails if a column is kept for another row, a cell is not quoted, or a bad row shifts later rows.
{
    head -n 2 "$rows" | sed '1s/^/id,/; 2s/^/"a,""b",/'
    printf '17,x,x,x,x,x,x,x,x\n'
    sed -n '3s/^/18,/p' "$rows"
} >"$tmp/ids"
"$dtrain" predict "$tmp/penguins" predict.format=csv predict.keep=id,species <"$tmp/ids" \
    >"$tmp/out" 2>"$tmp/err"
check_eq 'exit code' $? 1
check_eq 'columns of CSV' "$(head -n 1 "$tmp/out" | cut -d, -f1-4)" 'id,species,class,label'
check_eq 'columns of no rows' "$(head -n 1 "$tmp/ids" |
    "$dtrain" predict "$tmp/penguins" predict.format=csv predict.keep=id,species)" \
    "$(head -n 1 "$tmp/out")"
check_eq 'a quoted cell' "$(sed -n 2p "$tmp/out" | cut -c1-8)" '"a,""b",'
check_eq 'cells in all lines' \
    "$(sed 's/"[^ ]*",/q,/; s/: column.*//' "$tmp/out" | awk -F, '{print NF}' | sort -u)" 8
sed -n 3p "$tmp/out" | grep -q '^17,x,,.*,line 3: column' || fail "$(cat "$tmp/out")"
check_eq 'the row behind a bad one' "$(sed -n 4p "$tmp/out" | cut -d, -f1)" 18
check_eq 'the same numbers' "$(sed -n 4p "$tmp/out" | cut -d, -f5-7)" "$(sed -n '1p;3p' "$rows" |
    "$dtrain" predict "$tmp/penguins" 2>/dev/null | sed 's/.*\[\(.*\)\].*/\1/')"
# A line may begin with an empty cell: that of a kept column, or of what is not said of a bad row.
{ head -n 2 "$rows" | sed '1s/^/id,/; 2s/^/,/'; printf ',x,x,x,x,x,x,x,x\n'; } >"$tmp/none"
for keep in id ''; do
    "$dtrain" predict "$tmp/penguins" predict.format=csv predict.keep=$keep <"$tmp/none" \
        >"$tmp/out" 2>/dev/null
    check_eq 'empty cells in front' \
        "$(sed 's/: column.*//' "$tmp/out" | awk -F, '{print NF}' | sort -u)" $((6 + ${#keep} / 2))
done
echo '{"bill_length_mm":39,"bill_depth_mm":18,"flipper_length_mm":190,"body_mass_g":3700,"id":17}' |
    "$dtrain" predict "$tmp/penguins" predict.keep=id 2>/dev/null >"$tmp/out"
check_eq 'a kept member of JSON' "$(json id <"$tmp/out")" 17
printf '%s\n' '[{"id":5,"x":1},{"id":6,"y":2}]' '{"x":1}' |
    "$dtrain" predict "$tmp/penguins" predict.keep=id 2>/dev/null >"$tmp/out"
check_eq 'kept members of bad rows' "$(cut -d, -f1,2 "$tmp/out" | paste -sd' ')" \
    '{"id":"5","line":1 {"id":"6","line":1 {"id":"","line":2'
"$dtrain" predict "$tmp/penguins" predict.keep=nothing <"$rows" >"$tmp/out" 2>"$tmp/err"
check_eq 'exit code without the column' $? 1
grep -q "predict.keep: there is no column 'nothing'" "$tmp/err" || fail "$(cat "$tmp/err")"
"$dtrain" predict "$tmp/penguins" predict.keep=year,label <"$rows" >"$tmp/out" 2>"$tmp/err"
check_eq 'exit code with the name of an answer' $? 1
grep -q "predict.keep=label: the answer has that name" "$tmp/err" || fail "$(cat "$tmp/err")"
for keep in line island,year,island; do
    "$dtrain" predict "$tmp/penguins" predict.keep=$keep <"$rows" >"$tmp/out" 2>"$tmp/err"
    check_eq "exit code with predict.keep=$keep" $? 1
    grep -q 'predict.keep.*\(the answer has that name\|appears twice\)' "$tmp/err" ||
        fail "$(cat "$tmp/err")"
done

# ---- Fashion-MNIST, 10,000 rows ------------------------------------------------------------------
fashion=/usr/share/datasets/fashion-mnist
[ -d $fashion ] || skip 'in part: Fashion-MNIST is not installed'
[ $numpy = yes ] || skip 'in part: python3-h5py or python3-numpy is not installed'
train fashion fashion-mnist.ini train.max_steps=150 data.train=$fashion/t10k-images-idx3-ubyte.gz \
    data.train_labels=$fashion/t10k-labels-idx1-ubyte.gz
/usr/bin/python3 -c "
import sys
sys.path.insert(0, 'tests/e2e')
import outside
for row in outside.read_idx('$fashion/t10k-images-idx3-ubyte.gz').tolist():
    print(row)" >"$tmp/rows.jsonl"
start=$(date +%s%N)
predict fashion <"$tmp/rows.jsonl"
echo "10,000 rows of Fashion-MNIST: $((($(date +%s%N) - start) / 1000000)) ms"
agree fashion $fashion/t10k-images-idx3-ubyte.gz
check_eq records "$(wc -l <"$tmp/out")" 10000
