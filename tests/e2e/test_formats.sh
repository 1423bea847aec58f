#!/bin/sh
# Fails if other programs cannot read the gauges, the event files or the trace of a run, if the
# trace lacks a rank, or if a file has other permissions than the umask says.
# seconds: 30
. "$(dirname "$0")/lib.sh"
umask 027
run() {
    np=$1 dir=$2
    shift 2
    job "$np" "$recipes/penguins.ini" run.dir="$tmp/$dir" train.epochs=5 model.hidden=512,512 \
        "$@" 2>"$tmp/err" || fail_with "$tmp/err" "$dir"
}

dir=$(printf 'caf\351') # Prometheus takes UTF-8 alone
run 1 "$dir" report.prometheus="$tmp/latin.prom" run.log_steps=1000 train.epochs=1
expect_line "$tmp/latin.prom" '^dtrain_final_samples_per_second{run=".*/caf\\\\xE9"}' \
    'the label of a name that is not UTF-8'
"$recipes/exp-data.sh" "$tmp/data"
job 1 "$recipes/exp-curve.ini" data.train="$tmp/data/train.csv" data.eval= run.dir="$tmp/fails" \
    report.prometheus="$tmp/fails.prom" train.optimizer=sgd train.lr=1e9 model.kind=linear \
    >"$tmp/err" 2>&1 && fail 'a loss that is not finite: exit 0'
expect_line "$tmp/fails.prom" '^dtrain_running{.*} 0$' 'a run that failed goes on for Prometheus'
run 3 sync report.trace=yes report.tensorboard=yes report.prometheus="$tmp/sync.prom"
expect_line "$tmp/sync.prom" '^dtrain_final_samples_per_second{run=' 'no gauge of the speed'
ls "$tmp/sync/tensorboard"/events.out.tfevents.* >/dev/null || fail 'no event file'
ls "$tmp/sync/export/best" | grep -q '^[0-9]' || fail 'no export'
other=$(find "$tmp/sync" "$tmp/sync.prom" \( -type f ! -perm 640 -o -type d ! -perm 750 \) \
    -printf '%m %p\n')
[ -z "$other" ] || fail "other permissions than the umask says: $other"
if command -v promtool >/dev/null; then
    promtool check metrics <"$tmp/sync.prom" || fail 'promtool refuses the gauges'
fi

# events RUN_DIR RANK NAME: how many there are.
events() { grep -c "\"name\":\"$3\",\"ph\":\"X\",\"pid\":$2," "$tmp/$1/trace.json"; }
for rank in 1 2; do
    check_ge "compute of rank $rank" "$(events sync $rank compute)" 30
    check_ge "exchange of rank $rank" "$(events sync $rank 'exchange and update')" 10
done
check_ge 'serve of the bank' "$(events sync 0 serve)" 1
check_ge 'evaluations of the bank' "$(events sync 0 evaluate)" 1
run 3 async report.trace=yes train.mode=async
# (One of the two may be so late that it gets no gradient to compute.)
check_ge 'compute of both' $(($(events async 1 compute) + $(events async 2 compute))) 5
check_eq 'ranks' "$(grep -c process_name "$tmp/async/trace.json")" 3
run 3 watched report.trace=yes eval.dedicated=yes run.checkpoint_steps=10
check_ge 'evaluations of the evaluator' "$(events watched 2 evaluate)" 1
check_ge 'loads of the evaluator' "$(events watched 2 load)" 1
check_eq 'names of the evaluator' \
    "$(grep -c '"name":"rank 2 evaluator ' "$tmp/watched/trace.json")" 1

# A rank that is slow is seen: it computes for most of the time, the others wait for it.
run 3 slowed report.trace=yes test.slow_rank=2 test.slow_secs=0.3 train.epochs=2
millis() {
    compute="\"name\":\"compute\",\"ph\":\"X\",\"pid\":$1,.*\"dur\":\([0-9.]*\)"
    sed -n "s/.*$compute.*/\1/p" "$tmp/slowed/trace.json" |
        awk '{ sum += $1 } END { print int(sum / 1000) }'
}
check_ge 'milliseconds of compute of the slowed rank' "$(millis 2)" "$(($(millis 1) + 200))"
run 1 alone report.trace=yes
check_ge 'compute alone' "$(events alone 0 compute)" 30
if command -v python3 >/dev/null; then
    python3 -c 'import json, sys; [json.load(open(f)) for f in sys.argv[1:]]' "$tmp"/*/trace.json ||
        fail 'a trace is no JSON'
fi
