#!/bin/sh
# As test_kill.sh, fifty times in sync and fifty in async.
# seconds: 1200
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/kill.sh"
"$recipes/exp-data.sh" "$tmp/data"
kill_often sync 50
kill_compare_sync
kill_often async 50
kill_count_async
