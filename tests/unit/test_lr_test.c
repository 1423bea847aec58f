/* The result of a learning-rate range test. Would catch: a suggestion after the fall, one in the
 * diverging part, a curve without any number. */
#include <math.h>

#include "suite.h"
#include "train/train.h"

/* 200 rates from 1e-7 to 10; the loss is 1 until `fall`, 0.1 from ten times that on, and grows at `rise`. */
static struct dt_lr_test make_course(double fall, double rise)
{
    struct dt_lr_test test = {.points = DT_LR_TEST_STEPS};
    for (int i = 0; i < test.points; i++) {
        double lr = pow(10, -7 + 8.0 * i / (DT_LR_TEST_STEPS - 1)), part = log10(lr / fall);
        part = part < 0 ? 0 : part > 1 ? 1 : part;
        test.lr[i] = lr;
        test.loss[i] = 1 - 0.9 * part + (lr > rise ? 100 * (lr / rise - 1) : 0);
    }
    return test;
}

START_TEST(test_the_fall_is_found)
{
    for (double fall = 1e-5; fall < 0.05; fall *= 10) {
        struct dt_lr_test test = make_course(fall, 100 * fall);
        EXPECT_OK(dt__lr_test_judge(&test));
        ck_assert_double_ge(test.suggest, 0.5 * fall);
        ck_assert_double_le(test.suggest, 10 * fall);
        ck_assert_double_ge(test.lr[test.least], 10 * fall);
        ck_assert_double_le(test.lr[test.least], 200 * fall);
    }
}
END_TEST

START_TEST(test_no_number_at_all)
{
    struct dt_lr_test test = make_course(1e-3, 1);
    test.points = 0;
    EXPECT_FAIL(dt__lr_test_judge(&test), DT_ENUMERIC, "not finite at any rate");
    test.points = 3;
    test.loss[0] = NAN;
    EXPECT_FAIL(dt__lr_test_judge(&test), DT_ENUMERIC, "not finite at any rate");
}
END_TEST

/* The loss of the last point may be anything: the run ended by it. */
START_TEST(test_an_end_without_a_number)
{
    struct dt_lr_test test = make_course(1e-3, 0.1);
    test.points = 180;
    test.loss[179] = INFINITY;
    EXPECT_OK(dt__lr_test_judge(&test));
    ck_assert_double_le(test.suggest, 1e-2);
}
END_TEST

/* A loss that never falls, or hardly, gives no rate but a message. */
START_TEST(test_a_course_without_a_fall)
{
    struct dt_lr_test test = make_course(1e-3, 0.1);
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

/* The loss of counts falls below zero, and may begin there. Would catch a fall that is taken for a divergence. */
START_TEST(test_a_loss_below_zero)
{
    for (double shift = 0.5; shift < 200; shift *= 20) {
        struct dt_lr_test test = make_course(1e-3, 0.1);
        const int points = test.points;
        for (int i = 0; i < points; i++)
            test.loss[i] -= shift;
        for (test.points = 1; test.points < 140; test.points++) { /* before the rate is 0.1 */
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

SUITE("lr_test", test_a_loss_below_zero, test_a_course_without_a_fall, test_the_fall_is_found, test_no_number_at_all, test_an_end_without_a_number)
