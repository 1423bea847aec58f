#!/bin/sh
# Fails if `dtrain launch` gives up, tries for ever, or starts at the beginning. A killed rank costs
# a restart, not the run, and not a bit of it; the user's error is not tried again; signals stop the
# job at a checkpoint; a host that is gone is left out.
# seconds: 60
# waits
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/mpirun.sh"
"$recipes/exp-data.sh" "$tmp/data"
common="$recipes/exp-curve.ini data.train=$tmp/data/train.csv data.eval=$tmp/data/test.csv
    eval.steps=-1 run.replicas=2 run.log_steps=10 run.checkpoint_steps=50 train.max_steps=200
    test.slow_rank=1 test.slow_secs=0.005"
restarts=3
# launch DIR OPTION...: in the background, until its first record; $job: its pid.
launch() {
    dir=$tmp/$1
    shift
    "$dtrain" launch --oversubscribe --restarts $restarts -np 3 $common run.dir="$dir" "$@" \
        >"$dir.out" 2>"$dir.err" &
    job=$!
}
# once OPTION...: launch that makes no run directory; its messages are in $tmp/err.
once() { "$dtrain" launch "$@" run.dir="$tmp/none" 2>"$tmp/err"; }
# stop_once FILE OPTION...: launch, asked to stop once the file is there; its exit code.
stop_once() {
    there=$1
    shift
    "$dtrain" launch "$@" $common run.dir="$tmp/none" 2>"$tmp/err" &
    job=$!
    wait_until test -e "$there" || fail "$there is not made"
    kill -INT $job
    wait $job
}
errors() { grep -c '^dtrain: error:' "$1"; }

# An mpirun that says that it ends the job, and does not, is ended, if ranks were on other hosts
# only.
as_mpirun "$tmp/aborting" <<END
[ ! -e "$tmp/aborted" ] || exit 75
touch "$tmp/aborted"
sleep 1000 &
sleep 1
noticed='mpirun noticed that process rank 1 with PID 7 on node far exited on signal 9 (Killed).'
echo "\$noticed" >&2
echo 'a non-zero exit code. Per user-direction, the job has been aborted.' >&2
exec sleep 1000
END
launch aborts
aborts=$job
# An mpirun whose ranks live is not ended, however long they are silent.
cp "$(command -v sleep)" "$tmp/dtrain"
as_mpirun "$tmp/living" <<END
"$tmp/dtrain" 26
exit 75
END
launch lives
lives=$job
# An mpirun that exits with 0 after a job that was not at its end is not believed.
as_mpirun "$tmp/early" <<END
[ ! -e "$tmp/once" ] || exec $true_mpirun "\$@"
touch "$tmp/once"
$true_mpirun "\$@" run.checkpoint_steps=40 &
train60='"kind":"train","step":60'
until grep -q "\$train60" "$tmp/believed/metrics.jsonl" 2>/dev/null; do sleep 0.05; done
kill -KILL \$!
sleep 2
exit 0
END
launch believed test.slow_secs=0.03
believed=$job
# A host's answer counts, even if launch itself was stopped until the host's time was over.
as_mpirun "$tmp/answered" <<'END'
exit 75
END
# script FILE: makes the script on standard input.
script() {
    { echo '#!/bin/sh' && cat; } >"$1"
    chmod +x "$1"
}
printf 'slow slots=2\n' >"$tmp/slow"
script "$tmp/slowly" <<END
touch "$tmp/asked"
sleep 1
END
"$dtrain" launch --mca plm_rsh_agent "$tmp/slowly" --hostfile "$tmp/slow" -np 2 $common \
    run.dir="$tmp/none" 2>"$tmp/slow.err" &
slow=$!
wait_until test -e "$tmp/asked" || fail 'no host is asked'
kill -STOP $slow
stopped_at=$(date +%s)
PATH=$true_path
launch quiet
quiet=$job
launch killed test.slow_secs=0.1 run.resume=never # continues from what the job itself saved
await_checkpoint "$dir" || fail_with "$dir.err" 'no checkpoint'
kill -KILL "$(pid "$dir" dtrain 1)" || fail 'the run ends before a rank is killed'
killed=$job
wait $quiet || fail_with "$tmp/quiet.err" 'undisturbed'
want=$(crc "$tmp/quiet")
wait $killed || fail_with "$dir.err" 'a killed rank'
check_eq 'bits after a killed rank' "$(crc "$dir")" "$want"
check_eq starts "$(grep -c -e 'starting at step' -e 'resuming at step' "$dir.err")" 2
check_eq restarts "$(records "$dir" launch event)" restart
expect_line "$dir.err" 'resuming at step [1-9]' 'not from the checkpoint'
wait $believed || fail_with "$tmp/believed.err" 'an early 0'
check_eq 'bits after an early 0' "$(crc "$tmp/believed")" "$want"

