#!/bin/sh
# Random configurations for two minutes, others each time: see test_random.sh.
# seconds: 250
. "$(dirname "$0")/lib.sh"
[ -x /usr/bin/python3 ] || skip 'python3 is not installed'
seed=$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')
echo "tests/random/main.py --seed $seed"
TMPDIR=$tmp /usr/bin/python3 tests/random/main.py --seed "$seed" --seconds 120 || fail 'random configurations'
