#!/bin/sh
# What goes wrong on three hosts in the middle of a run in sync: a loss that is not finite, data that changed
# while it is streamed, a rank that is killed. Each ends the job soon, by one error line that names the rank
# where the program can tell. Would catch hosts that wait for the layers of a rank that failed, or has no replica.
# seconds: 180
# waits
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/hosts_fail.sh"
for exchange in node ordered reduce; do
    watched 4 idle-$exchange train.exchange=$exchange train.epochs=10 2>"$tmp/err" ||
        { cat "$tmp/err"; fail "workers without a replica: $exchange"; }
done
check_eq 'bits with idle workers' "$(crc "$tmp/idle-node")" "$(crc "$tmp/idle-ordered")"
all_that_fails sync
