#!/bin/sh
# Fails if train.wire rounds by who does it, a checkpoint forgets an error, running statistics are
# rounded, a wire rounds nothing, or contradictory keys are taken. For bf16 and q8, with every step
# exchanged and with rounds of four: the same bits at any number of ranks, also after a kill and a
# resume with another number; near f32; a resume that changes the wire says so.
# seconds: 60
. "$(dirname "$0")/lib.sh"
"$recipes/exp-data.sh" "$tmp/data"
sed '/^hidden/d; /^activation/d' "$recipes/exp-curve.ini" >"$tmp/curve.ini"
# run NP DIR OPTION...: five replicas in two groups.
run() {
    np=$1 dir=$tmp/$2
    shift 2
    job "$np" "$tmp/curve.ini" run.dir="$dir" run.replicas=5 data.train="$tmp/data/train.csv" \
        data.eval="$tmp/data/test.csv" model.layers='dense 40 relu, batchnorm, dense 20 relu' \
        train.optimizer=adam train.lr=0.002 train.batch=64 train.epochs=4 train.decay_steps=32 \
        eval.steps=-1 export.latest=no export.best=no train.groups=2 "$@" 2>"$tmp/err"
}
good() { run "$@" || fail_with "$tmp/err" "$*"; }
same() { check_eq "params_crc32c of $1" "$(crc "$tmp/$1")" "$(crc "$tmp/$2")"; }
other() { [ "$(crc "$tmp/$1")" != "$(crc "$tmp/$2")" ] || fail "$1 has the bits of $2"; }

# ---- any number of ranks, a stop half-way and a resume with others -------------------------------
good 1 f32
# several RANKS NAME KEYS
several() {
    ranks=$1 name=$2
    shift 2
    good 1 "$name" "$@"
    other "$name" f32
    good "$ranks" "$name-$ranks" "$@"
    same "$name-$ranks" "$name"
    # local_after has each group take a copy of the state here.
    good 2 "$name-half" "$@" train.max_steps=8
    good 3 "$name-half" "$@" train.max_steps=12
    good 1 "$name-half" "$@"
    same "$name-half" "$name"
}
several 3 bf16 train.wire=bf16
several 5 q8 train.wire=q8 train.clip_norm=0.5
several 5 bf16-local train.wire=bf16 train.local_steps=4
several 3 q8-local train.wire=q8 train.local_steps=4 train.local_after=8
expect_line "$tmp/err" 'wire: the sums of 2 groups, and each update, are rounded to q8' \
    'the start does not say it'
check_eq 'the start record' "$(record "$tmp/q8" start wire)" q8
echo "$(record "$tmp/bf16" eval loss) $(record "$tmp/f32" eval loss)" |
    awk '{d = $1 / $2 - 1; print "loss:", $1, $2; exit !(d < 0.02 && d > -0.02)}' ||
    fail 'bf16 is far from f32'

# ---- killed --------------------------------------------------------------------------------------
run 3 killed train.wire=q8 train.clip_norm=0.5 run.checkpoint_steps=4 test.slow_rank=1 \
    test.slow_secs=0.2 &
wait_until grep -q '"kind":"checkpoint","step":[1-9][0-9],' "$tmp/killed/metrics.jsonl" ||
    fail_with "$tmp/err" 'no checkpoint'
kill -9 "$(pid "$tmp/killed" dtrain 2)"
wait $! && fail 'a killed rank is no failure'
wait_until gone || fail 'a process is left'
good 2 killed train.wire=q8 train.clip_norm=0.5
same killed q8
"$dtrain" inspect "$tmp/killed" | grep -q '^groups  *2, each with gradient_error' ||
    fail 'inspect knows no error'

# More groups than workers, and no word of replicas: as many replicas as groups.
job 3 "$tmp/curve.ini" run.dir="$tmp/groups" data.train="$tmp/data/train.csv" data.eval= \
    model.hidden=4 train.wire=q8 train.groups=4 train.max_steps=2 2>"$tmp/err" ||
    fail_with "$tmp/err" 'more groups than workers'
check_eq 'replicas of four groups' "$(record "$tmp/groups" start replicas)" 4

# ---- a resume that changes the wire; the errors of the same groups go on -------------------------
for step in 12 20; do
    good 2 "changed-$step" train.wire=bf16 train.max_steps=12
    [ $step = 12 ] || good 1 "changed-$step" train.wire=q8 train.max_steps=$step
    good 3 "changed-$step" train.wire=q8
done
expect_line "$tmp/changed-12/metrics.jsonl" '"train.wire":"bf16 -> q8"' \
    'the change is not in the records'
same changed-12 changed-20
good 2 changed-12 train.wire=f32 train.epochs=5
good 2 changed-20 train.wire=f32 train.epochs=5 train.groups=0
same changed-12 changed-20

# ---- what does not go ----------------------------------------------------------------------------
# refused TEXT OPTION...
refused() {
    text=$1
    shift
    expect_error 2 "$text" 1 "$recipes/exp-curve.ini" run.dir="$tmp/refused" \
        data.train="$tmp/data/train.csv" data.eval="$tmp/data/test.csv" train.wire=q8 "$@"
}
refused 'train.wire: train.mode=async sends f32' train.mode=async
refused 'train.wire: with train.exchange=reduce' train.exchange=reduce
refused 'train.wire: train.optimizer=ftrl computes weights' train.optimizer=ftrl \
    train.schedule=constant
refused 'train.groups: expected at most run.replicas' run.replicas=2 train.groups=3
