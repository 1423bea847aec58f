/* BLAS: products against a plain loop, equal bits at every alignment, and the table of kernels. */
#include "model/blas.h"
#include "model/model.h"
#include "suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FLOATS = 300 * 300, SHIFT = 16 };

static float *a, *b, *c, *expected;

static float *randoms(uint64_t stream)
{
    float *values;
    EXPECT_OK(dt__alloc(MAX_FLOATS + SHIFT, sizeof *values, "values", &values));
    struct dt_rng rng = dt__rng_make(1, DT_STREAM_TEST, stream, 0);
    for (size_t i = 0; i < MAX_FLOATS + SHIFT; i++)
        values[i] = (float)dt__rng_normal(&rng, i);
    return values;
}

static void set_up(void)
{
    dt__blas_set_threads(1);
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

static void multiply_plainly(bool ta, bool tb, int m, int n, int k, bool add)
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

/* Fails if a transpose, a leading dimension or beta is wrong. */
static void check_products(int variant)
{
    const bool ta = variant & 1, tb = variant & 2, add = variant & 4;
    for (size_t s = 0; s < sizeof SHAPES / sizeof *SHAPES; s++) {
        const int m = SHAPES[s].m, n = SHAPES[s].n, k = SHAPES[s].k;
        const struct dt__product product = {m, n, k, ta, tb, add};
        multiply_plainly(ta, tb, m, n, k, add);
        EXPECT_OK(dt__gemm(product, a, b, c));
        for (int i = 0; i < m * n; i++)
            ck_assert_msg(fabsf(c[i] - expected[i]) < 2e-5f * sqrtf((float)k) + 1e-6f,
                          "%dx%dx%d ta %d tb %d add %d: element %d is %g, expected %g", m, n, k, ta,
                          tb, add, i, (double)c[i], (double)expected[i]);
    }
}

enum { LEVELS = 2 };
static const char *const LEVEL[LEVELS] = {"portable", "portable-avx2"};

/* Runs the check under OpenBLAS, under oneDNN if the CPU supports it, and under the project's own
 * products: portable, and AVX2 if the CPU supports it. */
static void check_kernels(void check(int variant), int variants)
{
    set_up();
    ck_assert(!dt__blas_choose("Haswell"));
    for (int i = 0; i < variants; i++)
        check(i);
    if (dt__blas_choose("oneDNN")) {
        ck_assert_str_eq(dt__blas_kernel(), "oneDNN");
        for (int i = 0; i < variants; i++)
            check(i);
    }
    for (int l = 0; l < LEVELS && !dt__blas_select(LEVEL[l]); l++) {
        ck_assert_str_eq(dt__blas_kernel(), "portable");
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

/* A product must have the same bits wherever its matrices are in memory. */
static void check_alignment(int variant)
{
    const bool ta = variant & 1, tb = variant & 2;
    float *moved = malloc((MAX_FLOATS + SHIFT) * sizeof *moved);
    float *moved_c = malloc((MAX_FLOATS + SHIFT) * sizeof *moved_c);
    for (size_t s = 0; s < sizeof SHAPES / sizeof *SHAPES; s++) {
        const int m = SHAPES[s].m, n = SHAPES[s].n, k = SHAPES[s].k;
        const struct dt__product product = {m, n, k, ta, tb, false};
        const size_t size = (size_t)(m * n) * sizeof *c;
        EXPECT_OK(dt__gemm(product, a, b, c));
        for (int shift = 0; shift < SHIFT; shift++) {
            memcpy(moved + shift, a, (size_t)(m * k) * sizeof *a);
            EXPECT_OK(dt__gemm(product, moved + shift, b, moved_c + (shift * 5) % SHIFT));
            ck_assert(memcmp(c, moved_c + (shift * 5) % SHIFT, size) == 0);
            memcpy(moved + shift, b, (size_t)(k * n) * sizeof *b);
            EXPECT_OK(dt__gemm(product, a, moved + shift, moved_c + shift));
            ck_assert(memcmp(c, moved_c + shift, size) == 0);
        }
    }
    free(moved), free(moved_c);
}

/* Transposing an operand may change only the order of a sum. */
static void check_transposed(int variant)
{
    static const int sizes[] = {10, 256, 300};
    const int m = 17, n = sizes[variant / 3], k = sizes[variant % 3];
    float *scratch = malloc((size_t)(m * (n + k)) * sizeof *scratch);
    multiply_plainly(false, true, m, n, k, false);
    EXPECT_OK(dt__gemm_transposed((struct dt__sizes){m, n, k}, a, b, scratch, c));
    for (int i = 0; i < m * n; i++)
        ck_assert_msg(fabsf(c[i] - expected[i]) < 2e-5f * sqrtf((float)k),
                      "%dx%dx%d: element %d is %g, expected %g", m, n, k, i, (double)c[i],
                      (double)expected[i]);
    free(scratch);
}

START_TEST(transposed_products_are_right)
{
    check_kernels(check_transposed, 9);
}
END_TEST

/* Returns an element as the portable products define it: one chain of fused multiply-adds for each
 * 256 elements of k; the results of the chains are added. */
static float chain(const float *x, const float *y, int k, float start, bool add)
{
    float sum = start;
    for (int from = 0; from < k; from += 256) {
        float block = 0.0f;
        for (int l = from; l < k && l < from + 256; l++)
            block = fmaf(x[l], y[l], block);
        sum = from || add ? sum + block : block;
    }
    return sum;
}

/* Shapes that are not multiples of the 256 elements of k, or of a tile's rows and columns in either
 * instruction set. */
static const int CHAINS[][3] = {
    {1, 1, 300}, {9, 49, 255}, {33, 50, 257}, {300, 7, 3}, {5, 96, 256}};

static void check_chain(int variant, const char *level)
{
    const bool ta = variant & 1, tb = variant & 2, add = variant & 4;
    float x[300], y[300];
    for (size_t s = 0; s < sizeof CHAINS / sizeof *CHAINS; s++) {
        const int m = CHAINS[s][0], n = CHAINS[s][1], k = CHAINS[s][2];
        const struct dt__product product = {m, n, k, ta, tb, add};
        memcpy(expected, c, (size_t)MAX_FLOATS * sizeof *c);
        EXPECT_OK(dt__gemm(product, a, b, c));
        ck_assert_mem_eq(c + m * n, expected + m * n, (size_t)(MAX_FLOATS - m * n) * sizeof *c);
        for (int i = 0; i < m * n; i++) {
            const int row = i / n, column = i % n;
            for (int l = 0; l < k; l++) {
                x[l] = a[ta ? l * m + row : row * k + l];
                y[l] = b[tb ? column * k + l : l * n + column];
            }
            const float should = chain(x, y, k, expected[i], add);
            if (memcmp(&c[i], &should, sizeof should))
                ck_abort_msg("%s %dx%dx%d, variant %d: element (%d, %d) is %a, not %a", level, m, n,
                             k, variant, row, column, (double)c[i], (double)should);
        }
    }
}

/* Fails if the order of a sum depends on the width of vectors, on tiles or threads, or on the place
 * of an element. */
START_TEST(portable_products_have_the_bits_of_the_chain)
{
    set_up();
    for (int l = 0; l < LEVELS && !dt__blas_select(LEVEL[l]); l++)
        for (int variant = 0; variant < 16; variant++) {
            dt__blas_set_threads(1 + variant / 8);
            check_chain(variant % 8, LEVEL[l]);
        }
    tear_down();
}
END_TEST

/* Padding keeps a row's bits independent of the other rows if AVX2 is missing. Tests the kernels
 * that are chosen on such CPUs, and those with the most rows in a tile. */
START_TEST(padded_rows_do_not_depend_on_others)
{
    static const char *const kernels[] = {"Haswell", "Nehalem", "Sandybridge", "Prescott", "Core2"};
    const int n = 13, k = 40, rows = 100;
    set_up();
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        if (dt__blas_select(kernels[i])) continue; /* the CPU cannot run it */
        EXPECT_OK(dt__gemm_padded((struct dt__sizes){rows, n, k}, a, b, false, expected));
        for (int m = 1; m <= rows; m++) {
            memset(c, 0, (size_t)(m * n) * sizeof *c);
            const struct dt__sizes size = {m, n, k};
            EXPECT_OK(dt__gemm_padded(size, a + (rows - m) * k, b, true, c));
            ck_assert_mem_eq(c, expected + (rows - m) * n, (size_t)(m * n) * sizeof *c);
        }
    }
    tear_down();
}
END_TEST

START_TEST(bits_do_not_depend_on_alignment)
{
    check_kernels(check_alignment, 4);
}
END_TEST

/* Fails if the table names a kernel that both libraries would silently ignore as unknown. */
START_TEST(kernel_name_is_known)
{
    static const char *const known[] = {"Haswell", "Zen", "SkylakeX", "oneDNN"};
    const char *name = dt__blas_kernel_for_cpu();
    ck_assert_uint_gt(strlen(dt__blas_kernel()), 0);
    ck_assert_ptr_nonnull(strstr(dt__blas_version(), "OpenBLAS"));
    bool found = !name;
    for (size_t i = 0; name && i < sizeof known / sizeof *known; i++)
        found |= !strcmp(name, known[i]);
    ck_assert_msg(found, "unknown kernel %s", name);
}
END_TEST

/* A run on one CPU keeps its bits, so an entry may change only after a measurement. A CPU whose
 * AVX-512 is hidden gets an entry without AVX-512, or none. */
START_TEST(each_cpu_keeps_its_kernel)
{
    static const struct {
        const char *vendor;
        unsigned family, model;
        const char *with, *without; /* name with AVX-512, without it */
    } rows[] = {{"AuthenticAMD", 0x17, 0x31, "oneDNN", "Zen"},
                {"AuthenticAMD", 0x19, 0x01, "oneDNN", "Zen"},
                {"AuthenticAMD", 0x19, 0x11, "oneDNN", "Haswell"},
                {"AuthenticAMD", 0x19, 0x21, "oneDNN", "Zen"},
                {"AuthenticAMD", 0x19, 0x61, "oneDNN", "Haswell"},
                {"AuthenticAMD", 0x19, 0xa0, "oneDNN", "Haswell"},
                {"AuthenticAMD", 0x1a, 0x02, "oneDNN", NULL},
                {"AuthenticAMD", 0x1a, 0x44, "oneDNN", NULL},
                {"GenuineIntel", 0x06, 0x55, "oneDNN", NULL},
                {"GenuineIntel", 0x06, 0xcf, "oneDNN", NULL},
                {"GenuineIntel", 0x06, 0xa7, "oneDNN", NULL},
                {"AuthenticAMD", 0x1a, 0x90, "oneDNN", NULL},
                {"Unheard-of..", 0x42, 0x00, "oneDNN", NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int avx512 = 0; avx512 < 2; avx512++) {
            const char *expected_name = avx512 ? rows[i].with : rows[i].without;
            const char *name =
                dt__blas_kernel_of(rows[i].vendor, rows[i].family, rows[i].model, true, avx512);
            ck_assert_msg(!name == !expected_name && (!name || !strcmp(name, expected_name)),
                          "%s %x %x: %s, expected %s", rows[i].vendor, rows[i].family,
                          rows[i].model, name ? name : "none",
                          expected_name ? expected_name : "none");
        }
    ck_assert_ptr_null(dt__blas_kernel_of("AuthenticAMD", 0x19, 0x11, false, false));
}
END_TEST

/* Returns the core name that OpenBLAS reports for a CPU unknown to it. */
static const char *unknown_core(void)
{
    return "Prescott";
}

void *__real_dlsym(void *library, const char *name);
void *__wrap_dlsym(void *library, const char *name);
void *__wrap_dlsym(void *library, const char *name)
{
    void *function = __real_dlsym(library, name);
    const char *(*unknown)(void) = unknown_core;
    if (!strcmp(name, "openblas_get_corename") && !getenv("OPENBLAS_CORETYPE"))
        memcpy(&function, &unknown, sizeof function);
    return function;
}

/* Fails if the slowest kernel is used on a CPU that is newer than the library. */
START_TEST(an_unknown_cpu_gets_a_kernel_by_its_features)
{
    unsetenv("OPENBLAS_CORETYPE");
    EXPECT_OK(dt__blas_select("env"));
    const char *suited = dt__blas_kernel_by_features();
    ck_assert_str_eq(dt__blas_kernel(), suited ? suited : "Prescott");
    EXPECT_OK(dt__blas_select("Nehalem"));
    ck_assert_str_eq(dt__blas_kernel(), "Nehalem");
    EXPECT_FAIL(dt__blas_select("Nehalen"), DT_EUSAGE, "run.kernel=Nehalen: expected a kernel");
}
END_TEST

/* A kernel that the environment names is used unchanged. */
START_TEST(the_environment_may_ask_for_any_kernel)
{
    setenv("OPENBLAS_CORETYPE", "Prescott", 1);
    EXPECT_OK(dt__blas_select("env"));
    ck_assert_str_eq(dt__blas_kernel(), "Prescott");
}
END_TEST

SUITE("blas", products_are_right, transposed_products_are_right, bits_do_not_depend_on_alignment,
      portable_products_have_the_bits_of_the_chain, padded_rows_do_not_depend_on_others,
      kernel_name_is_known, each_cpu_keeps_its_kernel, an_unknown_cpu_gets_a_kernel_by_its_features,
      the_environment_may_ask_for_any_kernel)
