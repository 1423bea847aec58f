# Sourced by the end-to-end tests: a directory of their own, jobs under mpirun, assertions, records.
# A test ends with 0, with 77 after `skip REASON`, or with 1 after `fail TEXT`.
set -u
# Some awks read and write numbers as the locale has them: with commas.
export LC_ALL=C
cd "$(dirname "$0")/../.." || exit 1
root=$PWD
BUILD=${BUILD:-build}
dtrain=$root/$BUILD/dtrain
recipes=$root/scripts/recipes
# A build with MPICH: the tests' mpirun is Hydra, and Slurm speaks to it otherwise.
mpi=openmpi pmi=pmix
if ldd "$dtrain" 2>/dev/null | grep -q libmpich; then
    mpi=mpich pmi=pmi2
    export PATH="$root/tests/mpich:$PATH" MPICC="${MPICC:-mpicc.mpich}"
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# Everything that a test makes lies in $tmp; every process that it starts names $tmp.
tmp=$(mktemp -d "${TMPDIR:-/tmp}/dtrain-test.XXXXXX")
cleanups=
# at_exit COMMAND: runs when the test ends, the last one first.
at_exit() { cleanups="$1; $cleanups"; }
finish() {
    status=$?
    trap - EXIT
    eval "$cleanups"
    rm -rf "$tmp"
    exit $status
}
trap finish EXIT
trap 'exit 1' HUP INT TERM

skip() { echo "$*"; exit 77; }
fail() { echo "FAIL: $*"; exit 1; }
# fail_with FILE TEXT...: prints the file, then fails.
fail_with() { cat "$1"; shift; fail "$*"; }
# expect_line FILE PATTERN [TEXT]: fails with TEXT unless a line of the file matches.
expect_line() { grep -q -e "$2" "$1" || fail_with "$1" "${3:-no line matches '$2'}"; }
# expect_no_line FILE PATTERN [TEXT]: the opposite.
expect_no_line() { ! grep -q -e "$2" "$1" || fail_with "$1" "${3:-a line matches '$2'}"; }
need() { for tool; do command -v "$tool" >/dev/null || skip "$tool is not installed"; done; }
need_cc() { compiler=${CC:-cc}; need "${compiler%% *}"; }
# into FILE COMMAND...: writes the command's output to the file; fails with its messages if it
# fails.
into() {
    into_file=$1
    shift
    "$@" >"$into_file" 2>"$tmp/err" || fail_with "$tmp/err" "exit $?: $*"
}
# has_python MODULES: whether Debian's Python has them: 'onnx, numpy'.
has_python() { /usr/bin/python3 -c "import $1" 2>/dev/null; }
need_root() { [ "$(id -u)" -eq 0 ] || skip 'needs root'; }

# Deadlines are for what hangs, ample on a quiet machine, and grow by this: tests run side by side.
PATIENCE=${PATIENCE:-3}

# job NP ARGS...: dtrain at most $limit seconds, for what hangs: under mpirun, or one process alone.
limit=$((100 * PATIENCE))
job() {
    np=$1
    shift
    case $np in
    1) timeout --foreground "$limit" "$dtrain" "$@" ;;
    *) mpirun --timeout "$limit" --oversubscribe -np "$np" "$dtrain" "$@" ;;
    esac
}

# without_shm COMMAND...: its jobs run where /dev/shm has room for nothing, or for $shm bytes, as in
# a small container. Root alone can that.
can_do_without_shm() {
    [ "$(id -u)" = 0 ] && unshare --mount mount -t tmpfs -o size=16k shm /dev/shm 2>/dev/null
}
without_shm() {
    mpirun() {
        OMPI_MCA_btl=tcp,self UCX_TLS=tcp,self unshare --mount \
            sh -c "mount -t tmpfs -o size=${shm:-16k} shm /dev/shm"' && exec mpirun "$@"' - "$@"
    }
    "$@"
    code=$?
    unset -f mpirun
    return $code
}

# check_eq WHAT GOT WANT, check_ge WHAT GOT LEAST, check_le WHAT GOT MOST: numbers or words.
check_eq() { [ -n "$2" ] && [ "$2" = "$3" ] || fail "$1 is '$2', expected '$3'"; echo "$1: $2"; }
check_ge() { compare "$2" "$3" '>=' || fail "$1 is '$2', expected at least $3"; echo "$1: $2"; }
check_le() { compare "$2" "$3" '<=' || fail "$1 is '$2', expected at most $3"; echo "$1: $2"; }
compare() {
    echo "$1 $2" | awk -v op="$3" 'NF != 2 || $1 != $1 + 0 {exit 1}
        {exit !(op == ">=" ? $1 + 0 >= $2 + 0 : $1 + 0 <= $2 + 0)}'
}

