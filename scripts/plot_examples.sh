#!/bin/sh
# Draws what a run's model says of its held-out rows, into a PNG; `plot.sh --examples` is this.
#   scripts/plot_examples.sh [-o OUT.png] RUN_DIR|MODEL
#       OUT: RUN_DIR/examples.png
# classes: the confusion matrix as a heat map; rows that are pictures (data.shape) as a grid, those
# that the model gets wrong first, the surest of them before the others. numbers: predicted against
# true. fields (as many numbers as the row has points): row, truth and prediction, the worst first.
set -eu
# Some awks read and write numbers as the locale has them: with commas.
export LC_ALL=C
usage() { sed -n '2,/^set/s/^# //p' "$0" >&2; exit 2; }
out=
while getopts o: option; do
    case $option in o) out=$OPTARG ;; *) usage ;; esac
done
shift $((OPTIND - 1))
[ $# -eq 1 ] || usage
run=$1
[ -n "$out" ] || { [ -d "$run" ] && out=$run/examples.png || out=examples.png; }
command -v gnuplot >/dev/null ||
    { echo 'plot: gnuplot is missing: scripts/setup.sh installs it' >&2; exit 1; }
program=$(dirname "$0")/../dtrain
[ -f "$program" ] || program=$(command -v dtrain) ||
    { echo 'plot: dtrain is not built' >&2; exit 1; }
tables=$(mktemp -d)
trap 'rm -rf "$tables"' EXIT
predict() { "$program" -q predict "$run" predict.held_out=yes predict.target=yes "$@"; }

predict >"$tables/said"
[ -s "$tables/said" ] || { echo "plot: $run: no held-out rows" >&2; exit 1; }
# A row's height, width and channels, where it has a shape: "input  28 x 28 x 1  ..." of the table
# of layers.
shape=$("$program" inspect "$run" |
    awk '$1 == "input" && $3 == "x" && $5 == "x" { print $2, $4, $6; exit }')
read -r height width channels <<END
${shape:-0 0 0}
END

# The classes' names, also of those that are never said: what is no row gives the names of CSV's
# columns as well.
echo '[]' | "$program" -q predict "$run" predict.format=csv 2>/dev/null |
    head -n 1 >"$tables/columns"

# classes, fields or numbers; and tables (plot_examples.awk). At most $most rows are drawn.
most=40 across=8 # pictures
kind=$(awk -v t="$tables" -v points=$((height * width)) \
    -f "$(dirname "$0")/plot_examples.awk" "$tables/said")
[ -f "$tables/order" ] || [ -f "$tables/truth" ] ||
    { echo "plot: $run: labels that a row may have several of have no picture" >&2; exit 1; }
[ "$kind" != fields ] || most=8 across=4
[ ! -f "$tables/order" ] ||
    sort -n -k1,1 -k2,2 -k3,3 "$tables/order" | head -n $most >"$tables/shown"
pictures=0
[ $((width * height)) -le 1 ] || [ ! -f "$tables/shown" ] || pictures=$(wc -l <"$tables/shown")

[ "$pictures" -eq 0 ] || predict predict.features=yes |
    awk -v t="$tables" -v h="$height" -v w="$width" -v c="$channels" \
        -f "$(dirname "$0")/plot_rows.awk"

# Sizes in pixels: a cell of the grid, the right part for the heat map or the points.
side=128 grid_width=0 grid_height=0
[ "$kind" != fields ] || side=150
per_row=$across
[ "$kind" != fields ] || per_row=$((across * 3))
if [ "$pictures" -gt 0 ]; then
    grid_width=$((per_row * side)) grid_height=$(((pictures + across - 1) / across * (side + 24)))
fi
right=0
[ ! -f "$tables/cells" ] ||
    right=$(awk 'END {
        side = NR * 52 + 150
        print (side < 480 ? 480 : side > 1400 ? 1400 : side)
    }' "$tables/names")
[ ! -f "$tables/truth" ] || right=640
high=$((grid_height > (right ? right - 40 : 0) ? grid_height : right - 40))
canvas=$((grid_width + right + 20)) tall=$((high + 60))

# place X Y WIDTH HEIGHT (pixels, from the left and the top): where the next plot goes.
place() {
    awk -v x="$1" -v y="$2" -v w="$3" -v h="$4" -v cw=$canvas -v ch=$tall 'BEGIN {
        printf "set origin %.5f,%.5f; ", x / cw, 1 - (y + h) / ch
        printf "set size %.5f,%.5f\n", w / cw, h / ch
    }'
}
# picture FILE CHANNELS TITLE COLOUR
picture() {
    printf "set title '%s' tc rgb '%s' offset 0,-0.8 font ',9'\n" "$3" "$4"
    if [ "$height" -eq 1 ]; then
        printf 'unset yrange; set xrange [0:%d]; set yrange [*:*]; ' $((width - 1))
        printf "plot '%s' using 1:3 with lines lc 1\n" "$1"
        return
    fi
    printf 'set xrange [-0.5:%d.5]; set yrange [%d.5:-0.5]; ' $((width - 1)) $((height - 1))
    if [ "$2" -eq 3 ]; then printf "plot '%s' using 1:2:3:4:5 with rgbimage\n" "$1"
    else printf "plot '%s' using 1:2:3 with image\n" "$1"; fi
}
name() { awk -v c="$1" '$1 == c { sub(/^[0-9]+ /, ""); print }' "$tables/names"; }

