/* library: what the two that call HDF5's library share. */
#ifndef DT_HDF5_LIBRARY_H
#define DT_HDF5_LIBRARY_H

#include <hdf5.h>

#include "hdf5/read.h"

/* dt_fail, with the innermost text of the library's error stack behind `what`. */
dt_status dt__h5_library_fail(dt_status status, const char *what);
/* A number's type as files of ours have it; negative: none. */
hid_t dt__h5_stored_type(enum dt__h5_type type);

#endif
