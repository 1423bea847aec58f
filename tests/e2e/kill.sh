# Sourced after lib.sh: jobs whose ranks are killed at random moments, again and again, and a
# tally.

# A network whose saves last several steps; it saves every few steps.
kill_job() {
    mode=$1 dir=$2
    shift 2
    job 3 "$recipes/exp-curve.ini" run.dir="$dir" data.train="$tmp/data/train.csv" \
        data.eval="$tmp/data/test.csv" eval.steps=-1 model.hidden=1200,1200 \
        train.schedule=constant train.optimizer=adam train.lr=0.0001 train.mode="$mode" \
        run.replicas=2 run.checkpoint_steps=3 run.keep=3 export.keep=2 train.epochs=1000000 "$@"
}

random() { echo $(($(od -An -N4 -tu4 /dev/urandom) % $1)); }
saving() { ls "$1"/ckpt/*.tmp-* >/dev/null 2>&1; }
await_save() { for try in $(seq 5000); do saving "$1" && return; done; false; }
newest() { ls "$1/ckpt" | sed -n 's/^step-0*\([0-9][0-9]*\).h5$/\1/p' | sort -n | tail -n 1; }

# kill_once MODE RANK AIM: starts or resumes $tmp/MODE and kills a rank: at a random moment of the
# first two seconds of training, or (AIM=save) as soon as a save is under way then. A file that is
# left half-written is the proof.
kill_once() {
    rm -f "$tmp/err"
    kill_job "$1" "$tmp/$1" 2>"$tmp/err" >"$tmp/out" &
    wait_until grep -q 'ing at step' "$tmp/err" || fail_with "$tmp/err" "start $kills of $1"
    wait_until test -e "$tmp/$1/ckpt/latest.h5" || fail "no first checkpoint of $1"
    grep -q 'resuming at step' "$tmp/err" && resumes=$((resumes + 1))
    sleep "$(random 2).$(random 10)$(random 10)"
    victim=$(pid "$tmp/$1" dtrain "$2")
    case $3 in save) await_save "$tmp/$1" ;; *) saving "$tmp/$1" ;; esac && in_save=$((in_save + 1))
    kill -KILL "$victim" || fail "rank $2 has gone by itself: $(cat "$tmp/err")"
    start=$(now)
    wait $! && fail 'a killed job ends with 0'
    by_itself $?
    millis=$(millis_since "$start")
    [ $millis -le $slowest ] || slowest=$millis
    wait_until gone || fail 'a process is left'
    saving "$tmp/$1" && torn=$((torn + 1))
    echo "$1, kill $kills: rank $2 at step $(newest "$tmp/$1") or so, $millis ms to the end"
}

# kill_often MODE COUNT: every third kill aims at a save, mostly at the bank's.
kill_often() {
    kills=0 resumes=0 in_save=0 torn=0 slowest=0
    while [ $kills -lt "$2" ]; do
        kills=$((kills + 1))
        case $((kills % 9)) in
        3 | 6) kill_once "$1" 0 save ;;
        0) kill_once "$1" "$(random 3)" save ;;
        *) kill_once "$1" "$(random 3)" any ;;
        esac
    done
    last=$(($(newest "$tmp/$1") + 20))
    kill_job "$1" "$tmp/$1" train.max_steps=$last 2>"$tmp/err" ||
        fail_with "$tmp/err" 'the last resume'
    check_eq 'resumes that went on from a checkpoint' $resumes $((kills - 1))
    check_ge 'five times the kills inside a save' $((in_save * 5)) "$2"
    check_eq 'step' "$(record "$tmp/$1" final step)" $last
    echo "tally of $1: $kills kills, $in_save in a save, $torn left a torn file," \
        "$resumes resumes, slowest end $slowest ms, $last steps"
}

# The undisturbed run has the same bits.
kill_compare_sync() {
    kill_job sync "$tmp/whole" run.checkpoint_steps=0 \
        train.max_steps="$(record "$tmp/sync" final step)" 2>"$tmp/err" ||
        fail_with "$tmp/err" 'the undisturbed run'
    check_eq 'params_crc32c' "$(crc "$tmp/sync")" "$(crc "$tmp/whole")"
}

# No gradient was lost over all the kills, none applied twice.
kill_count_async() {
    for key in gradients_sent gradients_applied; do
        check_eq $key "$(record "$tmp/async" final $key)" "$(record "$tmp/async" final step)"
    done
}
