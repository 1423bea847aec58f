#!/bin/sh
# Async on two hosts over TCP with Debian's Open MPI as it is, no flag but those that reach the hosts.
# Would catch: a start that needs flags for its one-sided memory, gradients or weights that tear on
# their way, a bank that starves progress, worse training than on one host.
# seconds: 180
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/corners.sh"
. "$root/tests/e2e/netns.sh"
hosts_up 2 1gbit
make_csv "$tmp/data.csv"

keys="data.train=$tmp/data.csv data.eval_fraction=0.1 model.hidden=24 train.mode=async train.batch=60 \
train.epochs=10 train.lr=0.05 train.momentum=0.5 run.replicas=3"
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
