#!/bin/sh
# Fails if the slot protocol breaks under many more schedules than the unit test tries.
# seconds: 200
. "$(dirname "$0")/lib.sh"
export CK_TIMEOUT_MULTIPLIER=20
DTRAIN_SEEDS=20000 "$BUILD/tests/unit/test_slots" || fail 'a schedule breaks a promise of the slots'
