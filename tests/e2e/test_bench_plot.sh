#!/bin/sh
# Fails if the picture of `make bench` needs a section that did not run, or gnuplot warns.
. "$(dirname "$0")/lib.sh"
need gnuplot
# drawn SECTIONS WIDTHxHEIGHT: the picture of some sections has that size.
drawn() {
    mkdir -p "$tmp/out"
    rm -f "$tmp/out/bench.png"
    printf '%s\n' \
        'speed|784-10, batch 128|dtrain np=3|samples_per_sec|2000000' \
        'speed|784-10, batch 128|dtrain np=3|percent_of_peak|60' \
        'speed|784-4096-10, batch 128|PyTorch|samples_per_sec|3000' \
        'hosts|784-10, batch 128|dtrain np=3|samples_per_sec|6000' \
        'accuracy|784-10, batch 128|dtrain np=3|secs_to_target|1.5' \
        'budget|784-10, batch 128|compute|step_percent|80' \
        'budget|784-10, batch 128|rank 0|peak_mb|120' \
        'growth|ranks, 784-10, batch 128|1|samples_per_sec|1000' \
        'growth|ranks, 784-10, batch 128|1|step_ms|128' \
        'growth|ranks, 784-10, batch 128|2|samples_per_sec|2000' \
        'growth|ranks, 784-10, batch 128|2|step_ms|64' \
        'scale|784-10, 1gbit|2 hosts|measured_ms|19' \
        'scale|784-10, 1gbit|2 hosts|predicted_ms|20' \
        'scale|784-10, 1gbit|4 hosts|measured_ms|29' \
        'scale|784-10, 1gbit|4 hosts|predicted_ms|30' \
        'scale|projection: 1G, 10gbit, ms a step|2 hosts|H=1|500' \
        'scale|projection: 1G, 10gbit, ms a step|64 hosts|H=1|1000' |
        grep -E "^($1)" | tr '|' '\t' >"$tmp/out/medians.tsv"
    scripts/bench/plot.sh "$tmp/out" >"$tmp/log" 2>&1 || fail_with "$tmp/log"
    [ ! -s "$tmp/log" ] || fail "gnuplot warns: $(cat "$tmp/log")"
    size=$(od -An -tu1 -j16 -N8 "$tmp/out/bench.png" | awk '
        function number(i) { return $i * 2^24 + $(i + 1) * 65536 + $(i + 2) * 256 + $(i + 3) }
        { print number(1) "x" number(5) }')
    check_eq "size of the picture of $1" "$size" "$2"
}
drawn hosts 640x480
drawn 'hosts|accuracy' 1280x480
drawn growth 640x480
drawn scale 1280x480
drawn 'speed|hosts|accuracy|budget|growth' 1920x1360
scripts/bench/plot.sh "$tmp" | grep -q 'no picture' || fail 'no measurement, and no word'
