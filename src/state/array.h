/* array: vectors, matrices and lists of names as HDF5 data sets. */
#ifndef DT_STATE_ARRAY_H
#define DT_STATE_ARRAY_H

#include "data/names.h"
#include "state/tree.h"

/* An array's element type and shape: columns 0 for a vector. */
struct dt__array {
    enum dt__type type;
    uint64_t rows, columns;
};

/* HDF5's type of a number, in the file and in memory. */
hid_t dt__stored_type(enum dt__type type);

dt_status dt__group_put(hid_t file, const char *path);
dt_status dt__array_put(hid_t file, const char *path, struct dt__array array, const void *data);
/* Reads an array that must have just this type and shape. DT_EFORMAT. */
dt_status dt__array_get(const struct dt__tree *tree, const char *path, struct dt__array array,
                        void *data);
/* The same into new memory (dt_free), made once the array is known to be in the file. */
dt_status dt__array_load(const struct dt__tree *tree, const char *path, struct dt__array array,
                         void *out_data);

/* Reads a list of `count` names that dt__h5_names_put has written; free with dt__names_free. */
dt_status dt__names_load(const struct dt__tree *tree, const char *path, size_t count, char ***out);

#endif
