# Sourced behind lib.sh: ranks that are stopped, and what the watchdog makes of them.

stall=2    # run.stall_secs of these runs
slack=2500 # ms behind it, within which the job must be gone

# stalls RUN_DIR RANK HOST PHASE: stops a rank of the job that runs in the background ($!), whose
# stderr is $tmp/err: the job ends in time, and one error line names the rank and what it did.
stalls() {
    victim=$(pid "$1" dtrain "$2")
    [ -n "$victim" ] || { cat "$tmp/err"; fail "rank $2 is not there"; }
    start=$(date +%s%N)
    kill -STOP "$victim"
    wait $!
    status=$?
    millis=$((($(date +%s%N) - start) / 1000000))
    line=$(grep '^dtrain: error:' "$tmp/err")
    echo "exit $status, $millis ms: $line"
    check_eq 'error lines' "$(grep -c '^dtrain: error:' "$tmp/err")" 1
    case $line in *"run.stall_secs"*"rank $2 on $3 ("$4*) ;; *) fail "expected rank $2 on $3 ($4)" ;; esac
    [ $status -ne 0 ] && [ $status -ne 75 ] && [ $status -ne 110 ] || fail "exit $status"
    check_ge 'ms to the end' $millis $((stall * 1000 - 300))
    check_le 'ms to the end' $millis $((stall * 1000 + slack))
    settle 3 no_rank "$1" || fail 'a rank is left'
}
no_rank() { [ -z "$(pid "$1" dtrain)" ]; }
