#!/bin/sh
# Fails if `dtrain importance` leaves a column as it is, tears a text, moves numbers without their
# encodings, loses a column, gives a deviation without the chance of the held-out rows, or leaves no
# picture for the page. Columns come in the order of their worth, useless ones near 0, correlated
# ones together, with the same digits at any number of ranks.
. "$(dirname "$0")/lib.sh"
cd "$tmp" || exit 1
awk 'BEGIN {
    srand(3)
    print "a,b,twin,kind,junk,y"
    for (i = 0; i < 3000; i++) {
        a = rand()
        b = rand()
        k = int(3 * rand())
        twin = b + 0.02 * rand()
        junk = rand()
        y = 3 * a + b + k + 0.1 * rand()
        print a "," b "," twin "," substr("pqr", k + 1, 1) "," junk "," y
    }
}' >rows.csv
keys='data.train=rows.csv model.task=regress data.eval_fraction=0.2 train.epochs=5'
value() { sed -n "s/.*\[$1\],\"importance\":\([^,]*\).*/\1/p" "$2"; }
for encode in none ple; do
    job 1 $keys data.encode=$encode run.dir=$encode 2>err || fail_with err "a run with $encode"
    for np in 1 3; do
        job $np importance $encode importance.repeats=7 >np$np 2>err || fail_with err "np $np"
    done
    check_eq "lines of 3 ranks, $encode" "$(cksum <np3)" "$(cksum <np1)"
    check_eq 'columns by their worth' "$(sed 's/.*\[\(.*\)\].*/\1/' np1 | tr '\n' ' ')" \
        '"a" "kind" "b","twin" "junk" '
    check_eq 'columns that are permuted together' "$(grep -c together np1)" 1
    check_ge 'kind' "$(value '"kind"' np1)" 0.7 # its rmse alone is 1.15
    check_ge 'a' "$(value '"a"' np1)" 0.7
    check_le 'junk' "$(value '"junk"' np1)" 0.01
    "$dtrain" importance $encode importance.group=no >alone 2>/dev/null || fail 'columns alone'
    check_eq 'columns alone' "$(wc -l <alone)" 5
    check_le 'twins, one by one' "$(value '"b"' alone)" "$(value '"b","twin"' np1)"
done

# 40 columns that tell nothing, of a network that has learned them: in deviations they spread by
# about 1.
awk 'BEGIN {
    srand(5)
    printf "a"
    for (j = 1; j <= 40; j++)
        printf ",junk%d", j
    print ",y"
    for (i = 0; i < 500; i++) {
        a = rand()
        printf "%g", a
        for (j = 1; j <= 40; j++)
            printf ",%g", rand()
        print "," a + rand()
    }
}' >useless.csv
keys='data.train=useless.csv model.task=regress data.eval_fraction=0.4 model.hidden=16'
# shellcheck disable=SC2086 # words
{
    job 1 $keys train.epochs=20 run.dir=useless 2>err &&
        job 1 search $keys train.epochs=1 run.dir=search search.trials=2 \
            search.space=train.lr=0.01 2>err || { cat err; fail 'useless columns'; }
}
"$dtrain" importance useless >lines 2>/dev/null || fail 'useless columns'
grep junk lines | sed 's/.*"importance":\([^,]*\),"deviation":\([^,}]*\).*/\1 \2/' |
    awk '{ squares += ($1 / $2) ^ 2 } END { print sqrt(squares / NR) }' >spread
check_ge 'spread of useless columns' "$(cat spread)" 0.75
check_le 'spread of useless columns' "$(cat spread)" 1.3
check_eq 'lines that are kept' "$(tail -n +2 useless/importance.jsonl | cksum)" "$(cksum <lines)"
check_eq 'what they are of' \
    "$(sed -n '1s/"value":[^,]*,\(.*\),"step.*/\1/p' useless/importance.jsonl)" \
    '{"metric":"rmse","rows":200,"repeats":5'
"$dtrain" importance search importance.repeats=1 >lines 2>/dev/null || fail 'a search'
for run in useless search; do
    "$dtrain" report $run page.html 2>err || { cat err; fail "report $run"; }
    check_eq "lines of the page of $run" "$(grep -o '"columns":\[' page.html | wc -l)" 41
done


"$dtrain" importance useless importance.repeats=10000 >lines 2>err &
measures=$!
begun() { grep -q 'importance: useless' err; }
wait_until begun || fail 'importance does not begin'
kill -TERM $measures
wait $measures
check_eq 'exit code of a stop' $? 75
check_eq 'what is said of it' "$(grep -c 'stopped on request' err)" 1

expect_error 2 'launch importance: launch starts and restarts what trains' 1 launch -np 2 \
    importance none
expect_error 2 'eval.metric=auc' 1 importance none importance.metric=auc
expect_error 2 'expected a model' 1 importance
expect_error 2 'unknown key' 1 importance none wrong=1
expect_error 1 'cannot open' 2 importance gone
