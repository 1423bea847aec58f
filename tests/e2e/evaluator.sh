# Sourced after lib.sh: jobs of four ranks with a dedicated evaluator, in $tmp.

"$recipes/exp-data.sh" "$tmp/data"
# The last rank of four evaluates 8 chunks. `run DIR OPTION...`
awk 'NR == 1 {print; next} {for (i = 0; i < 10; i++) print}' "$tmp/data/test.csv" >"$tmp/eval.csv"
run() {
    dir=$tmp/$1
    shift
    job 4 "$recipes/exp-curve.ini" run.dir="$dir" data.train="$tmp/data/train.csv" run.replicas=2 \
        data.eval="$tmp/eval.csv" eval.dedicated=yes run.checkpoint_steps=100 train.epochs=50 "$@"
}
good() { run "$@" 2>"$tmp/err" || fail_with "$tmp/err" "$1"; }
# last DIR STATUS: the run ended so, and its last checkpoint was evaluated, as `dtrain eval` has the
# latest export. (The best one is another where a machine under load lets a run go on for long.)
last() {
    check_eq "status of $1" "$(record "$tmp/$1" final status)" "$2"
    check_eq 'last evaluation' "$(record "$tmp/$1" eval step)" "$(record "$tmp/$1" final step)"
    "$dtrain" eval "$tmp/$1/export/latest" >"$tmp/json" || fail "eval $1"
    for key in rows loss rmse mae r2; do
        check_eq "$key" "$(record "$tmp/$1" eval $key)" "$(json $key <"$tmp/json")"
    done
    wait_until gone || fail "a process of $1 is left"
}
