/* The wire: rounded values and remaining errors of each kind, at offsets and lengths that cut
 * blocks. Fails if an error is lost or counted twice, bytes do not read back as the sender's
 * floats, a block reaches past its end, a block has its neighbour's scale, or NaN or infinity
 * becomes a number. */
#include "comm/wire.h"

#include <math.h>

#include "config/config.h"
#include "suite.h"

enum { N = 1200 };
static const int KINDS[] = {DT_WIRE_BF16, DT_WIRE_Q8};

static void fill(float *values, size_t n, uint64_t stream, double size)
{
    struct dt_rng rng = dt__rng_make(5, DT_STREAM_TEST, stream, 0);
    for (size_t i = 0; i < n; i++)
        values[i] = (float)(size * dt__rng_normal(&rng, i));
}

static float magnitude(const float *values, size_t n)
{
    float greatest = 0;
    for (size_t i = 0; i < n; i++)
        greatest = fmaxf(greatest, fabsf(values[i]));
    return greatest;
}

/* Returns the greatest error of a value whose block has the magnitude `greatest`. */
static float limit_of(int wire, float value, float greatest)
{
    return wire == DT_WIRE_BF16 ? fabsf(value) / 256 : greatest / 127 * 0.5001f;
}

/* The error is at most half of the resolution, and value = rounded + error. The bytes read back as
 * the sender's values, and a range that is rounded in two parts has the same bytes as the whole. */
START_TEST(values_are_rounded_and_errors_are_kept)
{
    const int wire = KINDS[_i];
    static float values[N], exact[N], error[N], again[N], part[N], part_error[N];
    static unsigned char bytes[4 * N + 64], part_bytes[4 * N + 64];
    const size_t offsets[] = {0, 256, 100, 255, 5000}, lengths[] = {1, 2, 156, 256, 257, 1024, N};
    for (size_t o = 0; o < 5; o++)
        for (size_t l = 0; l < 7; l++) {
            const size_t offset = offsets[o], n = lengths[l], cut = 256 - offset % 256;
            fill(exact, n, 1, 0.01);
            for (size_t i = 0; i < n; i++)
                values[i] = part[i] = exact[i];
            memset(error, 0, sizeof error);
            memset(part_error, 0, sizeof part_error);
            dt__wire_round(wire, offset, n, values, error, bytes);
            dt__wire_read(wire, offset, n, bytes, again);
            ck_assert_mem_eq(again, values, n * sizeof *again);
            for (size_t i = 0, first, end; i < n; i++) {
                first = offset + i - (offset + i) % 256 < offset ? 0 : i - (offset + i) % 256;
                end = i + 256 - (offset + i) % 256 < n ? i + 256 - (offset + i) % 256 : n;
                float greatest = magnitude(exact + first, end - first);
                ck_assert(fabsf(error[i]) <= limit_of(wire, exact[i], greatest));
                ck_assert(fabsf(values[i] + error[i] - exact[i]) <= 1e-7f * greatest);
            }
            if (cut >= n) continue;
            dt__wire_round(wire, offset, cut, part, part_error, part_bytes);
            dt__wire_round(wire, offset + cut, n - cut, part + cut, part_error + cut,
                           part_bytes + dt__wire_bytes(wire, offset, cut));
            ck_assert_mem_eq(part, values, n * sizeof *part);
            ck_assert_mem_eq(part_error, error, n * sizeof *error);
            ck_assert_mem_eq(part_bytes, bytes, dt__wire_bytes(wire, offset, n));
        }
}
END_TEST

/* The sum of a thousand rounded values and the last error is the exact sum, even for values far
 * below the resolution of their block. */
START_TEST(errors_are_sent_later)
{
    const int wire = KINDS[_i];
    static float values[512], error[512];
    static double sent[512], exact_sum[512];
    for (int step = 0; step < 1000; step++) {
        fill(values, 512, (uint64_t)step, 1);
        values[7] = 1e-4f;
        for (int i = 0; i < 512; i++)
            exact_sum[i] += (double)values[i];
        dt__wire_round(wire, 0, 512, values, error, NULL);
        for (int i = 0; i < 512; i++)
            sent[i] += (double)values[i];
    }
    ck_assert_double_eq_tol(exact_sum[7], 0.1, 1e-3);
    for (int i = 0; i < 512; i++) {
        ck_assert_double_eq_tol(sent[i] + (double)error[i], exact_sum[i], 2e-4);
        ck_assert(fabsf(error[i]) < 0.03f);
    }
}
END_TEST

