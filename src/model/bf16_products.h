/* bf16_products: the matrix products of a dense layer with bf16 operands and f32 sums. */
#ifndef MODEL_BF16_PRODUCTS_H
#define MODEL_BF16_PRODUCTS_H

#include "model/model.h"

#define DT__BF16_SUFFIX "-bf16-" /* between the names of the f32 kernel and the bf16 kernel */
/* Returns the bf16 kernel: "amx", "avx512" or "reference"; NULL: all products are in f32. */
const char *dt__bf16_kernel(void);

/* Returns true if dt__bf16_select chose a kernel that uses the CPU's own bf16 instructions. */
bool dt__bf16_is_native(void);

/* Properties of the CPU (kernel.c). */
bool dt__cpu_has_amx(void);
bool dt__cpu_has_fast_avx512_bf16(void);

struct dt__bf16; /* products of a layer in a network */

/* Creates the products of weight (nin, nout), without computing anything. first: the gradient by
 * the inputs is not needed. DT_EMEMORY. */
dt_status dt__bf16_create(int nin, int nout, int max_rows, bool first, struct dt__bf16 **out);
/* Makes a layer use the rounded inputs of x_of, and the rounded gradient by the outputs of
 * delta_of, instead of rounding its own; NULL: it rounds its own. Call it before the first product.
 * In each pass x_of and delta_of must run before this layer. */
void dt__bf16_share(struct dt__bf16 *bf16, const struct dt__bf16 *x_of,
                    const struct dt__bf16 *delta_of);
void dt__bf16_destroy(void *bf16); /* a struct dt__bf16, or NULL */

/* Computes y (rows, nout) = x (rows, nin) W. W is `copy`, in the layout of dt__bf16_pack; if that
 * is NULL, a copy made from `weight`. W and x are kept for the backward products. DT_EMEMORY,
 * DT_EBUG: the library failed. */
dt_status dt__bf16_forward(struct dt__bf16 *bf16, int rows, const float *x, const float *weight,
                           const void *copy, float *y);
/* Computes weight_grad (nin, nout) = x^T delta, or adds it if `add`; or, if `factors` is not NULL,
 * writes the gradient's factors there (dt__bf16_factored's `bytes`). Computes dx (rows, nin) =
 * delta W^T unless dx is NULL, as it must be for a first layer. */
dt_status dt__bf16_backward(struct dt__bf16 *bf16, int rows, const float *delta, bool add,
                            float *weight_grad, void *factors, float *dx);

/* Describes the weight gradient: its shape and tiles, the bytes of its factors, and the bytes of
 * the copy of the weights. */
struct dt_factored dt__bf16_factored(int nin, int nout, int max_rows, bool first);
/* Computes a tile of the weight gradient from factors that a layer of the same shape wrote; zeroed
 * factors yield zeros. state: a struct dt__bf16. DT_EMEMORY, DT_EBUG. */
dt_status dt__bf16_tile(void *state, const void *factors, struct dt_tile tile, float *out);

/* rows and columns of a block of packed weights (bf16_pack.c) */
enum { DT__PACK_DEPTH = 32, DT__PACK_WIDTH = 64 };
/* Returns the bytes of a packed copy of weights (k, n). */
size_t dt__bf16_packed_bytes(size_t k, size_t n);

#endif
