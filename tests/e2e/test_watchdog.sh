#!/bin/sh
# Fails if a wait is not watched, or progress is not shown to the watchdog. On one host: a stopped
# worker or bank ends the job at run.stall_secs, by one error line with its rank and phase; a killed
# one ends it at once and is named; a job that was suspended as a whole goes on. See
# long_watchdog.sh.
# seconds: 120
# waits
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/watchdog.sh"
watchdog_data
host=$(uname -n)

begin 3 worker run.log_steps=10000 run.checkpoint_secs=0
stalls worker 1 "$host" 'gradient, step '
# Stuck, but not stopped: it alone is named.
watched 3 stuck test.slow_rank=2 test.slow_secs=1000 2>"$tmp/err" && fail 'a stuck rank: exit 0'
who=$(sed -n 's/^dtrain: error:.* s (run.stall_secs) at \(rank.* on [^ ]*\) (.*/\1/p' "$tmp/err")
check_eq 'who is stuck' "$who" "rank 2 on $host"
begin 3 bank
stalls bank 0 "$host" ''
for i in $(seq 10); do sed "$([ "$i" = 1 ] || echo 1d)" "$tmp/eval.csv"; done >"$tmp/long.csv"
watched 3 evaluation data.eval="$tmp/long.csv" eval.steps=2 run.log_steps=1 test.slow_rank=2 \
    test.slow_secs=0.5 2>"$tmp/err" >"$tmp/out" &
wait_until grep -q '"kind":"train","step":2' "$tmp/evaluation/metrics.jsonl" || fail 'no evaluation'
sleep 0.5
stalls evaluation 2 "$host" 'evaluation, step 2'
begin 3 async train.mode=async
stalls async 0 "$host" ''
begin 3 killed
gone killed 2 "$host"
# mpirun ends the ranks of a host one by one after another host printed why: no rank blames another.
begin 3 ended
kill -STOP "$(pid "$tmp/ended" dtrain 0)"
workers=$(for rank in 1 2; do pid "$tmp/ended" dtrain $rank; done)
kill -TERM $workers
for worker in $workers; do
    sleep 0.3
    kill -KILL "$worker"
done
wait $!
! grep 'is gone' "$tmp/err" || fail 'a rank that is being killed tells of another'
begin 3 bankless run.stall_secs=0
gone bankless 0 "$host"
# Ranks that do not see each other's processes are not taken for dead, and one that is killed is.
if [ "$(id -u)" -eq 0 ] && unshare --pid --fork true 2>/dev/null; then
    cat >"$tmp/apart.sh" <<END
#!/bin/sh
exec unshare --pid --fork sh -c '
    for i in \$(seq \$((\${OMPI_COMM_WORLD_RANK:-\$PMI_RANK} * 40))); do /bin/true; done
    "\$@"
    exit \$?' sh "$dtrain" "\$@"
END
    chmod +x "$tmp/apart.sh"
    own=$dtrain dtrain=$tmp/apart.sh
    export OMPI_MCA_btl=tcp,self UCX_TLS=tcp,self
    begin 3 apart
    gone apart 2 "$host"
    unset OMPI_MCA_btl UCX_TLS
    dtrain=$own
fi

# All ranks are stopped for longer than run.stall_secs, and go on.
begin 3 suspended train.epochs=400 test.slow_rank=1 test.slow_secs=0.001
ranks=$(for rank in 2 1 0; do pid "$tmp/suspended" dtrain $rank; done)
kill -STOP $ranks
sleep $((stall + 2))
kill -CONT $ranks
wait $! || fail_with "$tmp/err" 'a job that was suspended'
