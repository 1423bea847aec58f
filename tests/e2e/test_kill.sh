#!/bin/sh
# Fails if a checkpoint can be torn, a resume is not exact, or a rank outlives the others.
# kill -9 of a random rank at a random moment, three times in sync and three in async: the job ends
# soon, every start resumes, and the end is that of an undisturbed run. long_kill.sh does it more
# often.
# seconds: 240
# waits
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/kill.sh"
"$recipes/exp-data.sh" "$tmp/data"
kill_often sync 3
kill_compare_sync
kill_often async 3
kill_count_async
