#!/bin/sh
# Fails if shards fill a gap before the training rows are known, use codes of another dictionary,
# lose weights, or write rows out in full. What works on a CSV works on its shards, with the same
# bits: a CSV is sharded, then brought into the order of its shard, which follows from the number of
# rows, and both are trained on. Texts, embeddings, the wide path, hashed texts, rare texts, gaps,
# dates, weights, several targets.
. "$(dirname "$0")/lib.sh"
rows=600
awk -v n=$rows 'BEGIN {
    srand(6)
    print "user,item,num,when,w,a,b,y"
    for (i = 0; i < n; i++) {
        u = int(40 * rand())
        v = int(30 * rand())
        x = rand()
        d = 1 + int(28 * rand())
        item = rand() < .05 ? "" : "i" v
        num = rand() < .1 ? "NA" : x * 9 - 3
        when = rand() < .1 ? "" : d "/" 1 + d % 12 "/2021"
        w = 1 + int(3 * rand())
        yes = rand() < 1 / (1 + exp((20 - u) / 9 + (v - 15) / 9))
        printf "u%d,%s,%s,%s,%s,%.4f,%.4f,%s\n", u, item, num, when, w, u / 40 + x, v / 30 - x,
            yes ? "yes" : "no"
    }
}' >"$tmp/a.csv"
shard() { "$dtrain" shard "$@" 2>"$tmp/err" || fail "$(cat "$tmp/err")"; }

# The order of a shard, from the numbers of its rows.
awk -v n=$rows 'BEGIN {print "x,y"; for (i = 0; i < n; i++) print i "," i % 2}' >"$tmp/n.csv"
shard "$tmp/n" 1 data.train="$tmp/n.csv"
job 1 data.train="$tmp/n.csv" run.preset=none train.max_steps=1 run.dir="$tmp/counts" \
    2>"$tmp/err" || fail "$(cat "$tmp/err")"
"$dtrain" predict "$tmp/counts" data.eval="$tmp/n/*.h5" predict.features=yes 2>"$tmp/err" |
    sed 's/.*"features":\[\([0-9.]*\)\].*/\1/' >"$tmp/order"
check_eq 'rows in the order' "$(sort -nu "$tmp/order" | wc -l | tr -d ' ')" $rows
awk 'NR == FNR {line[NR - 2] = $0; next} FNR == 1 {print line[-1]} {print line[$1]}' "$tmp/a.csv" \
    "$tmp/order" >"$tmp/b.csv"

# same NAME "KEYS OF THE TABLE" KEY...: weights after some epochs on the CSV and on its shard, at np
# = 1 and 3.
same() {
    name=$1 table=$2
    shift 2
    # shellcheck disable=SC2086
    shard "$tmp/$name" 1 data.train="$tmp/a.csv" $table
    for data in csv h5; do
        from="$tmp/b.csv" np=1
        [ $data = csv ] ||
            { from="$tmp/$name/*.h5" np=3; table=$(echo " $table" | sed 's/ data\.[^ ]*//g'); }
        # shellcheck disable=SC2086
        job $np data.train="$from" data.eval_fraction=0.2 run.preset=table train.epochs=3 \
            run.replicas=2 train.batch=50 run.dir="$tmp/$name-$data" $table "$@" 2>"$tmp/err" ||
            fail "$(cat "$tmp/err")"
    done
    check_eq "$name: bits on shards" "$(crc "$tmp/$name-h5")" "$(crc "$tmp/$name-csv")"
    check_eq "$name: loss on shards" "$(record "$tmp/$name-h5" eval loss)" \
        "$(record "$tmp/$name-csv" eval loss)"
}
columns='data.ignore=w,a,b data.missing=flag'
same plain "$columns"
same mean "data.ignore=w,a,b data.missing=mean data.min_count=16" data.normalize=robust
same hashed "$columns data.hash_bits=5"
same tables "$columns data.hash_bits=12" model.embedding=4 model.wide=yes
same cosines "$columns" data.encode=cosine data.encode_width=3
same fractions "$columns data.hash_bits=12" data.encode=ple data.encode_bins=4 model.embedding=4 \
    model.wide=yes
same embedded "$columns" model.embedding=4 model.wide=yes
same weighted "data.ignore=a,b data.missing=flag data.weight=w"
same targets "data.label=a,b data.ignore=w,y data.missing=mean model.task=regress"
check_eq 'hashed texts change bits' \
    "$([ "$(crc "$tmp/hashed-csv")" = "$(crc "$tmp/plain-csv")" ] || echo yes)" yes
check_eq 'weights change bits' \
    "$([ "$(crc "$tmp/weighted-csv")" = "$(crc "$tmp/plain-csv")" ] || echo yes)" yes

