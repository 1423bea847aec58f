#!/bin/sh
# Puts the option table, as the program prints it, between the markers in README.md.
set -eu
cd "$(dirname "$0")/.."
table=$(mktemp) && trap 'rm -f "$table"' EXIT
./dtrain options --markdown >"$table"
sed -i -e "/<!-- options -->/,/<!-- end of options -->/{/<!-- options -->/r $table
/<!-- options -->/!{/<!-- end of options -->/!d}}" README.md
