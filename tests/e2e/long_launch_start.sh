#!/bin/sh
# Fails if a kill while a job starts makes `dtrain launch` hang or end with other bits and no error.
# A random rank is killed in the second after the first one starts, most of them in MPI_Init, where
# neither mpirun nor the other ranks can be trusted: each job ends by itself, with the undisturbed
# bits or one error line. KILLS (100): how many; LANES (4): at a time.
# seconds: 600
. "$(dirname "$0")/lib.sh"
"$recipes/exp-data.sh" "$tmp/data"
launch() { # launch NAME
    "$dtrain" launch --oversubscribe -np 3 "$recipes/exp-curve.ini" \
        data.train="$tmp/data/train.csv" data.eval="$tmp/data/test.csv" eval.steps=-1 \
        run.replicas=2 train.max_steps=50 run.dir="$tmp/$1" >"$tmp/$1.out" 2>"$tmp/$1.err"
}
random() { echo $(($(od -An -N2 -tu2 /dev/urandom) % $1)); }
a_rank() { # a_rank NAME: sets $victim
    victim=$(pid "$tmp/$1" dtrain "$(random 3)")
    [ -n "$victim" ]
}
one_kill() { # one_kill NAME
    launch "$1" &
    job=$!
    wait_until a_rank "$1" || fail "$1 does not start"
    millis=$(random 1000)
    sleep "$(printf 0.%03d "$millis")"
    a_rank "$1" && kill -KILL "$victim" && said="rank $victim killed after $millis ms" ||
        said='over before'
    start=$(now)
    wait_until sh -c "! kill -0 $job" || fail_with "$tmp/$1.err" "$1: $said, and no end"
    wait $job
    code=$?
    errors=$(grep -c '^dtrain: error:' "$tmp/$1.err")
    ended="exit $code $(millis_since "$start") ms later, $errors error lines"
    echo "$1: $said; $ended, bits $(crc "$tmp/$1")"
    case $code in
    0) [ "$(crc "$tmp/$1")" = "$want" ] ;;
    *) [ "$errors" -eq 1 ] ;;
    esac || fail_with "$tmp/$1.err" "$1"
    rm -rf "${tmp:?}/$1"
}
lane() {
    for i in $(seq "$1" "${LANES:-4}" "${KILLS:-100}"); do (one_kill "kill$i") || return 1; done
}
launch quiet || fail_with "$tmp/quiet.err" 'undisturbed'
want=$(crc "$tmp/quiet")
lanes=
for lane in $(seq "${LANES:-4}"); do
    lane "$lane" &
    lanes="$lanes $!"
done
for lane in $lanes; do wait "$lane" || fail 'a kill'; done
