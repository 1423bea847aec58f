/* Raw rows in memory (before scale and normalisation, 8-bit data as 8 bits), read from files of
 * some format, and batches assembled from them: x = (raw * scale - mean) * inv_std, clipped.
 *
 * A row has a dense part, `dense` numbers, and a sparse part, entries (index, value) with indices
 * in [dense, features). A block holds rows one behind the other. Readers add rows at its end and
 * never ask how they are stored; whoever shuffles or deals rows uses their numbers alone. */
#ifndef DATA_BLOCK_H
#define DATA_BLOCK_H

#include <string.h>

#include "data/data.h"

struct dt__layout {
    int features; /* inputs of the network */
    int dense;    /* of them in the dense part; the same without a sparse part */
    int targets;  /* regress: floats of y; 0: one int32 label */
    bool bytes;   /* x is uint8_t, else float */
    bool values;  /* entries have values; else each is 1 */
    bool weights; /* rows have weights */
};

/* Of rows whose values are all floats. */
static inline struct dt__layout dt__layout_of(const struct dt_schema *schema)
{
    return (struct dt__layout){
        .features = schema->features, .dense = schema->dense, .values = true};
}

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

/* Rows one behind the other. */
struct dt__block {
    size_t rows, capacity;
    unsigned char *x, *y; /* (capacity, dense), (capacity, targets or 1) */
    float *weight;        /* (capacity), NULL without weights */
    uint64_t *offsets;    /* (capacity + 1) entries of row r: [offsets[r], offsets[r + 1]) */
    uint32_t *index;      /* NULL without a sparse part; grows */
    float *value;         /* NULL where all are 1 */
    size_t room;          /* of these two */
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
 * whose x and y the caller writes; one whose features are 0 until they are put there, and gives its
 * x; a row of another block of the same layout. DT_EMEMORY. */
void dt__block_add(const struct dt__layout *layout, struct dt__block *block, size_t count);
unsigned char *dt__block_add_zeros(const struct dt__layout *layout, struct dt__block *block);
dt_status dt__block_add_copy(const struct dt__layout *layout, struct dt__block *block,
                             const struct dt__block *from, size_t row);

/* An entry of the last row, behind those that it has. DT_EMEMORY. */
dt_status dt__block_add_entry(struct dt__block *block, uint32_t index, float value);
/* A feature of the last row, whose x this is, wherever the layout has it; of bytes the value is
 * one. Those of the sparse part come in their order. DT_EMEMORY. */
static inline dt_status dt__block_put(const struct dt__layout *layout, struct dt__block *block,
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

/* Whether every value is an integer in 0..255 (and no negative zero). */
bool dt__floats_are_bytes(const float *x, size_t n);

/* ---- formats -------------------------------------------------------------------------------- */

struct dt__file;
struct dt__grammar;
struct dt__survey;

/* What rows of a format may have as entries: nothing; a table's columns of texts; all numbers that
 * are not 0. */
enum dt__sparsity { DT__WHOLE, DT__CATEGORIES, DT__SPARSE };
struct dt__format {
    const char *name;
    enum dt__sparsity sparsity;
    bool labels_apart;   /* in a file of their own */
    bool stores_columns; /* of a table: shards of it */
    /* Whether a file is of the format, by its name from the last point on, and its first bytes,
     * unpacked; NULL: nothing tells. */
    bool (*is)(const char *suffix, const unsigned char *head, size_t length);
    const struct dt__grammar *grammar; /* of text; else NULL */
    /* Counts the rows of a file and checks all that can be checked cheaply (text: every row); adds
     * shape and labels to the survey. */
    dt_status (*survey)(struct dt__survey *survey, struct dt__file *file);
    /* Opens a file to read rows. */
    dt_status (*open)(const struct dt_source *source, const struct dt__file *file,
                      void **out_reader);
    /* Adds rows [row, row + count) of the file to a block of the source's layout. Messages name the
     * file. Going forward is cheap. */
    dt_status (*read)(void *reader, uint64_t row, size_t count, struct dt__block *out);
    void (*close)(void *reader);
    /* Bytes that an open reader keeps of what it has unpacked; NULL: few. */
    uint64_t (*held)(const void *reader);
};

extern const struct dt__format dt__format_idx, dt__format_csv, dt__format_libsvm, dt__format_hdf5,
    dt__format_memory, dt__format_shard;

/* By enum dt_format, but for AUTO. */
extern const struct dt__format *const dt__formats[];
/* Tells the format of a file by its first bytes, unpacked, and its name. DT_EIO: cannot be read;
 * DT_EFORMAT: empty, or known to be something else. */
dt_status dt__format_detect(const char *path, int *out);
/* DT_EFORMAT: a stream that begins with these bytes is no text; name is for the message. */
dt_status dt__stream_refuse(const char *name, const unsigned char *head, size_t length);

/* ---- reading -------------------------------------------------------------------------------- */

/* Reads rows of a source wherever they lie; keeps the files open that it used last. `stops`: where
 * a stop is requested meanwhile, that is DT_STOPPED. */
struct dt__cursor;
dt_status dt__cursor_open(const struct dt_source *source, bool stops, struct dt__cursor **out);
void dt__cursor_close(struct dt__cursor *cursor);
/* Adds rows [row, row + count) of the part to a block. DT_EMISMATCH: a file changed since the
 * survey. */
dt_status dt__cursor_read(struct dt__cursor *cursor, uint64_t row, size_t count,
                          struct dt__block *out);

/* What is done with a block of rows. */
typedef dt_status dt__rows_fn(void *arg, const struct dt__block *block);
/* Reads the rows of the part in order, `rows` of every `stride` at once. DT_STOPPED. */
dt_status dt__source_walk(const struct dt_source *source, size_t rows, uint64_t stride,
                          dt__rows_fn *visit, void *arg);

/* The weight of a row of a block in training: its own and its class's. */
float dt__row_weight(const struct dt_source *source, const struct dt__block *from, uint64_t slot);

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

/* The only row of a block, of dt__layout_of, as the network takes it: all features into x; or with
 * `index` the dense ones, and the entries, which are scaled and never moved, as in training. */
void dt__row_normalize(const struct dt_schema *schema, struct dt__block *row, float *x,
                       uint32_t *index, float *value);

#endif
