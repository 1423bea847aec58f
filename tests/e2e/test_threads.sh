#!/bin/sh
# Fails if a library is loaded or a thread starts before main has prepared for it. Every thread of
# every rank, those of MPI, OpenMP and OpenBLAS among them, flushes denormals, and takes no signal
# that has a handler or asks to stop: but one, which is there for that.
# seconds: 30
. "$(dirname "$0")/lib.sh"
[ "$(uname -m)" = x86_64 ] || skip 'reads registers of x86-64'
need_cc
${CC:-cc} -O1 -o "$tmp/registers" tests/e2e/registers.c || fail 'registers.c'

# A stop is put off long enough to look at a run with threads of every kind: BLAS, read-ahead,
# checkpoints.
awk -v OFS=, \
    'BEGIN {for (i = 0; i < 60000; i++) print i % 7, i % 11, i % 13, i % 17, i % 19, i % 5}' \
    >"$tmp/data.csv"
look() {
    what=$1
    shift
    job 3 train run.dir="$tmp/run-$what" data.train="$tmp/data.csv" data.header=no \
        train.epochs=100000 run.threads=2 run.checkpoint_secs=1 data.memory_mb=1 "$@" \
        2>"$tmp/err" &
    launcher=$!
    wait_until grep -q '"kind":"checkpoint","step":[1-9]' "$tmp/run-$what/metrics.jsonl" ||
        fail_with "$tmp/err" "$what does not start"
    ids=
    for rank in 0 1 2; do ids="$ids $(pid "$tmp/run-$what" dtrain $rank)"; done
    "$tmp/registers" $ids >"$tmp/threads" ||
        { kill -KILL $ids; skip "may not trace its own processes"; }
    kill -USR1 "$(pid "$tmp/run-$what" mpirun)"
    wait $launcher
    check_eq "exit code of $what" $? 75
    cat "$tmp/threads"
    check_ge "threads of $what" "$(wc -l <"$tmp/threads")" 9
    # Bits 15 and 6 of MXCSR; SIGUSR1, INT, TERM, PROF, CHLD and ALRM of the mask (bit n - 1).
    awk '
    function digit(text, n) {
        return index("0123456789abcdef", substr(text, length(text) - n, 1)) - 1
    }
    function bit(text, n) { return int(digit(text, int(n / 4)) / 2 ^ (n % 4)) % 2 }
    function expect(good, what) { if (!good) { print $2, what; bad = 1 } }
    {
        expect(bit($3, 15) && bit($3, 6), "does not flush denormals")
        if ($2 == "dt_signals") { takers++; next }
        expect(bit($4, 9) && bit($4, 1) && bit($4, 14), "takes stops")
        expect(bit($4, 26) && bit($4, 16) && bit($4, 13), "takes signals")
    }
    END {
        if (takers != 3) { print takers + 0, "threads take signals, not 3"; bad = 1 }
        exit bad
    }' "$tmp/threads" || fail "$what"
}
look onednn run.kernel=auto
look openblas run.kernel=Nehalem
