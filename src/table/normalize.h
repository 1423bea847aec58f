/* Normalisation: x = (raw * scale - mean) * inv_std, then clipped, with the schema's values; and z
 * of the numbers that the schema encodes. */
#ifndef TABLE_NORMALIZE_H
#define TABLE_NORMALIZE_H

#include "table/block.h"

/* Normalise the first n features of a row of raw values, which are bytes, or floats. */
void dt__normalize_bytes(const struct dt_schema *schema, size_t n, const unsigned char *raw,
                         float *x);
void dt__normalize_floats(const struct dt_schema *schema, size_t n, const float *raw, float *x);
/* Makes block->z of all rows of a block. DT_EMEMORY. */
dt_status dt__block_encode(const struct dt_schema *schema, const struct dt__row_layout *layout,
                           struct dt__block *block);
/* Scales n entries in place, without subtracting a mean: zeros stay 0. */
void dt__normalize_entries(const struct dt_schema *schema, size_t n, const uint32_t *index,
                           float *value);

/* Scales and normalises raw features (rows, features) into x (rows, features + encoded). The two
 * must not overlap. */
void dt__schema_normalize(const struct dt_schema *schema, const float *raw, size_t rows, float *x);
/* Normalises the only row of a block, of dt__row_layout_of, as the network takes it: all features
 * into x; or with `index` the dense features into x and the entries into index and value. Entries
 * are scaled only, as in training. */
void dt__row_normalize(const struct dt_schema *schema, struct dt__block *row, float *x,
                       uint32_t *index, float *value);

#endif
