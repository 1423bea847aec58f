#!/bin/sh
# The installed library, used from outside with the flags of pkg-config alone: C, C++ and Python answer rows
# as `dtrain predict` does. Would catch: a header that is not installed, a name that the shared
# library does not export, flags that are missing, a header that C++ refuses.
. "$(dirname "$0")/lib.sh"
need pkg-config make cc
examples=$root/scripts/examples
make --no-print-directory BUILD="$BUILD" PREFIX="$tmp/prefix" install >"$tmp/out" 2>&1 ||
    { cat "$tmp/out"; fail 'make install'; }
export PKG_CONFIG_PATH="$tmp/prefix/lib/pkgconfig"
flags=$(pkg-config --cflags --libs dtrain) || fail 'pkg-config does not know dtrain'
cd "$tmp" || exit 1
# build COMPILER SOURCE: into $tmp/NAME.
build() {
    "$1" "${3:-$examples}/$2" $flags -lm -o "$tmp/${2%.*}-$1" >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "$2 with $1"; }
}

job 2 "$recipes/penguins.ini" data.train="$recipes/data/penguins.csv" run.dir="$tmp/run" train.epochs=3 \
    2>"$tmp/err" || { cat "$tmp/err"; fail 'training'; }
row='39.1,18.7,181,3750'
echo "$row" | "$dtrain" predict "$tmp/run" >"$tmp/want" 2>"$tmp/err" || { cat "$tmp/err"; fail predict; }
cat "$tmp/want"
want=$(json label <"$tmp/want")
echo "$row" >"$tmp/rows.csv"

# Installed recipes and texts, from elsewhere.
mkdir "$tmp/elsewhere"
(cd "$tmp/elsewhere" && "$tmp/prefix/bin/dtrain" "$tmp/prefix/share/dtrain/penguins.ini" train.epochs=1) 2>"$tmp/err" ||
    { cat "$tmp/err"; fail 'an installed recipe'; }
