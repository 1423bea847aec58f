#!/bin/sh
# Fails if the order of sums or of data depends on the ranks: one process and three draw the same
# loss curve of y = e^x, digit for digit, and the recipe reaches its error.
. "$(dirname "$0")/lib.sh"
"$recipes/exp-data.sh" "$tmp/data"
curve() {
    job "$1" "$recipes/exp-curve.ini" run.dir="$tmp/np$1" run.replicas=2 \
        data.train="$tmp/data/train.csv" data.eval="$tmp/data/test.csv" || fail "np $1"
    records "$tmp/np$1" train loss >"$tmp/loss$1"
}
curve 1
curve 3
check_le 'rmse at np=3' "$(record "$tmp/np3" eval rmse)" 0.01
check_ge 'train records' "$(wc -l <"$tmp/loss1")" 20
cmp "$tmp/loss1" "$tmp/loss3" || fail 'the losses differ'
check_eq 'params_crc32c' "$(crc "$tmp/np3")" "$(crc "$tmp/np1")"
command -v gnuplot >/dev/null || skip 'in part: gnuplot is not installed'
scripts/plot.sh -o "$tmp/curves.png" "$tmp/np1" "$tmp/np3" || fail plot
check_eq 'picture' "$(head -c 8 "$tmp/curves.png" | tail -c 7 | head -c 3)" PNG
