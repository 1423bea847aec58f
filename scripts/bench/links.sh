#!/bin/sh
# Slow links: two hosts with a worker each, by local steps, against one host with both workers.
# train.wire and train.overlap are what the page on clusters names for such links.
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/netns.sh"
net=784-512-256-10 batch=128 steps=4000
[ -z "${QUICK:-}" ] || steps=1000

# note_run PROGRAM ARGS...
note_run() {
    program=$1
    shift
    train_steps $steps 3 "$@" && note_rate "$program" "$(rate)"
}

turn() {
    note_run 'one host'
    launch() { ranks=$1; shift; hosts_job "$ranks" "$dtrain" "$@"; }
    note_run "H = $local" train.local_steps="$local"
    note_run "H = $local, q8, overlap" train.local_steps="$local" train.wire=q8 train.overlap=yes \
        train.outer_lr=0.5
    launch() { job "$@"; }
}

# measure RATE H TARGET
measure() {
    local=$2
    case="$net, batch $batch, two hosts over $1"
    hosts_rate "$1"
    take_turns turn
    compare samples_per_sec "H = $local, q8, overlap" 'one host' "$3"
    compare samples_per_sec "H = $local" 'one host'
}

# A bed that cannot be made ends this script.
skip() { case='two hosts' remark "skipped: $*"; exit 0; }
hosts_up 2 1gbit
hosts_slots 2 1
measure 1gbit 32 0.9
measure 100mbit 500 0.85
