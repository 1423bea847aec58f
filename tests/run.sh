#!/bin/sh
# Runs tests side by side and prints a line for each, then what tests lacked on this machine, and
# "N passed, N failed, N skipped"; non-zero if one failed, or none ran.
#   tests/run.sh [-j JOBS] [-k PATTERN] [-l] [-d SECONDS] [-r N] GROUP ...
# unit      build/tests/unit/test_*  Check programs, no MPI
# mpi       tests/mpi/testlist       programs under mpirun: name, ranks, seconds, expectation
# mpi_long  the same file            its second section: more ranks, steps and transports
# core      tests/e2e/core_*.sh      the whole program, each promise once; exit 77 skips with the
#                                    last line as reason
# e2e       tests/e2e/test_*.sh      the whole program, each promise in depth
# long      tests/e2e/long_*.sh      the same, minutes long
# fuzz      build/fuzz/fuzz_*        libFuzzer programs, SECS seconds each
# JOBS: tests at a time; without it one a core, and one more. Next to them run three times as many
# as cores (or JOBS) of those that wait most of their time, for a signal, a time-out or a slow link:
# a line `# waits` in a script says so; and one unit test a core, which is one process.
# BUILD: build directory. RUNNER: command put before each program (valgrind). SECS: limit of a unit
# test (300). -k PATTERN: only tests whose name holds it. -l: prints their names alone.
# -d SECONDS: after these no test starts; those left out are named. -r N: starts at the N-th quarter
# of the tests and goes round, so that runs of rising N that are cut short meet all of them.
# SCRATCH: directory for files of unit and MPI tests, in memory where that has space: they sync
# often.
# Limits are for what hangs. A test names the seconds that are ample on a quiet machine and gets
# PATIENCE (5) times as many; its own deadlines grow by the same factor (tests/e2e/lib.sh).
cd "$(dirname "$0")/.." || exit 1
export BUILD="${BUILD:-build}" PATIENCE="${PATIENCE:-5}"
export CK_TIMEOUT_MULTIPLIER="${CK_TIMEOUT_MULTIPLIER:-$PATIENCE}"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Jobs do not know of each other: bound to cores, all would take the first.
export OMPI_MCA_hwloc_base_binding_policy=none
# Each start would wait for InfiniPath, and look for displays: a fifth of a short job's CPU, half of
# its time.
export OMPI_MCA_mtl="${OMPI_MCA_mtl-^psm,psm2,ofi}" \
    HWLOC_PLUGINS_PATH="${HWLOC_PLUGINS_PATH-/nonexistent}"
# A build with MPICH: the tests' mpirun is Hydra, and Open MPI's settings break nothing.
other_mpi='^#\|MPICH'
if [ "${1:-}" != one ] &&
    ldd "$BUILD/dtrain" "$BUILD/tests/mpi/test_world" 2>/dev/null | grep -q libmpich; then
    export PATH="$PWD/tests/mpich:$PATH"
    other_mpi='^#\|  1 .*OMPI_MCA'
fi
logs=$BUILD/tests/logs
if [ -z "${SCRATCH:-}" ] && [ -w /dev/shm ] &&
    [ "$(df -P -k /dev/shm | awk 'NR == 2 {print $4}')" -gt 500000 ]; then
    export SCRATCH=/dev/shm
fi

# ends_as WHAT COMMAND...: 0 if the command ends as expected: `pass`, `die` (any failure but a
# time-out, whatever the exit code of its mpirun, or a program that cannot be launched), or one of
# these exit codes: 2,9.
ends_as() {
    what=$1
    shift
    "$@"
    status=$?
    case $what in
    pass) return $status ;;
    die)
        [ $status -ne 0 ] && [ $status -ne 132 ] && [ -x "$BUILD/tests/${name%-np*}" ] &&
            [ $(($(date +%s) - ${start%.*})) -lt $((ample * PATIENCE)) ]
        ;;
    *) case ",$what," in *,$status,*) ;; *) false ;; esac ;;
    esac
}

# run_one SECS NAME COMMAND...: into a log of its own; one line, and the log's end if it failed.
run_one() {
    ample=$1 name=$2
    shift 2
    log=$logs/$(echo "$name" | tr "/ " --).log
    if [ "$(date +%s)" -ge "${LAST_START:-9999999999}" ]; then
        echo "$name" >>"$logs/left"
        return
    fi
    start=$(date +%s.%N)
    "$@" >"$log" 2>&1 </dev/null
    status=$?
    # Words that its shell does not know: what they would have measured was not tested.
    ! grep -qE '^tests/e2e/.*: (.*: not found|.*: parameter not set)$' "$log" || status=127
    secs=$(echo "$start $(date +%s.%N)" | awk '{printf "%.1f", $2 - $1}')
    times >"$log.cpu" # of this shell, then of what it waited for: user, system
    cpu=$(awk -F '[ms ]+' 'NR == 2 {printf "%.1f", 60 * ($1 + $3) + $2 + $4}' "$log.cpu")
    case $status in
    0) verdict=ok line=$(printf '%6s s  %6s s of CPU' "$secs" "$cpu") ;;
    77) verdict=skip line=$(tail -n 1 "$log")
        echo "$line" | sed -n 's/^in part: //; s/ is not installed.*//p' >>"$logs/lacking" ;;
    *) verdict=FAIL line=$(printf '%6s s  (exit %s, log %s)\n' "$secs" $status "$log"
           tail -n 40 "$log" | sed 's/^/      | /') ;;
    esac
    echo $verdict >>"$logs/verdicts"
    printf '%-5s %-40s %s\n' $verdict "$name" "$line"
}

