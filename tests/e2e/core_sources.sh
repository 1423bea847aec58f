#!/bin/sh
# Fails if a reader loses or scales a row, counts labels from another number, or a rank misses rows.
# CSV, JSON lines, IDX, LIBSVM, packed files and a pipe train to the same bits, HDF5 shards at any
# number of ranks; a model of shards is evaluated on all of them.
. "$(dirname "$0")/lib.sh"
awk 'BEGIN {srand(5); for (i = 0; i < 480; i++) {
    a = int(256 * rand()); b = int(256 * rand())
    print a "," b "," int(256 * rand()) "," (a > b)}}' >"$tmp/rows"
{ echo a,b,c,y; cat "$tmp/rows"; } >"$tmp/rows.csv"
# idx_file DIMENSIONS COLUMNS: as bytes, after magic number and sizes (480 is 1 224).
bytes() { printf "$(printf '\\%03o' $(tr , ' '))"; }
{ printf '\0\0\010\002\0\0\001\340\0\0\0\003'; cut -d, -f1-3 "$tmp/rows" | bytes; } >"$tmp/rows.idx"
{ printf '\0\0\010\001\0\0\001\340'; cut -d, -f4 "$tmp/rows" | bytes; } >"$tmp/labels.idx"
sed 's/\(.*\),\(.*\),\(.*\),\(.*\)/\4 1:\1 2:\2 3:\3/' "$tmp/rows" >"$tmp/rows.svm"
sed 's/\(.*\),\(.*\),\(.*\),\(.*\)/{"a":\1,"b":\2,"c":\3,"y":\4}/' "$tmp/rows" >"$tmp/rows.jsonl"
gzip -c "$tmp/rows.svm" >"$tmp/rows.svm.gz"
gzip -c "$tmp/rows.idx" >"$tmp/rows.idx.gz"
# (Rows are in another order in shards, on purpose.)
"$dtrain" shard "$tmp/shards" 2 data.train="$tmp/rows.csv" 2>"$tmp/err" ||
    fail_with "$tmp/err" shard

# train NP DIR KEY...
train() {
    np=$1 dir=$2
    shift 2
    job "$np" run.dir="$tmp/$dir" run.preset=none model.kind=linear train.batch=32 train.epochs=20 \
        train.lr=0.3 run.replicas=2 data.scale=0.004 "$@" 2>"$tmp/err" ||
        fail_with "$tmp/err" "$dir"
}
same() { check_eq "bits of $1" "$(crc "$tmp/$1")" "$(crc "$tmp/$2")"; }
train 1 csv data.train="$tmp/rows.csv"
train 3 idx data.train="$tmp/rows.idx.gz" data.train_labels="$tmp/labels.idx"
same idx csv
train 1 pipe data.train=/dev/stdin <"$tmp/rows.csv"
same pipe csv
train 1 svm data.train="$tmp/rows.svm"
same svm csv
train 3 json data.train="$tmp/rows.jsonl"
same json csv
train 3 packed data.train="$tmp/rows.svm.gz"
same packed svm
train 1 shards data.train="$tmp/shards/*.h5"
train 3 shards-3 data.train="$tmp/shards/*.h5"
same shards-3 shards
accuracy() { "$dtrain" eval "$tmp/shards" "$@" 2>"$tmp/err" | json accuracy; }
want=$(accuracy data.eval="$tmp/rows.csv")
check_ge accuracy "$want" 0.9
check_eq 'accuracy on shards' "$(accuracy data.eval="$tmp/shards/*.h5")" "$want"
check_eq 'accuracy on IDX' \
    "$(accuracy data.eval="$tmp/rows.idx" data.eval_labels="$tmp/labels.idx")" "$want"
check_eq 'accuracy on LIBSVM' "$(accuracy data.eval="$tmp/rows.svm")" "$want"

# Shards count classes from 0, also those that LIBSVM rows call -1 and +1.
sed 's/^0/-1/; s/^1/+1/' "$tmp/rows.svm" >"$tmp/signs.svm"
"$dtrain" shard "$tmp/signs" 1 data.train="$tmp/signs.svm" 2>"$tmp/err" ||
    fail_with "$tmp/err" shard
train 1 signs data.train="$tmp/signs/*.h5"
for rows in "$tmp/signs.svm" "$tmp/signs/*.h5"; do
    check_ge "accuracy on $rows" \
        "$("$dtrain" eval "$tmp/signs" data.eval="$rows" 2>"$tmp/err" | json accuracy)" 0.9
done

# Ranks that cannot open the bank's file of rows, as on another host, get a copy of it.
[ "$(id -u)" = 0 ] && unshare --pid --fork --mount-proc true 2>/dev/null ||
    skip 'in part: needs namespaces'
config=$tmp/packed/config.ini
OMPI_MCA_btl=tcp,self UCX_TLS=tcp,self mpirun --timeout $limit --oversubscribe \
    -np 1 "$dtrain" train "$config" run.dir="$tmp/apart" : \
    -np 2 unshare --pid --fork --mount-proc "$dtrain" train "$config" run.dir="$tmp/apart" \
    2>"$tmp/err" || fail_with "$tmp/err" 'ranks apart'
same apart svm
