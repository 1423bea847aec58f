#!/bin/sh
# Fails if `dtrain serve` mixes answers up between requests of a batch. It gives the answers of
# `dtrain predict` over 32 connections, loads new versions under load, and survives wrong and slow
# clients; a stop is clean.
# waits
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/corners.sh"
. tests/e2e/serve.sh
[ -x /usr/bin/python3 ] || skip 'python3 is not installed'
serve_test 600 3 120
"$dtrain" serve "$tmp/nothing" 2>"$tmp/err"
check_eq 'exit code without a model' $? 1
"$dtrain" serve "$tmp/run/export/best/$version" serve.host=nowhere.invalid 2>"$tmp/err"
check_eq 'exit code without an address' $? 1
"$dtrain" serve "$tmp/run/export/best/$version" data.eval=x 2>"$tmp/err"
check_eq 'exit code with a key of others' $? 2

# A table with texts: rows and columns by name, a text that training never saw, one that is missing.
awk 'BEGIN {
    srand(4)
    print "size,colour,kind"
    split("red green blue", c, " ")
    for (i = 0; i < 300; i++) {
        k = 1 + int(3 * rand())
        print rand() "," c[k] "," (k == 2 ? "leaf" : "other")
    }
}' >"$tmp/table.csv"
job 2 data.train="$tmp/table.csv" run.dir="$tmp/table" model.hidden=8 train.epochs=8 train.lr=0.1 \
    2>"$tmp/err" || fail "$(cat "$tmp/err")"
serve "$tmp/table" serve.max_rows=60000 serve.timeout_secs=20
labels() { grep -o '"label":"[a-z]*"\|"label":\[[^]]*\]\|"BYTES"[^}]*' | tr -d '\n'; }
check_eq 'rows by name' "$(ask /v1/models/default:predict \
    '{"instances":[{"size":0.5,"colour":"green"},{"colour":"red","size":0.5},[0.5,"blue"]]}' |
    labels)" '"label":"leaf""label":"other""label":"other"'
# What a request took of the room for all of them comes back (make tiny: three of these are more
# than it).
for _ in 1 2 3 4; do
    check_eq 'a long body' "$(ask /v1/models/default:predict \
        "$(printf '{"instances":[[0.5,"blue"]]%100000s' '}')" | labels)" '"label":"other"'
done
check_eq 'labels of a text never seen' \
    "$(ask /v1/models/default:predict '{"instances":[{"size":1,"colour":"pink"}]}' |
    labels | grep -c label)" 1
check_eq 'columns by name' \
    "$(ask /v1/models/default:predict '{"inputs":{"size":[0.5,0.5],"colour":["green","red"]}}' |
    labels)" '"label":["leaf","other"]'
check_eq 'v2' "$(ask /v2/models/default/infer \
    '{"inputs":[{"name":"colour","datatype":"BYTES","shape":[2],"data":["green","red"]},
    {"name":"size","datatype":"FP32","shape":[2],"data":[0.5,0.1]}]}' | labels)" \
    '"BYTES","shape":[2],"data":["leaf","other"]'
want='"inputs":[{"name":"size","datatype":"FP32","shape":[-1]}'
want=$want',{"name":"colour","datatype":"BYTES","shape":[-1]}],"outputs"'
check_eq 'what v2 expects' "$(ask /v2/models/default | grep -o '"inputs":.*,"outputs"')" "$want"
offers() {
    ask /v2/models/default | sed 's/.*"outputs"//' | grep -o '"name":"[a-z]*"' | tr '\n' ' '
}
check_eq 'what v2 offers of classes' "$(offers)" \
    '"name":"probabilities" "name":"class" "name":"label" '
check_eq 'the id of a v2 request' "$(ask /v2/models/default/infer \
    '{"id":"x-1","inputs":[{"name":"colour","datatype":"BYTES",
    "shape":[1],"data":["green"]},{"name":"size","datatype":"FP32","shape":[1],"data":[0.5]}]}' |
        json id)" x-1
v2_outputs() { # LIST, of one row
    ask /v2/models/default/infer \
        '{"inputs":[{"name":"colour","datatype":"BYTES","shape":[1],"data":["green"]},
        {"name":"size","datatype":"FP32","shape":[1],"data":[0.5]}],"outputs":'"$1}"
}
check_eq 'one output of v2' "$(v2_outputs '[{"name":"label"}]' | sed 's/.*"outputs"//')" \
    ':[{"name":"label","datatype":"BYTES","shape":[1],"data":["leaf"]}]}'
check_eq 'two of them' \
    "$(v2_outputs '[{"name":"class","parameters":{}},{"name":"probabilities"}]' |
        grep -o '"name":"[a-z]*"' | paste -sd' ')" '"name":"probabilities" "name":"class"'
check_eq 'all of them' "$(v2_outputs '[]' | grep -o '"name":"[a-z]*"' | wc -l)" 3
check_eq 'one that is not there' "$(v2_outputs '[{"name":"scores"}]' | head -n 1)" \
    "400 {\"error\":\"outputs: there is no 'scores'\"}"
