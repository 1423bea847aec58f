#!/bin/sh
# Fails if an exchange of local steps sums in the order of hosts, a group's state stays at its host
# or does not come to it, or a stop waits for a long round. Three hosts: as many groups as hosts,
# groups within hosts, and groups that reach over them; the bank saves the groups' state.
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
# In step at first: the optimizer's state, of which each host has a slice, goes to all groups,
# without a checkpoint.
one after1 2 train.local_after=12
good after 6 train.groups=2 train.local_after=12
check_eq 'checkpoints' "$(ls "$tmp/after/ckpt" | paste -sd ' ')" \
    'latest.h5 step-000000000.h5 step-000000056.h5'
same after after1
# Half on three hosts, with the state of all groups in the checkpoint; then alone, and back again.
good half 6 train.groups=2 train.max_steps=24
job 1 "$recipes/exp-curve.ini" "run.dir=$tmp/half" $keys train.max_steps=40 2>"$tmp/err" ||
    fail_with "$tmp/err" 'resumed alone'
good half 6
same half one2

# A round of 4 s, of which a stop waits for half a second.
train stopped 6 train.groups=2 test.slow_rank=3 test.slow_secs=1 test.round_secs=0.5 \
    run.log_steps=1 run.checkpoint_steps=8 &
await_checkpoint "$tmp/stopped" || fail_with "$tmp/stopped.err" 'no checkpoint'
kill -USR1 "$(pid "$tmp/stopped" mpirun)"
wait $!
status=$?
# Hydra may return 0 where several hosts were stopped through it.
[ "$mpi $status" = 'mpich 0' ] || check_eq 'exit code of a stop' $status 75
expect_line "$tmp/stopped.err" 'stopped in a round of local steps' 'the round was not given up'
good stopped 6
same stopped one2
