#!/bin/sh
# Fails if a header is not installed or C++ refuses it, the shared library does not export a name,
# or flags of pkg-config are missing. Programs outside of the tree, in C, C++ and Python, answer
# rows as `dtrain predict` does.
. "$(dirname "$0")/lib.sh"
need pkg-config make cc
examples=$root/scripts/examples
make --no-print-directory BUILD="$BUILD" PREFIX="$tmp/prefix" install >"$tmp/out" 2>&1 ||
    fail_with "$tmp/out" 'make install'
export PKG_CONFIG_PATH="$tmp/prefix/lib/pkgconfig"
flags=$(pkg-config --cflags --libs dtrain) || fail 'pkg-config does not know dtrain'
cd "$tmp" || exit 1
cc=${MPICC:-mpicc} recipe=$recipes/penguins.ini penguins=$recipes/data/penguins.csv
# build COMPILER SOURCE [DIR]: into $tmp/NAME-COMPILER, with the flags of pkg-config.
build() {
    "$1" "${3:-$examples}/$2" $flags -lm -o "$tmp/${2%.*}-$1" >"$tmp/out" 2>&1 ||
        fail_with "$tmp/out" "$2 with $1"
}
# ranks NP PROGRAM...: under mpirun; what it prints in $tmp/out, its messages in $tmp/err.
ranks() {
    np=$1
    shift
    mpirun -q --timeout "$limit" --oversubscribe -np "$np" "$@" >"$tmp/out" 2>"$tmp/err"
}

job 2 "$recipe" data.train="$penguins" run.dir="$tmp/run" train.epochs=3 2>"$tmp/err" ||
    fail_with "$tmp/err" 'training'
row='39.1,18.7,181,3750'
echo "$row" >"$tmp/rows.csv"
into "$tmp/want" "$dtrain" predict "$tmp/run" <"$tmp/rows.csv"
cat "$tmp/want"
want=$(json label <"$tmp/want")

# Installed recipes and texts, from elsewhere.
mkdir "$tmp/elsewhere"
share=$tmp/prefix/share
elsewhere() { (cd "$tmp/elsewhere" && "$@") 2>"$tmp/err" || fail_with "$tmp/err" "$*"; }
elsewhere "$tmp/prefix/bin/dtrain" "$share/dtrain/penguins.ini" train.epochs=1
elsewhere "$share/dtrain/exp-data.sh"
! grep -nE 'scripts/(recipes|doc|slurm|plot|examples)' \
    "$share/dtrain"/*.ini "$share/doc/dtrain"/*.md ||
    fail 'an installed text names a place in the sources'
! grep -nF './dtrain' "$share/doc/dtrain"/*.md ||
    fail 'an installed text names a program in the sources'

build cc predict.c
check_eq 'answer of C' "$(./predict-cc run rows.csv | cut -d' ' -f1)" "$want"
best() { awk '$1 > most {most = $1} END {printf "%.4f", most}'; }
most=$(./predict-cc run rows.csv | awk '{print $NF}')
numbers=$(echo $row | tr , ' ')
if command -v c++ >/dev/null; then
    build c++ predict.cpp
    check_eq 'answer of C++' "$(./predict-c++ run $numbers | best)" "$most"
fi
if command -v python3 >/dev/null; then
    export LIBRARY="$tmp/prefix/lib/libdtrain.so"
    check_eq 'answer of Python' "$("$examples/predict.py" run $numbers | best)" "$most"
fi
# Training on rows in memory, in a program that uses MPI itself; stopped, and continued.
build "$cc" train_arrays.c
arrays() { ranks 3 "./train_arrays-$cc" "$@"; }
arrays "$tmp/arrays" || fail_with "$tmp/err" 'train_arrays'
check_ge 'accuracy on rows in memory' "$(record "$tmp/arrays" eval accuracy)" 0.9
check_eq 'records told' "$(wc -l <"$tmp/out")" "$(wc -l <"$tmp/arrays/metrics.jsonl")"
arrays "$tmp/stopped" 2
check_eq 'exit code of a stopped run' $? 75
check_eq 'its status' "$(record "$tmp/stopped" final status)" stopped
arrays "$tmp/stopped" || fail_with "$tmp/err" 'train_arrays, again'
check_eq 'bits over the stop' "$(crc "$tmp/stopped")" "$(crc "$tmp/arrays")"
check_eq 'an answer' "$(echo 0.5,-0.5 | "$dtrain" predict "$tmp/arrays" 2>/dev/null | json class)" 0

# From a configuration file, without a word of MPI.
build cc train_file.c
ranks 3 ./train_file-cc "$recipe" run.dir="$tmp/file" train.epochs=2 data.train="$penguins" ||
    fail_with "$tmp/err" 'train_file'
expect_line "$tmp/out" 'trained by 3 ranks' 'train_file says nothing'
expect_line "$tmp/out" '^epochs = 2$' 'the settings of train_file'
ranks 3 ./train_file-cc search "$recipe" run.dir="$tmp/search" search.trials=3 train.epochs=2 \
    data.train="$penguins" || fail_with "$tmp/err" 'a search'
[ -f "$tmp/search/export/best/3/model.h5" ] || fail_with "$tmp/err" 'no model of a search'
build cc history.c
check_eq 'status of a run' "$(./history-cc arrays | head -1 | cut -d, -f1)" completed
accuracies() { sed -n 's/.*"kind":"eval".*"accuracy":\([0-9.]*\).*/\1/p' "$1/metrics.jsonl"; }
check_eq 'its best' "$(./history-cc arrays | sed -n 's/^best: \([0-9.]*\) .*/\1/p')" \
    "$(accuracies arrays | sort -g | tail -1)"
