#!/bin/sh
# Draws one run (loss, held-out metric, rate, speed; regression: predicted against true; async:
# staleness) or compares several, by step and by wall time, from their metrics.jsonl into a PNG.
#   scripts/plot.sh [-o OUT.png] RUN_DIR...
#       OUT: RUN_DIR/plot.png, or compare.png for several
#   scripts/plot.sh --examples [-o OUT.png] RUN_DIR|MODEL
#       held-out rows and what the model predicts for them
set -eu
# Some awks read and write numbers as the locale has them: with commas.
export LC_ALL=C
usage() { sed -n '2,/^set/s/^# //p' "$0" >&2; exit 2; }
out='' examples='' left=$#
while [ "$left" -gt 0 ]; do
    case $1 in
        --examples) examples=yes ;;
        -o) [ "$left" -gt 1 ] || usage
            out=$2 left=$((left - 1))
            shift ;;
        -o*) out=${1#-o} ;;
        -*) usage ;;
        *) set -- "$@" "$1" ;;
    esac
    shift
    left=$((left - 1))
done
[ $# -gt 0 ] || usage
[ -z "$examples" ] || exec "$(dirname "$0")/plot_examples.sh" ${out:+-o "$out"} "$@"
[ -n "$out" ] || { [ $# -eq 1 ] && out=$1/plot.png || out=compare.png; }
command -v gnuplot >/dev/null ||
    { echo 'plot: gnuplot is missing: scripts/setup.sh installs it' >&2; exit 1; }
tables=$(mktemp -d)
trap 'rm -rf "$tables"' EXIT

# option RUN_DIR SECTION KEY: a value of config.ini.
option() {
    [ -f "$1/config.ini" ] || return 0
    awk -v section="[$2]" -v key="$3" '/^\[/ { here = $0 == section }
        here && $1 == key { sub(/^[^=]*= ?/, ""); print; exit }' "$1/config.ini"
}

# tabulate N NAME FILE METRIC: tables of one run, N.train and others (plot.awk).
tabulate() {
    awk -v base="$tables/$1" -v name="$2" -v metric="$4" -f "$(dirname "$0")/plot.awk" "$3"
    for kind in train eval; do sort -n -o "$tables/$1.$kind" "$tables/$1.$kind"; done
}

# metric_of RUN_DIR: what the run judges its models by: its last start says it; before version 0.3
# its configuration.
metric_of() {
    said=$(sed -n '/"kind": *"start".*}$/s/.*"metric": *"\([^"]*\)".*/\1/p' "$1/metrics.jsonl" |
        tail -n 1)
    [ -n "$said" ] && echo "$said" || option "$1" eval metric
}

# Runs are named by the last part of their path, if that is unique.
[ "$(for run; do basename "$run"; done | sort -u | wc -l)" -eq $# ] && short=yes || short=no
for run; do
    [ -s "$run/metrics.jsonl" ] ||
        { echo "plot: $run/metrics.jsonl: missing or empty" >&2; exit 1; }
done
# Runs that judge by different metrics are compared by the usual one.
[ "$(for run; do metric_of "$run"; done | sort -u | wc -l)" -eq 1 ] && asked=$(metric_of "$1") ||
    asked=
runs=0
for run; do
    runs=$((runs + 1))
    [ $short = yes ] && name=$(basename "$run") || name=${run%/}
    tabulate $runs "$name" "$run/metrics.jsonl" "$asked"
    # The first run that was evaluated decides; a run without this metric has no curve.
    case $asked in '' | auto) asked=$(cat "$tables/$runs.metric") ;; esac
done
metric=$(sort -u "$tables"/*.metric | grep . | head -n 1) || metric=
quoted() { sed "s/'/''/g" "$1"; }

# has KIND COLUMN: whether a table of that kind has a number there.
has() {
    cat "$tables"/*."$1" | awk -v c="$2" '$c != "NaN" { found = 1; exit } END { exit !found }'
}
# scale X COLUMN KIND...: a logarithmic axis for what spans a factor of 100 and more; some room for
# what spans none.
scale() {
    x=$1 column=$2
    shift 2
    for kind; do cat "$tables"/*."$kind"; done |
        awk -v x="$x" -v c="$column" '$c != "NaN" && $x != "NaN" {
        if ($c <= 0) none = 1
        if (!n || $c < low) low = $c
        if (!n++ || $c > high) high = $c
    } END {
        room = low < 0 ? -0.1 * low : low > 0 ? 0.1 * low : 1
        if (n && low == high) printf "set yrange [%g:%g]", low - room, high + room
        else if (n && !none && high / low > 100) print "set logscale y"
    }'
}

panels=0
# panel TITLE XLABEL YLABEL SETTINGS PLOT
panel() {
    [ -n "$5" ] || return 0
    panels=$((panels + 1))
    printf '%s\n' \
        "set title '$1'; set xlabel '$2'; set ylabel '$3'" \
        'set xrange [0:*]; set yrange [*:*]; set xtics auto; set format "%g"' \
        'unset key; unset logscale; set style fill empty' "$4" "plot $5" >>"$tables/panels"
}
# curves X Y KIND STYLE: a curve a run, all of one width, with the run's number at its end, and its
# best.
curves() {
    i=0 list=
    number="with labels left offset 0.6,0 font ',10'"
    while [ $i -lt $runs ]; do
        i=$((i + 1)) table="$tables/$i.$3"
        [ -s "$table" ] || continue
        awk -v x="$1" -v y="$2" \
            '$x != "NaN" && $y != "NaN" { end = $x " " $y } END { print end; exit end == "" }' \
            "$table" >"$table.end$1$2" || continue
        list="$list, '$table' using $1:$2 with $4 lc $i"
        [ $runs -eq 1 ] || [ "$3" = staleness ] ||
            list="$list, '$table.end$1$2' using 1:2:('$i') $number tc lt $i"
        [ "$3$2" != eval4 ] || [ ! -s "$tables/$i.best" ] ||
            list="$list, '$tables/$i.best' using $1:4 with points pt 6 ps 2 lw 2 lc $i"
    done
    echo "${list#, }"
}

train_loss() { curves "$1" 3 train lines; }
dots='linespoints pt 7 ps 0.6' line=lines
[ "$(wc -l <"$tables/1.train")" -ne 1 ] || line=$dots # a point alone makes no line
room='set offsets graph 0, graph 0.05, 0, 0'
if [ $runs -eq 1 ]; then
    both="'$tables/1.train' using 1:3 with $line lc 1 title 'training'"
    ! has eval 3 || both="$both, '$tables/1.eval' using 1:3 with $dots lc 2 title 'held-out'"
    ! has train 3 ||
        panel 'Loss' step 'loss (mean over samples)' "set key top right; $(scale 1 3 train eval)" \
            "$both"
    if has eval 4 && [ "$metric" != loss ]; then
        best=$(awk '{ printf "best %.5g at step %d", $4, $1 }' "$tables/1.best")
        [ -z "$best" ] ||
            best=", '$tables/1.best' using 1:4 with points pt 6 ps 2 lw 2 lc 2 title '$best'"
        case $metric in rmse | mae) corner='top right' ;; *) corner='bottom right' ;; esac
        panel "Held-out $metric" step "$metric" "set key $corner; $(scale 1 4 eval)" \
            "'$tables/1.eval' using 1:4 with $dots lc 2 notitle$best"
    fi
    # A rate that never changes needs no picture.
    [ "$(awk '{ print $4 }' "$tables/1.train" | sort -u | wc -l)" -le 1 ] ||
        panel 'Learning rate' step 'learning rate' 'set yrange [0:*]' \
            "'$tables/1.train' using 1:4 with lines lc 3"
    ! has train 5 || panel 'Speed' step 'samples/s' "set yrange [0:*]; set format y '%.1s%c'" \
        "'$tables/1.train' using 1:5 with $line lc 4"
    title=$(quoted "$tables/1.name")
else
    ! has train 3 ||
        panel 'Training loss by step' step 'loss (mean over samples)' "$(scale 1 3 train); $room" \
            "$(train_loss 1)"
    ! has train 3 ||
        panel 'Training loss by time' 'wall time, s' 'loss (mean over samples)' \
            "$(scale 2 3 train); $room" "$(train_loss 2)"
    ! has train 5 ||
        panel 'Speed' 'wall time, s' 'samples/s' "set yrange [0:*]; set format y '%.1s%c'; $room" \
            "$(curves 2 5 train lines)"
    if has eval 3; then
        panel 'Held-out loss by step' step 'loss (mean over samples)' "$(scale 1 3 eval); $room" \
            "$(curves 1 3 eval "$dots")"
        panel 'Held-out loss by time' 'wall time, s' 'loss (mean over samples)' \
            "$(scale 2 3 eval); $room" "$(curves 2 3 eval "$dots")"
    fi
    if has eval 4 && [ "$metric" != loss ]; then
        panel "Held-out $metric by step (best: circles)" step "$metric" "$(scale 1 4 eval); $room" \
            "$(curves 1 4 eval "$dots")"
        panel "Held-out $metric by time" 'wall time, s' "$metric" "$(scale 2 4 eval); $room" \
            "$(curves 2 4 eval "$dots")"
    fi
    title="$runs runs compared"
fi
tics=$(cat "$tables"/*.staleness 2>/dev/null |
    awk '$1 > 20 {many = 1} END {if (!many) print "set xtics 1"}')
panel 'Staleness' 'updates between read and use' 'gradients' \
    "set style fill solid 0.4; set boxwidth 0.9; set yrange [0:*]; set xrange [-0.5:*]; $tics" \
    "$(curves 1 2 staleness boxes)"

# Regression: what the best model says of the held-out rows' first target, each quantile if it says
# several. Without the program, or their files, no panel. Of many points as many as a prime number
# says: no quantile falls out.
if [ $runs -eq 1 ] && [ "$(option "$1" model task)" = regress ]; then
    program=$(dirname "$0")/../dtrain
    [ -f "$program" ] || program=$(command -v dtrain) || program=:
    "$program" predict "$1" predict.held_out=yes predict.target=yes 2>/dev/null |
        tr -d '[]}' | awk -F '"values*":|,"target":' 'NF == 3 {
            n = split($2, v, ",") / split($3, w, ",")
            for (i = 1; i <= n; i++) print w[1], v[i]
        }' |
        awk '{ line[NR] = $0 } END {
            for (i = 0; int(i) < NR; i += NR > 2999 ? NR / 2999 : 1) print line[int(i) + 1]
        }' >"$tables/truth" || true
    [ ! -s "$tables/truth" ] || panel 'Held-out rows' true predicted 'set xrange [*:*]' \
        "'$tables/truth' using 1:2 with points pt 7 ps 0.3 lc 1, x with lines lc rgb '#808080' dt 2"
fi
[ $panels -gt 0 ] || { echo "plot: $1/metrics.jsonl: nothing to draw yet" >&2; exit 1; }

# The legend of several runs has a place of its own.
if [ $runs -gt 1 ]; then
    panels=$((panels + 1)) i=0 list=
    while [ $i -lt $runs ]; do
        i=$((i + 1))
        list="$list, NaN with lines lc $i lw 3 title '$i  $(quoted "$tables/$i.name")'"
    done
    printf '%s\n' \
        'unset title; unset xlabel; unset ylabel; unset border; unset tics; unset grid' \
        'unset logscale; set xrange [0:1]; set yrange [0:1]' \
        'set key center center vertical maxcols 1 noopaque nobox reverse Left' \
        "plot ${list#, }" >>"$tables/panels"
fi

columns=$((panels < 2 ? 1 : panels < 5 ? 2 : 3))
rows=$(((panels + columns - 1) / columns))
{
    size=$((columns * 640)),$((rows * 420 + 40))
    echo "set terminal pngcairo size $size font 'Sans,11' noenhanced"
    echo "set output '$(echo "$out" | sed "s/'/''/g")'"
    echo 'set grid lt 1 lw 0.7 lc rgb "#c8c8c8"; set border 3; set tics nomirror'
    echo 'set datafile missing "NaN"; set format y "%g"; set encoding utf8; set samples 100'
    i=0
    for colour in 1f6fb4 cc4c12 26873f 7a4fb0 b8860b b8326f 3b7482 6e6e6e; do
        i=$((i + 1))
        echo "set linetype $i lc rgb '#$colour' lw 1.8"
    done
    echo 'set linetype cycle 8'
    echo "set multiplot layout $rows,$columns title '$title' font 'Sans,14' noenhanced"
    cat "$tables/panels"
    echo 'unset multiplot'
} >"$tables/plot"
LC_ALL=C.UTF-8 gnuplot "$tables/plot"
echo "plot: $out"
