#!/bin/sh
# Fails if the order of sums depends on hosts, an exchange over TCP hangs or needs flags across
# three hosts, with Debian's Open MPI, or an error does not name the host.
# waits
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/netns.sh"
hosts_up 3

recipe=$recipes/fashion-mnist.ini
# The smaller half of the pictures: each rank reads them.
few=$(sed -n 's/^eval *= *//p' "$recipe") labels=$(sed -n 's/^eval_labels *= *//p' "$recipe")
keys="data.train=$few data.train_labels=$labels run.replicas=4 train.epochs=3 train.batch=129 \
model.hidden=128 model.dropout=0.2 export.latest=no export.best=no"

# train NAME NP KEYS...: on the three hosts.
train() {
    name=$1 ranks=$2
    shift 2
    hosts_job "$ranks" "$dtrain" "$recipe" "run.dir=$tmp/$name" $keys "$@" 2>"$tmp/$name.err" ||
        fail_with "$tmp/$name.err" "$name ends with $?"
}

mkdir "$tmp/one"
job 2 "$recipe" "run.dir=$tmp/one" $keys run.reproducible=yes train.max_steps=60 || fail 'one host'
hosts_slots 2 2 1
train three 5 run.reproducible=yes train.max_steps=60
check_eq 'exchange on three hosts' "$(record "$tmp/three" start exchange)" ordered
check_eq 'bits on three hosts' "$(crc "$tmp/three")" "$(crc "$tmp/one")"
# The norms of whole tensors, of parts that other hosts own.
lamb='train.optimizer=lamb train.max_steps=40 train.lr=0.02'
job 2 "$recipe" "run.dir=$tmp/lamb-one" $keys $lamb || fail 'lamb on one host'
train lamb 5 $lamb
check_eq 'bits of lamb on three hosts' "$(crc "$tmp/lamb")" "$(crc "$tmp/lamb-one")"

# Each of three hosts sends its sum of the replicas for what the others own, and what it owns to
# both, also where the bank has a worker's place: 4 / 3 of the model. Hosts that have parts of the
# replicas' tree here and there would send 2.
hosts_slots 2 2 2
before=$(host_sent 2)
train uneven 6 run.replicas=5 train.epochs=10 train.max_steps=100
bytes=$((($(host_sent 2) - before) / 100))
check_le 'bytes a step of a host' "$bytes" $((6 * 4 * (785 * 128 + 129 * 10) / 4))
hosts_slots 2 2 1

# What the exchange takes is said once, where it is most of a step; on one host never.
told='the exchange with other hosts takes .* try train.local_steps=[0-9]*, or train.wire=q8'
train slow 5 train.max_steps=40 test.slow_rank=4 test.slow_secs=0.05
check_eq 'lines about the wire' "$(grep -c "$told" "$tmp/slow.err")" 1
told_step='the exchange with other hosts takes .* of a \(.*\) ms step'
step=$(sed -n "s/.*$told_step.*/\1/p" "$tmp/slow.err")
check_ge 'ms of a step, as told' "$step" 50
# The first 20 steps are measured.
check_le 'ms of a step, as told' "$step" \
    "$(record "$tmp/slow" final wall_secs | awk '{print 1000 * $1 / 20}')"
train ftrl 5 train.max_steps=40 test.slow_rank=4 test.slow_secs=0.05 train.optimizer=ftrl \
    train.schedule=constant train.lr=0.1
expect_line "$tmp/ftrl.err" \
    'the exchange with other hosts takes .* ms step: try a larger train.batch$' \
    'ftrl is advised what it does not go with'
job 3 "$recipe" "run.dir=$tmp/near" $keys train.max_steps=40 test.slow_rank=2 test.slow_secs=0.02 \
    2>"$tmp/near.err" || fail_with "$tmp/near.err" near
check_eq 'lines about the wire on one host' "$(grep -c "$told" "$tmp/near.err")" 0
for exchange in node reduce; do
    train $exchange 5 train.exchange=$exchange train.max_steps=100 model.hidden=16 model.dropout=0 \
        train.optimizer=adam train.lr=0.01
    check_le "final loss of $exchange" "$(record "$tmp/$exchange" final loss)" 1
done
train async 5 train.mode=async train.optimizer=adam train.lr=0.001 train.epochs=2
check_eq 'exchange of async' "$(record "$tmp/async" start exchange)" window
check_eq 'gradients applied' "$(record "$tmp/async" final gradients_applied)" \
    "$(record "$tmp/async" final step)"
check_le 'final loss of async' "$(record "$tmp/async" final loss)" 0.8

mkdir "$tmp/data"
cp "$few" "$labels" "$tmp/data"
hosts_hide 2 "$tmp/data"
hosts_job 5 "$dtrain" "$recipe" "run.dir=$tmp/hidden" "data.train=$tmp/data/*images*" \
    "data.train_labels=$tmp/data/*labels*" 2>"$tmp/err" && fail 'data that one host lacks: exit 0'
expect_line "$tmp/err" "^dtrain: error:.* on $(host_name 2)\]" 'host not named'

[ $mpi = openmpi ] || exit 0
# Where TCP uses BBR, a rank of a job of four hosts makes send buffers small, unless the user sets
# them.
on_host 1 sysctl -q net.ipv4.tcp_congestion_control=bbr 2>/dev/null || {
    echo 'no BBR here'
    exit 0
}
for given in '' OMPI_MCA_btl_tcp_sndbuf=77777; do
    on_host 1 env SLURM_STEP_NUM_NODES=4 $given "$dtrain" "$recipe" "run.dir=$tmp/bbr$given" $keys \
        run.replicas=1 train.max_steps=1 2>"$tmp/err" || fail_with "$tmp/err" 'alone with BBR'
    want=${given#*=}
    expect_line "$tmp/err" "btl_tcp_sndbuf=${want:-65536}" "send buffers, '$given'"
done
