#!/bin/sh
# Fails if tune-lr suggests a rate beyond reason, leaves a run directory, prints an error of the
# configuration twice, waits for a rank that was asked to stop, or overwrites the gauges of a run.
# The suggested rate trains, alone and under mpirun.
. "$(dirname "$0")/lib.sh"
data=$recipes/data/penguins.csv ini=$recipes/penguins.ini
cd "$tmp" || exit 1
echo 'of a run' >"$tmp/live.prom"
for np in 1 3; do
    job $np tune-lr "$ini" data.train="$data" report.prometheus="$tmp/live.prom" >"$tmp/out" \
        2>"$tmp/err" || fail_with "$tmp/err" "np $np"
    cat "$tmp/out"
    ! grep 'the suggestion is weak' "$tmp/err" || fail 'a loss that falls by less than 2 %'
    for mark in o x; do check_eq "$mark in the curve" "$(grep -c "^ .*|.*$mark" "$tmp/out")" 1; done
    lr=$(sed -n 's/^train.lr=//p' "$tmp/out")
    check_ge "rate at np=$np" "$lr" 0.001
    check_le "rate at np=$np" "$lr" 0.2
    job $np "$ini" data.train="$data" run.dir="$tmp/run$np" train.lr="$lr" 2>"$tmp/err" ||
        fail 'a run with it'
    check_ge 'accuracy with it' "$(record "$tmp/run$np" eval accuracy)" 0.9
done

# The preset that it takes by itself is part of what it suggests: a rate alone would turn it off.
job 1 tune-lr data.train="$data" data.label=species data.missing=mean >"$tmp/out" 2>"$tmp/err" ||
    fail_with "$tmp/err" 'a table'
expect_line "$tmp/out" '^train.lr=.* run.preset=table$' 'a rate without its preset'

# A preset's own rate is not where the test begins.
job 1 tune-lr data.train="$data" data.label=species data.missing=mean run.preset=table >"$tmp/out" \
    2>"$tmp/err" || fail_with "$tmp/err" 'a preset'
check_le 'rate with a preset' "$(sed -n 's/^train.lr=//p' "$tmp/out")" 0.2

# The loss of counts is negative from the first step on. (The preset's small batch would hide its
# fall.)
awk 'BEGIN { srand(5); print "a,b,visits"; for (i = 0; i < 2000; i++) {
    a = rand(); b = rand(); print a "," b "," int(exp(3 * a + 2 * b)) } }' >"$tmp/visits.csv"
job 1 tune-lr data.train="$tmp/visits.csv" model.task=regress train.loss=poisson train.batch=128 \
    >"$tmp/out" 2>"$tmp/err" || fail_with "$tmp/err" 'counts'
check_ge 'rate of counts' "$(sed -n 's/^train.lr=\([^ ]*\).*/\1/p' "$tmp/out")" 0.0005

# How good the model of the test is does not matter: nothing is said of it.
awk 'BEGIN { srand(3); print "a,b,y"; for (i = 0; i < 400; i++)
    print rand() "," rand() "," (rand() < 0.3 ? "no" : "yes") }' >"$tmp/chance.csv"
for seed in 1 2; do
    job 1 tune-lr data.train="$tmp/chance.csv" data.eval_fraction=0.2 run.seed=$seed >"$tmp/out" \
        2>"$tmp/err" || fail 'chance'
    grep 'a guess has\|baseline\|standard' "$tmp/err" &&
        fail 'advice on a model that nobody keeps, or on what the preset has set'
done

# Local steps and the wire are not tested; the linear path's rate keeps its ratio; ftrl's rates
# cannot rise.
tested() {
    job 1 tune-lr "$ini" data.train="$data" "$@" >"$tmp/out" 2>"$tmp/err" &&
        sed -n 's/^train.lr=//p' "$tmp/out"
}
plain=$(tested run.replicas=2)
check_eq 'rate with local steps' \
    "$(tested run.replicas=2 train.groups=2 train.local_steps=8 train.overlap=yes)" "$plain"
wide=$(tested model.wide=yes)
check_eq 'rates of a wide model' "$(tested model.wide=yes train.lr=0.5 train.wide_lr=0.5)" \
    "$wide train.wide_lr=$wide"
ftrl='run.replicas=2 model.wide=yes train.wide_optimizer=ftrl train.wide_lr=0.3'
check_eq 'rate of async' "$(tested $ftrl train.mode=async)" "$(tested $ftrl)"
expect_error 2 'its rates fall by themselves' 1 tune-lr "$ini" data.train="$data" \
    train.optimizer=ftrl

# A request that only one rank has got ends all of them.
job 3 tune-lr "$ini" data.train="$data" run.dir="$tmp/asked" test.slow_rank=1 test.slow_secs=0.2 \
    2>"$tmp/err" &
begun() { grep -q '"kind": *"train"' "$tmp"/tune-lr*/metrics.jsonl; }
wait_until begun || fail 'it does not start'
kill -TERM "$(pid "$tmp/asked" dtrain 2)"
wait $!
check_eq 'exit code after TERM to one rank' $? 75
wait_until gone || fail 'a process is left'

[ -z "$(ls -d "$tmp"/tune-lr* 2>/dev/null)" ] || fail 'a directory is left'
check_eq 'the gauges' "$(cat "$tmp/live.prom")" 'of a run'
# Where nothing can be written it goes to the temporary directory.
mkdir "$tmp/temporary"
(
    cd /proc && TMPDIR="$tmp/temporary" "$dtrain" tune-lr "$ini" data.train="$data"
) >"$tmp/out" 2>"$tmp/err" || fail "$(cat "$tmp/err")"
expect_line "$tmp/out" '^train.lr=' 'no rate without a place to write'
# MPI has a directory of its own.
[ -z "$(ls -d "$tmp/temporary"/tune-lr* 2>/dev/null)" ] || fail 'a temporary directory is left'
# Nor there: the other ranks do not begin a run without one.
(
    export TMPDIR=/proc OMPI_MCA_orte_tmpdir_base=/tmp
    cd /proc && expect_error 1 '[rank 0 on' 2 tune-lr "$ini" data.train="$data"
) || exit 1
expect_error 2 train.lrr 2 tune-lr "$ini" data.train="$data" train.lrr=1
