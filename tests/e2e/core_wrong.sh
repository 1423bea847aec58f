#!/bin/sh
# Fails if wrong input is taken in silence, or an error leaves a process. Three ranks print one line
# that names file, line or key, exit with the right code, and leave the run directory as it was.
# seconds: 240
# waits
. "$(dirname "$0")/lib.sh"
fashion=/usr/share/datasets/fashion-mnist
mkdir "$tmp/data"
awk 'BEGIN {print "a,b,kind"; for (i = 0; i < 300; i++) print i % 17 "," i % 23 "," i % 3}' \
    >"$tmp/data/1.csv"
sed 1d "$tmp/data/1.csv" >"$tmp/rows"
set -- run.dir="$tmp/run" train.epochs=1 model.hidden=8
job 3 "$@" data.train="$tmp/data/1.csv" >"$tmp/out" 2>&1 || fail_with "$tmp/out" 'the good run'
state() { find "$tmp/run" -type f ! -name lock | sort | xargs cksum; }
state >"$tmp/before"

# wrong CODE TEXT KEY=VALUE...: the good run with other keys; only those may differ.
wrong() {
    expect_error "$1" "$2" 3 run.dir="$tmp/run" train.epochs=2 model.hidden=8 \
        data.train="$tmp/data/1.csv" "$3" ${4:+"$4"} ${5:+"$5"}
    state | cmp -s - "$tmp/before" || fail "the run directory has changed: $*"
}
# csv TEXT LAST_LINE: a second shard whose last line is wrong.
csv() {
    { echo a,b,kind; cat "$tmp/rows"; printf '%s\n' "$2"; } >"$tmp/data/2.csv"
    wrong 1 "2.csv:302: $1" data.train="$tmp/data/*.csv" run.dir="$tmp/other"
    rm "$tmp/data/2.csv"
    [ ! -e "$tmp/other" ] || fail "a start that was refused leaves $(ls "$tmp/other")"
}

printf '[train]\nepochs = 1\nlerning_rate = 1\n' >"$tmp/config.ini"
expect_error 2 'config.ini:3: train.lerning_rate' 3 "$tmp/config.ini" run.dir="$tmp/run"
wrong 2 'train.lrr' train.lrr=1
wrong 2 'train.batch' train.batch=many
wrong 2 'model.dropout' model.dropout=1.5
wrong 2 'train.optimizer' train.optimizer=sdg
wrong 2 'eval.metric' eval.metric=top5 # of three classes: the files say so
expect_error 2 'train.mode' 1 run.dir="$tmp/run" data.train="$tmp/data/1.csv" train.mode=async
expect_error 2 'eval.dedicated' 2 run.dir="$tmp/run" data.train="$tmp/data/1.csv" \
    eval.dedicated=yes data.eval_fraction=0.5

wrong 1 'nowhere.csv' data.train="$tmp/nowhere.csv" run.dir="$tmp/other"
: >"$tmp/empty.csv"
wrong 1 'empty.csv' data.train="$tmp/empty.csv" run.dir="$tmp/other"
csv "column 'b'" '1,abc,2'
csv '' '1,2'
csv "column 'a'" 'nan,2,1'
printf '\000\000\010\003\000\177\377\377\000\000\000\034\000\000\000\034short' \
    >"$tmp/lying-idx3-ubyte"
wrong 1 'lying-idx3-ubyte' data.train="$tmp/lying-idx3-ubyte" \
    data.train_labels="$fashion/train-labels-idx1-ubyte.gz" run.dir="$tmp/other"
head -c 1000000 "$fashion/t10k-images-idx3-ubyte.gz" >"$tmp/cut.gz"
wrong 1 'cut.gz' data.train="$tmp/cut.gz" data.train_labels="$fashion/t10k-labels-idx1-ubyte.gz" \
    run.dir="$tmp/other"
wrong 1 'labels-idx1-ubyte.gz' data.train="$fashion/train-images-idx3-ubyte.gz" \
    data.train_labels="$fashion/t10k-labels-idx1-ubyte.gz" run.dir="$tmp/other"
sed 's/,2$/,7/' "$tmp/data/1.csv" >"$tmp/unseen.csv"
wrong 1 'unseen.csv:4' data.eval="$tmp/unseen.csv" run.dir="$tmp/other"
cp "$tmp/data/1.csv" "$tmp/text.h5"
wrong 1 'text.h5' data.train="$tmp/text.h5" data.format=hdf5 run.dir="$tmp/other"
awk 'BEGIN {print "a,kind"; for (i = 0; i < 50; i++) print i % 7 "," i % 3}' >"$tmp/narrow.csv"
for shards in narrow:1 data/1:2; do
    "$dtrain" shard "$tmp/h5-${shards#*:}" 1 data.train="$tmp/${shards%:*}.csv" 2>"$tmp/out" ||
        fail shard
done
wrong 1 'h5-2/shard-00000-of-00001.h5' data.train="$tmp/h5-*/*.h5" run.dir="$tmp/other"
wrong 1 "$tmp/empty.csv" run.dir="$tmp/empty.csv/run"
wrong 1 'model.hidden=9, which makes dense 9' model.hidden=9
