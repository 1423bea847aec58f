#!/bin/sh
# Fails if a table loses or changes a value on its way through the whole program, or wrong input is
# taken in silence. A file with semicolons, CRLF, a byte order mark, quoted categories, gaps, an id
# and a weight column trains, evaluates and predicts, to the same bits at any number of ranks; so do
# LIBSVM rows that stay sparse, packed ones too; and wrong input is one line each.
# seconds: 150
. "$(dirname "$0")/lib.sh"

awk 'BEGIN {
    srand(3)
    split("Ideal,Very \"\"Good\"\",Fair; or so", cut, ",")
    split("D,E,F", color, ",")
    printf "\357\273\277id;cut;carat;color;w;price\r\n"
    for (i = 0; i < 1500; i++) {
        a = int(rand() * 3) + 1
        b = int(rand() * 3) + 1
        c = rand() * 2
        carat = rand() < .05 ? "NA" : c
        hue = rand() < .05 ? "" : color[b]
        w = rand() + .5
        printf "%d;\"%s\";%s;%s;%.2f;%.3f\r\n", i, cut[a], carat, hue, w, 3 * c + a - b / 2
    }
}' >"$tmp/a.csv"
table() {
    np=$1 dir=$tmp/$2
    shift 2
    job "$np" data.train="$tmp/a.csv" data.label=price data.ignore=id data.weight=w \
        data.missing=flag data.normalize=standard data.eval_fraction=0.2 model.task=regress \
        model.hidden=16 train.optimizer=adam train.lr=0.01 train.epochs=15 run.replicas=2 \
        run.dir="$dir" "$@" >"$tmp/log" 2>&1 || fail_with "$tmp/log" table
}
table 1 one
table 3 three
check_eq 'bits of a table at np=1 and 3' "$(crc "$tmp/one")" "$(crc "$tmp/three")"
check_ge r2 "$("$dtrain" eval "$tmp/three" data.eval="$tmp/a.csv" 2>"$tmp/err" | json r2)" 0.9

# Columns by name, in any order and form; a text and a gap that training has not seen.
predict() { "$dtrain" predict "$tmp/three" 2>"$tmp/err"; }
printf 'color,cut,carat\nE,Ideal,0.5\nQ,Awful,\n' | predict >"$tmp/csv"
printf '%s\n' '{"carat": 0.5, "x": 1, "cut": "Ideal", "color": "E"}' \
    '{"instances": [["Awful", null, "Q"]]}' | predict >"$tmp/json"
check_eq 'rows of CSV and of JSON' "$(cat "$tmp/csv")" "$(cat "$tmp/json")"
printf 'color,cut,carat\nE,Ideal,0.5\n' | gzip -c | predict >"$tmp/out" &&
    fail 'packed rows are no error'
grep -q 'standard input: this is packed by gzip: unpack it first, with zcat' "$tmp/err" ||
    fail "packed rows: $(cat "$tmp/err")"
printf 'color,carat\nE,0.5\n' | predict >"$tmp/out" && fail 'a missing column is no error'
grep -q "lacks 'cut'" "$tmp/out" "$tmp/err" ||
    fail "a missing column is not named: $(cat "$tmp/out" "$tmp/err")"
"$dtrain" inspect "$tmp/a.csv" | grep -q '^missing = mean' || fail inspect

# ---- sparse rows ---------------------------------------------------------------------------------
awk 'BEGIN {
    srand(5)
    for (i = 0; i < 4000; i++) {
        y = int(rand() * 3)
        n = 1 + y * 700
        printf "%d", y
        for (k = 0; k < 6; k++) {
            n += 1 + int(rand() * 90)
            printf " %d:%.3f", n, rand() + .1
        }
        print ""
    }
}' >"$tmp/a.svm"
gzip -c "$tmp/a.svm" >"$tmp/a.svm.gz"
sparse() {
    np=$1 dir=$tmp/$2
    shift 2
    job "$np" model.kind=linear data.train="$tmp/a.svm" data.eval_fraction=0.2 \
        train.optimizer=adagrad train.lr=0.2 train.epochs=3 run.replicas=4 run.dir="$dir" "$@" \
        >"$tmp/log" 2>&1 || fail_with "$tmp/log" sparse
}
sparse 1 s1
sparse 3 s3
sparse 3 packed data.train="$tmp/a.svm.gz"
check_eq 'bits of sparse rows at np=1 and 3' "$(crc "$tmp/s1")" "$(crc "$tmp/s3")"
check_eq 'bits of packed rows' "$(crc "$tmp/packed")" "$(crc "$tmp/s1")"
# Ranks that cannot open the bank's file of typed rows, as on another host, get a copy of it.
if [ "$(id -u)" = 0 ] && unshare --pid --fork --mount-proc true 2>/dev/null; then
    OMPI_MCA_btl=tcp,self UCX_TLS=tcp,self mpirun --oversubscribe -np 1 "$dtrain" train \
        "$tmp/packed/config.ini" run.dir="$tmp/apart" : -np 2 unshare --pid --fork --mount-proc \
        "$dtrain" train "$tmp/packed/config.ini" run.dir="$tmp/apart" >"$tmp/log" 2>&1 ||
        fail_with "$tmp/log" 'ranks apart'
    check_eq 'bits of rows that were copied' "$(crc "$tmp/apart")" "$(crc "$tmp/s1")"
fi
check_ge accuracy "$(record "$tmp/s3" eval accuracy)" 0.95
# The size of the rows bounds an index, not the size of the packed file.
awk 'BEGIN {for (i = 0; i < 6000; i++) print i % 2 " 1:1 " 70001 + i % 3 ":1"}' >"$tmp/tall.svm"
gzip -c "$tmp/tall.svm" >"$tmp/tall.svm.gz"
check_le 'bytes of packed rows' "$(wc -c <"$tmp/tall.svm.gz")" 70000
sparse 1 tall data.train="$tmp/tall.svm" train.max_steps=2
sparse 1 tall_packed data.train="$tmp/tall.svm.gz" train.max_steps=2
check_eq 'bits of packed rows of large indices' "$(crc "$tmp/tall_packed")" "$(crc "$tmp/tall")"
sparse 3 resumed train.epochs=1
sparse 1 resumed
check_eq 'bits after a resume' "$(crc "$tmp/resumed")" "$(crc "$tmp/s1")"

