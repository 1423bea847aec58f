#!/bin/sh
# Fails if `dtrain top` needs the run's own host or the end of the records. It and the status file
# show a run that goes on, one that was killed, one whose records are torn, and one that has ended.
# waits
. "$(dirname "$0")/lib.sh"
export LC_ALL=C
shows() { expect_line "$tmp/top" "$1" "top does not show '$1'"; }
top() { "$dtrain" top --once "$tmp/run" >"$tmp/top" 2>"$tmp/err" || fail "top: $(cat "$tmp/err")"; }

mkdir "$tmp/run"
touch "$tmp/run/lock"
"$dtrain" top --once "$tmp/run" >"$tmp/top" || fail 'a run that has no records yet'
shows 'no records yet'
rm -r "$tmp/run"
# Beside it: local steps begin between the second and third status (each 2 s), and samples go on. 20
# a step of 50 ms.
"$dtrain" "$recipes/penguins.ini" run.dir="$tmp/local" train.local_steps=2 train.local_after=60 \
    train.max_steps=90 train.batch=20 run.log_steps=1 test.slow_rank=0 test.slow_secs=0.05 \
    >"$tmp/local.out" 2>&1 &
local=$!
mpirun --oversubscribe -np 3 "$dtrain" "$recipes/penguins.ini" run.dir="$tmp/run" train.epochs=1e7 \
    run.checkpoint_steps=1000 run.log_steps=1000 eval.steps=1000 >"$tmp/out" 2>&1 &
while [ -e "/proc/$local" ]; do
    sleep 0.3
    cat "$tmp/local/status.json"
done >"$tmp/local.status" 2>/dev/null &
wait_until test -s "$tmp/run/status.json" || fail "no status: $(cat "$tmp/out")"
[ ! -e /usr/bin/python3 ] || /usr/bin/python3 -m json.tool "$tmp/run/status.json" >"$tmp/out" ||
    fail 'status.json is not JSON'
for key in step epoch loss lr samples_per_sec wall_secs secs_left; do
    head -n 1 "$tmp/run/status.json" | grep -q "\"$key\":" || fail "status.json has no $key"
done
waiting() {
    sed 's/  */ /g' "$tmp/top" | grep -cE '^ [12] [^ ]+ worker [0-9]+ ([0-9]+ )?[0-9.]+ [0-9]+$'
}
evaluated() { top; grep -q '^best accuracy' "$tmp/top" && [ "$(waiting)" -eq 2 ]; }
wait_until evaluated || fail_with "$tmp/top" 'neither an evaluation nor who waits'
shows ': running on .*, seen .* s ago'
shows '^step [0-9]* of 90000000 .* left$'
shows '^best accuracy 0.9'
shows '^last checkpoint'
! grep -q 'does\|synchronization' "$tmp/top" ||
    fail_with "$tmp/top" 'what all ranks do whenever somebody looks'
check_eq 'ranks shown' "$(grep -cE '^ +[0-2]  .*(bank|worker) ' "$tmp/top")" 3
cat "$tmp/top"
check_eq 'workers that say how long they wait' "$(waiting)" 2
worker_rates() {
    top
    [ "$(sed 's/  */ /g' "$tmp/top" |
        grep -cE '^ [12] [^ ]+ worker [0-9]+ [1-9][0-9]* [0-9.]+ [0-9]+$')" -eq 2 ]
}
wait_until worker_rates || fail_with "$tmp/top" 'workers do not say their samples a second'
"$dtrain" top "$tmp/run" >"$tmp/top" </dev/null || fail 'top into a file'
shows '^rank  host'
if command -v script >/dev/null; then
    sleep 9 |
        timeout "$limit" script -qec "timeout --foreground 8 '$dtrain' top '$tmp/run'; stty -a" \
            /dev/null >"$tmp/top"
    shows ' icanon .* echo '
    { wait_until grep -q 'running on' "$tmp/top"; printf q; } |
        timeout "$limit" script -qec "'$dtrain' top '$tmp/run'" /dev/null >"$tmp/top" ||
        fail 'q does not end it'
    shows ': running on'
