#!/bin/sh
# Draws OUT/medians.tsv (section, case, program, metric, median) as OUT/bench.png: a panel for each
# section that ran and each of its metrics that has a picture.
#   scripts/bench/plot.sh OUT
set -eu
# Some awks read and write numbers as the locale has them: with commas.
export LC_ALL=C
out=$1
[ -s "$out/medians.tsv" ] || { echo 'no picture: nothing was measured'; exit 0; }
command -v gnuplot >/dev/null || { echo 'no picture: gnuplot is not installed'; exit 0; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
tables=0

# of FIELD SECTION METRIC: the distinct values of a field, in order (1 section, 2 case, 3 program).
of() {
    awk -F '\t' -v field="$1" -v section="$2" -v metric="$3" '
        $1 ~ "^(" section ")$" && $4 ~ "^(" metric ")$" && !seen[$field]++ { print $field }' \
        "$out/medians.tsv"
}

# table SECTION METRIC: a line a case, its name and a column a program ("?": none).
table() {
    awk -F '\t' -v section="$1" -v metric="$2" -v programs="$(of 3 "$1" "$2" | paste -sd '|' -)" '
        $1 == section && $4 == metric {
            if (!seen[$2]++) cases[++n] = $2
            value[$2, $3] = $5
        }
        END {
            wanted = split(programs, program, "|")
            for (c = 1; c <= n; c++) {
                name = cases[c]
                sub(/ batch/, "", name)
                printf "\"%s\"", name
                for (p = 1; p <= wanted; p++) {
                    place = cases[c] SUBSEP program[p]
                    printf " %s", place in value ? value[place] : "?"
                }
                print ""
            }
        }' "$out/medians.tsv"
}

# Bars stand on zero, unless they differ so much that only a logarithmic axis shows each of them.
scale_of() {
    awk -F '\t' -v section="$1" -v metric="$2" '$1 == section && $4 == metric && $5 > 0 {
            if (!low || $5 < low) low = $5
            if ($5 > high) high = $5
        }
        END { if (low && high / low > 30) print "set logscale y; set yrange [*:*]" }' \
        "$out/medians.tsv"
}

# bars SECTION METRIC TITLE UNIT SETTINGS: clustered (or stacked) bars, a colour a program.
bars() {
    [ -n "$(of 2 "$1" "$2")" ] || return 0
    tables=$((tables + 1))
    [ "$(of 2 "$1" "$2" | wc -l)" -gt 2 ] && turn='rotate by -20' || turn=norotate
    table "$1" "$2" >"$tmp/$tables"
    plots=$(of 3 "$1" "$2" | awk -v file="$tmp/$tables" '{
        first = NR == 1
        printf "%s \"%s\" using %d%s ", first ? "" : ",", file, NR + 1, first ? ":xtic(1)" : ""
        printf "title \"%s\" lc %d", $0, NR
    }')
    cat <<END
set title '$3'; set ylabel '$4'; set yrange [0:*]; set border 3
unset y2tics; unset y2label; unset xlabel; unset logscale
set style data histograms; set style histogram clustered gap 1.5; set boxwidth 1
set xtics $turn nomirror scale 0 font 'sans,9'; set format x; set format y '%g'; $5
plot $plots
END
}

# growth WHAT XLABEL SETTINGS: rate and time of a step by what grows.
growth() {
    for metric in samples_per_sec step_ms; do
        awk -F '\t' -v at="^$1" -v metric=$metric \
            '$1 == "growth" && $2 ~ at && $4 == metric { print $3, $5 }' "$out/medians.tsv" \
            >"$tmp/$1-$metric"
    done
    [ -s "$tmp/$1-samples_per_sec" ] || return 0
    cat <<END
set title 'growth: $1'; set xlabel '$2'; set ylabel 'samples/s'; set y2label 'ms a step'
set style data linespoints; set border 11; set xtics norotate nomirror scale 1 font 'sans,11'
set y2tics; set y2range [0:*]
set yrange [0:*]; unset logscale; set format y '%.0s%c'; set format x; $3
plot '$tmp/$1-samples_per_sec' title 'samples/s' lc 2 lw 2 pt 7, \\
    '$tmp/$1-step_ms' axes x1y2 title 'ms a step (right)' lc 3 lw 2 pt 5
END
}

