#!/bin/sh
# Fails if a worked example of scripts/doc/contributing.md is not all that an addition takes. Each,
# applied to a copy of the sources, is built, is known to help and manual, and trains.
. tests/e2e/lib.sh
need git patch
git -c safe.directory="$root" ls-files >"$tmp/files" 2>/dev/null && [ -s "$tmp/files" ] ||
    skip 'not a checkout by git'
tree=$tmp/tree
mkdir "$tree"
tar -cf - -T "$tmp/files" | tar -xf - -C "$tree" || fail 'no copy'
awk '/^```diff/ {on = 1; next} /^```/ {on = 0} on' scripts/doc/contributing.md >"$tmp/all.diff"
check_ge 'files that change' "$(grep -c '^+++' "$tmp/all.diff")" 10
cd "$tree" || exit 1
patch -s -F0 -p1 <"$tmp/all.diff" || fail 'the changes do not fit'
make -s -j2 dtrain BUILD=build CFLAGS=-O1 WERROR=1 >"$tmp/out" 2>&1 ||
    { tail -20 "$tmp/out"; fail 'it does not build'; }
awk 'BEGIN {
    srand(1)
    print "x,z,y"
    for (i = 0; i < 200; i++) {
        x = rand()
        z = rand()
        print x "," z "," 2 * x - z
    }
}' >"$tmp/rows.csv"
cut -d, -f1,2 "$tmp/rows.csv" | sed '1d; s/.*/[&]/' >"$tmp/rows.jsonl"
for with in train.optimizer=signsgd train.loss=logcosh 'model.layers=dense 8 relu, shift'; do
    mpirun --oversubscribe -np 3 ./dtrain run.dir="$tmp/${with#*=}" data.train="$tmp/rows.csv" \
        data.label=y model.task=regress 'model.layers=dense 8 relu' train.batch=20 train.lr=0.01 \
        train.epochs=30 "$with" 2>"$tmp/err" || fail_with "$tmp/err" "$with"
    expect_line "$tmp/err" 'completed at step 300' "$with did not end"
    losses=$(records "$tmp/${with#*=}" train loss)
    first=$(echo "$losses" | head -n 1) last=$(echo "$losses" | tail -n 1)
    check_le "$with: loss at the end, of that at the start" \
        "$(echo "$last $first" | awk '{print $1 / $2}')" 0.5
    ./dtrain export "$tmp/${with#*=}" "$tmp/graph.onnx" 2>"$tmp/err" ||
        fail_with "$tmp/err" "$with as ONNX"
    [ "${with#model}" != "$with" ] || ./dtrain options train | grep -q "${with#*=}" ||
        fail "help does not know $with"
    /usr/bin/python3 -c 'import onnx, numpy' 2>/dev/null || continue
    ./dtrain predict "$tmp/${with#*=}" <"$tmp/rows.jsonl" >"$tmp/said" 2>/dev/null ||
        fail "$with: predict"
    /usr/bin/python3 "$root/tests/e2e/onnx_run.py" "$tmp/graph.onnx" "$tmp/said" \
        <"$tmp/rows.jsonl" >"$tmp/diff" || fail "$with: the graph"
    check_le "$with: difference of the graph" \
        "$(sed 's/.*difference=\([^ ]*\).*/\1/' "$tmp/diff")" 1e-5
done
./dtrain hosts | grep -q 'cores' || fail 'hosts'
./dtrain help --man | grep -q 'tells the cores' || fail 'the manual does not know hosts'
