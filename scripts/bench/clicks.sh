#!/bin/sh
# A click log, wide and deep: 13 numbers and 26 categories hashed to 2^22, embedding 16, 256-128,
# adagrad; rows that clicks.c makes of a hidden model, whose logloss is the best there is. PyTorch
# has EmbeddingBags of sparse gradients, the same rows, batch and rule. Speed is that of training;
# logloss after one pass. Then two hosts over 1 Gbit/s with a worker each, against one with both:
# what a host sends a step, and the speed (namespaces: needs root).
. "$(dirname "$0")/lib.sh"
. "$bench/torch.sh"
. "$root/tests/e2e/netns.sh"
clicks=$tmp/clicks
rows=1000000
[ -z "${QUICK:-}" ] || rows=100000
batch=1024
case="wide and deep, embedding 16, 256-128, 2^22 hashes, batch $batch, $rows rows"

note_logloss() { say "$1: logloss $2"; note "$1" logloss "$2"; }

# dtrain_run PROGRAM NP OPTIONS...
dtrain_run() {
    program=$1 np=$2
    shift 2
    job_in_run "$np" train data.train="$clicks/train.csv" data.eval="$clicks/eval.csv" \
        data.label=click data.hash_bits=22 model.embedding=16 model.wide=yes model.hidden=256,128 \
        train.batch=$batch train.epochs=1 train.optimizer=adagrad train.lr=0.02 eval.steps=-1 \
        run.seed="$round" "$@" || return
    note_rate "$program" "$(rate)"
    note_logloss "$program" "$(record "$run" eval loss)"
}

turn_dtrain() { dtrain_run "dtrain np=$1" "$1"; }
turn_async() { dtrain_run "dtrain np=$full, async" "$full" train.mode=async; }
turn_ftrl() {
    dtrain_run "dtrain np=$full, ftrl" "$full" train.wide_optimizer=ftrl train.wide_lr=0.02 \
        train.l1=1
}

# turn_torch THREADS: of the interpreter, in one process.
turn_torch() {
    OPENBLAS_NUM_THREADS=$1 timeout "$limit" "$PYTHON" "$bench/torch_clicks.py" \
        "$clicks/train.bin" "$clicks/eval.bin" --threads "$1" --batch $batch --seed "$round" \
        >"$tmp/json" 2>"$tmp/torch.err" || return 0
    note_rate "PyTorch, $1 threads" "$(json samples_per_sec <"$tmp/json")"
    note_logloss "PyTorch, $1 threads" "$(json logloss <"$tmp/json")"
}

# One host and two; what the second sends is rows and slices, at the end also the state of its
# slices.
turn_hosts() {
    dtrain_run 'dtrain np=3, one host' 3 run.replicas=2
    launch() { ranks=$1; shift; hosts_job "$ranks" "$dtrain" "$@"; }
    for wire in f32 bf16 q8; do
        before=$(host_sent 2)
        dtrain_run "dtrain np=3, two hosts, $wire" 3 run.replicas=2 train.wire=$wire
        bytes=$(calc "int(($(host_sent 2) - $before) / $(record "$run" final step))")
        say "the second host sends $bytes bytes a step"
        note "dtrain np=3, two hosts, $wire" bytes_a_step "$bytes"
    done
    launch() { job "$@"; }
}

measure() {
    make -s "${BUILD:-build}/scripts/bench/clicks" || return
    mkdir -p "$clicks"
    "${BUILD:-build}/scripts/bench/clicks" $rows 1 "$clicks/train.csv" "$clicks/train.bin" \
        >"$tmp/json"
    best=$("${BUILD:-build}/scripts/bench/clicks" 50000 2 "$clicks/eval.csv" "$clicks/eval.bin" |
        json best_logloss)
    round=1
    note_logloss 'the hidden model' "$best"
    if have_torch; then
        take_turns "turn_dtrain $full" turn_async 'turn_dtrain 1' turn_ftrl 'turn_torch 1' \
            "turn_torch $workers"
        compare samples_per_sec "dtrain np=$full" 'PyTorch, 1 threads' 3
        compare logloss 'PyTorch, 1 threads' "dtrain np=$full" 0.998
    else
        take_turns "turn_dtrain $full" turn_async 'turn_dtrain 1' turn_ftrl
    fi
    compare samples_per_sec "dtrain np=$full, async" "dtrain np=$full" 0.95
    compare logloss "dtrain np=$full" "dtrain np=$full, async" 0.996
}

measure
# A bed that cannot be made ends this script.
skip() { remark "skipped: $*"; exit 0; }
case="$case, two hosts over 1 Gbit/s"
hosts_up 2 1gbit
hosts_slots 2 1
take_turns turn_hosts
for wire in f32 bf16 q8; do
    compare samples_per_sec "dtrain np=3, two hosts, $wire" 'dtrain np=3, one host' 0.5
done
