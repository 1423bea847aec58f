#!/bin/sh
# 8 workers, a million parameters, 20,000 gradients: none lost, none applied twice, none torn, over
# every way to put and get.
# seconds: 900
. "$(dirname "$0")/lib.sh"
for way in 'shared' 'window OMPI_MCA_osc=rdma' 'window OMPI_MCA_osc=pt2pt' \
    'window OMPI_MCA_osc=pt2pt OMPI_MCA_btl=tcp,self'; do
    set -- $way
    memory=$1
    shift
    mpirun --timeout 400 --oversubscribe -np 9 "$root/$BUILD/tests/mpi/test_async" "$memory" 20000 1000000 \
        "$@" || fail "$way"
done
