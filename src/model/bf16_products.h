/* bf16_products: the products of a dense layer with bf16 operands and f32 sums. */
#ifndef MODEL_BF16_PRODUCTS_H
#define MODEL_BF16_PRODUCTS_H

#include "model/model.h"

#define DT__BF16_SUFFIX "-bf16-" /* between the f32 kernel's name and the bf16 one's */
/* "amx", "avx512", "reference"; NULL: computing is in f32 alone. */
const char *dt__bf16_kernel(void);

/* Whether dt__bf16_settle found products that the CPU has. */
bool dt__bf16_is_native(void);

/* What kernel.c knows of the CPU. */
bool dt__cpu_has_amx(void);
bool dt__cpu_has_fast_avx512_bf16(void);

struct dt__bf16; /* of one layer of one network */

/* weight (nin, nout); first: nobody wants the gradient by the inputs. Nothing is multiplied here.
 * DT_EMEMORY. */
dt_status dt__bf16_create(int nin, int nout, int max_rows, bool first, struct dt__bf16 **out);
/* Before the first product: it has the inputs of x_of, and the gradient by the outputs of delta_of
 * (NULL: its own). These come before it in each pass, and have rounded them and laid them out. */
void dt__bf16_share(struct dt__bf16 *bf16, const struct dt__bf16 *x_of,
                    const struct dt__bf16 *delta_of);
void dt__bf16_destroy(void *bf16); /* a struct dt__bf16, or NULL */

/* y (rows, nout) = x (rows, nin) W. W is `copy`, as dt__bf16_pack writes it, or is made of `weight`
 * if that is NULL; it and x are kept for the backward products. DT_EMEMORY, DT_EBUG: the library
 * failed. */
dt_status dt__bf16_forward(struct dt__bf16 *bf16, int rows, const float *x, const float *weight,
                           const void *copy, float *y);
/* weight_grad (nin, nout) = x^T delta, or += if `add`; or, unless that is NULL, its factors go to
 * `factors`, as many bytes as dt__bf16_factored says. dx (rows, nin) = delta W^T, unless NULL:
 * always of a first layer. */
dt_status dt__bf16_backward(struct dt__bf16 *bf16, int rows, const float *delta, bool add,
                            float *weight_grad, void *factors, float *dx);

/* The weight gradient's shape and tiles, and how many bytes its factors and the copy of the weights
 * take. */
struct dt_factored dt__bf16_factored(int nin, int nout, int max_rows, bool first);
/* A tile of the weight gradient, from factors that a layer of the same shape left; of zeroed ones
 * it is 0. `state` is a struct dt__bf16. DT_EMEMORY, DT_EBUG. */
dt_status dt__bf16_tile(void *state, const void *factors, struct dt_tile tile, float *out);

/* bf16_pack.c: bytes of a copy of weights (k, n), which is blocks of so many rows and columns. */
enum { DT__PACK_DEPTH = 32, DT__PACK_WIDTH = 64 };
size_t dt__bf16_packed_bytes(size_t k, size_t n);

#endif