# scale KIND TITLE YLABEL: a line a case of the kind (a link), by hosts; measured as points.
scale() {
    cases=$(awk -F '\t' -v kind="$1" \
        '$1 == "scale" && $2 ~ kind && !seen[$2]++ { print $2 }' "$out/medians.tsv")
    [ -n "$cases" ] || return 0
    plots=$(echo "$cases" | while read -r case; do
        file=$tmp/scale-$(echo "$case" | tr -c 'a-z0-9\n' _)
        for metric in predicted_ms measured_ms H=1 H=32; do
            awk -F '\t' -v at="$case" -v metric=$metric '$1 == "scale" && $2 == at && $4 == metric {
                    sub(/ hosts/, "", $3); print $3, $5 }' "$out/medians.tsv" >"$file-$metric"
            name=${case%, ms a step}
            [ "$metric" = predicted_ms ] || name=${name##*, }
            [ ! -s "$file-$metric" ] || case $metric in
            measured_ms) printf '"%s" with points pt 7 lc 8 title "", ' "$file-$metric" ;;
            predicted_ms) printf '"%s" with lines title "%s", ' "$file-$metric" "$name" ;;
            *) printf '"%s" with lines title "%s, %s", ' "$file-$metric" "$name" $metric ;;
            esac
        done
    done)
    cat <<END
set title '$2'; set xlabel 'hosts'; set ylabel '$3'; set border 3
unset y2tics; unset y2label; unset y2range
set xtics norotate nomirror scale 1 font 'sans,11'; set logscale x 2; set logscale y
set yrange [*:*]; set format x; set format y '%g'
plot ${plots%, }
END
}

large="set format y '%.0s%c'"
{
    for section in $(of 1 '.*' '.*'); do
        [ "$section" != growth ] && [ "$section" != scale ] || continue
        bars "$section" samples_per_sec "$section: samples a second" 'samples/s' \
            "$large; $(scale_of "$section" samples_per_sec)"
        bars "$section" percent_of_peak "$section: share of the sgemm rate" '%' ''
        bars "$section" secs_to_target "$section: time to the target" 's' ''
        bars "$section" step_percent "$section: the step of a worker" '% of its time' \
            'set style histogram rowstacked; set boxwidth 0.6; set yrange [0:100]'
        bars "$section" peak_mb "$section: memory a rank" 'MiB' "$large"
    done
    growth ranks 'ranks (bank and workers)' ''
    free='set logscale y; set logscale y2; set yrange [*:*]; set y2range [*:*]'
    growth batch 'samples a step' "set logscale x 2; $free"
    growth parameters parameters "set logscale x 10; set format x '10^{%L}'; $free"
    scale '^[^p].*bit$' 'the exchange: measured (points), predicted (lines)' 'ms a step'
    for net in 784-512-256-10 784-4096-4096-10 1G; do
        scale "^projection: $net, " "projected: $net" 'ms a step, of the exchange'
    done
} >"$tmp/panels"
panels=$(grep -c '^plot' "$tmp/panels") ||
    { echo 'no picture: nothing that has one was measured'; exit 0; }

columns=$((panels < 3 ? panels : 3))
rows=$(((panels + columns - 1) / columns))
{
    size=$((columns * 640)),$((rows * 440 + 40))
    echo "set terminal pngcairo size $size font 'sans,11' noenhanced"
    echo "set output '$out/bench.png'"
    echo "set multiplot layout $rows,$columns title 'dtrain: speed' font 'sans,15'"
    echo "set datafile missing '?'; set grid ytics back lt 1 lw 0.7 lc rgb '#cccccc'"
    echo 'set style fill solid 0.9 noborder; set tics nomirror; set bmargin 4; set encoding utf8'
    echo 'set key above horizontal samplen 2 font "sans,9"'
    i=0
    for colour in 9ecae1 08519c e6550d fdae6b 969696 31a354 756bb1 636363; do
        i=$((i + 1))
        echo "set linetype $i lc rgb '#$colour' lw 2"
    done
    cat "$tmp/panels"
    echo 'unset multiplot'
} >"$tmp/plot"
LC_ALL=C.UTF-8 gnuplot "$tmp/plot"
