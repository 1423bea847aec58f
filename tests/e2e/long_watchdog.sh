#!/bin/sh
# Fails if the watchdog ends a job that is slow, or misses a rank that is stuck. More of
# test_watchdog.sh and test_watchdog_hosts.sh: a survey and an evaluation that take longer than the
# limit, ranks stopped at meetings, an evaluator, and every rank of four on three hosts, in sync and
# async.
# seconds: 600
# waits
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/netns.sh"
. "$root/tests/e2e/watchdog.sh"
watchdog_data
host=$(uname -n)
long_work 2
for rank in 0 2; do
    begin 3 meeting-$rank run.log_steps=1
    stalls meeting-$rank $rank "$host" ''
done
watched 3 survey $(slow_survey) 2>"$tmp/err" >"$tmp/out" &
wait_until test -f "$tmp/survey/lock" || fail_with "$tmp/err" 'no survey'
sleep 2
stalls survey 0 "$host" survey
begin 4 evaluator eval.dedicated=yes run.checkpoint_steps=200
stalls evaluator 3 "$host" ''
begin 3 async train.mode=async
stalls async 2 "$host" ''

hosts_up 3
long_work 3
for mode in sync async; do
    hosts_slots 1 2 1
    for rank in 0 1 2 3; do
        case $rank in 0) host=1 ;; 3) host=3 ;; *) host=2 ;; esac
        begin 4 $mode-$rank train.mode=$mode run.replicas=3
        stalls $mode-$rank $rank "$(host_name $host)" ''
    done
done
hosts_slots 2 1 1
begin 4 evaluator-apart eval.dedicated=yes run.checkpoint_steps=200
stalls evaluator-apart 3 "$(host_name 3)" ''

# The job takes long to end: the bank knows that another host printed the reason, and does not
# report that it no longer hears from that host.
hosts_slots 1 2
begin 3 late run.replicas=2
kill -STOP "$(pid "$tmp/late" mpirun)"
kill -STOP "$(pid "$tmp/late" dtrain 2)"
sleep $((stall + 14))
kill -CONT "$(pid "$tmp/late" mpirun)"
wait $!
check_eq 'error lines of an end that comes late' "$(grep -c '^dtrain: error:' "$tmp/err")" 1
grep -q "^dtrain: error: .rank 1.* at rank 2 on $(host_name 2)" "$tmp/err" ||
    fail_with "$tmp/err" 'another line'
