/* Files as they are, or packed by gzip or zstd. */
#ifndef DATA_PACKED_H
#define DATA_PACKED_H

#include "dtrain/base.h"

/* The first bytes of a file, unpacked; *length of at most `size`. DT_EIO; DT_EFORMAT: damaged, or a
 * file of a kind that is named and not read (NumPy, Parquet, zip, UTF-16 and the like). */
dt_status dt__packed_head(const char *path, unsigned char *head, size_t size, size_t *length);

/* Whether the first bytes of a file or a stream can be rows as they stand. DT_EFORMAT: they are
 * packed, or of one of those kinds; the message says what to do. */
enum { DT__PACKED_HEAD = 16 }; /* bytes that tell */
dt_status dt__packed_refuse(const char *path, const unsigned char *head, size_t length);

/* Opens a file for reading from any place: one that is packed is unpacked first, into a file
 * without a name in $TMPDIR. DT_EIO: also a full disk; DT_EFORMAT: damaged. */
dt_status dt__packed_open(const char *path, FILE **out);

#endif
