#!/bin/sh
# Fails if keys do not work together: a fixed set of random configurations, over all keys and kinds
# of data, is held to what is promised of all. That is the same bits at any number of ranks and
# hosts, after a stop or a kill, and from config.ini; the digits of eval and predict; one line for
# what is refused. ALONE=1: one process each, for sanitizers.
# seconds: 200
. "$(dirname "$0")/lib.sh"
[ -x /usr/bin/python3 ] || skip 'python3 is not installed'
TMPDIR=$tmp /usr/bin/python3 tests/random/main.py --seed 1 --count 9 ${ALONE:+--alone} ||
    fail 'random configurations'
