#!/bin/sh
# Fails if a call that fails makes a crash, a hang, a missing or second error line, or an exit code
# 0 that is not true. One call of the program's own fails: an allocation, write, fsync, rename,
# open, read, close or thread start, at every STRIDE-th (9) place where one is made; once, and from
# there on. A place is a stack of calls: the first of those that repeat, over all ways that run the
# same role (PLACES=calls: each call of each way). The job ends in time, with one error line and a
# directory that the next start completes, or with nothing lost.
# WAYS and KINDS choose (all); STRIDE=1 tries every place.
# seconds: 900
. "$(dirname "$0")/lib.sh"
stride=${STRIDE:-9} kinds=${KINDS:-thread rename fsync write open read close alloc}
ways='alone resume stream bank worker async-bank async-worker evaluator eval predict shard inspect'
ways=${WAYS:-$ways}
library=$tmp/fault.so
need_cc
${CC:-cc} -O1 -shared -fPIC -o "$library" tests/e2e/fault.c -ldl || fail 'fault.c'
"$recipes/exp-data.sh" "$tmp/data"

# A few steps with everything in them.
train() {
    np=$1 dir=$2
    shift 2
    set -- "$recipes/exp-curve.ini" run.dir="$dir" data.train="$tmp/data/train.csv" \
        data.eval="$tmp/data/test.csv" run.replicas=2 run.checkpoint_steps=2 run.log_steps=1 \
        eval.steps=2 train.max_steps=6 model.hidden=8 run.stall_secs=10 "$@"
    command=$dtrain
    [ "$np" = 1 ] || command="mpirun --timeout $limit --oversubscribe -np $np $dtrain"
    timeout -k 5 "$limit" $command "$@"
}
# way NAME DIR: what is run, over and over; sets $rank, the one whose calls fail.
way() {
    rank=0
    case $1 in
    alone) train 1 "$2" ;;
    resume) [ -d "$2" ] || cp -a "$tmp/half" "$2"; train 1 "$2" ;;
    stream)
        train 1 "$2" data.memory_mb=1 data.shuffle_window=64 model.dropout=0.1 train.clip_norm=1
        ;;
    bank) train 3 "$2" ;;
    worker) rank=1; export FAULT_RANK=1; train 3 "$2" ;;
    async-bank) train 3 "$2" train.mode=async ;;
    async-worker) export FAULT_RANK=2; train 3 "$2" train.mode=async ;;
    evaluator) export FAULT_RANK=3; train 4 "$2" eval.dedicated=yes eval.steps=0 ;;
    eval) "$dtrain" eval "$tmp/half" ;;
    predict) "$dtrain" predict "$tmp/half" <"$tmp/data/test.csv" ;;
    shard)
        "$dtrain" shard "$2" 2 data.train="$recipes/data/penguins.csv" data.label=species \
            data.ignore=island,sex,year
        ;;
    inspect) "$dtrain" inspect "$tmp/half" ;;
    esac
}
train 1 "$tmp/half" train.max_steps=3 2>"$tmp/err" || fail_with "$tmp/err" 'the half run'

# outcome WAY DIR: all that must be there in the end.
outcome() {
    case $1 in
    eval | predict | inspect) sort "$2.out" ;;
    shard) for file in "$2"/*; do "$dtrain" inspect "$file" | sed "s/.*shard-0/shard-0/"; done ;;
    *)
        records "$2" final status | tail -n 1
        case $1 in
        async*) for key in gradients_sent gradients_applied; do record "$2" final $key; done ;;
        *) crc "$2" ;;
        esac
        readlink "$2/ckpt/latest.h5"
        for kind in latest best; do ls "$2/export/$kind" | sort -n | tail -n 1; done
        records "$2" train step | sort -nu | paste -sd ' '
        # A dedicated evaluator takes the newest checkpoint that there is.
        case $1 in
        evaluator) record "$2" eval step ;;
        *) records "$2" eval step | sort -nu | paste -sd ' ' ;;
        esac
        ls "$2/config.ini" "$2"/*/*tmp* "$2"/*/*/*tmp* 2>/dev/null | sed 's|.*/||'
        ;;
    esac
}

