#!/bin/sh
# Fails if a recipe's model answers otherwise in onnxruntime than in `dtrain predict`, over all
# held-out rows.
# seconds: 400
. "$(dirname "$0")/lib.sh"
need node npm
fashion=/usr/share/datasets/fashion-mnist
[ -d $fashion ] || skip 'Fashion-MNIST is not installed'
/usr/bin/python3 -c 'import numpy' 2>/dev/null || skip 'python3-numpy is not installed'
mkdir "$tmp/node" && cp tests/e2e/onnx_run.js "$tmp/node"
(
    cd "$tmp/node" && timeout 300 npm install --ignore-scripts --no-audit --no-fund onnxruntime-node
) >"$tmp/out" 2>&1 || skip "npm cannot get onnxruntime-node: $(tail -n 1 "$tmp/out")"
# same NAME: the rows in $tmp/rows get the same answers.
same() {
    "$dtrain" export "$tmp/$1" "$tmp/$1.onnx" 2>"$tmp/err" || fail "$(cat "$tmp/err")"
    "$dtrain" predict "$tmp/$1" <"$tmp/rows" >"$tmp/said" 2>"$tmp/err" || fail "$(cat "$tmp/err")"
    node "$tmp/node/onnx_run.js" "$tmp/$1.onnx" "$tmp/said" <"$tmp/rows" >"$tmp/diff" ||
        fail "onnxruntime: $1"
    check_le "difference of $1 over $(wc -l <"$tmp/rows") rows" \
        "$(sed 's/.*difference=\([^ ]*\).*/\1/' "$tmp/diff")" 1e-5
    check_eq "other classes of $1" "$(sed 's/.*wrong=//' "$tmp/diff")" 0
}
job 3 "$recipes/penguins.ini" run.dir="$tmp/penguins" 2>"$tmp/err" || fail "$(cat "$tmp/err")"
cut -d, -f3-6 "$recipes/data/penguins.csv" | sed '1d; s/.*/[&]/' >"$tmp/rows"
same penguins
awk -F, -v OFS=, 'NR % 5 == 3 { $3 = "NA" } NR % 4 == 2 { $6 = "NA" } 1' \
    "$recipes/data/penguins.csv" >"$tmp/gaps.csv"
sed 's/[^,]*\]/null]/' "$tmp/rows" >"$tmp/some" && cat "$tmp/some" >>"$tmp/rows"
for missing in mean flag; do
    job 3 "$recipes/penguins.ini" run.dir="$tmp/$missing" data.train="$tmp/gaps.csv" \
        data.missing=$missing 2>"$tmp/err" || fail "$(cat "$tmp/err")"
    same $missing
done
job 3 "$recipes/fashion-mnist.ini" run.dir="$tmp/fashion" train.max_steps=400 eval.steps=-1 \
    2>"$tmp/err" || fail "$(cat "$tmp/err")"
/usr/bin/python3 -c "
import gzip
data = gzip.open('$fashion/t10k-images-idx3-ubyte.gz').read()[16:]
for at in range(0, len(data), 784):
    print(list(data[at:at + 784]))" >"$tmp/rows"
same fashion
for recipe in fashion-mnist-cnn fashion-mnist-resnet; do
    [ -f "$recipes/$recipe.ini" ] || continue
    job 3 "$recipes/$recipe.ini" run.dir="$tmp/$recipe" train.max_steps=20 eval.steps=-1 \
        2>"$tmp/err" || fail "$(cat "$tmp/err")"
    head -n 500 "$tmp/rows" >"$tmp/some" && mv "$tmp/some" "$tmp/rows"
    same $recipe
done
