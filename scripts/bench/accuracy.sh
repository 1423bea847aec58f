#!/bin/sh
# Time and samples to 88 % Fashion-MNIST test accuracy, by seeds, with one recipe: SGD, lr 0.05,
# momentum 0.9. Start-up and evaluation do not count, on either side.
. "$(dirname "$0")/lib.sh"
. "$bench/torch.sh"
target=0.88 every=100 lr=0.05 epochs=20

# Training seconds and samples up to the first evaluation that reaches the target; from a run whose
# train records come with its evaluations.
reached() {
    awk -F'[:,}]' -v target=$target '
        function field(name,    i) {
            for (i = 1; i < NF; i++) if ($i == "\"" name "\"") return $(i + 1)
        }
        /"kind":"train"/ {
            secs += (field("samples") - samples) / field("samples_per_sec")
            samples = field("samples")
        }
        /"kind":"eval"/ && field("accuracy") >= target { print secs, samples; exit }' \
        "$run/metrics.jsonl"
}

# note_reached PROGRAM RATE SECS SAMPLES
note_reached() {
    note_rate "$1" "$2"
    say "$1: $target after ${3:-no} s"
    note "$1" secs_to_target "${3:-}"
    note "$1" samples_to_target "${4:-}"
}

turn_dtrain() {
    train_steps 1000000000 "$full" data.eval="$data_dir/t10k-images-idx3-ubyte.gz" \
        data.eval_labels="$data_dir/t10k-labels-idx1-ubyte.gz" eval.steps=$every \
        run.log_steps=$every run.seed="$round" train.lr=$lr train.epochs=$epochs || return
    # shellcheck disable=SC2046  # two words
    note_reached "dtrain np=$full" "$(rate)" $(reached)
}

turn_torch() {
    line=$(torch_train "$setting" --seed "$round" --lr $lr --target $target --eval-steps $every \
        --max-epochs $epochs)
    note_reached PyTorch "$(echo "$line" | json samples_per_sec)" \
        "$(echo "$line" | json secs_to_target)" "$(echo "$line" | json samples_to_target)"
}

measure() {
    have_torch || { take_turns turn_dtrain; return; }
    find_setting
    take_turns turn_dtrain turn_torch
    compare samples_per_sec "dtrain np=$full" PyTorch
    compare secs_to_target PyTorch "dtrain np=$full" '' medians
    compare samples_to_target PyTorch "dtrain np=$full" 0.9 medians
}

ROUNDS=$SEEDS
each_case measure 784-128-10:128 784-512-256-10:128
