# Sourced by the sections: what is measured on, notes of what came out, dtrain's runs.
. "$(dirname "$0")/../../tests/e2e/lib.sh"
bench=$root/scripts/bench
section=$(basename "$0" .sh)
workers=${WORKERS:-$(nproc)}
full=$((workers + 1)) # ranks: the bank, and a worker a core
limit=600
round=
data_dir=/usr/share/datasets/fashion-mnist
images=$data_dir/train-images-idx3-ubyte.gz
labels=$data_dir/train-labels-idx1-ubyte.gz
cnn_layers='conv 32 3x3 pad same relu, maxpool 2, conv 64 3x3 pad same relu, maxpool 2'
cnn_layers="$cnn_layers, dense 128 relu"
three='784-128-10:128 784-512-256-10:128 784-1024-1024-10:256'

# ---- notes --------------------------------------------------------------------------------------

# Lines of $SAMPLES, between tabs. $case: what is measured; $round: the turn.
write() { (IFS='	'; echo "$*") >>"$SAMPLES"; }
# note PROGRAM METRIC VALUE: of an empty value nothing is noted.
note() { [ -z "$3" ] || write value "$section" "$case" "$1" "$round" "$2" "$3"; }
# compare METRIC A B [TARGET [medians]]: the median of the turns' A / B, or the ratio of medians.
compare() { write compare "$section" "$case" "$1" "$2" "$3" "${4:-}" "${5:-pairs}"; }
remark() { write remark "$section" "$case" "$*"; say "$*"; }
say() { echo "$section: $case${round:+, turn $round}: $*" >&2; }

# each_case COMMAND NET:BATCH...: sets $net, $batch and $case, and runs the command, for each.
each_case() {
    command=$1
    shift
    for at; do
        net=${at%:*} batch=${at#*:}
        case="$net, batch $batch"
        $command
    done
}

# take_turns COMMAND...: all of them one after the other, $ROUNDS times.
take_turns() {
    for round in $(seq "$ROUNDS"); do
        for turn; do $turn; done
    done
    round=
}

calc() { awk "BEGIN { print $* }" </dev/null; }

# ---- the machine's sgemm rate -------------------------------------------------------------------

# What `env` needs to choose a kernel; auto: nothing.
kernel_env() { [ "$1" = auto ] || echo "OPENBLAS_CORETYPE=$1"; }

# Measures GFLOP/s of one core ($peak_one) and of all ($peak_all).
measure_peak() {
    # shellcheck disable=SC2046  # no word or one
    rates=$(env $(kernel_env "$PEAK_KERNEL") "$PEAK" "$workers" | sed -n 's/.*gflops //p')
    peak_one=$(echo "$rates" | head -n 1)
    peak_all=$(echo "$rates" | tail -n 1)
}

# True flops of a sample: the first layer needs no input gradient. "cnn": that of cnn.sh, 28x28
# pictures.
flops_of() {
    [ "$1" != cnn ] ||
        { calc '4 * 784 * 32 * 9 + 6 * (196 * 64 * 288 + 3136 * 128 + 128 * 10)'; return; }
    echo "$1" |
        awk -F- '{ for (i = 1; i < NF; i++) f += (i == 1 ? 4 : 6) * $i * $(i + 1); print f }'
}

# note_rate PROGRAM RATE: samples/s; empty: the program failed.
note_rate() {
    say "$1: $(printf '%.0f' "${2:-0}") samples/s"
    note "$1" samples_per_sec "$2"
}

# note_share PROGRAM RATE PEAK: also the share of PEAK (GFLOP/s) that they are.
note_share() {
    note_rate "$1" "$2"
    [ -z "$2" ] || note "$1" percent_of_peak "$(calc "$2 * $(flops_of "$net") * 1e-7 / $3")"
}

# ---- dtrain -------------------------------------------------------------------------------------

options_of() { # NET
    [ "$1" != cnn ] || { echo "model.layers=$cnn_layers"; return; }
    hidden=$(echo "$1" | sed 's/^[0-9]*-//; s/-*[0-9]*$//; s/-/,/g')
    if [ -n "$hidden" ]; then echo "model.hidden=$hidden"; else echo model.kind=linear; fi
}

# launch NP ARGS...: hosts.sh has its own.
launch() { job "$@"; }

# job_in_run NP CONFIG|train ARGS...: a job in the directory $run, without checkpoints by time and
# exports.
job_in_run() {
    np=$1 what=$2 run=$tmp/run
    shift 2
    rm -rf "$run"
    launch "$np" "$what" run.dir="$run" run.checkpoint_secs=0 export.latest=no export.best=no "$@" \
        >"$tmp/log" 2>&1 </dev/null && return
    say "$(grep 'dtrain: error' "$tmp/log")"
    return 1
}

# train_steps STEPS NP ARGS...: trains $net with $batch in the directory $run.
train_steps() {
    steps=$1 np=$2
    shift 2
    job_in_run "$np" train data.train="$images" data.train_labels="$labels" \
        data.scale=0.00392156862745098 "$(options_of "$net")" train.batch="$batch" \
        train.max_steps="$steps" train.epochs=1e6 "$@"
}

# train NP ARGS...: the same for about $SECS seconds. The run before decides the steps; the
# first one is short, and its steps are a guess.
train() {
    known=$tmp/rate-$(echo "$net $batch $*" | cksum | cut -d ' ' -f 1)
    if [ ! -s "$known" ]; then
        train_steps "$(calc "int(1e10 / ($(flops_of "$net") + 1e5) / $batch) + 5")" "$@" || return
        record "$run" final samples_per_sec >"$known"
    fi
    train_steps "$(calc "int($SECS * $(cat "$known") / $batch) + 5")" "$@" || return
    record "$run" final samples_per_sec >"$known"
}

# Of the run in $run: samples/s; percent of a core that its bank used.
rate() { record "$run" final samples_per_sec; }
bank_percent() {
    calc "100 * $(record "$run" final bank_cpu_secs) * $(rate) / $(record "$run" final samples)"
}

# Keeps the peak memory of the ranks of $run in $tmp/rank-N: MB, as the kernel has it.
watch_memory() {
    while sleep 0.1; do
        for at in $(echo "$run" | grep -lFf - /proc/[0-9]*/cmdline); do
            at=${at%/cmdline}
            rank=$(tr '\0' '\n' <"$at/environ" | sed -n 's/^OMPI_COMM_WORLD_RANK=//p')
            peak=$(awk '/^VmHWM/ { print $2 / 1024 }' "$at/status")
            [ -z "$rank" ] || [ -z "$peak" ] || echo "$peak" >"$tmp/rank-$rank"
        done
    done
}
