#!/bin/sh
# Where a step's time goes, by a worker's own clock, and the peak memory of each rank.
. "$(dirname "$0")/lib.sh"
parts='compute data reduce update network wait'

note_budget() {
    steps=$(record "$run" final step)
    step_us=$(calc "1e6 * $batch / $(rate)")
    note step step_us "$step_us"
    for part in $parts; do
        part_us=$(calc "1e6 * $(record "$run" final ${part}_secs) / $steps")
        note $part step_us "$part_us"
        note $part step_percent "$(calc "100 * $part_us / $step_us")"
    done
}

measure() {
    run=$tmp/run
    rm -f "$tmp"/rank-*
    watch_memory 2>/dev/null &
    watcher=$!
    train "$full" && note_budget
    kill $watcher
    for file in "$tmp"/rank-*; do
        note "rank ${file##*-}" peak_mb "$(cat "$file")"
    done
}

each_case measure 784-10:128 $three 784-4096-4096-10:256