grid() {
    echo 'unset key; unset tics; unset colorbox; unset xlabel; unset ylabel'
    echo "set palette gray; set border 15 lw 0.5 lc rgb '#888888'"
    echo 'set lmargin at screen 0; set rmargin; unset lmargin; set margins 0.3,0.3,0.2,1.3'
    i=0
    while read -r right_one _ row said is; do
        i=$((i + 1))
        [ -f "$tables/row.$i" ] || continue
        x=$(((i - 1) % across * side * per_row / across)) y=$(((i - 1) / across * (side + 24) + 44))
        place $x $y $side $((side + 20))
        if [ "$kind" = fields ]; then
            picture "$tables/row.$i" "$channels" "row $row" black
            # Truth and prediction have one scale.
            awk '{ if (!n++ || $3 < l) l = $3; if (n == 1 || $3 > h) h = $3 }
                END { printf "set cbrange [%g:%g]\n", l, (h > l ? h : l + 1) }' \
                "$tables/target.$i" "$tables/values.$i"
            place $((x + side)) $y $side $((side + 20))
            picture "$tables/target.$i" 1 'true' black
            place $((x + 2 * side)) $y $side $((side + 20))
            picture "$tables/values.$i" 1 'predicted' '#1f6fb4'
            echo 'set cbrange [*:*]'
        elif [ "$right_one" -eq 1 ]; then
            picture "$tables/row.$i" "$channels" "$(name "$said")" '#26873f'
        else
            picture "$tables/row.$i" "$channels" \
                "$(name "$said" | cut -c1-9), not $(name "$is" | cut -c1-9)" '#cc1212'
        fi
    done <"$tables/shown"
}

# Shaded by the share of the true class, so that a rare class shows like a frequent one.
confusion() {
    classes=$(wc -l <"$tables/names")
    awk -v t="$tables" -v n="$classes" '{ cell[$1, $2] = $3; sum[$1] += $3 } END {
        for (i = 0; i < n; i++) for (j = 0; j < n; j++)
            printf "%d %d %.5f %d\n", j, i, sum[i] ? cell[i, j] / sum[i] : 0, cell[i, j]
    }' "$tables/cells" >"$tables/heat"
    place $((grid_width + 10)) 40 $right $((right - 40))
    echo "set margins 16,2,6,2; set border 3 lc rgb '#000000'; set tics nomirror scale 0"
    echo 'unset key; unset colorbox'
    echo "set title 'Confusion: rows' tc rgb 'black' offset 0,0 font ',12'"
    echo "set xlabel 'predicted'; set ylabel 'true' offset -3,0"
    echo "set palette defined (0 '#ffffff', 0.05 '#d5e6f4', 1 '#1f6fb4'); set cbrange [0:1]"
    echo "set xrange [-0.5:$((classes - 1)).5]; set yrange [$((classes - 1)).5:-0.5]"
    awk '{ c = $1; sub(/^[0-9]+ /, ""); printf "%s\047%s\047 %d", (NR > 1 ? ", " : ""), $0, c }' \
        "$tables/names" >"$tables/tics"
    [ "$classes" -gt 40 ] || {
        echo "set xtics ($(cat "$tables/tics")) rotate by -40 font ',10'"
        echo "set ytics ($(cat "$tables/tics")) font ',10'"
    }
    labels=
    # shellcheck disable=SC2016  # gnuplot's columns
    rows="(\$4 > 0 ? sprintf('%d', \$4) : '')" ink="(\$3 > 0.6 ? 0xffffff : 0x000000)"
    [ "$classes" -gt 25 ] ||
        labels=", '$tables/heat' using 1:2:$rows:$ink with labels tc rgb variable font ',9'"
    echo "plot '$tables/heat' using 1:2:3 with image$labels"
}

points() {
    place $((grid_width + 10)) 40 $right $((right - 40))
    # A prime number of them: no target falls out.
    awk '{ line[NR] = $0 } END {
        for (i = 0; int(i) < NR; i += NR > 4999 ? NR / 4999 : 1) print line[int(i) + 1]
    }' "$tables/truth" >"$tables/points"
    echo "set margins 10,3,4,3; set border 3 lc rgb '#000000'; set tics nomirror; unset key"
    echo "set grid lt 1 lw 0.7 lc rgb '#c8c8c8'; set xrange [*:*]; set yrange [*:*]"
    echo "set title 'Held-out rows' offset 0,0 font ',12'"
    echo "set xlabel 'true'; set ylabel 'predicted'"
    echo "plot '$tables/points' using 1:2 with points pt 7 ps 0.35 lc rgb '#1f6fb4', \\"
    echo "x with lines lc rgb '#808080' dt 2"
}

{
    echo "set terminal pngcairo size $canvas,$tall font 'Sans,11' noenhanced"
    echo "set output '$(echo "$out" | sed "s/'/''/g")'"
    echo 'set encoding utf8; set samples 100'
    wrong=
    [ ! -f "$tables/cells" ] ||
        wrong=$(awk '{ all += $3; if ($1 != $2) wrong += $3 }
            END { printf ": %d of %d wrong", wrong, all }' "$tables/cells")
    title=$(basename "$run" | sed "s/'/''/g")
    echo "set multiplot title '$title$wrong' font 'Sans,14' noenhanced"
    [ "$pictures" -eq 0 ] || grid
    [ ! -f "$tables/cells" ] || confusion
    [ ! -f "$tables/truth" ] || points
    echo 'unset multiplot'
} >"$tables/plot"
LC_ALL=C.UTF-8 gnuplot "$tables/plot"
echo "plot: $out"