check_eq 'no list of them' "$(v2_outputs '"class"' | head -n 1)" \
    '400 {"error":"outputs: expected a list"}'
check_eq 'one without a name' "$(v2_outputs '[{}]' | head -n 1)" \
    '400 {"error":"outputs: expected names"}'
for body in '{"instances":[{"size":0.5}]}' '{"instances":[[1]]}' '{"instances":["red"]}' \
    '{"inputs":{"size":[1],"colour":[]}}' '{"inputs":{"size":[1]}}' \
    '{"instances":[{"size":"x","colour":"red"}]}' '{"instances":[{"instances":[[1,"red"]]}]}' \
    '{"instances":[[[1,"red"],[2,"blue"]],[3,"green"]]}' \
    '{"instances":[[{"size":1,"colour":"red"}]]}'; do
    check_eq "answer to $body" "$(ask /v1/models/default:predict "$body" | cut -c1-3)" 400
done
/usr/bin/python3 tests/e2e/serve_client.py idle "$port" 11 >"$tmp/idle" &
idle=$!
/usr/bin/python3 tests/e2e/serve_client.py unread "$port" $((15 * PATIENCE)) '[0.5,"green"]' 60000 \
    >"$tmp/said" || fail 'an answer'
! grep '^wrong' "$tmp/said" || fail 'a client that reads slowly'
wait $idle || fail 'an idle client'
! grep '^wrong' "$tmp/idle" || fail 'a request behind an idle time'
# A run without evaluation: its newest checkpoint; and that of another run in its place, at the same
# step.
newer_than() { [ "$(grep -c 'in place of' "$tmp/log")" -gt "$1" ]; }
train_table() {
    job 2 data.train="$tmp/table.csv" run.dir="$tmp/table" model.hidden=8 train.lr=0.1 "$@" \
        2>"$tmp/err" || fail "$(cat "$tmp/err")"
}
train_table train.epochs=9
wait_until newer_than 0 || fail 'a newer checkpoint is not taken up'
rm -rf "$tmp/table"
train_table train.epochs=9 run.seed=2
check_answer() {
    answer=$(ask /v1/models/default:predict '{"instances":[[0.5,"green"]]}' | probabilities)
    [ -n "$answer" ] &&
        [ "$answer" = \
            "$(echo '[0.5,"green"]' | "$dtrain" predict "$tmp/table" 2>/dev/null | probabilities)" ]
}
wait_until check_answer ||
    fail "another run's model of the same step is not taken up: $(cat "$tmp/log")"
/usr/bin/python3 tests/e2e/serve_client.py stop "$port" $server '[0.5,"green"]' >"$tmp/said" ||
    fail "a client: $(cat "$tmp/said")"
! grep '^wrong' "$tmp/said" || fail 'clients of a server that stops'
wait $server || fail 'a stop'
# A regression, of a file that another one takes the place of. A value beyond all floats is no null.
make_plane "$tmp/linear.csv"
job 1 data.train="$tmp/linear.csv" run.dir="$tmp/linear" model.task=regress model.kind=linear \
    train.epochs=20 train.lr=0.1 2>"$tmp/err" || fail "$(cat "$tmp/err")"
cp "$tmp/linear/ckpt/latest.h5" "$tmp/model.h5"
# Its descriptors are beyond those that select() takes.
cat >"$tmp/crowded" <<END
#!/usr/bin/python3
import os, resource, sys
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
most = min(hard, 4096) if hard > 0 else 4096
resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
for number in range(3, min(1100, most - 100)): # a limit below leaves room for the server's own
    os.dup2(0, number)
os.execv("$dtrain", ["$dtrain", "--log=debug", *sys.argv[1:]])
END
chmod +x "$tmp/crowded"
alone=$dtrain dtrain=$tmp/crowded
serve "$tmp/model.h5" serve.max_body_mb=1
dtrain=$alone
check_eq 'the state of a model' "$(ask /v1/models/default | grep -o '"state":"[A-Z]*"')" \
    '"state":"AVAILABLE"'
check_eq 'too large a body that does not say its length' "$(/usr/bin/python3 -c "
import http.client
connection = http.client.HTTPConnection('127.0.0.1', $port, timeout=30)
try:
    connection.request('POST', '/v1/models/default:predict', (b' ' * 65536 for _ in range(32)),
                       encode_chunked=True, headers={'Transfer-Encoding': 'chunked'})
except OSError:
    pass # it need not read all
print(connection.getresponse().status)")" 413
check_eq 'a value that overflows' \
    "$(ask /v1/models/default:predict '{"instances":[[1,2],[3e38,3e38]]}' | cut -c1-22)" \
    '400 {"error":"row 1: i'
check_eq 'one that does not' \
    "$(ask /v1/models/default:predict '{"instances":[[1,2]]}' | cut -c1-16)" '{"predictions":['
