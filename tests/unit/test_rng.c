/* Counter-based random numbers: published vectors, independent streams, and distributions. */
#include "unit/suite.h"

#include <math.h>

#include "base/elementary.h"
#include "base/internal.h"

enum { DRAWS = 200000 };

/* The lines "philox4x32 10" in tests/kat_vectors of the Random123 distribution. */
static const struct {
    uint32_t counter[4], key[2], out[4];
} VECTORS[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

START_TEST(philox_gives_the_published_numbers)
{
    for (size_t i = 0; i < sizeof VECTORS / sizeof *VECTORS; i++) {
        uint32_t out[4];
        dt__philox(VECTORS[i].key, VECTORS[i].counter, out);
        ck_assert_mem_eq(out, VECTORS[i].out, sizeof out);
    }
}
END_TEST

/* Checkpoints of earlier versions are resumed with these numbers: they must not change. */
START_TEST(streams_never_change)
{
    struct dt_rng rng = dt__rng_make(1, DT_STREAM_SHUFFLE, 2, 3);
    ck_assert_uint_eq(rng.key[0], 0x19c2c969);
    ck_assert_uint_eq(rng.key[1], 0xc8b08b70);
    ck_assert_uint_eq(dt__rng_u64(&rng, 5), 0xd0dce6b7cfb61335);
}
END_TEST

/* A block has two numbers; in each the low word comes first. */
START_TEST(numbers_are_words_of_blocks)
{
    struct dt_rng rng = dt__rng_make(7, DT_STREAM_TEST, 0, 0);
    for (uint64_t block = 0; block < 100; block++) {
        uint32_t words[4];
        dt__rng_block(&rng, block, words);
        ck_assert_uint_eq(dt__rng_u64(&rng, 2 * block), (uint64_t)words[1] << 32 | words[0]);
        ck_assert_uint_eq(dt__rng_u64(&rng, 2 * block + 1), (uint64_t)words[3] << 32 | words[2]);
    }
}
END_TEST

/* Several blocks at once are the same as one by one, even where the counter carries into its high
 * word. */
START_TEST(many_blocks_equal_single_blocks)
{
    enum { MAX_BLOCKS = 100 };
    const uint64_t starts[] = {0, 5, 0xffffffff - 40, ~(uint64_t)0 - 200};
    struct dt_rng rng = dt__rng_make(8, DT_STREAM_TEST, 0, 0);
    for (size_t count = 0; count <= MAX_BLOCKS; count++) {
        uint32_t all[4 * MAX_BLOCKS], single[4];
        const uint64_t start = starts[count % 4];
        dt__rng_blocks(&rng, start, count, all);
        for (size_t i = 0; i < count; i++) {
            dt__rng_block(&rng, start + i, single);
            ck_assert_mem_eq(all + 4 * i, single, sizeof single);
        }
    }
}
END_TEST

/* Each argument makes another stream, the high halves of 64-bit arguments too. */
START_TEST(streams_differ)
{
    const uint64_t big = (uint64_t)1 << 40;
    const struct dt_rng rngs[] = {
        dt__rng_make(1, DT_STREAM_INIT, 0, 0),    dt__rng_make(2, DT_STREAM_INIT, 0, 0),
        dt__rng_make(big, DT_STREAM_INIT, 0, 0),  dt__rng_make(1, DT_STREAM_DROPOUT, 0, 0),
        dt__rng_make(1, DT_STREAM_INIT, 1, 0),    dt__rng_make(1, DT_STREAM_INIT, big, 0),
        dt__rng_make(1, DT_STREAM_INIT, 0, 1),    dt__rng_make(1, DT_STREAM_INIT, 0, big),
        dt__rng_make(1, DT_STREAM_SHUFFLE, 0, 0), dt__rng_make(1, DT_STREAM_INIT, 1, 1),
    };
    const size_t count = sizeof rngs / sizeof *rngs;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < i; j++)
            ck_assert_mem_ne(&rngs[i], &rngs[j], sizeof rngs[i]);
    }
}
END_TEST

START_TEST(uniform_is_uniform)
{
    enum { BINS = 64 };
    double count[BINS] = {0}, chi2 = 0;
    struct dt_rng rng = dt__rng_make(3, DT_STREAM_TEST, 0, 0);
    for (uint64_t i = 0; i < DRAWS; i++) {
        double u = dt__rng_uniform(&rng, i);
        ck_assert(u >= 0 && u < 1);
        count[(int)(u * BINS)]++;
    }
    const double expected = (double)DRAWS / BINS;
    for (int b = 0; b < BINS; b++)
        chi2 += (count[b] - expected) * (count[b] - expected) / expected;
    ck_assert_double_lt(chi2, 63 + 5 * sqrt(2 * 63)); /* 5 standard deviations above 63 */
}
END_TEST

