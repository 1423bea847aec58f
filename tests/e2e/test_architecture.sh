#!/bin/sh
# Fails if the lists of functions in scripts/doc/architecture.md are out of date.
cd "$(dirname "$0")/../.." || exit 1
command -v python3 >/dev/null || { echo 'python3 is not installed'; exit 77; }
exec python3 tests/e2e/architecture.py
