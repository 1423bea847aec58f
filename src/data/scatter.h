/* A shuffle of more rows than memory holds: rows are scattered over buckets of a temporary file,
 * and each bucket, which fits in memory, is shuffled when it is taken out again.
 *
 * A bucket's size is known beforehand, since a row's bucket follows from a keyed permutation of
 * all rows: so all buckets lie in one file, side by side. Every row is written and read once, in
 * blocks; writing each row straight to its place would touch the disk once a row. */
#ifndef DATA_SCATTER_H
#define DATA_SCATTER_H

#include "dtrain/base.h"

struct dt__scatter;

/* rows of row_bytes each, in at most `memory` bytes; the file has no name, and lies in `dir`.
 * DT_EIO. */
dt_status dt__scatter_create(const char *dir, uint64_t seed, uint64_t rows, size_t row_bytes,
                             uint64_t memory, struct dt__scatter **out);
void dt__scatter_destroy(struct dt__scatter *scatter);

/* Puts the next row. All rows must be in before the first is taken. DT_EIO: disk full. */
dt_status dt__scatter_put(struct dt__scatter *scatter, const void *row);
/* The next row of the shuffled order, valid until the next call. */
dt_status dt__scatter_take(struct dt__scatter *scatter, const unsigned char **out_row);

#endif
