#!/bin/sh
# Fails if scripts/plot.sh omits a panel, draws one of nothing (a rate that never changes, no
# held-out rows), or makes gnuplot warn: with one evaluation, equal losses, a torn line, odd names.
. "$(dirname "$0")/lib.sh"
need gnuplot
# run NAME RATE LINES...: a run directory with those records; the rate at its end is RATE, it begins
# with 0.1.
run() {
    mkdir -p "$tmp/$1"
    records="$tmp/$1/metrics.jsonl"
    {
        echo '{"kind":"start","step":0,"mode":"sync","workers":2}'
        for step in 10 20 30; do
            rate=0.1
            [ $step -lt 30 ] || rate=$2
            printf '{"kind":"train","step":%s,"loss":0.%s,"lr":%s,' $step $step $rate
            echo "\"samples_per_sec\":1000,\"wall_secs\":$step}"
        done
        shift 2
        printf '%s\n' "$@"
    } >"$records"
}
# drawn WIDTHxHEIGHT RUN...: the picture of those runs has that size.
drawn() {
    want=$1 examples=
    shift
    [ "$1" != --examples ] || { examples=$1; shift; }
    mkdir -p "$tmp/a place" "$tmp/it's"
    TMPDIR="$tmp/a place" scripts/plot.sh "$@" -o "$tmp/it's/out.png" $examples >"$tmp/log" \
        2>"$tmp/err" || fail "$(cat "$tmp/err")"
    [ ! -s "$tmp/err" ] || fail "gnuplot warns: $(cat "$tmp/err")"
    # Width and height are big-endian words.
    size=$(od -An -tu1 -j16 -N8 "$tmp/it's/out.png" |
        awk 'function word(i) { return (($i * 256 + $(i + 1)) * 256 + $(i + 2)) * 256 + $(i + 3) }
            { print word(1) "x" word(5) }')
    check_eq "size of the picture of $*" "$size" "$want"
}
one='{"kind":"eval","step":30,"loss":0.3,"accuracy":0.5,"wall_secs":31}'
run plain 0.1
run rate 0.01 "$one"
run "odd 'name'" 0.1 '{"kind":"eval","step":20,"loss":1e-9,"auc":0.5}' \
    '{"kind":"eval","step":30,"loss":NaN,"auc":null}' \
    '{"kind":"final","step":30,"staleness_histogram":[5,2,1]}' '{"kind":"tra'
printf '[eval]\nmetric = auc\n' >"$tmp/odd 'name'/config.ini"
drawn 1280x460 "$tmp/plain"
drawn 1280x880 "$tmp/rate"
drawn 1280x880 "$tmp/odd 'name'"
drawn 1920x1300 "$tmp/plain" "$tmp/rate" "$tmp/odd 'name'"
# The best is that of the metric which the start names; equal numbers below zero have room above and
# below.
run judged 0.1 '{"kind":"start","step":30,"metric":"mae"}' \
    '{"kind":"eval","step":10,"loss":1,"rmse":3,"mae":1}' \
    '{"kind":"eval","step":20,"loss":2,"rmse":2,"mae":2}'
run below 0.1 '{"kind":"eval","step":10,"loss":-5,"rmse":-5}' \
    '{"kind":"eval","step":20,"loss":-5,"rmse":-5}'
mkdir "$tmp/bin"
printf '#!/bin/sh\ncp "$1" "%s"\ncp "${1%%/*}/truth" "%s" 2>/dev/null\nexec %s "$1"\n' \
    "$tmp/script" "$tmp/truth" "$(command -v gnuplot)" >"$tmp/bin/gnuplot"
chmod +x "$tmp/bin/gnuplot"
PATH="$tmp/bin:$PATH"
drawn 1280x880 "$tmp/judged"
grep -q "title 'best 1 at step 10'" "$tmp/script" ||
    { grep best "$tmp/script"; fail 'the best by mae is not marked'; }
# A number of another metric is no accuracy.
run distance 0.1 '{"kind":"eval","step":30,"loss":0.3,"rmse":9,"wall_secs":31}'
drawn 1920x1300 "$tmp/plain" "$tmp/rate" "$tmp/distance"
grep -q "set title 'Held-out accuracy by time'" "$tmp/script" &&
    grep -q "/2.eval' using 1:4" "$tmp/script" && ! grep -q "/3.eval' using 1:4" "$tmp/script" ||
    fail 'accuracy beside rmse'
# Evaluations before other rows were held out do not count; a run that has none since then has no
# best.
era='{"kind":"start","step":20,"best_era":5}'
run era 0.1 '{"kind":"eval","step":10,"loss":1,"accuracy":0.9}' "$era" \
    '{"kind":"eval","step":20,"loss":1,"accuracy":0.5}' "$era" \
    '{"kind":"eval","step":30,"loss":1,"accuracy":0.4}'
drawn 1280x880 "$tmp/era"
grep -q "title 'best 0.5 at step 20'" "$tmp/script" ||
    { grep best "$tmp/script"; fail 'the best of the rows that are held out'; }
run passed 0.1 '{"kind":"eval","step":10,"loss":1,"accuracy":0.9}' "$era"
drawn 1280x880 "$tmp/passed"
! grep -q 'best ' "$tmp/script" || { grep best "$tmp/script"; fail 'a best of other rows'; }
# Nor does it depend on the locale, whose numbers may have commas.
if localedef -i de_DE -f UTF-8 "$tmp/de_DE.UTF-8" >/dev/null 2>&1; then
    run points 0.1 '{"kind":"eval","step":10,"loss":0.2,"accuracy":0.5}' \
        '{"kind":"eval","step":20,"loss":0.3,"accuracy":0.75}'
    (
        export LOCPATH="$tmp" LC_ALL=de_DE.UTF-8
        drawn 1280x880 "$tmp/points"
        "$recipes/exp-data.sh" "$tmp/exp"
    ) || exit 1
    grep -q "title 'best 0.75 at step 20'" "$tmp/script" ||
        { grep best "$tmp/script"; fail 'the best in German'; }
    check_eq 'a recipe in German' "$(sed -n 2p "$tmp/exp/test.csv")" '-0.992,0.37083428'
fi
drawn 1280x880 "$tmp/below"
grep -q 'set yrange \[-5.5:-4.5\]' "$tmp/script" ||
    { grep yrange "$tmp/script"; fail 'a range of one number below zero'; }
mkdir "$tmp/nothing"
echo '{"kind":"start","step":0}' >"$tmp/nothing/metrics.jsonl"
scripts/plot.sh "$tmp/nothing" 2>"$tmp/err"
check_eq 'exit code with nothing to draw' $? 1
grep -q 'nothing to draw yet' "$tmp/err" || fail "$(cat "$tmp/err")"

# Regression: what was predicted against what is true.
awk 'BEGIN { srand(2); print "a,y"; for (i = 0; i < 200; i++) { a = rand(); print a "," 2 * a } }' \
    >"$tmp/rows.csv"
job 2 run.dir="$tmp/values" data.train="$tmp/rows.csv" data.eval="$tmp/rows.csv" \
    model.task=regress train.lr=0.01 model.hidden=4 train.epochs=3 run.log_steps=1 2>"$tmp/err" ||
    fail "$(cat "$tmp/err")"
drawn 1280x880 "$tmp/values"
"$dtrain" predict "$tmp/values" data.eval="$tmp/rows.csv" predict.target=yes 2>"$tmp/err" |
    sed 's/.*"target":\(.*\)}/\1/' >"$tmp/targets"
sed '1d; s/.*,//' "$tmp/rows.csv" | paste - "$tmp/targets" |
    awk '{ d = $1 - $2; if (d * d > 1e-10) exit 1 } END { exit NR != 200 }' ||
    fail 'targets of records'

# --examples: pictures of held-out rows and the confusion matrix; points; fields. Rows, targets and
# features come from `predict predict.held_out=yes`: the rows that eval measures.
awk 'BEGIN { srand(4); for (i = 0; i < 240; i++) { c = i % 2; for (k = 0; k < 16; k++)
    printf "%.2f,", rand() + (c && k < 8); print (c ? "top \047half\047" : "none") } }' \
    >"$tmp/pictures.csv"
