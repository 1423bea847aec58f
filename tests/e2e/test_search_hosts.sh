#!/bin/sh
# Fails if a rank that hangs on another host leaves a search waiting for ever, decisions depend on
# the host of a trial, a trial of a lost host is counted or skipped, or trials are in directories
# that the leader cannot read. A search on three hosts, one of which is lost, goes on with the other
# two, and ends with the decisions and the model of one process; a host that does not see the run
# directory is named.
# waits
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/netns.sh"
hosts_up 3
cd "$tmp" || exit 1
awk 'BEGIN { srand(7); print "a,b,y"; for (i = 0; i < 400; i++) {
    a = rand(); b = rand(); print a "," b "," sin(6 * a) + b * b } }' >rows.csv
# search JOB NP ARGS...
search() {
    start=$1 np=$2
    shift 2
    $start "$np" search data.train=rows.csv search.trials=6 model.task=regress train.epochs=6 \
        'search.space=model.hidden=8|16|32; train.lr=log 0.01..0.05' "$@" 2>err
}
on_hosts() { np=$1; shift; hosts_job "$np" "$dtrain" "$@"; }
ended() { [ -z "$(pid "$tmp/s" dtrain)" ]; }
decisions() { sed 's/,"secs":[^,}]*//; s/,"time_unix":[0-9]*//' "$1/search.jsonl"; }
model() { cksum <"$1/export/best/6/model.h5"; }

mkdir hidden
hosts_hide 3 "$tmp/hidden"
search on_hosts 3 run.dir="$tmp/hidden/s" && fail 'a run directory that a host lacks: exit 0'
check_eq 'error lines' "$(grep -c '^dtrain: error:' err)" 1
blind="^dtrain: error: \[rank 2 on $(host_name 3)\].*run.dir=.*does not see the directory of"
expect_line err "$blind $(host_name 1);"

search job 1 run.dir="$tmp/s" || fail_with err 'one process'
mv s alone
grep -q '"members":\[[0-9]*,' alone/search.jsonl || fail 'one member alone'

# A rank that is stopped, alone on its host, ends the job; trials that last longer do not.
search on_hosts 3 run.dir="$tmp/s" run.stall_secs=4 test.slow_rank=0 test.slow_secs=0.15 &
job=$!
begun() { [ "$(grep -c '"trial"' s/search.jsonl)" -ge 1 ]; }
wait_until begun || fail_with err 'no decision'
stopped=$(pid "$tmp/s" dtrain 2)
kill -STOP "$stopped"
wait $job
status=$?
kill -KILL "$stopped"
by_itself $status
expect_line err \
    "^dtrain: error: .*stall: no progress for 4 s .* rank 2 on $(host_name 3) (.*not heard"
wait_until ended || fail 'a process is left after a stall'
rm -r s

hosts_slots 2 1 1
search on_hosts 4 run.dir="$tmp/s" run.stall_secs=10 test.slow_rank=0 test.slow_secs=0.08 &
job=$!
begun() { [ "$(grep -c '"trial"' s/search.jsonl)" -ge 2 ]; }
wait_until begun || fail_with err 'no decisions'
lost=$(cat "$bed/$(host_name 3)")
network=$(readlink "/proc/$lost/ns/net")
for process in /proc/[0-9]*; do
    [ "$(readlink "$process/ns/net")" != "$network" ] || [ "${process#/proc/}" = "$lost" ] ||
        kill -KILL "${process#/proc/}" 2>/dev/null
done
wait $job
status=$?
by_itself $status
[ $status -ne 0 ] || fail 'the loss of a host: exit 0'
wait_until ended || fail 'a process is left'
[ "$(grep -c '"trial"' s/search.jsonl)" -lt 6 ] || fail 'the search ended before the host was lost'

hosts_slots 2 1
search on_hosts 3 run.dir="$tmp/s" || fail_with err 'two hosts'
check_eq 'decisions on two hosts' "$(decisions s | cksum)" "$(decisions alone | cksum)"
check_eq 'model on two hosts' "$(model s)" "$(model alone)"
