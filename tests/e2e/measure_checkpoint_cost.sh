#!/bin/sh
# Measures what checkpoints cost: 200 MB of parameters and optimizer state, saved every 10 s,
# against training without; and a save against a plain write and fsync of the same bytes. Figures to
# read on a quiet machine; it fails only if the saves were not made. SECS (30) a run, RUNS (2) of
# each kind.
# seconds: 600
. "$(dirname "$0")/lib.sh"
secs=${SECS:-30} runs=${RUNS:-2}
# 16.6 million parameters; adam keeps two vectors more.
run() {
    dir=$tmp/$1
    shift
    rm -rf "$dir"
    timeout --signal=USR1 "$secs" mpirun --oversubscribe -np 3 "$dtrain" \
        "$recipes/fashion-mnist.ini" run.dir="$dir" model.hidden=3700,3700 model.dropout=0 \
        train.optimizer=adam train.lr=0.0001 train.epochs=100 eval.steps=-1 run.log_steps=5 "$@" \
        2>"$tmp/err"
    [ $? -eq 124 ] || fail_with "$tmp/err" 'the run'
}
# rate DIR: samples a second by the clock, from the first to the last train record.
rate() {
    awk -F'[:,]' '/"kind":"train"/ {
        for (i = 1; i < NF; i++) {
            if ($i == "\"samples\"") s = $(i + 1)
            if ($i == "\"wall_secs\"") t = $(i + 1)
        }
        sub("}", "", t)
        if (!n++) {
            s0 = s
            t0 = t
        }
    }
    END { if (n > 1) printf "%.0f\n", (s - s0) / (t - t0) }' "$tmp/$1/metrics.jsonl"
}
median() {
    sort -g | awk '{v[NR] = $1} END {print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2}'
}

for i in $(seq "$runs"); do
    run without run.checkpoint_secs=0
    rate without >>"$tmp/without.rates"
    run with run.checkpoint_secs=10
    rate with >>"$tmp/with.rates"
    echo "samples/s: $(tail -n 1 "$tmp/without.rates") without checkpoints," \
        "$(tail -n 1 "$tmp/with.rates") with them"
    check_ge 'checkpoints' "$(records "$tmp/with" checkpoint step | wc -l)" 2
    # The last save was waited for, those before ran during training; the first also allocates.
    records "$tmp/with" checkpoint secs | sed '1d; $d' >>"$tmp/beside"
    records "$tmp/with" checkpoint secs | sed -n '$p' >>"$tmp/alone"
done
file=$tmp/with/ckpt/latest.h5
# A removed copy leaves its memory to the next, as an older checkpoint does.
for _ in 1 2 3 4 5; do
    start=$(now)
    dd if="$file" of="$tmp/plain" bs=8M conv=fsync 2>/dev/null
    middle=$(now)
    cat "$tmp/plain" >/dev/null
    end=$(now)
    rm "$tmp/plain"
    echo "$((middle - start)) $((end - middle))" |
        awk '{print $1 / 1e9, $2 / 1e9}' >>"$tmp/plain.secs"
done
plain=$(cut -d' ' -f1 "$tmp/plain.secs" | median) verify=$(cut -d' ' -f2 "$tmp/plain.secs" | median)
echo "$(median <"$tmp/without.rates") $(median <"$tmp/with.rates")" |
    awk '{printf "throughput with checkpoints: %.3f of that without\n", $2 / $1}'
echo \
    "a file of $(stat -L -c %s "$file") bytes: plain write and fsync $plain s, reading it $verify s"
echo "a save: $(median <"$tmp/alone") s alone, $(median <"$tmp/beside") s beside training"
echo "$(median <"$tmp/alone") $(median <"$tmp/beside") $plain" |
    awk '{ printf "a save takes %.2f times a plain write alone, ", $1 / $3 }
        { printf "%.2f times beside training\n", $2 / $3 }'
