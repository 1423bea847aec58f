#!/bin/sh
# Draws OUT/medians.tsv as OUT/bench.png.
#   scripts/bench/plot.sh OUT
set -eu
out=$1
command -v gnuplot >/dev/null || { echo 'no picture: gnuplot is not installed'; exit 0; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# pivot SECTION METRIC PROGRAM...: a line a case, its name and the programs' medians ("?": none).
pivot() {
    awk -F '\t' -v section="$1" -v metric="$2" -v programs="$(shift 2; IFS='|'; echo "$*")" '
        $1 == section && $4 == metric {
            if (!($2 in seen)) { seen[$2]; cases[++n] = $2 }
            value[$2, $3] = $5
        }
        END {
            wanted = split(programs, program, "|")
            for (c = 1; c <= n; c++) {
                name = cases[c]
                sub(/, batch.*/, "", name)
                printf "\"%s\"", name
                for (p = 1; p <= wanted; p++)
                    printf " %s", (cases[c], program[p]) in value ? value[cases[c], program[p]] : "?"
                print ""
            }
        }' "$out/medians.tsv"
}

# curve CASE METRIC: what grows, and the metric.
curve() {
    awk -F '\t' -v at="^$1" -v metric="$2" '$1 == "growth" && $2 ~ at && $4 == metric { print $3, $5 }' \
        "$out/medians.tsv"
}

np=$(awk -F '\t' '$1 == "speed" && $3 ~ /^dtrain/ { print $3 }' "$out/medians.tsv" | sort -V | tail -n 1)
pivot speed samples_per_sec 'dtrain np=1' "${np:-none}" PyTorch DDP >"$tmp/speed"
pivot speed percent_of_peak 'dtrain np=1' "${np:-none}" PyTorch DDP >"$tmp/peak"
pivot budget step_percent compute data reduce update network wait | sed 's/ ?/ 0/g' >"$tmp/budget"
for name in ranks batch parameters; do
    curve $name samples_per_sec >"$tmp/$name-rate"
    curve $name step_ms >"$tmp/$name-step"
done
gnuplot -e "tmp = '$tmp'; png = '$out/bench.png'; np = '${np:-dtrain}'" "$(dirname "$0")/bench.gp"
