#!/bin/sh
# Fails if `dtrain launch` does not take its hosts from Slurm. One of the allocation's two nodes
# dies: the batch script goes on on the other, and the job ends with the undisturbed bits.
# seconds: 300
# waits
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/netns.sh"
. "$root/tests/e2e/slurm.sh"
slurm_up 2 4
"$recipes/exp-data.sh" "$tmp/data"
keys="data.train=$tmp/data/train.csv data.eval=$tmp/data/test.csv train.epochs=20 eval.steps=-1
    run.replicas=3 run.checkpoint_steps=20 run.stall_secs=10"
job 4 "$recipes/exp-curve.ini" run.dir="$tmp/whole" $keys 2>"$tmp/out" || fail_with "$tmp/out" whole

id=$(DTRAIN=$dtrain OMPI_MCA_btl_tcp_if_include=eth0 slurm sbatch --parsable --nodes=2 \
    --ntasks-per-node=2 --output="$tmp/lost.log" scripts/slurm/dtrain.sbatch \
    "$recipes/exp-curve.ini" run.dir="$tmp/lost" $keys test.slow_rank=1 test.slow_secs=0.05) ||
    fail sbatch
wait_until grep -q '"step":40,' "$tmp/lost/metrics.jsonl" || fail_with "$tmp/lost.log" 'no start'
check_eq 'hosts before' "$(record "$tmp/lost" start hosts)" 2
batch=$(host_name 1) other=$(host_name 2)
on_host 2 ip link set eth0 down
holder=$(cat "$bed/$other")
for process in /proc/[0-9]*; do
    [ "$(readlink "$process/ns/net")" = "$(readlink "/proc/$holder/ns/net")" ] || continue
    [ "${process#/proc/}" = "$holder" ] || kill -KILL "${process#/proc/}"
done
rm -f "$bed_slurm/slurmd-$other.pid"
slurm scontrol update nodename="$other" state=down reason=dead
slurm_completes "$id"
cat "$tmp/lost.log"
check_eq "bits on $batch alone" "$(crc "$tmp/lost")" "$(crc "$tmp/whole")"
check_eq 'hosts behind' "$(record "$tmp/lost" start hosts)" 1
