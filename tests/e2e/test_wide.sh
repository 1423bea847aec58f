#!/bin/sh
# Fails if a table's gradient loses a row or sums in another order than a whole one (other bits at
# another number of ranks, over a kill and resume, or with train.exchange=reduce), prediction looks
# a category up at another column's place, or a model does not come back whole from its file.
# Categories through an embedding, and a linear path besides the layers.
. "$(dirname "$0")/lib.sh"
table=$tmp/table.csv
awk 'BEGIN {
    split("red,green,blue", color, ","); split("S,M,L,XL", size, ",")
    print "shop,weight,color,size,price"
    for (srand(4); n++ < 3000;) {
        shop = int(rand() * rand() * 60)
        c = 1 + int(rand() * 3)
        s = 1 + int(rand() * 4)
        w = rand()
        printf "shop %d,%.3f,%s,%s,%.4f\n", shop, w, color[c], size[s], \
            (shop % 7) * 0.3 + w * s + (c == 2) * (s > 2) + 0.1 * rand()
    }
}' >"$table"

# run NP DIR OPTIONS...
run() {
    np=$1 dir=$tmp/$2
    shift 2
    job "$np" run.dir="$dir" data.train="$table" data.label=price data.eval_fraction=0.1 \
        eval.steps=-1 model.task=regress model.hidden=16 model.embedding=4 model.wide=yes \
        data.normalize=standard run.replicas=4 train.batch=60 train.epochs=2 \
        run.checkpoint_steps=30 train.optimizer=adagrad train.lr=0.1 "$@" >"$tmp/out" 2>&1 ||
        fail_with "$tmp/out" "np $np: $*"
}

run 2 whole train.exchange=reduce
for np in 1 3; do
    run $np np-$np
    check_eq "bits at np=$np" "$(crc "$tmp/np-$np")" "$(crc "$tmp/whole")"
done
run 3 hashed data.hash_bits=12 train.clip_norm=0.5
run 1 hashed-1 data.hash_bits=12 train.clip_norm=0.5
check_eq 'bits, hashed' "$(crc "$tmp/hashed")" "$(crc "$tmp/hashed-1")"

# Async with one worker, whose gradients follow each other directly, has the bits of sync with one
# replica. (While a checkpoint waits, so does a gradient, and the next one is of weights without
# it.)
for rule in 'data.hash_bits=12 train.clip_norm=0.5' \
    'train.wide_optimizer=ftrl train.wide_lr=0.3 train.l1=3' \
    'train.optimizer=adam train.lr=0.01 train.wide_optimizer=adagrad train.wide_lr=0.1'; do
    rm -rf "$tmp/alone" "$tmp/alone-async"
    run 2 alone run.replicas=1 train.exchange=reduce $rule
    run 2 alone-async run.replicas=1 train.mode=async run.checkpoint_steps=0 $rule \
        train.max_steps=41
    run 2 alone-async run.replicas=1 train.mode=async run.checkpoint_steps=0 $rule
    ! grep -qE 'sends (the )?whole gradient' "$tmp/out" || fail "$rule: gradients are whole"
    check_eq "bits in async, $rule" "$(crc "$tmp/alone-async")" "$(crc "$tmp/alone")"
done
run 4 async data.hash_bits=12 train.mode=async train.staleness=4
check_eq 'gradients of several workers' "$(record "$tmp/async" final gradients_applied)" \
    "$(record "$tmp/async" final gradients_sent)"
check_le 'rmse in async' "$(record "$tmp/async" eval rmse)" 0.25

# Killed and resumed with another number of ranks.
run 3 half train.max_steps=61
run 2 half
check_eq resumed "$(crc "$tmp/half")" "$(crc "$tmp/whole")"

# The linear path has a rule of its own, whose L1 leaves weights of its own at 0 and no others.
ftrl='train.wide_optimizer=ftrl train.wide_lr=0.3 train.l1=3'
run 2 ftrl-whole $ftrl train.exchange=reduce
for np in 1 3; do
    run $np ftrl-$np $ftrl
    check_eq "bits with ftrl at np=$np" "$(crc "$tmp/ftrl-$np")" "$(crc "$tmp/ftrl-whole")"
done
run 3 adam $ftrl train.optimizer=adam train.lr=0.01
run 1 adam-half $ftrl train.optimizer=adam train.lr=0.01 train.max_steps=61
run 3 adam-half $ftrl train.optimizer=adam train.lr=0.01
check_eq 'adam and ftrl, resumed' "$(crc "$tmp/adam-half")" "$(crc "$tmp/adam")"
"$dtrain" inspect "$tmp/ftrl-3" >"$tmp/inspect" || fail inspect
set -- $(sed -n 's/^parameters *\([0-9]*\), \([0-9]*\) not zero.*/\1 \2/p' "$tmp/inspect")
check_ge 'weights of the linear path that are zero' $(($1 - $2)) 20
check_le 'weights of the linear path that are zero' $(($1 - $2)) \
    "$(sed -n 's/^wide  *[0-9]*  *\([0-9]*\) .*/\1/p' "$tmp/inspect")"

# It has learned what a model without the categories' interaction cannot, and the file has it.
check_le 'rmse' "$(record "$tmp/np-3" eval rmse)" 0.25
"$dtrain" inspect "$tmp/np-3" >"$tmp/inspect" || fail inspect
grep -q '^embedding 4 ' "$tmp/inspect" && grep -q '^wide ' "$tmp/inspect" ||
    fail "inspect: $(cat "$tmp/inspect")"

