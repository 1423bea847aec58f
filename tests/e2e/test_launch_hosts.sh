#!/bin/sh
# Fails if `dtrain launch` waits for a dead host, never looks for new ones, or ends a silent job on
# other hosts. One of three hosts goes, its network and all its processes: the job ends by itself on
# the two that answer, with the bits of three. A host that is added to the file is taken in at a
# checkpoint.
# seconds: 90
# waits
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/netns.sh"
hosts_up 3
hosts_slots 2 1 1
"$recipes/exp-data.sh" "$tmp/data"
common="$recipes/exp-curve.ini data.train=$tmp/data/train.csv data.eval=$tmp/data/test.csv
    eval.steps=-1 run.replicas=3 run.log_steps=10 run.checkpoint_steps=50 train.max_steps=200"
into "$tmp/out" "$dtrain" train $common run.dir="$tmp/quiet"
want=$(crc "$tmp/quiet") options=
rsh='--mca plm rsh --mca plm_rsh_agent'
# launch NAME OPTION...
launch() {
    name=$1
    shift
    on_host 1 "$dtrain" launch $options --hostfile "$hostfile" $rsh "$bed/agent" $common \
        run.stall_secs=10 test.slow_rank=1 test.slow_secs=0.01 run.dir="$tmp/$name" "$@"
}
# await_start NAME: waits for its record of step 60.
await_start() {
    wait_until grep -q '"kind":"train","step":60' "$tmp/$1/metrics.jsonl" ||
        fail_with "$tmp/err" 'no start'
}

# All ranks are on another host, and their daemon is no child of mpirun's. Two jobs read their data
# for 25 s before they print anything, on a host of the file, and on one that mpirun chose. One
# prints nothing at all.
printf '#!/bin/sh\n"%s" "$@" && sleep 0.5\n' "$bed/agent" >"$tmp/agent"
chmod +x "$tmp/agent"
has_started() { [ -n "$(pid "$1" dtrain 0)" ]; }
# far NAME HOSTS ARGUMENT...: a job of two ranks in the background. One starts after the other: of
# three mpirun of Open MPI 4.1.4 at once, one waited for ever for a daemon that had ended.
far() {
    name=$1 options=$2
    shift 2
    on_host 1 "$dtrain" launch -np 2 $options $rsh "$tmp/agent" --mca plm_rsh_no_tree_spawn 1 \
        $common data.eval= run.dir="$tmp/$name" run.stall_secs=60 "$@" \
        >"$tmp/$name.out" 2>"$tmp/$name.err" &
    wait_until has_started "$tmp/$name" || fail_with "$tmp/$name.err" "$name does not start"
}
echo "$(host_name 2) slots=2" >"$tmp/second"
far reading "--hostfile $tmp/second" test.slow_rank=0 test.slow_secs=25 train.max_steps=1
reading=$!
far choosing "--host $(host_name 2):2" test.slow_rank=0 test.slow_secs=25 train.max_steps=1
choosing=$!
far silent "-q --host $(host_name 2):2" test.slow_rank=1 test.slow_secs=0.15
silent=$!

cp "$hostfile" "$tmp/three"
head -n 2 "$tmp/three" >"$hostfile"
options='--grow 1'
launch grown test.slow_secs=0.05 >"$tmp/out" 2>"$tmp/err" &
job=$!
options=
await_start grown
check_eq 'hosts before' "$(record "$tmp/grown" start hosts)" 2
cp "$tmp/three" "$hostfile"
wait $job || fail_with "$tmp/err" 'growing'
check_eq 'bits of a job that has grown' "$(crc "$tmp/grown")" "$want"
check_eq 'events' "$(records "$tmp/grown" launch event)" grow
check_eq 'hosts after' "$(record "$tmp/grown" start hosts)" 3

launch lost test.slow_secs=0.03 >"$tmp/out" 2>"$tmp/err" &
job=$!
await_start lost
on_host 3 ip link set eth0 down
kill -KILL $(pid "$tmp/lost" dtrain 3)
mv "$bed/$(host_name 3)" "$bed/$(host_name gone)" # out of reach; hosts_down ends it
at_exit end_lost
# mpirun's daemon on the lost host, and what its parents left
end_lost() {
    kill -KILL $(echo "$bed" | grep -lFf - /proc/[0-9]*/cmdline 2>/dev/null | cut -d/ -f3 |
        grep -vx $$) 2>/dev/null
}
wait $job || fail_with "$tmp/err" 'a lost host'
check_eq 'bits on two hosts' "$(crc "$tmp/lost")" "$want"
check_ge restarts "$(records "$tmp/lost" launch event | grep -c restart)" 1
check_eq hosts "$(record "$tmp/lost" start hosts)" 2
wait $reading && wait $choosing && wait $silent || {
    cat "$tmp"/*ing.err "$tmp/silent.err"
    fail 'a job far away'
}
! grep launch "$tmp"/*ing/metrics.jsonl "$tmp/silent/metrics.jsonl" ||
    fail 'a job far away is ended'
