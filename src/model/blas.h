/* blas: matrix products, the one place that knows OpenBLAS and oneDNN. */
#ifndef MODEL_BLAS_H
#define MODEL_BLAS_H

#include <stdbool.h>

#define DT__ONEDNN "oneDNN" /* as a kernel: the AVX-512 ones of oneDNN */

/* C (m, n) = op(A) op(B), or += if `add`; op(A) is (m, k), op(B) is (k, n). All row-major without
 * padding: A is (m, k), or (k, m) if ta; B is (k, n), or (n, k) if tb. */
void dt__gemm(bool ta, bool tb, int m, int n, int k, const float *a, const float *b, bool add,
              float *c);
/* C (m, n) = A B^T, with scratch for m * (n + k) floats. oneDNN is the faster the less it has to turn: of
 * a small A and a large B, A is turned, and then C. */
void dt__gemm_turned(int m, int n, int k, const float *a, const float *b, float *scratch, float *c);

#endif
