#!/bin/sh
# Samples/s on the usual networks, side by side: dtrain by ranks, PyTorch in its best setting on the
# whole machine, PyTorch's DistributedDataParallel with a process a core.
. "$(dirname "$0")/lib.sh"
. "$bench/torch.sh"

turn_dtrain() {
    measure_peak
    note sgemm gflops "$peak_all"
    for np in 1 2 "$full"; do
        cores=$((np > 2 ? workers : 1))
        train "$np" || continue
        note_share "dtrain np=$np" "$(rate)" "$(calc "$peak_all * $cores / $workers")"
        [ "$np" -eq 1 ] || note "dtrain np=$np" bank_percent "$(bank_percent)"
    done
}

turn_torch() {
    note_share PyTorch "$(torch_train "$setting" | json samples_per_sec)" "$peak_all"
    note_share DDP "$(torch_together "$setting" | json samples_per_sec)" "$peak_all"
}

# measure TARGET_PYTORCH TARGET_DDP: what the ratios should be; nothing: no target.
measure() {
    have_torch || { take_turns turn_dtrain; return; }
    find_setting
    remark "PyTorch's best setting: $(say_setting)"
    take_turns turn_dtrain turn_torch
    compare samples_per_sec "dtrain np=$full" PyTorch "${1:-}"
    compare samples_per_sec "dtrain np=$full" DDP "${2:-}"
}

each_case measure 784-10:128
each_case 'measure 1.8 6' 784-128-10:128
each_case 'measure 1.25 3.4' 784-512-256-10:128
each_case 'measure 1.05 1.7' 784-1024-1024-10:256
each_case measure 784-4096-4096-10:256
