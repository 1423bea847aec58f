/* encoding: what a network reads of a table's numbers besides the numbers themselves.
 *
 *     number --ranks among quantiles of its column--> z --a kind's row--> further inputs
 *
 * z is the normal quantile of the number's rank: of any column it is spread like N(0, 1). It comes
 * with the batch, after the dense inputs, so that models of different encodings read the same
 * rows. A network makes the rest of it batch by batch: inputs are then
 *
 *     numbers, flags (dense)   z (columns)   encodings (columns, width)   sparse ones
 *
 * Kinds: normal has z alone. cosine: cos(2 pi w z) of fixed frequencies w, N(0, 1) cut at 3 times
 * data.encode_scale. ple: piecewise linear fractions; edges e are quantiles of z, input b is
 * (z - e[b]) / (e[b + 1] - e[b]) within 0 to 1, that is, 1 below z's bin and 0 above it.
 * Source: Gorishniy, Rubachev and Babenko, "On embeddings for numerical features in tabular deep
 * learning", NeurIPS 2022, sections 3.1 and 3.2.
 *
 * A product with ple's inputs takes O(columns) a row, and not O(columns * width): a prefix sum of
 * the weights' rows below the bin, and one scaled row. */
#ifndef MODEL_ENCODING_H
#define MODEL_ENCODING_H

#include "model/model.h"

/* Quantiles of columns, learned from training rows. Borrowed. */
struct dt_quantiles {
    size_t columns, count; /* at least 2 quantiles a column */
    const float *value;    /* (columns, count) ascending */
};
/* Numbers (rows, columns), a row every `stride` floats, become their z, which is within
 * DT__NORMAL_MOST: of the mean of a number's ranks from the left and from the right, so that equal
 * quantiles do no harm. */
void dt__quantile_normal(const struct dt_quantiles *quantiles, size_t rows, float *inout,
                         size_t stride);

/* Sets the encode members of a model, as data.encode has it, of a seed; the caller frees the
 * table. Numbers (columns) of features, which draw frequencies of their own. DT_EMEMORY. */
dt_status dt__encoding_make(const struct dt_config *config, const struct dt_quantiles *quantiles,
                            const int64_t *feature, struct dt_model_desc *inout);
/* Floats in the table of an encoding. */
size_t dt__encoding_count(const struct dt_model_desc *desc);
/* Inputs of the network that are no features: z and encodings. */
size_t dt__encoding_inputs(const struct dt_model_desc *desc);
/* Whether the members of a file fit each other; `tables`: the table is there, too. DT_EFORMAT. */
dt_status dt__encoding_check(const struct dt_model_desc *desc, bool table);

/* Inputs of ple that are not multiplied out: of each row and column the bin that z is in, and the
 * input of it; inputs below it are 1, above it 0. */
struct dt__fractions {
    size_t columns, width;
    uint32_t *bin; /* (rows, columns) */
    float *part;   /* (rows, columns) */
    float *sums;   /* (columns, width, nout) scratch of a product */
};
/* Inputs of a batch in a network that come before the sparse ones. */
static inline size_t dt__batch_dense(const struct dt_batch *batch)
{
    const struct dt__fractions *fractions = batch->fractions;
    return (size_t)batch->ndense + (fractions ? fractions->columns * fractions->width : 0);
}
void dt__fractions_make(const struct dt_model_desc *desc, int rows, const float *z, size_t stride,
                        struct dt__fractions *out);
/* y (rows, nout) += fractions times weight (columns, width, nout), and the gradient by that. */
void dt__fractions_forward(const struct dt__fractions *fractions, int rows, const float *weight,
                           size_t nout, float *y);
void dt__fractions_backward(const struct dt__fractions *fractions, int rows, const float *delta,
                            size_t nout, bool accumulate, float *grad);
/* Writes encodings of rows, out (rows, out_stride), from z (rows, stride). */
void dt__encoding_expand(const struct dt_model_desc *desc, int rows, const float *z, size_t stride,
                         float *out, size_t out_stride);

struct dt__emitter;
/* Emits z of columns, x (rows, columns) being their numbers; and encodings (rows, columns * width)
 * of it, or NULL for a kind without. */
const char *dt__emit_quantile_normal(struct dt__emitter *e, const struct dt_quantiles *quantiles,
                                     const char *x);
const char *dt__emit_encoding(struct dt__emitter *e, const char *z);

#endif
