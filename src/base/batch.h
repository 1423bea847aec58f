/* batch: rows with their targets, in the form in which the data module makes them and the model
 * takes them. Also ranges, tiles and parts of the flat vector. */
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
    uint64_t first_row; /* number of the first row in its draw; dropout needs it when a batch is
                         * computed in slices */
    int ndense;
    const float *x; /* (rows, ndense); the model gives a row's shape; the last inputs are z
                     * (model/encoding.h) */
    /* Only inside a network: inputs between the dense and the sparse ones; NULL: none. */
    const struct dt__fractions *fractions;

    const uint64_t
        *offsets; /* (rows + 1) row r has the entries [offsets[r], offsets[r + 1]); NULL: no sparse
                   * inputs */
    const uint32_t *index; /* inputs in [ndense, nin), ascending within a row */
    const float *value;    /* NULL: all 1 */

    const int32_t *label; /* classify: (rows), each in [0, classes) */
    const float *target;  /* regress, multilabel: (rows, targets) */
    const float *weight;  /* (rows) sample weights; NULL: all 1 */
};

/* The rows of a tensor that a batch with sparse inputs touched; all other rows of the tensor's
 * gradient are 0. Borrowed. */
struct dt_touched {
    uint32_t *row;   /* ascending; capacity for all rows of the tensor */
    uint32_t *count; /* number of touched rows */
};

/* A matrix in the flat vector whose gradient is the product of two smaller factors. Instead of the
 * gradient a replica can publish the factors. The owner of a slice of the matrix then computes the
 * gradient from them, tile by tile in its cache.
 *
 * Source: Xie et al. 2016, "Lighter-communication distributed machine learning via sufficient
 * factor broadcasting", section 2. */
struct dt_factored {
    size_t offset, rows, columns; /* the matrix is row-major from `offset` on */
    size_t tile_rows, tile_columns;
    size_t place, bytes; /* its factors within the factors of a replica: position and size, both
                          * whole cache lines */
    /* its weights within the layout of bf16 products: position and size; 0: no copy */
    size_t copy, copy_bytes;
    bool first; /* the gradient by its layer's inputs is not needed */
};

/* The rows [row, row + rows) and columns [column, column + columns) of a matrix. Tiles at its right
 * and lower edges may be smaller than others. */
struct dt_tile {
    size_t row, rows, column, columns;
};

/* Destination of a gradient of all P parameters. */
struct dt_slot {
    float *grad; /* (P) */
    /* One struct for each row-sparse range. In such a range grad holds only the touched rows,
     * contiguous from the start of the range: its i-th row is row touched->row[i] of the tensor.
     * NULL: grad has all rows. */
    const struct dt_touched *touched;
    /* The factors of all factored matrices, each at its `place`; grad has no values for these
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

/* For each row, and each part of a softmax's outputs: what the part sends, and what it receives in
 * answer. */
struct dt_softmax_part {
    float most;  /* largest output of the part */
    float sum;   /* sent: sum of e^(output - most); received: factor for these terms in the
                  * gradient */
    float label; /* sent: output of the row's label if the part contains it, else 0; received: the
                  * row's weight */
};

/* Returns the start of range `index` when 0..n-1 is cut into `count` equal ranges; for index =
 * count it returns n. */
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
    bool inputs;   /* the gradient by the layer's inputs is needed */
    bool softmax;  /* it is the output layer of a softmax */
    size_t tensor; /* index in the model of its weight tensor (nin, nout); the bias (nout) is the
                    * next tensor */
};

#endif