# list_X: a line a test, in the words that run_one takes. A name is GROUP/TEST.
# A unit test computes on one thread: of two, one would spin at each barrier where another job has
# the core that the other one needs.
list_unit() {
    for source in tests/unit/test_*.c; do
        name=${source##*/test_}
        echo "0 unit/${name%.c} env OMP_NUM_THREADS=1" \
            "timeout ${SECS:-300} $RUNNER $BUILD/${source%.c}"
    done
}
# list_mpi GROUP: the rows after its line `group GROUP`.
list_mpi() {
    awk -v group="$1" '$1 == "group" {mine = $2 == group; next} NF && mine' tests/mpi/testlist |
        grep -v "$other_mpi" | while read -r name ranks secs what args; do
            echo "$secs $(echo "$1/$name-np$ranks $args" | sed 's/ *$//; s/ /_/g') ends_as $what" \
                "timeout -k 10 $((secs * PATIENCE + 30)) mpirun --timeout $((secs * PATIENCE))" \
                "--oversubscribe -np $ranks $RUNNER $BUILD/tests/mpi/$name $args"
        done
}
# list_scripts PREFIX GROUP: a line `# seconds: N` in a script is what it may take, 120 without.
list_scripts() {
    for script in tests/e2e/"$1"_*.sh; do
        [ -f "$script" ] || continue
        secs=$(sed -n 's/^# seconds: *//p' "$script")
        name=$2/${script##*/"$1"_}
        echo "${secs:-120} ${name%.sh} timeout -k 10 $((${secs:-120} * PATIENCE)) $script"
    done
}
list_fuzz() {
    for program in "$BUILD"/fuzz/fuzz_*; do
        case $program in *.[od]) continue ;; esac
        echo "${SECS:-60} fuzz/${program##*/fuzz_} tests/fuzz/fuzz.sh $program ${SECS:-60}"
    done
}
# those_that wait|compute|are_alone: of the tests; the longest first, so that none is left over at
# the end, or in turn (-r). side_by_side JOBS: runs them.
those_that() {
    echo "$tests" | while read -r secs name command; do
        script=${command##* } what=compute
        case $script in *.sh) ! grep -q '^# waits$' "$script" || what='wait' ;; esac
        case $name in unit/*) what=are_alone ;; esac
        [ $what = "$1" ] && echo "$secs $name $command"
    done | if [ -n "$turn" ]; then cat; else sort -s -k 1,1rn; fi
}
# in_turn N: the lines of its input, from the N-th quarter on.
in_turn() {
    awk -v turn="$1" '{line[NR] = $0} END {
        for (i = 0; i < NR; i++) print line[1 + (i + turn % 4 * int((NR + 3) / 4)) % NR]}'
}
side_by_side() {
    tr '\n' '\0' | xargs -0 -r -n 1 -P "$1" tests/run.sh one
}
list() {
    for what; do
        case $what in
        unit | fuzz) list_$what ;;
        mpi | mpi_long) list_mpi $what ;;
        core | long) list_scripts $what $what ;;
        e2e) list_scripts test e2e ;;
        *) echo "tests/run.sh: $what?" >&2; return 2 ;;
        esac
    done
}

if [ "${1:-}" = one ]; then
    shift
    # shellcheck disable=SC2086  # a line is words
    run_one $1
    exit 0
fi
jobs=$(nproc) pattern=. names='' turn=''
compute=$((jobs + 1))
while getopts j:k:ld:r: option; do
    case $option in
    j) jobs=$OPTARG compute=$OPTARG ;;
    k) pattern=$OPTARG ;;
    l) names=1 ;;
    d) export LAST_START=$(($(date +%s) + OPTARG)) ;;
    r) turn=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
tests=$(list "$@") || exit
tests=$(echo "$tests" | awk -v pattern="$pattern" '$2 ~ pattern')
[ -z "$turn" ] || tests=$(echo "$tests" | in_turn "$turn")
[ -n "$tests" ] || { echo "tests/run.sh: no test is named like $pattern" >&2; exit 2; }
[ -z "$names" ] || { echo "$tests" | cut -d ' ' -f 2; exit 0; }
mkdir -p "$logs"
: >"$logs/verdicts"
: >"$logs/lacking"
: >"$logs/left"
trap 'trap "" TERM; kill 0; exit 130' INT TERM # what is in the background does not hear of Ctrl-C
those_that wait | side_by_side $((3 * jobs)) &
those_that are_alone | side_by_side "$jobs" &
those_that compute | side_by_side "$compute"
wait
lacking=$(sort -u "$logs/lacking" | paste -s -d , | sed 's/,/, /g')
[ -z "$lacking" ] ||
    echo "more is tested with $lacking (most are installed by: scripts/setup.sh all)"
[ ! -s "$logs/left" ] || echo "left out: $(sort "$logs/left" | paste -s -d ' ')"
count() { grep -cx "$1" "$logs/verdicts"; }
echo "$(count ok) passed, $(count FAIL) failed, $(count skip) skipped"
{ [ -s "$logs/verdicts" ] || [ -s "$logs/left" ]; } && [ "$(count FAIL)" -eq 0 ]
