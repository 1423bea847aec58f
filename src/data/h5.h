/* h5: HDF5 as this project uses it: errors in our words, and hostile files kept at arm's length.
 * For files of src/data and src/state alone. */
#ifndef DT_DATA_H5_H
#define DT_DATA_H5_H

#include <hdf5.h>

#include "data/names.h"

/* Before the first HDF5 call of each thread: HDF5 prints nothing and loads no plugins. */
void dt__h5_quiet(void);

/* dt_fail, with the innermost text of HDF5's error stack, if there is one, behind the message. */
dt_status dt__h5_fail(dt_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Strings of `size` bytes with their NUL, UTF-8; negative on failure. Close with H5Tclose. */
hid_t dt__h5_text_type(size_t size);

/* To create a contiguous data set: no times, so that the same values give the same bytes, and no
 * filling before it is written; negative on failure. Close with H5Pclose. */
hid_t dt__h5_plain_plist(void);

/* A data set that is safe to read: reached by hard links, a simple space, a number or a string of
 * fixed size, stored contiguously or in chunks in the file itself, with filters known to us. */
enum { DT__H5_MAX_RANK = 4 };
struct dt__h5_dataset {
    hid_t id, type;
    int rank;
    hsize_t dims[DT__H5_MAX_RANK];
    bool contiguous;
    size_t bytes; /* of all elements, as stored without filters */
};
/* `path` is absolute or relative to `file`. DT_EFORMAT: missing, or not safe to read. */
dt_status dt__h5_dataset_open(hid_t file, const char *path, struct dt__h5_dataset *out);
void dt__h5_dataset_close(struct dt__h5_dataset *dataset);
/* Whether every component of the path is a hard link that is there. */
bool dt__h5_exists(hid_t file, const char *path);
/* Whether the file really holds as much as the dimensions say, as far as sizes tell (packed chunks:
 * as much as deflate could have packed), and no chunk is larger than 256 MiB. */
bool dt__h5_is_stored(const struct dt__h5_dataset *dataset);

/* Opens a file of data for reading: all that is open in it closes with it. DT_EIO: missing;
 * DT_EFORMAT: not HDF5. The message begins with the path. */
dt_status dt__h5_file_open(const char *path, hid_t *out);

/* A list of names as a data set of strings of one fixed size. Free the list with dt__names_free. */
dt_status dt__h5_names_put(hid_t file, const char *path, char *const *names, size_t count);
dt_status dt__h5_names_get(hid_t file, const char *path, struct dt__names *out);

#endif
