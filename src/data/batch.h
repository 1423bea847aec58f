/* Batches: raw rows become what a network reads. */
#ifndef DATA_BATCH_H
#define DATA_BATCH_H

#include "data/source.h"

/* Returns the weight of a row of a block in training: the row's weight times its class's. */
float dt__row_weight(const struct dt_source *source, const struct dt__block *from, uint64_t slot);

/* Turns raw rows into what a network reads, in separate buffers. */
struct dt__assembly {
    const struct dt_source *source; /* describes, normalises and weighs the rows; borrowed */
    struct dt__row_layout layout;   /* of the assembled rows: all floats */
    struct dt__block rows;          /* x (rows, dense and z), y; weight NULL: all 1 */
};

/* Prepares batches of `rows` rows. DT_EMEMORY: also if they take more than 1 GiB and more than
 * `memory` bytes. */
dt_status dt__assembly_init(struct dt__assembly *assembly, const struct dt_source *source,
                            size_t rows, uint64_t memory);
void dt__assembly_free(struct dt__assembly *assembly);
/* Puts rows slots[0..count) of a block at rows [at, at + count) of the batch. Calls fill the batch
 * in order, from row 0 on. */
dt_status dt__assembly_rows(struct dt__assembly *assembly, const struct dt__block *from,
                            const uint64_t *slots, size_t at, size_t count);
void dt__assembly_batch(const struct dt__assembly *assembly, int count, struct dt_batch *out);

#endif
