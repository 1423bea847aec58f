#!/bin/sh
# Fails if `dtrain report` writes a page with references, or one that a class's name breaks. Pages
# of a run that ended, of one that was killed with a torn line, and of one whose classes have names
# that look like markup, or are not UTF-8. Chromium draws them, where it is installed.
. "$(dirname "$0")/lib.sh"
awk 'BEGIN {
    srand(3)
    print "a,b,kind"
    for (i = 0; i < 400; i++) {
        a = rand()
        b = rand()
        print a "," b "," (a > b ? "<!--<script></script><b>x" : "caf\351")
    }
}' >"$tmp/rows.csv"
job 2 data.train="$tmp/rows.csv" data.eval_fraction=0.3 run.dir="$tmp/one" model.hidden=8 \
    train.epochs=6 run.log_steps=2 eval.metric=accuracy 2>"$tmp/err" || fail "$(cat "$tmp/err")"
cp -r "$tmp/one" "$tmp/torn"
sed -i '$d' "$tmp/torn/metrics.jsonl"
printf '{"kind":"train","st' >>"$tmp/torn/metrics.jsonl"
printf '%s\n' '{"metric":"loss","value":0.5,"rows":9,"repeats":5,"step":3}' \
    '{"columns":["<!--<script>"],"importance":0.2,"deviation":0.1}' \
    '{"columns":["b"],"importance":null,"deviation":null}' '{"columns":["tor' \
    >"$tmp/one/importance.jsonl"

"$dtrain" report "$tmp/one" "$tmp/one.html" || fail 'report of one run'
"$dtrain" report "$tmp/one" "$tmp/torn" "$tmp/two.html" || fail 'report of two'
for page in one two; do
    check_eq "references out of $page.html" \
        "$(grep -oE '(src|href)=|url\(|@import|https?://[^"'"'"' ]*' "$tmp/$page.html" |
            grep -cv www.w3.org/2000/svg)" 0
    check_eq "scripts that end in $page.html" "$(grep -o '</script>' "$tmp/$page.html" | wc -l)" 2
    check_eq "scripts that begin in $page.html" \
        "$(grep -oE '<script|<!--' "$tmp/$page.html" | wc -l)" 2
done
check_eq 'columns of the page' "$(grep -o '"columns":' "$tmp/two.html" | wc -l)" 2
expect_line "$tmp/two.html" '"status":"interrupted"' 'the torn run is not interrupted'
for arguments in '' "$tmp/one" "$tmp/one $tmp"; do
    # shellcheck disable=SC2086  # words
    "$dtrain" report $arguments >"$tmp/out" 2>"$tmp/err"
    check_eq "exit code of 'report $arguments'" $? 2
done
"$dtrain" report "$tmp" "$tmp/none.html" 2>"$tmp/err"
check_eq 'exit code without a run' $? 1
[ ! -e "$tmp/none.html" ] || fail 'a page in spite of an error'

# A run that stopped early at step 36 and goes on: the steps are those of its end, the time is that
# of now.
mkdir "$tmp/on"
printf '%s\n' '{"kind":"start","step":0}' \
    '{"kind":"train","step":30,"samples_per_sec":7,"wall_secs":4000}' \
    '{"kind":"final","step":36,"status":"early_stopped","wall_secs":5000,"samples_per_sec":9}' \
    >"$tmp/on/metrics.jsonl"
"$dtrain" report "$tmp/on" "$tmp/ended.html" || fail 'report of a run that stopped early'
echo '{"kind":"start","step":36}' >>"$tmp/on/metrics.jsonl"
"$dtrain" report "$tmp/on" "$tmp/on.html" || fail 'report of a run that goes on'
expect_line "$tmp/ended.html" '"ended":true' 'the run has not ended'
expect_line "$tmp/on.html" '"ended":false' 'the run has ended'
# Damaged records: an evaluation that lacks its step, a metric that is not UTF-8, rows of a matrix
# that are none.
for matrix in '[[1,0],[0,1]]' '[1,2]'; do
    rm -rf "$tmp/damaged"
    mkdir "$tmp/damaged"
    printf '[eval]\nmetric = \351\n' >"$tmp/damaged/config.ini"
    printf '{"kind":"eval","loss":1,"confusion":%s}\n' "$matrix" >"$tmp/damaged/metrics.jsonl"
    "$dtrain" report "$tmp/damaged" "$tmp/damaged.html" 2>"$tmp/err" || fail "$(cat "$tmp/err")"
    check_eq "runs with $matrix" "$(grep -c '"name":"damaged"' "$tmp/damaged.html")" 1
    check_eq "matrices of $matrix" "$(grep -c '"matrix":\[\[' "$tmp/damaged.html")" \
        "$([ "$matrix" = '[1,2]' ] && echo 0 || echo 1)"
