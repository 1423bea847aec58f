#!/bin/sh
# A resume may change the rate and its like: it says what changes, records it in metrics.jsonl and in the
# checkpoint, and the bits are a function of that history: killed and resumed in between, the same.
# Would catch: a change that is refused, forgotten or not recorded, one that a second resume undoes.
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/corners.sh"
make_csv "$tmp/data.csv"
ranks=3
run() {
    dir=$1
    shift
    job $ranks run.dir="$tmp/$dir" data.train="$tmp/data.csv" model.hidden=12 train.batch=100 train.lr=0.1 \
        train.momentum=0 run.keep=0 eval.steps=-1 run.replicas=2 "$@" 2>"$tmp/err"
}
good() { run "$@" || { cat "$tmp/err"; fail "exit $?: $*"; }; }

good plain train.max_steps=60
good plain train.max_steps=120
good first train.max_steps=60
cp -r "$tmp/first" "$tmp/second"
slower='train.lr=0.01 train.momentum=0.9 train.clip_norm=2 train.weight_decay=0.001'
good first train.max_steps=120 $slower
grep -q 'the resume changes train.lr: 0.1 -> 0.01' "$tmp/err" || { cat "$tmp/err"; fail 'it does not say so'; }
check_eq 'the record of it' "$(record "$tmp/first" change train.lr)" '0.1 -> 0.01'
check_eq 'the momentum' "$(record "$tmp/first" change train.momentum)" '0 -> 0.9'
check_eq 'at step' "$(record "$tmp/first" change step)" 60
[ "$(crc "$tmp/first")" != "$(crc "$tmp/plain")" ] || fail 'the change changes nothing'

# In between, a stop.
good second train.max_steps=90 $slower
good second train.max_steps=120 $slower
check_eq 'changes recorded' "$(records "$tmp/second" change step | tr '\n' ' ')" '60 '
check_eq 'bits over another resume' "$(crc "$tmp/second")" "$(crc "$tmp/first")"

# Every change stays in the history.
good second train.max_steps=130 $slower train.lr=0.001
check_eq 'changes in the checkpoint' "$(grep -ao '"kind":"change","step":[0-9]*' "$tmp/second/ckpt/latest.h5" |
    cut -d: -f3 | tr '\n' ' ')" '60 120 '

# The rate that a record tells is that of the step before it.
good warm train.max_steps=5 train.warmup_steps=4 run.log_steps=1
check_eq 'rates of a warm-up' "$(records "$tmp/warm" train lr | tr '\n' ' ')" \
    '0.025 0.05 0.07500000000000001 0.1 0.1 '

# A schedule that ends with the run: more epochs change the rate, which is told.
good ends train.max_steps=60 train.schedule=linear
good ends train.max_steps=120 train.schedule=linear
grep -q 'the resume changes the rate of the next step: 0 -> 0.05' "$tmp/err" || { cat "$tmp/err"; fail 'the rate is not told'; }

# What defines the run stays.
expect_error 1 train.batch=50 3 run.dir="$tmp/first" data.train="$tmp/data.csv" model.hidden=12 \
    train.batch=50 train.max_steps=140 run.replicas=2

# ---- the plateau: at such a rate no evaluation is better than the first -----------------------------
plateau='train.schedule=plateau train.plateau_evals=2 train.lr=9.5367431640625e-07 train.decay_rate=0.5 data.eval_fraction=0.1 eval.steps=10
    run.log_steps=10'
good plateau $plateau train.max_steps=80
check_eq 'rates on the plateau' "$(records "$tmp/plateau" train lr | tr '\n' ' ')" \
    '9.5367431640625e-07 9.5367431640625e-07 9.5367431640625e-07 4.76837158203125e-07 4.76837158203125e-07 2.384185791015625e-07 2.384185791015625e-07 1.1920928955078125e-07 '
good floor $plateau train.min_lr=6e-07 train.max_steps=80
check_eq 'falls to the floor' "$(grep -c 'the rate falls' "$tmp/err")" 1
good half $plateau train.max_steps=45
good half $plateau train.max_steps=80
check_eq 'rates over a resume' "$(record "$tmp/half" train lr)" "$(record "$tmp/plateau" train lr)"
check_eq 'bits over a resume' "$(crc "$tmp/half")" "$(crc "$tmp/plateau")"
ranks=1
good alone $plateau train.max_steps=80
check_eq 'bits of one process' "$(crc "$tmp/alone")" "$(crc "$tmp/plateau")"
ranks=3
expect_error 2 train.schedule=plateau 3 run.dir="$tmp/none" data.train="$tmp/data.csv" \
    data.eval_fraction=0.1 train.schedule=plateau eval.dedicated=yes

