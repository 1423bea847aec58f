/* The predictor against numbers computed in this test: scaling, normalisation, probabilities,
 * names, chunks. Fails if a row is normalised twice or not at all, or if rows are swapped between
 * chunks. */
#include <math.h>

#include "model_text.h"
#include "predict/predict.h"
#include "state_sample.h"

enum { NIN = 2, ROWS = 600 };
static const float RAW[NIN] = {3, -1};
/* Parameters of a linear layer, (2, 3) weights and (3) biases; regression and two classes use the
 * first 3. */
static float params[] = {0.5f, -1, 2, 1, 0.25f, -0.5f, 0.1f, 0.2f, -0.3f};
static float mean[] = {1, 2}, inv_std[] = {0.5f, 4};
static char *features[] = {"width", "height"};
static char *labels[] = {"ant", "bee", "cat"};

/* Writes a linear model with `nout` logits or values, and opens it. */
static struct dt_predictor *open_linear(int task, int nout)
{
    struct dt_checkpoint model = {.step = 7, .params = params, .params_count = (size_t)(3 * nout)};
    struct dt_config config;
    struct dt_predictor *predictor;
    make_test_dir();
    assert_ok(dt__config_init(&config));
    assert_ok(dt_config_set(&config, "model.kind=linear"));
    assert_ok(dt_config_set(&config, task == DT_TASK_CLASSIFY ? "model.task=classify"
                                                              : "model.task=regress"));
    assert_ok(dt__model_resolve(&config));
    model.desc = desc_of(config.model.layers, NIN, nout, task);
    assert_ok(dt_config_print(&config, &model.config));
    model.schema =
        (struct dt_schema){.task = task,
                           .features = NIN,
                           .classes = task == DT_TASK_CLASSIFY ? (nout == 1 ? 2 : nout) : 0,
                           .targets = task == DT_TASK_CLASSIFY ? 0 : nout,
                           .scale = 0.5,
                           .mean = mean,
                           .inv_std = inv_std,
                           .feature_names = features,
                           .label_names = task == DT_TASK_CLASSIFY ? labels : NULL};
    assert_ok(dt__export_write(in_dir("best"), &model, 0));
    assert_ok(dt_predictor_open(in_dir("best"), &predictor));
    dt_free(model.config);
    dt__config_free(&config);
    return predictor;
}

static void close_linear(struct dt_predictor *predictor)
{
    dt_predictor_close(predictor);
    remove_test_dir();
}

/* Returns logit `o` of `nout` for raw features. */
static double logit(const float *raw, int o, int nout)
{
    double z = params[NIN * nout + o];
    for (int i = 0; i < NIN; i++)
        z += (raw[i] * 0.5 - mean[i]) * inv_std[i] * params[i * nout + o];
    return z;
}

START_TEST(classes_have_probabilities)
{
    struct dt_predictor *predictor = open_linear(DT_TASK_CLASSIFY, 3);
    float out[3];
    int32_t class_number;
    double sum = 0;
    ck_assert_int_eq(dt_predictor_features(predictor), NIN);
    ck_assert_int_eq(dt_predictor_classes(predictor), 3);
    ck_assert_int_eq(dt_predictor_width(predictor), 3);
    ck_assert_str_eq(dt_predictor_feature_name(predictor, 1), "height");
    ck_assert_str_eq(dt_predictor_class_name(predictor, 2), "cat");
    ck_assert_uint_eq(predictor->file.step, 7);
    assert_ok(dt_predictor_rows(predictor, RAW, 1, out, &class_number));
    for (int o = 0; o < 3; o++)
        sum += exp(logit(RAW, o, 3));
    for (int o = 0; o < 3; o++)
        ck_assert_double_eq_tol(out[o], exp(logit(RAW, o, 3)) / sum, 1e-6);
    ck_assert_int_eq(class_number, 2);
    close_linear(predictor);
}
END_TEST

START_TEST(one_logit_is_two_classes)
{
    struct dt_predictor *predictor = open_linear(DT_TASK_CLASSIFY, 1);
    float out[2];
    int32_t class_number;
    ck_assert_int_eq(dt_predictor_width(predictor), 2);
    assert_ok(dt_predictor_rows(predictor, RAW, 1, out, &class_number));
    double yes = 1 / (1 + exp(-logit(RAW, 0, 1)));
    ck_assert_double_eq_tol(out[1], yes, 1e-6);
    ck_assert_double_eq_tol(out[0], 1 - yes, 1e-6);
    ck_assert_int_eq(class_number, yes > 0.5);
    close_linear(predictor);
}
END_TEST

/* Many rows, raw or already normalised, give the values of single rows, in order. */
START_TEST(values_are_in_order)
{
    static float raw[ROWS][NIN], x[ROWS][NIN], out[ROWS], of_normalised[ROWS];
    struct dt_predictor *predictor = open_linear(DT_TASK_REGRESS, 1);
    ck_assert_int_eq(dt_predictor_classes(predictor), 0);
    ck_assert_ptr_null(dt_predictor_class_name(predictor, 0));
    for (int r = 0; r < ROWS; r++) {
        raw[r][0] = (float)r;
        raw[r][1] = (float)(r % 7);
        for (int i = 0; i < NIN; i++)
            x[r][i] = (raw[r][i] * 0.5f - mean[i]) * inv_std[i];
    }
    assert_ok(dt_predictor_rows(predictor, raw[0], ROWS, out, NULL));
    const struct dt_inputs inputs = {.x = x[0]};
    assert_ok(dt__predictor_inputs(predictor, &inputs, ROWS, of_normalised, NULL));
    for (int r = 0; r < ROWS; r++) {
        ck_assert_double_eq_tol(out[r], logit(raw[r], 0, 1), 1e-3);
        ck_assert_float_eq(out[r], of_normalised[r]);
    }
    close_linear(predictor);
}
END_TEST

START_TEST(other_files_are_refused)
{
    struct dt_predictor *predictor = NULL;
    make_test_dir();
    EXPECT_FAIL(dt_predictor_open(in_dir("nothing"), &predictor), DT_EIO, "nothing");
    EXPECT_FAIL(dt_predictor_open(test_dir, &predictor), DT_EIO,
                "neither a model nor a checkpoint");
    ck_assert_ptr_null(predictor);
    dt_predictor_close(NULL);
    remove_test_dir();
}
END_TEST

SUITE("predictor", classes_have_probabilities, one_logit_is_two_classes, values_are_in_order,
      other_files_are_refused)