if command -v c++ >/dev/null && command -v curl >/dev/null; then
    build c++ serve.cpp
    mkfifo "$tmp/end"
    "$tmp/serve-c++" "$tmp/run" <"$tmp/end" >"$tmp/out" 2>&1 &
    exec 9>"$tmp/end"
    wait_until grep -q 'at port' "$tmp/out" || { exec 9>&-; cat "$tmp/out"; fail 'serve.cpp'; }
    address=http://127.0.0.1:$(sed 's/.* //' "$tmp/out")/v1/models/default:predict
    curl -s -d "{\"instances\": [[$row]]}" "$address" >"$tmp/answer"
    expect_line "$tmp/answer" "\"$want\"" 'an answer of serve.cpp'
    exec 9>&-
    wait $! || fail 'the end of serve.cpp'
fi
# The first program of library.md.
if [ -r "$root/scripts/doc/library.md" ]; then
    awk '/^```c$/ {on = 1; next} /^```/ {if (on) exit} on' "$root/scripts/doc/library.md" >first.c
    build cc first.c "$tmp"
    ./first-cc >"$tmp/out" 2>&1 || fail_with "$tmp/out" 'the first program of library.md'
    check_ge 'its probability' "$(sed -n 's/^class 1 with probability //p' "$tmp/out")" 0.8
fi

# A program compiled when option structs had a member less, and more, runs with this library.
# compiled NAME SED HEADER
compiled() {
    mkdir -p "$tmp/$1/dtrain"
    cp "$tmp/prefix/include/dtrain/"*.h "$tmp/$1/dtrain"
    sed -i "$2" "$tmp/$1/dtrain/$3"
    "$cc" -I"$tmp/$1" "$examples/train_arrays.c" $flags -lm -o "$tmp/$1/program" \
        >"$tmp/out" 2>&1 || fail_with "$tmp/out" "a header of $1"
    ranks 3 "$tmp/$1/program" "$tmp/$1/run" || fail_with "$tmp/err" "a program of $1"
    check_eq "bits of a program of $1" "$(crc "$tmp/$1/run")" "$(crc "$tmp/arrays")"
}
compiled older '
    /const float \*weight; /d
    s/NULL, NULL, NULL, NULL  /NULL, NULL, NULL  /' data.h
compiled newer '
    s|^    void \*arg; /\* of record and stop \*/|&\n    void *later;|
    s/NULL, NULL  /NULL, NULL, NULL  /' train.h
# A program with work, signals and floating-point traps of its own.
build "$cc" host.c "$root/tests/e2e"
ranks 3 "./host-$cc" "$tmp/host" || fail_with "$tmp/err" 'a program around the library'

build "$cc" own_loss.c
ranks 3 "./own_loss-$cc" "$tmp/own" || fail_with "$tmp/err" 'own_loss'
prediction=$(sed -n 's/^prediction at 0.5: //p' "$tmp/out")
check_ge 'its prediction, of targets from 0 to 1' "$prediction" 0.8
# Too little costs nine times what too much does: nine of ten values are below the prediction.
above=$(awk 'BEGIN {for (i = 0; i < 100; i++) print (i + 0.5) / 100}' |
    "$dtrain" predict "$tmp/own" 2>/dev/null | sed 's/.*:\(.*\)}/\1/' |
    awk '{x = (NR - 0.5) / 100; all += $1 - x} END {print all / NR}')
check_ge 'predicted above the mean' "$above" 0.3
check_le 'predicted above the mean' "$above" 0.5
check_ge 'its loss' "$(record "$tmp/own" eval loss)" 0.4 # at best 0.45, on all rows
check_le 'its loss' "$(record "$tmp/own" eval loss)" 0.5

# fortran SOURCE PROGRAM
fortran() {
    "$fort" "$tmp/prefix/include/dtrain/dtrain.f90" "$1" $flags -o "$2" >"$tmp/out" 2>&1 ||
        fail_with "$tmp/out" "$1"
}
fort=$(echo "$cc" | sed s/cc/fort/)
# Open MPI's wrapper is there without the compiler that it wraps.
if "$fort" --version >/dev/null 2>&1; then
    fortran "$examples/train_arrays.f90" fortran
    ranks 3 ./fortran "$tmp/product" || fail_with "$tmp/err" 'Fortran'
    value=$(awk '/is about/ {print $NF}' "$tmp/out")
    check_ge 'a product by Fortran' "$value" -0.30
    check_le 'a product by Fortran' "$value" -0.20
    fortran "$root/tests/e2e/host.f90" host-fortran
    ranks 2 ./host-fortran "$tmp/host-fortran.run" ||
        { cat "$tmp/err"; fail_with "$tmp/out" 'what Fortran is refused'; }
fi

make --no-print-directory BUILD="$root/$BUILD" PREFIX="$tmp/prefix" -C "$root" uninstall \
    >/dev/null || fail 'make uninstall'
check_eq 'files that stay' "x$(find "$tmp/prefix" -type f -o -type l)" x
