#!/bin/sh
# Fails if a search decides by arrival, loses a trial or counts it twice, has a model of another
# score than the recorded one, or ends because of a bad trial. It comes to the same decisions and
# the same bytes of its model at any number of ranks, after kills and a stop.
. "$(dirname "$0")/lib.sh"
cd "$tmp" || exit 1
awk 'BEGIN {
    srand(5)
    print "a,b,kind,y"
    for (i = 0; i < 900; i++) {
        a = 4 * rand() - 2
        b = 4 * rand() - 2
        k = int(3 * rand())
        yes = sin(2 * a) + a * b + k + 5 * rand() > 3.5
        print a "," b "," substr("pqr", k + 1, 1) "," (yes ? "yes" : "no")
    }
}' >rows.csv
keys="data.train=rows.csv run.dir=$tmp/s search.trials=9 train.epochs=6"
# search NP ARGS...: all in one directory, so that the models have the same configuration.
search() {
    np=$1
    shift
    # shellcheck disable=SC2086 # words
    job "$np" search $keys "$@" 2>err
}
decisions() { sed 's/,"secs":[^,}]*//; s/,"time_unix":[0-9]*//' "$1/search.jsonl" | cksum; }
model() { cksum <"$1/export/best/9/model.h5"; }

for np in 1 3 5; do
    search $np || { cat err; fail "np $np"; }
    mv s np$np
    cp err whole
    check_eq "decisions at np $np" "$(decisions np$np)" "$(decisions np1)"
    check_eq "model at np $np" "$(model np$np)" "$(model np1)"
done
grep -q '"trial":1,.*"model.layers":"linear"' np1/search.jsonl ||
    fail 'the second trial is not linear'
score=$(sed -n 's/.*"ensemble".*"score":\([^,}]*\).*/\1/p' np1/search.jsonl)
check_eq 'score of the model' \
    "$("$dtrain" eval np1 2>/dev/null | json loss | awk '{printf "%.6g", $1}')" "$score"
members=$(sed -n 's/.*"members":\[\([0-9,]*\)\].*/\1/p' np1/search.jsonl | tail -n 1)
case $members in *,*) ;; *) fail "one member alone: $members" ;; esac
check_eq 'trials whose weights stay' "$(ls -d np1/trials/*/export | wc -l)" \
    "$(echo "$members" | tr , '\n' | wc -l)"
first=$(printf %04d "$(echo "$members" | cut -d, -f1)")
spread=$("$dtrain" predict np1 predict.held_out=yes predict.spread=yes 2>/dev/null | head -n 1 |
    sed 's/.*"spread":\[\([^,]*\),.*/\1/')
check_ge 'deviation of the members' "$spread" 1e-6
recorded=$(sed -n "s/.*\"trial\":${members%%,*},.*\"score\":\([^,]*\).*/\1/p" np1/search.jsonl)
measured=$("$dtrain" eval "np1/trials/$first" 2>/dev/null | json loss)
check_le 'difference of scores of a member' \
    "$(awk "BEGIN { d = $recorded - $measured; print d < 0 ? -d : d }")" 3e-6

