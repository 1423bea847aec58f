# Sourced: what the short and the long test of `dtrain serve` do, in different numbers.
serving() { grep -q ' at http' "$tmp/log"; }
# serve MODEL KEY=VALUE...: starts a $server, and waits until it answers at $port of 127.0.0.1.
serve() {
    rm -f "$tmp/log" # of the server before, on another port
    "$dtrain" serve "$@" serve.port=0 >"$tmp/out" 2>"$tmp/log" &
    server=$!
    at_exit "kill -9 $server 2>/dev/null"
    wait_until serving || fail "$(cat "$tmp/log")"
    port=$(sed -n 's,.* at http://127.0.0.1:\([0-9]*\)/.*,\1,p' "$tmp/log")
}
ask() { # PATH [BODY]
    /usr/bin/python3 -c "import sys, urllib.request, urllib.error
try:
    body = sys.argv[2].encode() if len(sys.argv) > 2 else None
    print(urllib.request.urlopen('http://127.0.0.1:$port' + sys.argv[1], body).read().decode())
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())" "$@"
}
probabilities() { grep -o '"probabilities":\[[^]]*\]'; }
# serve_test REQUESTS SWAPS MALFORMED
serve_test() {
    requests=$1 swaps=$2 malformed=$3
    serve_client() { timeout "$limit" /usr/bin/python3 tests/e2e/serve_client.py "$@"; }
    client() {
        serve_client "$@" >"$tmp/said" || fail "client: $*"
        cat "$tmp/said"
    }
    get() {
        /usr/bin/python3 -c "import sys, urllib.request
url = 'http://127.0.0.1:$port' + sys.argv[1]
sys.stdout.write(urllib.request.urlopen(url).read().decode())" "$1"
    }
    job 2 "$recipes/penguins.ini" run.dir="$tmp/run" train.epochs=4 2>"$tmp/err" ||
        fail "$(cat "$tmp/err")"
    cut -d, -f3-6 "$recipes/data/penguins.csv" | sed '1d; s/.*/[&]/' >"$tmp/rows"
    "$dtrain" predict "$tmp/run" <"$tmp/rows" >"$tmp/answers" 2>"$tmp/err" ||
        fail "$(cat "$tmp/err")"
    begun=$(date +%s)
    serve "$tmp/run" serve.timeout_secs=$((2 * PATIENCE))

    client load "$port" "$requests" 32 "$tmp/rows" "$tmp/answers"
    check_eq 'wrong answers' "$(sed -n 's/.*wrong=\([0-9]*\).*/\1/p' "$tmp/said")" 0

    # The same model as ever higher versions, under load: no request may be lost, each version is
    # taken up.
    version=$(ls "$tmp/run/export/best" | sort -n | tail -n 1)
    (
        for i in $(seq "$swaps"); do
            cp -r "$tmp/run/export/best/$version" "$tmp/run/export/.new"
            mv "$tmp/run/export/.new" "$tmp/run/export/best/$((version + i))"
            sleep 0.4
        done
    ) &
    swapper=$!
    while kill -0 $swapper 2>/dev/null; do
        client load "$port" "$requests" 32 "$tmp/rows" "$tmp/answers"
        check_eq 'wrong answers while versions change' \
            "$(sed -n 's/.*wrong=\([0-9]*\).*/\1/p' "$tmp/said")" 0
    done
    newest() {
        [ "$(get /metrics | sed -n 's/^dtrain_serve_model_version //p')" = $((version + swaps)) ]
    }
    wait_until newest ||
        fail "version $((version + swaps)) is not taken up: $(tail -n 2 "$tmp/log")"
    check_ge 'versions taken up' "$(grep -c 'in place of' "$tmp/log")" 1
    mkdir "$tmp/run/export/best/999999"
    echo damaged >"$tmp/run/export/best/999999/model.h5"
    passed_over() { grep -q 'passed over' "$tmp/log"; }
    wait_until passed_over || fail 'a damaged version is not passed over'

    serve_client slow "$port" $((20 * PATIENCE)) >"$tmp/slow" &
    slow=$!
    client malformed "$port" "$malformed" "$tmp/rows"
    ! grep '^wrong' "$tmp/said" || fail 'an answer to a wrong request'
    wait $slow && ! grep '^wrong' "$tmp/slow" || fail 'a slow client'
    # No request took longer than the server has been there.
    get /metrics |
        awk -v most="$(($(date +%s) - begun + 1))" \
            '$1 ~ /^dtrain_serve_latency_seconds_sum/ {sum = $2}
            $1 ~ /^dtrain_serve_latency_seconds_count/ {good = $2 > 0 && sum <= $2 * most}
            END {exit !good}' ||
        fail 'times of requests'
    if command -v promtool >/dev/null; then
        get /metrics | promtool check metrics || fail 'promtool does not like /metrics'
    fi

    # A stop under load answers what it has taken.
    answered() { get /metrics | sed -n 's/^dtrain_serve_latency_seconds_count //p'; }
    before=$(answered)
    serve_client load "$port" 20000 8 "$tmp/rows" "$tmp/answers" >"$tmp/said" &
    load=$!
    under_load() { [ "$(answered)" -gt $((before + 50)) ]; }
    wait_until under_load || fail 'no load'
    kill -TERM $server
    wait $server
    check_eq 'exit code' $? 0
    wait $load || fail 'the clients do not end'
    ! grep 'BadStatusLine\|IncompleteRead' "$tmp/said" || fail 'an answer is cut'
    check_eq 'errors of the server' "$(grep -c 'dtrain: error' "$tmp/log")" 0
}
