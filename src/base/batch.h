/* batch: rows with what is to be predicted, as data makes them and the model takes them. */
#ifndef BASE_BATCH_H
#define BASE_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A row's inputs are its dense ones, and behind them sparse ones (CSR), of which those that are not
 * there are 0. Everything is borrowed. */
struct dt_batch {
    int rows;           /* 0 is fine */
    uint64_t first_row; /* the first row's number in its draw: dropout of a batch done in slices */
    int ndense;
    const float *x; /* (rows, ndense) a row's shape as the model has it */

    const uint64_t
        *offsets; /* (rows + 1) row r has entries [offsets[r], offsets[r + 1]); NULL: none */
    const uint32_t *index; /* inputs in [ndense, nin), ascending within a row */
    const float *value;    /* NULL: all 1 */

    const int32_t *label; /* classify: (rows), each in [0, classes) */
    const float *target;  /* regress, multilabel: (rows, targets) */
    const float *weight;  /* (rows) of the samples; NULL: all 1 */
};

/* The rows of a tensor that a batch with sparse inputs touched: all other rows of its gradient are
 * 0. Borrowed. */
struct dt_touched {
    uint32_t *row;   /* ascending; room for all rows of the tensor */
    uint32_t *count; /* so many of them */
};

/* A matrix in the flat vector whose gradient is the product of two factors that are smaller than
 * itself: a replica can give these away, and who updates a part of the matrix makes the gradient
 * there, in its cache, tile by tile.
 * Source: Xie et al. 2016, "Lighter-communication distributed machine learning via sufficient
 * factor broadcasting", section 2. */
struct dt_factored {
    size_t offset, rows, columns; /* row-major from the offset on */
    size_t tile_rows, tile_columns;
    size_t place, bytes; /* of its factors among all those of a replica; both whole cache lines */
    /* likewise of its weights as products in bf16 read them; 0: they do not */
    size_t copy, copy_bytes;
    bool first; /* nobody wants the gradient by the inputs of its layer */
};

/* Rows [row, row + rows) of columns [column, column + columns): of a matrix's tiles those at its
 * right and lower ends may be smaller. */
struct dt_tile {
    size_t row, rows, column, columns;
};

/* Where a gradient of all parameters, P, goes. */
struct dt_slot {
    float *grad; /* (P) */
    /* One for each row-sparse range: of such a range grad has the rows alone that the gradient
     * touched, one behind the other from the range's offset on, row i that of row touched->row[i].
     * NULL: grad has all rows. */
    const struct dt_touched *touched;
    /* Of all factored matrices, each's at its place: of these grad has nothing. NULL: grad has
     * them. */
    void *factors;
};

static inline size_t dt__tiles(const struct dt_factored *matrix)
{
    return ((matrix->rows + matrix->tile_rows - 1) / matrix->tile_rows) *
           ((matrix->columns + matrix->tile_columns - 1) / matrix->tile_columns);
}

/* Tile number `index`, columns of tiles one after the other. */
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
enum { DT_SPLIT_CLASSES = 1024 }; /* an output layer of fewer is not split unasked */

/* Of a softmax, what travels of a row and a part of its outputs, and what the part is told in
 * answer. */
struct dt_softmax_part {
    float most;  /* of its outputs */
    float sum;   /* of e^(output - most); answer: the factor of these in the gradient */
    float label; /* the label's output, if that is one of them, else 0; answer: the row's weight */
};

/* Where piece `index` of `count` of n begins; that of `count` is the end. */
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
    bool inputs;   /* the gradient by its inputs is wanted */
    bool softmax;  /* the output layer */
    size_t tensor; /* number of its weight (nin, nout) in the model; its bias (nout) is the next */
};

#endif