seeds=$(cat np1/trials/*/config.ini | sed -n 's/^seed = //p' | sort -u | wc -l)
check_eq 'seeds of nine trials, the linear one as the first' "$seeds" 8

# The graph of all members says what predict does.
if /usr/bin/python3 -c 'import onnx, numpy' 2>/dev/null; then
    "$dtrain" export np1 np1.onnx 2>err || { cat err; fail export; }
    awk -F, 'NR > 1 && NR < 200 { printf "{\"a\":%s,\"b\":%s,\"kind\":\"%s\"}\n", $1, $2, $3 }' \
        rows.csv >rows.jsonl
    "$dtrain" predict np1 <rows.jsonl >said 2>err || { cat err; fail predict; }
    /usr/bin/python3 "$root/tests/e2e/onnx_run.py" np1.onnx said <rows.jsonl >diff ||
        fail 'the graph'
    check_le 'difference of the graph' "$(sed 's/.*difference=\([^ ]*\).*/\1/' diff)" 1e-6
fi

# The first trial is the configuration as it is: what a run of its own comes to.
job 1 data.train=rows.csv run.dir=one train.epochs=6 data.eval_fraction=0.2 2>err ||
    { cat err; fail 'one run'; }
check_eq 'weights of the first trial' "$(crc np1/trials/0000)" "$(crc one)"

check_eq 'trials that compare shows' "$("$dtrain" compare np1 --csv | grep -c np1/trials)" 9
"$dtrain" top np1 | grep -q '^9 trials decided, 0 of them failed, [0-9.]* s of training$' ||
    fail 'top does not show the search'
"$dtrain" report np1 np1.html && grep -q 'trials/0008' np1.html ||
    fail 'report does not show the trials'
"$dtrain" inspect np1 | grep -q '^member 1$' || fail 'inspect does not show the members'

# ---- kills, a stop ------------------------------------------------------------------------------
slow='test.slow_rank=0 test.slow_secs=0.02' # each team is a world of one rank, which is its rank 0
limit=60
begun() { [ "$(grep -c '"trial"' s/search.jsonl 2>/dev/null)" -ge "$1" ]; }
for done in 1 5; do
    search 2 $slow &
    wait_until begun $done || { cat err; fail "no $done decisions"; }
    kill -9 "$(pid "$tmp/s" mpirun)"
    wait
    wait_until gone || fail 'a process is left'
    [ $done = 5 ] && continue
    search 3 $slow &
    wait_until begun 3 || { cat err; fail 'no 3 decisions'; }
    kill -USR1 "$(pid "$tmp/s" mpirun)"
    wait $!
    check_eq 'exit code of a stop' $? 75
    expect_line err 'stopped after [1-8] of 9 trials: the same command continues from there'
done
search 4 || { cat err; fail 'a search that goes on'; }
check_eq 'decisions after kills' "$(decisions s)" "$(decisions np1)"
check_eq 'model after kills' "$(model s)" "$(model np1)"
search 2 || { cat err; fail 'a search that has ended'; }
grep -q 'the search is complete' err || fail 'it does not say that it is complete'
check_eq 'decisions' "$(decisions s)" "$(decisions np1)"
search 2 run.resume=never && fail 'run.resume=never continues'
expect_line err 'error: .*: there is a search, and run.resume=never'
if search 2 'search.space=train.lr=log 0.001..0.1'; then fail 'another space'; fi
grep -q 'search.space' err || fail 'the space is not named'
# Also a key that the space does not draw.
for other in train.lr=0.02 train.epochs=5 eval.batches=1 model.hidden=8 eval.threshold=f1; do
    search 1 search.trials=10 $other && fail "$other for later trials"
    grep -q "error: .*${other%=*}=.*the run to resume has" err || { cat err; fail "$other"; }
done
job 1 data.train=rows.csv run.dir="$tmp/s" 2>err && fail 'a run in the directory of a search'
grep -q 'holds a search' err || { cat err; fail 'the search is not named'; }
rm -r s

# A kill may leave the directory of an export without the model. What was decided before it counts:
# the best so far is that of all trials.
best_so_far() { sed -n 's/^dtrain: \(trial [3-8] of 9\): .*, the best so far.*/\1/p' "$1"; }
cp -r np1 s
head -n 4 np1/search.jsonl >s/search.jsonl
rm -rf s/trials/0000/export s/export/best/*
mkdir -p s/trials/0000/export/best
search 3 || fail_with err 'an export without its model'
check_eq 'decisions after an export without its model' "$(decisions s)" "$(decisions np1)"
check_eq 'model after it' "$(model s)" "$(model np1)"
check_eq 'the best so far of a search that goes on' "$(best_so_far err)" "$(best_so_far whole)"
rm -r s

# More trials: what they choose may be a trial whose weights are gone.
search 3 search.trials=4 && search 2 || { cat err; fail 'more trials'; }
check_eq 'model with more trials' "$(model s)" "$(model np1)"
rm -r s
search 1 search.trials=2 && search 1 search.trials=3 ||
    { cat err; fail 'more trials than those without draws'; }
# Its config.ini repeats it, and has its space, even if the program has another one by now.
job 1 search s/config.ini run.dir=again 2>err || { cat err; fail 'a search from a config.ini'; }
trials() { grep '"trial"' "$1/search.jsonl" | sed 's/,"secs".*//'; }
check_eq 'trials again' "$(trials again)" "$(trials s)"
sed -i 's/^space = .*/space = "train.lr=0.001..0.002"/' s/config.ini
search 1 search.trials=4 || { cat err; fail 'a space from a config.ini'; }
grep -q '"trial":3,.*"settings":{"train.lr":"0.001[0-9]*"},' s/search.jsonl ||
    fail 'the space is not that of config.ini'
rm -r again s
# A rank that is stopped ends the search, and one line names it.
search 3 search.trials=4 run.stall_secs=3 test.slow_rank=0 test.slow_secs=0.1 &
job=$!
wait_until [ -s s/trials/0001/metrics.jsonl ] || fail_with err 'no second trial'
stopped=$(pid "$tmp/s" dtrain 2)
kill -STOP "$stopped"
wait $job
by_itself $?
kill -KILL "$stopped" 2>/dev/null
check_eq 'error lines of a stall' "$(grep -c '^dtrain: error:' err)" 1
expect_line err 'error: .*stall: no progress for 3 s .* at rank 2 on .* (stopped'
wait_until gone || fail 'a process is left after a stall'
rm -r s
search 3 search.trials=2 || fail_with err 'after a stall'
# Other rows are refused.
cp rows.csv same.csv
sed -i '7s/[0-9.]*,/3.25,/' rows.csv
search 2 search.trials=4 && fail 'other rows'
grep -q 'error: .*data.train=rows.csv: the rows are not those' err ||
    { cat err; fail 'other rows are not named'; }
mv same.csv rows.csv
rm -r s

# ---- folds --------------------------------------------------------------------------------------
for np in 1 4; do
    search $np search.trials=3 search.folds=3 search.keep=3 data.test_fraction=0.2 ||
        { cat err; fail "folds at np $np"; }
    mv s folds$np
done
check_eq 'decisions with folds' "$(decisions folds4)" "$(decisions folds1)"
check_eq 'model with folds' "$(cksum <folds4/export/best/3/model.h5)" \
    "$(cksum <folds1/export/best/3/model.h5)"
again=$(sed -n 's/.*"members":\[\([0-9,]*\)\].*/\1/p' folds1/search.jsonl | tr , '\n' | sort |
    uniq -d)
[ -z "$again" ] || fail "trial $again is a member twice"
rows=0
for fold in 0 1 2; do
    held=$("$dtrain" predict "folds1/trials/0000-$fold" predict.held_out=yes 2>/dev/null | wc -l)
    rows=$((rows + held))
done
check_eq 'rows that some fold holds out' $rows 720
test=$(sed -n 's/.*"ensemble_test":\([^,]*\).*/\1/p' folds1/search.jsonl)
again=$("$dtrain" eval folds1 2>/dev/null | sed 's/.*"test":{"rows":180,"loss":\([^,]*\).*/\1/')
check_le 'difference of scores of the test' \
    "$(awk "BEGIN { d = $test - $again; print d < 0 ? -d : d }")" 1e-6
"$dtrain" eval folds1 2>err | sed 's/,"auc".*"folds":3,.*"test":.*//' >score ||
    fail_with err 'folds'
check_eq 'rows of all folds' "$(json rows <score)" 720
check_eq 'their loss by the members that did not train on them' \
    "$(json loss <score | awk '{printf "%.6g", $1}')" \
    "$(sed -n 's/.*"ensemble".*"score":\([^,}]*\).*/\1/p' folds1/search.jsonl)"
"$dtrain" eval folds1 data.eval=rows.csv 2>err >/dev/null ||
    fail_with err 'the rows of the training'
expect_line err 'warning: data.eval=rows.csv: .* its score is too good; without data.eval'

# ---- trials that fail ---------------------------------------------------------------------------
search 3 search.trials=8 \
    'search.space=train.lr=0.003|1e9; train.optimizer=sgd; model.hidden=8|1000000,1000000' ||
    { cat err; fail 'a search with trials that fail'; }
grep -q '"status":"memory"' s/search.jsonl || fail 'no trial is too large'
grep -q '"status":"diverged"' s/search.jsonl || fail 'no trial diverges'
rm -r s
search 4 search.trials=2 train.optimizer=sgd train.lr=1e9 || fail_with err 'more teams than trials'
expect_line err 'warning: 1 of 3 teams stay idle: there are only 2 runs'
expect_line err 'warning: the model is worse than the baseline'
expect_line err "the model is in $tmp/s/export/best; next: dtrain predict $tmp/s < ROWS"
rm -r s
for wrong in 'search.space=train.lrr=1|2' 'train.mode=async' 'search.finish=2' \
    'search.ranks=2' 'run.dir=' run.resume=np1; do
    # shellcheck disable=SC2086 # words
    expect_error 2 "${wrong%%=*}" 2 search $keys "$wrong"
done
# shellcheck disable=SC2086 # words
expect_error 1 'search.folds holds out 0 of 900 rows; expected no more folds than rows' 2 \
    search $keys search.folds=1000
