/* Raw rows in memory, before scaling and normalisation. 8-bit data stays 8-bit.
 *
 * A row has a dense part, `dense` numbers, and a sparse part: entries (index, value) whose indices
 * are in [dense, features). A block holds contiguous rows. Readers append rows through the
 * functions below, which hide the storage; code that shuffles or distributes rows uses only row
 * numbers. */
#ifndef TABLE_BLOCK_H
#define TABLE_BLOCK_H

#include <string.h>

#include "table/schema.h"

struct dt__row_layout {
    int features; /* inputs of the network */
    int dense;    /* inputs in the dense part; `features` if there is no sparse part */
    int targets;  /* regress: floats of y per row; 0: y is one int32 label */
    bool bytes;   /* x is uint8_t; else it is float */
    bool values;  /* each entry has a value; else each value is 1 */
    bool weights; /* each row has a weight */
};

/* Returns the layout of rows of float values without weights or targets. */
static inline struct dt__row_layout dt__row_layout_of(const struct dt_schema *schema)
{
    return (struct dt__row_layout){
        .features = schema->features, .dense = schema->dense, .values = true};
}

static inline bool dt__row_layout_is_sparse(const struct dt__row_layout *layout)
{
    return layout->dense < layout->features;
}

static inline size_t dt__row_layout_x(const struct dt__row_layout *layout)
{
    return (size_t)layout->dense * (layout->bytes ? 1 : sizeof(float));
}

static inline size_t dt__row_layout_y(const struct dt__row_layout *layout)
{
    return (size_t)(layout->targets ? layout->targets : 1) * 4;
}

/* Returns the bytes of a row, not counting its entries. */
static inline size_t dt__row_layout_row(const struct dt__row_layout *layout)
{
    size_t rest =
        (dt__row_layout_is_sparse(layout) ? sizeof(uint64_t) : 0) + (layout->weights ? 4 : 0);
    return dt__row_layout_x(layout) + dt__row_layout_y(layout) + rest;
}

/* Returns the bytes of an entry. */
static inline size_t dt__row_layout_entry(const struct dt__row_layout *layout)
{
    return sizeof(uint32_t) + (layout->values ? sizeof(float) : 0);
}

/* Contiguous rows. */
struct dt__block {
    size_t rows, capacity;
    unsigned char *x, *y;    /* (capacity, dense), (capacity, targets or 1) */
    float *weight;           /* (capacity), NULL without weights */
    float *z;                /* (capacity, schema.encoded), NULL before dt__block_encode */
    uint64_t *offsets;       /* (capacity + 1) row r has the entries [offsets[r], offsets[r + 1]) */
    uint32_t *index;         /* of the entries; grows; NULL without a sparse part */
    float *value;            /* of the entries; grows; NULL if each is 1 */
    size_t entries_capacity; /* of index and value */
};

/* Allocates memory for `rows` rows and, at first, `entries` entries; dt__block_free releases it.
 * DT_EMEMORY. */
dt_status dt__block_alloc(const struct dt__row_layout *layout, size_t rows, uint64_t entries,
                          struct dt__block *out);
void dt__block_free(struct dt__block *block);

static inline unsigned char *dt__block_x(const struct dt__row_layout *layout,
                                         const struct dt__block *block, size_t row)
{
    return block->x + row * dt__row_layout_x(layout);
}

static inline unsigned char *dt__block_y(const struct dt__row_layout *layout,
                                         const struct dt__block *block, size_t row)
{
    return block->y + row * dt__row_layout_y(layout);
}

/* Append rows; the caller makes sure that the capacity suffices. dt__block_add appends `count` rows
 * of weight 1 without entries, and the caller writes their x and y. dt__block_add_zeros appends a
 * row whose features are all 0, and returns its x. dt__block_add_copy appends a row of another
 * block with the same layout. DT_EMEMORY. */
void dt__block_add(const struct dt__row_layout *layout, struct dt__block *block, size_t count);
unsigned char *dt__block_add_zeros(const struct dt__row_layout *layout, struct dt__block *block);
dt_status dt__block_add_copy(const struct dt__row_layout *layout, struct dt__block *block,
                             const struct dt__block *from, size_t row);

/* Appends an entry to the last row. DT_EMEMORY. */
dt_status dt__block_add_entry(struct dt__block *block, uint32_t index, float value);
/* Sets a feature of the last row, whose x is passed: in x, or as an entry if the feature is sparse.
 * In a layout of bytes the value of a dense feature must be an integer in 0..255. Sparse features
 * must be set in ascending order. DT_EMEMORY. */
static inline dt_status dt__block_put(const struct dt__row_layout *layout, struct dt__block *block,
                                      unsigned char *x, size_t feature, float value)
{
    if (feature >= (size_t)layout->dense)
        return value == 0 ? DT_OK : dt__block_add_entry(block, (uint32_t)feature, value);
    if (layout->bytes)
        x[feature] = (unsigned char)value;
    else
        memcpy(x + feature * sizeof value, &value, sizeof value);
    return DT_OK;
}

/* Gives the row after the last the entries of row `row` of another block. The caller then counts
 * the row. DT_EMEMORY. */
dt_status dt__block_copy_entries(struct dt__block *block, const struct dt__block *from,
                                 uint64_t row);

/* Returns true if every value is an integer in 0..255 and none is -0. */
bool dt__floats_are_bytes(const float *x, size_t n);

#endif
