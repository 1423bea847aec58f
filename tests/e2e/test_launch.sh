#!/bin/sh
# `dtrain launch`: a rank that is killed costs a restart, not the run, and not a bit of it; what is the
# user's error is not tried again; signals stop the job at a checkpoint; a host that is gone is left out.
# Would catch a launcher that gives up, tries for ever, or starts at the beginning.
# seconds: 120
. "$(dirname "$0")/lib.sh"
"$recipes/exp-data.sh" "$tmp/data"
# launch DIR OPTION...: in the background, until its first record; $job: its pid
common="$recipes/exp-curve.ini data.train=$tmp/data/train.csv data.eval=$tmp/data/test.csv eval.steps=-1 run.replicas=2
    run.log_steps=10 run.checkpoint_steps=50 train.max_steps=300 test.slow_rank=1 test.slow_secs=0.005"
launch() {
    dir=$tmp/$1
    shift
    "$dtrain" launch --oversubscribe -np 3 $common run.dir="$dir" "$@" >"$tmp/out" 2>"$tmp/err" &
    job=$!
}
begun() { settle 20 grep -q '"kind":"train","step":'"$1" "$dir/metrics.jsonl" || { cat "$tmp/err"; fail "$dir does not start"; }; }
starts() { grep -c -e 'starting at step' -e 'resuming at step' "$tmp/err"; }

launch quiet
wait $job || { cat "$tmp/err"; fail 'undisturbed'; }
want=$(crc "$tmp/quiet")

launch killed
begun 60
kill -KILL "$(pid "$dir" dtrain 1)"
wait $job || { cat "$tmp/err"; fail 'a killed rank'; }
check_eq 'bits behind a killed rank' "$(crc "$dir")" "$want"
check_eq starts "$(starts)" 2
check_eq restarts "$(records "$dir" launch event)" restart
grep -q 'resuming at step [1-9]' "$tmp/err" || fail 'not from the checkpoint'

launch stopped
begun 60
kill -INT $job
wait $job
check_eq 'exit of a stop' $? 75
check_eq 'status of a stop' "$(record "$dir" final status)" stopped
launch stopped
wait $job || fail 'going on'
check_eq 'bits behind a stop' "$(crc "$dir")" "$want"

launch wrong train.lr=fast
wait $job
check_eq 'exit of a wrong option' $? 2
launch wrong data.label=nowhere
wait $job
check_eq 'exit of a wrong label' $? 1
[ "$(grep -c '^dtrain: error:' "$tmp/err")" -eq 1 ] || { cat "$tmp/err"; fail 'one line'; }

"$dtrain" launch -np 4096 $common run.dir="$tmp/crowded" >"$tmp/out" 2>"$tmp/err"
check_eq 'exit with fewer slots than ranks' $? 2
check_eq 'what is said of it' "$(grep -c '^dtrain: error: launch: mpirun has fewer slots than ranks' "$tmp/err")" 1
"$dtrain" launch -np 2 --hostfile "$tmp/nowhere" $common run.dir="$tmp/crowded" >"$tmp/out" 2>"$tmp/err"
check_eq 'exit without the host file' $? 1
! grep -q restart "$tmp/err" || { cat "$tmp/err"; fail 'a host file that is not there is waited for'; }
launch hopeless --x
wait $job
check_eq 'exit without a hope' $? 2

PATH=/nowhere "$dtrain" launch -np 2 $common run.dir="$tmp/none" 2>"$tmp/err"
check_eq 'exit without mpirun' $? 1
check_eq 'what is said without mpirun' "$(grep '^dtrain: error:' "$tmp/err")" \
    'dtrain: error: launch: cannot run mpirun'

# An mpirun that says 0 behind a job that was not at its end is not believed.
mkdir "$tmp/early"
cat >"$tmp/early/mpirun" <<END
#!/bin/sh
[ ! -e "$tmp/early/once" ] || exec $(command -v mpirun) "\$@"
touch "$tmp/early/once"
$(command -v mpirun) "\$@" run.checkpoint_steps=40 &
until grep -q '"kind":"train","step":60' "$tmp/believed/metrics.jsonl" 2>/dev/null; do sleep 0.05; done
kill -KILL \$!
sleep 2
exit 0
END
chmod +x "$tmp/early/mpirun"
path=$PATH
PATH=$tmp/early:$PATH
launch believed
wait $job || { cat "$tmp/err"; fail 'an early 0'; }
PATH=$path
check_eq 'bits behind an early 0' "$(crc "$tmp/believed")" "$want"

# A signal gets through to a job that floods stderr, faster than it is read from the launcher.
mkdir "$tmp/bin"
mkfifo "$tmp/flood"
cat >"$tmp/bin/mpirun" <<'END'
#!/bin/sh
yes >&2 & one=$!
yes >&2 & two=$!
trap 'kill $one $two; exit 75' USR1
touch "$FLOODS"
wait
END
chmod +x "$tmp/bin/mpirun"
FLOODS=$tmp/floods PATH=$tmp/bin:$PATH "$dtrain" launch -np 2 $common run.dir="$tmp/none" 2>"$tmp/flood" &
job=$!
while [ -n "$(head -c 4096)" ]; do :; done <"$tmp/flood" &
settle 20 test -e "$tmp/floods" || fail 'no flood'
kill -INT $job
settle 20 sh -c "! kill -0 $job" || { kill -KILL $job; fail 'a flood holds a signal back'; }
wait $job
check_eq 'exit of a stop in a flood' $? 75
