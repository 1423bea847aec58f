# What the tests of local steps share: e^x by a small network, with dropout.
"$recipes/exp-data.sh" "$tmp/data"
sed '/^hidden/d; /^activation/d' "$recipes/exp-curve.ini" >"$tmp/curve.ini"
net='dense 60 relu, dropout 0.1, dense 30 relu, dropout 0.1'
# run NP DIR OPTION...: five replicas, which no number of groups or ranks below divides.
run() {
    np=$1 dir=$tmp/$2
    shift 2
    job "$np" "$tmp/curve.ini" run.dir="$dir" run.replicas=5 data.train="$tmp/data/train.csv" \
        data.eval="$tmp/data/test.csv" model.layers="$net" train.optimizer=adam train.lr=0.002 \
        train.batch=37 train.epochs=8 train.decay_steps=112 eval.steps=-1 "$@" 2>"$tmp/err"
}
good() { run "$@" || fail_with "$tmp/err" "$*"; }
same() { check_eq "params_crc32c of $1" "$(crc "$tmp/$1")" "$(crc "$tmp/$2")"; }
# stop NAME OPTION...: by USR1, in the second round; then to its end, which is that of np1.
stop() {
    name=$1
    shift
    run 3 "$name" $local test.slow_rank=1 test.slow_secs=0.1 "$@" &
    wait_until grep -q '"kind":"checkpoint","step":[1-9]' "$tmp/$name/metrics.jsonl" ||
        fail "$name does not start"
    kill -USR1 "$(pid "$tmp/$name" mpirun)"
    wait $!
    check_eq "exit code of $name" $? 75
    cp "$tmp/err" "$tmp/stop"
    good 2 "$name" $local
    same "$name" np1
}
