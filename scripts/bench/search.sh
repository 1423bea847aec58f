#!/bin/sh
# dtrain search: a rank per trial against single runs on the same cores; early ends against all
# trials in full; the default space and folds on tables, beside the single default, boosted trees,
# scikit-learn's cross-validation and random search. PEERS: a file that keeps what others came to.
. "$(dirname "$0")/lib.sh"
shapes=${SHAPES:-784-6-10 784-64-10 784-512-256-10 784-2048-1536-10}
common="data.train=$images data.train_labels=$labels data.scale=0.00392156862745098 train.batch=128
    data.eval_fraction=0.02 eval.steps=-1 run.checkpoint_secs=0"

# ---- one rank per trial --------------------------------------------------------------------------

# Samples per second of CPU of the runs in directories, on all cores: other work changes it little.
rate_of() {
    for dir; do echo "$(record "$dir" final samples) $(record "$dir" final bank_cpu_secs)"; done |
        awk -v n="$workers" '{ samples += $1; secs += $2 } END { print n * samples / secs }'
}

# Single runs on all cores at a time.
turn_single() {
    for core in $(seq "$workers"); do
        # shellcheck disable=SC2086  # words
        job 1 train $common "$(options_of "$net")" train.max_steps="$steps" run.seed="$core" \
            run.dir="$tmp/single-$core" 2>"$tmp/log-$core" &
    done
    wait
    note_rate 'single runs' "$(rate_of "$tmp"/single-*)"
    rm -rf "$tmp"/single-*
}

# The seconds of CPU that a process has used.
cpu_secs() { awk -v hz="$(getconf CLK_TCK)" '{ print ($14 + $15) / hz }' "/proc/$1/stat"; }

# Seconds of CPU and of the clock of the leader, from its first trial to its last second.
watch_leader() {
    until [ -d "$tmp/search/trials" ]; do sleep 0.1; done
    leader=$(pid "$tmp/search" dtrain 0)
    begin="$(date +%s.%N) $(cpu_secs "$leader")"
    while sleep 0.2 && used=$(cpu_secs "$leader" 2>/dev/null) && [ "$used" ]; do
        echo "$begin $(date +%s.%N) $used" >"$tmp/leader"
    done
}

turn_search() {
    watch_leader &
    watch=$!
    # shellcheck disable=SC2086  # words
    job "$full" search $common "$(options_of "$net")" train.max_steps="$steps" search.ensemble=1 \
        search.space=train.lr=0.01..0.02 search.trials=$((2 * workers + 1)) run.dir="$tmp/search" \
        2>"$tmp/log"
    wait $watch
    rm -rf "$tmp/search/trials/0001" # the linear one
    note_rate search "$(rate_of "$tmp"/search/trials/*)"
    note search leader_percent "$(awk '{ print 100 * ($4 - $2) / ($3 - $1) }' "$tmp/leader")"
    rm -rf "$tmp/search"
}

measure_rates() {
    steps=$(calc "int($SECS * 2e10 / ($(flops_of "$net") + 1e5) / $batch) + 20")
    take_turns turn_single turn_search
    compare samples_per_sec search 'single runs' 0.95
}

# ---- tables --------------------------------------------------------------------------------------

find_python() {
    for python in ${PYTHON:-} python3 /usr/bin/python3; do
        "$python" -c 'import numpy, scipy, sklearn, xgboost' 2>/dev/null && return
    done
    remark 'python3-sklearn or python3-xgboost is not installed'
    return 1
}

# tables NAME TABLES PROGRAMS [ARGUMENTS]: leaves NAME/tables.txt in OUT.
tables() {
    to=$1 which=$2 programs=$3
    shift 3
    "$python" "$bench/tables.py" "$OUT/$to" --dtrain "$dtrain" --peers "${PEERS:-$OUT/peers.json}" \
        --tables "$which" --programs "$programs" "$@"
}

measure_tables() {
    find_python || return 0
    all=concrete,house,attrition,churn,spam,Satellite,ames,diamonds,credit,wa_churn,cells,hpc
    few=concrete,attrition,cells
    [ -z "${QUICK:-}" ] || all=concrete,churn few=attrition
    tables search $all 'dtrain,search,5 folds,XGBoost,HistGradientBoosting,XGBoost 30' --splits 1
    tables folds $few '5 folds,perceptron 5 folds,search,perceptron search' --splits 1
    # The second best setting of a search of the first split.
    [ "${QUICK:-}" ] || tables diamonds diamonds '10 folds' run.preset=table train.lr=0.0024 \
        train.weight_decay=0.053 model.hidden=128,128 data.encode=ple data.encode_bins=30
}

# ---- early ends ----------------------------------------------------------------------------------

decided() {
    sed -n '/"kind":"trial"/{ /"epochs"/d; s/.*"score":\([^,]*\).*/\1/p }' "$1/search.jsonl"
}
steps_of() { for dir in "$1"/trials/*; do record "$dir" final step; done; }
sum() { awk '{ n += $1 } END { print n }'; }

# 200 trials in full, and the best 20 of 200 after five epochs; the round is the seed.
turn_early() {
    for how in full early; do
        also=
        [ $how = full ] || also='search.first_epochs=5 search.finish=20'
        # shellcheck disable=SC2086  # words
        job "$full" search data.train="$tmp/concrete.csv" data.label=compressive_strength \
            model.task=regress train.epochs=40 run.seed="$round" search.trials=200 \
            run.dir="$tmp/$how" $also 2>"$tmp/log"
        note $how loss "$(decided "$tmp/$how" | sort -g | head -n 1)"
        note $how steps "$(steps_of "$tmp/$how" | sum)"
        rm -rf "${tmp:?}/$how"
    done
}

measure_early() {
    case='200 trials of concrete'
    "$bench/../recipes/r-data.py" modeldata/concrete "$tmp/concrete.csv" >"$tmp/log" ||
        { remark 'there is no table'; return; }
    take_turns turn_early
    compare loss early full 1.01
    compare steps early full 0.25
}

for net in $shapes; do
    batch=128 case=$net
    measure_rates
done
measure_early
measure_tables
