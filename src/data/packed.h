/* Files as they are, or packed by gzip or zstd, read from front to back. */
#ifndef DATA_PACKED_H
#define DATA_PACKED_H

#include "dtrain/base.h"

/* Whether the first bytes of a file or a stream can be rows as they stand. DT_EFORMAT: they are
 * packed, or of a kind that is named and not read (NumPy, Parquet, zip, UTF-16 and the like); the
 * message says what to do. */
enum { DT__PACKED_HEAD = 16 }; /* bytes that tell */
dt_status dt__packed_refuse(const char *path, const unsigned char *head, size_t length);

/* Whether a path is a pipe or the like, which can be read but once. */
bool dt__path_is_pipe(const char *path);

/* A file that is being unpacked, as its bytes are asked for; one that is not packed as it stands.
 * DT_EIO. */
struct dt__packed;
dt_status dt__packed_open(const char *path, struct dt__packed **out);
void dt__packed_close(struct dt__packed *packed);
/* The next bytes, at most `size`; *length 0: the end. DT_EIO; DT_EFORMAT: damaged, truncated. */
dt_status dt__packed_read(struct dt__packed *packed, void *to, size_t size, size_t *length);
/* Whether it is packed, so that it cannot be entered in the middle. */
bool dt__packed_is(const struct dt__packed *packed);

/* The first bytes of a file, unpacked; *length of at most `size`. DT_EIO; DT_EFORMAT: damaged, or
 * what dt__packed_refuse does not take. */
dt_status dt__packed_head(const char *path, unsigned char *head, size_t size, size_t *length);

#endif
