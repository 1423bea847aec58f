#!/bin/sh
# Async against sync, with a worker a core.
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

each_case measure $three
