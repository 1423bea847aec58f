/* encoding: inputs of a network that are computed from a table's numbers, besides the numbers
 * themselves.
 *
 *     number --ranks among quantiles of its column--> z --a kind's row--> further inputs
 *
 * z is the normal quantile of the number's rank: in every column it is distributed like N(0, 1). It
 * comes with the batch, after the dense inputs, so that models with different encodings read the
 * same rows. A network computes the rest batch by batch: its inputs are then
 *
 *     numbers, flags (dense)   z (columns)   encodings (columns, width)   sparse ones
 *
 * Kinds: normal has z alone. cosine: cos(2 pi w z) of fixed frequencies w, N(0, 1) cut at 3 times
 * data.encode_scale. ple: piecewise linear fractions; edges e are quantiles of z, input b is (z -
 * e[b]) / (e[b + 1] - e[b]) within 0 to 1, that is, 1 below z's bin and 0 above it.
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
    size_t columns, count; /* count: quantiles per column, at least 2 */
    const float *value;    /* (columns, count) ascending */
};
/* Replaces numbers (rows, columns), a row every `stride` floats, by their z, whose absolute value
 * is at most DT__NORMAL_MOST. The rank is the mean of a number's ranks from the left and from the
 * right, so that equal quantiles do no harm. */
void dt__quantile_normal(const struct dt_quantiles *quantiles, size_t rows, float *inout,
                         size_t stride);

/* Sets the encode members of a model from data.encode and a seed; the caller frees the table.
 * `feature` (columns): indices of the features; each draws separate frequencies.
 * DT_EMEMORY. */
dt_status dt__encoding_make(const struct dt_config *config, const struct dt_quantiles *quantiles,
                            const int64_t *feature, struct dt_model_desc *inout);
/* Returns the floats in the table of an encoding. */
size_t dt__encoding_count(const struct dt_model_desc *desc);
/* Returns the number of inputs that are not features: z and encodings. */
size_t dt__encoding_inputs(const struct dt_model_desc *desc);
/* Checks that the members of a file fit each other; `table`: including the table. DT_EFORMAT. */
dt_status dt__encoding_check(const struct dt_model_desc *desc, bool table);

/* Inputs of ple in compressed form: for each row and column the bin of z, and that bin's input;
 * inputs of lower bins are 1, of higher bins 0. */
struct dt__fractions {
    size_t columns, width;
    uint32_t *bin; /* (rows, columns) */
    float *part;   /* (rows, columns) */
    float *sums;   /* (columns, width, nout) scratch of a product */
};
/* Returns the number of inputs of a batch in a network before the sparse ones. */
static inline size_t dt__batch_dense(const struct dt_batch *batch)
{
    const struct dt__fractions *fractions = batch->fractions;
    return (size_t)batch->ndense + (fractions ? fractions->columns * fractions->width : 0);
}
void dt__fractions_make(const struct dt_model_desc *desc, int rows, const float *z, size_t stride,
                        struct dt__fractions *out);
/* Computes y (rows, nout) += fractions times weight (columns, width, nout), and the gradient by the
 * weight. */
void dt__fractions_forward(const struct dt__fractions *fractions, int rows, const float *weight,
                           size_t nout, float *y);
void dt__fractions_backward(const struct dt__fractions *fractions, int rows, const float *delta,
                            size_t nout, bool accumulate, float *grad);
/* Writes encodings of rows, out (rows, out_stride), from z (rows, stride). */
void dt__encoding_expand(const struct dt_model_desc *desc, int rows, const float *z, size_t stride,
                         float *out, size_t out_stride);

struct dt__emitter;
/* Emit z from x (rows, columns), the numbers; and from z the encodings (rows, columns * width), or
 * NULL for a kind without. */
const char *dt__emit_quantile_normal(struct dt__emitter *e, const struct dt_quantiles *quantiles,
                                     const char *x);
const char *dt__emit_encoding(struct dt__emitter *e, const char *z);

#endif