# Rows of a file, rows by name in another order, and evaluation say the same, of hashed categories
# too.
# Matrix libraries may add up the last rows of a batch in another order: it is the same number of
# rows each time.
head -n 300 "$table" >"$tmp/rows.csv"
awk -F, -v OFS=, '{print $4, $1, $3, $2}' "$tmp/rows.csv" >"$tmp/other.csv"
for model in np-3 hashed; do
    "$dtrain" predict "$tmp/$model" <"$tmp/rows.csv" >"$tmp/one" 2>"$tmp/err" ||
        fail "predict: $(cat "$tmp/err")"
    "$dtrain" predict "$tmp/$model" <"$tmp/other.csv" >"$tmp/two" 2>"$tmp/err" ||
        fail "predict: $(cat "$tmp/err")"
    check_eq "rows, $model" "$(wc -l <"$tmp/one")" 299
    cmp "$tmp/one" "$tmp/two" || fail "$model: columns in another order predict another price"
    "$dtrain" predict "$tmp/$model" data.eval="$tmp/rows.csv" >"$tmp/three" 2>"$tmp/err" ||
        fail "predict: $(cat "$tmp/err")"
    cmp "$tmp/three" "$tmp/one" || fail "$model: rows of a file predict another price"
    check_eq "eval, $model" \
        "$("$dtrain" eval "$tmp/$model" 2>"$tmp/err" | sed 's/.*"rmse":\([0-9.]*\).*/\1/')" \
        "$(record "$tmp/$model" eval rmse)"
done
echo '{"color":"red","size":"M","weight":0.5,"shop":"nowhere"}' |
    "$dtrain" predict "$tmp/np-3" >"$tmp/one" 2>"$tmp/err" || fail "predict: $(cat "$tmp/err")"

# ONNX has dictionaries, and no hash.
"$dtrain" export "$tmp/np-3" "$tmp/model.onnx" >"$tmp/out" 2>&1 || fail "export: $(cat "$tmp/out")"
! "$dtrain" export "$tmp/hashed" "$tmp/hashed.onnx" >"$tmp/out" 2>&1 || fail 'a hash went to ONNX'
grep -q 'hashed categories (data.hash_bits) have no translation' "$tmp/out" ||
    fail "$(cat "$tmp/out")"

sed -n '1,60p' "$table" >"$tmp/few.csv"
job 1 data.train="$tmp/few.csv" run.preset=none model.task=regress data.hash_bits=6 \
    run.dir="$tmp/buckets" train.max_steps=1 2>"$tmp/err" || fail "$(cat "$tmp/err")"
! "$dtrain" export "$tmp/buckets" "$tmp/buckets.onnx" >"$tmp/out" 2>&1 ||
    fail 'a hash without an embedding went to ONNX'

# Another table numbers its categories otherwise, and has one more: weights to start from go by
# their names.
awk -F, \
    'NR == 1 { print; next } { for (i = $3 == "red" ? 3 : $3 == "blue" ? 1 : 0; i >= 0; i--) print }
    END { print "shop 1,0.5,black,S,1" }' "$table" >"$tmp/later.csv"
run 1 base data.eval_fraction=0 data.normalize=none
run 1 later data.eval_fraction=0 data.normalize=none data.train="$tmp/later.csv" \
    run.init="$tmp/base" train.max_steps=0
grep \
    -q 'run.init: layers/0/weight: [0-9]* of [0-9]* inputs by their names, the others start fresh' \
    "$tmp/out" || fail "$(cat "$tmp/out")"
rmse() {
    "$dtrain" eval "$tmp/$1" data.eval="$table" 2>"$tmp/err" |
        sed 's/.*"rmse":\([0-9.]\{6\}\).*/\1/'
}
check_eq 'rmse of a start from a table of other counts' "$(rmse later)" "$(rmse base)"
awk -F, -v OFS=, '{ print $4, $1, $3, $2, $5 }' "$table" >"$tmp/moved.csv"
run 1 moved data.eval_fraction=0 data.normalize=none data.train="$tmp/moved.csv" \
    run.init="$tmp/base" train.max_steps=0
grep -q 'warning: run.init: .* was trained on other columns' "$tmp/out" || fail "$(cat "$tmp/out")"

printf '1,2,0\n2,1,1\n3,4,0\n' >"$tmp/numbers.csv"
expect_error 2 'the data has no categories to embed' 1 run.dir="$tmp/no" \
    data.train="$tmp/numbers.csv" model.embedding=4
expect_error 2 'model.embedding=65537' 1 run.dir="$tmp/no" data.train="$table" model.embedding=65537
expect_error 2 'expected at most 1048576' 1 run.dir="$tmp/no" data.train="$table" \
    model.task=regress model.layers='embedding 600000'
expect_error 2 'a linear path besides the layers goes with rows of plain features' 1 \
    run.dir="$tmp/no" data.train="$tmp/numbers.csv" data.shape=1x2x1 \
    model.layers='flatten, dense 3' model.wide=yes
expect_error 2 'train.wide_optimizer, train.wide_lr: expected model.wide=yes' 3 run.dir="$tmp/no" \
    data.train="$tmp/numbers.csv" train.wide_optimizer=adagrad
expect_error 2 'train.l1: expected train.optimizer=ftrl or train.wide_optimizer=ftrl' 1 \
    run.dir="$tmp/no" data.train="$table" train.l1=1
expect_error 2 'model.wide=yes: expected layers beside' 1 run.dir="$tmp/no" data.train="$table" \
    model.kind=linear model.wide=yes
