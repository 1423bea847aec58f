#!/bin/sh
# Fails if a signal comes too early to be handled, hits a kernel's stack, or a save is not exact.
# STOPS (24) requests to stop, by USR1, TERM and INT in turn, at random moments from the first
# millisecond on: of one process, of a rank of three, and (USR1) by way of mpirun, on the two larger
# recipes. Each ends with 75, saved or nothing begun, and the next start goes on to the undisturbed
# bits.
# seconds: 600
. "$(dirname "$0")/lib.sh"
stops=${STOPS:-24}
fashion=/usr/share/datasets/fashion-mnist
"$recipes/exp-data.sh" "$tmp/data"

# recipe NAME DIR OPTION...: the words of a run of about two seconds; the wider layers keep the
# processor inside the kernels of the matrix library.
recipe() {
    name=$1 dir=$2
    shift 2
    case $name in
    fashion)
        set -- "$recipes/fashion-mnist.ini" model.hidden=64 train.max_steps=3000 eval.steps=1000 \
            "$@"
        ;;
    curve)
        set -- "$recipes/exp-curve.ini" data.train="$tmp/data/train.csv" \
            data.eval="$tmp/data/test.csv" model.hidden=512,256 train.batch=256 train.epochs=300 \
            "$@"
        ;;
    esac
    echo "$@" run.dir="$dir" run.replicas=2 run.log_steps=50
}
# start NP WORDS...: in the background; $job is mpirun, or the process.
start() {
    begin=$(now)
    case $1 in
    1) shift; "$dtrain" "$@" >"$tmp/out" 2>"$tmp/err" & ;;
    *) np=$1; shift; mpirun --oversubscribe -np "$np" "$dtrain" "$@" >"$tmp/out" 2>"$tmp/err" & ;;
    esac
    job=$!
}
random() { echo $(($(od -An -N4 -tu4 /dev/urandom) % $1)); }

# ranks: the processes of the job that are dtrain and take signals: USR1 is blocked for a thread of
# theirs. (While the program is loaded, before main, nothing can hold a signal off.)
ranks() {
    for id in $job $(cat "/proc/$job/task/$job/children" 2>/dev/null); do
        signals=/proc/$id/status
        case $(sed -n 's/^Name:[^a-z]*\(.*\)/\1/p; s/^SigBlk:[^0-9a-f]*//p' "$signals" 2>/dev/null |
            paste -sd' ') in
        'dtrain '*[2367abef]??) echo "$id" ;;
        esac
    done
}
# stop RECIPE NP SIGNAL WHOM: once; WHOM is `rank` or `mpirun`.
stop() {
    dir=$tmp/run
    rm -rf "$dir"
    start "$2" $(recipe "$1" "$dir")
    until [ "$(ranks | wc -l)" -eq "$2" ]; do kill -0 $job 2>/dev/null || fail 'no ranks'; done
    case $4 in
    rank) victim=$(ranks | sed -n "$((1 + $(random "$2")))p") ;;
    mpirun) victim=$job ;;
    esac
    # The first stops come at once.
    millis=$(random $whole_millis)
    [ $n -gt 7 ] || millis=0
    sleep "$(echo $millis | awk '{print $1 / 1000}')"
    kill -"$3" "$victim" 2>/dev/null
    wait $job
    status=$?
    what="stop $n of $1, np $2, $3 to $4 behind $millis ms: exit $status"
    case $status in
    75)
        grep -q '^dtrain: stopped' "$tmp/err" ||
            { bad=$((bad + 1)); echo "$what without a word"; cat "$tmp/err"; }
        ;;
    0) late=$((late + 1)) ;;
    *) bad=$((bad + 1)); echo "$what"; cat "$tmp/err" ;;
    esac
    start "$2" $(recipe "$1" "$dir")
    wait $job || fail_with "$tmp/err" "$what, and the next start"
    [ "$(crc "$dir")" = "$whole_crc" ] ||
        { bad=$((bad + 1)); echo "$what, then $(crc "$dir"), not $whole_crc"; }
    echo "$what at step $(records "$dir" checkpoint step | sed -n '$!p' | tail -n 1)"
}

n=0 bad=0 late=0
for recipe in fashion curve; do
    [ $recipe != fashion ] || [ -d $fashion ] || continue
    rm -rf "$tmp/whole"
    start 1 $(recipe $recipe "$tmp/whole")
    wait $job || fail_with "$tmp/err" "the undisturbed $recipe"
    whole_crc=$(crc "$tmp/whole") whole_millis=$(millis_since "$begin")
    echo "$recipe: $whole_millis ms, $whole_crc"
    n=0
    while [ $n -lt $((stops / 2)) ]; do
        for way in '1 USR1 rank' '3 USR1 mpirun' '1 TERM rank' '3 TERM rank' '1 INT rank' \
            '3 USR1 rank' '3 INT rank'; do
            n=$((n + 1))
            [ $n -gt $((stops / 2)) ] || stop $recipe $way
        done
    done
done
echo "$late of the runs were over before the signal"
check_eq 'stops that end badly' $bad 0
