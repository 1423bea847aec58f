#!/bin/sh
# Fails if `dtrain launch` gives up, tries forever, or starts from the beginning. A killed rank
# costs a restart and not a bit; a signal stops the job at a checkpoint (75); the user's errors are
# not tried again; a job that fails at every start ends; hosts that do not answer are left out.
# waits
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/mpirun.sh"
. "$root/tests/e2e/corners.sh"
make_csv "$tmp/data.csv"
common="data.train=$tmp/data.csv model.hidden=12 train.batch=100 train.max_steps=60 eval.steps=-1
    run.replicas=2 run.log_steps=5 run.checkpoint_steps=10"
# launch DIR ARGUMENT...: in the background.
launch() {
    dir=$tmp/$1
    shift
    "$dtrain" launch --oversubscribe --restarts 2 -np 3 $common run.dir="$dir" "$@" >"$dir.out" \
        2>"$dir.err" &
}
begun() {
    wait_until grep -q '"kind":"checkpoint","step":[1-9]' "$dir/metrics.jsonl" ||
        fail_with "$dir.err" "$dir does not start"
}
# refused CODE ARGUMENT...: launch ends with CODE and one error line.
refused() {
    code=$1
    shift
    "$dtrain" launch "$@" $common run.dir="$tmp/none" >"$tmp/out" 2>"$tmp/err"
    check_eq "exit code of launch $*" $? "$code"
    check_eq 'error lines' "$(grep -c '^dtrain: error:' "$tmp/err")" 1
}

# ---- jobs ----------------------------------------------------------------------------------------
"$dtrain" train $common run.dir="$tmp/quiet" 2>"$tmp/err" || fail_with "$tmp/err" 'undisturbed'
launch killed test.slow_rank=1 test.slow_secs=0.1
begun
kill -KILL "$(pid "$dir" dtrain 1)"
wait $! || fail_with "$dir.err" 'a killed rank'
check_eq 'bits after a killed rank' "$(crc "$dir")" "$(crc "$tmp/quiet")"
check_eq 'restarts' "$(records "$dir" launch event)" restart
expect_line "$dir.err" 'resuming at step [1-9]' 'not from the checkpoint'

launch stopped test.slow_rank=1 test.slow_secs=0.1
begun
kill -INT $!
wait $!
check_eq 'exit code of a stop' $? 75
launch stopped
wait $! || fail_with "$dir.err" 'going on'
check_eq 'bits after a stop' "$(crc "$dir")" "$(crc "$tmp/quiet")"

refused 2 -np 2 train.lr=fast
refused 1 -np 2 --oversubscribe data.label=nowhere
refused 2 -np 2.5
refused 1 -np 2 --hostfile "$tmp/nowhere"
printf 'a slots=many\n' >"$tmp/hosts"
refused 2 --hostfile "$tmp/hosts"

# ---- programs in the place of mpirun -------------------------------------------------------------
# One that dies at every start: a try and two restarts, from the checkpoint that is there.
as_mpirun "$tmp/dying" <<END
kill -KILL \$\$
END
mkdir "$tmp/dies"
cp -r "$tmp/quiet/ckpt" "$tmp/dies"
launch dies
wait $!
check_eq 'exit code of a job that dies at every start' $? 1
check_eq 'its starts' \
    "$(grep -c 'launch: .* at step 60: the job ended without an error line' "$dir.err")" 3

# One that has lost all ranks and does not end is ended, under whatever name launch was called.
as_mpirun "$tmp/hanging" <<END
[ ! -e "$tmp/hung" ] || exec $true_mpirun "\$@"
touch "$tmp/hung"
echo 'dtrain: starting' >&2
"$tmp/dtrain" 1 &
sleep 1000 &
exec sleep 1000
END
cp "$(command -v sleep)" "$tmp/dtrain"
ln -s "$dtrain" "$tmp/other"
program=$dtrain dtrain=$tmp/other
launch hangs
hangs=$! dtrain=$program

# Hosts that answer, with the slots that their lines name; without such a number mpirun decides.
printf '#!/bin/sh\n[ "$1" != away ]\n' >"$tmp/agent"
chmod +x "$tmp/agent"
as_asking_mpirun "$tmp/asking"
# hosts_of LINES: what mpirun gets of a host file with these lines, and of eight ranks.
hosts_of() {
    printf "$1" >"$tmp/hosts"
    "$dtrain" launch --mca plm_rsh_agent "$tmp/agent" --hostfile "$tmp/hosts" -np 8 $common \
        run.dir="$tmp/none" 2>"$tmp/err" | xargs
}
if [ $mpi = openmpi ]; then
    check_eq 'slots that are known' "$(hosts_of 'a slots=2\naway slots=4\nb slots=1\n')" \
        'np 3 a slots=2 b slots=1'
    check_eq 'slots that are not' "$(hosts_of 'a slots=2\nb\n')" 'np 8 a slots=2 b'
fi
PATH=$true_path
wait $hangs || fail_with "$tmp/hangs.err" 'an mpirun that hangs'
check_eq 'bits after an mpirun that hangs' "$(crc "$tmp/hangs")" "$(crc "$tmp/quiet")"
