/* The three products of a convolution: forward, gradient by the input, gradient by the weights.
 *
 * Pictures are stored channels last, (rows, H, W, C); weights are (KH, KW, C / groups, F). A
 * one-dimensional convolution has H = KH = 1. oneDNN computes the products. Its primitives are
 * created once, for a fixed number of rows and for one row; a batch is computed by several calls of
 * these, each with few enough pictures to stay in the cache. dt__convolution_pack reorders the
 * weight to the library's layout once for all products of a pass. */
#ifndef MODEL_CONVOLUTION_H
#define MODEL_CONVOLUTION_H

#include "model/emitter.h"

struct dt__convolution_shape {
    struct dt__shape in, out;
    int kernel[2], stride[2]; /* along height and width */
    int before[2], after[2];  /* padding along height and width */
    int groups;               /* divides the channels of in and of out */
};

struct dt__convolution; /* used by one thread at a time */

/* Creates the products. input_gradient: dt__convolution_input_gradient will be called. bf16:
 * operands are rounded to bf16, except for shapes where the library fails; sums are f32.
 * DT_EMEMORY. DT_EBUG: oneDNN has no such primitive. */
dt_status dt__convolution_create(const struct dt__convolution_shape *shape, bool input_gradient,
                                 bool bf16, struct dt__convolution **out);
void dt__convolution_destroy(void *convolution); /* a struct dt__convolution, or NULL */

/* Sets the weight (KH, KW, C / groups, F) of later calls. Borrowed. */
dt_status dt__convolution_pack(struct dt__convolution *convolution, const float *weight);
/* Computes y (rows, OH, OW, F) from x (rows, H, W, C). */
dt_status dt__convolution_forward(struct dt__convolution *convolution, int rows, const float *x,
                                  float *y);
/* Computes dx (rows, H, W, C) from dy (rows, OH, OW, F). */
dt_status dt__convolution_input_gradient(struct dt__convolution *convolution, int rows,
                                         const float *dy, float *dx);
/* Computes dweight (KH, KW, C / groups, F) from x and dy, or adds it if `add`. rows >= 1. */
dt_status dt__convolution_weight_gradient(struct dt__convolution *convolution, int rows,
                                          const float *x, const float *dy, bool add,
                                          float *dweight);

/* Emits a convolution of the value x with the layer's weight (conv.c). bias NULL: no bias. */
const char *dt__convolution_emit(struct dt__emitter *e, const struct dt__layer *layer,
                                 const struct dt__convolution_shape *shape, const char *bias,
                                 const char *x);

#endif
