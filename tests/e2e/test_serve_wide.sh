#!/bin/sh
# Fails if `dtrain serve` takes memory in proportion to what a request says, not to what it is.
# Hashed categories, a million features, a thousand classes; the address of IPv6.
# waits
. "$(dirname "$0")/lib.sh"
. tests/e2e/serve.sh
[ -x /usr/bin/python3 ] || skip 'python3 is not installed'

# Hashed categories, many a row, some of which share a feature: each counts, as it did in training.
awk 'BEGIN {
    srand(5)
    for (i = 0; i < 200; i++) printf "k%d,", i
    print "y"
    for (r = 0; r < 80; r++) {
        for (i = 0; i < 200; i++) printf "%s,", rand() < 0.5 ? "a" : "b"
        print r % 2 ? "yes" : "no"
    }
}' >"$tmp/many.csv"
# arrays: the features of a CSV on stdin, an array a row.
arrays() {
    awk -F, 'NR > 1 {
        row = ""
        for (i = 1; i <= 200; i++) row = row (i > 1 ? "," : "") "\"" $i "\""
        print "[" row "]"
    }'
}
echo "{\"instances\":[$(head -n 6 "$tmp/many.csv" | arrays | paste -sd,)]}" >"$tmp/many.json"
for model in 'model.kind=linear' 'model.hidden=3000 model.embedding=2 model.wide=yes'; do
    rm -rf "$tmp/many"
    # shellcheck disable=SC2086
    job 1 data.train="$tmp/many.csv" data.hash_bits=11 run.dir="$tmp/many" $model train.epochs=4 \
        train.lr=0.1 2>"$tmp/err" || fail "$(cat "$tmp/err")"
    serve "$tmp/many" serve.name='a"b'
    check_eq "answers for hashed categories ($model)" \
        "$(ask '/v1/models/a%22b:predict' "$(cat "$tmp/many.json")" | probabilities)" \
        "$(head -6 "$tmp/many.csv" | "$dtrain" predict "$tmp/many" 2>/dev/null | probabilities)"
    arrays <"$tmp/many.csv" >"$tmp/rows"
    "$dtrain" predict "$tmp/many" <"$tmp/rows" 2>/dev/null >"$tmp/answers"
    # Requests of several connections, until some of them were computed together.
    for asked in 401 801 1201 1601; do
        /usr/bin/python3 tests/e2e/serve_client.py load "$port" 400 8 "$tmp/rows" "$tmp/answers" \
            'a%22b' >"$tmp/said" || fail load
        ! grep '^wrong' "$tmp/said" || fail 'answers of requests that are computed together'
        batches=$(ask /metrics | sed -n 's/^dtrain_serve_batches_total //p')
        [ "$batches" -ge "$asked" ] || break
    done
    named=$(/usr/bin/python3 -c "import json, urllib.request
url = 'http://127.0.0.1:$port/v2/models/a%22b/ready'
print(json.load(urllib.request.urlopen(url))['name'])")
    check_eq 'a name with a quote' "$named" 'a"b'
    kill -TERM $server
    wait $server || fail 'a stop'
done
check_le 'batches of these requests to the larger model' "$batches" $((asked - 1))

# Many features: what is allocated is in proportion to the request, not to the rows that it says it
# has.
printf '0 1:1\n1 1000000:1\n' >"$tmp/wide.svm"
job 1 data.train="$tmp/wide.svm" data.features=1000000 run.dir="$tmp/wide" model.kind=linear \
    train.max_steps=1 2>"$tmp/err" || fail "$(cat "$tmp/err")"
serve "$tmp/wide"
peak() { sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$server/status"; }
before=$(peak)
check_eq 'empty rows' \
    "$(ask /v1/models/default:predict "{\"instances\":[$(yes '[]' | head -n 9999 | paste -sd,)]}" |
        head -n 1)" \
    '400 {"error":"instances: row 0: 0 numbers, the model has 1000000 features"}'
check_le 'KiB for them' "$(($(peak) - before))" 65536
# Features without names are one input of v2.
check_eq 'v2 of features without names' \
    "$(ask /v2/models/default | grep -o '"inputs":.*,"outputs"')" \
    '"inputs":[{"name":"input","datatype":"FP32","shape":[-1,1000000]}],"outputs"'
check_eq 'too few of them' "$(ask /v2/models/default/infer \
    '{"inputs":[{"name":"input","datatype":"FP32","shape":[1,2],"data":[1,2]}]}' | cut -c1-3)" 400
kill -TERM $server
wait $server || fail 'a stop'

# Many classes: a small request may have a large answer, and there is room for so many of those.
awk 'BEGIN { print "a,b,k"; for (i = 0; i < 1000; i++) print i % 7 "," i % 11 "," i }' \
    >"$tmp/classes.csv"
job 1 data.train="$tmp/classes.csv" run.dir="$tmp/classes" model.kind=linear train.max_steps=1 \
    2>"$tmp/err" || fail "$(cat "$tmp/err")"
serve "$tmp/classes" serve.max_body_mb=1 serve.timeout_secs=60
/usr/bin/python3 tests/e2e/serve_client.py answers "$port" '[1,2]' 1500 >"$tmp/said" ||
    fail 'answers that wait'
! grep '^wrong' "$tmp/said" || fail 'answers beyond what there is room for'
kill -TERM $server
wait $server || fail 'a stop'

# The address that is shown is one that a client takes, of IPv6 too.
grep -qs '^0*1 ' /proc/net/if_inet6 || exit 0
serve "$tmp/wide" serve.host=::1
url=$(sed -n 's,.* at \(http://\[::1\]:[0-9]*\)/v1/.*,\1,p' "$tmp/log")
[ -n "$url" ] || fail "no address of IPv6: $(cat "$tmp/log")"
check_eq 'live at the address shown' "$(/usr/bin/python3 -c "import urllib.request
print(urllib.request.urlopen('$url/v2/health/live').status)")" 200
kill -TERM $server
wait $server || fail 'a stop'
