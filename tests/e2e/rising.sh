# Sourced behind lib.sh: runs of a regression whose rate rises until the model gets worse, behind step 400
# or so, evaluated every 40 steps.
"$recipes/exp-data.sh" "$tmp/data"

# run NP DIR OPTION...: below $tmp/DIR.
run() {
    np=$1 dir=$2
    shift 2
    job "$np" "$recipes/exp-curve.ini" run.dir="$tmp/$dir" data.train="$tmp/data/train.csv" \
        data.eval="$tmp/data/test.csv" run.replicas=2 train.epochs=50 train.schedule=constant \
        train.optimizer=sgd train.lr=1 train.warmup_steps=800 eval.steps=40 $always "$@"
}
good() { run "$@" 2>"$tmp/err" || { cat "$tmp/err"; fail "$2"; }; }
