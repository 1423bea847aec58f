#!/bin/sh
# Fails if there is a second way to measure, sums depend on the rank that adds them, or a metric is
# not what its name says. `dtrain eval` prints what evaluation in place recorded, to the last digit,
# from a checkpoint, an export or the run directory, and numpy computes the same.
# seconds: 180
. "$(dirname "$0")/lib.sh"
outside() { /usr/bin/python3 tests/e2e/outside.py "$@"; }
has_python 'h5py, numpy' && numpy=yes || numpy=no

# points FILE SEED ROWS: a value, and classes by it, some of them wrong.
points() {
    awk -v seed="$2" -v n="$3" 'BEGIN {
        srand(seed)
        print "a,b,value,two,six"
        for (i = 0; i < n; i++) {
            a = 2 * rand() - 1; b = 2 * rand() - 1; v = sin(2 * a) + a * b + 0.2 * rand()
            six = int(3 + 2 * v + 2 * rand()); six = six < 0 ? 0 : six > 6 ? 6 : six
            printf "%.7g,%.7g,%.7g,%s,c%d\n", a, b, v, (v + 0.5 * rand() > 0.3 ? "yes" : "no"), six
        }
    }' >"$1"
}
points "$tmp/train.csv" 1 1500
points "$tmp/eval.csv" 2 1100

# same RUN KEY...: the last eval record and `dtrain eval` by every path have the same digits.
same() {
    run=$tmp/$1 last=$(record "$tmp/$1" final step)
    shift
    check_eq 'last evaluation' "$(record "$run" eval step)" "$last"
    for model in "$run/ckpt" "$run/ckpt/latest.h5" "$run/export/latest" "$run/export/latest/$last" \
        "$run/export/latest/$last/model.h5"; do
        "$dtrain" eval "$model" >"$tmp/json" || fail "eval $model"
        for key; do
            check_eq "$key of ${model#"$tmp"/}" "$(json "$key" <"$tmp/json")" \
                "$(record "$run" eval "$key")"
        done
    done
}
# count RUN EXACT NEAR DATA...: numpy agrees: EXACT keys by text, NEAR ones to 1e-6.
count() {
    [ $numpy = yes ] || return 0
    run=$tmp/$1 exact=$2 near=$3
    shift 3
    "$dtrain" eval "$run/ckpt" >"$tmp/json"
    outside eval "$run/ckpt/latest.h5" "$@" >"$tmp/outside" || fail "numpy's metrics of $run"
    for key in $exact; do
        check_eq "numpy's $key" "$(json "$key" <"$tmp/outside")" "$(json "$key" <"$tmp/json")"
    done
    for key in $near; do
        check_le "difference of $key" "$(
            paste "$tmp/json" "$tmp/outside" | awk -v key="\"$key\": *" '{
                n = split($0, part, key)
                d = part[2] - part[3]
                print n != 3 ? "no value" : d * d < 1e-12 ? 0 : d
            }')" 0
    done
    matrix() { sed -n 's/.*"confusion": *\(\[\[[^}]*\]\]\).*/\1/p' "$1" | tr -d ' '; }
    check_eq 'confusion' "x$(matrix "$tmp/outside")" "x$(matrix "$tmp/json")"
}
# train RUN LABEL OPTION...
train() {
    run=$1 label=$2
    shift 2
    job 4 run.dir="$tmp/$run" data.train="$tmp/train.csv" data.eval="$tmp/eval.csv" \
        data.encode=none data.label="$label" train.epochs=6 model.hidden=12 \
        model.activation=tanh "$@" 2>"$tmp/err" || fail_with "$tmp/err" "training $run"
}
train two two data.ignore=value,six
same two rows loss accuracy auc precision recall
count two 'rows accuracy precision recall' 'loss auc' "$tmp/eval.csv"
train six six data.ignore=value,two
same six rows loss accuracy top5
count six 'rows accuracy top5' loss "$tmp/eval.csv"
train value value data.ignore=two,six model.task=regress train.lr=0.02
same value rows loss rmse mae r2
count value rows 'loss rmse mae r2' "$tmp/eval.csv"
# Several targets: the baseline of all, and the scores of each, by name on a terminal.
train both value,a data.ignore=two,six model.task=regress train.lr=0.02
expect_line "$tmp/err" 'the baseline, .* has loss .*, rmse 0\.[5-9]' 'a baseline of two targets'
"$dtrain" eval "$tmp/both/ckpt" >"$tmp/json"
numbers='"rmse":\([^,]*\).*"target_rmse":\[\([^]]*\)\],"target_r2":\[[^,]*,[^,]*\]}'
sed "s/.*$numbers/\1,\2/" "$tmp/json" |
    awk -F, '{ d = $1 ^ 2 - ($2 ^ 2 + $3 ^ 2) / 2; exit !(NF == 3 && $2 > 0 && d ^ 2 < 1e-18) }' ||
    fail "scores of targets: $(cat "$tmp/json")"
