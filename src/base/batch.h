/* batch: rows with what is to be predicted, as data makes them and the model takes them. */
#ifndef BASE_BATCH_H
#define BASE_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dt__fractions; /* model/encoding.h */

/* A row has dense inputs, followed by sparse ones (CSR); sparse inputs that are not listed are 0.
 * All pointers are borrowed. */
struct dt_batch {
    int rows;           /* may be 0 */
    uint64_t first_row; /* number of the first row in its draw, for dropout when a batch is computed
                         * in slices */
    int ndense;
    const float *x; /* (rows, ndense); a row's shape is the model's; last z (model/encoding.h) */
    /* Inside a network: inputs between the dense and the sparse ones; NULL: none. */
    const struct dt__fractions *fractions;

    const uint64_t
        *offsets; /* (rows + 1) row r has entries [offsets[r], offsets[r + 1]); NULL: none */
    const uint32_t *index; /* inputs in [ndense, nin), ascending within a row */
    const float *value;    /* NULL: all 1 */

    const int32_t *label; /* classify: (rows), each in [0, classes) */
    const float *target;  /* regress, multilabel: (rows, targets) */
    const float *weight;  /* (rows) sample weights; NULL: all 1 */
};

/* Rows of a tensor that a batch with sparse inputs touched; all other rows of its gradient are 0.
 * Borrowed. */
struct dt_touched {
    uint32_t *row;   /* ascending; capacity for all rows of the tensor */
    uint32_t *count; /* number of touched rows */
};

/* A matrix in the flat vector whose gradient is the product of two smaller factors. A replica can
 * publish the factors, and the owner of a part of the matrix computes the gradient there, tile by
 * tile, in its cache.
 *
 * Source: Xie et al. 2016, "Lighter-communication distributed machine learning via sufficient
 * factor broadcasting", section 2. */
struct dt_factored {
    size_t offset, rows, columns; /* row-major from the offset on */
    size_t tile_rows, tile_columns;
    size_t place, bytes; /* of its factors in the factors of a replica; both whole cache lines */
    /* the same for its weights in the layout of bf16 products; 0: no copy */
    size_t copy, copy_bytes;
    bool first; /* the gradient by the inputs of its layer is not needed */
};

/* Rows [row, row + rows) of columns [column, column + columns). Tiles at the right and lower edges
 * of a matrix may be smaller. */
struct dt_tile {
    size_t row, rows, column, columns;
};

/* The destination of a gradient of all P parameters. */
struct dt_slot {
    float *grad; /* (P) */
    /* One for each row-sparse range. In such a range grad holds only the touched rows, contiguous
     * from the range's offset on: row i of them is row touched->row[i]. NULL: grad has all rows. */
    const struct dt_touched *touched;
    /* The factors of all factored matrices, each at its place; grad has no values for these
     * matrices. NULL: grad has them. */
    void *factors;
};

static inline size_t dt__tiles(const struct dt_factored *matrix)
{
    return ((matrix->rows + matrix->tile_rows - 1) / matrix->tile_rows) *
           ((matrix->columns + matrix->tile_columns - 1) / matrix->tile_columns);
}

/* Returns tile number `index`; tiles are counted column by column. */
static inline struct dt_tile dt__tile_at(const struct dt_factored *matrix, size_t index)
{
    const size_t down = (matrix->rows + matrix->tile_rows - 1) / matrix->tile_rows;
    const size_t row = index % down * matrix->tile_rows;
    const size_t column = index / down * matrix->tile_columns;
    const size_t below = matrix->rows - row, right = matrix->columns - column;
    const struct dt_tile tile = {row, below < matrix->tile_rows ? below : matrix->tile_rows, column,
                                 right < matrix->tile_columns ? right : matrix->tile_columns};
    return tile;
}

/* ---- split layers: comm/split.h -------------------------------------------------------------- */

enum { DT_SPLIT_PARTS = 16, DT_SPLIT_MOST_PARTS = 1024, DT_SPLIT_DEPTH = 512 };
enum { DT_SPLIT_CLASSES = 1024 }; /* an output layer with fewer classes is split only on request */

/* Per row and part of a softmax's outputs: what the part sends, and what it receives in answer. */
struct dt_softmax_part {
    float most;  /* largest of its outputs */
    float sum;   /* sum of e^(output - most); answer: the factor of these in the gradient */
    float label; /* the label's output if the part has it, else 0; answer: the row's weight */
};

/* Returns where range `index` of `count` equal ranges of n begins; `index` = `count` gives the
 * end. */
static inline size_t dt__split_cut(size_t n, size_t index, size_t count)
{
    return n * index / count;
}
static inline size_t dt__split_blocks(size_t nin)
{
    return (nin + DT_SPLIT_DEPTH - 1) / DT_SPLIT_DEPTH;
}

struct dt_split_layer {
    size_t nin, nout;
    bool inputs;   /* the gradient by its inputs is needed */
    bool softmax;  /* the output layer */
    size_t tensor; /* number of its weight (nin, nout) in the model; its bias (nout) is the next */
};

#endif
