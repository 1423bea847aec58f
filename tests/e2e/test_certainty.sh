#!/bin/sh
# Fails if predict, serve or ONNX leaves out a threshold, a temperature or an interval, of one model
# or of an ensemble, if rows that were fitted are also measured, or if residuals are those of rows
# that were trained on. Also fails if these keys change the weights of a run.
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/serve.sh"
cd "$tmp" || exit 1
lines() { grep "\"kind\":\"$2\"" "$1/metrics.jsonl"; }
awk 'BEGIN {
    srand(7)
    for (i = 0; i < 6000; i++) {
        a = rand() + rand() + rand() - 1.5
        b = 2 * rand() - 1
        e = rand() + rand() + rand() - 1.5
        y = 3 * a + a * b + (0.5 + b * b) * e
        print a "," b "," y "," (y > 1.6 ? "rare" : "usual")
    }
}' >all.csv
for task in class number; do
    column=$([ $task = class ] && echo 4 || echo 3)
    { echo a,b,y; head -n 4000 all.csv | cut -d, -f1,2,$column; } >$task.csv
    { echo a,b,y; tail -n 2000 all.csv | cut -d, -f1,2,$column; } >$task-fresh.csv
done
tail -n 1000 all.csv | awk -F, '{ print "[" $1 "," $2 "]" }' >rows.jsonl
keys='data.eval_fraction=0.2 data.test_fraction=0.3 train.epochs=6'
fits='eval.positive=rare eval.threshold=cost:1,9 eval.calibrate=yes'
interval='model.task=regress predict.interval=0.9'

# ---- a run ---------------------------------------------------------------------------------------
# train NP DIR TASK OPTION...: a run on the classes or on the numbers.
train() {
    np=$1 dir=$2 task=$3
    shift 3
    job "$np" data.train="$task.csv" run.dir="$dir" "$@" 2>err || fail_with err "$dir"
}
train 1 plain class $keys
train 1 one class $keys $fits
train 3 three class run.replicas=1 $keys $fits
train 1 number number $keys $interval
train 1 quantile number $keys $interval train.loss=quantile train.quantiles=0.1,0.5,0.9
check_eq 'weights with these keys' "$(crc one)" "$(crc plain)"
check_eq 'certainty of 3 ranks' "$(lines three certainty)" "$(lines one certainty)"
! grep -q certainty plain/metrics.jsonl || fail 'a run without these keys has a record of them'
threshold=$(lines one certainty | json threshold)
check_le 'threshold' "$threshold" 0.3
into said "$dtrain" predict one <rows.jsonl
check_eq 'rows on the wrong side of the threshold' "$(
    sed 's/.*"class":\([01]\).*\[\([^,]*\),.*/\1 \2/' said |
        awk -v t="$threshold" '($1 == 0) != ($2 > t) { n++ } END { print n + 0 }')" 0
into measured "$dtrain" eval one
check_eq 'what held-out rows fitted' "$(sed 's/"sets".*//' measured | json fitted)" \
    'temperature and threshold'
# test_record RUN KEY: of the record of the test rows.
test_record() { lines "$1" eval | grep '"set":"test"' | json "$2"; }
check_eq 'loss of the test rows' "$(sed 's/.*"test"://' measured | json loss)" \
    "$(test_record one loss)"
check_eq 'the positive class' "$(json positive <measured)" rare
train 1 given class data.eval_fraction=0.2 train.epochs=1 eval.threshold=0.3 eval.calibrate=yes
check_eq 'what they fitted besides a given threshold' \
    "$("$dtrain" eval given 2>/dev/null | json fitted)" temperature
into measured "$dtrain" eval plain
! grep -q fitted measured || fail 'a model without them says that rows fitted something'

# inside MODEL: the part of fresh targets within their intervals.
inside() {
    "$dtrain" predict "$1" data.eval=number-fresh.csv predict.target=yes 2>/dev/null |
        sed 's/.*"low":\([^,]*\),"high":\([^,]*\),"target":\([^,}]*\).*/\1 \2 \3/' |
        awk '$1 <= $3 && $3 <= $2 { n++ } END { print n / NR }'
}
for model in number quantile; do
    check_ge "coverage of $model" "$(inside $model)" 0.86
    check_le "coverage of $model" "$(inside $model)" 0.94