done
for name in my.ini page; do
    "$dtrain" report "$tmp/one" "$tmp/$name" 2>"$tmp/err"
    check_eq "exit code with $name for a page" $? 2
    grep -q 'ends in .html' "$tmp/err" || fail "$(cat "$tmp/err")"
done

# A search of 60 trials, of which model.hidden alone decides the score: runs of the best 48, the
# best first.
for t in $(seq 0 59); do
    mkdir -p "$(printf '%s/search/trials/%04d' "$tmp" "$t")"
    cp "$tmp/on/metrics.jsonl" "$(printf '%s/search/trials/%04d/metrics.jsonl' "$tmp" "$t")"
done
awk 'BEGIN {
    for (t = 0; t < 60; t++) {
        score = "\"score\":" (t == 40 ? 0.5 : 2 - t % 2)
        rate = 10 ^ (-3 + t * 7 % 60 / 59)
        hidden = t % 2 ? "<b>x" : 64
        if (t == 9)
            result = "\"status\":\"diverged\",\"error\":\"</script>\""
        else
            result = "\"status\":\"completed\"," score
        keys = "\"train.lr\":\"" rate "\",\"model.hidden\":\"" hidden "\""
        printf "{\"kind\":\"trial\",\"trial\":%d,%s,\"settings\":{%s},\"secs\":2}\n",
            t, result, t ? keys : ""
    }
}' >"$tmp/search/search.jsonl"
echo '{"kind":"ensemble","trials":60,"members":[40,1],"score":0.4}' >>"$tmp/search/search.jsonl"
printf '[search]\nspace = "train.lr=log 1e-3..1e-2\\x3b model.hidden=64|<b>x"\n' \
    >"$tmp/search/trials/0040/config.ini"
"$dtrain" report "$tmp/search" "$tmp/search.html" || fail 'report of a search'
check_eq 'trials of the page' "$(grep -o '"kind":"trial"' "$tmp/search.html" | wc -l)" 60
check_eq 'runs of the page' "$(grep -o '"name":"00..",' "$tmp/search.html" | wc -l)" 48
grep -qF '"search.space":"train.lr=log 1e-3..1e-2; model' "$tmp/search.html" ||
    fail 'the value of a key is in quotes'
check_eq 'the best runs' "$(grep -o '"name":"00..",' "$tmp/search.html" | head -n 2 | tr -d '\n')" \
    '"name":"0040","name":"0001",'
check_eq 'scripts that end' "$(grep -o '</script>' "$tmp/search.html" | wc -l)" 2

command -v chromium >/dev/null ||
    skip 'chromium is not installed: the pages are written, but not drawn'
for page in one two; do
    timeout "$limit" chromium --headless --no-sandbox --disable-gpu \
        --user-data-dir="$tmp/chromium" --dump-dom "file://$tmp/$page.html" >"$tmp/dom" \
        2>/dev/null || fail 'chromium'
    for text in 'Held-out accuracy' 'Starts and ends' 'Configuration' 'confusion at step' \
        'What columns are worth' \
        '&lt;/script&gt;&lt;b&gt;x' 'caf\xE9'; do
        grep -qF -e "$text" "$tmp/dom" || fail "$page.html does not show '$text'"
    done
    check_ge "curves of $page.html" "$(grep -o '<path d="M' "$tmp/dom" | wc -l)" 3
done
for page in ended on; do
    timeout "$limit" chromium --headless --no-sandbox --disable-gpu \
        --user-data-dir="$tmp/chromium" --dump-dom "file://$tmp/$page.html" >"$tmp/dom" \
        2>/dev/null || fail 'chromium'
    [ $page = on ] && want='36 7 1:06:40' || want='36 9 1:23:20'
    check_eq "steps, speed and time of $page.html" \
        "$(grep -o '<td class="number">[^<]*' "$tmp/dom" |
        sed -n '3,5s/.*>//p' | paste -s -d ' ')" "$want"
done
timeout "$limit" chromium --headless --no-sandbox --disable-gpu --user-data-dir="$tmp/chromium" \
    --dump-dom "file://$tmp/search.html" >"$tmp/dom" 2>/dev/null || fail 'chromium'
for text in '60 trials decided' 'Best score so far, by time' 'Which keys mattered' '>failed<' \
    '>0.005<' '>&lt;b&gt;x</text>' '48 of 60'; do
    grep -qF -e "$text" "$tmp/dom" || fail "search.html does not show '$text'"
done
check_eq 'members among the lines' \
    "$(grep -o '<path d="M[^>]*stroke="var(--c1)" stroke-width="2"' "$tmp/dom" | wc -l)" 2
check_eq 'shares of the keys' \
    "$(grep -o '<td class="number">[0-9]* %' "$tmp/dom" | sed 's/.*>//' | paste -s -d ' ')" \
    '72 % 0 %'
