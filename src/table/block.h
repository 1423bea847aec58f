/* Raw rows in memory, before scaling and normalisation, 8-bit data as 8 bits.
 *
 * A row has a dense part, `dense` numbers, and a sparse part, entries (index, value) with indices
 * in [dense, features). A block holds contiguous rows. Readers add rows at its end and do not know
 * how they are stored; code that shuffles or distributes rows uses only their numbers. */
#ifndef TABLE_BLOCK_H
#define TABLE_BLOCK_H

#include <string.h>

#include "table/schema.h"

struct dt__row_layout {
    int features; /* inputs of the network */
    int dense;    /* inputs in the dense part; equals `features` without a sparse part */
    int targets;  /* regress: floats of y; 0: one int32 label */
    bool bytes;   /* x is uint8_t, else float */
    bool values;  /* entries have values; else each is 1 */
    bool weights; /* rows have weights */
};

/* Returns the layout of rows whose values are all floats. */
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

/* Returns the bytes of a row without its entries, and of an entry. */
static inline size_t dt__row_layout_row(const struct dt__row_layout *layout)
{
    size_t rest =
        (dt__row_layout_is_sparse(layout) ? sizeof(uint64_t) : 0) + (layout->weights ? 4 : 0);
    return dt__row_layout_x(layout) + dt__row_layout_y(layout) + rest;
}

static inline size_t dt__row_layout_entry(const struct dt__row_layout *layout)
{
    return sizeof(uint32_t) + (layout->values ? sizeof(float) : 0);
}

/* Contiguous rows. */
struct dt__block {
    size_t rows, capacity;
    unsigned char *x, *y;    /* (capacity, dense), (capacity, targets or 1) */
    float *weight;           /* (capacity), NULL without weights */
    float *z;                /* (capacity, schema.encoded), once dt__block_encode has made it */
    uint64_t *offsets;       /* (capacity + 1) entries of row r: [offsets[r], offsets[r + 1]) */
    uint32_t *index;         /* NULL without a sparse part; grows */
    float *value;            /* NULL if all are 1 */
    size_t entries_capacity; /* of these two */
};

/* Allocates memory for `rows` rows, and at first for `entries` entries; free with dt__block_free.
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

/* Add rows at the end, within the capacity. dt__block_add adds `count` rows without entries, of
 * weight 1, whose x and y the caller writes. dt__block_add_zeros adds one whose features are 0
 * until they are put there, and returns its x. dt__block_add_copy adds a row of another block of
 * the same layout. DT_EMEMORY. */
void dt__block_add(const struct dt__row_layout *layout, struct dt__block *block, size_t count);
unsigned char *dt__block_add_zeros(const struct dt__row_layout *layout, struct dt__block *block);
dt_status dt__block_add_copy(const struct dt__row_layout *layout, struct dt__block *block,
                             const struct dt__block *from, size_t row);

/* Adds an entry to the last row, after its other entries. DT_EMEMORY. */
dt_status dt__block_add_entry(struct dt__block *block, uint32_t index, float value);
/* Puts a feature into the last row, whose x this is: into x or the entries, as the layout says. In
 * a layout of bytes the value must be one. Features of the sparse part are put in ascending order.
 * DT_EMEMORY. */
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

/* Adds the entries of a row of another block to the row after the last. DT_EMEMORY. */
dt_status dt__block_copy_entries(struct dt__block *block, const struct dt__block *from,
                                 uint64_t row);

/* Returns true if every value is an integer in 0..255 (and not negative zero). */
bool dt__floats_are_bytes(const float *x, size_t n);

#endif
