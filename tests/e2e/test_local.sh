#!/bin/sh
# Fails if the bits of a group depend on the rank that computes it, a checkpoint forgets optimizer
# state or gives it to another group, a round ends where an evaluation or a record is due, the outer
# momentum starts again, or a stop saves half a round.
# Local steps have the same bits at any number of ranks, also after a kill and a resume with another
# number, and sync's own bits with rounds of one step. One group of plain averaging goes where sync
# goes; steps are in sync until train.local_after. A resume reports what it changes. A stop waits
# for the round's end, or gives the round up.
# seconds: 180
# waits
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/local.sh"
local='train.local_steps=8 train.groups=2'

# ---- any number of ranks, a layer with a state, clipping -----------------------------------------
good 1 np1 $local
good 7 np7 $local
same np7 np1
expect_line "$tmp/err" 'all groups are on this host' 'the start does not say what it gains'
check_eq 'size, replicas, groups, local steps, overlap' "$(
    for key in size replicas groups local_steps overlap; do
        record "$tmp/np7" start $key
    done | xargs)" '7 5 2 8 no'
expect_line "$tmp/err" 'local steps: 2 groups exchange every 8 steps'
net='dense 60 relu, batchnorm, dense 30 relu'
more='train.clip_norm=0.5 train.groups=3 train.local_steps=5'
good 1 clip1 $more
good 5 clip5 $more
same clip5 clip1
net='dense 60 relu, dropout 0.1, dense 30 relu, dropout 0.1'

# ---- rounds of one step are sync; so is one group, nearly ----------------------------------------
good 1 sync
good 3 one train.local_steps=1 train.groups=3
same one sync
# near A B: the loss at the end, to six digits.
near() {
    echo "$(record "$tmp/$1" train loss) $(record "$tmp/$2" train loss)" |
        awk '{d = $1 / $2 - 1; print "loss:", $1, $2; exit !(d < 1e-6 && d > -1e-6)}'
}
sgd='train.optimizer=sgd train.lr=0.05 train.max_steps=56 run.log_steps=8 train.outer_lr=1
    train.outer_momentum=0'
good 1 sgd $sgd
for key in outer_lr outer_momentum; do
    expect_line "$tmp/err" "train.$key has no effect with train.local_steps=1" \
        "$key: unused in silence"
done
good 1 plain $sgd train.local_steps=8 train.groups=1
expect_line "$tmp/err" 'train.local_steps saves nothing' 'one group: the start does not say it'
good 1 two $sgd $local
near plain sgd || fail 'one group with plain averaging does not go where sync goes'
near two sgd && fail 'two groups go where sync goes'

# ---- spans and rounds: records, evaluations and saves at round ends change no bit ----------------
good 2 often $local run.log_steps=3 eval.steps=7 run.checkpoint_steps=5
same often np1
records "$tmp/often" train step | awk '$1 % 8 {exit 1}' || fail 'a record within a round'
check_eq 'evaluations' "$(records "$tmp/often" eval step | sort -n -u | wc -l)" 14

# ---- kill, and resume with other ranks -----------------------------------------------------------
run 3 killed $local run.checkpoint_steps=8 test.slow_rank=1 test.slow_secs=0.2 &
await_checkpoint "$tmp/killed" '[2-9][0-9],' || fail 'no checkpoint'
kill -9 "$(pid "$tmp/killed" dtrain 2)"
wait $! && fail 'a killed rank is no failure'
wait_until gone || fail 'a process is left'
good 1 killed $local
same killed np1
# half NP THEN: stopped at 56; groups and outer momentum are in the checkpoint.
half() {
    good "$1" "half-$1-$2" $local train.max_steps=56
    good "$2" "half-$1-$2" $local
    expect_no_line "$tmp/err" 'the last round ended with' 'a whole round is reported'
    same "half-$1-$2" np1
}
half 4 2
into "$tmp/out" "$dtrain" inspect "$tmp/half-4-2"
expect_line "$tmp/out" '^groups  *2, each with mean square' 'inspect knows no groups'

# ---- sync until a step, and what a resume changes ------------------------------------------------
after="train.local_after=30 train.local_steps=8"
good 1 after1 $after train.groups=2
good 4 after4 $after train.groups=2
same after4 after1
good 2 after2 train.max_steps=30 $after train.groups=2
good 3 after2 $after
same after2 after1
good 1 changed train.max_steps=30
good 3 changed $after train.groups=2 # from sync: each group starts with a copy of the state
same changed after1
expect_line "$tmp/changed/metrics.jsonl" \
    '"kind":"change","step":30,.*"train.local_steps":"1 -> 8"' 'the change is not recorded'
good 1 regrouped train.max_steps=56 $local
good 2 regrouped train.local_steps=4 train.groups=4
good 1 regrouped train.local_steps=1 train.groups=4 train.epochs=9
# Four groups start with the mean of what two had, which the run saves first.
averaged() {
    name=$1
    shift
    job 1 "$recipes/penguins.ini" run.dir="$tmp/$name" run.replicas=5 train.local_steps=8 "$@" \
        2>"$tmp/err" || fail_with "$tmp/err" "$name"
}
saved=ckpt/step-000000016.h5
averaged two-groups train.groups=2 train.max_steps=16
averaged four-groups train.groups=4 train.max_steps=24 run.resume="$tmp/two-groups/$saved"
! has_python h5py ||
    /usr/bin/python3 tests/e2e/group_means.py "$tmp/two-groups/$saved" "$tmp/four-groups/$saved" ||
    fail 'four groups do not start with the mean of two'

# ---- a stop --------------------------------------------------------------------------------------
stop stopped run.checkpoint_steps=8
check_eq 'stopped after a whole round' \
    "$(($(records "$tmp/stopped" final step | head -n 1) % 8))" 0
# Given up: a round of 8 s, longer than the patience. Each is saved, so only that one is done again.
stop given-up test.round_secs=0.5 test.slow_secs=1 run.log_steps=1
expect_line "$tmp/stop" 'stopped in a round of local steps' 'the round was not given up'
[ -z "$(records "$tmp/given-up" final step | sed '$d')" ] || fail 'a final record of half a round'

# ---- what does not go ----------------------------------------------------------------------------
# refused TEXT OPTION...
refused() {
    text=$1
    shift
    expect_error 2 "$text" 1 "$recipes/exp-curve.ini" run.dir="$tmp/refused" \
        data.train="$tmp/data/train.csv" data.eval="$tmp/data/test.csv" train.local_steps=8 "$@"
}
refused 'train.local_steps: train.mode=async' train.mode=async
refused 'train.local_steps: train.optimizer=ftrl computes weights' train.optimizer=ftrl \
    train.schedule=constant
refused 'train.lazy=yes: gradients are whole with train.local_steps' train.lazy=yes
refused 'train.groups: expected at most run.replicas' run.replicas=2 train.groups=3
