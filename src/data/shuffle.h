/* A shuffle of more rows than memory holds: rows go to buckets of a temporary file, and each
 * bucket, which fits in memory, is shuffled when it is taken out again.
 *
 * A bucket's size is known beforehand, since a row's bucket follows from a keyed permutation of
 * all rows: so all buckets lie in one file, side by side. Every row is written and read once, in
 * blocks; writing each row straight to its place would touch the disk once a row. */
#ifndef DATA_SHUFFLE_H
#define DATA_SHUFFLE_H

#include "dtrain/base.h"

struct dt__shuffle;

/* rows of row_bytes each, in at most `memory` bytes; the file has no name, and lies in `dir`.
 * DT_EIO. */
dt_status dt__shuffle_create(const char *dir, uint64_t seed, uint64_t rows, size_t row_bytes,
                             uint64_t memory, struct dt__shuffle **out);
void dt__shuffle_destroy(struct dt__shuffle *shuffle);

/* Puts the next row. All rows must be in before the first is taken. DT_EIO: disk full. */
dt_status dt__shuffle_put(struct dt__shuffle *shuffle, const void *row);
/* The next row of the shuffled order, valid until the next call. */
dt_status dt__shuffle_take(struct dt__shuffle *shuffle, const unsigned char **out_row);

#endif
