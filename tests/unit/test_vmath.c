/* vmath: errors against libm in f64, limits, NaN, and equal bits at every position of a vector. */
#include "model/vmath.h"
#include "suite.h"

#include <math.h>

static float exp_(float x)
{
    return dt__expf(x);
}
static float tanh_(float x)
{
    return dt__tanhf(x);
}
static float erf_(float x)
{
    return dt__erff(x);
}
static float log1p_(float x)
{
    return dt__log1pf(x);
}
static float sigmoid_(float x)
{
    return dt__sigmoidf(x);
}
static float log_(float x)
{
    return (float)dt__log(x);
}
static float cos_turns_(float x)
{
    return dt__cos_turns(x);
}
static double true_cos_turns(double x)
{
    return cos(2 * M_PI * x);
}
static double true_sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

static const struct {
    const char *name;
    float (*ours)(float);
    double (*theirs)(double);
    float low, high;
    double error; /* bound of the relative error */
} FUNCTIONS[] = {
    {"exp", exp_, exp, -87.0f, 88.7f, 9e-8},
    {"tanh", tanh_, tanh, -12.0f, 12.0f, 4e-7},
    {"tanh", tanh_, tanh, -1e-3f, 1e-3f, 4e-7},
    {"erf", erf_, erf, -6.0f, 6.0f, 5e-7},
    {"erf", erf_, erf, -1e-3f, 1e-3f, 5e-7},
    {"log1p", log1p_, log1p, 0.0f, 1.0f, 3e-7},
    {"log", log_, log, 1e-7f, 0.99f, 7e-8},
    {"log", log_, log, 1.01f, 1e30f, 7e-8},
    {"sigmoid", sigmoid_, true_sigmoid, -80.0f, 80.0f, 2e-7},
};

/* Fails if a coefficient is wrong or a range ends too early. */
static void check_errors(int variant)
{
    const int samples = 400000;
    const double low = FUNCTIONS[variant].low, width = FUNCTIONS[variant].high - low;
    for (int i = 0; i <= samples; i++) {
        float x = (float)(low + width * i / samples);
        double expected = FUNCTIONS[variant].theirs((double)x),
               got = (double)FUNCTIONS[variant].ours(x);
        double error = fabs(got - expected) / (fabs(expected) + 1e-40);
        if (!(error < FUNCTIONS[variant].error))
            ck_abort_msg("%s(%.9g) is off by %g", FUNCTIONS[variant].name, (double)x, error);
    }
}

START_TEST(errors_are_within_bounds)
{
    for (int i = 0; i < (int)(sizeof FUNCTIONS / sizeof *FUNCTIONS); i++)
        check_errors(i);
}
END_TEST

START_TEST(limits_are_exact)
{
    ck_assert(dt__expf(-200.0f) == 0.0f && dt__expf(-INFINITY) == 0.0f);
    ck_assert(isinf(dt__expf(89.0f)) && isinf(dt__expf(INFINITY)));
    ck_assert(dt__expf(0.0f) == 1.0f);
    ck_assert(dt__tanhf(INFINITY) <= 1.0f && dt__tanhf(-30.0f) >= -1.0f && dt__tanhf(0.0f) == 0.0f);
    ck_assert(dt__erff(INFINITY) <= 1.0f && dt__erff(-30.0f) >= -1.0f && dt__erff(0.0f) == 0.0f);
    ck_assert(dt__sigmoidf(-INFINITY) == 0.0f && dt__sigmoidf(INFINITY) == 1.0f);
    ck_assert(isnan(dt__expf(NAN)) && isnan(dt__tanhf(NAN)) && isnan(dt__erff(NAN)));
    ck_assert(isnan(dt__sigmoidf(NAN)) && isnan(dt__log1pf(NAN)));
}
END_TEST

/* Fails if a compiler contracts or reorders operations in a loop's body but not in its tail. */
START_TEST(bits_do_not_depend_on_position)
{
    enum { N = 77 };
    float in[N], all[4][N];
    for (int i = 0; i < N; i++)
        in[i] = (float)(i - 38) * 0.173f;
    for (int i = 0; i < N; i++)
        all[0][i] = dt__expf(in[i]);
    for (int i = 0; i < N; i++)
        all[1][i] = dt__tanhf(in[i]);
    for (int i = 0; i < N; i++)
        all[2][i] = dt__erff(in[i]);
    for (int i = 0; i < N; i++)
        all[3][i] = dt__sigmoidf(in[i]);
    for (int i = 0; i < N; i++) {
        volatile float x = in[i];
        ck_assert(exp_(x) == all[0][i] && tanh_(x) == all[1][i]);
        ck_assert(erf_(x) == all[2][i] && sigmoid_(x) == all[3][i]);
    }
}
END_TEST

/* Bounds absolute errors: cos has zeros, and the tail's error is that of its z. */
START_TEST(errors_of_cos_and_tails_are_within_bounds)
{
    for (int i = -400000; i <= 400000; i++) {
        const float x = (float)i * 2.5e-5f;
        const double error = fabs((double)cos_turns_(x) - true_cos_turns((double)x));
        if (!(error < 2e-7)) ck_abort_msg("cos_turns(%.9g) is off by %g", (double)x, error);
    }
    for (int i = 0; i <= 51000; i++) {
        const double z = i * 1e-4;
        const float p = (float)(0.5 * erfc(z / sqrt(2)));
        const double slope = exp(-z * z / 2) / sqrt(2 * M_PI);
        const double expected = z + (0.5 * erfc(z / sqrt(2)) - (double)p) / slope;
        const double error = fabs((double)dt__normal_tail(p) - expected);
        if (!(error < 1.5e-6)) ck_abort_msg("normal_tail(%.9g) is off by %g", (double)p, error);
    }
    ck_assert_float_eq(dt__normal_tail(0), 5.2f);
    ck_assert_float_eq(dt__normal_tail(0.5f), 0);
}
END_TEST

SUITE("vmath", errors_of_cos_and_tails_are_within_bounds, errors_are_within_bounds,
      limits_are_exact, bits_do_not_depend_on_position)
