# Spack 1: put into packages/dtrain/ of a repository of your own, with url and checksum of `make
# dist`.
# Spack has no recipe for inih (built by meson): that one comes first.
from spack_repo.builtin.build_systems.makefile import MakefilePackage

from spack.package import *


class Dtrain(MakefilePackage):
    """Trains neural networks and linear models on CPU clusters, with the same
    bits at any number of ranks."""

    version("0.3.0")  # sha256: of dtrain-0.3.0.tar.gz.sha256

    depends_on("c", type="build")
    depends_on("gmake", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("mpi")
    depends_on("openblas threads=pthreads +shared")
    depends_on("onednn@2.6:2 cpu_runtime=omp")
    depends_on("hdf5@1.10: ~mpi")
    depends_on("inih")
    depends_on("jansson")
    depends_on("zlib-api")
    depends_on("zstd")
    depends_on("libmicrohttpd")

    def common(self):
        return ["MPICC=" + self.spec["mpi"].mpicc, "PREFIX=" + self.prefix]

    @property
    def build_targets(self):
        return ["all"] + self.common()

    @property
    def install_targets(self):
        return ["install"] + self.common()

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def installcheck(self):
        make("installcheck", *self.common())
