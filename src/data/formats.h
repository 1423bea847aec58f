/* The table of file formats, one row each. */
#ifndef DATA_FORMATS_H
#define DATA_FORMATS_H

#include "data/format.h"

extern const struct dt__format dt__format_idx, dt__format_csv, dt__format_libsvm, dt__format_json,
    dt__format_hdf5, dt__format_memory, dt__format_shard;

/* The formats, indexed by enum dt_format (except AUTO), DT__FORMAT_MEMORY or DT__FORMAT_SHARD. */
extern const struct dt__format *const dt__formats[];
/* Detects the format of a file by its name and its first bytes, decompressed. DT_EIO: the file
 * cannot be read; DT_EFORMAT: the file is empty, or of a known kind that is not supported. */
dt_status dt__format_detect(const char *path, int *out);
/* Opens a file or a pipe of text, like dt__lines_open. DT_EFORMAT: `path` is a pipe whose data is
 * not text. */
struct dt__lines;
dt_status dt__text_open(struct dt__lines *lines, const char *path);
/* Checks that a stream is text, by its first `length` bytes. `name` is for the message. DT_EFORMAT:
 * the stream is not text. */
dt_status dt__stream_refuse(const char *name, const unsigned char *head, size_t length);

#endif
