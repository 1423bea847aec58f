#!/bin/sh
# As hosts_fail, in async.
# seconds: 180
# waits
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/hosts_fail.sh"
all_that_fails async
