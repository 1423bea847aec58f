#!/bin/sh
# Local steps: the same bits at any number of ranks, also behind a kill and a resume with another number;
# sync's own bits with rounds of one step; one group of plain averaging goes where sync goes; sync until
# train.local_after; what a resume changes is told; a stop waits for the round's end, or gives the round up.
# Would catch a group whose bits depend on who computes it, optimizer state that a checkpoint forgets or
# gives to another group, a round that ends where an evaluation or a record is due, an outer momentum that
# starts anew, a stop that saves half a round.
# seconds: 180
# waits
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/local.sh"
local='train.local_steps=8 train.groups=2'

# ---- any number of ranks, a layer with a state, clipping --------------------------------------------
good 1 np1 $local
good 7 np7 $local
same np7 np1
grep -q 'all groups are on this host' "$tmp/err" || fail 'the start does not say what it gains'
check_eq 'size, replicas, groups, local steps, overlap' "$(for key in size replicas groups local_steps overlap; do record "$tmp/np7" start $key; done | xargs)" '7 5 2 8 no'
grep -q 'local steps: 2 groups exchange every 8 steps' "$tmp/err" || fail 'the start does not say it'
net='dense 60 relu, batchnorm, dense 30 relu'
more='train.clip_norm=0.5 train.groups=3 train.local_steps=5'
good 1 clip1 $more
good 5 clip5 $more
same clip5 clip1
net='dense 60 relu, dropout 0.1, dense 30 relu, dropout 0.1'

# ---- rounds of one step are sync; so is one group, nearly -------------------------------------------
good 1 sync
good 3 one train.local_steps=1 train.groups=3
same one sync
# near A B: the loss at the end, to six digits.
near() { echo "$(record "$tmp/$1" train loss) $(record "$tmp/$2" train loss)" |
    awk '{d = $1 / $2 - 1; print "loss:", $1, $2; exit !(d < 1e-6 && d > -1e-6)}'; }
sgd='train.optimizer=sgd train.lr=0.05 train.max_steps=56 run.log_steps=8 train.outer_lr=1 train.outer_momentum=0'
good 1 sgd $sgd
for key in outer_lr outer_momentum; do
    grep -q "train.$key has no effect with train.local_steps=1" "$tmp/err" || fail "$key: unused in silence"
done
good 1 plain $sgd train.local_steps=8 train.groups=1
grep -q 'train.local_steps saves nothing' "$tmp/err" || fail 'one group: the start does not say it'
good 1 two $sgd $local
near plain sgd || fail 'one group with plain averaging does not go where sync goes'
near two sgd && fail 'two groups go where sync goes'

# ---- spans and rounds: records, evaluations and saves at round ends change no bit --------------------
good 2 often $local run.log_steps=3 eval.steps=7 run.checkpoint_steps=5
same often np1
records "$tmp/often" train step | awk '$1 % 8 {exit 1}' || fail 'a record within a round'
check_eq 'evaluations' "$(records "$tmp/often" eval step | sort -n -u | wc -l)" 14

# ---- kill, and resume with other ranks ----------------------------------------------------------------
run 3 killed $local run.checkpoint_steps=8 test.slow_rank=1 test.slow_secs=0.2 &
settle grep -q '"kind":"checkpoint","step":[2-9][0-9],' "$tmp/killed/metrics.jsonl" || fail 'no checkpoint'
kill -9 "$(pid "$tmp/killed" dtrain 2)"
wait $! && fail 'a killed rank is no failure'
settle gone || fail 'a process is left'
good 1 killed $local
same killed np1
# half NP THEN: stopped at 56, of which groups and outer momentum are in the checkpoint.
half() {
    good "$1" "half-$1-$2" $local train.max_steps=56
    good "$2" "half-$1-$2" $local
    ! grep -q 'the last round ended with' "$tmp/err" || fail 'a whole round is told'
    same "half-$1-$2" np1
}
half 4 2
"$dtrain" inspect "$tmp/half-4-2" | grep -q '^groups  *2, each with mean square' || fail 'inspect knows no groups'

# ---- sync until a step, and what a resume changes ----------------------------------------------------
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
grep -q '"kind":"change","step":30,.*"train.local_steps":"1 -> 8"' "$tmp/changed/metrics.jsonl" || fail 'the change is not recorded'
good 1 regrouped train.max_steps=56 $local
good 2 regrouped train.local_steps=4 train.groups=4
good 1 regrouped train.local_steps=1 train.groups=4 train.epochs=9
# What four groups begin with, which the run saves first, is the mean of what two had.
alone() { job 1 "$recipes/penguins.ini" run.replicas=5 train.local_steps=8 "$@" 2>"$tmp/err" || fail "$(cat "$tmp/err")"; }
alone run.dir="$tmp/two-groups" train.groups=2 train.max_steps=16
alone run.dir="$tmp/four-groups" train.groups=4 train.max_steps=24 run.resume="$tmp/two-groups/ckpt/step-000000016.h5"
! /usr/bin/python3 -c 'import h5py' 2>/dev/null || /usr/bin/python3 -c "
import h5py, numpy
two, four = (h5py.File(f'$tmp/{name}-groups/ckpt/step-000000016.h5')['groups'] for name in ('two', 'four'))
arrays = []
two['0'].visititems(lambda name, item: arrays.append(name) if isinstance(item, h5py.Dataset) else None)
assert len(arrays) == 8 and len(four) == 4, (arrays, list(four))
for name in arrays:
    one, other = two['0'][name][()], two['1'][name][()]
    assert (one != other).any(), name
    for group in four.values():
        assert numpy.allclose(group[name][()], (one + other) / 2, 1e-6, 1e-9), name
" || fail 'four groups do not begin with the mean of two'

# ---- a stop ------------------------------------------------------------------------------------------
stop stopped run.checkpoint_steps=8
check_eq 'stopped behind a whole round' "$(($(records "$tmp/stopped" final step | head -n 1) % 8))" 0
# Given up: a round of 8 s, longer than the patience; each is saved, so that one alone is done again.
stop given-up test.round_secs=0.5 test.slow_secs=1 run.log_steps=1
grep -q 'stopped in a round of local steps' "$tmp/stop" || { cat "$tmp/stop"; fail 'the round was not given up'; }
[ -z "$(records "$tmp/given-up" final step | sed '$d')" ] || fail 'a final record of half a round'

# ---- what does not go --------------------------------------------------------------------------------
# refused TEXT OPTION...
refused() {
    text=$1
    shift
    expect_error 2 "$text" 1 "$recipes/exp-curve.ini" run.dir="$tmp/refused" data.train="$tmp/data/train.csv" \
        data.eval="$tmp/data/test.csv" train.local_steps=8 "$@"
}
refused 'train.local_steps: train.mode=async' train.mode=async
refused 'train.local_steps: train.optimizer=ftrl computes weights' train.optimizer=ftrl train.schedule=constant
refused 'train.lazy=yes: gradients are whole with train.local_steps' train.lazy=yes
refused 'train.groups: expected at most run.replicas' run.replicas=2 train.groups=3
