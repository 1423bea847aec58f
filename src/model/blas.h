/* blas: matrix products in f32 by OpenBLAS, which only blas.c uses, by oneDNN, or by portable.h;
 * and the choice between them. */
#ifndef MODEL_BLAS_H
#define MODEL_BLAS_H

#include "model/portable.h"

#define DT__ONEDNN "oneDNN" /* as a kernel: the AVX-512 kernels of oneDNN */

/* Chooses the kernel as for run.kernel=auto, unless one is already chosen: every constructor of an
 * object that multiplies calls it. DT_EIO: no OpenBLAS. */
dt_status dt__blas_need(void);
/* Limits oneDNN, which computes convolutions for every kernel but portable, to the vectors that all
 * CPUs of the chosen OpenBLAS kernel support, so that hosts of one kernel have the same bits in
 * convolutions too. Call it before the first convolution. DT_EIO: no OpenBLAS. */
dt_status dt__convolutions_limit(void);
/* Returns the OpenBLAS kernel for this CPU's features, whatever its model; NULL: OpenBLAS
 * chooses. */
const char *dt__blas_kernel_by_features(void);
/* Returns the kernel in the table for a CPU with these vectors; NULL: none. */
const char *dt__blas_kernel_of(const char *vendor, unsigned family, unsigned model, bool avx2,
                               bool avx512);

/* A product C (m, n) = op(A) op(B), or += if `add`; op(A) is (m, k), op(B) is (k, n). All row-major
 * without padding: A is (m, k), or (k, m) if ta; B is (k, n), or (n, k) if tb. */
struct dt__product {
    int m, n, k;
    bool ta, tb, add;
};
/* Computes a product. DT_EMEMORY, DT_EBUG: the library failed. */
dt_status dt__gemm(struct dt__product product, const float *a, const float *b, float *c);
/* Returns true if run.kernel=portable multiplies (for convolution.h). */
bool dt__blas_is_portable(void);
/* Computes C (m, n) = A B, or += if `add`, like dt__gemm, but a row of C does not depend on m or on
 * the other rows: uses the portable products whatever the kernel, or dt__gemm_padded on CPUs
 * without AVX2. DT_EMEMORY, DT_EBUG. */
dt_status dt__gemm_apart(struct dt__sizes size, const float *a, const float *b, bool add, float *c);
/* Computes the same by the chosen kernel. OpenBLAS gives the last rows other bits if m is not a
 * multiple of its tile (2 to 12 rows), so the remaining rows are padded with rows of zeros. */
dt_status dt__gemm_padded(struct dt__sizes size, const float *a, const float *b, bool add,
                          float *c);
/* Loads the library that dt__gemm_transposed transposes with, if it does so for this n and k. Call
 * it before the first such product. DT_EIO: no OpenBLAS. */
dt_status dt__gemm_transposed_need(int n, int k);
/* Computes C (m, n) = A B^T, with scratch for m * (n + k) floats. oneDNN is faster the less it has
 * to transpose: with a small A and a large B, A is transposed, and then C. */
dt_status dt__gemm_transposed(struct dt__sizes size, const float *a, const float *b, float *scratch,
                              float *c);

#endif
