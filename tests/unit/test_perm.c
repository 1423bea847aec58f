/* The computed permutation: a bijection for every n, in which no order is more likely than
 * another. */
#include "unit/suite.h"

#include <math.h>

static struct dt_perm make(uint64_t n, uint64_t key)
{
    struct dt_perm perm;
    dt__perm_init(&perm, n, dt__rng_make(key, DT_STREAM_TEST, 0, n));
    return perm;
}

static void check_bijection(uint64_t n)
{
    struct dt_perm perm = make(n, 1);
    bool *seen;
    EXPECT_OK(dt__alloc(n, sizeof *seen, "marks", &seen));
    for (uint64_t i = 0; i < n; i++) {
        uint64_t image = dt__perm_at(&perm, i);
        EXPECT(image < n);
        EXPECT(!seen[image]);
        seen[image] = true;
    }
    dt_free(seen);
}

START_TEST(every_element_occurs_once)
{
    for (uint64_t n = 1; n <= 600; n++)
        check_bijection(n);
    const uint64_t sizes[] = {1023, 1024, 1025, 60000, 65536, 65537, 131073};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        check_bijection(sizes[i]);
}
END_TEST

/* A very large domain cannot be tested as a whole: some images must be in range, and successive
 * images must differ. */
START_TEST(large_domains_work)
{
    const uint64_t n = ((uint64_t)1 << 62) - 3;
    struct dt_perm perm = make(n, 1);
    uint64_t before = n;
    for (uint64_t i = 0; i < 1000; i++) {
        uint64_t image = dt__perm_at(&perm, n - 1 - i);
        ck_assert_uint_lt(image, n);
        ck_assert_uint_ne(image, before);
        before = image;
    }
}
END_TEST

/* Returns chi-square, over many keys, of the pair of images of the first two elements. */
static double pair_chi2(int n, int keys)
{
    double count[32 * 32] = {0}, chi2 = 0;
    for (int key = 0; key < keys; key++) {
        struct dt_perm perm = make((uint64_t)n, (uint64_t)key);
        count[(int)dt__perm_at(&perm, 0) * 32 + (int)dt__perm_at(&perm, 1)]++;
    }
    const double expected = (double)keys / (n * (n - 1));
    for (int i = 0; i < n * 32; i++) {
        if (i % 32 >= n || i % 32 == i / 32) continue;
        chi2 += (count[i] - expected) * (count[i] - expected) / expected;
    }
    return chi2;
}

/* A Feistel network mixes small domains worst. */
START_TEST(every_order_is_equally_likely)
{
    for (int n = 2; n <= 16; n++) {
        const double freedom = n * (n - 1) - 1;
        ck_assert_double_lt(pair_chi2(n, 20000), freedom + 5 * sqrt(2 * freedom));
    }
}
END_TEST

/* Neighbours must be separated: the mean distance of two random elements is n / 3. */
START_TEST(neighbours_are_separated)
{
    const uint64_t n = 60000;
    struct dt_perm perm = make(n, 3);
    double sum = 0;
    for (uint64_t i = 0; i + 1 < n; i++)
        sum += fabs((double)dt__perm_at(&perm, i) - (double)dt__perm_at(&perm, i + 1));
    ck_assert_double_eq_tol(sum / (double)n, (double)n / 3, (double)n / 100);
}
END_TEST

/* Checkpoints of earlier versions are resumed in this order: it must not change. */
START_TEST(the_order_never_changes)
{
    /* 1024 is a power of two, so no value is skipped; of 1000 some are */
    struct dt_perm perm = make(1000, 1), whole = make(1024, 1);
    const uint64_t expected[] = {270, 160, 291, 899}, of_whole[] = {794, 68, 940, 937};
    for (uint64_t i = 0; i < 4; i++) {
        ck_assert_uint_eq(dt__perm_at(&perm, i), expected[i]);
        ck_assert_uint_eq(dt__perm_at(&whole, i), of_whole[i]);
    }
}
END_TEST

SUITE("perm", every_element_occurs_once, large_domains_work, every_order_is_equally_likely,
      neighbours_are_separated, the_order_never_changes)
