/* Batches: raw rows of a source, scaled, normalised and encoded as the inputs of a network. */
#ifndef DATA_BATCH_H
#define DATA_BATCH_H

#include "data/source.h"

/* Returns the training weight of the row in slot `slot` of a block: the row's own weight, scaled,
 * times the weight of its class. */
float dt__row_weight(const struct dt_source *source, const struct dt__block *from, uint64_t slot);

/* A batch that is being assembled from raw rows, with its buffers. */
struct dt__assembly {
    const struct dt_source *source; /* of the raw rows; borrowed */
    struct dt__row_layout layout;   /* of the assembled rows: all floats */
    struct dt__block rows;          /* x: (rows, dense inputs and then z); weight NULL: each is 1 */
};

/* Allocates the buffers for batches of at most `rows` rows. DT_EMEMORY: also if a batch would take
 * more than 1 GiB and more than `memory` bytes. */
dt_status dt__assembly_init(struct dt__assembly *assembly, const struct dt_source *source,
                            size_t rows, uint64_t memory);
void dt__assembly_free(struct dt__assembly *assembly);
/* Converts the rows in slots slots[0..count) of a block, and stores them as rows [at, at + count)
 * of the batch. Calls must fill a batch in order, from row 0 on. */
dt_status dt__assembly_rows(struct dt__assembly *assembly, const struct dt__block *from,
                            const uint64_t *slots, size_t at, size_t count);
/* Sets *out to the first `count` rows of the batch, without copying them. */
void dt__assembly_batch(const struct dt__assembly *assembly, int count, struct dt_batch *out);

#endif
