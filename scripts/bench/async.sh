#!/bin/sh
# Async against sync, with a worker a core; then its exchange alone against a lock and two buffers
# (async_speed.c).
. "$(dirname "$0")/lib.sh"

turn() {
    for mode in sync async; do
        train "$full" train.mode=$mode || continue
        note_rate $mode "$(rate)"
        note $mode bank_percent "$(bank_percent)"
    done
}

measure() {
    take_turns turn
    compare samples_per_sec async sync 0.95
}

# note_exchange HOW COMMAND...: gradients a second.
note_exchange() {
    how=$1
    shift
    per_sec=$("$@" | sed -n 's/.*gradients_per_sec \([0-9.]*\) .*/\1/p')
    say "$how: $per_sec gradients/s"
    note "$how" gradients_per_sec "$per_sec"
}
turn_exchange() {
    note_exchange slots mpirun --oversubscribe --bind-to none -np "$full" "$speed" slots "$params" \
        2000 "$ms"
    note_exchange lock "$speed" lock "$params" 2000 "$ms" "$workers"
}
measure_exchange() {
    params=${1%:*} ms=${1#*:}
    case="the exchange of $params parameters, $ms ms of computing"
    take_turns turn_exchange
    compare gradients_per_sec slots lock 1
}

each_case measure $three
speed=${BUILD:-build}/scripts/bench/async_speed
make -s "$speed" || exit
for at in 535818:0 535818:0.5 1863690:0.5; do
    measure_exchange $at
done
