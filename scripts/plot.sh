#!/bin/sh
# Draws one run (loss, accuracy or RMSE, learning rate, throughput) or compares several (by step and
# by wall time, and the staleness of async runs) from their metrics.jsonl into a PNG.
#   scripts/plot.sh [-o OUT.png] RUN_DIR...        OUT: RUN_DIR/plot.png, or compare.png for several
set -eu
usage() { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }
out=
while getopts o: option; do
    case $option in o) out=$OPTARG ;; *) usage ;; esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || usage
[ -n "$out" ] || { [ $# -eq 1 ] && out=$1/plot.png || out=compare.png; }
command -v gnuplot >/dev/null || { echo 'plot: gnuplot is missing: scripts/setup.sh installs it' >&2; exit 1; }
tables=$(mktemp -d)
trap 'rm -rf "$tables"' EXIT

# Tables of one run: N.train (step, wall, loss, lr, samples/s), N.eval (step, wall, loss, metric),
# N.staleness (staleness, gradients), N.name. Of records with one kind and step the last counts; a
# torn line has no closing brace.
tabulate() {
    awk -v base="$tables/$1" -v name="$2" '
    function value(key) {
        if (!match($0, "\"" key "\": *[^,}]*")) return ""
        text = substr($0, RSTART, RLENGTH)
        sub(/^[^:]*: */, "", text)
        gsub(/"/, "", text)
        return text == "null" ? "NaN" : text
    }
    !/}$/ { next }
    { kind = value("kind"); step = value("step") + 0 }
    kind == "start" { mode = value("mode"); workers = value("workers") }
    kind == "train" {
        train[step] = value("wall_secs") " " value("loss") " " value("lr") " " value("samples_per_sec")
    }
    kind == "eval" {
        if (value("accuracy") != "") metric = "accuracy"
        else if (value("rmse") != "") metric = "rmse"
        eval[step] = value("wall_secs") " " value("loss") " " value(metric)
    }
    kind == "final" && match($0, /"staleness_histogram": *\[[^\]]*/) {
        histogram = substr($0, RSTART, RLENGTH)
        sub(/.*\[/, "", histogram)
    }
    END {
        printf "" >(base ".train"); printf "" >(base ".eval")
        for (step in train) print step, train[step] | ("sort -n >" base ".train")
        for (step in eval) print step, eval[step] | ("sort -n >" base ".eval")
        n = split(histogram, bar, ",")
        for (i = 1; i <= n; i++) print i - 1, bar[i] >(base ".staleness")
        print metric >(base ".metric")
        print name " (" mode ", " workers " worker" (workers == 1 ? "" : "s") ")" >(base ".name")
    }' "$3"
}

# Runs go by the last part of their path, where that tells them apart.
[ "$(for run; do basename "$run"; done | sort -u | wc -l)" -eq $# ] && short=yes || short=no
runs=0
for run; do
    [ -s "$run/metrics.jsonl" ] || { echo "plot: $run/metrics.jsonl: missing or empty" >&2; exit 1; }
    runs=$((runs + 1))
    [ $short = yes ] && name=$(basename "$run") || name=${run%/}
    tabulate $runs "$name" "$run/metrics.jsonl"
done
metric=$(sort -u "$tables"/*.metric | grep . | head -n 1) || metric=

# Losses that span more than two decades are drawn on a logarithmic axis.
scale=$(cat "$tables"/*.train | awk '$3 > 0 {if (!low || $3 < low) low = $3; if ($3 > high) high = $3}
    END {if (low && high / low > 100) print "set logscale y"}')

# curves X Y KIND STYLE: one curve a run from its table. By step the first is the widest, so that
# curves which coincide stay visible.
curves() {
    i=0 list=
    while [ $i -lt $runs ]; do
        i=$((i + 1))
        [ -s "$tables/$i.$3" ] || continue
        width=2
        case $i-$1-$3 in 1-1-train|1-1-eval) width=6 ;; esac
        list="$list, '$tables/$i.$3' using $1:$2 with $4 lw $width lc $i title '$(cat "$tables/$i.name")'"
    done
    echo "${list#, }"
}
# panel TITLE XLABEL YLABEL PLOT: an empty plot is left out. The key of several runs hides no curve.
[ $runs -eq 1 ] && place='top right' || place='below nobox noopaque height 0.5'
panel() {
    [ -n "$4" ] || return 0
    panels=$((panels + 1))
    case $4 in *" title "*) key="set key $place" ;; *) key='unset key' ;; esac
    printf '%s\n' "$key" "set title '$1'; set xlabel '$2'; set ylabel '$3'" "$5" "plot $4" 'unset logscale' \
        'set style fill empty; set yrange [*:*]; set boxwidth' >>"$tables/panels"
}
panels=0
case $metric in accuracy) label='accuracy' ;; *) label=RMSE ;; esac

if [ $runs -eq 1 ]; then
    loss="'$tables/1.train' using 1:3 with lines lw 2 lc 1 title 'training'"
    [ ! -s "$tables/1.eval" ] ||
        loss="$loss, '$tables/1.eval' using 1:3 with linespoints lw 2 pt 7 ps 0.7 lc 2 title 'held-out'"
    panel 'Loss' 'step' 'loss (mean over samples)' "$loss" "$scale"
    [ ! -s "$tables/1.eval" ] || panel "Held-out $label" 'step' "$label" \
        "'$tables/1.eval' using 1:4 with linespoints lw 2 pt 7 ps 0.7 lc 2 notitle" ''
    panel 'Learning rate' 'step' 'learning rate' "'$tables/1.train' using 1:4 with lines lw 2 lc 3 notitle" ''
    panel 'Throughput' 'step' 'samples/s' "'$tables/1.train' using 1:5 with lines lw 2 lc 4 notitle" \
        'set yrange [0:*]'
    title=$(cat "$tables/1.name")
else
    panel 'Training loss by step' 'step' 'loss (mean over samples)' "$(curves 1 3 train lines)" "$scale"
    panel 'Training loss by time' 'wall time, s' 'loss (mean over samples)' "$(curves 2 3 train lines)" "$scale"
    panel 'Throughput' 'wall time, s' 'samples/s' "$(curves 2 5 train lines)" 'set yrange [0:*]'
    panel "Held-out $label by step" 'step' "$label" "$(curves 1 4 eval linespoints)" ''
    panel "Held-out $label by time" 'wall time, s' "$label" "$(curves 2 4 eval linespoints)" ''
    title="$runs runs compared"
fi
tics=$(cat "$tables"/*.staleness 2>/dev/null | awk '$1 > 20 {many = 1} END {if (!many) print "set xtics 1"}')
panel 'Staleness' 'updates between read and use' 'gradients' "$(curves 1 2 staleness boxes)" \
    "set style fill solid 0.4; set boxwidth 0.9; set yrange [0:*]; set xrange [-0.5:*]; $tics"

columns=2
[ $panels -le 4 ] || columns=3
rows=$(((panels + columns - 1) / columns))
{
    echo "set terminal pngcairo size $((columns * 700)),$((rows * 450 + 40)) font 'Sans,11' noenhanced"
    echo "set output '$out'"
    echo 'set grid lc rgb "#cccccc"; set key box lc rgb "#bbbbbb" opaque; set xrange [0:*]'
    echo 'set datafile missing "NaN"; set format y "%g"; set style fill empty'
    echo "set multiplot layout $rows,$columns title '$title' font 'Sans,14' noenhanced"
    cat "$tables/panels"
    echo 'unset multiplot'
} >"$tables/plot"
gnuplot "$tables/plot"
echo "plot: $out"
