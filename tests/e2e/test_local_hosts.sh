#!/bin/sh
# Local steps on three hosts: as many groups as hosts; groups within hosts, and groups that reach over them;
# the groups' state comes to the bank for a checkpoint; a stop gives a round up. Would catch an exchange that
# sums in the order of hosts, a group's state that stays at its host or does not come to it, a stop that waits for a
# long round.
# waits
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/netns.sh"
hosts_up 3
"$recipes/exp-data.sh" "$tmp/data"
keys="run.replicas=5 data.train=$tmp/data/train.csv data.eval=$tmp/data/test.csv model.hidden=60,30 \
train.lr=0.002 train.batch=37 train.epochs=4 train.decay_steps=56 eval.steps=-1 train.clip_norm=0.5 \
export.latest=no train.local_steps=8"

# train NAME NP KEYS...: on the hosts.
train() {
    name=$1 ranks=$2
    shift 2
    hosts_job "$ranks" "$dtrain" "$recipes/exp-curve.ini" "run.dir=$tmp/$name" $keys "$@" 2>"$tmp/$name.err"
}
good() { train "$@" || { cat "$tmp/$1.err"; fail "$1"; }; }
one() { job 1 "$recipes/exp-curve.ini" "run.dir=$tmp/$1" $keys train.groups="$2" ${3:-} 2>"$tmp/err" || { cat "$tmp/err"; fail "$1"; }; }
same() { check_eq "params_crc32c of $1" "$(crc "$tmp/$1")" "$(crc "$tmp/$2")"; }

one one3 3
one one2 2
hosts_slots 2 2 2
good three 6
check_eq 'groups of three hosts' "$(record "$tmp/three" start groups)" 3
same three one3
good over 6 train.groups=2 # the second host has workers of both
same over one2
# In step at first: the optimizer's state, of which each host has a slice, goes to all groups, and nobody saved it.
one after1 2 train.local_after=12
good after 6 train.groups=2 train.local_after=12
check_eq 'checkpoints' "$(ls "$tmp/after/ckpt" | paste -sd ' ')" 'latest.h5 step-000000000.h5 step-000000056.h5'
same after after1
# Half on three hosts, with the state of all groups in the checkpoint; the rest alone, and back again.
good half 6 train.groups=2 train.max_steps=24
job 1 "$recipes/exp-curve.ini" "run.dir=$tmp/half" $keys train.max_steps=40 2>"$tmp/err" || { cat "$tmp/err"; fail 'resumed alone'; }
good half 6
same half one2

# The exchange goes on while the next round computes, with groups of one host and of two.
keys="$keys train.overlap=yes"
one late3 3
one late2 2
good late 6
same late late3
good late-over 6 train.groups=2 run.checkpoint_steps=8 run.keep=0 export.best=no test.slow_rank=1 test.slow_secs=0.05
same late-over late2
# What a group of two hosts has pending goes back to both.
for at in 000000016 000000040; do
    from=$tmp/late-over/ckpt/step-$at.h5
    good late-$at 6 train.groups=2 run.resume="$from"
    same late-$at late2
done
one late-wire 2 train.wire=q8
good late-wire3 6 train.groups=2 train.wire=q8
same late-wire3 late-wire
keys=${keys% train.overlap=yes}

# A round of 4 s, of which a stop waits for half a second.
train stopped 6 train.groups=2 test.slow_rank=3 test.slow_secs=0.5 test.round_secs=0.5 run.log_steps=1 run.checkpoint_steps=8 &
settle 60 grep -q '"kind":"checkpoint","step":[1-9]' "$tmp/stopped/metrics.jsonl" || { cat "$tmp/stopped.err"; fail 'no checkpoint'; }
kill -USR1 "$(pid "$tmp/stopped" mpirun)"
wait $!
status=$?
# Hydra may return 0 where several hosts were stopped through it.
[ "$mpi $status" = 'mpich 0' ] || check_eq 'exit code of a stop' $status 75
grep -q 'stopped in a round of local steps' "$tmp/stopped.err" || { cat "$tmp/stopped.err"; fail 'the round was not given up'; }
good stopped 6
same stopped one2
