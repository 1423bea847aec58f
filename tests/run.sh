#!/bin/sh
# Runs tests and prints one line each, then "N passed, N failed, N skipped"; non-zero if one failed.
#   tests/run.sh [-k PATTERN] unit|mpi|e2e|long ...
# unit  build/tests/unit/test_*      Check programs, no MPI
# mpi   tests/mpi/testlist           programs under mpirun: name, ranks, seconds, expectation
# e2e   tests/e2e/test_*.sh          the whole program; exit 77 skips with the last line as reason
# long  tests/e2e/long_*.sh          the same, minutes long
# BUILD: build directory. RUNNER: command put before each program (valgrind). SECS: limit of a unit
# test (300). -k PATTERN: only tests whose name holds it.
# Limits are for what hangs: the seconds that a test names are ample on a quiet machine, and it gets
# three times as many.
cd "$(dirname "$0")/.." || exit 1
export BUILD="${BUILD:-build}"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
logs=$BUILD/tests/logs
mkdir -p "$logs"
passed=0 failed=0 skipped=0 pattern=

now() { date +%s.%N; }

# report NAME STATUS SECONDS_START [REASON]: one line a test; the log's end of one that failed.
report() {
    secs=$(echo "$3 $(now)" | awk '{printf "%.1f", $2 - $1}')
    case $2 in
    0) passed=$((passed + 1)); printf 'ok    %-36s %6s s\n' "$1" "$secs" ;;
    77) skipped=$((skipped + 1)); printf 'skip  %-36s %s\n' "$1" "$(tail -n 1 "$log")" ;;
    *) failed=$((failed + 1)); printf 'FAIL  %-36s %6s s  (exit %s, log %s)\n' "$1" "$secs" "$2" "$log"
       tail -n 40 "$log" | sed 's/^/      | /' ;;
    esac
}

# run NAME COMMAND...: runs it into a log of its own and reports.
run() {
    name=$1
    shift
    case $name in *$pattern*) ;; *) return ;; esac
    log=$logs/$(echo "$name" | tr "/ " --).log
    start=$(now)
    "$@" >"$log" 2>&1 </dev/null
    report "$name" $? "$start"
}

# expect WHAT COMMAND...: 0 if the command ends as expected: `pass`, `die` (any failure but a
# time-out or a program that cannot be launched), or an exit code.
expect() {
    what=$1
    shift
    "$@"
    status=$?
    case $what in
    pass) return $status ;;
    die) [ $status -ne 0 ] && [ $status -ne 110 ] && [ $status -ne 132 ] ;;
    *) [ $status -eq "$what" ] ;;
    esac
}

run_unit() {
    for source in tests/unit/test_*.c; do
        [ -f "$source" ] || continue
        program=$BUILD/${source%.c}
        run "unit/${program##*/test_}" timeout "${SECS:-300}" $RUNNER "$program"
    done
}

run_mpi() {
    [ -f tests/mpi/testlist ] || return 0
    while read -r name ranks secs what args; do
        case $name in ''|\#*) continue ;; esac
        run "mpi/$name-np$ranks${args:+ $args}" expect "$what" mpirun --timeout $((secs * 3)) --oversubscribe \
            -np "$ranks" $RUNNER "$BUILD/tests/mpi/$name" $args
    done <tests/mpi/testlist
}

# run_scripts PREFIX: a line `# seconds: N` in a script is what it may take, 120 without.
run_scripts() {
    for script in tests/e2e/"$1"_*.sh; do
        [ -f "$script" ] || continue
        secs=$(sed -n 's/^# seconds: *//p' "$script")
        name=${script##*/"$1"_}
        run "e2e/${name%.sh}" timeout -k 10 $((${secs:-120} * 3)) "$script"
    done
}

for what in "$@"; do
    case $what in
    -k) pattern=next ;;
    unit) run_unit ;;
    mpi) run_mpi ;;
    e2e) run_scripts test ;;
    long) run_scripts long ;;
    *) if [ "$pattern" = next ]; then pattern=$what; else echo "tests/run.sh: $what?" >&2; exit 2; fi ;;
    esac
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
