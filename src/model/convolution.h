/* The three products of a convolution: forward, gradient by the input, gradient by the weights.
 *
 * Pictures are stored channels last, (rows, H, W, C); weights are (KH, KW, C / groups, F). A
 * one-dimensional convolution has H = KH = 1. oneDNN computes; its primitives are created once, for
 * a fixed number of rows and for one row, so that any batch is cut into the same calls, whose
 * pictures stay in the cache. dt__convolution_pack reorders weights to the library's layout, once
 * for all products of a pass. */
#ifndef MODEL_CONVOLUTION_H
#define MODEL_CONVOLUTION_H

#include "model/emitter.h"

struct dt__convolution_shape {
    struct dt__shape in, out;
    int kernel[2], stride[2]; /* along the height and the width, */
    int before[2], after[2];  /* and the padding there */
    int groups;               /* divides the channels of both */
};

struct dt__convolution; /* used by one thread at a time */

/* Creates the products. input_gradient: dt__convolution_input_gradient will be called. bf16:
 * operands are rounded to it, except for shapes that the library fails at; sums are f32.
 * DT_EMEMORY. DT_EBUG: oneDNN has no such primitive. */
dt_status dt__convolution_create(const struct dt__convolution_shape *shape, bool input_gradient,
                                 bool bf16, struct dt__convolution **out);
void dt__convolution_destroy(void *convolution); /* a struct dt__convolution, or NULL */

/* Sets the weight (KH, KW, C / groups, F) of the calls that follow. Borrowed. */
dt_status dt__convolution_pack(struct dt__convolution *convolution, const float *weight);
/* Computes y (rows, OH, OW, F) from x (rows, H, W, C). */
dt_status dt__convolution_forward(struct dt__convolution *convolution, int rows, const float *x,
                                  float *y);
/* Computes dx (rows, H, W, C) from dy (rows, OH, OW, F). */
dt_status dt__convolution_input_gradient(struct dt__convolution *convolution, int rows,
                                         const float *dy, float *dx);
/* Computes dweight (KH, KW, C / groups, F) from x and dy, or += if `add`. rows >= 1. */
dt_status dt__convolution_weight_gradient(struct dt__convolution *convolution, int rows,
                                          const float *x, const float *dy, bool add,
                                          float *dweight);

/* conv.c: emits a convolution of the value x with the layer's weight; bias NULL: none. */
const char *dt__convolution_emit(struct dt__emitter *e, const struct dt__layer *layer,
                                 const struct dt__convolution_shape *shape, const char *bias,
                                 const char *x);

#endif