# ---- rows that come whole ------------------------------------------------------------------------
# Under a model of sparse rows no part of a whole row may be taken for the dense part.
"$dtrain" inspect "$tmp/s3" | awk '$1 == "features" {print $2 + 0; exit}' >"$tmp/features"
awk -v n="$(cat "$tmp/features")" '{
    split("", value)
    for (i = 2; i <= NF; i++) {split($i, pair, ":"); value[pair[1]] = pair[2]}
    printf "%s", $1
    for (i = 1; i <= n; i++) printf ",%s", i in value ? value[i] + 0 : 0
    print ""}' "$tmp/a.svm" >"$tmp/whole.csv"
"$dtrain" shard "$tmp/wide" 1 data.train="$tmp/a.svm" 2>"$tmp/err" || fail "$(cat "$tmp/err")"
accuracy() { "$dtrain" eval "$tmp/s3" data.label=0 data.eval="$1" 2>"$tmp/err" | json accuracy; }
check_eq 'accuracy on CSV and on sparse rows' "$(accuracy "$tmp/whole.csv")" \
    "$(accuracy "$tmp/a.svm")"
check_eq 'accuracy on shards and on sparse rows' "$(accuracy "$tmp/wide/*.h5")" \
    "$(accuracy "$tmp/a.svm")"

# Shards count classes from 0, also those that rows call -1 and +1.
awk 'BEGIN {
    srand(4)
    for (i = 0; i < 200; i++) {
        x = rand()
        print (x < .5 ? "-1" : "+1") " 1:" x " 2:" rand()
    }
}' >"$tmp/signs.svm"
"$dtrain" shard "$tmp/signs" 2 data.train="$tmp/signs.svm" 2>"$tmp/err" || fail "$(cat "$tmp/err")"
job 3 data.train="$tmp/signs/*.h5" run.dir="$tmp/signed" model.kind=linear train.epochs=30 \
    train.lr=2 2>"$tmp/err" || fail "$(cat "$tmp/err")"
signed() { "$dtrain" eval "$tmp/signed" data.eval="$1" 2>"$tmp/err" | json accuracy; }
check_ge 'accuracy on rows of signs' "$(signed "$tmp/signs.svm")" 0.9
check_eq 'and on their shards' "$(signed "$tmp/signs/*.h5")" "$(signed "$tmp/signs.svm")"
want='  /x  (100, 2) floats of 32 bits,  /y  (100) integers of 32 bits,  /label_names  (2) texts'
want="$want,  /dtrain/label_numbers  (2) integers of 64 bits"
check_eq 'what inspect says of a shard' \
    "$("$dtrain" inspect "$tmp/signs/shard-00000-of-00002.h5" | tail -n +2 | paste -sd,)" "$want"
# The features of a sparse row, whole.
check_eq 'features of a sparse row' \
    "$("$dtrain" predict "$tmp/s3" data.eval="$tmp/a.svm" predict.features=yes 2>"$tmp/err" |
    sed -n '1s/.*"features":\[\([^]]*\)\].*/\1/p')" "$(head -n 1 "$tmp/whole.csv" | cut -d, -f2-)"
# Columns of a CSV that is read after shards are found by the names in the shards.
awk 'BEGIN {srand(2); for (i = 0; i < 200; i++) print rand() "," rand()}' >"$tmp/pairs"
awk -F, 'BEGIN {print "p,q,y"} {print $1 "," $2 "," ($1 > $2)}' "$tmp/pairs" >"$tmp/pq.csv"
awk -F, 'BEGIN {print "y,q,p"} {print ($1 < $2) "," $1 "," $2}' "$tmp/pairs" >"$tmp/qp.csv"
"$dtrain" shard "$tmp/pq" 1 data.train="$tmp/pq.csv" 2>"$tmp/err" || fail "$(cat "$tmp/err")"
job 1 data.train="$tmp/pq/*.h5,$tmp/qp.csv" data.label=y run.dir="$tmp/pq_run" model.kind=linear \
    train.epochs=60 train.lr=2 2>"$tmp/err" || fail "$(cat "$tmp/err")"
check_ge 'accuracy on a shard and a CSV' \
    "$("$dtrain" eval "$tmp/pq_run" data.eval="$tmp/pq.csv" 2>"$tmp/err" | json accuracy)" 0.95

# ---- shards keep what they were made of ----------------------------------------------------------
# A model of a table's shards reads the table: columns by name, texts, gaps.
"$dtrain" shard "$tmp/shards" 2 data.train="$tmp/a.csv" data.label=price data.ignore=id,w \
    data.missing=flag model.task=regress 2>"$tmp/err" || fail "$(cat "$tmp/err")"
grep -qF "next: dtrain 'data.train=$tmp/shards/*.h5' run.preset=table model.task=regress" \
    "$tmp/err" || fail "$(cat "$tmp/err")"
job 1 data.train="$tmp/shards/*.h5" model.task=regress train.max_steps=1 run.dir="$tmp/unset" \
    2>"$tmp/err" || fail "$(cat "$tmp/err")"
expect_line "$tmp/err" 'the data may be a table: run.preset=table' 'no word of the preset'
job 3 data.train="$tmp/shards/*.h5" data.normalize=standard model.task=regress model.hidden=16 \
    train.optimizer=adam data.eval_fraction=0.1 train.lr=0.01 train.epochs=15 \
    run.dir="$tmp/sharded" >"$tmp/log" 2>&1 || fail_with "$tmp/log" 'a run of shards'
check_eq 'rows held out of shards' "$(record "$tmp/sharded" eval rows)" 150
r2() { "$dtrain" eval "$tmp/$1" data.eval="$2" data.label=price 2>"$tmp/err" | json r2; }
check_ge 'r2 of a model of shards on the table' "$(r2 sharded "$tmp/a.csv")" 0.9
"$dtrain" eval "$tmp/sharded" data.eval="$tmp/a.csv" >"$tmp/out" 2>"$tmp/err" ||
    fail "$(cat "$tmp/err")"
