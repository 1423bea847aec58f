/* portable: the library's own matrix products, which have the same bits on every CPU with AVX2 and
 * FMA.
 *
 * An element of C is a sum of k products, computed in blocks of 256. A block's sum is one chain of
 * fused multiply-adds that starts at 0; the sums of the blocks are then added in order. So the bits
 * do not depend on the width of vectors, on tiles, caches or threads, or on the other elements of a
 * matrix. */
#ifndef MODEL_PORTABLE_H
#define MODEL_PORTABLE_H

#include "base/base.h"

#define DT__PORTABLE "portable" /* name of the kernel */

/* Chooses the instructions of later products: the CPU's best for "portable", AVX2 for
 * "portable-avx2". Returns false for other names, or if the CPU has no AVX2 and FMA. */
bool dt__portable_choose(const char *kernel);
/* Chooses the CPU's best instructions, unless some are chosen. Returns false if the CPU has no AVX2
 * and FMA. */
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

/* Describes a row-major matrix whose rows are `row` floats apart, or its transpose if
 * `transposed`. */
static inline struct dt__strided dt__strided(const float *at, bool transposed, size_t row)
{
    return transposed ? (struct dt__strided){at, 1, row} : (struct dt__strided){at, row, 1};
}

/* Computes C (m, n) = A (m, k) B (k, n), or C += A B if `add`; rows of C are `ldc` floats apart.
 * DT_EMEMORY. */
dt_status dt__portable_gemm(struct dt__sizes size, struct dt__strided a, struct dt__strided b,
                            bool add, float *c, size_t ldc);

#endif
