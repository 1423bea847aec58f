#!/bin/sh
# Fails if a CSV with a header, text labels and ignored columns does not learn its classes, or a
# byte order mark, CRLF or quotes change the bits.
. "$(dirname "$0")/lib.sh"
run() { job 3 "$recipes/penguins.ini" run.dir="$tmp/$1" data.train="$2" || fail "$1"; }
plain=$recipes/data/penguins.csv
run plain "$plain"
check_ge accuracy "$(record "$tmp/plain" eval accuracy)" 0.95
{
    printf '\357\273\277'
    sed 's/^\([^,]*\),\([^,]*\),/"\1","\2, or ""there""",/; s/$/\r/' "$plain"
} | sed '1s/, or ""there""//' >"$tmp/quoted.csv"
run quoted "$tmp/quoted.csv"
check_eq params_crc32c "$(crc "$tmp/quoted")" "$(crc "$tmp/plain")"
# Features as they stand make the loss explode: that is said once, and what helps; a run that learns
# says nothing.
rm -rf "$tmp/raw"
job 3 "$recipes/penguins.ini" run.dir="$tmp/raw" data.normalize=none model.activation=relu \
    train.optimizer=sgd train.epochs=4 2>"$tmp/log" || fail raw
check_eq 'warnings of the loss' \
    "$(grep -c 'warning: step .* a guess has 1.1: data.normalize=standard' "$tmp/log")" 1
rm -rf "$tmp/plain"
job 3 "$recipes/penguins.ini" run.dir="$tmp/plain" data.train="$plain" run.log_steps=1 \
    2>"$tmp/log" || fail plain
check_eq 'warnings of a run that learns' "$(grep -c 'warning: step' "$tmp/log")" 0

# A model that diverges in its last step, whose loss is still a number: its evaluation is none, and
# that is said.
printf 'a,y\n1e10,1\n1e10,1\n' >"$tmp/far.csv"
job 1 data.train="$tmp/far.csv" data.eval="$tmp/far.csv" run.dir="$tmp/far" model.task=regress \
    model.kind=linear data.normalize=none data.normalize_target=no train.optimizer=sgd \
    train.lr=1e9 train.max_steps=1 2>"$tmp/err" || fail "$(cat "$tmp/err")"
grep -q '^dtrain: warning: no evaluation gave a number' "$tmp/err" || fail "$(cat "$tmp/err")"
! grep 'no rows were held out' "$tmp/err" || fail 'rows that are held out are not'