check_ge 'the same, whose label the shards name' "$(json r2 <"$tmp/out")" 0.9
check_ge 'r2 of a model of the table on shards' "$(r2 three "$tmp/shards/*.h5")" 0.9
echo '{"cut": "Ideal", "carat": null, "color": "E"}' |
    "$dtrain" predict "$tmp/sharded" >"$tmp/out" 2>"$tmp/err" || fail "$(cat "$tmp/out" "$tmp/err")"
job 1 data.train="$tmp/shards/*.h5,$tmp/a.csv" data.label=price model.task=regress \
    run.dir="$tmp/mixed" >"$tmp/log" 2>&1 && fail 'shards of a table and CSV'
expect_line "$tmp/log" 'only other shards can be read together with shards of a table' \
    'no word of shards and CSV'

# What names columns is refused where there are none; a run's configuration, with every key, is not.
for key in data.weight=w data.label=price data.ignore=carat; do
    expect_error 1 "${key%=*}: applies only to CSV and JSON lines, and the data is shards" 1 \
        data.train="$tmp/shards/*.h5" model.task=regress run.dir="$tmp/no" $key
done
job 1 "$tmp/sharded/config.ini" run.dir="$tmp/again" train.max_steps=1 2>"$tmp/err" ||
    fail "$(cat "$tmp/err")"

# ---- a column without a name ---------------------------------------------------------------------
# Row numbers, as pandas and R write them, next to texts and gaps: a run trains, resumes, starts
# another run, and predicts by the header.
awk 'BEGIN {srand(9); print ",cut,carat,y"; for (i = 0; i < 40; i++)
    print i "," (rand() < .5 ? "Ideal" : "Good") "," (i % 9 ? rand() : "") "," i % 2}' \
    >"$tmp/unnamed.csv"
sed 's/^\([^,]*\),.*,\(.*\)/\1,\2/; 5s/^[^,]*//' "$tmp/unnamed.csv" >"$tmp/alone.csv"
unnamed() {
    dir=$tmp/$1
    shift
    job 1 run.preset=none run.dir="$dir" data.missing=mean data.scale=0.1 model.hidden=4 \
        train.batch=16 "$@" 2>"$tmp/err" || fail_with "$tmp/err" "$dir"
}
for table in unnamed alone; do
    unnamed "$table-whole" data.train="$tmp/$table.csv" train.max_steps=6
    unnamed "$table" data.train="$tmp/$table.csv" train.max_steps=3
    unnamed "$table" data.train="$tmp/$table.csv" train.max_steps=6
    check_eq "bits of $table after a resume" "$(crc "$tmp/$table")" "$(crc "$tmp/$table-whole")"
    unnamed "$table-on" data.train="$tmp/$table.csv" train.max_steps=1 run.init="$tmp/$table"
    head -n 3 "$tmp/$table.csv" | "$dtrain" predict "$tmp/$table" >"$tmp/out" 2>"$tmp/err" ||
        fail "$(cat "$tmp/out" "$tmp/err")"
    check_eq 'rows behind a header' "$(wc -l <"$tmp/out")" 2
done

# ---- decimal commas, rows without a label --------------------------------------------------------
# The same weights, answers and figures as of the table with points. Fails if a comma in a text
# becomes a point, numbers of a stream to predict are read otherwise, or a label is another row's.
awk 'BEGIN {
    srand(5)
    print "a;b;t;y"
    for (i = 0; i < 90; i++) {
        a = rand() - 0.5
        y = i % 5 ? (rand() < 0.5 ? "no" : "yes") : "no"
        printf "%.3f;%d;%s;%s\n", a, i % 9, i % 3 ? "x,1y" : "z", y
    }
}' >"$tmp/point.csv"
sed 's/\([0-9]\)\.\([0-9]\)/\1,\2/g' "$tmp/point.csv" >"$tmp/comma.csv"
sed 's/;/   /g; s/^/  /; s/$/ /' "$tmp/point.csv" >"$tmp/aligned.csv"
awk '{print} NR % 30 == 0 {print "0.1;2;z;"} NR % 40 == 0 {print "0.1;2;z;NA"}' "$tmp/point.csv" \
    >"$tmp/some.csv"
for table in point comma aligned some; do
    set --
    [ $table != comma ] || set -- data.decimal=,
    [ $table != some ] || set -- data.unlabelled=skip
    job 1 run.preset=none run.dir="$tmp/$table" data.train="$tmp/$table.csv" model.hidden=4 \
        train.max_steps=6 "$@" >"$tmp/log" 2>&1 || fail_with "$tmp/log" "$table"
    check_eq "bits of $table" "$(crc "$tmp/$table")" "$(crc "$tmp/point")"
    "$dtrain" eval "$tmp/$table" data.eval="$tmp/$table.csv" 2>/dev/null >"$tmp/$table.json"
    cmp "$tmp/point.json" "$tmp/$table.json" || fail "figures of $table"
done
expect_line "$tmp/log" ': 5 rows without a label are left out' 'rows without a label are not told'
for table in point comma aligned; do
    "$dtrain" predict "$tmp/$table" <"$tmp/$table.csv" 2>/dev/null >"$tmp/$table.out"
done
cmp "$tmp/point.out" "$tmp/comma.out" || fail 'answers to rows with decimal commas'
cmp "$tmp/point.out" "$tmp/aligned.out" || fail 'answers to rows between blanks'
"$dtrain" inspect "$tmp/aligned.csv" | grep -q ': CSV, 90 rows, 4 columns between blanks$' ||
    fail 'inspect of columns between blanks'
# ---- wrong input: one line each ------------------------------------------------------------------
# wrong TEXT FILE_CONTENT KEY=VALUE...
wrong() {
    text=$1
    printf "$2" >"$tmp/wrong.txt"
    shift 2
    rm -rf "$tmp/wrong"
    job 1 data.train="$tmp/wrong.txt" run.dir="$tmp/wrong" "$@" >"$tmp/out" 2>&1 &&
        fail "no error: $text"
    check_eq "lines for '$text'" "$(grep -c '^dtrain: error' "$tmp/out")" 1
    expect_line "$tmp/out" "$text" "no '$text'"
}
wrong "'4/3/21' is not a date" 'd,y\n4/3/21,0\n'
wrong "decimal comma" 'd;y\n0,5;0\n'
wrong "a value is missing" 'a,y\n1,0\n,1\n'
wrong "label 'NA' is a missing value" 'a,y\n1,x\n2,NA\n'
wrong 'wrong.txt:1: a zero byte in the first row' 'a\000b,y\n1,0\n2,1\n'
wrong "wrong.txt:1: 'sep=' is a line for Excel" 'sep=;\r\na;y\r\n1;0\r\n2;1\r\n'
wrong 'wrong.txt:2: a zero byte in the label' 'a,y\n1,x\000z\n2,w\n'
wrong "column 'a': a zero byte in a text" 'a,y\nA\000B,0\nA\000C,1\n'
wrong "'0:1' is not index:value" '1 1:1\n0 0:1\n'
wrong "index 2 does not rise" '1 1:1\n0 3:1 2:1\n'
wrong 'cannot have that many features' '1 1:1\n0 16000000:1\n'
wrong "is not a finite number" '1 1:1\n0 2:nan\n'
wrong 'data.hash_bits=99: expected' 'a,y\n1,0\n2,1\n' data.hash_bits=99
wrong 'data.separator=ab: expected' 'a,y\n1,0\n2,1\n' data.separator=ab
wrong 'does not take sparse rows' \
    "$(awk 'BEGIN {for (i = 0; i < 40; i++) print i % 2 " " 40 * i + 1 ":1"}')\n" \
    model.layers='scale, dense 4'
