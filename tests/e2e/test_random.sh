#!/bin/sh
# Random configurations over all keys and kinds of data, a fixed set of them, held to what is
# promised of all: the same bits at any number of ranks and hosts, behind a stop or a kill, and from
# config.ini; the digits of eval and predict; one line for what is refused. Would catch keys that do
# not work together. ALONE=1: one process each, for sanitizers.
# seconds: 200
. "$(dirname "$0")/lib.sh"
[ -x /usr/bin/python3 ] || skip 'python3 is not installed'
TMPDIR=$tmp /usr/bin/python3 tests/random/main.py --seed 1 --count 9 ${ALONE:+--alone} ||
    fail 'random configurations'