done
check_eq 'residuals' "$(lines number certainty | json residuals)" 1200
check_eq 'the score says so' "$(test_record number fitted)" interval
# has_interval COVERAGE: whether predictions have an interval.
has_interval() {
    "$dtrain" predict number predict.interval="$1" <rows.jsonl 2>/dev/null |
        head -n 1 | grep -q '"low"'
}
has_interval 0.5 || fail 'another coverage'
! has_interval 0 || fail 'no coverage'

# ---- an ensemble ---------------------------------------------------------------------------------
search='search.trials=2 train.epochs=3'
job 1 search data.train=class.csv run.dir=classes search.folds=2 $search $fits 2>err ||
    fail_with err 'a search over classes'
job 1 search data.train=number.csv run.dir=numbers search.folds=3 $search $interval \
    search.space=train.lr=0.01 2>err || fail_with err 'a search over numbers'
check_ge 'coverage of an ensemble' "$(inside numbers)" 0.86
check_le 'coverage of an ensemble' "$(inside numbers)" 0.95

# ---- the same everywhere -------------------------------------------------------------------------
# answer MODEL KEY=VALUE...: what the server answers to all rows, in a file.
answer() {
    serve "$@"
    { printf '{"instances":['; paste -sd, rows.jsonl; printf ']}'; } >body
    ask /v1/models/default:predict "$(cat body)" | tr -d '\n' >answer
    kill -TERM $server
    wait $server
}
for model in one number 'number predict.interval=0.5' quantile classes numbers; do
    # shellcheck disable=SC2086 # words
    {
        into said "$dtrain" predict $model <rows.jsonl
        answer $model
    }
    sed 's/^{"predictions": *\[//; s/\]}$//; s/},{/}\n{/g; s/$/\n/' answer >served
    # predict says "value" for one number
    sed 's/"value":/"values":/' said | cmp -s - served || fail "serve $model"
    has_python 'onnx, numpy' || continue
    "$dtrain" export "${model%% *}" model.onnx ${model#"${model%% *}"} 2>/dev/null ||
        fail "export $model"
    /usr/bin/python3 "$root/tests/e2e/onnx_run.py" model.onnx said <rows.jsonl >diff ||
        fail "the graph of $model"
    check_le "difference of the graph of $model" "$(sed 's/.*difference=\([^ ]*\).*/\1/' diff)" 1e-5
    check_eq "other classes of the graph of $model" "$(sed 's/.*wrong=//' diff)" 0
done
answer number predict.interval=0
grep -q low answer && fail 'the server gives intervals although none are wanted'

# ---- what is wrong -------------------------------------------------------------------------------
expect_error 2 'predict.interval: the model predicts classes' 1 predict one predict.interval=0.9
expect_error 2 'predict.interval: the model predicts classes' 1 serve one predict.interval=0.9
expect_error 2 'predict.interval: expected model.task=regress' 1 data.train=class.csv run.dir=x \
    $keys predict.interval=0.9
expect_error 2 'predict.interval: expected data.test_fraction' 1 data.train=number.csv run.dir=x \
    $interval
# What the end would lack is said before the training: no directory of a run is left.
few='data.eval_fraction=0.0002 eval.threshold=f1'
# shellcheck disable=SC2086 # words
{
    expect_error 1 '12 rows are left for its residuals; expected at least 19' 1 \
        data.train=number.csv run.dir=x data.test_fraction=0.003 model.task=regress \
        predict.interval=0.95
    expect_error 1 '12 rows are left for its residuals; expected at least 19' 1 search \
        data.train=number.csv run.dir=x data.test_fraction=0.003 model.task=regress \
        predict.interval=0.95 data.eval_fraction=0.1
    expect_error 1 '1 held-out rows are of the positive class and 0 are not' 1 \
        data.train=class.csv run.dir=x $few
    expect_error 1 '1 held-out rows are of the positive class and 0 are not' 1 search \
        data.train=class.csv run.dir=x $few
}
sed '1!s/[^,]*$/usual/' class-fresh.csv >usual.csv
expect_error 1 'auc is not defined on these 2000 rows' 1 importance one data.eval=usual.csv \
    importance.metric=auc
[ ! -e x ] || fail 'the directory of a run that could not end well'
expect_error 2 'no residuals' 1 predict number/ckpt predict.interval=0.9
expect_error 2 'eval.threshold' 1 data.train=class.csv run.dir=x eval.threshold=f1
expect_error 2 'eval.positive=odd: no such class; expected usual or rare' 1 data.train=class.csv \
    run.dir=x eval.positive=odd
