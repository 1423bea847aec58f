#!/bin/sh
# Fails if a busy evaluator on a host of its own is taken for dead, evaluates otherwise than in
# place, or waits for checkpoints where it does not see the run directory: there the error names its
# host.
# waits
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/netns.sh"
hosts_up 2
hosts_slots 3 1
"$recipes/exp-data.sh" "$tmp/data"
awk 'NR == 1 {print; next} {for (i = 0; i < 10; i++) print}' "$tmp/data/test.csv" >"$tmp/eval.csv"
run() {
    dir=$1
    shift
    hosts_job 4 "$dtrain" "$recipes/exp-curve.ini" run.dir="$dir" data.train="$tmp/data/train.csv" \
        data.eval="$tmp/eval.csv" eval.dedicated=yes run.checkpoint_steps=100 train.epochs=50 "$@"
}
# 8 chunks of nine seconds, once.
run "$tmp/apart" run.stall_secs=60 eval.start_delay_secs=1000 test.slow_rank=3 test.slow_secs=9 \
    2>"$tmp/err" ||
    fail_with "$tmp/err" 'an evaluator on a host of its own'
check_eq status "$(record "$tmp/apart" final status)" completed
check_eq 'last evaluation' "$(record "$tmp/apart" eval step)" 800
check_eq rmse "$(record "$tmp/apart" eval rmse)" "$("$dtrain" eval "$tmp/apart" | json rmse)"
check_eq 'rmse of the best' "$("$dtrain" eval "$tmp/apart/export/best" | json rmse)" \
    "$(records "$tmp/apart" eval rmse | sort -g | head -n 1)"

mkdir "$tmp/hidden"
hosts_hide 2 "$tmp/hidden"
run "$tmp/hidden/run" 2>"$tmp/err" && fail 'a run directory that the evaluator lacks: exit 0'
check_eq 'error lines' "$(grep -c '^dtrain: error:' "$tmp/err")" 1
grep '^dtrain: error:' "$tmp/err" | grep "\[rank 3 on $(host_name 2)\].*does not see" ||
    fail_with "$tmp/err" 'the host is not named'
