/* Normalisation: x = (raw * scale - mean) * inv_std, then clipped, all by the schema; and z, the
 * encoding of the numbers that the schema selects. */
#ifndef TABLE_NORMALIZE_H
#define TABLE_NORMALIZE_H

#include "table/block.h"

/* Normalise the first n features of a raw row, whose values are bytes or floats. */
void dt__normalize_bytes(const struct dt_schema *schema, size_t n, const unsigned char *raw,
                         float *x);
void dt__normalize_floats(const struct dt_schema *schema, size_t n, const float *raw, float *x);
/* Computes block->z of all rows of a block. DT_EMEMORY. */
dt_status dt__block_encode(const struct dt_schema *schema, const struct dt__row_layout *layout,
                           struct dt__block *block);
/* Scales the values of n entries in place. It subtracts no mean, so that zeros stay 0. */
void dt__normalize_entries(const struct dt_schema *schema, size_t n, const uint32_t *index,
                           float *value);

/* Scales and normalises raw features (rows, features) into x (rows, features + encoded). The two
 * must not overlap. */
void dt__schema_normalize(const struct dt_schema *schema, const float *raw, size_t rows, float *x);
/* Normalises the only row of a block, whose layout is dt__row_layout_of, in the form that the
 * network takes. If `index` is NULL, all features go into x; else the dense features go into x and
 * the entries into index and value. Entries are only scaled, as in training. */
void dt__row_normalize(const struct dt_schema *schema, struct dt__block *row, float *x,
                       uint32_t *index, float *value);

#endif