if [ $mpi = openmpi ]; then # Hydra has no such limit
    "$dtrain" launch -np 4096 $common run.dir="$tmp/crowded" >"$tmp/out" 2>"$tmp/err"
    check_eq 'exit with fewer slots than ranks' $? 2
    check_eq 'what is said of it' \
        "$(grep -c '^dtrain: error: launch: mpirun has fewer slots than ranks' "$tmp/err")" 1
fi
"$dtrain" launch -np 2 --hostfile "$tmp/nowhere" $common run.dir="$tmp/crowded" \
    >"$tmp/out" 2>"$tmp/err"
check_eq 'exit without the host file' $? 1
expect_no_line "$tmp/err" restart 'a host file that is not there is waited for'
PATH=/nowhere "$dtrain" launch -np 2 $common run.dir="$tmp/none" 2>"$tmp/err"
check_eq 'exit without mpirun' $? 1
check_eq 'what is said without mpirun' "$(grep '^dtrain: error:' "$tmp/err")" \
    'dtrain: error: launch: cannot run mpirun: No such file or directory'
for wrong in '-np 2.5' '-np 1e12' '--restarts x' '-np 2 --grow 5' '-wdir /tmp'; do
    "$dtrain" launch $wrong $common run.dir="$tmp/none" 2>"$tmp/err"
    check_eq "exit of launch $wrong" $? 2
done
# A pipe cannot be read a second time.
mkfifo "$tmp/fifo"
for pipe in data.train=/dev/stdin "data.eval=$tmp/fifo" /dev/fd/0; do
    printf 'a,y\n1,0\n2,1\n' | "$dtrain" launch -np 2 "$pipe" run.dir="$tmp/pipe" 2>"$tmp/err"
    check_eq "exit of launch with $pipe" $? 2
    expect_line "$tmp/err" "^dtrain: error: launch: $pipe: a pipe is gone" 'no word of a pipe'
done

# After a start that was right, launch tries again what would be wrong at a first start: a run
# directory that is still held, and too few ranks on the hosts that are left. Not so a limit of
# mpirun's.
as_mpirun "$tmp/holding" <<END
echo x >>"$tmp/holds"
case \$(wc -l <"$tmp/holds") in
1) kill -KILL \$\$ ;;
2)
    error='in-use: runs/"x": in use by another dtrain (pid 7 on node1)'
    echo "[1,0]<stderr>:dtrain: error: \$error" >&2
    exit 1
    ;;
3) echo 'dtrain: error: expected at least 3 processes' >&2; exit 2 ;;
4) exit 110 ;;
esac
END
restarts=3
mkdir "$tmp/held"
: >"$tmp/held/metrics.jsonl"
launch held
wait $job
check_eq 'exit of an mpirun that comes to its limit' $? 1
check_eq 'starts' "$(wc -l <"$tmp/holds")" 4
grep -qF '"reason":"in-use: runs/\"x\": in use' "$tmp/held/metrics.jsonl" ||
    fail_with "$tmp/held/metrics.jsonl" 'the record of a reason with quotes'
check_eq 'what is said of it' "$(grep '^dtrain: error:.*110' "$dir.err")" \
    'dtrain: error: launch: the job ended without an error line, and mpirun with exit code 110'
# 127 is also the exit code of a rank that lacks a library: mpirun was run. Processes that it leaves
# behind with an open stderr are not waited for.
as_mpirun "$tmp/lacking" <<END
while [ ! -e "$tmp/lacked" ]; do sleep 0.1; done &
exit 127
END
restarts=1
launch lacks
wait_until sh -c "! kill -0 $job" || fail 'what a job leaves behind is waited for'
touch "$tmp/lacked"
wait $job
check_eq 'exit of ranks that cannot be run' $? 1
check_eq 'what is said of them' "$(grep '^dtrain: error:' "$dir.err")" \
    'dtrain: error: launch: the job ended without an error line, and mpirun with exit code 127'
