#!/bin/sh
# Installs what dtrain needs and this machine lacks, as Debian packages. Says nothing and changes
# nothing if all is there. With sudo when not root; where it cannot install, it prints the packages.
#   scripts/setup.sh [all]       all: also what some tests and `make lint` use, or else skip
# MPICC: of MPICH where it says so (mpicc.mpich), else any MPI that is there, else Open MPI.
set -eu

missing=
# need PACKAGE COMMAND...: the package is missing if the command fails.
need() {
    package=$1
    shift
    "$@" >/dev/null 2>&1 || missing="$missing $package"
}

has() { command -v "$1"; }
library() { has pkg-config && pkg-config --exists "$1"; }
fuzzer() {
    echo 'int LLVMFuzzerTestOneInput(void) {return 0;}' |
        clang -fsanitize=fuzzer,address -x c - -o /dev/null
}
hdf5() { library hdf5-serial || library hdf5; }

# To build.
need gcc has cc
need libc6-dev test -e /usr/include/stdlib.h
need make has make
need pkg-config has pkg-config
case ${MPICC:-mpicc} in
*mpich*) need libmpich-dev has $MPICC ;;
*) need libopenmpi-dev has ${MPICC:-mpicc} ;;
esac
need libopenblas-dev library openblas
need libdnnl-dev test -e /usr/include/dnnl.h
need libhdf5-dev hdf5
need libinih-dev library inih
need libjansson-dev library jansson
need zlib1g-dev library zlib
need libzstd-dev library libzstd
need libmicrohttpd-dev library libmicrohttpd
# To run.
case ${MPICC:-mpicc} in
*mpich*) need mpich has mpiexec.hydra ;;
*) need openmpi-bin has mpirun ;;
esac
# For the tests, the plots and the demo.
need check library check
need gnuplot-nox has gnuplot
need dataset-fashion-mnist test -e /usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz
if [ "${1:-}" = all ]; then
    PATH=$PATH:/usr/sbin:/sbin
    need git has git
    need patch has patch
    need curl has curl
    need iproute2 has ip
    need qemu-user has qemu-x86_64
    need slurm-wlm has slurmctld
    need libmpich-dev has mpicc.mpich
    need mpich has mpiexec.hydra
    need debhelper has dh
    need lintian has lintian
    need munge has munged
    need libsimgrid-dev has smpirun
    need hdf5-tools has h5dump
    need python3-onnx test -e /usr/lib/python3/dist-packages/onnx
    need python3-h5py test -e /usr/lib/python3/dist-packages/h5py
    need python3-jsonschema test -e /usr/lib/python3/dist-packages/jsonschema
    need man-db has man
    need zsh has zsh
    need clang has clang
    need libclang-rt-dev fuzzer
    need cppcheck has cppcheck
    need clang-tidy has clang-tidy
fi

[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" -ne 0 ]; then
    as_root=sudo
    [ -t 0 ] || as_root='sudo -n'
fi
if ! has apt-get >/dev/null || ! $as_root true 2>/dev/null; then
    echo "setup: these packages (Debian's names) are missing and cannot be installed from here:" >&2
    echo "   $missing" >&2
    echo "setup: as root: apt-get install$missing" >&2
    exit 1
fi

echo "setup: installing$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() {
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing
}
if ! { $as_root apt-get update && install; } </dev/null >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "setup: apt-get failed; needed:$missing" >&2
    exit 1
fi
