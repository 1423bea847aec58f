#!/bin/sh
# Fails if an exported graph turns a weight, normalises twice, orders probabilities otherwise,
# leaves gaps (NaN) as they are, or loses a class whose name is not UTF-8. onnx's own checker
# accepts what `dtrain export` writes, and the graph computed with numpy says what `dtrain predict`
# says, for several classes, two, values, each activation and normalisation.
# seconds: 120
. "$(dirname "$0")/lib.sh"
awk 'BEGIN {
    srand(5)
    print "a,b,value,two,six"
    for (i = 0; i < 500; i++) {
        a = 4 * rand() - 1
        b = 20 * rand()
        v = sin(a) + 0.05 * b
        six = int(2 * v + 2 * rand())
        six = six < 0 ? 0 : six > 5 ? 5 : six
        two = v > 0.9 ? "yes" : "no"
        printf "%.6g,%.6g,%.6g,%s,%s\n", a, b, v, two, six == 2 ? "caf\351" : "c" six
    }
}' >"$tmp/rows.csv"
cut -d, -f1,2 "$tmp/rows.csv" | sed '1d; s/.*/[&]/' >"$tmp/rows.jsonl"

errors() { # CODE TEXT ARGS...
    code=$1 text=$2
    shift 2
    "$dtrain" export "$@" >"$tmp/out" 2>"$tmp/err"
    check_eq "exit code of 'export $*'" $? "$code"
    grep -q "^dtrain: error:.*$text" "$tmp/err" || fail "$(cat "$tmp/err")"
}
# model NAME LABEL OPTION...: trains, exports, compares.
model() {
    name=$1 label=$2
    shift 2
    job 2 run.dir="$tmp/$name" data.train="$tmp/rows.csv" data.label="$label" train.epochs=3 \
        eval.steps=-1 data.eval_fraction=0.1 "$@" 2>"$tmp/err" ||
        fail_with "$tmp/err" "training $name"
    "$dtrain" export "$tmp/$name" "$tmp/$name.onnx" 2>"$tmp/err" ||
        fail "export of $name: $(cat "$tmp/err")"
    "$dtrain" predict "$tmp/$name" <"$tmp/rows.jsonl" >"$tmp/said" 2>"$tmp/err" ||
        fail "predict of $name"
    [ $onnx = yes ] || return 0
    /usr/bin/python3 tests/e2e/onnx_run.py "$tmp/$name.onnx" "$tmp/said" <"$tmp/rows.jsonl" \
        >"$tmp/diff" || fail "the graph of $name"
    check_le "difference of $name" "$(sed 's/.*difference=\([^ ]*\).*/\1/' "$tmp/diff")" 1e-5
    check_eq "other classes of $name" "$(sed 's/.*wrong=//' "$tmp/diff")" 0
}
/usr/bin/python3 -c 'import onnx, numpy' 2>/dev/null && onnx=yes || onnx=no
model six six data.ignore=value,two model.hidden=12,7 model.activation=relu \
    data.normalize=standard data.clip=1.2
model robust value data.ignore=two,six model.task=regress model.hidden=6 data.normalize=robust
model two two data.ignore=value,six model.hidden=5 model.activation=gelu data.scale=0.25
model value value data.ignore=two,six model.task=regress model.hidden=9 model.activation=sigmoid \
    train.lr=0.05
awk -F, 'BEGIN { OFS = "," }
    NR == 1 { print $1, $2, "p", "q", $3 }
    NR > 1 { print $1, $2, ($1 > 1) + 0, ($2 < 5) + 0, $3 }' "$tmp/rows.csv" >"$tmp/more.csv"
model labels p,q data.train="$tmp/more.csv" data.ignore=value model.task=multilabel model.hidden=5
model values value,q data.train="$tmp/more.csv" data.ignore=p model.task=regress model.hidden=5 \
    data.normalize_target=yes data.clamp_target=yes
model rising value,q data.train="$tmp/more.csv" data.ignore=p model.task=regress model.hidden=5 \
    data.normalize_target=yes train.loss=quantile train.quantiles=0.1,0.4,0.95 data.clamp_target=yes