# Shards of shards, run.init, eval, predict, and a resume.
shard "$tmp/again" 3 data.train="$tmp/weighted/*.h5"
accuracy() { "$dtrain" eval "$tmp/weighted-csv" data.eval="$1" 2>"$tmp/err" | json accuracy; }
check_eq 'accuracy on shards of shards' "$(accuracy "$tmp/again/*.h5")" "$(accuracy "$tmp/a.csv")"
"$dtrain" inspect "$tmp/again/shard-00001-of-00003.h5" | tail -n +2 >"$tmp/said"
want='/dtrain/categories  (72) texts,/dtrain/columns  (5) texts,/dtrain/label  (1) texts'
want="$want,/dtrain/rows  (200, 4) integers,/dtrain/weight  (200) floats"
want="$want,/label_names  (2) texts,/y  (200) integers"
check_eq 'what inspect says of a shard' \
    "$(grep -o '/[a-z_/]*  ([0-9, ]*) [a-z]*' "$tmp/said" | sort | paste -sd,)" "$want"
for data in "$tmp/b.csv" "$tmp/plain/*.h5"; do
    "$dtrain" eval "$tmp/plain-csv" data.eval="$data" 2>"$tmp/err" || fail "$(cat "$tmp/err")"
    "$dtrain" predict "$tmp/embedded-csv" data.eval="$data" predict.features=yes 2>"$tmp/err" ||
        fail "$(cat "$tmp/err")"
done >"$tmp/out"
check_eq 'lines of eval and predict' "$(wc -l <"$tmp/out" | tr -d ' ')" $((2 * rows + 2))
head -n $((rows + 1)) "$tmp/out" >"$tmp/csv"
tail -n $((rows + 1)) "$tmp/out" | cmp - "$tmp/csv" || fail 'eval and predict differ on shards'
for data in "$tmp/b.csv" "$tmp/plain/*.h5"; do
    keys=$columns dir="$tmp/init-csv"
    [ "$data" = "$tmp/b.csv" ] || { keys='' dir="$tmp/init-h5"; }
    # shellcheck disable=SC2086
    job 1 data.train="$data" run.init="$tmp/mean-csv" run.preset=table train.epochs=1 \
        run.dir="$dir" $keys 2>"$tmp/err" || fail "$(cat "$tmp/err")"
done
check_eq 'bits of run.init on shards' "$(crc "$tmp/init-h5")" "$(crc "$tmp/init-csv")"

# A model finds the classes of a shard as those of text: by their numbers or names, also where the
# shard has fewer of them, or they are counted otherwise.
labels() { # FILE LABEL...: a table with these labels
    file=$1
    shift
    awk -v labels="$*" 'BEGIN {
        srand(3)
        n = split(labels, l, " ")
        print "x,z,y"
        for (i = 0; i < 150; i++) {
            c = 1 + int(n * rand())
            print l[c] + rand() "," rand() "," l[c]
        }
    }' >"$file"
}
labels "$tmp/012.csv" 0 1 2
labels "$tmp/12.csv" 1 2
sed 's/,\([0-9]\)$/,c\1/' "$tmp/012.csv" >"$tmp/c012.csv"
sed 's/,\([0-9]\)$/,c\1/' "$tmp/12.csv" >"$tmp/c12.csv"
for name in 012 c012; do
    job 1 data.train="$tmp/$name.csv" train.epochs=20 run.dir="$tmp/of-$name" 2>"$tmp/err" ||
        fail "$(cat "$tmp/err")"
    few=${name%012}12
    shard "$tmp/few-$name" 1 data.train="$tmp/$few.csv"
    check_eq "accuracy on fewer classes, $name" \
        "$("$dtrain" eval "$tmp/of-$name" data.eval="$tmp/few-$name/*.h5" 2>"$tmp/err" |
            json accuracy)" \
        "$("$dtrain" eval "$tmp/of-$name" data.eval="$tmp/$few.csv" 2>"$tmp/err2" | json accuracy)"
done
for pair in '012 few-c012' 'c012 few-012'; do
    "$dtrain" eval "$tmp/of-${pair% *}" data.eval="$tmp/${pair#* }/*.h5" 2>"$tmp/err" &&
        fail "other classes: $pair"
    grep -q "^dtrain: error: .*label '.*' \(is not a class number\|was never seen\)" "$tmp/err" ||
        fail "$(cat "$tmp/err")"
done

# The size: codes, not a byte a text.
least=$(($(wc -c <"$tmp/a.csv")))
check_le 'bytes of a shard' "$(cat "$tmp/plain/"*.h5 | wc -c | tr -d ' ')" "$least"

# ---- mistakes ------------------------------------------------------------------------------------
no() { # TEXT KEY...
    text=$1
    shift
    job 1 run.dir="$tmp/no" "$@" 2>"$tmp/err" && fail "no error: $*"
    grep -q "^dtrain: error: .*$text" "$tmp/err" || fail "$(cat "$tmp/err")"
}
no 'has no weights, unlike the earlier files' data.train="$tmp/weighted/*.h5,$tmp/plain/*.h5"
no 'data.x: applies only to HDF5, and the data is' data.train="$tmp/plain/*.h5" data.x=/dtrain/rows
no 'the columns or their categories differ from those of the earlier files' \
    data.train="$tmp/plain/*.h5,$tmp/mean/*.h5"
printf '1,2,3,0\n2,3,4,1\n' >"$tmp/numbers.csv"
job 1 data.train="$tmp/numbers.csv" train.max_steps=1 run.dir="$tmp/numbers" 2>"$tmp/err" ||
    fail "$(cat "$tmp/err")"
"$dtrain" eval "$tmp/numbers" data.eval="$tmp/plain/*.h5" 2>"$tmp/err" &&
    fail 'a table is measured by a model of numbers'
grep -q 'a shard of a table, but the model takes plain numbers' "$tmp/err" ||
    fail "$(cat "$tmp/err")"
