#!/bin/sh
# Every thread of every rank, those of MPI, OpenMP and OpenBLAS among them, flushes denormals, and
# takes no signal that has a handler or asks to stop: but one, which is there for that. Catches a
# library that is loaded or a thread that is started before main has seen to it.
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
    job 3 train run.dir="$tmp/run-$what" data.train="$tmp/data.csv" data.header=no train.epochs=100000 \
        run.threads=2 run.checkpoint_secs=1 data.memory_mb=1 "$@" 2>"$tmp/err" &
    launcher=$!
    settle grep -q '"kind":"checkpoint","step":[1-9]' "$tmp/run-$what/metrics.jsonl" ||
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
    awk '{register[NR] = $3; mask[NR] = $4; name[NR] = $2}
         function bit(text, n) { return int(index("0123456789abcdef", substr(text, length(text) - int(n / 4), 1)) - 1) % 2 ^ (n % 4 + 1) >= 2 ^ (n % 4) }
         END { for (i = 1; i <= NR; i++) {
             if (!bit(register[i], 15) || !bit(register[i], 6)) { print name[i], "does not flush denormals"; bad = 1 }
             if (name[i] == "dt_signals") { takers++; continue }
             if (!bit(mask[i], 9) || !bit(mask[i], 1) || !bit(mask[i], 14)) { print name[i], "takes stops"; bad = 1 }
             if (!bit(mask[i], 26) || !bit(mask[i], 16) || !bit(mask[i], 13)) { print name[i], "takes signals"; bad = 1 }
         } if (takers != 3) { print takers + 0, "threads take signals, not 3"; bad = 1 }
         exit bad }' "$tmp/threads" || fail "$what"
}
look onednn run.kernel=auto
look openblas run.kernel=Nehalem
