/* portable: the library's own matrix products, with the same bits on every CPU that has AVX2 and
 * FMA.
 *
 * Each element of C is computed by one chain of fused multiply-adds over k in each block of 256,
 * which starts at 0; the blocks' sums are added in order. The bits do not depend on the width of
 * vectors, tiles, caches, threads or the other elements of a matrix. */
#ifndef MODEL_PORTABLE_H
#define MODEL_PORTABLE_H

#include "base/base.h"

#define DT__PORTABLE "portable" /* as a kernel */

/* Chooses the instructions of later products: the CPU's best for "portable", AVX2 for
 * "portable-avx2". false: another name, or the CPU has no AVX2 and FMA. */
bool dt__portable_choose(const char *kernel);
/* Chooses the CPU's best, if none is chosen. false: it has none. */
bool dt__portable_need(void);
void dt__portable_set_threads(int threads);

/* Sizes of a product C (m, n) = A (m, k) B (k, n). */
struct dt__sizes {
    int m, n, k;
};

/* A matrix whose element (i, j) is at[i * row + j * column]; one of the two strides is 1. */
struct dt__strided {
    const float *at;
    size_t row, column;
};

/* Describes a row-major matrix, or the transpose of one; its rows are `row` floats apart. */
static inline struct dt__strided dt__strided(const float *at, bool transposed, size_t row)
{
    return transposed ? (struct dt__strided){at, 1, row} : (struct dt__strided){at, row, 1};
}

/* Computes C (m, n) = A (m, k) B (k, n), or += if `add`; rows of C are `ldc` floats apart.
 * DT_EMEMORY. */
dt_status dt__portable_gemm(struct dt__sizes size, struct dt__strided a, struct dt__strided b,
                            bool add, float *c, size_t ldc);

#endif
