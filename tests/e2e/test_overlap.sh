#!/bin/sh
# Fails if a group takes part in a round before all groups have its result, a checkpoint forgets a
# pending difference, a resume applies it twice, or the end omits the last round. With train.overlap
# the exchange of a round goes on during the next one: the same bits at any number of ranks, with
# records, saves and evaluations between, after a kill, a stop and a resume with another number of
# ranks. One group alone has the weights that it has without overlap; with plain averaging two
# rounds are one of twice the length, for then groups first meet at the end.
# seconds: 150
# waits
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/local.sh"
local='train.local_steps=8 train.groups=2 train.overlap=yes train.outer_lr=0.5'

# ---- any number of ranks, spans that end anywhere; a layer with a state, a rounded wire ----------
good 1 np1 $local
expect_line "$tmp/err" 'overlap: groups exchange while the next round computes' \
    'the start does not say it'
good 5 np5 $local run.log_steps=3 eval.steps=7 run.checkpoint_steps=5
same np5 np1
good 1 late $local train.overlap=no
[ "$(crc "$tmp/late")" != "$(crc "$tmp/np1")" ] || fail 'overlap changes nothing'
net='dense 60 relu, batchnorm, dense 30 relu'
more='train.clip_norm=0.5 train.groups=3 train.local_steps=5 train.overlap=yes train.wire=q8'
good 1 wire1 $more
good 3 wire3 $more
same wire3 wire1
net='dense 60 relu, dropout 0.1, dense 30 relu, dropout 0.1'

# ---- what it comes to ----------------------------------------------------------------------------
# near A B: the loss on held-out data at the end, to five digits.
near() { echo "$(record "$tmp/$1" eval loss) $(record "$tmp/$2" eval loss)" |
    awk '{d = $1 / $2 - 1; print "loss:", $1, $2; exit !(d < 1e-5 && d > -1e-5)}'; }
sgd='train.optimizer=sgd train.lr=0.05 run.log_steps=8 train.max_steps=72'
meet="$sgd train.local_steps=8 train.groups=1 train.outer_lr=0.3"
good 1 alone $meet
# 0.3 (1 + 0.9) of its own difference are foreseen, as is the momentum.
good 1 alone-late $meet train.overlap=yes
near alone alone-late || fail 'one group alone goes elsewhere with overlap'
# Groups have as many samples in each round.
plain="$sgd run.replicas=4 train.batch=32 train.groups=2 train.outer_lr=1 train.outer_momentum=0"
good 1 long $plain train.max_steps=32 train.local_steps=16
good 1 twice $plain train.max_steps=16 train.local_steps=8 train.overlap=yes
good 1 once $plain train.max_steps=16 train.local_steps=16
# Groups of one and of two replicas: what the first round has pending counts as the exchange would
# count it.
uneven="$sgd run.replicas=3 train.batch=33 train.groups=2 train.outer_lr=1 train.outer_momentum=0
    train.local_steps=8"
good 1 uneven $uneven train.max_steps=8
good 1 pending $uneven train.max_steps=12 train.overlap=yes run.checkpoint_steps=8
good 1 taken $uneven train.max_steps=8 run.resume="$tmp/pending/ckpt/step-000000008.h5"
near taken uneven || fail 'a pending round counts its groups otherwise'
near twice once || fail 'two overlapping rounds are not one of twice the length'
good 1 four $plain train.max_steps=32 train.local_steps=8 train.overlap=yes
near four long && fail 'four overlapping rounds are two of twice the length: groups do not meet'

# ---- a round that began off the grid; weights that are no numbers any more -----------------------
off='train.local_steps=4 train.groups=2 train.overlap=yes'
good 1 grid $off train.max_steps=11
good 2 grid $off train.max_steps=40 run.checkpoint_steps=4 run.keep=0 export.latest=no \
    export.best=no test.slow_rank=1 test.slow_secs=0.1
told='the last round ended with the run at step'
expect_line "$tmp/err" "$told 11:" 'it is not told that a round was cut short'
check_eq 'the record of it' "$(record "$tmp/grid" change round)" 'ended with the run'
good 3 again $off train.max_steps=40 run.resume="$tmp/grid/ckpt/step-000000012.h5"
same again grid
net='dense 8 tanh'
run 2 wild $off train.local_steps=3 train.optimizer=sgd train.lr=1e9 train.schedule=constant \
    run.checkpoint_steps=1 && fail 'a rate of 1e9 trains'
check_eq 'checkpoints of a run that is not finite' "$(ls "$tmp/wild/ckpt" | paste -sd ' ')" \
    'latest.h5 step-000000000.h5'
net='dense 60 relu, dropout 0.1, dense 30 relu, dropout 0.1'

