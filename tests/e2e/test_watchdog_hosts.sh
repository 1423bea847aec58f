#!/bin/sh
# Fails if hosts hear nothing of each other, all blame each other, or hang inside MPI. The watchdog
# across hosts: a stopped bank or worker, alone on its host, ends the job by one error line that
# names rank and host, in sync and async. See long_watchdog.sh.
# seconds: 120
# waits
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/netns.sh"
. "$root/tests/e2e/watchdog.sh"
hosts_up 3
watchdog_data
begin 3 sync run.log_steps=500 run.checkpoint_secs=0
sleep 1 # for a heartbeat
stalls sync 2 "$(host_name 3)" 'gradient, step '
# Stuck, but not stopped: its own watchdog could speak as well.
watched 3 stuck test.slow_rank=2 test.slow_secs=1000 2>"$tmp/err" && fail 'a stuck rank: exit 0'
check_eq 'error lines' "$(grep -c '^dtrain: error:' "$tmp/err")" 1
grep "^dtrain: error:.*rank 2 on $(host_name 3) (" "$tmp/err" ||
    fail_with "$tmp/err" 'it is not named'
begin 3 async train.mode=async
stalls async 0 "$(host_name 1)" ''
# A bank that has a worker on its own host hears of the others in the middle of a span too.
hosts_slots 2 1
begin 3 shared run.log_steps=40 run.checkpoint_secs=0 test.slow_rank=1 test.slow_secs=0.05
stalls shared 2 "$(host_name 2)" ''