wrong 'index 2147483648: more than 16777216 features; data.features sets' '1 1:1\n0 2147483648:1\n'
wrong 'index 2 does not rise' '1 1:1\n0 2:1 2:1\n'
wrong 'only one (is data.separator another? is line 1 a title?)' 'a,y\n1,0\n2,1\n' \
    data.separator=';'
wrong 'auc is of two classes' 'a,y\n1,1\n2,2\n3,4\n' eval.metric=auc
[ -e "$tmp/wrong/config.ini" ] && fail 'a metric that the model lacks is found late'
grep -q 'rows to learn from' "$tmp/out" && fail 'a start that says what does not come'
expect_line "$tmp/out" 'class 0 is label 1, 1 is 2, 2 is 4$' 'no table of labels'
wrong "'inf' is not a finite number$" 'a,y\n1,0\ninf,1\n'
wrong 'this is UTF-16 text' '\377\376a\0,\0y\0\n\0'
wrong 'this is UTF-16 text.*UTF-16BE' '\0a\0,\0y\0\n'
wrong 'this is a NumPy array' '\223NUMPY\001'
wrong 'this is a Parquet file' 'PAR1\025'
wrong 'this is a zip archive' 'PK\003\004'
wrong 'the file is empty' ''
wrong 'the files have no rows' 'a,y\n'
wrong 'a quote that does not close' 'a,y\n"1,0\n2,1\n'
wrong "wrong.txt:1: column 0: 'area' is above the number '0.5'" \
    'area,2019,y\n0.5,0.6,cat\n0.6,0.7,dog\n'
wrong "wrong.txt:1: column 0: 'area' is above the number '0.5'" \
    'area,2019,y\n\n\r\n0.5,0.6,cat\n0.6,0.7,dog\n'
wrong "wrong.txt:1: column 0: '2021-03-04' is above the date '2021-03-05'" \
    '2021-03-04,red,yes\n2021-03-05,blue,no\n'
wrong "wrong.txt:1: column 1: '0' is above the number '1'" 'red,0\nblue,1\n'
wrong "is it column 2, '1', or column 3, which has this name? expected -2 or -1" \
    'i,0,1,2\n5,0.5,0.6,1\n6,0.6,0.7,0\n' data.header=yes data.label=2
wrong "wrong.txt:3: label: 'NA' is a missing value: data.unlabelled=skip" 'a,y\n1,2.5\n2,NA\n' \
    model.task=regress
wrong 'wrong.txt:3: label: a target is -2, expected counts from 0 on (train.loss=poisson)' \
    'a,y\n1,3\n2,-2\n' model.task=regress train.loss=poisson
wrong 'train.loss=mae: model.task=classify has no such loss; expected auto' 'a,y\n1,0\n2,1\n' \
    train.loss=mae
wrong 'data.normalize_target=yes: train.loss=poisson' 'a,y\n1,0\n2,1\n' model.task=regress \
    train.loss=poisson data.normalize_target=yes
wrong 'data.clip: expected 0, or at least 1' 'a,y\n1,0\n2,1\n' data.clip=0.5
wrong 'a weight below 0' 'a,w,y\n1,-1,0\n2,1,1\n' data.weight=w
wrong 'more than a checkpoint holds' \
    "t,y\n$(printf '%070000d' 1 | tr 0 x),0\na,1\n$(printf '%070000d' 1 | tr 0 x),0\na,1\n"

# ---- texts as they come --------------------------------------------------------------------------
# "a, b" for "a,b": names and texts are found with and without the blank, and ' ?' is no number.
awk 'BEGIN {srand(8); print "age, work, income"; for (i = 0; i < 200; i++) {w = rand() < .5
    print 20 + i % 40 ", " (w ? "Private" : "State") ", " (w ? ">50K" : "<=50K")}}' \
    >"$tmp/blank.csv"
texts() {
    rm -rf "$tmp/texts"
    job 1 run.dir="$tmp/texts" model.kind=linear data.normalize=standard train.epochs=20 \
        train.lr=0.5 "$@" 2>"$tmp/log" || fail_with "$tmp/log" texts
}
texts data.train="$tmp/blank.csv" data.label=income
sed 's/, /,/g' "$tmp/blank.csv" >"$tmp/plain.csv"
for file in blank plain; do
    check_eq "accuracy on $file.csv" \
        "$("$dtrain" eval "$tmp/texts" data.eval="$tmp/$file.csv" 2>/dev/null | json accuracy)" 1
done
check_eq 'a text without its blank' "$(echo '{"age": 30, "work": "Private"}' |
    "$dtrain" predict "$tmp/texts" 2>/dev/null | json label)" '>50K'
# Dictionaries have no blanks, hashes neither; inspect counts what that merges, and names in JSON
# may have them.
awk 'BEGIN {
    srand(9)
    print " Flow Duration , kind , y"
    for (i = 0; i < 90; i++)
        print rand() "," (i % 2 ? " Paris,no" : i % 3 ? "Rome , yes" : "Paris,yes ")
}' >"$tmp/spaced.csv"
"$dtrain" inspect "$tmp/spaced.csv" >"$tmp/out" 2>&1
expect_line "$tmp/out" '^; kind: 1 values differ from others in the blanks around them alone' \
    'no count of merged texts'
expect_line "$tmp/out" '^; y: 1 values differ' 'no count of merged labels'
for bits in 0 6; do
    texts data.train="$tmp/spaced.csv" data.hash_bits=$bits
    [ $bits = 6 ] || "$dtrain" inspect "$tmp/texts" | grep -q '^features *4,' ||
        fail 'texts that differ in blanks are two'
    for row in '{"Flow Duration":0.5,"kind":"Rome","id":3}' \
        '{" Flow Duration":0.5,"kind ":" Rome"," id":3}' \
        '{"Flow Duration ":0.5," kind":"Rome\t","id ":3}'; do
        printf '%s\n' "$row" | "$dtrain" predict "$tmp/texts" predict.keep=id 2>&1 |
            grep -v 'predict:'
    done >"$tmp/out"
    check_eq 'answers to one row' "$(sort -u "$tmp/out" |
        grep -c '^{"id":"3","class":1,"label":"yes",')/$(sort -u "$tmp/out" | wc -l)" 1/1
