/* Normalisation: x = (raw * scale - mean) * inv_std, clipped, as a schema has them; and z of the
 * numbers that it encodes. */
#ifndef TABLE_NORMALIZE_H
#define TABLE_NORMALIZE_H

#include "table/block.h"

/* Normalises the first n features of a row, of raw values that are bytes, or floats. */
void dt__normalize_bytes(const struct dt_schema *schema, size_t n, const unsigned char *raw,
                         float *x);
void dt__normalize_floats(const struct dt_schema *schema, size_t n, const float *raw, float *x);
/* Makes block->z of all rows of a block. DT_EMEMORY. */
dt_status dt__block_encode(const struct dt_schema *schema, const struct dt__row_layout *layout,
                           struct dt__block *block);
/* Scales n entries in place. They are never moved: what is 0 stays 0. */
void dt__normalize_entries(const struct dt_schema *schema, size_t n, const uint32_t *index,
                           float *value);

/* Raw features (rows, features) as they stand in files, scaled and normalised into x (rows,
 * features + encoded), which is other memory. */
void dt__schema_normalize(const struct dt_schema *schema, const float *raw, size_t rows, float *x);
/* The only row of a block, of dt__row_layout_of, as the network takes it: all features into x; or
 * with `index` the dense ones, and the entries, which are scaled and never moved, as in
 * training. */
void dt__row_normalize(const struct dt_schema *schema, struct dt__block *row, float *x,
                       uint32_t *index, float *value);

#endif