check_eq 'starts of them' "$(grep -c 'launch: .* with nothing saved yet' "$dir.err")" 2
# A job that fails while it stops is not said to be started again.
as_mpirun "$tmp/failing" <<'END'
error='[rank 0 on node1] lost: rank 1 on node7 is gone: its connection closed'
trap 'echo "dtrain: error: $error" >&2; exit 1' USR1
echo 'dtrain: starting' >&2
sleep 0.5
touch "$FAILS"
while :; do sleep 0.05; done
END
export FAILS="$tmp/fails"
stop_once "$FAILS" -np 2
check_eq 'exit of a stop that fails' $? 75
check_eq 'what is said of it' "$(grep -o 'launch: [a-z]*' "$tmp/err")" 'launch: end'
restarts=3
# A request before there are ranks, which mpirun passes on to none, ends it.
as_mpirun "$tmp/starting" <<'END'
trap 'exit 9' USR1
trap 'echo term >"$STARTS"; exit 1' TERM
touch "$STARTS"
while :; do sleep 0.05; done
END
export STARTS="$tmp/starts"
stop_once "$STARTS" -np 2
check_eq 'exit of a stop before there are ranks' $? 75
check_eq 'what mpirun has got' "$(cat "$tmp/starts")" term
# A reader of stderr that is gone, as tee is after ^C, ends nothing.
as_mpirun "$tmp/talking" <<'END'
trap 'echo asked >"$TALKS"; exit 75' USR1
while :; do echo 'dtrain: words' >&2; sleep 0.05; done
END
mkfifo "$tmp/ends"
TALKS=$tmp/talks "$dtrain" launch -np 2 $common run.dir="$tmp/none" 2>"$tmp/ends" &
job=$!
head -n 3 "$tmp/ends" >/dev/null
sleep 0.5
kill -HUP $job
wait $job
check_eq 'exit of a stop without a reader' $? 75
check_eq 'its job' "$(cat "$tmp/talks")" asked
PATH=$true_path
# A signal gets through to a job that floods stderr, faster than it is read from the launcher.
mkfifo "$tmp/flood"
as_mpirun "$tmp/flooding" <<'END'
yes 'dtrain: words' >&2 & one=$!
yes 'dtrain: words' >&2 & two=$!
trap 'kill $one $two; exit 75' USR1
touch "$FLOODS"
wait
END
FLOODS=$tmp/floods "$dtrain" launch -np 2 $common run.dir="$tmp/none" 2>"$tmp/flood" &
job=$!
while [ -n "$(head -c 4096)" ]; do :; done <"$tmp/flood" &
wait_until test -e "$tmp/floods" || fail 'no flood'
kill -INT $job
wait_until sh -c "! kill -0 $job" || { kill -KILL $job; fail 'a flood holds a signal back'; }
wait $job
check_eq 'exit of a stop in a flood' $? 75
PATH=$true_path

# Hosts that answer an agent of several words, with the slots that all lines together name; where
# one line names no slots, mpirun decides.
script "$tmp/agent" <<'END'
[ "$1 $2 $4" = '-p 2222 true' ] && [ "$3" != away ] && [ "$3" != bobs ] && [ "$3" != "$OWN" ]
END
as_asking_mpirun "$tmp/asking"
# hosts_of LINES: what mpirun gets for a host file with those lines and eight ranks.
hosts_of() {
    printf "$1" >"$tmp/hosts"
    mkdir -p "$tmp/files"
    (
        export TMPDIR="$tmp/files"
        once --mca plm_rsh_agent "$tmp/agent -p 2222 : ssh" --hostfile "$tmp/hosts" -np 8 $common
    ) | tr '\n' ' '
}
# slots WHAT LINES WANT
slots() { check_eq "slots $1" "$(hosts_of "$2")" "$3"; }
known='# all\n\na slots=2\nb slots=1 max_slots=9 # not slots=7\naway slots=4\nc max_slots=4 slots=3'
if [ $mpi = openmpi ]; then
    slots 'that are known' "$known" 'np 6 a slots=2 b slots=1 max_slots=9  c max_slots=4 slots=3 '
    expect_line "$tmp/err" 'warning: -np 8: the hosts that answer have 6 slots: 6 ranks start'
    slots 'that are not' 'a slots=2\nb\n' 'np 8 a slots=2 b '
    slots 'by names, a line a slot' 'a\na\naway\naway\nb cpu=3\na # again\n' \
        'np 6 a slots=3 b cpu=3 '
    slots "of another's login" 'bobs slots=1 username=bob\n' 'np 1 bobs slots=1 username=bob '
    slots 'that have a limit alone' 'a slots=2\nb max_slots=4\n' 'np 8 a slots=2 b max_slots=4 '