# now: a time in nanoseconds. millis_since NOW: milliseconds since then.
now() { date +%s%N; }
millis_since() { echo $((($(now) - $1) / 1000000)); }

# records RUN_DIR KIND KEY: the values of a key in the records of a kind, one a line.
records() {
    sed -n "/\"kind\": *\"$2\"/s/.*\"$3\": *\"\{0,1\}\([^,\"}]*\).*/\1/p" "$1/metrics.jsonl"
}
# record RUN_DIR KIND KEY: the last of them.
record() { records "$@" | tail -n 1; }
# json KEY: the value of a key in the JSON line on stdin.
json() { sed -n "s/.*\"$1\": *\"\{0,1\}\([^,\"}]*\).*/\1/p" | tail -n 1; }
crc() { record "$1" final params_crc32c; }

# processes: how many processes name $tmp. (grep reads it from a pipe so as not to name it itself.)
processes() { echo "$tmp" | grep -lFf - /proc/[0-9]*/cmdline 2>/dev/null | wc -l; }

# pid RUN_DIR PROGRAM [RANK]: the last process of a program, or that of a rank, that has
# run.dir=RUN_DIR.
pid() {
    echo "run.dir=$1" | grep -lFf - /proc/[0-9]*/cmdline 2>/dev/null | cut -d/ -f3 |
        while read -r id; do
            is=$(cat "/proc/$id/comm" 2>/dev/null)
            [ "${is:-gone}" = "$2" ] || [ "$is $2" = 'mpiexec.hydra mpirun' ] || continue
            [ $# -lt 3 ] || tr '\0' '\n' <"/proc/$id/environ" |
                grep -qx -e "OMPI_COMM_WORLD_RANK=$3" -e "PMIX_RANK=$3" -e "PMI_RANK=$3" || continue
            echo "$id"
        done | tail -n 1
}

# untold STATUS ERR: whether the job of a killed rank ended before another rank could say which:
# Hydra ends it, on one host (9) or several (255), or MPICH sees the connection close.
untold() {
    [ $mpi = mpich ] || return 1
    case $1 in
    9 | 255) ! grep -q '^dtrain: error:' "$2" ;;
    *) grep -q '^dtrain: error: .*: MPI_' "$2" ;;
    esac
}
# expect_rank RANK STATUS ERR: fails unless the error names the killed rank, or no rank could.
expect_rank() {
    grep -q "rank $1" "$3" || untold "$2" "$3" || fail_with "$3" "rank $1 is not named"
}

# wait_until COMMAND...: waits until the command succeeds; fails after $limit seconds, ample on any
# machine.
wait_until() {
    deadline=$(($(date +%s) + limit))
    until "$@" >/dev/null 2>&1; do
        [ "$(date +%s)" -le $deadline ] || return 1
        sleep 0.1
    done
}
# await_checkpoint RUN_DIR [STEP]: waits for a checkpoint of a step that starts so, 1 to 9 without.
await_checkpoint() {
    wait_until grep -q "\"kind\":\"checkpoint\",\"step\":${2:-[1-9]}" "$1/metrics.jsonl"
}
# latest_step RUN_DIR: the step of its latest checkpoint.
latest_step() { readlink "$1/ckpt/latest.h5" | sed 's/^step-0*\([0-9]*\).h5$/\1/'; }
gone() { [ "$(processes)" -eq 0 ]; }

# by_itself STATUS: fails if the job was ended by its time limit: mpirun exits with 110 then,
# `timeout` with 124. How soon a job ends depends on the machine, so no test measures that.
by_itself() {
    case $1 in 110 | 124) fail "the job does not end by itself: exit $1" ;; esac
}

# expect_error CODE TEXT NP ARGS...: the job ends by itself with CODE and exactly one error line,
# which holds TEXT, and no process stays.
expect_error() {
    code=$1 text=$2
    shift 2
    job "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    status=$?
    errors=$(grep -c '^dtrain: error:' "$tmp/err")
    line=$(grep '^dtrain: error:' "$tmp/err")
    echo "exit $status: $line"
    [ $status -eq "$code" ] || fail_with "$tmp/err" "exit $status, expected $code: $*"
    [ "$errors" -eq 1 ] || fail_with "$tmp/err" "$errors error lines: $*"
    case $line in *"$text"*) ;; *) fail "the error does not hold '$text': $*" ;; esac
    wait_until gone || fail "a process is left: $*"
}

# slow_survey: options for data whose survey takes 24 seconds and more: 120 files.
slow_survey() {
    [ -d "$tmp/many" ] || {
        mkdir "$tmp/many"
        yes 0.25,0.5,0.125,0.75,1.5,2.5,1 | head -n 1200 | split -l 10 - "$tmp/many/"
    }
    echo "data.train=$tmp/many/*" data.label=-1 data.header=no data.eval= test.slow_rank=0 \
        test.slow_secs=0.2
}
