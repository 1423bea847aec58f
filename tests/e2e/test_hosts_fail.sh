#!/bin/sh
# Fails if hosts wait for the layers of a rank that failed or has no replica, in sync on three
# hosts. A loss that is not finite, data that changes while it is streamed, and a killed rank end
# the job soon, by one error line that names the rank where the program knows it.
# seconds: 180
# waits
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/hosts_fail.sh"
for exchange in node ordered reduce; do
    watched 4 idle-$exchange train.exchange=$exchange train.epochs=10 2>"$tmp/err" ||
        fail_with "$tmp/err" "workers without a replica: $exchange"
done
check_eq 'bits with idle workers' "$(crc "$tmp/idle-node")" "$(crc "$tmp/idle-ordered")"
all_that_fails sync
