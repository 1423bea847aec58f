#!/bin/sh
# The same job in many ways: how many different weights come out, and by how much predictions
# differ: 784-128-10 on Fashion-MNIST, and a table of 11,000 rows. dtrain, three epochs of four
# replicas: np 1, 2, 3, 5 and 9; after five kills; resumed at another np; three hosts (network
# namespaces: needs root); built by clang; with MPICH. Next to it, where installed, one epoch of
# PyTorch's DistributedDataParallel over gloo with 1 to 4 processes and of scikit-learn's
# perceptron, and XGBoost, with 1 and 2 threads.
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/netns.sh"
for python in ${PYTHON:-} python3 /usr/bin/python3; do
    "$python" -c 'import numpy' 2>/dev/null && break
    python=
done
case=bits
[ "$python" ] || { remark 'python3-numpy is not installed'; exit; }
default=$dtrain table=$tmp/table seen=$tmp/seen
mkdir "$table" "$seen"
"$python" "$bench/bits.py" table "$table"

# ---- runs ---------------------------------------------------------------------------------------

# saw PROGRAM HOW CRC: a run that ended with these weights; its predictions are in $tmp/predictions.
saw() {
    say "$1, $2: ${3:-failed}"
    [ -n "$3" ] || return 0
    count=$(($(cat "$seen"/* 2>/dev/null | wc -l) + 1))
    mv "$tmp/predictions" "$seen/$count.predictions.of"
    echo "$3 $seen/$count.predictions.of" >>"$seen/$(echo "$1" | tr ' ' '_')"
}

# one NP ARGS...: the job in the directory $run, of three epochs, so that it can be killed five
# times.
one() {
    np=$1
    shift
    # shellcheck disable=SC2086  # options of the case
    launch "$np" train run.dir="$run" $options run.kernel="$kernel" run.replicas=4 run.preset=none \
        model.hidden=128 train.batch=128 train.epochs=3 train.lr=0.01 eval.steps=-1 export.best=no \
        "$@" >"$tmp/log" 2>&1 </dev/null
}

# ended HOW: what the run in $run came to.
ended() {
    # shellcheck disable=SC2086
    "$dtrain" predict "$run" $held_out 2>"$tmp/err" | head -n 1000 >"$tmp/predictions"
    saw "$program" "$1" "$(crc "$run")"
    rm -rf "$run"
}

# killed: five times with SIGKILL at np 3, each time soon after a new checkpoint; then to its end.
killed() {
    kills=0
    for attempt in 1 2 3 4 5; do
        before=$(newest)
        one 3 run.checkpoint_steps=20 &
        job=$!
        while [ "$(newest)" = "$before" ] && kill -0 $job 2>/dev/null; do sleep 0.01; done
        processes=$(echo "run.dir=$run" | grep -lFf - /proc/[0-9]*/cmdline 2>/dev/null |
            cut -d / -f 3)
        # shellcheck disable=SC2086  # a word each
        kill -9 $processes 2>/dev/null
        wait $job || kills=$((kills + 1))
    done
    one 3
    ended "np 3, $kills kills"
}
newest() { ls "$run/ckpt" 2>/dev/null | grep step- | tail -n 1; }

in_all_ways() {
    run=$tmp/run
    for np in 1 2 3 5 9; do one "$np" && ended "np $np"; done
    killed
    one 5 train.max_steps=40 && one 2 && ended 'np 5, resumed at np 2'
    # A bed that cannot be made ends this subshell.
    (
        skip() { remark "three hosts skipped: $*"; exit; }
        trap 'hosts_down; rm -rf "$tmp/hosts"' EXIT
        hosts_up 3 && hosts_slots 2 1 1
        launch() { ranks=$1; shift; hosts_job "$ranks" "$dtrain" "$@"; }
        one 4 && ended 'three hosts'
    )
    for build in clang mpich; do
        dtrain=$root/build/$build/dtrain
        [ -x "$dtrain" ] || continue
        (
            [ $build = clang ] || export PATH="$root/tests/mpich:$PATH"
            if one 3; then ended "$build"; else say "$build: $(tail -n 1 "$tmp/log")"; fi
        )
        dtrain=$default
    done
}

peers() {
    for threads in 1 2; do
        for peer in perceptron xgboost; do
            found=$(THREADS=$threads OPENBLAS_NUM_THREADS=$threads OMP_NUM_THREADS=$threads \
                "$python" -W ignore "$bench/bits.py" $peer "$data" "$tmp/predictions" \
                2>"$tmp/err") || continue
            saw "$peer" "$threads threads" "$found"
        done
    done
    [ -n "$PYTHON" ] || { remark 'PyTorch is not installed'; return; }
    for world in 1 2 3 4; do
        rm -f "$tmp/store"
        for rank in $(seq 0 $((world - 1))); do
            OPENBLAS_NUM_THREADS=1 GLOO_SOCKET_IFNAME=lo timeout "$limit" "$PYTHON" \
                "$bench/bits.py" torch "$data" "$tmp/predictions" $world "$rank" "$tmp/store" \
                >"$tmp/crc-$rank" 2>"$tmp/err" &
        done
        wait
        saw DDP "$world processes" "$(cat "$tmp/crc-0")"
    done
}

# ---- the table ----------------------------------------------------------------------------------

count_bits() {
    for of in "$seen"/*; do
        case $of in *.of) continue ;; esac
        name=$(basename "$of" | tr '_' ' ')
        note "$name" runs "$(wc -l <"$of")"
        note "$name" checksums "$(cut -d ' ' -f 1 "$of" | sort -u | wc -l)"
        # shellcheck disable=SC2046  # files
        note "$name" largest_difference \
            "$("$python" "$bench/bits.py" compare $(cut -d ' ' -f 2 "$of"))"
    done
    rm -f "$seen"/*
}

measure() {
    round=1
    for kernel in auto portable; do
        program=dtrain
        [ $kernel = auto ] || program="dtrain $kernel"
        in_all_ways
    done
    peers
    count_bits
}

make_build() {
    make -s -C "$root" BUILD=build/$1 "$2" build/$1/dtrain >"$tmp/log" 2>&1 ||
        remark "no build by $1"
}
! command -v clang >/dev/null || make_build clang CC=clang
! command -v mpicc.mpich >/dev/null || make_build mpich MPICC=mpicc.mpich
case='Fashion-MNIST, 784-128-10' data=$data_dir
options="data.train=$images data.train_labels=$labels data.scale=0.00392156862745098"
held_out="data.eval=$data_dir/t10k-images-idx3-ubyte.gz"
measure
case='a table, 20-128-3' data=$table
options="data.train=$table/train.csv data.header=no data.label=-1"
held_out="data.eval=$table/test.csv"
measure
