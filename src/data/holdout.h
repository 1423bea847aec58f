/* The held-out rows: an exact number of them, the first of a keyed permutation of all rows. */
#ifndef DATA_HOLDOUT_H
#define DATA_HOLDOUT_H

#include "dtrain/base.h"

/* A bit a row, and the count of set bits in front of each block. Nothing held out: all 0. */
struct dt__holdout {
    uint64_t seed, rows, count;
    uint64_t *bits, *before;
};

/* Holds out `count` of `rows` rows. */
dt_status dt__holdout_init(struct dt__holdout *holdout, uint64_t seed, uint64_t rows,
                           uint64_t count);
void dt__holdout_free(struct dt__holdout *holdout);

bool dt__holdout_has(const struct dt__holdout *holdout, uint64_t raw);
/* Held-out rows among the first `raw`. */
uint64_t dt__holdout_before(const struct dt__holdout *holdout, uint64_t raw);
/* Raw row of the index-th held-out row (or of the index-th other row). */
uint64_t dt__holdout_select(const struct dt__holdout *holdout, bool held_out, uint64_t index);

#endif
