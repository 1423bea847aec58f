#!/bin/sh
# Fails if a random configuration breaks a promise (see test_random.sh), in two minutes, others each
# day. SEED: where they begin.
# seconds: 250
. "$(dirname "$0")/lib.sh"
[ -x /usr/bin/python3 ] || skip 'python3 is not installed'
seed=${SEED:-$(($(date +%s) / 86400 * 10000))}
echo "tests/random/main.py --seed $seed"
TMPDIR=$tmp /usr/bin/python3 tests/random/main.py --seed "$seed" --seconds 120 ||
    fail 'random configurations'
