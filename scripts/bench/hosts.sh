#!/bin/sh
# Two hosts over 1 Gbit/s: a bank and a worker on one, a worker on the other; PyTorch's
# DistributedDataParallel with a process on each. Both in floats, and with fewer bits on the wire:
# train.wire=q8, and PyTorch's hook that sends gradients in fp16 (it has none in 8 bits).
. "$(dirname "$0")/lib.sh"
. "$bench/torch.sh"
. "$root/tests/e2e/netns.sh"
workers=2
interface=eth0

launch() {
    np=$1
    shift
    hosts_job "$np" "$dtrain" "$@"
}

place() {
    host=$(($1 + 1))
    shift
    on_host $host "$@"
}

turn() {
    train 3 && note_rate 'dtrain np=3' "$(rate)"
    train 3 train.wire=q8 && note_rate 'dtrain np=3, q8' "$(rate)"
    [ -n "$PYTHON" ] || return 0
    note_rate DDP "$(torch_together 'auto 1 1' | json samples_per_sec)"
    note_rate 'DDP, fp16' "$(torch_together 'auto 1 1' --fp16-wire | json samples_per_sec)"
}

measure() {
    have_torch || true
    take_turns turn
    [ -n "$PYTHON" ] || return 0
    compare samples_per_sec 'dtrain np=3' DDP 1
    compare samples_per_sec 'dtrain np=3, q8' 'DDP, fp16' 1
}

# A bed that cannot be made ends this script.
skip() { case='two hosts' remark "skipped: $*"; exit 0; }
case='two hosts'
hosts_up 2 1gbit
hosts_slots 2 1
each_case measure 784-512-256-10:128
