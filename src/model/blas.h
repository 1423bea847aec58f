/* blas: f32 matrix products by OpenBLAS (only blas.c calls it), oneDNN or portable.h, and the
 * choice among these. */
#ifndef MODEL_BLAS_H
#define MODEL_BLAS_H

#include "model/portable.h"

#define DT__ONEDNN "oneDNN" /* name of the kernel: oneDNN's AVX-512 kernels */

/* Chooses the kernel of run.kernel=auto, unless a kernel is already chosen. Constructors of objects
 * that multiply call it. DT_EIO: there is no OpenBLAS. */
dt_status dt__blas_need(void);
/* Makes oneDNN use only vector instructions that all CPUs of the chosen OpenBLAS kernel support.
 * oneDNN computes the convolutions for every kernel but portable; with this limit, hosts with the
 * same kernel compute them with the same bits. Call it before the first convolution. DT_EIO: there
 * is no OpenBLAS. */
dt_status dt__convolutions_limit(void);
/* Returns the OpenBLAS kernel for this CPU's features, regardless of its model; NULL: OpenBLAS
 * chooses. */
const char *dt__blas_kernel_by_features(void);
/* Returns the table's kernel for a CPU with this vendor, family, model and vector instructions;
 * NULL: the table has none. */
const char *dt__blas_kernel_of(const char *vendor, unsigned family, unsigned model, bool avx2,
                               bool avx512);

/* A product C (m, n) = op(A) op(B), or C += op(A) op(B) if `add`. op(A) is (m, k), op(B) is (k, n).
 * All are row-major without padding: A is (m, k), or (k, m) if ta; B is (k, n), or (n, k) if tb. */
struct dt__product {
    int m, n, k;
    bool ta, tb, add;
};
/* Computes a product. DT_EMEMORY, DT_EBUG: the library failed. */
dt_status dt__gemm(struct dt__product product, const float *a, const float *b, float *c);
/* Returns true if the kernel is portable; convolution.h asks this. */
bool dt__blas_is_portable(void);
/* Computes C (m, n) = A B, or C += A B if `add`, such that a row of C does not depend on m or on
 * the other rows. It uses the portable products whatever the kernel, or dt__gemm_padded on CPUs
 * without AVX2. DT_EMEMORY, DT_EBUG. */
dt_status dt__gemm_rowwise(struct dt__sizes size, const float *a, const float *b, bool add,
                           float *c);
/* Computes the same with the chosen kernel. If m is not a multiple of OpenBLAS's tile (2 to 12
 * rows), OpenBLAS gives the last rows other bits, so the remaining rows are padded with rows of
 * zeros. */
dt_status dt__gemm_padded(struct dt__sizes size, const float *a, const float *b, bool add,
                          float *c);
/* Loads the library that dt__gemm_transposed transposes with, if it transposes for this n and k.
 * Call it before the first such product. DT_EIO: there is no OpenBLAS. */
dt_status dt__gemm_transposed_need(int n, int k);
/* Computes C (m, n) = A B^T. scratch: m * (n + k) floats. oneDNN is faster the less it has to
 * transpose, so for a small A and a large B this transposes A, and then the result. */
dt_status dt__gemm_transposed(struct dt__sizes size, const float *a, const float *b, float *scratch,
                              float *c);

#endif
