/* From raw rows to what a network reads: x = (raw * scale - mean) * inv_std. */
#ifndef DATA_GATHER_H
#define DATA_GATHER_H

#include "data/layout.h"

struct dt__gather {
    struct dt__layout layout;
    float scale;
    const float *mean, *inv_std; /* (features), or NULL: no normalisation; lent */
};
void dt__gather_init(struct dt__gather *gather, const struct dt__layout *layout,
                     const struct dt_schema *schema);

/* Rows slots[0..count) of a block into x (count, features) and y (count, targets or 1). */
void dt__gather_rows(const struct dt__gather *gather, struct dt__block from, const uint64_t *slots,
                     size_t count, float *x, unsigned char *y);
/* x (features) of one raw row of floats. */
void dt__gather_floats(const struct dt__gather *gather, const float *raw, float *x);

#endif
