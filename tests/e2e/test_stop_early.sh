#!/bin/sh
# Fails if a signal that arrives before the program waits for it is lost. A stop in the first
# moments of a process, before MPI or a library has started, ends with 75, and the same command goes
# on as if nothing had been.
# Steps are slow, so that a run of any machine is still going when the last of the signals comes.
# seconds: 40
. "$(dirname "$0")/lib.sh"
job 1 "$recipes/penguins.ini" run.dir="$tmp/whole" 2>"$tmp/err" || fail_with "$tmp/err" 'penguins'

# What is blocked from main's first line on.
blocks() {
    grep -q dtrain "/proc/$1/comm" && ! grep -q "^SigBlk:.0000000000000000$" "/proc/$1/status"
} 2>/dev/null
stop_at() {
    number=$1 secs=$2
    "$dtrain" "$recipes/penguins.ini" run.dir="$tmp/run" test.slow_rank=0 test.slow_secs=0.3 \
        2>>"$tmp/err" &
    # (While the program is loaded, before main, nothing can hold a signal off.)
    until blocks $! || ! kill -0 $!; do :; done
    sleep "$secs"
    kill -"$number" $!
    wait $!
    check_eq "$number at $secs" $? 75
}
for number in USR1 TERM INT; do
    for secs in 0 0.1 0.2 0.3; do
        rm -rf "$tmp/run"
        stop_at $number $secs
    done
done
"$dtrain" "$recipes/penguins.ini" run.dir="$tmp/run" 2>"$tmp/err" ||
    fail_with "$tmp/err" 'the run again'
check_eq 'params_crc32c' "$(crc "$tmp/run")" "$(crc "$tmp/whole")"
