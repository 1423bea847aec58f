#!/bin/sh
# Fails if a file is compiled with contraction of a * b + c, clang's default, which gives other
# bits. Also fails if ./dtrain does not become that of another BUILD whose files are up to date.
. "$(dirname "$0")/lib.sh"
need make

${MAKE:-make} -s -n -B V=1 BUILD="$tmp/none" all >"$tmp/commands" 2>/dev/null
compiled=$(grep -c -- ' -c -o ' "$tmp/commands")
exact=$(grep -- ' -c -o ' "$tmp/commands" | grep -c -- '-ffp-contract=off')
check_ge 'files that are compiled' "$compiled" 50
check_eq 'those of them without contraction' "$exact" "$compiled"
# ./dtrain is that of the BUILD which is made last, although nothing of it is new.
check_eq 'links to it' \
    "$(${MAKE:-make} -s -n BUILD="$BUILD" dtrain 2>/dev/null | grep -c '^ln -sf')" 1
