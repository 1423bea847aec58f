#!/bin/sh
# The house rules as greps: one line a breach, non-zero if there is one. Then cppcheck and
# clang-tidy, where they are installed.
cd "$(dirname "$0")/.." || exit 1
breaches=$(mktemp)
trap 'rm -f "$breaches"' EXIT

# rule TEXT: reads breaches as FILE:LINE:... and notes each with the rule's text.
rule() { sed "s|^|lint: $1: |" >>"$breaches"; }

rooms='src/base src/config src/hdf5 src/text src/model src/comm src/table src/data src/state
src/report src/predict src/train src/search'
sources() { find "$@" -name '*.[ch]' 2>/dev/null | sort; }
# search REGEX PATH...: grep in C sources, comments' leading-star lines and strings left in.
search() {
    regex=$1
    shift
    sources "$@" | xargs -r grep -nE -e "$regex" /dev/null
}

# Who may include what.
search '#include <mpi.h>' src include | grep -v '^src/comm/' | rule 'mpi.h outside src/comm'
search '#include <hdf5(_hl)?.h>' src include | grep -v '^src/hdf5/library.h' |
    rule 'hdf5.h outside src/hdf5/library.h'
search '#include <cblas.h>' src include | grep -v '^src/model/blas.c' |
    rule 'cblas.h outside src/model/blas.c'
search '#include <dnnl.h>' src include | grep -v '^src/model/onednn.h' |
    rule 'dnnl.h outside src/model/onednn.h'
search '#include <microhttpd.h>' src include | grep -v '^src/predict/serve.c' |
    rule 'microhttpd.h outside src/predict/serve.c'
# include/dtrain declares alone: every room may include it.
sources src | xargs -r awk '
    BEGIN {
        floors = "base 1 config 2 hdf5 2 text 2 model 4 comm 4 table 5 data 6 state 7 report 7"
        split(floors " predict 8 train 8 search 9 dtrain 0 cli 10", word, " ")
        for (i = 1; i in word; i += 2) floor[word[i]] = word[i + 1]
    }
    /^#include "/ {
        split(FILENAME, path, "/")
        room = $2
        gsub(/"/, "", room)
        sub(/\/.*/, "", room)
        if (!(room in floor)) print FILENAME ":" FNR ": unknown room " room
        else if (room != path[2] && floor[room] >= floor[path[2]]) print FILENAME ":" FNR ": " $2
    }' | rule 'includes only of lower floors'

# The library neither prints nor ends the process. Its voices: the log, the reports; comm ends a job
# that cannot go on.
search '\b(_?exit|abort|quick_exit)\(' $rooms |
    grep -vE '^src/(base/signals|comm/abort|hdf5/guard)\.c' | rule 'exit in the library'
search '\b(v?printf|puts|putchar|perror|fputs|fprintf)\(' $rooms |
    grep -vE '^src/(base/log|comm/abort)\.c|^src/report/' |
    grep -vE 'fprintf\((out|file)\b|fputs\(.*, (out|file|score)\)' | rule 'print in the library'
search '\bassert\(' src | grep -vE 'assert\(.*&& "|static_assert' | rule 'assert without a message'

# Calls that hide errors or overflow.
unsafe='ato[ifl]|atoll|v?sprintf|strcpy|strcat|gets|strtok|s?rand|alloca|popen|tmpnam|mktemp'
search "\\b($unsafe)\\(" src include tests | rule 'unsafe call'
search '\b(malloc|calloc|realloc|free)\(' $rooms | grep -v '^src/base/' |
    grep -v "getline's" | rule 'memory past dt__alloc and dt_free'

# A type's name is its own in the whole tree.
sources src include | xargs -r awk '
    /^(struct|union|enum) dt_+[a-z0-9_]+ \{/ {
        if ($2 in seen) print FILENAME ":" FNR ": " $1 " " $2 ", as in " seen[$2]
        seen[$2] = FILENAME
    }' | rule 'a type named as another'

# What clang cannot link (base/clones.h).
sources src | xargs -r awk '
    behind && !/^static/ { print FILENAME ":" FNR ": " $0 }
    { behind = $1 == "DT__CLONES" && NF == 1 }' |
    rule 'DT__CLONES before a function that is not static'

# Shape of the text.
git ls-files | grep -vE '\.(gz|h5|png)$' | xargs -r grep -nE '[[:space:]]+$' /dev/null |
    grep -v '^tests/data/' | rule 'trailing whitespace'
search '	' src include tests | rule 'tab'
# clang-format keeps C to 100 columns.
git ls-files '*.sh' '*.py' '*.awk' .ci/run tests/mpich/mpirun |
    LC_ALL=C.UTF-8 xargs -r grep -nE '^.{101}' /dev/null | rule 'a line over 100 columns'
# Kernels may be long: a comment that begins "Kernel:" stands right above them.
sources src tests | xargs -r awk '
    FNR == 1 { start = 0; kernel = 0 }
    /\/\* Kernel:/ { kernel = FNR }
    /^\{$/ || /^[a-z].*\) \{$/ { start = FNR; spared = kernel; kernel = 0 }
    /^\}/ && start {
        if (FNR - start - 1 > 60 && !spared) print FILENAME ":" start ": " FNR - start - 1 " lines"
        start = 0
    }' | rule 'function over 60 lines'

# An archive's members have no folders.
find src -name '*.c' -printf '%f\n' | sort | uniq -d | rule 'two files of one name'

scripts/house.sh rules >>"$breaches" || :

cat "$breaches"
echo "lint: $(wc -l <"$breaches") breaches of the house rules"
[ ! -s "$breaches" ] || status=1

if command -v cppcheck >/dev/null; then
    cppcheck --quiet --enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
        --suppress=missingIncludeSystem --suppress=invalidPointerCast \
        --suppress=invalidFunctionArg:src/model/task.c -D_GNU_SOURCE -D'DT_VERSION="lint"' \
        -Iinclude -Isrc -j "$(nproc)" src && echo 'lint: cppcheck is content' || status=1
else
    echo 'lint: cppcheck skipped: not installed'
fi
if command -v clang-tidy >/dev/null; then
    flags="$(make -s BUILD="${BUILD:-build}" flags) $(mpicc --showme:compile)"
    export flags
    # shellcheck disable=SC2016  # the inner shell expands
    sources src | grep '\.c$' |
        xargs -r -P "$(nproc)" -n 4 sh -c 'clang-tidy --quiet "$@" -- $flags 2>/dev/null' tidy &&
        echo 'lint: clang-tidy is content' || status=1
else
    echo 'lint: clang-tidy skipped: not installed'
fi
exit "${status:-0}"