START_TEST(zeros_stay_and_denormals_are_not_lost)
{
    const int wire = KINDS[_i];
    float values[600] = {0}, error[600] = {0};
    unsigned char bytes[2400];
    dt__wire_round(wire, 0, 600, values, error, bytes);
    for (int i = 0; i < 600; i++)
        ck_assert(values[i] == 0 && !signbit(values[i]) && error[i] == 0);
    values[3] = 0x1p-140f;   /* a block of denormals */
    values[300] = 0x1p-140f; /* a denormal next to larger values */
    values[301] = 1;
    dt__wire_round(wire, 0, 600, values, error, bytes);
    ck_assert(values[3] + error[3] == 0x1p-140f || values[3] + error[3] == 0);
    ck_assert(values[300] + error[300] == 0x1p-140f || values[300] + error[300] == 0);
    ck_assert(values[301] == 1 && error[301] == 0);
    for (int i = 0; i < 600; i++)
        ck_assert(isfinite(values[i]) && isfinite(error[i]));
}
END_TEST

/* NaN and infinity reach the weights and so the loss, which ends the run. */
START_TEST(nan_and_infinity_are_not_lost)
{
    const int wire = KINDS[_i];
    const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int b = 0; b < 3; b++) {
        float values[512] = {0}, error[512] = {0}, weights[512] = {0};
        unsigned char bytes[2048];
        values[300] = bad[b];
        dt__wire_update(wire, 0, 512, values, error, weights, bytes);
        ck_assert(!isfinite(weights[300]));
        float others[512] = {0};
        dt__wire_add(wire, 0, 512, bytes, others);
        ck_assert(!isfinite(others[300]) && others[0] == 0 && others[255] == 0);
    }
}
END_TEST

/* The owner and the other ranks get the same weights, and the owner keeps the update's error. */
START_TEST(an_update_is_the_same_everywhere)
{
    const int wire = KINDS[_i];
    static float weights[N], others[N], fresh[N], error[N], exact[N];
    static unsigned char bytes[4 * N];
    fill(weights, N, 1, 1);
    memcpy(others, weights, sizeof others);
    for (int step = 0; step < 5; step++) {
        fill(fresh, N, (uint64_t)step + 2, 0.001);
        for (size_t i = 0; i < N; i++)
            exact[i] = (fresh[i] += weights[i]) + error[i];
        dt__wire_update(wire, 77, N, fresh, error, weights, bytes);
        dt__wire_add(wire, 77, N, bytes, others);
        ck_assert_mem_eq(others, weights, sizeof weights);
        for (size_t i = 0; i < N; i++)
            ck_assert_float_eq_tol(weights[i] + error[i], exact[i], 1e-6f);
    }
}
END_TEST

/* bf16 takes half of the bytes; q8 a quarter, and a scale per block; f32 is unchanged. */
START_TEST(the_wire_saves_bytes)
{
    float value = 0.1f, error = 0;
    ck_assert_uint_eq(dt__wire_bytes(DT_WIRE_F32, 0, 1000), 4000);
    ck_assert_uint_eq(dt__wire_bytes(DT_WIRE_BF16, 3, 1000), 2000);
    ck_assert_uint_eq(dt__wire_bytes(DT_WIRE_Q8, 0, 1024), 1024 + 4 * 4);
    ck_assert_uint_eq(dt__wire_bytes(DT_WIRE_Q8, 255, 2), 2 + 2 * 4);
    ck_assert_uint_eq(dt__wire_bytes(DT_WIRE_Q8, 255, 0), 0);
    dt__wire_round(DT_WIRE_F32, 0, 1, &value, &error, NULL);
    ck_assert(value == 0.1f && error == 0);
}
END_TEST

int main(void)
{
    TCase *test_case = tcase_create("wire");
    tcase_add_loop_test(test_case, values_are_rounded_and_errors_are_kept, 0, 2);
    tcase_add_loop_test(test_case, errors_are_sent_later, 0, 2);
    tcase_add_loop_test(test_case, zeros_stay_and_denormals_are_not_lost, 0, 2);
    tcase_add_loop_test(test_case, nan_and_infinity_are_not_lost, 0, 2);
    tcase_add_loop_test(test_case, an_update_is_the_same_everywhere, 0, 2);
    tcase_add_test(test_case, the_wire_saves_bytes);
    return suite_run_case("wire", test_case);
}
