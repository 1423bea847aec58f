#!/bin/sh
# Local steps on three hosts: as many groups as hosts; groups within hosts, and groups that reach over them;
# the groups' state comes to the bank for a checkpoint; a stop gives a round up. Would catch an exchange that
# sums in the order of hosts, a group's state that stays at its host or does not come to it, a stop that waits for a
# long round.
# waits
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/local_hosts.sh"

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

# A round of 4 s, of which a stop waits for half a second.
train stopped 6 train.groups=2 test.slow_rank=3 test.slow_secs=1 test.round_secs=0.5 run.log_steps=1 run.checkpoint_steps=8 &
settle grep -q '"kind":"checkpoint","step":[1-9]' "$tmp/stopped/metrics.jsonl" || { cat "$tmp/stopped.err"; fail 'no checkpoint'; }
kill -USR1 "$(pid "$tmp/stopped" mpirun)"
wait $!
status=$?
# Hydra may return 0 where several hosts were stopped through it.
[ "$mpi $status" = 'mpich 0' ] || check_eq 'exit code of a stop' $status 75
grep -q 'stopped in a round of local steps' "$tmp/stopped.err" || { cat "$tmp/stopped.err"; fail 'the round was not given up'; }
good stopped 6
same stopped one2
