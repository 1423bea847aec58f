#!/bin/sh
# Fails if async loses, tears or applies twice one of GRADIENTS (20,000; a quarter of it in the ways
# that copy more) of 8 workers with a million parameters, over every way to put and get.
# seconds: 900
. "$(dirname "$0")/lib.sh"
all=${GRADIENTS:-20000} some=${GRADIENTS:-5000}
for way in "shared $all" "window $all OMPI_MCA_osc=rdma" "window $some OMPI_MCA_osc=pt2pt" \
    "window $some OMPI_MCA_osc=pt2pt OMPI_MCA_btl=tcp,self"; do
    set -- $way
    memory=$1 gradients=$2
    shift 2
    mpirun --timeout 900 --oversubscribe -np 9 "$root/$BUILD/tests/mpi/test_async" "$memory" \
        "$gradients" 1000000 "$@" || fail "$way"
done
