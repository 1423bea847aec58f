#!/bin/sh
# Fails if memory, open files or connections of a search grow with its trials, or a trial that
# diverges or needs more memory than the host has ends the search.
# seconds: 60
# waits
. "$(dirname "$0")/lib.sh"
cd "$tmp" || exit 1
awk 'BEGIN { srand(5); print "a,b,y"; for (i = 0; i < 200; i++) {
    a = rand(); b = rand(); print a "," b "," (a * b + rand() > 0.7 ? "yes" : "no") } }' >rows.csv
mpirun --timeout "$limit" --oversubscribe -np 3 "$dtrain" search data.train=rows.csv \
    run.dir="$tmp/s" search.trials=1000 train.epochs=3 train.optimizer=sgd \
    'search.space=train.lr=0.01|0.1|0.2|1e9; model.hidden=8|16|16|16|32|64|8,8|160000,160000' \
    2>err &
job=$!
begun() { [ "$(grep -c '"trial"' s/search.jsonl)" -ge "$1" ]; }
# use: most files, connections, and KiB of memory of any process, in ten looks
use() {
    for look in 1 2 3 4 5 6 7 8 9 10; do
        for rank in 0 1 2; do
            process=$(pid "$tmp/s" dtrain $rank)
            links=$(ls -l "/proc/$process/fd" 2>/dev/null)
            echo "$(echo "$links" | wc -l) $(echo "$links" | grep -c socket:)" \
                "$(awk '/^VmRSS/ { print $2 }' "/proc/$process/status" 2>/dev/null)"
        done
    done | awk 'NF == 3 { for (i = 1; i <= 3; i++) if ($i > most[i]) most[i] = $i }
        END { print most[1], most[2], most[3] }'
}
wait_until begun 50 || fail_with err 'no 50 trials'
early=$(use)
wait_until begun 800 || fail_with err 'no 800 trials'
late=$(use)
begun 1000 && fail 'the search ended too early to look'
wait $job || fail_with err 'a search of 1000 trials'
echo "files, connections, KiB: after 50 trials $early, after 800 $late"
# shellcheck disable=SC2086 # three numbers
set -- $early $late
check_le files "$4" $(($1 + 3))
check_le connections "$5" $(($2 + 2))
check_le memory "$6" $(($3 * 11 / 10))
check_eq 'trials decided' "$(grep -c '"trial":' s/search.jsonl)" 1000
check_ge 'trials that diverge' "$(grep -c '"status":"diverged"' s/search.jsonl)" 10
check_ge 'trials of 100 GB' "$(grep -c '"status":"memory"' s/search.jsonl)" 50
