#!/bin/sh
# Fails if the five examples of the page on tables do not work as pasted on such tables, in at most
# four commands each, or end with a model no better than the baseline. Also fails if no run takes a
# line that `dtrain inspect` suggests, or the server has no names.
# seconds: 60
. "$(dirname "$0")/lib.sh"
sed -n '/<!-- journeys -->/,/<!-- end of journeys -->/p' scripts/doc/tables.md |
    sed '/^```/d; /^<!--/d' >"$tmp/pasted"
check_eq 'journeys' "$(grep -c '^#' "$tmp/pasted")" 5
check_le 'commands of one' "$(awk '
    /^#/ {n = 0; next}
    {if (++n > most) most = n}
    END {print most}' "$tmp/pasted")" 4
mkdir "$tmp/there" && cd "$tmp/there" || exit 1
ln -s "$dtrain" dtrain
awk -f "$root/tests/e2e/journeys.awk"
python3 -c 'import sklearn' 2>/dev/null || sed -i '/^python3/d' "$tmp/pasted"
grep -v '^\./dtrain serve\|^curl' "$tmp/pasted" >"$tmp/first"
sh -e "$tmp/first" >"$tmp/out" 2>"$tmp/err" || fail_with "$tmp/err" 'a pasted command'
check_eq 'models' "$(grep -c '^dtrain: best .* on the rows held out' "$tmp/err")" 5
expect_no_line "$tmp/err" 'not clearly better'
expect_line houses.ini '^; dates and times become numbers (data.dates): sold'
expect_line houses.ini '^ignore = id '
expect_line houses.ini '^; at most .* passes'
expect_no_line houses.ini 'all different: price'
# The metric that decides is shown, and next to it the baseline.
expect_line "$tmp/err" 'eval at step .*: loss .*, auc '
expect_line "$tmp/err" 'best auc .*; the baseline has 0.5'
expect_no_line "$tmp/err" 'loss .*, loss'
check_eq 'counts below 0' "$(grep -c '"value":-' "$tmp/out")" 0
expect_line "$tmp/err" 'model.embedding=32, model.wide=yes.*train.batch=256' \
    'many texts get no vectors'
grep '^\./dtrain serve' "$tmp/pasted" | sed 's/&$/serve.port=0/; s/^/exec /' >"$tmp/serve"
sh "$tmp/serve" 2>"$tmp/log" &
at_exit "kill $! 2>/dev/null"
serving() { grep -q ' at http' "$tmp/log"; }
wait_until serving || fail_with "$tmp/log"
port=$(sed -n 's,.* at http://127.0.0.1:\([0-9]*\)/.*,\1,p' "$tmp/log")
need curl
sed -n "/^curl/s/8501/$port/p" "$tmp/pasted" | sh >"$tmp/answer" 2>/dev/null
expect_line "$tmp/answer" '"label": *"setosa"'