job 2 run.dir="$tmp/pictures" data.train="$tmp/pictures.csv" data.eval_fraction=0.25 \
    data.stratify=no data.shape=4x4x1 data.normalize=none model.layers='conv 2 3x3 relu, flatten' \
    train.epochs=2 2>"$tmp/err" || fail "$(cat "$tmp/err")"
"$dtrain" -q predict "$tmp/pictures" predict.held_out=yes predict.target=yes predict.features=yes \
    >"$tmp/held" || fail 'predict.held_out'
wrong=$(awk '
    { match($0, /"class":[0-9]/); said = substr($0, RSTART + 8, 1) }
    { match($0, /"target":[0-9]/); wrong += said != substr($0, RSTART + 9, 1) }
    END { print wrong / NR }' "$tmp/held")
right=$("$dtrain" -q eval "$tmp/pictures" eval.json=yes | json accuracy)
check_eq "rows that are held out, and said wrong as eval says" \
    "$(wc -l <"$tmp/held") $(awk "BEGIN { print $wrong + $right }")" '60 1'
check_eq 'features of a row' \
    "$(sed -n '1s/.*"features":\[\([^]]*\).*/\1/p' "$tmp/held" | tr ',' '\n' | wc -l)" 16
for row in $(sed -n '3s/.*"features":\[\([^]]*\).*/\1/p' "$tmp/held"); do
    grep -qF "$row" "$tmp/pictures.csv" || fail "features $row are not a row of the file"
done
drawn 1524x820 --examples "$tmp/pictures"
drawn 660x660 --examples "$tmp/values"
# Each quantile stands over its row's target, also of the rows that many are thinned out to.
awk 'BEGIN { print "a,y"; for (i = 0; i < 2500; i++) print i % 89 "," i }' >"$tmp/rows.csv"
job 2 run.dir="$tmp/quantiles" data.train="$tmp/rows.csv" data.eval="$tmp/rows.csv" \
    model.task=regress train.loss=quantile train.epochs=1 2>"$tmp/err" || fail "$(cat "$tmp/err")"
drawn 1280x880 "$tmp/quantiles"
expect_line "$tmp/script" "1.train' using 1:5 with linespoints" 'one record alone is not seen'
for quantiles in "1280x880 $tmp/quantiles" "660x660 --examples $tmp/quantiles"; do
    drawn $quantiles
    "$dtrain" -q predict "$tmp/quantiles" predict.held_out=yes |
        awk -F '[][, ]' 'NR == FNR { for (i = 2; i < 5; i++) said[FNR - 1, $i] = i; next }
            { at[said[$1, $2]]++ }
            END { print (at[2] > 900), (at[3] > 900), (at[4] > 900), at[""] + 0 }' \
            - "$tmp/truth" >"$tmp/out"
    check_eq "points of three quantiles, and others, of ${quantiles%% *}" "$(cat "$tmp/out")" \
        '1 1 1 0'
done
awk 'BEGIN { print "a,b,c"; for (i = 0; i < 200; i++) print i "," i % 2 "," (i > 99) }' \
    >"$tmp/rows.csv"
job 2 run.dir="$tmp/labels" data.train="$tmp/rows.csv" data.eval_fraction=0.1 data.label=b,c \
    model.task=multilabel train.epochs=1 2>"$tmp/err" || fail "$(cat "$tmp/err")"
scripts/plot.sh --examples "$tmp/labels" 2>"$tmp/err" && fail 'a picture of several labels'
grep -q 'have no picture' "$tmp/err" || fail "$(cat "$tmp/err")"
# Pictures in colour; fields, of which truth and prediction have one scale.
awk 'BEGIN {
    srand(5)
    for (i = 0; i < 100; i++) {
        for (k = 0; k < 12; k++) printf "%.2f,", rand()
        print i % 2
    }
}' >"$tmp/rows.csv"
job 2 run.dir="$tmp/colours" data.train="$tmp/rows.csv" data.eval_fraction=0.2 data.shape=2x2x3 \
    model.layers='conv 2 1x1 relu, flatten' train.epochs=1 2>"$tmp/err" || fail "$(cat "$tmp/err")"