else
    slots 'that are known' "$known" 'np 6 a:2 b:1 c:3 '
    slots "in Hydra's words" 'a:2\naway:4\nb:1\n' 'np 3 a:2 b:1 '
    slots 'that are not' 'a:2\nb max_slots=4\n' 'np 8 a:2 b:1 '
fi
# A host file that is wrong is refused at once, by its name.
for wrong in 'a slot=3' 'a slots=many' 'a:3' ''; do
    [ $mpi = openmpi ] || [ "$wrong" != 'a:3' ] || continue
    printf '# hosts\n%s\n' "$wrong" >"$tmp/hosts"
    once --hostfile "$tmp/hosts" $common >"$tmp/out"
    check_eq "exit with a host file of '$wrong'" $? 2
    check_eq 'lines' "$(grep -c . "$tmp/err")" 1
    expect_line "$tmp/err" "^dtrain: error: launch: $tmp/hosts:.*expected .*NAME slots=9" \
        'the host file is not named'
done
# An agent whose name starts like a configuration.
script "$tmp/tests" <<'END'
[ "$2" = true ]
END
echo 'a slots=2' >"$tmp/hosts"
once --mca plm_rsh_agent "$tmp/tests" --hostfile "$tmp/hosts" $common >"$tmp/out"
check_eq 'exit with an agent that begins with a test' $? 75
# Hosts that do not answer do not delay a stop.
script "$tmp/never" <<END
touch "$tmp/late"
exec sleep 1000$$
END
stop_once "$tmp/late" --mca plm_rsh_agent "$tmp/never" --hostfile "$tmp/hosts"
check_eq 'exit of a stop while hosts are asked' $? 75
expect_no_line "$tmp/err" 'does not answer' 'a stop waits for hosts'
unasked() { [ -z "$(echo "1000$$" | grep -lzxFf - /proc/[0-9]*/cmdline 2>/dev/null)" ]; }
wait_until unasked || fail 'a host is asked for ever'
# An address of this host needs no agent, as in mpirun.
OWN=$(hostname -I | tr ' ' '\n' | grep -m 1 '^[0-9.]*$')
export OWN
asked="np 2 $OWN slots=2 "
[ $mpi = openmpi ] || asked="np 2 $OWN:2 "
[ -z "$OWN" ] || slots 'at an address of this host' "away slots=4\n$OWN slots=2\n" "$asked"
# Lines without slots: if the hosts that are left have too few, each of their slots gets a rank.
as_mpirun "$tmp/filling" <<END
echo "\$*" | grep -oe '-np [0-9]*' >>"$tmp/fills" || echo all >>"$tmp/fills"
case \$(wc -l <"$tmp/fills") in
1) kill -KILL \$\$ ;;
2) echo 'There are not enough slots available in the system' >&2; exit 1 ;;
esac
exit 75
END
hosts_of 'a\nb\n' >"$tmp/out"
check_eq 'ranks of three starts' "$(paste -s -d ' ' "$tmp/fills")" '-np 8 -np 8 all'
check_eq 'host files that stay' "$(ls "$tmp/files" | wc -l)" 0
echo >"$tmp/fills" # so that the first start is the one with too few slots
hosts_of 'a\naway\n' >"$tmp/out"
check_eq 'ranks of a first start without a host' "$(paste -s -d ' ' "$tmp/fills")" ' -np 8 all'
PATH=$true_path
# A configuration may have any name.
printf '# mine\n\n[train]\nlr = fast\n' >"$tmp/my.conf"
"$dtrain" launch -np 2 "$tmp/my.conf" run.dir="$tmp/none" 2>"$tmp/err"
check_eq 'exit of a wrong configuration of another name' $? 2

while [ "$(date +%s)" -lt $((stopped_at + 17)) ]; do sleep 0.2; done # a host has 15 s
kill -CONT $slow
wait $slow
check_eq 'exit with a slow host' $? 75
expect_no_line "$tmp/slow.err" 'does not answer' 'a host that answers is left out'
wait $lives
check_eq 'exit of a job that says nothing for long' $? 75
check_eq 'its errors' "$(errors "$tmp/lives.err")" 0
wait $aborts
check_eq 'exit after an mpirun that does not end the job' $? 75
expect_line "$tmp/aborts.err" \
    'launch: restart .*: mpirun noticed that process rank 1 .* on node far' \
    'a rank that mpirun alone saw end is not named'
