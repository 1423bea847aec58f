#!/bin/sh
# Fails if a checkpoint lacks state, or a group or a rounding error depends on the rank. Local
# steps, a rounded wire, sparse rows, split layers and bf16 end with the bits of one process, on
# several ranks and over a resume with another number of them.
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/corners.sh"
make_csv "$tmp/data.csv"

# run NP DIR KEY...: 24 steps, five replicas.
run() {
    np=$1 dir=$2
    shift 2
    job "$np" run.dir="$tmp/$dir" data.train="$tmp/data.csv" eval.steps=-1 run.replicas=5 \
        export.latest=no export.best=no train.batch=50 train.optimizer=adam train.lr=0.005 \
        train.max_steps=24 "$@" 2>"$tmp/err" || fail_with "$tmp/err" "np $np: $*"
}
same() { check_eq "bits of $1" "$(crc "$tmp/$1")" "$(crc "$tmp/$2")"; }
other() { [ "$(crc "$tmp/$1")" != "$(crc "$tmp/$2")" ] || fail "$1 has the bits of $2"; }
# several NAME KEY...: one process; three ranks up to step 12, then two.
several() {
    name=$1
    shift
    run 1 "$name" "$@"
    run 3 "$name-half" "$@" train.max_steps=12
    run 2 "$name-half" "$@"
    same "$name-half" "$name"
}
net='model.layers=dense 30 relu, batchnorm, dense 20 relu, dropout 0.1'
run 1 plain "$net"

# ---- local steps ---------------------------------------------------------------------------------
several local "$net" train.local_steps=4 train.groups=2
other local plain
loss() { record "$tmp/$1" final loss; }
check_le 'loss of local steps' "$(loss local)" "$(loss plain | awk '{print 1.3 * $1}')"
expect_line "$tmp/local/metrics.jsonl" '"kind":"start".*"local_steps": *4' \
    'the record of local steps'
run 1 every "$net" train.local_steps=1 train.groups=3
same every plain

# ---- a rounded wire ------------------------------------------------------------------------------
several q8 "$net" train.wire=q8 train.groups=2 train.clip_norm=0.5
other q8 plain
# Stopped where the groups are about to take a copy of the state each, and after their first round.
local="train.wire=q8 train.local_steps=4 train.groups=2 train.local_after=12"
run 1 q8-local "$net" $local
run 3 q8-local-half "$net" $local train.max_steps=12
run 2 q8-local-half "$net" $local train.max_steps=16
run 3 q8-local-half "$net" $local
same q8-local-half q8-local
expect_error 2 'train.wire: with train.exchange=reduce' 1 data.train="$tmp/data.csv" \
    run.dir="$tmp/none" train.wire=q8 train.exchange=reduce

# ---- bf16 ----------------------------------------------------------------------------------------
bf16='run.precision=bf16 run.kernel=Haswell-bf16-reference'
several bf16 model.hidden=40,30 $bf16
run 1 f32 model.hidden=40,30 run.kernel=Haswell
other bf16 f32
# Copies that updates keep are those that a worker would make of the weights.
kept='model.hidden=96,80 run.precision=bf16 run.replicas=1 train.batch=20'
run 2 kept $kept
run 2 made $kept train.exchange=reduce
same made kept

# ---- split layers --------------------------------------------------------------------------------
several split "model.layers=dense 64 relu split, dropout 0.2, dense 80 tanh split" \
    run.reproducible=yes
run 1 unsplit "model.layers=dense 64 relu, dropout 0.2, dense 80 tanh"
echo "$(loss split) $(loss unsplit)" |
    awk '{d = $1 - $2; exit !(NF == 2 && d * d < 1e-10)}' ||
        fail 'split layers learn something else'

# ---- sparse rows ---------------------------------------------------------------------------------
awk 'BEGIN {srand(3); for (n = 0; n < 1500; n++) {
    class = int(rand() * 5); line = class
    for (i = f = 0; i < 8; i++) {
        f += 1 + int(rand() * rand() * 700)
        line = line " " f ":" int(100 * rand() + 30 * (f % 5 == class)) / 100
    }
    print line}}' >"$tmp/rows.svm"
sparse="data.train=$tmp/rows.svm model.kind=linear train.optimizer=adagrad train.lr=0.1 \
train.clip_norm=0.05"
several sparse $sparse
run 2 whole $sparse train.exchange=reduce
expect_line "$tmp/err" 'sends the whole gradient' 'the gradient does not travel whole'
same sparse whole