drawn 1524x516 --examples "$tmp/colours"
awk 'BEGIN { srand(6); print "a,b,c,d,p,q,r,s"; for (i = 0; i < 100; i++) {
    for (k = 0; k < 7; k++) printf "%.2f,", 9 * rand(); print k } }' >"$tmp/rows.csv"
job 2 run.dir="$tmp/fields" data.train="$tmp/rows.csv" data.label=p,q,r,s \
    data.eval_fraction=0.2 data.shape=2x2x1 model.task=regress model.layers='output conv 1 1x1' \
    train.epochs=1 2>"$tmp/err" || fail "$(cat "$tmp/err")"
drawn 1820x408 --examples "$tmp/fields"
check_eq 'scales' "$(grep -c 'set cbrange \[-*[0-9]' "$tmp/script")" 8
# A class that is never said has its name as well.
awk 'BEGIN {
    for (i = 0; i < 400; i++) print i % 3 "," (i % 40 == 7 ? "rare" : i % 3 ? "down" : "up")
}' >"$tmp/rows.csv"
job 2 run.dir="$tmp/rare" data.train="$tmp/rows.csv" data.eval="$tmp/rows.csv" train.epochs=3 \
    2>"$tmp/err" || fail "$(cat "$tmp/err")"
drawn 500x500 --examples "$tmp/rare"
expect_line "$tmp/script" "'down' 0, 'rare' 1, 'up' 2" 'names of classes'
"$dtrain" predict "$tmp/values" predict.features=yes </dev/null 2>"$tmp/err"
check_eq 'exit code of features of standard input' $? 2
job 2 run.dir="$tmp/unseen" data.train="$tmp/pictures.csv" data.eval_fraction=0 train.epochs=1 \
    2>"$tmp/err" || fail "$(cat "$tmp/err")"
scripts/plot.sh --examples "$tmp/unseen" 2>"$tmp/err" && fail 'a picture without held-out rows'
grep -q 'was trained without held-out data' "$tmp/err" || fail "$(cat "$tmp/err")"
