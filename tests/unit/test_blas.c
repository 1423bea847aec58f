/* BLAS: products against a plain loop, the same bits at every alignment, the kernel table. */
#include "dtrain/model.h"
#include "model/blas.h"
#include "suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 300 * 300, SHIFT = 16 };

static float *a, *b, *c, *expected;

static float *randoms(uint64_t stream)
{
    float *values;
    EXPECT_OK(dt_alloc(MOST + SHIFT, sizeof *values, "values", &values));
    struct dt_rng rng = dt_rng_make(1, DT_STREAM_TEST, stream, 0);
    for (size_t i = 0; i < MOST + SHIFT; i++)
        values[i] = (float)dt_rng_normal(&rng, i);
    return values;
}

static void set_up(void)
{
    dt_blas_set_threads(1);
    a = randoms(1), b = randoms(2), c = randoms(3), expected = randoms(4);
}

static void tear_down(void)
{
    dt_free(a), dt_free(b), dt_free(c), dt_free(expected);
}

static const struct {
    int m, n, k;
} SHAPES[] = {{1, 1, 1},    {3, 10, 5},    {64, 10, 128}, {128, 10, 64}, {7, 1, 300},
              {17, 33, 65}, {64, 128, 70}, {1, 300, 2},   {300, 2, 1},   {128, 96, 100}};

static void plain(bool ta, bool tb, int m, int n, int k, bool add)
{
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) {
            double sum = add ? (double)c[i * n + j] : 0.0;
            for (int l = 0; l < k; l++)
                sum +=
                    (double)a[ta ? l * m + i : i * k + l] * (double)b[tb ? j * k + l : l * n + j];
            expected[i * n + j] = (float)sum;
        }
    }
}

/* A wrong transpose, leading dimension or beta. */
static void check_products(int variant)
{
    const bool ta = variant & 1, tb = variant & 2, add = variant & 4;
    for (size_t s = 0; s < sizeof SHAPES / sizeof *SHAPES; s++) {
        const int m = SHAPES[s].m, n = SHAPES[s].n, k = SHAPES[s].k;
        plain(ta, tb, m, n, k, add);
        dt__gemm(ta, tb, m, n, k, a, b, add, c);
        for (int i = 0; i < m * n; i++)
            ck_assert_msg(fabsf(c[i] - expected[i]) < 2e-5f * sqrtf((float)k) + 1e-6f,
                          "%dx%dx%d ta %d tb %d add %d: element %d is %g, expected %g", m, n, k, ta,
                          tb, add, i, (double)c[i], (double)expected[i]);
    }
}

/* The check under both libraries, oneDNN where the CPU has what it takes. */
static void check_kernels(void check(int variant), int variants)
{
    set_up();
    ck_assert(!dt_blas_choose("Haswell"));
    for (int i = 0; i < variants; i++)
        check(i);
    if (dt_blas_choose("oneDNN")) {
        ck_assert_str_eq(dt_blas_kernel(), "oneDNN");
        for (int i = 0; i < variants; i++)
            check(i);
    }
    tear_down();
}

START_TEST(products_are_right)
{
    check_kernels(check_products, 8);
}
END_TEST

/* Promise of the same bits: a product must not depend on where its matrices lie. */
static void check_alignment(int variant)
{
    const bool ta = variant & 1, tb = variant & 2;
    float *moved = malloc((MOST + SHIFT) * sizeof *moved);
    float *moved_c = malloc((MOST + SHIFT) * sizeof *moved_c);
    for (size_t s = 0; s < sizeof SHAPES / sizeof *SHAPES; s++) {
        const int m = SHAPES[s].m, n = SHAPES[s].n, k = SHAPES[s].k;
        const size_t size = (size_t)(m * n) * sizeof *c;
        dt__gemm(ta, tb, m, n, k, a, b, false, c);
        for (int shift = 0; shift < SHIFT; shift++) {
            memcpy(moved + shift, a, (size_t)(m * k) * sizeof *a);
            dt__gemm(ta, tb, m, n, k, moved + shift, b, false, moved_c + (shift * 5) % SHIFT);
            ck_assert(memcmp(c, moved_c + (shift * 5) % SHIFT, size) == 0);
            memcpy(moved + shift, b, (size_t)(k * n) * sizeof *b);
            dt__gemm(ta, tb, m, n, k, a, moved + shift, false, moved_c + shift);
            ck_assert(memcmp(c, moved_c + shift, size) == 0);
        }
    }
    free(moved), free(moved_c);
}

/* Turning changes the order of sums at most. */
static void check_turned(int variant)
{
    static const int sizes[] = {10, 256, 300};
    const int m = 17, n = sizes[variant / 3], k = sizes[variant % 3];
    float *scratch = malloc((size_t)(m * (n + k)) * sizeof *scratch);
    plain(false, true, m, n, k, false);
    dt__gemm_turned(m, n, k, a, b, scratch, c);
    for (int i = 0; i < m * n; i++)
        ck_assert_msg(fabsf(c[i] - expected[i]) < 2e-5f * sqrtf((float)k),
                      "%dx%dx%d: element %d is %g, expected %g", m, n, k, i, (double)c[i],
                      (double)expected[i]);
    free(scratch);
}

START_TEST(turned_products_are_right)
{
    check_kernels(check_turned, 9);
}
END_TEST

START_TEST(bits_do_not_depend_on_alignment)
{
    check_kernels(check_alignment, 4);
}
END_TEST

/* A table that names a kernel which neither library knows would be ignored in silence. */
START_TEST(kernel_is_named)
{
    static const char *const known[] = {"Haswell", "Zen", "SkylakeX", "oneDNN"};
    const char *name = dt_blas_kernel_for_cpu();
    ck_assert_uint_gt(strlen(dt_blas_kernel()), 0);
    ck_assert_ptr_nonnull(strstr(dt_blas_version(), "OpenBLAS"));
    bool found = !name;
    for (size_t i = 0; name && i < sizeof known / sizeof *known; i++)
        found |= !strcmp(name, known[i]);
    ck_assert_msg(found, "unknown kernel %s", name);
}
END_TEST

SUITE("blas", products_are_right, turned_products_are_right, bits_do_not_depend_on_alignment,
      kernel_is_named)