# Quantiles of each target rise; the targets are two.
"$dtrain" predict "$tmp/rising" predict.held_out=yes predict.target=yes >"$tmp/held" 2>"$tmp/err" ||
    fail "$(cat "$tmp/err")"
check_eq 'rows held out' "$(wc -l <"$tmp/held")" 50
! tr -d '{}[]:"a-z' <"$tmp/held" |
    awk -F, \
        'NF != 8 || $1 > $2 || $2 > $3 || $4 > $5 || $5 > $6 {bad = 1; print} END {exit !bad}' ||
    fail 'quantiles cross, or targets are not two'
model linear six data.ignore=value,two model.kind=linear
model tanh two data.ignore=value,six model.hidden=6 model.activation=tanh model.dropout=0.3 \
    data.normalize=standard
# Pictures of 4 x 6, and lines.
awk -v rows="$tmp/rows.jsonl" 'BEGIN {
    srand(9)
    for (i = 0; i < 300; i++) {
        line = "["
        s = 0
        for (j = 0; j < 24; j++) {
            v = rand()
            s += v * (j % 5)
            line = line (j ? "," : "") sprintf("%.4f", v)
        }
        print line "]" >rows
        gsub(/[][]/, "", line)
        print line ",k" int(s / 4) % 3
    }
}' >"$tmp/rows.csv"
layers='conv 4 3x3 pad same, batchnorm relu, residual(conv 6 3x3 stride 2 pad same gelu)'
layers="$layers, maxpool 2 stride 1, upsample 2, layernorm silu, avgpool 2, dropout 0.2"
layers="$layers, conv 4 1x2 groups 2 tanh, globalpool, scale, dense 5 sigmoid"
model pictures -1 data.shape=4x6x1 train.batch=32 model.layers="$layers"
layers='conv1d 4 3 pad same relu, residual(conv1d 4 5 pad same, batchnorm), maxpool 2, flatten'
layers="$layers, dense 8 tanh, dense 8 leaky_relu, dense 8 softplus, batchnorm"
model lines -1 train.batch=32 model.layers="$layers"
# Gaps, and categories through an embedding with the linear path: a graph's input has an input a
# number and a text.
awk -v rows="$tmp/rows.jsonl" '
function or_null(value, quote) { return value == "" ? "null" : quote value quote }
BEGIN {
    srand(2)
    print "shop,weight,size,day,age,price"
    for (i = 0; i < 300; i++) {
        shop = int(9 * rand())
        w = rand()
        d = rand() < 0.2 ? "" : sprintf("20%02d-%02d-%02d", i % 25, i % 12 + 1, i % 28 + 1)
        s = substr("SML", 1 + int(3 * rand()), 1)
        a = 1 + rand()
        p = shop % 4 + w
        if (rand() < 0.3) w = ""
        if (rand() < 0.2) a = ""
        print "s" shop "," w "," s "," d "," a "," p
        printf "{\"shop\":\"s%d\",\"weight\":%s,\"size\":\"%s\",\"day\":%s,\"age\":%s}\n", shop,
            or_null(w), s, or_null(d, "\""), or_null(a) >rows
    }
}' >"$tmp/rows.csv"
model flag -1 model.task=regress data.clamp_target=yes model.hidden=7 model.embedding=3 \
    model.wide=yes train.loss=poisson data.missing=flag data.scale=0.5
model cosine -1 model.task=regress model.hidden=7 model.embedding=3 model.wide=yes \
    data.missing=flag data.scale=0.5 data.normalize=robust data.encode=cosine data.encode_width=5 \
    data.encode_scale=0.4
model ple -1 model.task=regress model.hidden=5 data.missing=mean data.encode=ple data.encode_bins=5
model mean -1 model.task=regress model.hidden=5 data.missing=mean data.scale=0.125 \
    data.normalize=robust data.clip=1
errors 2 'OUT.onnx' "$tmp/six"
errors 2 'ends in .onnx' "$tmp/six" "$tmp/six.pb"
errors 1 'nothing' "$tmp/nothing" "$tmp/nothing.onnx"
errors 1 'No such file' "$tmp/six" "$tmp/nowhere/six.onnx"
[ $onnx = yes ] || skip 'python3-onnx is not installed: files are written, but not read'
