#!/bin/sh
# Makes points of y = e^x on [-1, 1]: DIR/train.csv (512, evenly spaced) and DIR/test.csv (200,
# between them).
#   scripts/recipes/exp-data.sh [DIR]         DIR: runs/exp-data
set -eu
# Some awks read and write numbers as the locale has them: with commas.
export LC_ALL=C
dir=${1:-runs/exp-data}
mkdir -p "$dir"
# points N SHIFT: the middles of N equal parts of [-1, 1], shifted by SHIFT parts.
points() {
    awk -v n="$1" -v shift="$2" 'BEGIN {
        print "x,y"
        for (i = 0; i < n; i++) {
            x = -1 + 2 * (i + 0.5 + shift) / n
            printf "%.9g,%.9g\n", x, exp(x)
        }
    }'
}
points 512 0 >"$dir/train.csv"
points 200 0.3 >"$dir/test.csv"
