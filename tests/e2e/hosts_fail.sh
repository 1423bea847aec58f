# Sourced after lib.sh: what goes wrong on three hosts in the middle of a run.
. "$root/tests/e2e/netns.sh"
. "$root/tests/e2e/watchdog.sh"
hosts_up 3
watchdog_data
hosts_slots 1 2 1
stall=60

# ends TEXT: the job in the background ends by itself, with TEXT in its one error line; '' for none.
ends() {
    wait $!
    status=$?
    echo "exit $status: $(grep '^dtrain: error:' "$tmp/err")"
    [ $status -ne 0 ] && [ $status -ne 75 ] || fail_with "$tmp/err" "exit $status"
    by_itself $status
    ! grep -q 'run.stall_secs' "$tmp/err" || fail_with "$tmp/err" 'only the watchdog ends it'
    [ -z "$1" ] || [ "$(grep -c '^dtrain: error:' "$tmp/err")" -eq 1 ] || fail 'error lines'
    grep -q "^dtrain: error:.*$1" "$tmp/err" || [ -z "$1" ] || fail "the error lacks '$1'"
    wait_until gone_here || fail 'a rank is left'
}
gone_here() { [ -z "$(pid "$tmp/$name" dtrain)" ]; }

# 800,000 rows of two bytes, and their labels: IDX is read again in each epoch.
{
    printf '\000\000\010\002\000\014\065\000\000\000\000\002'
    yes a7k | tr -d '\n' | head -c 1600000
} >"$tmp/rows.idx"
{
    printf '\000\000\010\001\000\014\065\000'
    yes aabab | tr -d '\n' | tr ab '\000\001' | head -c 800000
} >"$tmp/labels.idx"
# all_that_fails MODE: in sync or async.
all_that_fails() {
    mode=$1
    name=nan-$mode
    watched 4 $name train.mode=$mode run.replicas=3 train.optimizer=sgd train.lr=1e9 \
        model.kind=linear 2>"$tmp/err" >"$tmp/out" &
    ends "rank [123] on .*the loss of replica"

    name=changed-$mode
    cp "$tmp/rows.idx" "$tmp/streamed.idx"
    begin 4 $name train.mode=$mode run.replicas=3 data.train="$tmp/streamed.idx" data.label= \
        data.train_labels="$tmp/labels.idx" data.eval= data.memory_mb=1 data.shuffle_window=4096
    : >"$tmp/streamed.idx"
    ends "rank [123] on .*streamed.idx"

    for rank in 0 3; do
        name=killed-$mode-$rank
        begin 4 $name train.mode=$mode run.replicas=3
        kill -KILL "$(pid "$tmp/$name" dtrain $rank)"
        ends ''
        grep -q "rank $rank" "$tmp/err" || untold $status "$tmp/err" ||
            fail_with "$tmp/err" "rank $rank is not named"
    done
}
