#!/bin/sh
# Fails if a resume refuses, forgets or does not record a change of the rate and its like, or a
# second resume undoes it. The resume prints what changes, records it in metrics.jsonl and in the
# checkpoint, and the bits are a function of that history: the same when killed and resumed.
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/corners.sh"
make_csv "$tmp/data.csv"
ranks=3
run() {
    dir=$1
    shift
    job $ranks run.dir="$tmp/$dir" data.train="$tmp/data.csv" model.hidden=12 train.batch=100 \
        train.lr=0.1 train.momentum=0 run.keep=0 eval.steps=-1 run.replicas=2 "$@" 2>"$tmp/err"
}
good() { run "$@" || fail_with "$tmp/err" "exit $?: $*"; }

good plain train.max_steps=60
good plain train.max_steps=120
good first train.max_steps=60
cp -r "$tmp/first" "$tmp/second"
slower='train.lr=0.01 train.momentum=0.9 train.clip_norm=2 train.weight_decay=0.001'
good first train.max_steps=120 $slower
expect_line "$tmp/err" 'the resume changes train.lr: 0.1 -> 0.01' 'it does not say so'
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
check_eq 'changes in the checkpoint' "$(
    grep -ao '"kind":"change","step":[0-9]*' "$tmp/second/ckpt/latest.h5" |
        cut -d: -f3 | tr '\n' ' ')" '60 120 '

# The rate in a record is that of the step before it.
good warm train.max_steps=5 train.warmup_steps=4 run.log_steps=1
check_eq 'rates of a warm-up' "$(records "$tmp/warm" train lr | tr '\n' ' ')" \
    '0.025 0.05 0.07500000000000001 0.1 0.1 '

# A schedule that ends with the run: more epochs change the rate, and the start says so.
good ends train.max_steps=60 train.schedule=linear
good ends train.max_steps=120 train.schedule=linear
expect_line "$tmp/err" 'the resume changes the rate of the next step: 0 -> 0.05' \
    'the rate is not told'

# What defines the run stays.
expect_error 1 train.batch=50 3 run.dir="$tmp/first" data.train="$tmp/data.csv" model.hidden=12 \
    train.batch=50 train.max_steps=140 run.replicas=2

# ---- the plateau: at such a rate no evaluation is better than the first --------------------------
rate=9.5367431640625e-07 # halves of it are exact
plateau="train.schedule=plateau train.plateau_evals=2 train.lr=$rate train.decay_rate=0.5 \
data.eval_fraction=0.1 eval.steps=10 run.log_steps=10"
good plateau $plateau train.max_steps=80
half=4.76837158203125e-07 quarter=2.384185791015625e-07
check_eq 'rates on the plateau' "$(records "$tmp/plateau" train lr | xargs)" \
    "$rate $rate $rate $half $half $quarter $quarter 1.1920928955078125e-07"
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

# ---- run.init: weights to start from, layer by layer ---------------------------------------------
good same run.init="$tmp/first" train.max_steps=0
check_eq 'weights of the run that it starts from' "$(crc "$tmp/same")" "$(crc "$tmp/first")"
check_eq 'its step' "$(record "$tmp/same" final step)" 0
expect_no_line "$tmp/err" 'warning: run.init' 'a warning of the same classes'
sed 's/east$/south/' "$tmp/data.csv" >"$tmp/classes.csv" # which is not the first of the three
good classes run.init="$tmp/first" data.train="$tmp/classes.csv" train.max_steps=0
expect_line "$tmp/err" 'warning: run.init: .* other classes' 'other classes in silence'
# Inputs in other units: a dense layer is converted, so that the model predicts what it did before;
# other layers are taken as they are.
said() {
    "$dtrain" -q predict "$tmp/$1" data.eval="$tmp/data.csv" |
        sed 's/.*"probabilities":\[//; s/\].*//'
}
good scaled run.init="$tmp/first" data.normalize=standard data.scale=3 train.max_steps=0
expect_line "$tmp/err" 'run.init: .* 4 of 4 inputs are in other units: the first layer is converted'
said first >"$tmp/a"
said scaled | paste -d, "$tmp/a" - | awk -F, '
    {
        n = NF / 2
        for (i = 1; i <= n; i++) if (($i - $(i + n)) ^ 2 > 1e-10) exit 1
    }
    END { exit NR < 9 }' || fail 'what a converted layer says'
# layernorm OPTION...: a model whose first layer is not dense.
layernorm() {
    job 1 data.train="$tmp/data.csv" model.layers='layernorm, dense 5' train.lr=0.1 \
        train.max_steps=1 "$@" 2>"$tmp/err" || fail_with "$tmp/err" layernorm
}
layernorm run.dir="$tmp/unshifted"
layernorm run.dir="$tmp/otherwise" data.normalize=standard run.init="$tmp/unshifted"
expect_line "$tmp/err" 'warning: run.init: .* scaled or normalised its inputs differently' \
    'other inputs in silence'
{
    cat "$tmp/data.csv"
    for i in 1 2 3 4 5 6 7 8 9; do echo "0.$i,0.2,0.3,0.$i,south"; done
} >"$tmp/more.csv"
good more run.init="$tmp/first" data.train="$tmp/more.csv" train.max_steps=20
expect_line "$tmp/err" 'run.init: layers/1/weight starts fresh' 'it does not say what is new'
expect_line "$tmp/err" 'run.init: 2 of 4 tensors' 'it does not say what it takes'
expect_line "$tmp/more/metrics.jsonl" \
    "2 tensors of $tmp/first/.*, params_crc32c $(crc "$tmp/first")" 'it is not recorded'
"$dtrain" inspect "$tmp/more" >"$tmp/out" || fail inspect
expect_line "$tmp/out" "^changed  *at step 0, run.init 2 tensors of $tmp/first/" \
    'inspect knows no history'
expect_line "$tmp/out" '^optimizer  *sgd$' 'inspect knows no optimizer'
# A run that has a checkpoint goes on from it, and says that it does.
good more run.init="$tmp/first" data.train="$tmp/more.csv" train.max_steps=25
expect_no_line "$tmp/err" 'warning: run.init' 'a warning at the same start'
good more run.init="$tmp/second" data.train="$tmp/more.csv" train.max_steps=30
expect_line "$tmp/err" 'warning: run.init=.*/second: not used' 'run.init is ignored'
# A run of another width: nothing fits.
expect_error 1 'no tensor has the name' 2 run.dir="$tmp/none" data.train="$tmp/more.csv" \
    model.hidden=5 run.init="$tmp/first"