(cd "$tmp/elsewhere" && "$tmp/prefix/share/dtrain/exp-data.sh") || fail 'an installed script that makes data'
! grep -nE 'scripts/(recipes|doc|slurm|plot|examples)' "$tmp/prefix/share/dtrain"/*.ini "$tmp/prefix/share/doc/dtrain"/*.md ||
    fail 'an installed text names a place in the sources'
! grep -nF './dtrain' "$tmp/prefix/share/doc/dtrain"/*.md || fail 'an installed text names a program in the sources'

build cc predict.c
check_eq 'answer of C' "$("$tmp/predict-cc" "$tmp/run" "$tmp/rows.csv" | cut -d' ' -f1)" "$want"
best() { awk '$1 > most {most = $1} END {printf "%.4f", most}'; }
most=$("$tmp/predict-cc" "$tmp/run" "$tmp/rows.csv" | awk '{print $NF}')
if command -v c++ >/dev/null; then
    build c++ predict.cpp
    check_eq 'answer of C++' "$("$tmp/predict-c++" "$tmp/run" $(echo $row | tr , ' ') | best)" "$most"
fi
if command -v python3 >/dev/null; then
    export LIBRARY="$tmp/prefix/lib/libdtrain.so"
    check_eq 'answer of Python' "$("$examples/predict.py" "$tmp/run" $(echo $row | tr , ' ') | best)" "$most"
fi
# Training on rows in memory, in a program with an MPI of its own; stopped, and gone on with.
build "${MPICC:-mpicc}" train_arrays.c
arrays() { mpirun -q --timeout "$limit" --oversubscribe -np 3 "$tmp/train_arrays-${MPICC:-mpicc}" "$@" >"$tmp/out" 2>"$tmp/err"; }
arrays "$tmp/arrays" || { cat "$tmp/err"; fail 'train_arrays'; }
check_ge 'accuracy on rows in memory' "$(record "$tmp/arrays" eval accuracy)" 0.9
check_eq 'records told' "$(wc -l <"$tmp/out")" "$(wc -l <"$tmp/arrays/metrics.jsonl")"
arrays "$tmp/stopped" 2
check_eq 'exit code of a stopped run' $? 75
check_eq 'its status' "$(record "$tmp/stopped" final status)" stopped
arrays "$tmp/stopped" || { cat "$tmp/err"; fail 'train_arrays, again'; }
check_eq 'bits over the stop' "$(crc "$tmp/stopped")" "$(crc "$tmp/arrays")"
check_eq 'an answer' "$(echo 0.5,-0.5 | "$dtrain" predict "$tmp/arrays" 2>/dev/null | json class)" 0

# From a configuration file, without a word of MPI.
build cc train_file.c
mpirun -q --timeout 60 --oversubscribe -np 3 "$tmp/train_file-cc" "$recipes/penguins.ini" run.dir="$tmp/file" train.epochs=2 \
    data.train="$recipes/data/penguins.csv" >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail 'train_file'; }
grep -q 'trained by 3 ranks' "$tmp/out" || { cat "$tmp/out"; fail 'train_file says nothing'; }
mpirun -q --timeout 60 --oversubscribe -np 3 "$tmp/train_file-cc" search "$recipes/penguins.ini" run.dir="$tmp/search" \
    search.trials=3 train.epochs=2 data.train="$recipes/data/penguins.csv" >"$tmp/sout" 2>&1 ||
    { cat "$tmp/sout"; fail 'a search'; }
[ -f "$tmp/search/export/best/3/model.h5" ] || { cat "$tmp/sout"; fail 'no model of a search'; }
grep -q '^epochs = 2$' "$tmp/out" || { cat "$tmp/out"; fail 'the settings of train_file'; }
build cc history.c
check_eq 'status of a run' "$("$tmp/history-cc" "$tmp/arrays" | head -1 | cut -d, -f1)" completed
check_eq 'its best' "$("$tmp/history-cc" "$tmp/arrays" | sed -n 's/^best: \([0-9.]*\) .*/\1/p')" \
    "$(sed -n 's/.*"kind":"eval".*"accuracy":\([0-9.]*\).*/\1/p' "$tmp/arrays/metrics.jsonl" | sort -g | tail -1)"
if command -v c++ >/dev/null && command -v curl >/dev/null; then
    build c++ serve.cpp
    mkfifo "$tmp/end"
    "$tmp/serve-c++" "$tmp/run" <"$tmp/end" >"$tmp/out" 2>&1 &
    exec 9>"$tmp/end"
    settle grep -q 'at port' "$tmp/out" || { exec 9>&-; cat "$tmp/out"; fail 'serve.cpp'; }
    curl -s -d "{\"instances\": [[$row]]}" "http://127.0.0.1:$(sed 's/.* //' "$tmp/out")/v1/models/default:predict" >"$tmp/answer"
    grep -q "\"$want\"" "$tmp/answer" || { cat "$tmp/answer"; fail 'an answer of serve.cpp'; }
    exec 9>&-
    wait $! || fail 'the end of serve.cpp'
fi
# The first program of library.md.
if [ -r "$root/scripts/doc/library.md" ]; then
    awk '/^```c$/ {on = 1; next} /^```/ {if (on) exit} on' "$root/scripts/doc/library.md" >"$tmp/first.c"
    build cc first.c "$tmp"
    (cd "$tmp" && ./first-cc) >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail 'the first program of library.md'; }
    check_ge 'its probability' "$(sed -n 's/^class 1 with probability //p' "$tmp/out")" 0.8
fi

