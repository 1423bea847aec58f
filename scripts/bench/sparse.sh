#!/bin/sh
# Sparse rows: WordNet's glosses to 45 classes, a linear model (scripts/recipes/wordnet.ini),
# against liblinear-train -s 1 -c 1. Time is that of the whole program, reading the data included;
# dtrain's training alone is a second figure.
. "$(dirname "$0")/lib.sh"
wordnet=$tmp/wordnet
case="WordNet, linear"

note_accuracy() { say "$1: $2"; note "$1" test_accuracy "$2"; }

turn_dtrain() { # NP
    run=$tmp/run
    rm -rf "$run" "$tmp"/rank-*
    watch_memory 2>/dev/null &
    watcher=$!
    began=$(now)
    job "$1" "$recipes/wordnet.ini" run.dir="$run" data.train="$wordnet/train.svm" \
        run.seed="$round" data.eval="$wordnet/test.svm" eval.steps=-1 >"$tmp/log" 2>&1 </dev/null
    status=$?
    millis=$(millis_since "$began")
    kill $watcher
    [ $status -eq 0 ] || { say "$(grep 'dtrain: error' "$tmp/log")"; return 1; }
    note_rate "dtrain np=$1" "$(rate)"
    note_accuracy "dtrain np=$1" "$(record "$run" eval accuracy)"
    note "dtrain np=$1" train_secs "$(calc "$(record "$run" final samples) / $(rate)")"
    note "dtrain np=$1" whole_secs "$(calc "$millis / 1000")"
    note "dtrain np=$1" peak_mb "$(cat "$tmp"/rank-* 2>/dev/null | sort -g | tail -n 1)"
}

turn_liblinear() {
    began=$(now)
    liblinear-train -s 1 -c 1 -q "$wordnet/train.svm" "$tmp/liblinear" || return
    millis=$(millis_since "$began")
    accuracy=$(liblinear-predict "$wordnet/test.svm" "$tmp/liblinear" /dev/null |
        sed 's/.*= \([0-9.]*\)%.*/\1/')
    note_accuracy liblinear "$(calc "$accuracy / 100")"
    note liblinear whole_secs "$(calc "$millis / 1000")"
}

measure() {
    "$recipes/wordnet-data.sh" "$wordnet" 2>"$tmp/log" || { remark "$(cat "$tmp/log")"; return; }
    if command -v liblinear-train >/dev/null; then
        take_turns "turn_dtrain $full" 'turn_dtrain 1' turn_liblinear
        compare whole_secs liblinear "dtrain np=$full" 3
        compare test_accuracy "dtrain np=$full" liblinear 0.998
    else
        take_turns "turn_dtrain $full" 'turn_dtrain 1'
        remark 'liblinear-train is not installed (apt-get install liblinear-tools)'
    fi
}

measure
