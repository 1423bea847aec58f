#!/bin/sh
# Fails if answers change places, one body takes the memory of all, or half a model is loaded.
# `dtrain serve` answers as `dtrain predict` does, in both protocols; wrong requests are refused one
# by one; a newer model in the file's place is loaded once it is complete; SIGTERM ends it cleanly.
# waits
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/serve.sh"
. "$root/tests/e2e/corners.sh"
[ -x /usr/bin/python3 ] || skip 'python3 is not installed'
make_plane "$tmp/sum.csv"
train() {
    job 1 data.train="$tmp/sum.csv" run.dir="$tmp/run" model.task=regress model.kind=linear \
        train.lr=0.1 "$@" 2>"$tmp/err" || fail_with "$tmp/err" 'training'
}
train train.epochs=10
cp "$tmp/run/ckpt/latest.h5" "$tmp/model.h5"
serve "$tmp/model.h5" serve.max_body_mb=1

# ---- answers -------------------------------------------------------------------------------------
values() { grep -o '[0-9][0-9.]*' | paste -sd' '; }
predicted() { "$dtrain" predict "$tmp/model.h5" 2>/dev/null | values; }
v1() { ask /v1/models/default:predict "$1"; }
v2() { ask /v2/models/default/infer "$1" | sed 's/.*"data"//'; }
want=$(printf '[1,2]\n[0.5,1]\n' | predicted)
check_eq 'rows' "$(v1 '{"instances":[[1,2],[0.5,1]]}' | values)" "$want"
check_eq 'rows by name' "$(v1 '{"instances":[{"b":2,"a":1},{"a":0.5,"b":1}]}' | values)" "$want"
check_eq 'columns' "$(v1 '{"inputs":{"b":[2,1],"a":[1,0.5]}}' | values)" "$want"
check_eq 'columns in v2' \
    "$(v2 '{"inputs":[{"name":"a","datatype":"FP32","shape":[2],"data":[1,0.5]},
    {"name":"b","datatype":"FP32","shape":[2],"data":[2,1]}]}' | values)" "$want"
refuse() { check_eq "answer to $1" "$(v1 "$1" | cut -c1-4)" '400 '; }
refuse '{"instances":[[1,2],[3]]}'
refuse '{"instances":[[1,2],[3e38,3e38]]}'
refuse '{"inputs":{"a":[1,2],"b":[1]}}'
refuse '{"instances":'
packed() { # CODING
    /usr/bin/python3 -c "import sys, http.client
client = http.client.HTTPConnection('127.0.0.1', $port)
for body in b'{\"instances\":[[1,2]]}', b' ' * 100000:
    client.request('POST', '/v1/models/default:predict', body, {'Content-Encoding': sys.argv[1]})
    answer = client.getresponse()
    print(answer.status, answer.read().decode().split(chr(10))[0][:50])" "$1"
}
check_eq 'packed bodies, on one connection' "$(packed gzip | paste -sd' ')" \
    "$(yes '415 {"error":"the body has a Content-Encoding: expecte' | head -n 2 | paste -sd' ')"
check_eq 'bodies that are not packed' "$(packed identity | cut -c1-3 | paste -sd' ')" '200 400'
check_eq 'an input of another name' "$(ask /v2/models/default/infer \
    '{"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"data":[1,2]}]}' | head -n 1)" \
    '400 {"error":"inputs: item 0: the model has no input '"'x'"': expected '"'input'"'"}'
check_eq 'another model' "$(ask /v1/models/other:predict '{"instances":[[1,2]]}' | cut -c1-4)" \
    '404 '
/usr/bin/python3 tests/e2e/serve_client.py full "$port" >"$tmp/said" || fail 'a client'
! grep '^wrong' "$tmp/said" || fail 'bodies of all clients together have no limit'
ask /metrics | grep -q '^dtrain_serve_latency_seconds_count' || fail 'no metrics'

# ---- a newer model: half of it is passed over, and the whole is taken up -------------------------
train train.epochs=20
head -c 5000 "$tmp/run/ckpt/latest.h5" >"$tmp/new.h5"
touch -d 2020-01-01 "$tmp/new.h5"
mv "$tmp/new.h5" "$tmp/model.h5"
wait_until grep -q 'passed over' "$tmp/log" || fail 'half a model is not passed over'
check_eq 'rows meanwhile' "$(v1 '{"instances":[[1,2],[0.5,1]]}' | values)" "$want"
tail -c +5001 "$tmp/run/ckpt/latest.h5" >>"$tmp/model.h5"
touch -d 2020-01-01 "$tmp/model.h5"
wait_until grep -q 'in place of' "$tmp/log" || fail 'a newer model is not taken up'
check_eq 'rows after that' "$(v1 '{"instances":[[1,2],[0.5,1]]}' | values)" \
    "$(printf '[1,2]\n[0.5,1]\n' | predicted)"
# A model that cannot be read for a while is tried again, though its file does not change.
descriptors=$(prlimit --pid $server --nofile --raw --noheadings -o SOFT)
prlimit --pid $server --nofile=3:
train train.epochs=30
cp "$tmp/run/ckpt/latest.h5" "$tmp/new.h5"
mv "$tmp/new.h5" "$tmp/model.h5"
passed_over() { [ "$(grep -c 'passed over' "$tmp/log")" -gt 1 ]; }
wait_until passed_over || fail 'a file is read without descriptors'
prlimit --pid $server --nofile="$descriptors":
taken_up() { [ "$(grep -c 'in place of' "$tmp/log")" -gt 1 ]; }
wait_until taken_up || fail 'a file that can be read again is not'

kill -TERM $server
wait $server || fail 'a stop'
check_eq 'errors of the server' "$(grep -c 'dtrain: error' "$tmp/log")" 0
