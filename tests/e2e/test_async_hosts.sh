#!/bin/sh
# Fails if async on two hosts over TCP, with Debian's Open MPI, needs flags for its one-sided
# memory, tears gradients or weights, starves the bank's progress, or trains worse than on one host.
# Also fails if gradients of sparse rows, whole between hosts, are taken for those of touched rows.
# seconds: 120
# waits
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/corners.sh"
. "$root/tests/e2e/netns.sh"
hosts_up 2 1gbit
make_csv "$tmp/data.csv"

keys="data.train=$tmp/data.csv data.eval_fraction=0.1 model.hidden=24 train.mode=async \
train.batch=60 train.epochs=10 train.lr=0.05 train.momentum=0.5 run.replicas=3"
job 4 run.dir="$tmp/one" $keys || fail 'one host'
for slots in '1 3' '2 2'; do
    hosts_slots $slots
    dir="$tmp/hosts-${slots% *}"
    hosts_job 4 "$dtrain" run.dir="$dir" $keys || fail "two hosts, $slots ranks"
    check_eq 'hosts' "$(record "$dir" start hosts)" 2
    check_eq 'exchange' "$(record "$dir" start exchange)" window
    check_eq 'gradients sent' "$(record "$dir" final gradients_sent)" 900
    check_eq 'gradients applied' "$(record "$dir" final gradients_applied)" 900
    check_ge 'accuracy' "$(record "$dir" eval accuracy)" 0.85
done
check_ge 'accuracy on one host' "$(record "$tmp/one" eval accuracy)" 0.85
# A transport without one-sided memory says what helps.
if [ $mpi = openmpi ]; then
    OMPI_MCA_osc=rdma OMPI_MCA_btl=tcp,self \
        hosts_job 4 "$dtrain" run.dir="$tmp/none" $keys >"$tmp/out" 2>&1 &&
        fail 'one-sided memory where there is none'
    check_eq 'errors' "$(grep -c '^dtrain: error: .*OMPI_MCA_osc=^ucx' "$tmp/out")" 1
fi

awk 'BEGIN {
    for (srand(6); n++ < 600;) {
        f = 1 + int(rand() * 9000)
        print f % 2, f ":1", f + 1 + int(rand() * 90) ":0.5"
    }
}' >"$tmp/rows.svm"
keys="data.train=$tmp/rows.svm model.kind=linear train.mode=async train.batch=20 train.epochs=2 \
train.optimizer=adagrad"
hosts_slots 1 2
job 3 run.dir="$tmp/rows-one" $keys >"$tmp/out" 2>&1 || fail_with "$tmp/out" 'rows on one host'
! grep -qE 'sends (the )?whole gradient' "$tmp/out" || fail 'on one host gradients are whole'
hosts_job 3 "$dtrain" run.dir="$tmp/rows-two" $keys >"$tmp/out" 2>&1 ||
    fail_with "$tmp/out" 'rows on two hosts'
expect_line "$tmp/out" 'train.mode=async sends whole gradients'
for dir in rows-one rows-two; do
    check_eq "$dir: gradients sent" "$(record "$tmp/$dir" final gradients_sent)" 120
    check_eq "$dir: gradients applied" "$(record "$tmp/$dir" final gradients_applied)" 120
    check_le "$dir: loss" "$(record "$tmp/$dir" final loss)" 0.69
done
wide='model.kind=mlp model.hidden=4 model.wide=yes train.wide_optimizer=adam'
for rule in train.optimizer=adam "$wide"; do
    hosts_job 3 "$dtrain" run.dir="$tmp/lazy" $keys $rule train.lazy=yes >"$tmp/out" 2>&1 &&
        fail "train.lazy=yes over two hosts, $rule"
    expect_line "$tmp/out" 'train.lazy=yes: expected train.mode=sync, or all ranks on one host'
done
