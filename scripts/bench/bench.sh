#!/bin/sh
# Measures speed: dtrain, PyTorch where it is installed, and the machine's own sgemm rate, taking
# turns in the same run. Prints tables; leaves bench.txt, bench.json and bench.png in OUT.
#   scripts/bench/bench.sh [SECTION ...]
# speed     samples/s on five networks: np = 1, 2, 3, PyTorch, DistributedDataParallel
# native    the default build against ARCH=native, and their bits
# precision bf16: against f32, and PyTorch's autocast
# cnn       a convolutional network in f32 and bf16, against PyTorch
# scaling   two workers against one process with half the batch
# hosts     two hosts over 1 Gbit/s (network namespaces: needs root)
# links     local steps over 1 Gbit/s and 100 Mbit/s against one host (needs root, too)
# accuracy  time to 88 % Fashion-MNIST test accuracy
# async     async against sync
# stream    streamed from 8-bit HDF5 shards against held in memory
# budget    where a step's time goes, and memory a rank
# growth    samples/s and step time by ranks, parameters and batch
# sparse    a linear model of sparse rows, against liblinear
# clicks    wide and deep on a click log, against PyTorch with sparse gradients
# scale     the exchange on 2 to 16 hosts (network namespaces: needs root), its cost model, up to
#           1,024
# sim       the exchange on 2 to 512 simulated hosts (SimGrid), with its bound and the cost model
# tables    losses of the defaults on Debian's tables, against boosted trees, linear models and a
#           perceptron
# search    trials of a search: their speed, their models on tables, cross-validation, early ends
# bits      checksums of the weights of one job in many ways: ranks, kills, hosts, compilers, MPIs;
#           and its peers
# QUICK=1: few and short runs. ROUNDS: turns. SECS: of a run. SEEDS: of accuracy. OUT: directory.
# With make: make bench QUICK=1 SECTIONS="speed hosts".
set -eu
# Some awks read and write numbers as the locale has them: with commas.
export LC_ALL=C
cd "$(dirname "$0")/../.."
bench=scripts/bench
sections='speed native precision cnn scaling hosts links accuracy async stream budget growth'
sections="$sections sparse clicks scale sim tables search bits"

check() {
    for name; do
        case " $sections " in
        *" $name "*) ;;
        *) echo "bench.sh: $name: not one of: $sections" >&2; exit 2 ;;
        esac
    done
}

settings() {
    if [ -n "${QUICK:-}" ]; then rounds=1 secs=0.4 seeds=1; else rounds=5 secs=2 seeds=5; fi
    export ROUNDS="${ROUNDS:-$rounds}" SECS="${SECS:-$secs}" SEEDS="${SEEDS:-$seeds}"
    export OUT="${OUT:-runs/bench-$(date +%Y%m%d-%H%M%S)}"
    export SAMPLES="$OUT/samples.tsv" PEAK="${BUILD:-build}/scripts/bench/sgemm_peak"
    # What a shell has set for BLAS is no part of the comparison: each program's own choice is.
    for name in $(env | sed -n 's/^\(\(OPENBLAS\|OMP\|MKL\)_[A-Z0-9_]*\)=.*/\1/p'); do
        unset "$name"
    done
}

# The first Python that has PyTorch; nothing if there is none.
find_torch() {
    for python in ${PYTHON:-} python3 /usr/bin/python3; do
        "$python" -c 'import torch' 2>/dev/null && echo "$python" && return
    done
}

# The kernel with the highest sgemm rate: what shares of peak refer to.
fastest_kernel() {
    for kernel in auto Haswell SkylakeX oneDNN; do
        [ $kernel = auto ] || export OPENBLAS_CORETYPE=$kernel
        echo "$("$PEAK" 1 2>/dev/null | sed -n 's/.*gflops //p') $kernel"
    done | sort -g | sed -n '$s/.* //p'
}

prepare() {
    mkdir -p "$OUT"
    : >"$SAMPLES"
    rm -f "$OUT"/torch-*
    make -s dtrain "$PEAK" "${BUILD:-build}/scripts/bench/exchange_speed"
    PYTHON=$(find_torch) || true
    PEAK_KERNEL=$(fastest_kernel)
    export PYTHON PEAK_KERNEL
}

report() {
    awk -f $bench/report.awk -v json="$OUT/bench.json" -v medians="$OUT/medians.tsv" "$SAMPLES" |
        tee "$OUT/bench.txt"
    $bench/plot.sh "$OUT"
    rm -f "$OUT"/torch-*
    echo "$OUT: bench.txt bench.json bench.png samples.tsv"
}

chosen=${*:-${SECTIONS:-$sections}}
# shellcheck disable=SC2086  # words
check $chosen
settings
prepare
$bench/machine.sh
for name in $chosen; do
    "$bench/$name.sh" </dev/null || echo "bench.sh: $name: failed" >&2
done
report
