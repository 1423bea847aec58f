#!/bin/sh
# Fails if a bit of run.kernel=portable depends on vectors, tiles, the C library or the machine: in
# a product, a layer, an optimizer or an initial value. Checksums of thirteen short runs are below;
# they come out of each compiler, MPI, number of ranks and CPU with AVX2 and FMA, by AVX2 and
# AVX-512, and on two that qemu-user simulates. Whoever changes bits on purpose writes the new
# checksums here, and a line in the changelog.
. "$(dirname "$0")/lib.sh"
grep -q '^flags.* fma ' /proc/cpuinfo && grep -q '^flags.* avx2 ' /proc/cpuinfo ||
    skip 'no AVX2 and FMA'

# Tables of numbers that no awk's rand() decides.
awk -v pictures="$tmp/pictures.csv" -v counts="$tmp/counts.csv" -v sparse="$tmp/sparse.svm" \
    -v words="$tmp/words.csv" '
function next_number() { state = state * 16807 % 2147483647; return int(state / 1000) % 1000 }
BEGIN {
    state = 7
    for (n = 0; n < 600; n++) {
        line = ""
        sum = 0
        for (i = 0; i < 36; i++) {
            x = next_number()
            line = line x / 1000 ","
            if (i % 5 == 0) sum += x
        }
        print line int(sum / 1000) % 4 >pictures
        print line sum % 97 >counts
        line = int(sum / 1000) % 4
        for (i = f = 0; i < 8; i++) {
            f += 1 + next_number() % 300
            line = line " " f ":" next_number() / 500
        }
        print line >sparse
        answer = sum % 3 ? "yes" : "no"
        print "s" next_number() % 40 ",p" next_number() % 9 "," sum / 1000 "," answer >words
    }
}'
table='data.header=no data.label=-1'

# run NAME DATA LAYERS OPTIONS...: 30 steps of two replicas, ended with $crc. $ranks; $before:
# words before the program; $more: options.
run() {
    name=$1 data=$2 layers=$3
    shift 3
    rm -rf "$tmp/run"
    set -- "$dtrain" "$@"
    [ $ranks = 1 ] || set -- mpirun --oversubscribe -np $ranks "$@"
    # shellcheck disable=SC2086  # a command's words
    timeout "$limit" $before "$@" run.dir="$tmp/run" data.train="$tmp/$data" \
        "model.layers=$layers" run.replicas=2 run.kernel="$kernel" eval.steps=-1 export.latest=no \
        export.best=no train.batch=50 train.max_steps=30 run.parts=4 $more >"$tmp/out" 2>&1 ||
        fail_with "$tmp/out" "$name"
    [ "$(record "$tmp/run" start kernel)" = portable ] || fail "$name: another kernel"
    crc=$(crc "$tmp/run")
}

# pinned [NAME...]: these runs, or all, have the checksums that are written here.
pinned() {
    only=${*:-any}
    while IFS='|' read -r name want data layers options; do
        case " $only " in *" any "* | *" $name "*) ;; *) continue ;; esac
        # shellcheck disable=SC2086  # a run's options
        run "$name" "$data" "$layers" $options </dev/null
        echo "$name of $what: $crc"
        [ "$crc" = "$want" ] || { echo "expected $want"; wrong=1; }
    done <<END
sgd|765eddd2|pictures.csv|dense 96 relu, dropout 0.2, dense 50 tanh|$table \
    train.schedule=cosine train.lr=0.1 train.clip_norm=1
adam|3da312ca|pictures.csv|dense 300 gelu, layernorm, dense 20 softplus|$table \
    train.optimizer=adam train.lr=0.002 train.schedule=exponential train.decay_rate=0.5 \
    data.normalize=standard
lamb|6f5cffb6|pictures.csv|dense 70 silu, residual(dense 70 leaky_relu), batchnorm|$table \
    train.optimizer=lamb train.lr=0.01 train.weight_decay=0.1
conv|ad2b7ba1|pictures.csv|conv 12 3x3 pad same relu, conv 18 3x2 stride 2 groups 3, batchnorm, \
relu, maxpool 2x2, flatten, dense 30 relu|$table \
    data.shape=6x6x1 train.optimizer=adamw train.lr=0.003
poisson|2df4bf56|counts.csv|dense 40 sigmoid|$table \
    model.task=regress train.loss=poisson train.optimizer=rmsprop train.lr=0.001
quantile|a441d8ef|counts.csv|dense 40 relu, scale|$table \
    model.task=regress train.loss=quantile train.quantiles=0.1,0.5,0.9 train.lr=0.01 \
    model.output_bias=baseline
sparse|1b845ce3|sparse.svm|dense 24 relu|train.optimizer=adagrad train.lr=0.05
ftrl|6f17d9dc|sparse.svm|linear|train.optimizer=ftrl train.lr=0.5 train.l1=0.02
words|85107394|words.csv|embedding 8, dense 30 relu, wide|$table \
    train.optimizer=adam train.lazy=yes train.lr=0.01
local|37d717ea|pictures.csv|dense 64 relu|$table \
    train.lr=0.05 train.local_steps=3 train.groups=2 train.wire=q8
cosine|d78f8ea7|pictures.csv|dense 30 relu|$table \
    train.lr=0.05 data.encode=cosine data.encode_width=3
ple|beb39aa8|counts.csv|dense 30 relu|$table \
    model.task=regress train.optimizer=adamw train.lr=0.003 data.encode=ple
split|7a8e1cce|pictures.csv|dense 64 relu split, dense 48 tanh split|$table \
    train.optimizer=nesterov train.lr=0.02
END
}

expect_error 2 'run.precision=bf16 and run.kernel=portable' 1 data.train="$tmp/pictures.csv" \
    run.dir="$tmp/none" run.kernel=portable run.precision=bf16
wrong=0 before= more= ranks=1
what='one process' kernel=portable
pinned
what='AVX2' kernel=portable-avx2
pinned
what='three ranks' kernel=portable ranks=3
pinned sgd conv sparse split
what='async without staleness' more='train.mode=async train.staleness=0'
pinned sgd adam
if command -v qemu-x86_64 >/dev/null; then
    ranks=1 more=
    for cpu in Haswell EPYC-Rome; do
        what="qemu's $cpu" before="qemu-x86_64 -cpu $cpu"
        pinned sgd adam conv quantile sparse cosine
    done
fi
[ $wrong -eq 0 ] || fail 'other bits'
