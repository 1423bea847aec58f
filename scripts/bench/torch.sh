# Sourced after lib.sh: PyTorch's runs. A setting is three words: OpenBLAS kernel (auto: its own
# choice), OpenBLAS threads, interpreter threads.
interface=lo
torch_options= # of all runs, beside the setting

have_torch() {
    [ -n "$PYTHON" ] && return
    remark 'PyTorch skipped: no Python here has it (package python3-torch)'
    return 1
}

# torch_flag PRECISION: what torch_train takes for it.
torch_flag() { [ "$1" = f32 ] || echo --bf16; }

# place RANK COMMAND...: where a process of that rank runs. hosts.sh has its own.
place() { shift; "$@"; }

# torch_train SETTING ARGS...: trains $net with $batch, prints the JSON line. rank=N: which process.
torch_train() {
    kernel=${1%% *} threads=${1#* }
    shift
    # shellcheck disable=SC2046  # no word or one
    place "${rank:-0}" env $(kernel_env "$kernel") OPENBLAS_NUM_THREADS="${threads% *}" \
        GLOO_SOCKET_IFNAME=$interface timeout "$limit" "$PYTHON" "$bench/torch_train.py" \
        --data "$data_dir" --net "$net" --batch "$batch" --threads "${threads#* }" \
        --secs "$SECS" "$@" 2>"$tmp/torch-${rank:-0}.err"
}

# torch_together SETTING ARGS...: DistributedDataParallel, a process a worker, one thread each.
torch_together() {
    one="${1%% *} 1 1"
    shift
    rm -f "$tmp/store"
    for rank in $(seq 0 $((workers - 1))); do
        torch_train "$one" --world "$workers" --rank "$rank" --store "$tmp/store" "$@" &
    done
    wait
    rank=
}

# ---- the best setting ---------------------------------------------------------------------------

# Of this network and batch, found once in a bench: $setting.
find_setting() {
    found=$OUT/torch-$net-$batch$torch_options
    [ -s "$found" ] || search_setting >"$found"
    setting=$(cat "$found")
}

# Threads first, then kernels with the best threads.
search_setting() {
    best=$(fastest "auto 1 1" "auto 1 $workers" "auto $workers 1" "auto $workers $workers")
    threads=${best#* }
    fastest "$best" "Haswell $threads" "SkylakeX $threads"
}

fastest() {
    for setting; do
        # shellcheck disable=SC2086  # no word or one
        rate=$(torch_train "$setting" --secs 0.5 $torch_options | json samples_per_sec)
        say "PyTorch, setting $setting: $(printf %.0f "${rate:-0}") samples/s"
        echo "${rate:-0} $setting"
    done | sort -g | sed -n '$s/[^ ]* //p'
}

# The setting in words.
say_setting() {
    echo "$setting" |
        sed 's/\(.*\) \(.*\) \(.*\)/OpenBLAS kernel \1, \2 BLAS threads, \3 of the interpreter/'
}