fi
for rank in 0 1 2; do kill -9 "$(pid "$tmp/run" dtrain $rank)" 2>/dev/null; done
wait
check_le 'samples a second with local steps' "$(tr ',}' '\n' <"$tmp/local.status" |
    sed -n 's/"samples_per_sec"://p' | sort -g | tail -n 1)" 600
wait_until gone || fail 'the run goes on'
printf '{"kind":"train","step":9' >>"$tmp/run/metrics.jsonl"
top
shows ': interrupted'
! grep -q ' left$' "$tmp/top" || fail 'a run that was killed has time left'
"$dtrain" compare "$tmp/run" >"$tmp/top" || fail compare
shows 'interrupted'
job 3 "$recipes/penguins.ini" run.dir="$tmp/done" train.epochs=2 2>"$tmp/err" ||
    fail "$(cat "$tmp/err")"
[ ! -e "$tmp/done/status.json" ] || fail 'status.json outlives its run'
"$dtrain" top "$tmp/done" --once >"$tmp/top" || fail top
shows ': completed'
# Of a bank that was killed.
echo '{"ranks": [{"rank": 0, "phase": "gradient"}]}' >"$tmp/done/status.json"
: >"$tmp/run/metrics.jsonl"
"$dtrain" top "$tmp/done" --once >"$tmp/top" || fail top
! grep -q gradient "$tmp/top" || fail 'the status of an ended run is shown'
rm -f "$tmp/run/status.json"
top
shows '^nothing recorded yet$'
# An early stop before the first record of training.
mkdir "$tmp/early"
cat >"$tmp/early/metrics.jsonl" <<END
{"kind":"start","step":0}
{"kind":"final","status":"early_stopped","step":12,"epoch":12,"loss":null,"samples_per_sec":5000,\
"wall_secs":1}
END
"$dtrain" top "$tmp/early" >"$tmp/top" || fail 'top of an early stop'
shows '^5000 samples/s$'
! grep nan "$tmp/top" || fail 'what is not known is shown'
# More ranks than a terminal has lines, and losses whose sums and differences no number holds.
mkdir "$tmp/crowd"
cat >"$tmp/crowd/metrics.jsonl" <<'END'
{"kind":"train","step":1,"wall_secs":1,"loss":1e308}
{"kind":"train","step":2,"wall_secs":1,"loss":-1e308}
{"kind":"train","step":3,"wall_secs":1,"loss":1e308}
END
for rank in $(seq 40); do
    echo '{"rank":'"$rank"',"host":"n","role":"worker","phase":"compute"}'
done | paste -s -d , | sed 's/.*/{"step":3,"last_step":9,"ranks":[&]}/' >"$tmp/crowd/status.json"
"$dtrain" top "$tmp/crowd" >"$tmp/top" || fail 'top of 40 ranks'
check_eq 'ranks shown once' "$(grep -c ' worker ' "$tmp/top")" 40
if command -v script >/dev/null; then
    sleep 9 |
        timeout "$limit" script -qec \
            "stty rows 24 cols 80; timeout --foreground 8 '$dtrain' top '$tmp/crowd'" /dev/null \
            >"$tmp/top"
    check_eq 'ranks that 24 lines have room for' \
        "$(sed '/^and 27 more/q' "$tmp/top" | grep -c ' worker ')" 13
    shows '^and 27 more'
fi
odd=$tmp/$(printf 'a\033[1mb')
mkdir "$odd"
: >"$odd/metrics.jsonl"
"$dtrain" top "$odd" >"$tmp/top" || fail 'top of an odd name'
shows '/a?\[1mb: interrupted'
for arguments in '' "$tmp/run $tmp/done" '--twice'; do
    # shellcheck disable=SC2086  # words
    "$dtrain" top $arguments 2>"$tmp/err" >"$tmp/out"
    check_eq "exit code of 'top $arguments'" $? 2
done
