#!/bin/sh
# A small convolutional network (conv 32 3x3, pool 2, conv 64 3x3, pool 2, dense 128), batch 128:
# dtrain in f32 and bf16, and PyTorch in its best setting, without and with autocast.
. "$(dirname "$0")/lib.sh"
. "$bench/torch.sh"
net=cnn batch=128 case='conv 32, 64, dense 128, batch 128'

turn_dtrain() {
    for precision in f32 bf16; do
        train "$full" run.precision=$precision && note_rate "dtrain $precision" "$(rate)"
    done
    kernel=$(record "$run" start kernel)
}

# The best setting of each precision is its own.
turn_torch() {
    for precision in f32 bf16; do
        torch_options=$(torch_flag $precision)
        find_setting
        remark "PyTorch's best setting in $precision: $(say_setting)"
        # shellcheck disable=SC2086  # no word or one
        note_rate "PyTorch $precision" \
            "$(torch_train "$setting" $torch_options | json samples_per_sec)"
    done
}

take_turns turn_dtrain
case $kernel in
*reference) remark 'this CPU has no fast bf16: convolution in f32, dense layers by rounding' ;;
esac
compare samples_per_sec 'dtrain bf16' 'dtrain f32'
have_torch || exit 0
take_turns turn_torch
compare samples_per_sec 'dtrain f32' 'PyTorch f32' 1.25 medians
compare samples_per_sec 'dtrain bf16' 'PyTorch bf16' 1.25 medians
