#!/bin/sh
# Fails if config.ini does not repeat its run, two jobs write into one directory, or a finished run
# is touched. What a run says of its setting, and what it refuses: settings of MPI, cores and
# kernels, the resolved config, a second job on its directory.
# seconds: 120
. "$(dirname "$0")/lib.sh"
"$recipes/exp-data.sh" "$tmp/data"
set -- data.train="$tmp/data/train.csv" data.eval="$tmp/data/test.csv" train.epochs=3
run() {
    dir=$1
    shift
    job 3 "$recipes/exp-curve.ini" run.dir="$tmp/$dir" "$@" 2>"$tmp/err" ||
        fail_with "$tmp/err" "$dir"
}
says() { expect_line "$tmp/err" "^dtrain: .*$1" "it does not say '$1'"; }

# ---- what it chose -------------------------------------------------------------------------------
run one "$@"
says '3 ranks on 1 host (bank, 2 workers), 2 replicas'
says ', kernel=[A-Za-z0-9]*, 1 thread a rank, mode=sync, exchange=node'
[ "$(nproc)" -lt 2 ] || ! grep 'will be slow' "$tmp/err" || fail 'a warning for nothing'
if [ $mpi = openmpi ]; then
    says 'Open MPI .* (mpi_yield_when_idle=1, osc=^ucx), kernel'
    OMPI_MCA_osc=sm run two "$@"
    says 'osc=sm)'
else
    says 'MPICH Version: [0-9.]*, kernel'
fi
# No memory that the ranks of a host share: each rank by itself, with the same bits, or one error.
if can_do_without_shm; then
    without_shm run apart "$@"
    says 'warning: .*/dev/shm .*taking train.exchange=ordered without shared memory'
    check_eq 'bits without shared memory' "$(crc "$tmp/apart")" "$(crc "$tmp/one")"
    without_shm expect_error 1 /dev/shm 3 "$recipes/exp-curve.ini" run.dir="$tmp/refused" \
        "$@" train.exchange=node
fi
run many "$@" run.threads=1000
says "warning: .*: 2 workers of 1000 threads on $(nproc) cores will be slow"

# ---- config.ini ----------------------------------------------------------------------------------
# Keys that train takes, without short forms.
"$dtrain" help --bash | sed -n "s/^ *local table='train://p" | tr ' ' '\n' | sed -n 's/=.*//p' |
    sort -u | grep -vxE 'model.(kind|hidden|activation|dropout|embedding|wide)' >"$tmp/keys"
check_ge 'keys' "$(wc -l <"$tmp/keys")" 50
awk '/^\[/ {section = substr($1, 2, length($1) - 2)} / = / || / =$/ {print section "." $1}' \
    "$tmp/one/config.ini" | sort >"$tmp/found"
diff "$tmp/keys" "$tmp/found" || fail 'config.ini has not every key'
grep -qx 'replicas *= *2' "$tmp/one/config.ini" || fail 'run.replicas is not resolved'
job 2 "$tmp/one/config.ini" run.dir="$tmp/again" 2>"$tmp/err" || fail 'config.ini again'
check_eq 'params_crc32c by config.ini' "$(crc "$tmp/again")" "$(crc "$tmp/one")"
expect_error 1 'run.replicas=3: the run to resume has 2' 3 "$recipes/exp-curve.ini" \
    run.dir="$tmp/one" "$@" train.epochs=4 run.replicas=3

# ---- kernels that differ -------------------------------------------------------------------------
mixed() {
    mpirun --timeout "$limit" --oversubscribe -np 2 env OPENBLAS_CORETYPE=Nehalem "$dtrain" "$@" \
        run.kernel=env : -np 1 env OPENBLAS_CORETYPE=Prescott "$dtrain" x run.kernel=env \
        2>"$tmp/err"
}
mixed "$recipes/exp-curve.ini" run.dir="$tmp/mixed" "$@" || fail_with "$tmp/err" 'mixed kernels'
says 'warning: \[rank 2 on .*kernel Prescott here, '
mixed "$recipes/exp-curve.ini" run.dir="$tmp/mixed-same" "$@" run.replicas=2 run.reproducible=yes &&
    fail 'run.reproducible with mixed kernels: exit 0'
check_eq 'error lines' "$(grep -c '^dtrain: error:' "$tmp/err")" 1
says 'error: \[rank 2 on .*Prescott here, .*run.reproducible=yes'

# ---- a twin --------------------------------------------------------------------------------------
job 3 "$recipes/exp-curve.ini" run.dir="$tmp/twin" "$@" test.slow_rank=1 test.slow_secs=2 \
    2>"$tmp/first" &
wait_until grep -q 'starting at step' "$tmp/first" || fail 'the first does not start'
holder=$(pid "$tmp/twin" dtrain 0)
job 3 "$recipes/exp-curve.ini" run.dir="$tmp/twin" "$@" 2>"$tmp/err"
check_eq 'exit code of the second' $? 1
says "error: .*$tmp/twin: in use by another dtrain (pid $holder on $(uname -n))"
kill -USR1 "$(pid "$tmp/twin" mpirun)"
wait $!
check_eq 'exit code of the first' $? 75
run twin "$@"
check_eq 'bits of the first' "$(crc "$tmp/twin")" "$(crc "$tmp/one")"

# ---- finished ------------------------------------------------------------------------------------
state() { (cd "$tmp/one" && find . ! -name lock -printf '%p %y %T@ %C@ %s %l\n' | sort); }
state | grep -v '^\. ' >"$tmp/before"
sleep 0.1
run one "$@"
says 'one: the run is complete at step 48'
state | grep -v '^\. ' | diff "$tmp/before" - || fail 'a finished run was touched'
