#!/bin/sh
# Fails if `dtrain importance` leaves a column as it is, tears a text, moves numbers without their
# encodings, or loses a unit of work. Columns come in the order of their worth, useless ones near 0,
# correlated ones together, with the same digits at any number of ranks.
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
expect_error 2 'eval.metric=auc' 1 importance none importance.metric=auc
expect_error 2 'expected a model' 1 importance
expect_error 2 'unknown key' 1 importance none wrong=1
expect_error 1 'cannot open' 2 importance gone
