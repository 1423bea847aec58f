/* rows: gradients of touched rows, inside a group that holds all ranks.
 *
 * Of a row-sparse range of the vector a replica's slot has the rows that its batch touched, one behind the
 * other, and a list of their numbers, both in shared memory. The workers merge the lists, each its part of
 * the rows, and sum a row over the replicas that have it, in the order of the fixed tree. The bits are those
 * of whole gradients, where the others would have zeros. */
#ifndef DT_COMM_ROWS_H
#define DT_COMM_ROWS_H

#include "dtrain/comm.h"

struct dt_reducer;

/* What this rank needs by itself. DT_EMEMORY. DT_EUSAGE: ranges that do not rise or reach over a bucket. */
dt_status dt__rows_create(struct dt_reducer *x);
void dt__rows_destroy(struct dt_reducer *x);
/* Bytes of shared memory that a replica's lists take, a multiple of a cache line; 0: gradients are whole. */
size_t dt__rows_bytes(const struct dt_reducer *x);
void dt__rows_map(struct dt_reducer *x, int replica, void *memory);
bool dt__rows_are_touched(const struct dt_reducer *x); /* gradients are of touched rows */

/* Sum, unless dt__rows_norm has made it, and update of this worker's part of a range's rows. */
void dt__rows_update(struct dt_reducer *x, int range);
/* Leaves the sums of this worker's rows in the slots of the first replicas that have them. */
void dt__rows_sum(struct dt_reducer *x);
/* With all sums there: squares of floats [begin, end), which are whole blocks, into x->norms, as
 * dt__norm_blocks has them; the sums of what is no row are in slot 0. */
void dt__rows_norm(struct dt_reducer *x, size_t begin, size_t end);

#endif