# try WAY KIND N+: a line that begins with "bad" if it does not end as it should.
try() {
    dir=$tmp/$1-$2-$3 bad=
    FAULT=$2:$3 FAULT_COUNT=$dir.count LD_PRELOAD=$library way "$1" "$dir" >"$dir.out" 2>"$dir.err"
    status=$?
    errors=$(grep -c '^dtrain: error:' "$dir.err")
    case $status in
    0) [ "$errors" -eq 0 ] || bad='exit 0 with an error line'
       outcome "$1" "$dir" | diff "$tmp/$1.whole" - >"$dir.diff" ||
           bad="exit 0 with something lost" ;;
    1 | 2) [ "$errors" -eq 1 ] || bad="$errors error lines"
       rm -f "$dir.diff"
       [ "$1" != shard ] || rm -rf "$dir"
       way "$1" "$dir" >"$dir.out" 2>"$dir.again" ||
           bad="$bad, then exit $?: $(grep error: "$dir.again")"
       outcome "$1" "$dir" | diff "$tmp/$1.whole" - >"$dir.diff" ||
           bad="$bad, and something lost" ;;
    *) bad="exit $status" ;;
    esac
    [ -z "$bad" ] || {
        echo "bad $1 $2:$3: $bad"
        head -n 6 "$dir.diff" 2>/dev/null | sed 's/^/    /'
        grep -E '^dtrain: (error|warning)|signal|timeout' "$dir.err" | head -n 5 | sed 's/^/    /'
        xargs addr2line -fse "$dtrain" <"$dir.count.where" 2>/dev/null | paste -d' ' - - |
            head -n 8 | sed 's/^/    at /'
    }
    rm -rf "$dir" "$dir".*
}

# places WAY KIND: the numbers of its calls that are tried, of $tmp/stacks.
places() {
    case $1 in
    alone | resume | stream) seen=$tmp/seen.alone ;;
    *bank) seen=$tmp/seen.bank ;;
    *worker) seen=$tmp/seen.worker ;;
    *) seen=$tmp/seen.$1 ;;
    esac
    touch "$seen"
    [ "${PLACES:-stacks}" = stacks ] || : >"$seen"
    od -An -td8 -w24 "$tmp/stacks" |
        awk -v kind="$2" -v all="${PLACES:-stacks}" -v stride="$stride" -v seen="$seen" '
        BEGIN {
            split("alloc write fsync rename open read close thread", name, " ")
            while ((getline stack <seen) > 0) known[stack] = 1
        }
        $2 && name[$1 + 1] == kind && (all == "calls" || !known[$3]++) {
            print $3 >>seen
            if (places++ % stride == 0) print $2
        }'
}

# lane I OF WAY KIND: every OF-th of $tmp/places, from the Ith on.
lane() {
    for n in $(awk -v i="$1" -v of="$2" 'NR % of == i' "$tmp/places"); do
        try "$3" "$4" "$n"
        case $4 in alloc) ;; *) try "$3" "$4" "$n+" ;; esac
    done
}

lanes=$(($(nproc) + 1)) tried=0
for name in $ways; do
    dir=$tmp/$name.first
    (
        FAULT_COUNT=$tmp/count FAULT_STACKS=$tmp/stacks LD_PRELOAD=$library way "$name" "$dir" \
            >"$dir.out" 2>"$tmp/err"
    ) || fail_with "$tmp/err" "the undisturbed $name"
    outcome "$name" "$dir" >"$tmp/$name.whole"
    for kind in $kinds; do
        places "$name" "$kind" >"$tmp/places"
        echo "$name: $(wc -l <"$tmp/places") places of $kind"
        i=0
        while [ $i -lt $lanes ]; do
            (lane $i $lanes "$name" "$kind") >"$tmp/lane$i" &
            i=$((i + 1))
        done
        wait
        cat "$tmp"/lane* | tee -a "$tmp/all"
        rm "$tmp"/lane*
        tried=$((tried + $(wc -l <"$tmp/places")))
    done
    rm "$tmp/count" "$tmp/stacks"
done
check_ge 'places' $tried 1
check_eq 'faults that end badly' "$(grep -c '^bad' "$tmp/all")" 0
