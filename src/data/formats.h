/* The formats of files: a row of a table each. */
#ifndef DATA_FORMATS_H
#define DATA_FORMATS_H

#include "data/format.h"

extern const struct dt__format dt__format_idx, dt__format_csv, dt__format_libsvm, dt__format_json,
    dt__format_hdf5, dt__format_memory, dt__format_shard;

/* Indexed by enum dt_format, without AUTO. */
extern const struct dt__format *const dt__formats[];
/* Finds the format of a file by its first bytes, unpacked, and its name. DT_EIO: cannot be read;
 * DT_EFORMAT: empty, or known to be something else. */
dt_status dt__format_detect(const char *path, int *out);
/* Opens a file or a pipe of text, as dt__lines_open does. DT_EFORMAT: a pipe of something else. */
struct dt__lines;
dt_status dt__text_open(struct dt__lines *lines, const char *path);
/* Fails with DT_EFORMAT if a stream that begins with these bytes is not text; name is for the
 * message. */
dt_status dt__stream_refuse(const char *name, const unsigned char *head, size_t length);

#endif
