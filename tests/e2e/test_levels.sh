#!/bin/sh
# Fails if a function without clones has an instruction beyond the baseline, a clone adds in another
# order, or convolutions in training or eval use all the vectors that a CPU has. One binary runs on
# any CPU with the same bits: on this one, and on two that qemu-user emulates, without AVX-512 and
# without any AVX. Products of matrices and convolutions are one kernel's.
. "$(dirname "$0")/lib.sh"
need qemu-x86_64
[ "$(uname -m)" = x86_64 ] || skip 'the levels are those of x86-64'

# run CPU OPTIONS...: np 1; host: this CPU.
run() {
    cpu=$1 emulated=
    shift
    [ "$cpu" = host ] || emulated="qemu-x86_64 -cpu $cpu"
    rm -rf "$tmp/run"
    # shellcheck disable=SC2086  # a command's words
    timeout "$limit" $emulated "$dtrain" train data.train="$recipes/data/penguins.csv" \
        data.label=species data.ignore=island,sex,year data.normalize=standard run.dir="$tmp/run" \
        run.replicas=2 run.kernel=Prescott train.epochs=2 train.optimizer=adam train.clip_norm=1 \
        train.groups=2 "$@" >"$tmp/out" 2>&1 || fail_with "$tmp/out" "$cpu: $*"
    crc=$(crc "$tmp/run")
}
cpus='Haswell Nehalem'
levels_agree() {
    run host "$@"
    want=$crc
    for cpu in $cpus; do
        run $cpu "$@"
        check_eq "$cpu, $*" "$crc" "$want"
    done
}
levels_agree train.wire=q8 \
    'model.layers=dense 64 gelu, layernorm, dropout 0.1, dense 32 softplus, batchnorm'
levels_agree train.wire=bf16 run.precision=bf16 model.hidden=64 model.activation=tanh
conv='model.layers=conv1d 24 3 pad same relu,
    residual(conv1d 40 3 stride 2 pad same relu, conv1d 40 3 pad same), dense 8'
levels_agree "$conv"
cpus=Haswell
levels_agree "$conv" run.kernel=Haswell data.eval_fraction=0.2
check_eq 'loss of eval here' "$("$dtrain" -q eval "$tmp/run/ckpt/latest.h5" | json loss)" \
    "$(record "$tmp/run" eval loss)"