# ---- kill, and resume with other ranks -----------------------------------------------------------
run 3 killed $local run.checkpoint_steps=8 test.slow_rank=1 test.slow_secs=0.2 run.keep=0 &
wait_until grep -q '"kind":"checkpoint","step":[2-9][0-9],' "$tmp/killed/metrics.jsonl" ||
    fail 'no checkpoint'
kill -9 "$(pid "$tmp/killed" dtrain 2)"
wait $! && fail 'a killed rank is no failure'
wait_until gone || fail 'a process is left'
"$dtrain" inspect "$tmp/killed" | grep -q 'the weights do not know of their last round yet' ||
    fail 'inspect tells nothing'
cp -r "$tmp/killed" "$tmp/elsewhere"
good 1 killed $local
same killed np1
"$dtrain" inspect "$tmp/killed" | grep -q 'last round yet' && fail 'the end leaves a round out'
# Continued in another run directory; without overlap and with it again: the run says so.
at=$(ls "$tmp/elsewhere/ckpt" | sed -n 's/^step-/&/p' | tail -n 1)
good 1 taken $local run.resume="$tmp/elsewhere/ckpt/$at"
same taken np1
good 1 off1 $local train.overlap=no run.resume="$tmp/elsewhere/ckpt/$at"
expect_line "$tmp/err" 'is applied now: train.overlap is off' \
    'it is not told what becomes of the last round'
expect_line "$tmp/off1/metrics.jsonl" '"kind":"change",.*"train.overlap":"yes -> no"' \
    'the change is not recorded'
good 4 off4 $local train.overlap=no run.resume="$tmp/elsewhere/ckpt/$at"
same off4 off1
good 1 regrouped $local train.groups=3 train.local_steps=4 run.resume="$tmp/elsewhere/ckpt/$at"
good 1 much-later $local train.local_after=10000 run.resume="$tmp/elsewhere/ckpt/$at"
expect_line "$tmp/err" 'is applied now: the next step is not a local step' 'overlap is not off'
# The weights are ahead by what the outer update takes from the momentum: at a rate of 0 it takes
# nothing, and they go back.
step=$(echo "$at" | tr -dc '0-9\n' | sed 's/5$//; s/^0*//')
good 1 back $local train.outer_lr=0 train.lr=0 train.max_steps=$((step + 8)) \
    run.resume="$tmp/elsewhere/ckpt/$at"
! /usr/bin/python3 -c 'import h5py' 2>/dev/null ||
    /usr/bin/python3 -c "
import h5py, numpy
ahead, back = (h5py.File(f'$tmp/{name}') for name in ('elsewhere/ckpt/$at', 'back/ckpt/latest.h5'))
for name in ('layers/0/weight', 'layers/1/bias'):
    weights, momentum = (ahead[f'{group}/{name}'][()]
                         for group in ('model', 'optimizer/outer_momentum'))
    assert abs(momentum).max() > 1e-4, momentum
    want = weights + 0.5 * 0.9 ** 2 * momentum
    assert numpy.allclose(back[f'model/{name}'][()], want, 1e-6, 1e-8), name
" || fail 'the weights stay ahead by the rate of before'
# A run that has ended goes on: with its momentum, and nothing pending.
good 2 half $local train.max_steps=56
good 3 half $local
expect_line "$tmp/err" "$told 56:" 'it is not told that an exchange did not wait'
[ "$(crc "$tmp/half")" != "$(crc "$tmp/np1")" ] ||
    fail 'the bits are those of a run that goes through'
good 1 half1 $local train.max_steps=56
good 1 half1 $local
same half half1
good 1 after1 train.local_after=30 $local
good 4 after4 train.local_after=30 $local
same after4 after1
# Ends where the first round would begin.
good 1 before train.local_after=30 $local train.max_steps=30

# ---- a stop --------------------------------------------------------------------------------------
stop stopped run.checkpoint_steps=8
# Given up: a round of 8 s, longer than the patience.
stop given-up test.round_secs=0.5 test.slow_secs=1 run.log_steps=1
expect_line "$tmp/stop" 'stopped in a round of local steps' 'the round was not given up'

# ---- what does not go ----------------------------------------------------------------------------
# refused TEXT OPTION...
refused() {
    text=$1
    shift
    expect_error 2 "$text" 1 "$recipes/exp-curve.ini" run.dir="$tmp/refused" \
        data.train="$tmp/data/train.csv" data.eval="$tmp/data/test.csv" train.overlap=yes "$@"
}
refused 'train.overlap=yes: train.mode=async' train.mode=async
refused 'train.overlap=yes: train.mode=async' train.mode=async train.local_steps=8
refused 'train.overlap=yes: with train.local_steps=1'