done
grep -q 'taken as texts\|not UTF-8' "$tmp/log" && fail_with "$tmp/log" 'a warning of plain texts'
printf 'Gr\366\337e,y\n1,0\n2,1\n3,0\n4,1\n' >"$tmp/latin.csv"
rm -rf "$tmp/texts"
job 1 data.train="$tmp/latin.csv" run.dir="$tmp/texts" train.max_steps=1 2>"$tmp/log" || fail latin
expect_line "$tmp/log" 'is not UTF-8' 'no word of a name in Latin-1 above numbers'
printf 'n,y\n-,a\n1,b\n2,a\n3,b\n' >"$tmp/dash.csv"
texts data.train="$tmp/dash.csv"
expect_line "$tmp/log" "column 0 (n): its values are taken as texts: 3 of 4 .*such as '-'" \
    'numbers are taken as texts in silence'
printf 'n,y\n1,gr\374n\n2,rot\n' >"$tmp/latin.csv"
texts data.train="$tmp/latin.csv"
grep -qa 'is not UTF-8: .*iconv' "$tmp/log" || fail_with "$tmp/log" 'no word of another encoding'

# ---- outliers ------------------------------------------------------------------------------------
# A misprint counts as data.clip; rows of files and of a stream, dense and sparse, agree on it.
awk 'BEGIN {
    srand(7)
    print "a,kind,y"
    for (i = 0; i < 900; i++) {
        a = rand()
        print (i == 9 ? 4000 : a) "," substr("uv", 1 + i % 2, 1) "," (i == 9 ? 0 : 3 * a)
    }
}' >"$tmp/far.csv"
far() {
    rm -rf "$tmp/far"
    job 1 data.train="$tmp/far.csv" model.task=regress model.hidden=8 data.normalize=standard \
        data.encode=none run.dir="$tmp/far" train.epochs=2 "$@" 2>"$tmp/log" ||
        fail_with "$tmp/log" far
}
far
expect_line "$tmp/log" "'a' has a value 30 deviations from its mean\. .*data.clip=5" \
    'no word of an outlier'
far data.clip=3
grep -q 'deviations from its mean' "$tmp/log" && fail 'an outlier that is clipped is told of'
"$dtrain" inspect "$tmp/far" | grep -q 'clipped at 3$' || fail 'inspect does not say the clip'
"$dtrain" inspect "$tmp/far.csv" |
    grep -q '^; all features are normalised: a has a value 30 deviations' ||
    fail 'inspect advises no clip'
printf 'a,kind\n3000,u\n1e30,u\n-1e30,u\n0.5,u\n' |
    "$dtrain" predict "$tmp/far" >"$tmp/out" 2>/dev/null
check_eq 'beyond the clip' "$(sed -n 2p "$tmp/out")" "$(sed -n 1p "$tmp/out")"
check_eq 'answers' "$(sort -u "$tmp/out" | wc -l)" 3
same() { # FILE: what predict says of its rows as a stream and as a file
    "$dtrain" predict "$2" <"$1" 2>/dev/null >"$tmp/stream"
    "$dtrain" predict "$2" data.eval="$1" 2>/dev/null >"$tmp/file"
    cmp "$tmp/stream" "$tmp/file" || fail "a stream and a file of $1"
}
same "$tmp/far.csv" "$tmp/far"
# Robust: the misprint moves no statistics. The bits are the same at any number of ranks, and
# resumed.
robust() { # RANKS NAME
    n=$1 dir=$tmp/robust_$2
    shift 2
    job "$n" run.preset=none data.train="$tmp/far.csv" model.task=regress model.hidden=8 \
        data.normalize=robust run.dir="$dir" run.replicas=2 train.epochs=2 "$@" 2>"$tmp/log" ||
        fail_with "$tmp/log" robust
}
robust 1 one
grep -q 'deviations from its mean' "$tmp/log" &&
    fail 'a misprint that robust statistics leave out is told of'
"$dtrain" inspect "$tmp/robust_one" | grep -q 'normalised, .*clipped at 5$' ||
    fail 'robust does not clip'
same "$tmp/far.csv" "$tmp/robust_one"
"$dtrain" predict "$tmp/robust_one" data.eval="$tmp/far.csv" predict.features=yes 2>/dev/null |
    sed 's/.*"features":\[\([^],]*\).*/\1/' | sort -g >"$tmp/out"
check_le 'the least of the others' "$(head -n 1 "$tmp/out")" -1.6
check_ge 'the greatest of the others' "$(tail -n 2 "$tmp/out" | head -n 1)" 1.6
check_eq 'the misprint' "$(tail -n 1 "$tmp/out")" 5
robust 3 three
robust 3 half train.max_steps=5
robust 2 half
check_eq 'bits of three' "$(crc "$tmp/robust_three")" "$(crc "$tmp/robust_one")"
check_eq 'bits of a resume' "$(crc "$tmp/robust_half")" "$(crc "$tmp/robust_one")"
# What inspect proposes, pasted, is a run with the preset, which the start says; its keys may as
# well be written out. It is found again, with a rate of its own too, and config.ini says the same.
# The end says how good it is, next to the baseline.
{ "$dtrain" inspect "$tmp/far.csv" | sed -n '/^\[data\]/,$p'; } >"$tmp/pasted.ini"
check_le 'lines of what is proposed' "$(grep -c ' = ' "$tmp/pasted.ini")" 4
for time in first second; do
    job 1 "$tmp/pasted.ini" run.dir="$tmp/pasted" 2>"$tmp/log" ||
        fail_with "$tmp/log" "what inspect proposes, the $time time"
    [ $time = second ] || cp "$tmp/log" "$tmp/start"
done
keys=$(sed -n 's/.*run.preset=table sets //p' "$tmp/start" | sed 's/, / /g')
for text in \
    'rows to learn from, [0-9]* held out; the baseline, always [0-9.e+]*, has loss .*, rmse' \
    'best rmse on the rows held out: .* at step .*; the baseline has' \
    "the model is in $tmp/pasted/export/best; next: dtrain predict"; do
    expect_line "$tmp/start" "$text" "no '$text'"
done
# Of some thousand rows the baseline is no estimate: 700 of 6,000 are of the other class, and stand
# in front.
awk 'BEGIN {print "a,b,k"; for (i = 0; i < 6000; i++) print i % 7 "," i % 9 "," (i < 700)}' \
    >"$tmp/rare.csv"