# ---- run.init: weights to start from, layer by layer -------------------------------------------------
good same run.init="$tmp/first" train.max_steps=0
check_eq 'weights of the run that it starts from' "$(crc "$tmp/same")" "$(crc "$tmp/first")"
check_eq 'its step' "$(record "$tmp/same" final step)" 0
! grep -q 'warning: run.init' "$tmp/err" || { cat "$tmp/err"; fail 'a warning of the same classes'; }
sed 's/east$/south/' "$tmp/data.csv" >"$tmp/classes.csv" # which is not the first of the three
good classes run.init="$tmp/first" data.train="$tmp/classes.csv" train.max_steps=0
grep -q 'warning: run.init: .* other classes' "$tmp/err" || { cat "$tmp/err"; fail 'other classes in silence'; }
# Inputs in other units: a dense layer is converted, so that the model says what it did; others are taken as they are.
said() { "$dtrain" -q predict "$tmp/$1" data.eval="$tmp/data.csv" | sed 's/.*"probabilities":\[//; s/\].*//'; }
good scaled run.init="$tmp/first" data.normalize=standard data.scale=3 train.max_steps=0
grep -q 'run.init: .* 4 of 4 inputs are in other units: the first layer is converted' "$tmp/err" ||
    { cat "$tmp/err"; fail 'other units are not said'; }
said first >"$tmp/a"
said scaled | paste -d, "$tmp/a" - | awk -F, '{ n = NF / 2
    for (i = 1; i <= n; i++) if (($i - $(i + n)) ^ 2 > 1e-10) exit 1 } END { exit NR < 9 }' || fail 'what a converted layer says'
for with in "run.dir=$tmp/unshifted" "run.dir=$tmp/otherwise data.normalize=standard run.init=$tmp/unshifted"; do
    # shellcheck disable=SC2086 # words
    job 1 data.train="$tmp/data.csv" model.layers='layernorm, dense 5' train.lr=0.1 train.max_steps=1 $with 2>"$tmp/err" ||
        { cat "$tmp/err"; fail 'a model whose first layer is not dense'; }
done
grep -q 'warning: run.init: .* scaled or normalised its inputs differently' "$tmp/err" || { cat "$tmp/err"; fail 'other inputs in silence'; }
{ cat "$tmp/data.csv"; for i in 1 2 3 4 5 6 7 8 9; do echo "0.$i,0.2,0.3,0.$i,south"; done; } >"$tmp/more.csv"
good more run.init="$tmp/first" data.train="$tmp/more.csv" train.max_steps=20
grep -q 'run.init: layers/1/weight starts fresh' "$tmp/err" || { cat "$tmp/err"; fail 'it does not say what is new'; }
grep -q 'run.init: 2 of 4 tensors' "$tmp/err" || { cat "$tmp/err"; fail 'it does not say what it takes'; }
grep -q "2 tensors of $tmp/first/.*, params_crc32c $(crc "$tmp/first")" "$tmp/more/metrics.jsonl" || fail 'it is not recorded'
"$dtrain" inspect "$tmp/more" >"$tmp/out" || fail inspect
grep -q "^changed  *at step 0, run.init 2 tensors of $tmp/first/" "$tmp/out" || { cat "$tmp/out"; fail 'inspect knows no history'; }
grep -q '^optimizer  *sgd$' "$tmp/out" || { cat "$tmp/out"; fail 'inspect knows no optimizer'; }
# A run that has a checkpoint goes on from it, and says that it does.
good more run.init="$tmp/first" data.train="$tmp/more.csv" train.max_steps=25
! grep -q 'warning: run.init' "$tmp/err" || { cat "$tmp/err"; fail 'a warning at the same start'; }
good more run.init="$tmp/second" data.train="$tmp/more.csv" train.max_steps=30
grep -q 'warning: run.init=.*/second: not used' "$tmp/err" || { cat "$tmp/err"; fail 'run.init is ignored'; }
# run of another width: nothing fits.
expect_error 1 'no tensor has the name' 2 run.dir="$tmp/none" data.train="$tmp/more.csv" model.hidden=5 \
    run.init="$tmp/first"
