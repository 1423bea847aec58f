# Sourced after lib.sh: async jobs of four ranks on two hosts, whose weights are dealt to owners.

. "$root/tests/e2e/corners.sh"
. "$root/tests/e2e/netns.sh"
hosts_up 2 1gbit
make_csv "$tmp/data.csv"
keys="data.train=$tmp/data.csv data.eval_fraction=0.1 train.mode=async train.batch=60 \
train.epochs=10 train.lr=0.05 train.momentum=0.5 run.replicas=3 run.log_steps=50"
layers='dense 400 relu, batchnorm' # enough floats to be dealt out to all workers
hosts_slots 2 2
# run NAME KEYS...: four ranks on the hosts.
run() {
    dir=$tmp/$1
    shift
    hosts_job 4 "$dtrain" run.dir="$dir" $keys "model.layers=$layers" "$@" >"$tmp/out" 2>&1
}
good() { run "$@" || fail_with "$tmp/out" "exit $?: $*"; }
accounts() {
    check_eq "$1: steps" "$(record "$tmp/$1" final step)" "$2"
    check_eq "$1: sent" "$(record "$tmp/$1" final gradients_sent)" "$2"
    check_eq "$1: applied" "$(record "$tmp/$1" final gradients_applied)" "$2"
    # Of this start, on the bank's slice and on each owner's.
    applied=$(sed -n '/"final"/s/.*"slice_applied":\[\([0-9, ]*\)\].*/\1/p' \
        "$tmp/$1/metrics.jsonl" | tail -n 1 | tr , '\n')
    check_eq "$1: slices" "$(echo "$applied" | wc -l)" "$3"
    check_eq "$1: counts on them" "$(echo "$applied" | sort -u | wc -l)" 1
}
