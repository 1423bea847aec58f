# Called by plot.sh, which sets tmp (a directory of tables), png and np.
set terminal pngcairo size 1800, 1000 font 'sans,11'
set output png
set multiplot layout 2, 3 title 'dtrain: speed' font 'sans,16'
set grid ytics back lc rgb '#dddddd'
set border 3
set tics nomirror
set key above horizontal samplen 2
has(name) = system('test -s '.tmp.'/'.name.' && echo 1 || echo 0') + 0
file(name) = tmp.'/'.name
array colour[6] = ['#9ecae1', '#08519c', '#e6550d', '#fdae6b', '#bdbdbd', '#a63603']

set style fill solid 0.9 noborder
set style data histograms
set style histogram clustered gap 1.5
set xtics rotate by -20
if (has('speed')) {
    set title 'samples a second'
    set ylabel 'samples/s'
    set logscale y
    plot file('speed') using 2:xtic(1) title 'dtrain np=1' lc rgb colour[1], \
        '' using 3 title np lc rgb colour[2], '' using 4 title 'PyTorch, best setting' lc rgb colour[3], \
        '' using 5 title 'PyTorch DDP' lc rgb colour[4]
    unset logscale y
    set title "share of the cores' sgemm rate"
    set ylabel '%'
    set yrange [0:*]
    plot file('peak') using 2:xtic(1) title 'dtrain np=1' lc rgb colour[1], \
        '' using 3 title np lc rgb colour[2], '' using 4 title 'PyTorch, best setting' lc rgb colour[3], \
        '' using 5 title 'PyTorch DDP' lc rgb colour[4]
}
if (has('budget')) {
    set style histogram rowstacked
    set boxwidth 0.6
    set title "a worker's step"
    set ylabel '% of its time'
    set yrange [0:100]
    plot file('budget') using 2:xtic(1) title 'compute' lc rgb colour[2], \
        '' using 3 title 'data' lc rgb colour[1], '' using 4 title 'sum' lc rgb colour[6], \
        '' using 5 title 'update' lc rgb colour[3], '' using 6 title 'network' lc rgb colour[4], \
        '' using 7 title 'wait' lc rgb colour[5]
}

set style data linespoints
set xtics norotate
set yrange [*:*]
set ytics nomirror
set y2tics
set border 11
set ylabel 'samples/s'
set y2label 'ms'
do for [name in 'ranks batch parameters'] {
    if (has(name.'-rate')) {
        set title 'growth with '.name
        set xlabel name.(name eq 'parameters' ? '' : name eq 'batch' ? ' (samples a step)' : ' (bank and workers)')
        unset logscale
        if (name eq 'batch') { set logscale x 2 }
        if (name eq 'parameters') { set logscale x 10; set format x '10^{%L}' }
        if (name ne 'ranks') { set logscale y; set logscale y2 }
        plot file(name.'-rate') title 'samples/s' lc rgb colour[2] pt 7, \
            file(name.'-step') axes x1y2 title 'step time (right)' lc rgb colour[3] pt 5
    }
}
unset multiplot