job 1 run.dir="$tmp/rare" data.train="$tmp/rare.csv" data.eval="$tmp/rare.csv" train.max_steps=0 \
    2>"$tmp/log" || fail rare
expect_line "$tmp/log" 'the baseline, always 0.117 for class .1., has loss .*, accuracy 0.88333$' \
    'the baseline'
job 1 "$tmp/pasted.ini" run.dir="$tmp/pasted" train.lr=0.001 2>"$tmp/log" ||
    fail_with "$tmp/log" 'a rate of its own'
grep -q 'sets' "$tmp/log" && fail 'a resume decides again'
# shellcheck disable=SC2086 # a word a key
job 1 run.dir="$tmp/written" data.train="$tmp/far.csv" model.task=regress data.eval_fraction=0.2 \
    $keys 2>"$tmp/log" || fail_with "$tmp/log" written
grep -q 'run.preset' "$tmp/log" && fail 'a preset beside an optimizer that is given'
job 1 run.dir="$tmp/rate" data.train="$tmp/far.csv" model.task=regress train.max_steps=1 \
    train.lr=0.01 2>"$tmp/log" || fail_with "$tmp/log" rate
expect_line "$tmp/log" 'train.lr is given, which turns off the preset for tables' \
    'no word of a preset that a rate turns off'
job 3 "$tmp/pasted/config.ini" run.dir="$tmp/printed" train.lr=0.002 2>"$tmp/log" ||
    fail_with "$tmp/log" config.ini
for name in written printed; do
    check_eq "bits of the preset, $name" "$(crc "$tmp/$name")" "$(crc "$tmp/pasted")"
done
expect_line "$tmp/pasted/config.ini" '^normalize = robust' \
    'config.ini does not show what the preset came to'
# Keys of the network that leave its widths to the preset do not keep the same command from going
# on.
for key in model.activation=tanh model.dropout=0.1 model.kind=mlp; do
    for steps in 5 10; do
        job 2 run.dir="$tmp/$key" data.train="$tmp/far.csv" model.task=regress $key \
            train.max_steps=$steps 2>"$tmp/log" || fail_with "$tmp/log" "$key, to step $steps"
    done
    expect_line "$tmp/log" 'resuming at step 5 of 10' "$key is not gone on with"
done
job 2 run.dir="$tmp/model.activation=tanh" data.train="$tmp/far.csv" model.task=regress \
    model.activation=relu 2>"$tmp/log" && fail 'another activation: exit 0'
expect_line "$tmp/log" \
    'model.activation=relu, .*which makes dense 128 relu.*: the run to resume has dense 128 tanh' \
    'another activation'
sed 's/:0\.9/:7.9/' "$tmp/a.svm" >"$tmp/far.svm"
sparse 1 far_sparse data.train="$tmp/far.svm" data.clip=1
same "$tmp/far.svm" "$tmp/far_sparse"
sed 's/:7\.9[0-9]*/:1/; s/:1\.0[0-9]*/:1/g' "$tmp/far.svm" >"$tmp/near.svm"
"$dtrain" predict "$tmp/far_sparse" <"$tmp/near.svm" 2>/dev/null | cmp - "$tmp/stream" ||
    fail 'sparse values are not clipped'

# ---- columns that say nothing --------------------------------------------------------------------
awk 'BEGIN {
    srand(7)
    print "a,b,y,c"
    for (i = 0; i < 300; i++) {
        a = rand()
        print a ",7," 3 * a ","
    }
}' >"$tmp/nothing.csv"
job 1 data.train="$tmp/nothing.csv" data.label=y data.missing=mean model.task=regress \
    data.normalize=standard run.dir="$tmp/nothing" data.eval_fraction=0.2 train.lr=0 \
    train.epochs=1 2>"$tmp/log" || fail_with "$tmp/log" nothing
constant="'b', like others, has one value in all training rows"
expect_line "$tmp/log" "warning: $constant.*data.ignore=b leaves the column out" \
    'no word of a constant column'
expect_line "$tmp/log" "warning: column 3 ('c') has no value in any row: data.ignore=3" \
    'no word of an empty column'
if grep -q 'worse than the baseline.*r2' "$tmp/log"; then
    grep 'worse than the baseline' "$tmp/log" | grep -q 'normalize=standard' &&
        fail 'data.normalize is advised where it is set'
else
    fail 'a network that learns nothing is better than the mean'
fi
# Advice that the loss does not allow is not given.
job 1 data.train="$tmp/nothing.csv" data.label=y data.missing=mean model.task=regress \
    train.loss=poisson run.dir="$tmp/counts" data.eval_fraction=0.2 train.lr=0 train.epochs=1 \
    2>"$tmp/log" || fail_with "$tmp/log" counts
expect_line "$tmp/log" 'not clearly better than the baseline.*normalize=standard may help$' \
    'advice on counts'

# ---- the first row -------------------------------------------------------------------------------
# A label that is named stands in a header, whatever the other columns are called.
printf '0,1,2,kind\n0.5,0.6,0.1,cat\n0.6,0.7,0.2,dog\n0.1,0.2,0.3,dog\n' >"$tmp/count.csv"
count() {
    rm -rf "$tmp/count"
    job 1 data.train="$tmp/count.csv" model.kind=linear train.epochs=1 run.dir="$tmp/count" "$@" \
        >"$tmp/log" 2>&1 || fail_with "$tmp/log" count
}
count data.label=kind
"$dtrain" inspect "$tmp/count" | grep -q 'classes *2 (cat, dog)' ||
    fail 'a header of numbers is taken for a row'
count
expect_line "$tmp/log" 'warning: .*count.csv:1: 0, 1, 2 ... are taken for values.*data.header=yes' \
    'no word of 0, 1, 2 ...'
"$dtrain" inspect "$tmp/count.csv" data.label=kind | grep -q '3 rows, 4 columns$' ||
    fail 'inspect sees no header of numbers'
printf 'name,y\nabcdefghijkl,1\nabcdefghijklm,0\n' >"$tmp/long.csv"
"$dtrain" inspect "$tmp/long.csv" | grep -q 'abcdefghijkl | abcdefghij\.\.$' ||
    fail 'inspect cuts a value that is not long'
printf 'region,2019,2020,2021\nnorth,1,2,3\nsouth,2,4,4\n' >"$tmp/years.csv"
"$dtrain" inspect "$tmp/years.csv" 2>&1 |
    grep -q 'warning: .*years.csv:1: 2019, 2020, 2021 ... are taken for values' ||
    fail 'no word of years'
