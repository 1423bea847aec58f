#!/bin/sh
# Fails if one of KILLS (30) kills in sync, and as many in async, changes a result: as test_kill.sh.
# seconds: 1200
# waits
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/kill.sh"
limit=600 kills_each=${KILLS:-30}
"$recipes/exp-data.sh" "$tmp/data"
kill_often sync "$kills_each"
kill_compare_sync
kill_often async "$kills_each"
kill_count_async
