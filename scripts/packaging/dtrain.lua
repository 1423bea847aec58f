-- Environment module (Lmod): put as dtrain/0.3.0.lua into MODULEPATH; prefix: what PREFIX was.
local prefix = "/opt/dtrain/0.3.0"
whatis("dtrain: trains neural networks and linear models on CPU clusters")
-- The MPI that it was built with: depends_on("openmpi")
prepend_path("PATH", pathJoin(prefix, "bin"))
prepend_path("LD_LIBRARY_PATH", pathJoin(prefix, "lib"))
prepend_path("PKG_CONFIG_PATH", pathJoin(prefix, "lib/pkgconfig"))
prepend_path("MANPATH", pathJoin(prefix, "share/man"))
setenv("DTRAIN", pathJoin(prefix, "bin/dtrain"))
