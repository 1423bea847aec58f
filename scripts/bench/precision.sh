#!/bin/sh
# bf16 against f32, and against PyTorch in f32 and with autocast, each in its best setting; the rate
# of dtrain's bf16 as a share of one that the products alone have on a core, on the network's
# shapes.
. "$(dirname "$0")/lib.sh"
. "$bench/torch.sh"
speed=$(dirname "$PEAK")/net_speed

turn_dtrain() {
    for precision in f32 bf16; do
        train "$full" run.precision=$precision && note_rate "dtrain $precision" "$(rate)"
        kernel=$(record "$run" start kernel)
    done
}

# The better precision of a turn is noted once more.
turn_torch() {
    better=0
    for precision in f32 bf16; do
        torch_options=$(torch_flag $precision)
        find_setting
        remark "PyTorch's best setting in $precision: $(say_setting)"
        # shellcheck disable=SC2086  # no word or one
        rate=$(torch_train "$setting" $torch_options | json samples_per_sec)
        note_rate "PyTorch $precision" "$rate"
        better=$(calc "(${rate:-0} > $better ? ${rate:-0} : $better)")
    done
    note 'PyTorch, the better' samples_per_sec "$better"
}

# The share of a core's rate that a network has without any exchange.
share_of_products() {
    line=$(PRECISION=bf16 "$speed" "$net" $((batch / workers)) | tail -n 1)
    note 'one core' percent_of_products "$(echo "$line" | sed -n 's/.* \([0-9.]*\) % of.*/\1/p')"
}

# measure AMX_F32 AMX_TORCH AVX512_F32 AVX512_TORCH: targets of dtrain's bf16 against its f32 and
# against PyTorch's bf16 with AMX; the same with AVX512-BF16 alone, against PyTorch's better
# precision.
measure() {
    take_turns turn_dtrain share_of_products
    peer='PyTorch bf16'
    case $kernel in
    *reference) remark 'this CPU has no fast bf16: rounded and multiplied in f32' && set -- '' '' ;;
    *avx512) peer='PyTorch, the better' && shift 2 ;;
    esac
    compare samples_per_sec 'dtrain bf16' 'dtrain f32' "$1"
    have_torch || return 0
    take_turns turn_torch
    compare samples_per_sec 'dtrain bf16' "$peer" "$2" medians
}

make -s "$speed"
each_case 'measure 1.8 2 1.2 1.5' 784-512-256-10:128
each_case 'measure 2.2 1.6 1.5 1.3' 784-1024-1024-10:256
each_case 'measure 3 2 1.7 1.3' 784-4096-4096-10:256
