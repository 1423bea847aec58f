# Sourced after lib.sh: what the tests of local steps on three hosts share.
. "$root/tests/e2e/netns.sh"
hosts_up 3
"$recipes/exp-data.sh" "$tmp/data"
keys="run.replicas=5 data.train=$tmp/data/train.csv data.eval=$tmp/data/test.csv
    model.hidden=60,30 train.lr=0.002 train.batch=37 train.epochs=4 train.decay_steps=56
    train.clip_norm=0.5 train.local_steps=8 eval.steps=-1 export.latest=no"

# train NAME NP KEYS...: on the hosts.
train() {
    name=$1 ranks=$2
    shift 2
    hosts_job "$ranks" "$dtrain" "$recipes/exp-curve.ini" "run.dir=$tmp/$name" $keys "$@" \
        2>"$tmp/$name.err"
}
good() { train "$@" || fail_with "$tmp/$1.err" "$1"; }
one() {
    job 1 "$recipes/exp-curve.ini" "run.dir=$tmp/$1" $keys train.groups="$2" ${3:-} 2>"$tmp/err" ||
        fail_with "$tmp/err" "$1"
}
same() { check_eq "params_crc32c of $1" "$(crc "$tmp/$1")" "$(crc "$tmp/$2")"; }
