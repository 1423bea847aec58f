#!/bin/sh
# The five examples of the page on tables: what a new user pastes works on such a table, in at most four commands each, and ends with a
# model that is better than the baseline. Would catch a line of inspect's that no run takes, and a server without names.
# seconds: 60
. "$(dirname "$0")/lib.sh"
sed -n '/<!-- journeys -->/,/<!-- end of journeys -->/p' scripts/doc/tables.md | sed '/^```/d; /^<!--/d' >"$tmp/pasted"
check_eq 'journeys' "$(grep -c '^#' "$tmp/pasted")" 5
check_le 'commands of one' "$(awk '/^#/ {n = 0; next} {if (++n > most) most = n} END {print most}' "$tmp/pasted")" 4
mkdir "$tmp/there" && cd "$tmp/there" || exit 1
ln -s "$dtrain" dtrain
awk 'BEGIN {srand(1); print "id,area,heating,sold,price" >"houses.csv"; print "a,b,fraud" >"fraud.csv"
    print "age,children,visits" >"visits.csv"; print "page,hour,clicked" >"clicks.csv"; print "a,b,c,d,target" >"iris.csv"
    for (i = 0; i < 600; i++) {
        area = 50 + 100 * rand(); gas = rand() < .5; year = 1990 + int(30 * rand())
        printf "%d,%s,%s,%d-%02d-%02d,%d\n", 7 + 3 * i, rand() < .1 ? "" : area, gas ? "gas" : "oil", year, 1 + int(12 * rand()),
            1 + int(28 * rand()), 1000 * (area + 20 * gas + 5 * (year - 1990)) >"houses.csv"
        rare = rand() < .1; printf "%.3f,%.3f,%s\n", rand() + rare, rand() - rare / 2, rare ? "yes" : "no" >"fraud.csv"
        age = int(80 * rand()); k = int(3 * rand()); printf "%d,%d,%d\n", age, k, (age / 10 + 2 * k) * (.5 + rand()) >"visits.csv"
        for (j = 0; j < 20; j++) {p = int(5000 * rand()); printf "p%d,%d,%d\n", p, 24 * rand(), rand() < (p % 2 ? .9 : .1) >"clicks.csv"}
        c = i % 3; printf "%.1f,%.1f,%.1f,%.1f,%d\n", 5 + c + rand(), 3 + rand(), 1 + 2 * c + rand(), c + rand(), c >"iris.csv"
    }}'
python3 -c 'import sklearn' 2>/dev/null || sed -i '/^python3/d' "$tmp/pasted"
grep -v '^\./dtrain serve\|^curl' "$tmp/pasted" >"$tmp/first"
sh -e "$tmp/first" >"$tmp/out" 2>"$tmp/err" || { cat "$tmp/err"; fail 'a pasted command'; }
check_eq 'models, and those no better than the baseline' \
    "$(grep -c '^dtrain: best .* on the rows held out' "$tmp/err") $(grep -c 'not clearly better' "$tmp/err")" '5 0'
grep -q '^; dates and times become numbers (data.dates): sold' houses.ini && grep -q '^ignore = id ' houses.ini && ! grep -q 'all different: price' houses.ini && grep -q '^; at most .* passes' houses.ini ||
    fail "$(cat houses.ini)"
# What decides is what is shown, and next to it the baseline.
grep -q 'eval at step .*: loss .*, auc ' "$tmp/err" && grep -q 'best auc .*; the baseline has 0.5' "$tmp/err" && ! grep -q 'loss .*, loss' "$tmp/err" ||
    fail "$(grep 'eval\|best' "$tmp/err")"
check_eq 'counts below 0' "$(grep -c '"value":-' "$tmp/out")" 0
grep -q 'model.embedding=32, model.wide=yes.*train.batch=256' "$tmp/err" || fail 'many texts get no vectors'
grep '^\./dtrain serve' "$tmp/pasted" | sed 's/&$/serve.port=0/; s/^/exec /' >"$tmp/serve"
sh "$tmp/serve" 2>"$tmp/log" &
at_exit "kill $! 2>/dev/null"
serving() { grep -q ' at http' "$tmp/log"; }
settle serving || fail "$(cat "$tmp/log")"
port=$(sed -n 's,.* at http://127.0.0.1:\([0-9]*\)/.*,\1,p' "$tmp/log")
need curl
sed -n "/^curl/s/8501/$port/p" "$tmp/pasted" | sh >"$tmp/answer" 2>/dev/null
grep -q '"label": *"setosa"' "$tmp/answer" || fail "$(cat "$tmp/answer")"
