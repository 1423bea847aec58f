#!/bin/sh
# Every file is compiled without contraction of a * b + c: a compiler that contracts (clang does unless
# told) would give other bits. Catches a room, or a build of its own, that lost the flag.
. "$(dirname "$0")/lib.sh"
need make

${MAKE:-make} -s -n -B V=1 BUILD="$tmp/none" all >"$tmp/commands" 2>/dev/null
compiled=$(grep -c -- ' -c -o ' "$tmp/commands")
exact=$(grep -- ' -c -o ' "$tmp/commands" | grep -c -- '-ffp-contract=off')
check_ge 'files that are compiled' "$compiled" 50
check_eq 'those of them without contraction' "$exact" "$compiled"
# ./dtrain is the BUILD's that is made last, though nothing of it is new.
check_eq 'links to it' "$(${MAKE:-make} -s -n BUILD="$BUILD" dtrain 2>/dev/null | grep -c '^ln -sf')" 1
