/* array: vectors and matrices as HDF5 data sets. */
#ifndef DT_STATE_ARRAY_H
#define DT_STATE_ARRAY_H

#include <hdf5.h>

#include "dtrain/base.h"

/* An array's place, element type and shape: columns 0 for a vector. */
enum dt__element { DT__F32, DT__F64, DT__U64 };
struct dt__array {
    enum dt__element element;
    uint64_t rows, columns;
};

dt_status dt__group_put(hid_t file, const char *path);
dt_status dt__array_put(hid_t file, const char *path, struct dt__array array, const void *data);
/* Reads an array that must have just this type and shape. DT_EFORMAT. */
dt_status dt__array_get(hid_t file, const char *path, struct dt__array array, void *data);
/* The same into new memory (dt_free), made once the array is known to be in the file. */
dt_status dt__array_load(hid_t file, const char *path, struct dt__array array, void *out_data);

#endif
