/* The table of file formats, one row each. */
#ifndef DATA_FORMATS_H
#define DATA_FORMATS_H

#include "data/format.h"

extern const struct dt__format dt__format_idx, dt__format_csv, dt__format_libsvm, dt__format_json,
    dt__format_hdf5, dt__format_memory, dt__format_shard;

/* Indexed by enum dt_format (except AUTO), DT__FORMAT_MEMORY and DT__FORMAT_SHARD. */
extern const struct dt__format *const dt__formats[];
/* Detects the format of a file by its name and its first bytes, unpacked. DT_EIO: it cannot be
 * read; DT_EFORMAT: it is empty, or of a known kind that is not read. */
dt_status dt__format_detect(const char *path, int *out);
/* Opens a file or a pipe of text, like dt__lines_open. DT_EFORMAT: a pipe whose data is not
 * text. */
struct dt__lines;
dt_status dt__text_open(struct dt__lines *lines, const char *path);
/* Fails with DT_EFORMAT if a stream that begins with `head` is not text. `name` is for the
 * message. */
dt_status dt__stream_refuse(const char *name, const unsigned char *head, size_t length);

#endif
