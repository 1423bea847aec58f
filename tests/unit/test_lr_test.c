/* The result of a learning-rate range test. Fails if the suggested rate lies past the fall or where
 * the loss diverges, or if a curve without a finite loss is no error. */
#include <math.h>

#include "suite.h"
#include "train/train.h"

/* Returns a curve of 200 rates from 1e-7 to 10. Its loss is 1 up to the rate `start`, falls to 0.1
 * at ten times that rate, and grows above the rate `rise`. */
static struct dt_lr_test make_curve(double start, double rise)
{
    struct dt_lr_test test = {.points = DT_LR_TEST_STEPS};
    for (int i = 0; i < test.points; i++) {
        double lr = pow(10, -7 + 8.0 * i / (DT_LR_TEST_STEPS - 1)), progress = log10(lr / start);
        progress = progress < 0 ? 0 : progress > 1 ? 1 : progress;
        test.lr[i] = lr;
        test.loss[i] = 1 - 0.9 * progress + (lr > rise ? 100 * (lr / rise - 1) : 0);
    }
    return test;
}

START_TEST(test_a_rate_in_the_fall_is_suggested)
{
    for (double start = 1e-5; start < 0.05; start *= 10) {
        struct dt_lr_test test = make_curve(start, 100 * start);
        EXPECT_OK(dt__lr_test_judge(&test));
        ck_assert_double_ge(test.suggest, 0.5 * start);
        ck_assert_double_le(test.suggest, 10 * start);
        ck_assert_double_ge(test.lr[test.least], 10 * start);
        ck_assert_double_le(test.lr[test.least], 200 * start);
    }
}
END_TEST

START_TEST(test_a_curve_without_a_finite_loss)
{
    struct dt_lr_test test = make_curve(1e-3, 1);
    test.points = 0;
    EXPECT_FAIL(dt__lr_test_judge(&test), DT_ENUMERIC, "not finite at any rate");
    test.points = 3;
    test.loss[0] = NAN;
    EXPECT_FAIL(dt__lr_test_judge(&test), DT_ENUMERIC, "not finite at any rate");
}
END_TEST

/* The last loss may be infinite, because the test ends there. */
START_TEST(test_a_curve_that_ends_in_infinity)
{
    struct dt_lr_test test = make_curve(1e-3, 0.1);
    test.points = 180;
    test.loss[179] = INFINITY;
    EXPECT_OK(dt__lr_test_judge(&test));
    ck_assert_double_le(test.suggest, 1e-2);
}
END_TEST

/* A loss that never falls is reported as rising; one that hardly falls, as flat. */
START_TEST(test_a_curve_without_a_fall)
{
    struct dt_lr_test test = make_curve(1e-3, 0.1);
    EXPECT_OK(dt__lr_test_judge(&test));
    ck_assert(!test.rises && !test.flat);
    for (int i = 0; i < test.points; i++)
        test.loss[i] = 1 + 0.01 * i;
    EXPECT_OK(dt__lr_test_judge(&test));
    ck_assert(test.rises && !test.flat);
    for (int i = 0; i < test.points; i++)
        test.loss[i] = 1 - 1e-5 * i;
    EXPECT_OK(dt__lr_test_judge(&test));
    ck_assert(!test.rises && test.flat);
}
END_TEST

/* The loss of counts may fall below zero, or start there. Fails if such a fall counts as
 * divergence. */
START_TEST(test_a_loss_below_zero)
{
    for (double shift = 0.5; shift < 200; shift *= 20) {
        struct dt_lr_test test = make_curve(1e-3, 0.1);
        const int points = test.points;
        for (int i = 0; i < points; i++)
            test.loss[i] -= shift;
        for (test.points = 1; test.points < 140; test.points++) { /* the rate stays below 0.1 */
            EXPECT_OK(dt__lr_test_judge(&test));
            ck_assert_msg(!test.diverged, "%d points, shift %g", test.points, shift);
        }
        test.points = points;
        EXPECT_OK(dt__lr_test_judge(&test));
        ck_assert(test.diverged && !test.rises);
        ck_assert_double_ge(test.suggest, 5e-4);
        ck_assert_double_le(test.suggest, 1e-2);
    }
}
END_TEST

SUITE("lr_test", test_a_loss_below_zero, test_a_curve_without_a_fall,
      test_a_rate_in_the_fall_is_suggested, test_a_curve_without_a_finite_loss,
      test_a_curve_that_ends_in_infinity)
