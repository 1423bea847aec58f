# Sourced after lib.sh: runs of a regression whose rate rises until the model gets worse, after
# step 400 or so, evaluated every 40 steps.
"$recipes/exp-data.sh" "$tmp/data"

# run NP DIR OPTION...: below $tmp/DIR.
run() {
    np=$1 dir=$2
    shift 2
    job "$np" "$recipes/exp-curve.ini" run.dir="$tmp/$dir" data.train="$tmp/data/train.csv" \
        data.eval="$tmp/data/test.csv" run.replicas=2 train.epochs=50 train.schedule=constant \
        train.optimizer=sgd train.lr=1 train.warmup_steps=800 eval.steps=40 $always "$@"
}
good() { run "$@" 2>"$tmp/err" || fail_with "$tmp/err" "$2"; }
least() { records "$tmp/$1" eval rmse | sort -g | head -n 1; }
# best DIR: the highest version of the best measures what the best record has.
best() {
    rmse=$("$dtrain" eval "$tmp/$1/export/best" | json rmse)
    check_eq "rmse of $1's best" "$rmse" "$(least "$1")"
}
# versions DIR KIND: of its exports, ascending. highest DIR KIND: the last of them.
versions() { ls "$tmp/$1/export/$2" | grep -x '[0-9]*' | sort -n; }
highest() { versions "$@" | tail -n 1; }
