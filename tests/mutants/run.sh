#!/bin/sh
# Puts bugs into copies of the tree, one at a time, and runs the tests that are named for them: a
# bug that they pass is a test that is missing.
#   tests/mutants/run.sh [-k PATTERN] [-g GROUPS]
#       bugs whose name matches (all); JOBS copies at a time (nproc)
# tests/mutants/bugs: two lines a bug, "NAME DIRECTORY TEST ..." and a sed expression, indented. A
# test is GROUP/X; what tests/run.sh calls it begins so. mpi/X are the long rows of X, too.
# -g 'unit mpi core': bugs are judged by their tests of these groups alone, those of `make check`.
cd "$(dirname "$0")/../.." || exit 1
pattern=. groups=
while getopts k:g: option; do
    case $option in k) pattern=$OPTARG ;; g) groups=$OPTARG ;; *) exit 2 ;; esac
done
export JOBS="${JOBS:-$(nproc)}" PATIENCE="${PATIENCE:-3}" BUILD=build
top=$(mktemp -d "${TMPDIR:-/tmp}/dtrain-bugs.XXXXXX")
trap 'rm -rf "$top"' EXIT
trap 'exit 1' HUP INT TERM

# programs TEST...: what make builds for them.
programs() {
    for test; do
        case $test in
        unit/*) echo "build/tests/unit/test_${test#*/}" ;;
        mpi/*) echo "build/tests/mpi/${test#*/}" ;;
        core/* | e2e/*) echo all ;;
        esac
    done | sort -u
}
# rows_of TEST...: the tests in the order in which they run, each mpi/X before its long rows.
rows_of() {
    for test; do
        echo "$test"
        case $test,$groups in mpi/*,) echo "mpi_long/${test#*/}" ;; esac
    done
}
# chosen TEST...: those that judge.
chosen() {
    for test; do
        case " ${groups:-${test%%/*}} " in *" ${test%%/*} "*) echo "$test" ;; esac
    done
}
# try COPY NAME DIRECTORY SED TEST...: one line that says what became of it.
try() {
    copy=$1 name=$2 place=$3 change=$4
    shift 4
    verdict="SURVIVED $*"
    files=$(find "$copy/$place" -name '*.[ch]' | while read -r file; do
        sed "$change" "$file" | cmp -s - "$file" || echo "$file"; done)
    for file in $files; do
        cp -p "$file" "$file.saved"
        sed -i "$change" "$file"
    done
    if [ -z "$files" ]; then
        verdict="STALE: no such line in $place"
    elif [ $# = 0 ]; then
        verdict="SURVIVED: no test of $groups"
    elif ! make -C "$copy" $(programs "$@") >"$copy/log" 2>&1; then
        verdict="STALE: does not build: $(grep -m 1 'error' "$copy/log")"
    else
        for test in $(rows_of "$@"); do
            "$copy/tests/run.sh" -k "^$test(-|\$)" "${test%%/*}" >"$copy/log" 2>&1 && continue
            grep -q '^[0-9]* passed, 0 failed' "$copy/log" && continue
            verdict="caught by $test"
            break
        done
    fi
    for file in $files; do mv "$file.saved" "$file" && touch "$file"; done
    printf '%-34s %s\n' "$name" "$verdict"
}
# lane N: every JOBS-th bug.
lane() {
    copy=$top/lane$1
    mkdir "$copy"
    git ls-files -z | xargs -0 cp --parents -t "$copy"
    make -C "$copy" all >"$copy/log" 2>&1 || { tail "$copy/log"; exit 1; }
    awk -v lane="$1" -v lanes="$JOBS" -v pattern="$pattern" \
        '/^[^# ]/ && $1 ~ pattern && n++ % lanes == lane {
        words = $0; getline change; sub(/^ +/, "", change); print words; print change}' \
        tests/mutants/bugs | while read -r name place tests && IFS= read -r change; do
            # shellcheck disable=SC2046,SC2086  # the tests are words
            try "$copy" "$name" "$place" "$change" $(chosen $tests)
        done
}
i=0 lanes=
while [ $i -lt "$JOBS" ]; do
    lane $i | tee "$top/out$i" &
    lanes="$lanes $!"
    i=$((i + 1))
done
wait $lanes
cat "$top"/out* >"$top/all"
caught=$(grep -c ' caught by ' "$top/all")
stale=$(grep -c ' STALE' "$top/all")
survived=$(grep -c ' SURVIVED' "$top/all")
echo "$caught passed, $((survived + stale)) failed, 0 skipped"
[ $((survived + stale)) -eq 0 ] && [ "$caught" -gt 0 ]