printf '3,7,8\n1,2,2\n5,9,2\n' >"$tmp/rows.csv"
"$dtrain" inspect "$tmp/rows.csv" 2>&1 | grep 'taken for values' &&
    fail 'numbers that do not count are said to'
# Texts alone may have no names above them: the label's name is then one of its values.
printf 'red,small,yes\nblue,big,no\nred,big,yes\nblue,small,no\n' >"$tmp/texts.csv"
for header in auto no; do
    "$dtrain" data.train="$tmp/texts.csv" data.header=$header train.max_steps=1 \
        run.dir="$tmp/texts-$header" 2>"$tmp/$header.log" ||
        fail_with "$tmp/$header.log" 'a table of texts'
done
also="the label's column is named 'yes', which is also a class"
expect_line "$tmp/auto.log" "warning: $also: if the first row is data, set data.header=no" \
    'no word of a first row of texts'
grep -q 'also a class' "$tmp/no.log" && fail 'a warning of a name that is none'
printf 'a,the payment that is due in the next month\n1,0\n2,1\n' >"$tmp/long.csv"
"$dtrain" inspect "$tmp/long.csv" data.label='the payment that is due in the next month' |
    grep -q '^label = the payment that is due in the next month$' || fail 'inspect cuts a long name'

# The same of inspect, with advice.
inspect() {
    printf "$2" >"$tmp/wrong.csv"
    "$dtrain" inspect "$tmp/wrong.csv" ${3:-} >"$tmp/out" 2>&1
    expect_line "$tmp/out" "$1" "inspect: no '$1'"
}
inspect 'the file is empty' ''
inspect 'this is UTF-16 text' '\377\376a\0,\0y\0\n\0'
inspect '^decimal = ,   ; a comma is the decimal point in d' 'd;y\n0,5;0\n'
inspect '^decimal = ,   ; a comma is the decimal point in y' 'd;y\n1;0,5\n2;1,5\n'
expect_line "$tmp/out" '^task = regress' 'a label with commas is taken for classes'
inspect '^; numbers with a sign or unit .* or marks between thousands: p' 'p,y\n5%%,0\n7%%,1\n'
inspect '^; numbers with zeros in front: p' 'p,y\n01,0\n10,1\n'
inspect '^decimal = ,   ; a comma is the decimal point in p' 'p;y\n1.250,5;0\n2,5;1\n7;1\n'
# No figures of the 7 alone.
inspect '^p  *feature not plain  *0  *3  *1.250,5 | 2,5 | 7$' 'p;y\n1.250,5;0\n2,5;1\n7;1\n'
inspect '^ü \{24\}feature ' 'ü,y\n1,0\n2,1\n'
inspect 'wrong.csv:3: data.label=7: there are 2 columns' '\n\na,y\n1,0\n' data.label=7
inspect '^auto  *feature integer ' 'auto,none,y\n1,2,0\n2,3,1\n'
inspect '^ignore = b,3,4,5 ' 'a,b,y,b,,\n1,,0,,,\n2,,1,,,\n' data.label=y
awk 'BEGIN {print "a,y,"; for (i = 0; i < 50; i++) print (i == 30 ? "x" : i) "," i % 2 ","}' \
    >"$tmp/odd.csv"
"$dtrain" inspect "$tmp/odd.csv" >"$tmp/out" 2>&1
expect_line "$tmp/out" \
    "^; a: 1 of 50 values are no numbers, the first is 'x' in line 32: write numbers or NA there" \
    'inspect hides the odd text'
expect_line "$tmp/out" '^label = y ' 'inspect takes a column without values for the label'
"$dtrain" inspect "$tmp/odd.csv" data.label=2 >"$tmp/out" 2>&1
expect_line "$tmp/out" '^; no row has a label here' 'a label without values'
grep -q '^unlabelled' "$tmp/out" && fail 'inspect leaves all rows out'
inspect '^task = multilabel$' 'a,y,z\n1,0,1\n2,1,0\n' data.label=y,z
inspect '^task = regress$' 'a,y,z\n1,0.5,1\n2,1,7\n' data.label=y,z
inspect '^rows with another number of columns: 2$' 'a,y\n1,0\n2\n3,1\n4,1,5\n'
inspect 'single carriage returns' 'a,y\r1,0\r'
awk 'BEGIN {
    print ",\"size, mm\",2,y,end"
    for (i = 0; i < 300; i++) print i ",2021-03-04," i % 7 "," i % 2 ","
}' >"$tmp/wrong.csv"
"$dtrain" inspect "$tmp/wrong.csv" data.label=y | grep -q '^ignore = 0,end ' ||
    fail 'inspect names columns that have no name'
"$dtrain" inspect "$tmp/wrong.csv" data.label=1 | grep -q '^label = 1$' ||
    fail 'inspect: a label that does not stand in a line'
inspect '^unlabelled = skip   ; 1 rows have no label' 'a,y\n1,2.5\n2,NA\n'
inspect '^; p: commas and points: ' 'p;y\n1.095;0\n826,1;1\n2,5;0\n'
inspect '^label = y ' 'a;y;\n1;0;\n2;1;\n'
inspect "^; d: '31.13.2020' in line 3 is no date like those before it" \
    'd,y\n13.12.2020,0\n31.13.2020,1\n'
inspect '^; d: no row shows whether day or month comes first' 'd,y\n01/02/2020,0\n02/03/2020,1\n'
inspect 'classify, if each number is a class; for counts, train.loss=poisson' \
    "$(printf 'a,y\\n'; seq -f '1,%g\n' 0 30 | tr -d '\n')"
grep -q "set model.task=regress" "$tmp/out" && fail 'advice for what is proposed'
job 1 run.dir="$tmp/amounts" data.train="$tmp/wrong.csv" train.max_steps=0 2>"$tmp/log" ||
    fail_with "$tmp/log" amounts
expect_line "$tmp/log" 'warning: the labels are numbers, and each of them is a class' \
    'amounts as classes in silence'
inspect '^; inf or beyond 3e38 in a' 'a,y\n1,0\ninf,1\n'
# A comma with three digits after it may separate thousands, unless another column's cannot.
inspect '^; numbers with three digits after a comma: a ' 'a;y\n1,250;0\n12,125;1\n'
grep -q '^decimal' "$tmp/out" && fail 'a comma between thousands becomes a decimal one'
inspect '^decimal = ,   ; a comma is the decimal point in a,b' \
    'a;b;y\n1,250;0,125;0\n12,125;2,250;1\n'