START_TEST(normal_has_the_moments_of_the_normal)
{
    double sum[5] = {0};
    struct dt_rng rng = dt__rng_make(4, DT_STREAM_TEST, 0, 0);
    for (uint64_t i = 0; i < DRAWS; i++) {
        double x = dt__rng_normal(&rng, i);
        ck_assert(isfinite(x));
        for (int k = 1; k <= 4; k++)
            sum[k] += pow(x, k) / DRAWS;
    }
    ck_assert_double_lt(fabs(sum[1]), 5 / sqrt(DRAWS));
    ck_assert_double_lt(fabs(sum[2] - 1), 5 * sqrt(2.0 / DRAWS));
    ck_assert_double_lt(fabs(sum[3]), 5 * sqrt(15.0 / DRAWS));
    ck_assert_double_lt(fabs(sum[4] - 3), 5 * sqrt(96.0 / DRAWS));
}
END_TEST

/* Number i is made from the uniform numbers 2i and 2i + 1 (Box and Muller). */
START_TEST(normal_is_box_muller)
{
    struct dt_rng rng = dt__rng_make(5, DT_STREAM_TEST, 0, 0);
    for (uint64_t i = 0; i < 100; i++) {
        double u = 1 - dt__rng_uniform(&rng, 2 * i), v = dt__rng_uniform(&rng, 2 * i + 1);
        double expected = sqrt(-2 * log(u)) * cos(2 * acos(-1) * v);
        ck_assert_double_eq_tol(dt__rng_normal(&rng, i), expected, 1e-12);
    }
}
END_TEST

/* Bounds the errors of the portable functions against the C library: relative errors for log (below
 * 1), pow and expm1f, absolute errors for the others. */
START_TEST(portable_functions_are_accurate)
{
    dt__elementary_choose(true);
    const struct dt__elementary *f = dt__elementary;
    for (int i = 1; i < 20000; i++) {
        const double x = i / 20000.0, wide_x = i * i / 1e4;
        const long double angle = 6.5L * (long double)x;
        const double angle_value = (double)angle;
        ck_assert_double_le(fabs(f->log(x) / (double)logl((long double)x) - 1), 4e-16);
        ck_assert_double_le(fabs(f->log(wide_x) - (double)logl((long double)wide_x)), 2e-15);
        ck_assert_double_le(fabs(f->cos(angle_value) - (double)cosl((long double)angle_value)),
                            2e-16);
        ck_assert_double_le(fabs(f->pow(x, 7.5) / (double)powl((long double)x, 7.5L) - 1), 2e-14);
        ck_assert_double_le(fabs((double)f->logf((float)wide_x) - log((double)(float)wide_x)),
                            5e-7);
        ck_assert_double_le(
            fabs((double)f->expm1f((float)(0.01 + 20 * x)) / expm1((double)(float)(0.01 + 20 * x)) -
                 1),
            7e-8);
    }
    ck_assert(f->pow(0.0, 1.0) == 0.0 && f->pow(0.0, 0.0) == 1.0 && f->pow(0.9, 1e9) == 0.0);
    dt__elementary_choose(false);
}
END_TEST

/* The vector code, with its remainder, gives the blocks of the scalar code where the counter
 * carries. */
START_TEST(vector_blocks_equal_single_blocks)
{
    enum { COUNT = 77 };
    uint32_t many[4 * COUNT], single[4];
    struct dt_rng rng = dt__rng_make(6, DT_STREAM_TEST, 0, 0);
    const uint64_t first = 0xfffffff0u;
    dt__rng_blocks(&rng, first, COUNT, many);
    for (uint64_t i = 0; i < COUNT; i++) {
        dt__rng_block(&rng, first + i, single);
        ck_assert_mem_eq(many + 4 * i, single, sizeof single);
    }
}
END_TEST

SUITE("rng", philox_gives_the_published_numbers, streams_never_change, numbers_are_words_of_blocks,
      many_blocks_equal_single_blocks, streams_differ, uniform_is_uniform,
      normal_has_the_moments_of_the_normal, normal_is_box_muller, portable_functions_are_accurate,
      vector_blocks_equal_single_blocks)
