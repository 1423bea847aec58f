#!/bin/sh
# Fails if a job on a real Slurm cluster does not survive its signals. It gets one at a random step,
# queues itself again, resumes, and ends with the undisturbed bits, under `dtrain launch` (where a
# rank is killed too), mpirun and srun; TERM to an srun step leaves exit code 75 and a checkpoint; a
# stopped rank ends its step; singletons are refused.
# seconds: 240
# waits
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/netns.sh"
. "$root/tests/e2e/slurm.sh"
. "$root/tests/e2e/watchdog.sh"
slurm_up 1 4
"$recipes/exp-data.sh" "$tmp/data"
keys="data.train=$tmp/data/train.csv data.eval=$tmp/data/test.csv train.epochs=20 eval.steps=-1"
job 3 "$recipes/exp-curve.ini" run.dir="$tmp/whole" $keys 2>"$tmp/out" || fail_with "$tmp/out" whole

slow="test.slow_rank=1 test.slow_secs=0.02"
random=$(od -An -N2 -tu2 /dev/urandom)
# submit LAUNCHER NAME [OPTIONS]: a slow job; its number in $id.
submit() {
    id=$(DTRAIN=$dtrain DTRAIN_LAUNCHER=$1 slurm sbatch --parsable --nodes=1 --ntasks-per-node=3 \
        --output="$tmp/$2.log" scripts/slurm/dtrain.sbatch "$recipes/exp-curve.ini" \
        run.dir="$tmp/$2" $keys $slow) || fail 'sbatch'
    wait_until grep -q 'starting at step' "$tmp/$2.log" ||
        fail_with "$tmp/$2.log" "$2 does not start"
}
for launcher in launch mpirun srun; do
    submit $launcher $launcher
    if [ $launcher = launch ]; then
        kill -KILL "$(pid "$tmp/launch" dtrain 1)"
        wait_until grep -q '"event":"restart"' "$tmp/launch/metrics.jsonl" ||
            fail_with "$tmp/launch.log" 'no restart'
        check_eq "hosts of the allocation" "$(record "$tmp/launch" launch hosts)" 1
        wait_until grep -q 'resuming at step' "$tmp/launch.log" ||
            fail_with "$tmp/launch.log" 'no second start'
    fi
    sleep "0.$((random % 10))"
    slurm scancel --batch --signal=USR1 "$id"
    slurm_again "$id"
    echo "stopped at step $(record "$tmp/$launcher" final step)"
    check_le 'stopped at' "$(record "$tmp/$launcher" final step)" 319
    slurm_completes "$id"
    check_eq "requeues of $launcher" \
        "$(slurm scontrol -o show job "$id" | grep -o 'Restarts=[0-9]*')" Restarts=1
    check_eq "params_crc32c under $launcher" "$(crc "$tmp/$launcher")" "$(crc "$tmp/whole")"
done

rm -f "$tmp/err"
slurm srun --mpi=$pmi -n 3 "$dtrain" "$recipes/exp-curve.ini" run.dir="$tmp/step" $keys $slow \
    test.slow_secs=0.2 2>"$tmp/err" &
wait_until grep -q 'starting at step' "$tmp/err" || fail_with "$tmp/err" 'the step does not start'
sleep 0.5
slurm scancel --signal=TERM "$(slurm squeue -h -o %A)"
wait $!
check_eq 'exit code of the step' $? 75
check_eq 'its checkpoint' "$(record "$tmp/step" checkpoint step)" "$(record "$tmp/step" final step)"

slurm srun --mpi=$pmi -n 3 "$dtrain" "$recipes/exp-curve.ini" run.dir="$tmp/stalls" $keys \
    train.epochs=1000000 run.stall_secs=$stall 2>"$tmp/err" &
wait_until grep -q '"kind":"train"' "$tmp/stalls/metrics.jsonl" || fail 'the step does not start'
stalls stalls 2 "$(host_name 1)" ''

slurm srun --mpi=none -n 3 "$dtrain" "$recipes/exp-curve.ini" run.dir="$tmp/single" $keys \
    2>"$tmp/err"
check_eq 'exit code of singletons' $? 2
check_eq 'error lines' "$(grep -c "^dtrain: error:.*srun --mpi=$pmi" "$tmp/err")" 1