# on_terminal COMMAND: runs it on a terminal; needs `script`.
on_terminal() { script -qec "$1" /dev/null </dev/null | tr -d '\r'; }
# table RUN [OPTION]: what eval prints on a terminal.
table() { on_terminal "'$dtrain' eval '$tmp/$1' ${2:-} 2>/dev/null" >"$tmp/table"; }
targets() { awk '$1 == "target" { on = 1 } on { print $1 }' "$tmp/table" | xargs; }
if command -v script >/dev/null; then
    table both
    check_eq 'targets in the table' "$(targets)" 'target value a'
    sed 1d "$tmp/train.csv" >"$tmp/nameless.csv"
    job 1 run.dir="$tmp/nameless" data.train="$tmp/nameless.csv" data.eval="$tmp/nameless.csv" \
        data.label=2,0 data.ignore=3,4 model.task=regress train.max_steps=1 2>"$tmp/err" ||
        fail_with "$tmp/err" nameless
    table nameless
    check_eq 'targets by number' "$(targets)" 'target 0 1'
fi
# On a terminal, which mpirun hides with a pipe, the live line reports evaluations.
if command -v script >/dev/null && [ $mpi != mpich ]; then
    on_terminal "mpirun --oversubscribe -np 2 '$dtrain' run.dir='$tmp/live' \
        data.train='$tmp/train.csv' data.eval='$tmp/eval.csv' data.label=two \
        data.ignore=value,six train.max_steps=20" >"$tmp/live.out"
    expect_line "$tmp/live.out" 'completed at step 20' 'a run on a terminal'
    expect_no_line "$tmp/live.out" 'eval at step' 'evaluations scroll the start away'
fi
# A run directory means its best export, and stderr says so.
"$dtrain" eval "$tmp/six" >"$tmp/json" 2>"$tmp/err" || fail_with "$tmp/err"
best=$(records "$tmp/six" eval accuracy | sort -g | tail -n 1)
check_eq 'accuracy of a run directory' "$(json accuracy <"$tmp/json")" "$best"
expect_line "$tmp/err" "^dtrain: eval: $tmp/six/export/best/.*/model.h5"
# Classes by name: numbers that follow from the confusion matrix, in JSON and on a terminal.
classes() { sed 's/.*"confusion": *\[\[\([^}]*\)\]\],"labels.*/\1/; s/\],\[/\n/g' "$tmp/json"; }
recall=$(classes | awk -F, '
    { n = 0; for (i = 1; i <= NF; i++) n += $i; right = $NF }
    END { printf "%.4f", right / n }')
precision=$(classes | awk -F, '{ n += $NF; right = $NF } END { printf "%.4f", right / n }')
last() { sed "s/.*\"$1\":\[\([^]]*\).*/\1/" "$tmp/json" | awk -F, '{ printf "%.4f", $NF }'; }
check_eq 'recall of the last class' "$(last class_recall)" "$recall"
check_eq 'precision of the last class' "$(last class_precision)" "$precision"
check_eq 'names' "$(sed 's/.*"labels":\[\("[^"]*"\).*/\1/' "$tmp/json")" '"c0"'
if command -v script >/dev/null; then
    table six
    check_eq 'the last class in the table' \
        "$(awk '$1 == "c6" { print $2, $3; exit }' "$tmp/table")" "$precision $recall"
    table six eval.json=yes
    cmp -s "$tmp/table" "$tmp/json" || fail 'eval.json=yes on a terminal'
fi
# Names with multibyte letters stay in their columns, and none controls the terminal.
awk 'BEGIN {
    print "a,b"
    for (i = 0; i < 40; i++) print i % 7 "," (i % 2 ? "gr\303\266\303\237er" : "\033[2J")
}' >"$tmp/names.csv"
job 1 run.dir="$tmp/names" data.train="$tmp/names.csv" data.eval="$tmp/names.csv" train.epochs=1 \
    model.hidden=2 2>"$tmp/err" || fail_with "$tmp/err" 'training on names'
