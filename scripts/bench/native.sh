#!/bin/sh
# The default build, for any x86-64, against one for this very CPU (ARCH=native), in turns: four
# perceptrons and a small convolutional network in f32 and bf16, WordNet's sparse rows, a click log.
# Their weights' bits must agree.
. "$(dirname "$0")/lib.sh"
default=$dtrain native=$root/build/native/dtrain

# in_both LABEL COMMAND...: runs COMMAND, which trains into the directory $run, with each build.
in_both() {
    label=$1 bits=
    shift
    for build in default native; do
        [ $build = default ] && dtrain=$default || dtrain=$native
        "$@" || { dtrain=$default; return; }
        note_rate "$build${label:+, $label}" "$(rate)"
        crc=$(record "$run" final params_crc32c)
        [ "${bits:=$crc}" = "$crc" ] || remark "${label:+$label: }other bits: $bits and $crc"
    done
    dtrain=$default
}

# As many steps with both builds and in all turns, so that the bits can be compared.
turn_net() {
    for precision in f32 bf16; do
        count=$tmp/steps-$precision
        [ -s "$count" ] ||
            { train "$full" run.precision=$precision && record "$run" final step >"$count"; }
        in_both $precision train_steps "$(cat "$count")" "$full" run.precision=$precision
    done
}
measure() {
    rm -f "$tmp"/steps-*
    take_turns turn_net
    for precision in f32 bf16; do
        compare samples_per_sec "default, $precision" "native, $precision" 0.97
    done
}

wordnet=$tmp/wordnet clicks=$tmp/clicks
turn_wordnet() {
    in_both '' job_in_run "$full" "$recipes/wordnet.ini" data.train="$wordnet/train.svm" \
        data.eval= train.epochs=6 run.seed="$round"
}
turn_clicks() {
    in_both '' job_in_run "$full" train data.train="$clicks/train.csv" data.label=click \
        data.hash_bits=22 model.embedding=16 model.wide=yes model.hidden=256,128 train.batch=1024 \
        train.epochs=1 train.optimizer=adagrad train.lr=0.02 run.seed="$round"
}

make -s -C "$root" BUILD=build/native ARCH=native build/native/dtrain || exit
each_case measure 784-128-10:128 784-512-256-10:128 784-1024-1024-10:256 784-4096-4096-10:256
net=cnn batch=128 case='conv 32, 64, dense 128, batch 128'
measure
case='WordNet, linear'
if "$recipes/wordnet-data.sh" "$wordnet" >"$tmp/log" 2>&1; then
    take_turns turn_wordnet
    compare samples_per_sec default native 0.97
else
    remark "$(tail -n 1 "$tmp/log")"
fi
case='wide and deep, a click log of 200,000 rows'
make -s "${BUILD:-build}/scripts/bench/clicks" && mkdir -p "$clicks"
"${BUILD:-build}/scripts/bench/clicks" 200000 1 "$clicks/train.csv" "$clicks/train.bin" >"$tmp/json"
take_turns turn_clicks
compare samples_per_sec default native 0.97
