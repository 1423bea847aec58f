/* Raw rows in memory (before scale and normalisation, 8-bit data as 8 bits), and batches assembled
 * from them: x = (raw * scale - mean) * inv_std, clipped.
 *
 * A row has a dense part, `dense` numbers, and a sparse part, entries (index, value) with indices
 * in [dense, features). A block holds rows one behind the other. Readers add rows at its end and
 * never ask how they are stored; whoever shuffles or deals rows uses their numbers alone. */
#ifndef DATA_BATCH_H
#define DATA_BATCH_H

#include "dtrain/data.h"

struct dt__layout {
    int features; /* inputs of the network */
    int dense;    /* of them in the dense part; the same without a sparse part */
    int targets;  /* regress: floats of y; 0: one int32 label */
    bool bytes;   /* x is uint8_t, else float */
    bool values;  /* entries have values; else each is 1 */
    bool weights; /* rows have weights */
};

static inline bool dt__layout_is_sparse(const struct dt__layout *layout)
{
    return layout->dense < layout->features;
}

static inline size_t dt__layout_x(const struct dt__layout *layout)
{
    return (size_t)layout->dense * (layout->bytes ? 1 : sizeof(float));
}

static inline size_t dt__layout_y(const struct dt__layout *layout)
{
    return (size_t)(layout->targets ? layout->targets : 1) * 4;
}

/* Bytes of a row beside its entries, and of an entry. */
static inline size_t dt__layout_row(const struct dt__layout *layout)
{
    size_t rest = (dt__layout_is_sparse(layout) ? sizeof(uint64_t) : 0) + (layout->weights ? 4 : 0);
    return dt__layout_x(layout) + dt__layout_y(layout) + rest;
}

static inline size_t dt__layout_entry(const struct dt__layout *layout)
{
    return sizeof(uint32_t) + (layout->values ? sizeof(float) : 0);
}

/* One row as a text reader makes it: all in floats. */
struct dt__row {
    float *x;        /* (dense part of the features) */
    size_t capacity; /* floats in x */
    uint32_t *index; /* (entries), rising */
    float *value;
    size_t entries, index_room, value_room;
    union {
        int32_t label;
        float target;
    } y;
    const uint32_t *more; /* (targets - 1), floats as words; NULL: none */
    float weight;
};
dt_status dt__row_add_entry(struct dt__row *row, uint32_t index, float value);
void dt__row_free(struct dt__row *row);

/* Rows one behind the other. */
struct dt__block {
    size_t rows, capacity;
    unsigned char *x, *y; /* (capacity, dense), (capacity, targets or 1) */
    float *weight;        /* (capacity), NULL without weights */
    uint64_t *offsets;    /* (capacity + 1) entries of row r: [offsets[r], offsets[r + 1]) */
    uint32_t *index;      /* NULL without a sparse part; grows */
    float *value;         /* NULL where all are 1 */
    size_t index_room, value_room;
};

/* Room for `rows` rows, and at first for `entries` entries; free with dt__block_free. */
dt_status dt__block_alloc(const struct dt__layout *layout, size_t rows, uint64_t entries,
                          struct dt__block *out);
void dt__block_free(struct dt__block *block);

static inline unsigned char *dt__block_x(const struct dt__layout *layout,
                                         const struct dt__block *block, size_t row)
{
    return block->x + row * dt__layout_x(layout);
}

static inline unsigned char *dt__block_y(const struct dt__layout *layout,
                                         const struct dt__block *block, size_t row)
{
    return block->y + row * dt__layout_y(layout);
}

/* Adds rows at the end, for which there must be room: `count` rows without entries, of weight 1,
 * whose x and y the caller writes; a parsed row, whose entries go to x where the layout has no
 * sparse part; a row of another block of the same layout. DT_EMEMORY. */
void dt__block_add(const struct dt__layout *layout, struct dt__block *block, size_t count);
dt_status dt__block_add_row(const struct dt__layout *layout, struct dt__block *block,
                            const struct dt__row *row);
dt_status dt__block_add_copy(const struct dt__layout *layout, struct dt__block *block,
                             const struct dt__block *from, size_t row);

/* Whether every value is an integer in 0..255 (and no negative zero). */
bool dt__floats_are_bytes(const float *x, size_t n);

/* ---- batches -------------------------------------------------------------------------------- */

/* Turns raw rows into what a network reads, in buffers of its own. */
struct dt__assembly {
    const struct dt_source
        *source;              /* says what rows are like, what normalises and weighs them; lent */
    struct dt__layout layout; /* of the rows: all in floats */
    struct dt__block rows;    /* x (rows, dense), y; weight NULL: all 1 */
};

/* For batches of `rows` rows. DT_EMEMORY: also where they take more than 1 GiB and more than
 * `memory` bytes. */
dt_status dt__assembly_init(struct dt__assembly *assembly, const struct dt_source *source,
                            size_t rows, uint64_t memory);
void dt__assembly_free(struct dt__assembly *assembly);
/* Puts rows slots[0..count) of a block at rows [at, at + count) of the batch; from 0 on in
 * order. */
dt_status dt__assembly_rows(struct dt__assembly *assembly, const struct dt__block *from,
                            const uint64_t *slots, size_t at, size_t count);
void dt__assembly_batch(const struct dt__assembly *assembly, int count, struct dt_batch *out);

/* x of the first n features of one raw row of floats. */
void dt__schema_normalize_row(const struct dt_schema *schema, size_t n, const float *raw, float *x);
/* A raw row as the network takes it: all features into x; or with `index` the dense ones, and the
 * entries, which are scaled and never moved, as in training. Without it row->x has room for all
 * features, of which those of entries are 0 before and after. */
void dt__row_normalize(const struct dt_schema *schema, const struct dt__row *row, float *x,
                       uint32_t *index, float *value);
/* The clip alone, of values that are scaled and normalised. */
void dt__schema_clip(const struct dt_schema *schema, size_t n, float *x);

#endif
