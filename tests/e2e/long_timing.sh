#!/bin/sh
# Fails if a slow rank still reads weights or gradients that change, an answer is taken before all
# ranks have asked, a wait never ends, or a late rank is taken for stuck. Ranks are late at places
# of their own, each in turn most of all, on one host and on what looks like several (delay.c): the
# bits, losses and evaluations are those of one process, with hosts that have no replica or no group
# of their own, a bank alone on its host, ranks that go to hosts in turn; async loses no gradient.
# seconds: 300
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/corners.sh"
library=$tmp/delay.so
need "${MPICC:-mpicc}"
${MPICC:-mpicc} -O1 -fno-builtin -shared -fPIC -o "$library" tests/e2e/delay.c -ldl ||
    fail 'delay.c'
"$recipes/exp-data.sh" "$tmp/data"
make_shops "$tmp/table.csv" 700 300
curve="data.train=$tmp/data/train.csv data.eval=$tmp/data/test.csv data.label=y model.hidden=60,30"
table="data.train=$tmp/table.csv data.label=price data.eval_fraction=0.1 model.hidden=16
    model.embedding=4 model.wide=yes data.hash_bits=8"
more='model.task=regress train.batch=37 train.lr=0.004 train.optimizer=adam train.epochs=90
    train.max_steps=24 run.log_steps=8 eval.steps=12 export.latest=no export.best=no'

# late NAME HOSTS SEED KEYS...: a letter of HOSTS a rank.
late() {
    dir=$tmp/$1-$3 hosts=$2 seed=$3
    shift 3
    mpirun --timeout $limit --oversubscribe -x LD_PRELOAD="$library" -x DELAY="$seed" \
        -x DELAY_HOSTS="$hosts" -np ${#hosts} "$dtrain" run.dir="$dir" $more "$@" \
        >"$dir.err" 2>&1 || fail_with "$dir.err" "$dir"
}
# told RUN_DIR: what must not depend on timing.
told() {
    crc "$1"
    records "$1" train loss
    records "$1" eval loss
}
# same TIMES NAME HOSTS KEYS...: each rank is late so many times.
same() {
    times=$1 name=$2 hosts=$3
    shift 3
    job 1 run.dir="$tmp/$name" $more "$@" 2>"$tmp/err" || fail_with "$tmp/err" "$name"
    for seed in $(seq $((times * ${#hosts}))); do
        late "$name" "$hosts" "$seed" "$@"
        told "$tmp/$name-$seed" >"$tmp/now"
        told "$tmp/$name" | diff - "$tmp/now" ||
            fail "$name on $hosts, DELAY=$seed: not what one process has"
    done
    echo "$name: $(crc "$tmp/$name")"
}
same 2 overlap AABBCC $curve run.replicas=5 train.local_steps=4 train.groups=2 train.overlap=yes
same 1 rounded ABBCC $curve run.replicas=5 train.local_steps=4 train.groups=3 train.overlap=yes \
    train.wire=q8
same 1 idle ABABCC $curve run.replicas=3 train.clip_norm=0.05 model.dropout=0.1 \
    run.checkpoint_steps=5
same 1 rows ABBCA $table run.replicas=5 train.clip_norm=0.5
same 1 alone AAA $curve run.replicas=3 run.precision=bf16 run.checkpoint_steps=5

for hosts in AAAA AABB; do
    late async-$hosts $hosts 2 $table run.replicas=3 train.mode=async train.staleness=4
    check_eq "gradients applied on $hosts" "$(record "$dir" final gradients_applied)" \
        "$(record "$dir" final gradients_sent)"
done
