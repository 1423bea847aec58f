/* blas: matrix products in f32, by OpenBLAS, which is known here alone, by oneDNN, or by
 * portable.h; and by which of them. */
#ifndef MODEL_BLAS_H
#define MODEL_BLAS_H

#include "base/base.h"

#define DT__ONEDNN "oneDNN" /* as a kernel: the AVX-512 ones of oneDNN */

/* Settles the kernel as run.kernel=auto does, if nobody has yet: whoever makes something that
 * multiplies calls it. DT_EIO: no OpenBLAS. */
dt_status dt__blas_need(void);
/* Before the first convolution, which is oneDNN's whatever the kernel: a kernel of OpenBLAS limits
 * it to the vectors that all CPUs for that kernel have, so that hosts of one kernel have the same
 * bits in convolutions, too. DT_EIO: no OpenBLAS. */
dt_status dt__convolutions_limit(void);
/* The kernel of OpenBLAS for what this CPU can do, whatever its model; NULL: its own choice. */
const char *dt__blas_kernel_by_features(void);
/* The kernel that the table has for a CPU with such vectors; NULL: it has none. */
const char *dt__blas_kernel_of(const char *vendor, unsigned family, unsigned model, bool avx2,
                               bool avx512);

/* C (m, n) = op(A) op(B), or += if `add`; op(A) is (m, k), op(B) is (k, n). All row-major without
 * padding: A is (m, k), or (k, m) if ta; B is (k, n), or (n, k) if tb. DT_EMEMORY, DT_EBUG: the
 * library failed. */
dt_status dt__gemm(bool ta, bool tb, int m, int n, int k, const float *a, const float *b, bool add,
                   float *c);
/* Whether run.kernel=portable multiplies: convolutions ask (convolution.h). */
bool dt__blas_is_portable(void);
/* C (m, n) = A B, or += if `add`, like dt__gemm, but a row of C does not depend on m or on the other
 * rows: by the portable products whatever the kernel, or, on CPUs without AVX2, by dt__gemm_padded.
 * DT_EMEMORY, DT_EBUG. */
dt_status dt__gemm_apart(int m, int n, int k, const float *a, const float *b, bool add, float *c);
/* The same by OpenBLAS, whose last rows have other bits where m is not a multiple of its tile (2 to
 * 12 rows): rows that are left over are multiplied with rows of zeros after them. */
dt_status dt__gemm_padded(int m, int n, int k, const float *a, const float *b, bool add, float *c);
/* Loads what dt__gemm_transposed transposes with, if it does so for this n and k. Call it before
 * the first such product. DT_EIO: no OpenBLAS. */
dt_status dt__gemm_transposed_need(int n, int k);
/* C (m, n) = A B^T, with scratch for m * (n + k) floats. oneDNN is the faster the less it has to
 * transpose: of a small A and a large B, A is transposed, and then C. */
dt_status dt__gemm_transposed(int m, int n, int k, const float *a, const float *b, float *scratch,
                              float *c);

#endif