# rows N FORMAT: N rows after a header, each with its number.
rows() { printf 'a,y\\n'; seq "$1" | sed "s/.*/$2\\\\n/" | tr -d '\n'; }
# One text among many numbers marks gaps, however often it comes; several are names.
inspect "^; a: 20 of 60 values are no numbers, the first is '-'" \
    "$(rows 40 '&.5,0')$(rows 20 '-,1' | sed 's/^a,y.n//')"
inspect '^categories = a ' "$(rows 40 '&.5,0')$(rows 20 'n&,1' | sed 's/^a,y.n//')"
inspect '^; numbers with a sign or unit .*: a ' "$(rows 40 '&.5 kg,0')"
inspect '^; numbers with a sign or unit .*: a ' "$(rows 40 '"USD &,250.5",0')"
inspect '^a  *feature category ' "$(rows 40 'n&,0')"
inspect '^a  *feature identifier ' "$(rows 150 '&e&a,0')$(rows 20 '9&,0' | sed 's/^a,y.n//')"
inspect '^; a: each point has three digits after it' "$(rows 40 '&.125,0')7,1\n"
inspect '^a  *feature one comma ' "$(rows 40 '"&,125",0')-,1\n"
inspect "^; y: 2 of 42 values are no numbers, the first is '-'" "$(rows 40 '1,&.5')1,-\n1,-\n"
expect_line "$tmp/out" '^task = regress' 'no task of an odd label'
inspect "^; these lines do not train yet: .*label '\$1,250' is no plain number" \
    'a,y\n1,"$1,250"\n2,"$3,125"\n'
inspect '^task = regress' 'a,y\n1,-1\n2,0\n3,1\n'
inspect '^ignore = -4 ' "$(printf ',0,1,2\\n'; seq 150 | sed 's/.*/&,0.5,1,0\\n/' | tr -d '\n')" \
    data.header=yes
# told TEXT ROWS KEY...: the start of a run on these rows prints TEXT.
told() {
    want=$1
    printf "$2" >"$tmp/told.csv"
    shift 2
    rm -rf "$tmp/told"
    job 1 run.dir="$tmp/told" data.train="$tmp/told.csv" train.max_steps=0 "$@" 2>"$tmp/log"
    expect_line "$tmp/log" "$want" "not said: $want"
}
told "'yes' and 'Yes' are two classes: .* only in the case of letters" 'a,y\n1,yes\n2,Yes\n3,no\n'
told '30 classes in 30 rows: nearly each row is a separate class' \
    "$(printf 'a,y\\n'; seq 30 | sed 's/.*/1,n&\\n/' | tr -d '\n')"
times=$(printf 't,y\\n'; seq 10 39 | sed 's/.*/170000&00,&.5\\n/' | tr -d '\n')
told 'feature 0 (t): its values, about 1.7.* lie closer together than 32-bit floats' "$times" \
    model.task=regress
told 'target 0: its values, about 1.7.* lie closer together than 32-bit floats' "$times" \
    data.label=t data.ignore= model.task=regress
told "'t' has one value in all training rows, as 32-bit floats hold it" \
    't,a,y\n1700000001,1,1\n1700000002,2,2\n' model.task=regress
told "write all as numbers, or all as texts" 'a,y\n1,0\n2,b\n'
told 'no column is left for the features: data.ignore names all others' 'a,y\n1,0\n2,1\n' \
    data.ignore=a
# Texts that no row of training has.
printf 'c,y\nTrue,1\nFalse,0\nTrue,1\n' >"$tmp/flags.csv"
job 1 run.dir="$tmp/flags" data.train="$tmp/flags.csv" train.max_steps=1 2>"$tmp/log" ||
    fail_with "$tmp/log" flags
printf 'c\nTRUE\nFALSE\nTrue\n' | "$dtrain" predict "$tmp/flags" >"$tmp/out" 2>"$tmp/err"
expect_line "$tmp/err" "column 0 (c): 2 of 3 rows have a text that training never saw" \
    'unknown texts in silence'
"$dtrain" predict "$tmp/flags" <"$tmp/flags.csv" 2>&1 >"$tmp/out" | grep 'never saw' &&
    fail 'known texts are unknown'

# ---- two classes, rows as arrays, values that are missing ----------------------------------------
printf 'a,b,y\n' >"$tmp/two.csv"
awk 'BEGIN {
    srand(2)
    for (i = 0; i < 200; i++) {
        a = rand()
        print a "," rand() "," (a > .5 ? "spam" : "ham")
    }
}' >>"$tmp/two.csv"
job 1 data.train="$tmp/two.csv" data.eval_fraction=0.2 model.kind=linear train.epochs=3 \
    run.dir="$tmp/two" >"$tmp/log" 2>&1 || fail two
expect_line "$tmp/log" "two classes: 'spam' is the positive one" \
    'the start does not say the positive class'
expect_line "$tmp/log" "data.class_names=spam,ham swaps them" \
    'the start does not say how to take the other class'
"$dtrain" eval "$tmp/two" "$tmp/two.csv" 2>"$tmp/err" && fail 'eval takes a word for a key'
grep -q "two.csv: expected data.eval=$tmp/two.csv" "$tmp/err" || fail "$(cat "$tmp/err")"
check_eq 'positive class of a record' "$(record "$tmp/two" eval positive)" spam
check_eq 'positive class of eval' "$("$dtrain" eval "$tmp/two" 2>/dev/null | json positive)" spam
"$dtrain" inspect "$tmp/two" | grep -q 'positive: spam' ||
    fail 'inspect does not say the positive class'
printf '%s\n' '[0.1, 0.5]' '{"a": 0.9, "b": 0.5}' |
    "$dtrain" predict "$tmp/two" >"$tmp/lines" 2>/dev/null
printf '%s\n' '[[0.1, 0.5], {"a": 0.9, "b": 0.5}]' |
    "$dtrain" predict "$tmp/two" >"$tmp/array" 2>/dev/null
cmp "$tmp/lines" "$tmp/array" || fail 'an array of rows is not the rows'
check_eq 'rows of an array' "$(wc -l <"$tmp/array")" 2
printf 'a,b\n0.1,\n' | "$dtrain" predict "$tmp/two" >"$tmp/out" 2>/dev/null &&
    fail 'a missing value is no error'
expect_line "$tmp/out" 'trained with data.missing=error: data.missing=mean or flag in training' \
    'no advice'
