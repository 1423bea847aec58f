#!/bin/sh
# Fails if an order of sums depends on hosts, or an exchange needs flags across hosts. Two hosts
# over TCP, each a network namespace, have the bits of one process, also with a rule over whole
# tensors and over a rounded wire; async loses nothing; a rank that is killed on the other host is
# named.
# waits
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/netns.sh"
. "$root/tests/e2e/corners.sh"
hosts_up 2
hosts_slots 2 2
make_csv "$tmp/data.csv"
keys="data.train=$tmp/data.csv model.hidden=400,300 train.batch=61 train.max_steps=20 \
run.replicas=4 run.reproducible=yes data.eval_fraction=0.1 export.latest=no export.best=no"

# one DIR KEY...: one process; two DIR KEY...: four ranks on two hosts.
one() {
    dir=$1
    shift
    job 1 $keys run.dir="$tmp/$dir" "$@" 2>"$tmp/err" || fail_with "$tmp/err" "$dir"
}
run_two() { dir=$1; shift; hosts_job 4 "$dtrain" $keys run.dir="$tmp/$dir" "$@" 2>"$tmp/err"; }
two() { run_two "$@" || fail_with "$tmp/err" "$dir on two hosts"; }

for rule in adam lamb; do
    one $rule-one train.optimizer=$rule train.lr=0.01
    two $rule train.optimizer=$rule train.lr=0.01
    check_eq "bits of $rule on two hosts" "$(crc "$tmp/$rule")" "$(crc "$tmp/$rule-one")"
    check_eq "evaluation of $rule" "$(record "$tmp/$rule" eval loss)" \
        "$(record "$tmp/$rule-one" eval loss)"
done
check_eq 'hosts, exchange' \
    "$(record "$tmp/adam" start hosts) $(record "$tmp/adam" start exchange)" '2 ordered'
one q8-one train.wire=q8 train.groups=2
two q8 train.wire=q8 train.groups=2
check_eq 'bits of a rounded wire' "$(crc "$tmp/q8")" "$(crc "$tmp/q8-one")"

two async train.mode=async run.reproducible=no train.max_steps=200
for count in step gradients_sent gradients_applied; do
    check_eq "async: $count" "$(record "$tmp/async" final $count)" 200
done

run_two killed run.checkpoint_steps=5 train.max_steps=100000 test.slow_rank=1 test.slow_secs=0.05 &
wait_until grep -q '"kind":"checkpoint","step":[1-9]' "$tmp/killed/metrics.jsonl" ||
    fail 'no checkpoint'
kill -KILL "$(pid "$tmp/killed" dtrain 3)"
wait $!
status=$?
[ $status -ne 0 ] || fail 'a killed rank: exit 0'
by_itself $status
grep -q "rank 3 on $(host_name 2)" "$tmp/err" || untold $status "$tmp/err" ||
    fail_with "$tmp/err" 'the rank is not named'