if command -v script >/dev/null; then
    table names
    grep -qF 'actual \ predicted       ?[2J     größer' "$tmp/table" ||
        { cat -v "$tmp/table"; fail 'names in the table'; }
fi
check_eq 'the class of precision and recall' \
    "$("$dtrain" eval "$tmp/two" 2>/dev/null | json positive)" yes
# A part of the chunks, and rows held out of the training data.
train part six data.ignore=value,two eval.batches=2
same part rows loss accuracy
check_eq 'rows of two chunks' "$(record "$tmp/part" eval rows)" 512
check_eq 'rows predicted of those' \
    "$("$dtrain" predict "$tmp/part" predict.held_out=yes 2>"$tmp/err" | wc -l)" 512
# rows RUN OPTION...: how many of the training data eval measures.
rows() {
    run=$1
    shift
    "$dtrain" eval "$tmp/$run" data.eval="$tmp/train.csv" "$@" | json rows
}
check_eq 'rows of other data' "$(rows part)" 1500
check_eq 'rows of one chunk' "$(rows part eval.batches=1)" 256
train held six data.ignore=value,two data.eval= data.eval_fraction=0.3
same held rows loss accuracy
# Other data than the run's own.
check_eq 'rows of other data' "$(rows held)" 1500
# Keys that would be ignored, or would measure on rows that were trained on.
for key in data.eval_fraction=0.5 run.seed=2 model.hidden=3 data.scale=2 data.normalize=standard; do
    "$dtrain" eval "$tmp/held" "$key" >"$tmp/out" 2>"$tmp/err"
    check_eq "exit code of eval with $key" $? 2
    expect_line "$tmp/err" "^dtrain: error: ${key%%=*}: not a key of dtrain eval, which takes "
done
"$dtrain" eval "$tmp/held" data.eval= 2>"$tmp/err"
check_eq 'exit code of eval with data.eval=' $? 2
"$dtrain" eval "$tmp/held" run.kernel=Nehalen 2>"$tmp/err"
check_eq 'exit code of eval with another kernel' $? 2
# Columns go by name.
awk -F, '{print $5 "," $2 "," $1}' "$tmp/eval.csv" >"$tmp/turned.csv"
for file in eval turned; do
    "$dtrain" eval "$tmp/six" data.eval="$tmp/$file.csv"
done | uniq >"$tmp/out"
check_eq 'answers for columns in two orders' "$(wc -l <"$tmp/out")" 1

fashion=/usr/share/datasets/fashion-mnist
[ -d $fashion ] || skip 'in part: Fashion-MNIST is not installed'
job 1 "$recipes/fashion-mnist.ini" run.dir="$tmp/fashion" train.max_steps=150 eval.steps=-1 \
    data.train=$fashion/t10k-images-idx3-ubyte.gz \
    data.train_labels=$fashion/t10k-labels-idx1-ubyte.gz \
    2>"$tmp/err" || fail_with "$tmp/err" 'Fashion-MNIST'
same fashion rows loss accuracy top5
count fashion 'rows accuracy top5' loss $fashion/t10k-images-idx3-ubyte.gz \
    $fashion/t10k-labels-idx1-ubyte.gz
[ $numpy = yes ] || skip 'in part: python3-h5py or python3-numpy is not installed'
