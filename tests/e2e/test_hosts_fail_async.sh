#!/bin/sh
# Fails if hosts wait for a rank that failed, in async on three hosts, or the error does not name
# it.
# seconds: 180
# waits
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/hosts_fail.sh"
all_that_fails async
