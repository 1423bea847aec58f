/* encoding: inputs of a network that are computed from a table's numbers, in addition to the
 * numbers.
 *
 *     number --its rank among the column's quantiles--> z --function of the kind--> further inputs
 *
 * z is the normal quantile of the number's rank, so that every column's z is distributed like N(0,
 * 1). The batch contains z, after the dense inputs, so that models with different encodings read
 * the same rows. The network computes the other inputs for each batch. Its inputs are then
 *
 *     numbers, flags (dense)   z (columns)   encodings (columns, width)   sparse inputs
 *
 * Kinds:
 * - normal: z alone.
 * - cosine: cos(2 pi w z) for fixed frequencies w, drawn from N(0, 1) and clipped to -3..3, times
 *   data.encode_scale.
 * - ple: piecewise linear fractions. The edges e are quantiles of z; input b is (z - e[b]) / (e[b +
 *   1] - e[b]), clamped to 0..1. So inputs of bins below z's bin are 1, and those above it 0.
 *
 * Source: Gorishniy, Rubachev and Babenko, "On embeddings for numerical features in tabular deep
 * learning", NeurIPS 2022, sections 3.1 and 3.2.
 *
 * A product with ple's inputs takes O(columns) per row rather than O(columns * width): it adds a
 * prefix sum of the weights' rows below the bin, and one scaled row. */
#ifndef MODEL_ENCODING_H
#define MODEL_ENCODING_H

#include "model/model.h"

/* Quantiles of columns, learned from training rows. The struct borrows them. */
struct dt_quantiles {
    size_t columns, count; /* count: quantiles per column, at least 2 */
    const float *value;    /* (columns, count) ascending */
};
/* Replaces numbers (rows, columns), one row every `stride` floats, by their z, whose absolute value
 * is at most DT__NORMAL_MOST. A number equal to several quantiles gets the mean of its lowest and
 * highest rank. */
void dt__quantile_normal(const struct dt_quantiles *quantiles, size_t rows, float *inout,
                         size_t stride);

/* Sets the encode_ members of a description from data.encode and the seed. The caller frees the
 * table. feature: (columns) feature indices; each feature draws its own frequencies. DT_EMEMORY. */
dt_status dt__encoding_make(const struct dt_config *config, const struct dt_quantiles *quantiles,
                            const int64_t *feature, struct dt_model_desc *inout);
/* Returns the number of floats in an encoding's table. */
size_t dt__encoding_count(const struct dt_model_desc *desc);
/* Returns the number of inputs that are not features: those of z and of the encodings. */
size_t dt__encoding_inputs(const struct dt_model_desc *desc);
/* Checks that the encode_ members, as read from a file, fit each other; if `table`, also the
 * table's contents. DT_EFORMAT. */
dt_status dt__encoding_check(const struct dt_model_desc *desc, bool table);

/* Inputs of ple in compressed form: for each row and column, the bin of z and that bin's input.
 * Inputs of lower bins are 1, those of higher bins 0. */
struct dt__fractions {
    size_t columns, width;
    uint32_t *bin; /* (rows, columns) column * width + bin */
    float *part;   /* (rows, columns) */
    float *sums;   /* (columns, width, nout) scratch memory of a product */
};
/* Returns the number of a batch's dense inputs in a network, including its encodings. */
static inline size_t dt__batch_dense(const struct dt_batch *batch)
{
    const struct dt__fractions *fractions = batch->fractions;
    return (size_t)batch->ndense + (fractions ? fractions->columns * fractions->width : 0);
}
void dt__fractions_make(const struct dt_model_desc *desc, int rows, const float *z, size_t stride,
                        struct dt__fractions *out);
/* dt__fractions_forward computes y (rows, nout) += fractions times weight (columns, width, nout);
 * dt__fractions_backward computes the gradient by the weight. */
void dt__fractions_forward(const struct dt__fractions *fractions, int rows, const float *weight,
                           size_t nout, float *y);
void dt__fractions_backward(const struct dt__fractions *fractions, int rows, const float *delta,
                            size_t nout, bool accumulate, float *grad);
/* Writes the encodings of rows, out (rows, out_stride), from z (rows, stride). */
void dt__encoding_expand(const struct dt_model_desc *desc, int rows, const float *z, size_t stride,
                         float *out, size_t out_stride);

struct dt__emitter;
/* dt__emit_quantile_normal emits z from x (rows, columns), the numbers; dt__emit_encoding emits the
 * encodings (rows, columns * width) from z, and returns NULL for a kind that has only z. */
const char *dt__emit_quantile_normal(struct dt__emitter *e, const struct dt_quantiles *quantiles,
                                     const char *x);
const char *dt__emit_encoding(struct dt__emitter *e, const char *z);

#endif
