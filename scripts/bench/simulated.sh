# Sourced by sections that run the program on simulated clusters (scripts/sim).
us=25                      # latency of a link
message=${MESSAGE_US:-2}   # microseconds of a processor to send or receive a message
value=${VALUE_NS:-1}       # nanoseconds of it for a value: fitted to q8 on two hosts at 1 Gbit/s

# have_simulator: with build/sim/dtrain, and data whose gradients are not computed.
have_simulator() {
    command -v smpirun >/dev/null ||
        { remark 'not simulated: needs SimGrid: apt-get install libsimgrid-dev'; return 1; }
    make -s -C "$root" sim >&2 || { remark 'not simulated: make sim'; return 1; }
    # Pictures without a dot; the last label says that there are ten classes.
    {
        printf '\0\0\10\3\0\0\10\0\0\0\0\34\0\0\0\34'
        head -c $((2048 * 784)) /dev/zero
    } >"$tmp/images"
    { printf '\0\0\10\1\0\0\10\0'; head -c 2047 /dev/zero; printf '\11'; } >"$tmp/labels"
}

# simulate NET HOSTS GBIT ARGS...: a line HOSTS GBIT MS BOUND RATE CPU for each number of hosts. A
# row a worker is read.
simulate() {
    simulated_net=$1 simulated_hosts=$2 simulated_gbit=$3
    shift 3
    (cd "$root" && SIM_PATIENCE=3600 python3 scripts/sim/sim.py table \
        --hosts "$simulated_hosts" --gbit "$simulated_gbit" \
        --us $us --message "$message" --value "$value" --fold --batch 1 \
        data.train="$tmp/images" data.train_labels="$tmp/labels" data.format=idx train.max_steps=3 \
        run.log_steps=3 run.checkpoint_secs=0 export.latest=no export.best=no \
        "$(options_of "$simulated_net")" "$@" 2>"$tmp/err") | grep '^ *[0-9]' ||
        remark "$(tail -n 1 "$tmp/err")"
}
