#!/bin/sh
# Trains, evaluates and predicts with what is installed, from a directory of its own, without
# network.
#   scripts/packaging/installcheck.sh PREFIX [MPIRUN]      PREFIX: with DESTDIR in front
set -eu
# Some awks read and write numbers as the locale has them: with commas.
export LC_ALL=C
prefix=$(cd "$1" && pwd) mpirun=${2:-mpirun}
dtrain=$prefix/bin/dtrain
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
more=
! "$mpirun" --version 2>/dev/null | grep -q 'Open MPI\|OpenRTE\|PRTE' || more=--oversubscribe

"$dtrain" --version
# shellcheck disable=SC2086  # no word or one
"$mpirun" $more -np 3 "$dtrain" "$prefix/share/dtrain/penguins.ini" run.dir=run \
    data.train="$prefix/share/dtrain/data/penguins.csv" >log 2>&1 || { cat log; exit 1; }
accuracy=$("$dtrain" eval run data.eval="$prefix/share/dtrain/data/penguins.csv" 2>log |
    sed 's/.*"accuracy": *\([0-9.]*\).*/\1/')
echo "accuracy $accuracy" | awk '{exit !($2 > 0.9)}' ||
    { cat log; echo "installcheck: accuracy is '$accuracy'"; exit 1; }
echo 39.1,18.7,181,3750 | "$dtrain" predict run 2>log | grep -q Adelie || { cat log; exit 1; }
echo "installcheck: passed, accuracy $accuracy"
