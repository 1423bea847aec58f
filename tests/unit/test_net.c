/* Networks: gradients against finite differences, dropout, hooks, slices, layout. */
#include "dtrain/model.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 7, NIN = 5 };

static struct dt_model *model;
static struct dt_net *net;
static float *params, *grad, *x, *target;
static int32_t label[ROWS];
static struct dt_rng key;

static float *randoms(size_t count, uint64_t stream)
{
    float *values;
    ck_assert_int_eq(dt_alloc(count, sizeof *values, "values", &values), DT_OK);
    struct dt_rng rng = dt_rng_make(5, DT_STREAM_TEST, stream, 0);
    for (size_t i = 0; i < count; i++) values[i] = (float)dt_rng_normal(&rng, i);
    return values;
}

static void set_up(struct dt_model_spec spec)
{
    ck_assert_int_eq(dt_model_create(&spec, &model), DT_OK);
    ck_assert_int_eq(dt_net_create(model, ROWS, &net), DT_OK);
    const size_t count = dt_model_params(model), nout = (size_t)spec.nout;
    params = randoms(count, 1);
    grad = randoms(count, 2);
    for (size_t i = 0; i < count; i++) params[i] *= 0.5f;
    x = randoms(ROWS * NIN, 3);
    target = randoms(ROWS * nout, 4);
    for (int r = 0; r < ROWS; r++) label[r] = r % (spec.nout > 1 ? spec.nout : 2);
    key = dt_rng_make(9, DT_STREAM_DROPOUT, 0, 0);
}

static void tear_down(void)
{
    dt_free(params), dt_free(grad), dt_free(x), dt_free(target);
    dt_net_destroy(net);
    dt_model_destroy(model);
}

static struct dt_batch whole_batch(void)
{
    return (struct dt_batch){.rows = ROWS, .x = x, .label = label, .target = target};
}

static double loss_at(size_t i, float value)
{
    const float kept = params[i];
    struct dt_batch batch = whole_batch();
    double loss;
    float *unused = randoms(dt_model_params(model), 6);
    params[i] = value;
    dt_net_gradient(net, params, &batch, &key, false, unused, &loss, NULL);
    params[i] = kept;
    dt_free(unused);
    return loss;
}

/* Central differences in f32: the loss has an error of about 1e-6, so a step of 1e-2 leaves 1e-4. */
static void check_gradient(void)
{
    struct dt_batch batch = whole_batch();
    double loss, norm = 0.0, error = 0.0;
    dt_net_gradient(net, params, &batch, &key, false, grad, &loss, NULL);
    for (size_t i = 0; i < dt_model_params(model); i++) {
        const float h = 1e-2f, up = params[i] + h, down = params[i] - h;
        double slope = (loss_at(i, up) - loss_at(i, down)) / ((double)up - (double)down);
        norm += slope * slope;
        error += (slope - (double)grad[i]) * (slope - (double)grad[i]);
    }
    ck_assert_double_lt(sqrt(error / norm), 2e-3);
}

/* A wrong derivative of any activation, loss or layer, with and without dropout. relu has kinks: its
 * error here is theirs, the golden gradients hold it to 1e-5. */
START_TEST(gradient_is_the_slope_of_the_loss)
{
    const int activation = _i % 4, task = _i / 4 % 2, nout = _i / 8 % 2 ? 1 : 3, drop = _i / 16;
    if (activation == DT_RELU) return;
    set_up((struct dt_model_spec){.kind = DT_KIND_MLP, .activation = activation, .task = task,
                                  .dropout = drop ? 0.4 : 0.0, .nin = NIN, .nout = nout,
                                  .nhidden = 2, .hidden = {6, 4}});
    check_gradient();
    tear_down();
}
END_TEST

START_TEST(linear_gradient_is_the_slope_of_the_loss)
{
    set_up((struct dt_model_spec){.kind = DT_KIND_LINEAR, .task = _i % 2, .nin = NIN,
                                  .nout = _i / 2 ? 1 : 3});
    check_gradient();
    tear_down();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("net");
    TCase *test = tcase_create("gradient");
    tcase_add_loop_test(test, gradient_is_the_slope_of_the_loss, 0, 32);
    tcase_add_loop_test(test, linear_gradient_is_the_slope_of_the_loss, 0, 4);
    suite_add_tcase(suite, test);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