# A program compiled when option structs had a member less, and more, runs with this library.
older() {
    mkdir -p "$tmp/$1/dtrain"
    cp "$tmp/prefix/include/dtrain/"*.h "$tmp/$1/dtrain"
    sed -i "$2" "$tmp/$1/dtrain/$3"
    "${MPICC:-mpicc}" -I"$tmp/$1" "$examples/train_arrays.c" $flags -lm -o "$tmp/$1/program" >"$tmp/out" 2>&1 ||
        { cat "$tmp/out"; fail "a header of $1"; }
    mpirun -q --timeout 60 --oversubscribe -np 3 "$tmp/$1/program" "$tmp/$1/run" >"$tmp/out" 2>"$tmp/err" ||
        { cat "$tmp/err"; fail "a program of $1"; }
    check_eq "bits of a program of $1" "$(crc "$tmp/$1/run")" "$(crc "$tmp/arrays")"
}
older older '/const float \*weight; /d; s/NULL, NULL, NULL, NULL  /NULL, NULL, NULL  /' data.h
older newer 's|^    void \*arg; /\* of record and stop \*/|&\n    void *later;|; s/NULL, NULL  /NULL, NULL, NULL  /' train.h

# A program with work, signals and floating-point traps of its own.
build "${MPICC:-mpicc}" host.c "$root/tests/e2e"
mpirun -q --timeout "$limit" --oversubscribe -np 3 "$tmp/host-${MPICC:-mpicc}" "$tmp/host" >"$tmp/out" 2>&1 ||
    { cat "$tmp/out"; fail 'a program around the library'; }

build "${MPICC:-mpicc}" own_loss.c
mpirun -q --timeout "$limit" --oversubscribe -np 3 "$tmp/own_loss-${MPICC:-mpicc}" "$tmp/own" >"$tmp/out" 2>"$tmp/err" || { cat "$tmp/err"; fail 'own_loss'; }
check_ge 'its prediction, of targets from 0 to 1' "$(sed -n 's/^prediction at 0.5: //p' "$tmp/out")" 0.8
# Too little costs nine times what too much does: nine of ten values are below what is predicted.
above=$(awk 'BEGIN {for (i = 0; i < 100; i++) print (i + 0.5) / 100}' | "$dtrain" predict "$tmp/own" 2>/dev/null |
    sed 's/.*:\(.*\)}/\1/' | awk '{x = (NR - 0.5) / 100; all += $1 - x} END {print all / NR}')
check_ge 'predicted above the mean' "$above" 0.3
check_le 'predicted above the mean' "$above" 0.5
check_ge 'its loss' "$(record "$tmp/own" eval loss)" 0.4 # at best 0.45, on all rows
check_le 'its loss' "$(record "$tmp/own" eval loss)" 0.5

fort=$(echo "${MPICC:-mpicc}" | sed s/cc/fort/)
# Open MPI's wrapper is there without the compiler that it wraps.
if "$fort" --version >/dev/null 2>&1; then
    "$fort" "$tmp/prefix/include/dtrain/dtrain.f90" "$examples/train_arrays.f90" $flags -o fortran >"$tmp/out" 2>&1 ||
        { cat "$tmp/out"; fail 'the Fortran example'; }
    mpirun -q --timeout "$limit" --oversubscribe -np 3 ./fortran "$tmp/product" >"$tmp/out" 2>"$tmp/err" ||
        { cat "$tmp/err" "$tmp/out"; fail 'Fortran'; }
    value=$(awk '/is about/ {print $NF}' "$tmp/out")
    check_ge 'a product by Fortran' "$value" -0.30
    check_le 'a product by Fortran' "$value" -0.20
    "$fort" "$tmp/prefix/include/dtrain/dtrain.f90" "$root/tests/e2e/host.f90" $flags -o host-fortran >"$tmp/out" 2>&1 ||
        { cat "$tmp/out"; fail 'the Fortran test'; }
    mpirun -q --timeout "$limit" --oversubscribe -np 2 ./host-fortran "$tmp/host-fortran.run" >"$tmp/out" 2>&1 ||
        { cat "$tmp/out"; fail 'what Fortran is refused'; }
fi

make --no-print-directory BUILD="$root/$BUILD" PREFIX="$tmp/prefix" -C "$root" uninstall >/dev/null || fail 'make uninstall'
[ -z "$(find "$tmp/prefix" -type f -o -type l)" ] || { find "$tmp/prefix" -type f; fail 'files stay behind'; }
