#!/bin/sh
# Trains Fashion-MNIST with a bank and a worker a core (at most 4), evaluates, and draws the curves.
#   scripts/demo.sh [RUN_DIR]
set -eu
cd "$(dirname "$0")/.."
run=${1:-demo-run}
workers=$(nproc)
[ "$workers" -le 4 ] || workers=4
[ "$(id -u)" -ne 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# The launcher of the MPI it was built with; Hydra takes more ranks than cores as it is.
mpirun='mpirun -q --oversubscribe'
case $(./dtrain --version) in *MPICH*) mpirun=mpiexec.hydra ;; esac
$mpirun -np $((workers + 1)) ./dtrain scripts/recipes/fashion-mnist.ini run.dir="$run"
result=$(./dtrain eval "$run")
scripts/plot.sh -o "$run/curves.png" "$run"

echo
echo "test accuracy  $(echo "$result" | sed 's/.*"accuracy": *\([0-9.]*\).*/\1/')"
echo "loss plot      $run/curves.png"
echo "model          $(ls -d "$run"/export/best/* | sort -V | tail -n 1)/model.h5"
