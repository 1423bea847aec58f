/* The result of a learning-rate range test. Would catch a suggestion after the fall or in the
 * diverging part, and a curve without a finite loss that is no error. */
#include <math.h>

#include "suite.h"
#include "train/train.h"

/* Makes 200 rates from 1e-7 to 10. The loss is 1 up to the rate `fall`, sinks to 0.1 until ten
 * times that rate, and grows above `rise`. */
static struct dt_lr_test make_curve(double fall, double rise)
{
    struct dt_lr_test test = {.points = DT_LR_TEST_STEPS};
    for (int i = 0; i < test.points; i++) {
        double lr = pow(10, -7 + 8.0 * i / (DT_LR_TEST_STEPS - 1)), progress = log10(lr / fall);
        progress = progress < 0 ? 0 : progress > 1 ? 1 : progress;
        test.lr[i] = lr;
        test.loss[i] = 1 - 0.9 * progress + (lr > rise ? 100 * (lr / rise - 1) : 0);
    }
    return test;
}

START_TEST(test_a_rate_in_the_fall_is_suggested)
{
    for (double fall = 1e-5; fall < 0.05; fall *= 10) {
        struct dt_lr_test test = make_curve(fall, 100 * fall);
        EXPECT_OK(dt__lr_test_judge(&test));
        ck_assert_double_ge(test.suggest, 0.5 * fall);
        ck_assert_double_le(test.suggest, 10 * fall);
        ck_assert_double_ge(test.lr[test.least], 10 * fall);
        ck_assert_double_le(test.lr[test.least], 200 * fall);
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

/* The last loss may be any value, because it ended the test. */
START_TEST(test_a_curve_that_ends_in_infinity)
{
    struct dt_lr_test test = make_curve(1e-3, 0.1);
    test.points = 180;
    test.loss[179] = INFINITY;
    EXPECT_OK(dt__lr_test_judge(&test));
    ck_assert_double_le(test.suggest, 1e-2);
}
END_TEST

/* A loss that never falls, or hardly, is reported as rising or flat. */
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

/* The loss of counts can fall below zero, or start there. Would catch a fall that counts as
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
