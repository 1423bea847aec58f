#!/bin/sh
# Makes traces of damped oscillators, exp(-damping t) cos(frequency t + phase) + noise, at 128
# moments t = 0 .. 10: DIR/train.csv (6000) and DIR/test.csv (1000).
#   scripts/recipes/oscillator-data.sh [DIR]         DIR: runs/oscillator-data
set -eu
# Some awks read and write numbers as the locale has them: with commas.
export LC_ALL=C
dir=${1:-runs/oscillator-data}
mkdir -p "$dir"
# traces N SEED
traces() {
    awk -v n="$1" -v seed="$2" '
    function normal() { return sqrt(-2 * log(1 - rand())) * cos(6.283185307 * rand()) }
    BEGIN {
        srand(seed)
        for (t = 0; t < 128; t++) printf "t%d,", t
        print "damping"
        for (i = 0; i < n; i++) {
            damping = 0.05 + 0.45 * rand(); frequency = 2 + 4 * rand(); phase = 6.283185307 * rand()
            for (t = 0; t < 128; t++) {
                time = t * 10 / 127
                signal = exp(-damping * time) * cos(frequency * time + phase)
                printf "%.4f,", signal + 0.1 * normal()
            }
            printf "%.5f\n", damping
        }
    }'
}
traces 6000 1 >"$dir/train.csv"
traces 1000 2 >"$dir/test.csv"