values() { grep -o '[0-9][0-9.]*' | paste -sd' '; }
want=$(ask /v1/models/default:predict '{"instances":[[1,2],[0.5,1]]}' | values)
check_eq 'numbers as columns' \
    "$(ask /v1/models/default:predict '{"inputs":{"b":[2,1],"a":[[1],0.5]}}' | values)" "$want"
check_eq 'numbers as columns of v2' "$(ask /v2/models/default/infer \
    '{"inputs":[{"name":"a","datatype":"FP32","shape":[2],"data":[1,0.5]},
    {"name":"b","datatype":"FP32","shape":[2],"data":[2,1]}]}' | sed 's/.*"data"//' | values)" \
    "$want"
refuse_shape() { # OF_TWO_VALUES ERROR
    check_eq "answer to a column of shape $1" \
        "$(ask /v2/models/default/infer '{"inputs":[{"name":"a","datatype":"FP32","shape":'"$1"',
        "data":[1,2]},{"name":"b","datatype":"FP32","shape":[2,1],"data":[1,2]}]}' | head -n 1)" \
        "400 {\"error\":\"inputs: item 0: $2\"}"
}
refuse_shape '[3]' '2 values, its shape has 3'
refuse_shape '[1,2]' '2 values in a row, expected 1'
refuse() {
    check_eq "answer to $1" "$(ask /v1/models/default:predict "$1" | head -n 1)" \
        "400 {\"error\":\"inputs: $2\"}"
}
refuse '{"inputs":{"a":[1,2],"b":[1]}}' "'b': 1 values for 2 rows"
refuse '{"inputs":{"a":[1,2]}}' "row 0: 'b' is missing"
refuse '{"inputs":{"a":[1],"b":1}}' "'b': expected a list"
refuse '{"inputs":{"a":[1],"a":[2],"b":[1]}}' "'a' appears twice"
check_eq 'a column that appears twice in v2' "$(ask /v2/models/default/infer \
    '{"inputs":[{"name":"a","datatype":"FP32","shape":[1],"data":[1]},
    {"name":"a","datatype":"FP32","shape":[1],"data":[2]}]}' | head -n 1)" \
    "400 {\"error\":\"inputs: item 1: 'a' appears twice\"}"
refuse '{"inputs":{"a":[],"b":[]}}' 'no rows'
refuse '{"inputs":{}}' "expected lists by the names of the model's columns"
check_eq 'a column that the model has not' \
    "$(ask /v1/models/default:predict '{"inputs":{"a":[1],"b":[1],"c":[1]}}' | head -n 1)" \
    "$(ask /v1/models/default:predict '{"inputs":{"a":[1],"b":[1]}}' | head -n 1)"
check_eq 'a name that the model has not' \
    "$(ask /v1/models/default:predict '{"instances":[{"a":1,"b":1,"c":1}]}' | head -n 1)" \
    "$(ask /v1/models/default:predict '{"instances":[{"a":1,"b":1}]}' | head -n 1)"
check_eq 'no rows' "$(ask /v1/models/default:predict '{"instances":[]}' | head -n 1)" \
    '400 {"error":"instances: no rows"}'
# Another one in its place, of a table where numbers may be missing: rows as the one input that it
# says it takes.
job 1 data.train="$tmp/linear.csv" data.missing=mean run.dir="$tmp/gaps" model.task=regress \
    model.kind=linear train.epochs=1 train.lr=0.1 2>"$tmp/err" || fail "$(cat "$tmp/err")"
cp "$tmp/gaps/ckpt/latest.h5" "$tmp/new.h5"
# While no descriptors are left it cannot be read; that they come back does not change the file.
descriptors=$(prlimit --pid $server --nofile --raw --noheadings -o SOFT)
prlimit --pid $server --nofile=3:
mv "$tmp/new.h5" "$tmp/model.h5"
passed_over() { grep -q 'passed over' "$tmp/log"; }
wait_until passed_over || fail 'a file is read without descriptors'
wait_until grep -q 'tried again in 2 s' "$tmp/log" || fail 'each second anew'
prlimit --pid $server --nofile="$descriptors":
wait_until newer_than 0 || fail 'a file in the place of another is not taken up'
check_eq 'warnings of a file that cannot be read' "$(grep -c 'passed over' "$tmp/log")" 1
check_eq 'what v2 expects of numbers' \
    "$(ask /v2/models/default | grep -o '"inputs":.*,"outputs"')" \
    '"inputs":[{"name":"input","datatype":"FP32","shape":[-1,2]}],"outputs"'
check_eq 'what v2 offers of numbers' "$(offers)" '"name":"values" '
check_eq 'rows in one input' "$(ask /v2/models/default/infer \
    '{"inputs":[{"name":"input","datatype":"FP32","shape":[2,2],"data":[1,2,0.5,1]}]}' |
    sed 's/.*"data"//' | values)" \
    "$(ask /v1/models/default:predict '{"instances":[[1,2],[0.5,1]]}' | values)"
kill -TERM $server
wait $server || fail 'a stop'
