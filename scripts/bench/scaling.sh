#!/bin/sh
# Two workers against one process with half the batch, and that process against a plain loop over
# sgemm calls.
. "$(dirname "$0")/lib.sh"

# Samples/s of such a loop at half those batches, on a core whose sgemm rate was 110 GFLOP/s.
loop_rate() {
    case $case in
    '784-128-10, batch 128') echo 190000 ;;
    '784-512-256-10, batch 128') echo 35000 ;;
    '784-1024-1024-10, batch 256') echo 9600 ;;
    esac
}

turn() {
    measure_peak
    note sgemm gflops "$peak_all"
    global=$batch
    train "$full" "run.replicas=$workers" && note_share "$workers workers" "$(rate)" "$peak_all"
    batch=$((global / workers))
    train 1 run.replicas=1 && note_share 'one process' "$(rate)" "$peak_one"
    batch=$global
    loop=$(loop_rate)
    [ -z "$loop" ] || note 'plain loop' samples_per_sec "$(calc "$loop * $peak_one / 110")"
}

# measure TARGET
measure() {
    take_turns turn
    compare samples_per_sec "$workers workers" 'one process' "$1"
    [ -z "$(loop_rate)" ] || compare samples_per_sec 'one process' 'plain loop' 1
}

each_case 'measure 1.6' $three
each_case 'measure 1.85' $(echo "$three" | sed "s/:[0-9]*/:$((256 * workers))/g")
