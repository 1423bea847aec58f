#!/bin/sh
# Fails if a message is never awaited, sums depend on arrival, ranks wait for each other, or traffic
# passes one link twice. On clusters that SimGrid simulates, with links and ranks that are late by
# seed, runs end, and have the bits of the same run under mpirun; a step takes what the link's speed
# asks for. Two planted faults of the exchange, one of each of the first kinds, are found.
# seconds: 300
. "$(dirname "$0")/lib.sh"
need smpirun python3
make -s sim >"$tmp/make" 2>&1 || fail_with "$tmp/make" 'make sim'
"$recipes/exp-data.sh" "$tmp/data"
keys="data.train=$tmp/data/train.csv data.label=y model.task=regress model.hidden=40,20
    train.batch=24 train.lr=0.01 train.optimizer=adam train.epochs=90 train.max_steps=12
    run.log_steps=12 run.replicas=4 run.kernel=Haswell run.checkpoint_secs=0 export.latest=no
    export.best=no"

# same NAME KEYS...: on $hosts hosts
same() {
    name=$1
    shift
    # shellcheck disable=SC2086  # keys are words
    job 5 $keys "$@" run.dir="$tmp/$name" >"$tmp/$name.out" 2>&1 ||
        fail_with "$tmp/$name.out" "$name under mpirun"
    want=$(grep -o '"params_crc32c": *"[0-9a-f]*"' "$tmp/$name/metrics.jsonl" | tail -n 1 |
        grep -o '[0-9a-f]\{8\}')
    # shellcheck disable=SC2086
    python3 scripts/sim/sim.py schedules --hosts "$hosts" --count 4 --seed 7 $keys "$@" \
        >"$tmp/$name.sim" 2>&1 || { tail -n 20 "$tmp/$name.sim"; fail "$name, simulated"; }
    check_eq "$name" "$(grep -o 'params_crc32c [0-9a-f]*' "$tmp/$name.sim" | cut -d ' ' -f 2)" \
        "$want"
}
hosts=4
same plain
same norm train.clip_norm=0.5
same q8 train.wire=q8 train.groups=4
same local train.local_steps=4 train.groups=2
same overlap train.local_steps=4 train.groups=4 train.overlap=yes train.wire=bf16
hosts=20 # what they ask for comes to all in two rounds; short slices have few owners
same many train.batch=40 run.replicas=20

# On a busy machine a rank may be late in simulated time, too: the best of three tables counts.
near=no
for _ in 1 2 3; do
    # shellcheck disable=SC2086
    python3 scripts/sim/sim.py table --hosts 2,4,8 --gbit 1 $keys run.replicas=8 \
        model.hidden=512,256 >"$tmp/table" 2>&1 || fail_with "$tmp/table" 'the table'
    cat "$tmp/table"
    awk 'NR > 1 {n++; bad += $3 < $4 || $3 > 1.25 * $4} END {exit bad || n != 3}' "$tmp/table" &&
        near=yes && break
done
[ $near = yes ] || fail 'a step is far from its bound'

# planted NAME SED TEXT: with that change of the exchange the schedules fail, and say so.
planted() {
    rm -rf "$tmp/copy"
    mkdir -p "$tmp/copy/build" "$tmp/copy/tests"
    cp -a "$root/Makefile" "$root/src" "$root/include" "$root/scripts" "$tmp/copy"
    cp -a "$root/build/sim" "$tmp/copy/build/sim"
    sed -i "$2" "$tmp/copy/src/comm/whole.c" "$tmp/copy/src/comm/requests.c"
    ! diff -rq "$root/src/comm" "$tmp/copy/src/comm" >"$tmp/diff" || fail "$1: no such line"
    make -C "$tmp/copy" -s sim BUILD=build >"$tmp/make" 2>&1 || fail_with "$tmp/make" "$1: make sim"
    # shellcheck disable=SC2086
    (cd "$tmp/copy" && ! SIM_PATIENCE=60 BUILD=build \
        python3 scripts/sim/sim.py schedules --hosts 4 --count 20 $keys) >"$tmp/$1" 2>&1 ||
        fail "$1 is not found"
    grep -q "$3" "$tmp/$1" || { tail "$tmp/$1"; fail "$1 is found for another reason"; }
}
planted race 's/if (\*left_of(x, chunk)) break;/if (*left_of(x, chunk) > 1) break;/' \
    'ends otherwise'
planted deadlock 's/--\*r->left\[i\];/*r->left[i] -= ended < 3;/' 'sim: deadlock'
