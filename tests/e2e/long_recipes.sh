#!/bin/sh
# Fails if the Fashion-MNIST recipes miss what they promise, in sync or in async.
# seconds: 900
. "$(dirname "$0")/lib.sh"
limit=400
job 3 "$recipes/fashion-mnist.ini" run.dir="$tmp/sync" || fail sync
check_ge 'test accuracy, sync' "$(record "$tmp/sync" eval accuracy)" 0.895
for np in 3 5; do
    job $np "$recipes/fashion-mnist-async.ini" run.dir="$tmp/async$np" || fail "async at np=$np"
    check_ge "test accuracy, async at np=$np" "$(record "$tmp/async$np" eval accuracy)" 0.885
    check_eq 'gradients applied' "$(record "$tmp/async$np" final gradients_applied)" \
        "$(record "$tmp/async$np" final gradients_sent)"
done
