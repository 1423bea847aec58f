/* Metrics: values against brute force, chunks against the whole, and which metrics each model
 * has. */
#include "model/task.h"
#include "model_text.h"
#include "suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 700, MAX_CLASSES = 12 };

static float logits[ROWS * MAX_CLASSES], target[ROWS * MAX_CLASSES];
static int32_t label[ROWS];
static double sums[2 + DT_EVAL_CHUNK * 3 + 64];
static struct dt_model *model;

/* Fills logits with multiples of 1/4, so that many are equal. */
static void fill(int nout, int classes)
{
    struct dt_rng rng = dt__rng_make(2, DT_STREAM_TEST, (uint64_t)nout, 0);
    for (int i = 0; i < ROWS * nout; i++) {
        logits[i] = (float)(round(4.0 * dt__rng_normal(&rng, (uint64_t)i)) / 4.0);
        target[i] = logits[i] + 0.5f * (float)dt__rng_normal(&rng, 100000 + (uint64_t)i);
    }
    for (int i = 0; i < ROWS; i++)
        label[i] =
            (int32_t)(dt__rng_u64(&rng, 200000 + (uint64_t)i) % (uint64_t)(classes ? classes : 1));
}

/* Measures all rows in chunks, with one confusion matrix per chunk; returns the metrics, which the
 * caller destroys. */
static struct dt_metrics *measure(struct dt_metric_values *values)
{
    struct dt_metrics *metrics;
    uint64_t confusion[MAX_CLASSES * MAX_CLASSES];
    EXPECT_OK(dt__metrics_create(model, NULL, &metrics));
    const int nout = model->desc.nout;
    const bool classify = model->classes > 0;
    ck_assert_uint_le(dt__metrics_sums(model), sizeof sums / sizeof *sums);
    for (int r = 0; r < ROWS; r += DT_EVAL_CHUNK) {
        struct dt_batch batch = {.rows = ROWS - r < DT_EVAL_CHUNK ? ROWS - r : DT_EVAL_CHUNK,
                                 .label = label + r,
                                 .target = target + r * nout};
        memset(confusion, 0, sizeof confusion);
        dt__metrics_chunk(model, logits + r * nout, &batch, sums, classify ? confusion : NULL);
        EXPECT_OK(dt__metrics_add(metrics, sums));
        if (classify) dt__metrics_add_confusion(metrics, confusion);
    }
    dt__metrics_values(metrics, values);
    return metrics;
}

static void set_model(int task, int nout)
{
    const struct dt_model_desc desc = desc_of("linear", 1, nout, task);
    dt__model_destroy(model);
    EXPECT_OK(dt__model_create(&desc, &model));
}

/* Returns whether `wanted` is among the k best classes of a row; of equal logits the lower class is
 * better. */
static bool in_top(const float *row, int nout, int wanted, int k)
{
    bool taken[MAX_CLASSES] = {false};
    for (int round = 0; round < k; round++) {
        int best = -1;
        for (int c = 0; c < nout; c++)
            if (!taken[c] && (best < 0 || row[c] > row[best])) best = c;
        if (best == wanted) return true;
        taken[best] = true;
    }
    return false;
}

START_TEST(classes_are_counted)
{
    set_model(DT_TASK_CLASSIFY, MAX_CLASSES);
    struct dt_metric_values values;
    fill(MAX_CLASSES, MAX_CLASSES);
    struct dt_metrics *metrics = measure(&values);
    double loss = 0.0, first = 0.0, top5 = 0.0, diagonal = 0.0, cells = 0.0;
    for (int r = 0; r < ROWS; r++) {
        const float *row = logits + r * MAX_CLASSES;
        double total = 0.0;
        for (int c = 0; c < MAX_CLASSES; c++)
            total += exp((double)row[c]);
        loss += log(total) - (double)row[label[r]];
        first += in_top(row, MAX_CLASSES, label[r], 1);
        top5 += in_top(row, MAX_CLASSES, label[r], 5);
    }
    ck_assert_double_eq_tol(values.loss, loss / ROWS, 1e-6);
    ck_assert_double_eq(values.accuracy, first / ROWS);
    ck_assert_double_eq(values.top5, top5 / ROWS);
    ck_assert(isnan(values.auc) && isnan(values.rmse));
    const uint64_t *confusion = dt__metrics_confusion(metrics);
    for (int i = 0; i < MAX_CLASSES * MAX_CLASSES; i++) {
        cells += (double)confusion[i];
        if (i % (MAX_CLASSES + 1) == 0) diagonal += (double)confusion[i];
    }
    ck_assert_double_eq(cells, ROWS);
    ck_assert_double_eq(diagonal, first);
    dt__metrics_destroy(metrics);
}
END_TEST

/* Returns the AUC, computed over every pair of a positive and a negative row. */
static double brute_auc(void)
{
    double ordered = 0.0, pairs = 0.0;
    for (int p = 0; p < ROWS; p++) {
        for (int n = 0; n < ROWS; n++) {
            if (!label[p] || label[n]) continue;
            pairs += 1.0;
            ordered += logits[p] > logits[n] ? 1.0 : logits[p] == logits[n] ? 0.5 : 0.0;
        }
    }
    return ordered / pairs;
}

/* A tie counts one half in the AUC; the threshold is 0; counts are in the right cells. */
START_TEST(two_classes_are_ranked)
{
    set_model(DT_TASK_CLASSIFY, 1);
    struct dt_metric_values values;
    fill(1, 2);
    struct dt_metrics *metrics = measure(&values);
    double cell[2][2] = {{0.0}}, loss = 0.0;
    for (int r = 0; r < ROWS; r++) {
        cell[label[r]][logits[r] > 0.0f] += 1.0;
        loss += log1p(exp(label[r] ? -(double)logits[r] : (double)logits[r]));
    }
    ck_assert_double_eq(values.auc, brute_auc());
    ck_assert_double_eq(values.accuracy, (cell[0][0] + cell[1][1]) / ROWS);
    ck_assert_double_eq(values.precision, cell[1][1] / (cell[0][1] + cell[1][1]));
    ck_assert_double_eq(values.recall, cell[1][1] / (cell[1][0] + cell[1][1]));
    ck_assert_double_eq_tol(values.loss, loss / ROWS, 1e-6);
    ck_assert_double_eq((double)dt__metrics_confusion(metrics)[2], cell[1][0]);
    dt__metrics_reset(metrics);
    dt__metrics_values(metrics, &values);
    ck_assert(values.rows == 0.0 && isnan(values.auc));
    dt__metrics_destroy(metrics);
}
END_TEST

START_TEST(errors_are_measured)
{
    enum { NOUT = 3, COUNT = ROWS * NOUT };
    set_model(DT_TASK_REGRESS, NOUT);
    struct dt_metric_values values;
    fill(NOUT, 0);
    for (int i = 0; i < COUNT; i += NOUT) {
        logits[i] = 100.0f + 50.0f * logits[i];
        target[i] = 100.0f + 50.0f * target[i];
    }
    struct dt_metrics *metrics = measure(&values);
    double square = 0.0, absolute = 0.0, r2 = 0.0, spread = 0.0;
    struct dt_target_score score;
    for (int t = 0; t < NOUT; t++) { /* the targets have very different sizes */
        double mean = 0.0, error2 = 0.0, variation = 0.0;
        for (int i = t; i < COUNT; i += NOUT)
            mean += (double)target[i] / ROWS;
        for (int i = t; i < COUNT; i += NOUT) {
            double error = (double)logits[i] - (double)target[i];
            error2 += error * error;
            absolute += fabs(error);
            variation += ((double)target[i] - mean) * ((double)target[i] - mean);
        }
        ck_assert(dt__metrics_target(metrics, t, &score));
        ck_assert_double_eq_tol(score.rmse, sqrt(error2 / ROWS), 1e-12);
        ck_assert_double_eq_tol(score.guess_rmse, sqrt(variation / ROWS), 1e-9);
        ck_assert_double_eq_tol(score.r2, 1.0 - error2 / variation, 1e-9);
        square += error2;
        spread += variation;
        r2 += (1.0 - error2 / variation) / NOUT;
    }
    ck_assert_double_eq_tol(values.rmse, sqrt(square / COUNT), 1e-12);
    ck_assert_double_eq_tol(values.loss, square / COUNT, 1e-3);
    ck_assert_double_eq_tol(values.mae, absolute / COUNT, 1e-12);
    ck_assert_double_eq_tol(values.r2, r2, 1e-9);
    ck_assert_double_eq_tol(values.guess_rmse, sqrt(spread / COUNT), 1e-9);
    ck_assert(!dt__metrics_target(metrics, NOUT, &score));
    ck_assert(isnan(values.accuracy) && isnan(values.top5));
    ck_assert_ptr_null(dt__metrics_confusion(metrics));
    dt__metrics_destroy(metrics);
}
END_TEST

/* Loss, metrics and predictions of targets with units are those of output * std + mean; the
 * gradient is that of the standardised error, and the loss is the same with and without a
 * gradient. */
START_TEST(regression_outputs_have_units)
{
    enum { NOUT = 2, FEW = 50 };
    const float mean[NOUT] = {5000, -0.25f}, std[NOUT] = {400, 0.0625f};
    struct dt_metric_values plain, values;
    float gradient[FEW * NOUT], predicted[FEW * NOUT];
    fill(NOUT, 0);
    set_model(DT_TASK_REGRESS, NOUT);
    EXPECT_OK(dt__model_set_units(model, mean, std));
    for (int i = 0; i < ROWS * NOUT; i++)
        target[i] = mean[i % NOUT] + std[i % NOUT] * target[i];
    dt__metrics_destroy(measure(&values));
    memcpy(gradient, logits, sizeof gradient);
    dt__model_predict(model, logits, FEW, predicted);
    const struct dt_batch batch = {.rows = FEW, .target = target};
    double loss = model->loss->sum(&model->outputs, &batch, gradient, gradient), want = 0.0;
    for (int i = 0; i < FEW * NOUT; i++) {
        const int c = i % NOUT;
        ck_assert_float_eq(predicted[i], logits[i] * std[c] + mean[c]);
        want += pow((double)predicted[i] - (double)target[i], 2.0) / NOUT;
        ck_assert_double_eq_tol(
            (double)gradient[i],
            (double)logits[i] - ((double)target[i] - (double)mean[c]) / (double)std[c], 1e-4);
    }
    ck_assert_double_eq_tol(loss, want, 1e-5 * want);
    ck_assert_double_eq_tol(values.rmse, sqrt(values.loss), 1e-9 * values.rmse);
    set_model(DT_TASK_REGRESS, NOUT); /* the same numbers as outputs without units */
    dt__model_predict(model, logits, FEW, gradient);
    ck_assert_mem_eq(gradient, logits, sizeof gradient);
    for (int i = 0; i < ROWS * NOUT; i++)
        logits[i] = logits[i] * std[i % NOUT] + mean[i % NOUT];
    dt__metrics_destroy(measure(&plain));
    ck_assert(values.rmse == plain.rmse && values.mae == plain.mae && values.r2 == plain.r2);
    ck_assert(values.loss == plain.loss);
}
END_TEST

/* Values and gradients of PyTorch 1.13 (MSELoss, L1Loss, HuberLoss(delta=0.7), PoissonNLLLoss,
 * BCEWithLogitsLoss): each the mean over 2 x 2 elements, times 2 rows. Rows of weight 2 count
 * twice. */
START_TEST(losses_agree_with_pytorch)
{
    enum { COUNT = 4 };
    static const struct {
        int loss;
        double value;
        float slope[COUNT];
    } rows[] = {
        {DT_LOSS_MSE, 3.51125, {-2, 0.25f, -1, -1.4f}},
        {DT_LOSS_MAE, 2.325, {-0.5f, 0.5f, -0.5f, -0.5f}},
        {DT_LOSS_HUBER, 1.188125, {-0.35f, 0.125f, -0.35f, -0.35f}},
        {DT_LOSS_POISSON, 2.300691, {-0.1384349f, 0.6420127f, 2.194528f, -0.1974145f}},
        {DT_LOSS_BINARY, -0.7506613, {-0.1587871f, 0.2810883f, -1.0596015f, -0.4875104f}},
    };
    const float out[COUNT] = {-1.5f, 0.25f, 2, 0.1f}, goal[COUNT] = {0.5f, 0, 3, 1.5f};
    const float twice[2] = {2, 2};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const bool labels = rows[k].loss == DT_LOSS_BINARY;
        struct dt_model_desc desc =
            desc_of("linear", 1, 2, labels ? DT_TASK_MULTILABEL : DT_TASK_REGRESS);
        desc.loss = rows[k].loss;
        desc.huber_delta = 0.7;
        dt__model_destroy(model);
        EXPECT_OK(dt__model_create(&desc, &model));
        for (int w = 1; w <= 2; w++) {
            const struct dt_batch batch = {
                .rows = 2, .target = goal, .weight = w == 2 ? twice : NULL};
            float z[COUNT];
            memcpy(z, out, sizeof z);
            const double sum = model->loss->sum(&model->outputs, &batch, z, NULL);
            const double with_gradient = model->loss->sum(&model->outputs, &batch, z, z);
            ck_assert_double_eq_tol(sum, w * rows[k].value, 1e-5);
            ck_assert_double_eq_tol(with_gradient, w * rows[k].value, 1e-5);
            for (int i = 0; i < COUNT; i++)
                ck_assert_float_eq_tol(z[i], (float)w * rows[k].slope[i], 1e-6f);
        }
        float predicted[COUNT];
        dt__model_predict(model, out, 2, predicted);
        for (int i = 0; i < COUNT; i++)
            ck_assert_float_eq_tol(predicted[i],
                                   labels                            ? 1 / (1 + expf(-out[i]))
                                   : rows[k].loss == DT_LOSS_POISSON ? expf(out[i])
                                                                     : out[i],
                                   1e-5f);
    }
}
END_TEST

/* A loss of targets with units is in these units, and its slope in those of standardised targets:
 * it is compared with finite differences of the loss, divided by the unit (for squares, the unit
 * squared). Huber's delta is in standard deviations. */
START_TEST(losses_have_units)
{
    const float mean[1] = {300}, std[1] = {20}, goal[1] = {290}, h = 1e-2f;
    static const struct {
        int loss;
        double unit;
    } rows[] = {{DT_LOSS_MSE, 400}, {DT_LOSS_MAE, 20}, {DT_LOSS_HUBER, 400}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        for (float z = -3; z <= 3; z += 0.75f) { /* at least 0.25 from the goal, so no kink is
                                                  * near */
            struct dt_model_desc desc = desc_of("linear", 1, 1, DT_TASK_REGRESS);
            desc.loss = rows[k].loss;
            desc.huber_delta = 1.1;
            dt__model_destroy(model);
            EXPECT_OK(dt__model_create(&desc, &model));
            EXPECT_OK(dt__model_set_units(model, mean, std));
            const struct dt_batch batch = {.rows = 1, .target = goal};
            float slope = z, left = z - h, right = z + h;
            const double cost = model->loss->sum(&model->outputs, &batch, &z, NULL);
            const double rise = model->loss->sum(&model->outputs, &batch, &right, NULL) -
                                model->loss->sum(&model->outputs, &batch, &left, NULL);
            ck_assert_double_eq_tol(model->loss->sum(&model->outputs, &batch, &slope, &slope), cost,
                                    1e-4 * cost);
            ck_assert_double_eq_tol((double)slope, rise / (double)(right - left) / rows[k].unit,
                                    2e-3);
        }
}
END_TEST

/* ---- the constants of least loss ------------------------------------------------------------- */

enum { SAMPLES = 60, MAX_OUTPUTS = 6 };

/* Returns the loss of a batch whose outputs are z in each row. */
static double constant_loss(const struct dt_batch *batch, const float *z)
{
    float all[SAMPLES * MAX_OUTPUTS];
    for (int i = 0; i < batch->rows * model->desc.nout; i++)
        all[i] = z[i % model->desc.nout];
    return model->loss->sum(&model->outputs, batch, all, NULL);
}

/* Checks that moving one output up or down, by little or by much, does not lower the loss: losses
 * are convex, so z is then the minimum. Outputs `width` apart belong to one channel and move
 * together. */
static void expect_least(const struct dt_batch *batch, const float *z, int width)
{
    const double least = constant_loss(batch, z), close = 1e-6 * fabs(least) + 1e-6;
    for (int i = 0; i < width; i++)
        for (float h = 1.0f / 64; h < 8; h *= 2)
            for (int sign = -1; sign < 2; sign += 2) {
                float other[MAX_OUTPUTS];
                for (int k = 0; k < model->desc.nout; k++)
                    other[k] = z[k] + (k % width == i ? (float)sign * h : 0);
                ck_assert_msg(constant_loss(batch, other) > least - close,
                              "loss %d: output %d of %d is %g, with %g the loss is less",
                              model->desc.loss, i, model->desc.nout, (double)z[i],
                              (double)other[i]);
            }
}

/* Compares each loss's constant with values near it and far from it: for rows with equal and with
 * different weights, targets with and without units, two targets, and a field of two channels.
 * Fails if a mean replaces a median, weights do not count, units count twice, a target gets
 * another's constant, or the distance between quantiles is not a softplus. */
START_TEST(constants_have_the_least_loss)
{
    static const int losses[] = {DT_LOSS_MSE,     DT_LOSS_MAE,    DT_LOSS_HUBER,
                                 DT_LOSS_POISSON, DT_LOSS_BINARY, DT_LOSS_QUANTILE};
    const float mean[2] = {3, 8}, std[2] = {2, 5};
    float goal[SAMPLES * 4], weight[SAMPLES], z[MAX_OUTPUTS];
    for (int r = 0; r < SAMPLES; r++)
        weight[r] = (float)(1 + r % 3);
    for (size_t k = 0; k < sizeof losses / sizeof *losses; k++)
        for (int variant = 0; variant < 6; variant++) {
            const bool units = variant & 1, field = variant >= 4,
                       labels = losses[k] == DT_LOSS_BINARY;
            const bool is_quantile = losses[k] == DT_LOSS_QUANTILE;
            const int targets = field ? 4 : 2, outputs_each = is_quantile && !field ? 3 : 1;
            struct dt_model_desc desc =
                desc_of(field ? "output conv 2 1x1" : "linear", 2, targets * outputs_each,
                        labels ? DT_TASK_MULTILABEL : DT_TASK_REGRESS);
            if (field) desc.shape[1] = 2, desc.shape[2] = 1;
            desc.loss = losses[k];
            desc.huber_delta = 0.7;
            desc.quantiles = (char *)(uintptr_t)(field ? "0.3" : "0.1,0.5,0.9");
            if (field && units)
                continue; /* a field's channels have equal units: see
                                           * test_units.sh */
            dt__model_destroy(model);
            EXPECT_OK(dt__model_create(&desc, &model));
            if (units) EXPECT_OK(dt__model_set_units(model, mean, std));
            for (int i = 0; i < SAMPLES * targets; i++)
                goal[i] = labels ? (float)(i % 7 < 2 + i % 2)
                                 : (float)((i * 37) % 61) * (i % 2 ? 0.5f : 0.125f);
            const struct dt_batch batch = {
                .rows = SAMPLES, .target = goal, .weight = variant & 2 ? weight : NULL};
            EXPECT_OK(dt__model_constant(model, &batch, z));
            expect_least(&batch, z, field ? 2 : targets * outputs_each);
        }
}
END_TEST

/* For classes, the constants are their frequencies. A class without rows counts as half a row, so
 * nothing is infinite; the same holds for labels and counts. */
START_TEST(constants_of_classes_are_frequencies)
{
    enum { CLASSES = 4 };
    static const int32_t classes[SAMPLES] = {0, 1, 1, 2, 2, 2, 2, 1, 0, 2};
    const float zeros[SAMPLES] = {0}, weight[10] = {1, 1, 1, 2, 1, 1, 1, 1, 1, 1};
    float z[CLASSES];
    struct dt_batch batch = {.rows = 10, .label = classes, .weight = weight};
    set_model(DT_TASK_CLASSIFY, CLASSES);
    EXPECT_OK(dt__model_constant(model, &batch, z));
    const float rows[CLASSES] = {2, 3, 6, 0.5f};
    for (int c = 0; c < CLASSES; c++)
        ck_assert_float_eq_tol(z[c], logf(rows[c] / 11.5f), 1e-6f);
    batch.rows = 3; /* labels 0, 1, 1 */
    set_model(DT_TASK_CLASSIFY, 1);
    EXPECT_OK(dt__model_constant(model, &batch, z));
    ck_assert_float_eq_tol(z[0], logf(2), 1e-6f);
    for (int loss = DT_LOSS_POISSON; loss <= DT_LOSS_BINARY; loss++) {
        struct dt_model_desc desc =
            desc_of("linear", 1, 1, loss == DT_LOSS_BINARY ? DT_TASK_MULTILABEL : DT_TASK_REGRESS);
        desc.loss = loss;
        batch = (struct dt_batch){.rows = SAMPLES, .target = zeros};
        dt__model_destroy(model);
        EXPECT_OK(dt__model_create(&desc, &model));
        EXPECT_OK(dt__model_constant(model, &batch, z));
        ck_assert_float_eq_tol(z[0], -logf(2 * SAMPLES), 1e-6f);
    }
}
END_TEST

/* Returns the bias of the last layer, also with a linear path; NULL if classes share channels.
 * (Only regression can have a bias per channel.) */
START_TEST(the_bias_of_the_output_layer_is_found)
{
    static const struct {
        const char *layers, *name;
        int task;
    } rows[] = {
        {"dense 4 relu", "layers/1/bias", DT_TASK_REGRESS},
        {"dense 4 relu, wide", "layers/1/bias", DT_TASK_CLASSIFY},
        {"linear", "layers/0/bias", DT_TASK_CLASSIFY},
        {"conv 3 1x1, output conv 2 1x1", "layers/1/bias", DT_TASK_REGRESS},
        {"conv 3 1x1, output conv 2 1x1", NULL, DT_TASK_CLASSIFY},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct dt_model_desc desc = desc_of(rows[i].layers, 2, 4, rows[i].task);
        if (strstr(rows[i].layers, "conv")) desc.shape[1] = 2, desc.shape[2] = 1;
        dt__model_destroy(model);
        EXPECT_OK(dt__model_create(&desc, &model));
        const struct dt_tensor *bias = dt__model_output_bias(model);
        if (rows[i].name)
            ck_assert_str_eq(bias->name, rows[i].name);
        else
            ck_assert_ptr_null(bias);
    }
}
END_TEST

/* Values and gradients come from PyTorch 1.13's torch.maximum(q * u, (q - 1) * u): the mean over 2
 * x 3 elements, times 2 rows. With units, the loss is in the targets' units, and the slope is that
 * of standardised targets; mae and rmse use the middle quantile. Fails if quantiles cross, if a
 * slope has the wrong sign, or if a value overwrites an output that is still needed. */
START_TEST(quantiles_never_cross)
{
    enum { COUNT = 6 };
    const float out[COUNT] = {-1.5f, 0.25f, 2, 0.1f, 1, -2}, goal[2] = {0.5f, 1};
    const float slope[COUNT] = {-0.16666666f, -0.07495686f, 0.02935991f,
                                0.16666669f,  0.14621173f,  0.00397343f},
                value[COUNT] = {-1.5f, -0.67406058f, 1.45286751f, 0.1f, 1.41326165f, 1.54018962f};
    const float mean[1] = {10}, std[1] = {4}, distant_goal[2] = {10 + 4 * 0.5f, 10 + 4 * 1};
    struct dt_model_desc desc = desc_of("linear", 1, 3, DT_TASK_REGRESS);
    desc.loss = DT_LOSS_QUANTILE;
    desc.quantiles = (char *)(uintptr_t) "0.1,0.5,0.9";
    for (int units = 0; units < 2; units++) {
        const struct dt_batch batch = {.rows = 2, .target = units ? distant_goal : goal};
        const double want = 0.4109890 * (units ? 4 : 1);
        struct dt_metric_values values;
        float z[COUNT];
        dt__model_destroy(model);
        EXPECT_OK(dt__model_create(&desc, &model));
        if (units) EXPECT_OK(dt__model_set_units(model, mean, std));
        memcpy(z, out, sizeof z);
        ck_assert_double_eq_tol(model->loss->sum(&model->outputs, &batch, z, NULL), want, 1e-5);
        ck_assert_double_eq_tol(model->loss->sum(&model->outputs, &batch, z, z), want, 1e-5);
        for (int i = 0; i < COUNT; i++)
            ck_assert_float_eq_tol(z[i], slope[i], 1e-6f);
        memcpy(z, out, sizeof z);
        dt__model_predict(model, z, 2, z);
        for (int i = 0; i < COUNT; i++)
            ck_assert_float_eq_tol(z[i], units ? value[i] * 4 + 10 : value[i], 1e-5f);
        struct dt_metrics *metrics;
        memset(sums, 0, sizeof sums);
        EXPECT_OK(dt__metrics_create(model, NULL, &metrics));
        dt__metrics_chunk(model, out, &batch, sums, NULL);
        EXPECT_OK(dt__metrics_add(metrics, sums));
        dt__metrics_values(metrics, &values);
        ck_assert_double_eq_tol(values.mae, (units ? 4 : 1) * (1.17406058 + 0.41326165) / 2, 1e-5);
        dt__metrics_destroy(metrics);
    }
    static const char *const bad[] = {"",  "0.5,0.5", "0.5,",    ",0.5", "0",
                                      "1", "x",       "0.5;0.6", "nan"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct dt_model *made;
        desc.quantiles = (char *)(uintptr_t)bad[i];
        ck_assert_int_eq(dt__model_create(&desc, &made), DT_EUSAGE);
    }
    desc.quantiles = NULL;
    ck_assert_int_eq(dt__model_create(&desc, &model), DT_EUSAGE);
}
END_TEST

static int custom_rows; /* rows that the program's loss was called for */

static double custom_loss_row(void *arg, int n, const float *z, const float *goal, float *gradient)
{
    double sum = 0;
    custom_rows++;
    for (int i = 0; i < n; i++) {
        const float error = z[i] - goal[i];
        sum += *(double *)arg * (double)(error * error);
        if (gradient) gradient[i] = (float)(2 * *(double *)arg) * error;
    }
    return sum;
}

/* A program's loss that equals a built-in one gives the same values; rows have their weights. */
START_TEST(a_program_may_pass_its_loss)
{
    enum { COUNT = 4 };
    double half = 0.5;
    const struct dt_own_loss custom = {custom_loss_row, &half};
    const float out[COUNT] = {-1.5f, 0.25f, 2, 0.1f}, goal[COUNT] = {0.5f, 0, 3, 1.5f};
    const float weight[2] = {3, 0.5f};
    const struct dt_batch batch = {.rows = 2, .target = goal, .weight = weight};
    float z[2][COUNT];
    double value_only[2], with_gradient[2];
    for (int k = 0; k < 2; k++) {
        set_model(DT_TASK_REGRESS, 2);
        if (k) EXPECT_OK(dt__model_set_loss(model, &custom));
        memcpy(z[k], out, sizeof out);
        value_only[k] = model->loss->sum(&model->outputs, &batch, z[k], NULL);
        with_gradient[k] = model->loss->sum(&model->outputs, &batch, z[k], z[k]);
    }
    ck_assert_int_eq(custom_rows, 4); /* 2 rows, two calls */
    ck_assert_double_eq_tol(value_only[0], value_only[1], 1e-6);
    ck_assert_double_eq_tol(with_gradient[0], with_gradient[1], 1e-6);
    for (int i = 0; i < COUNT; i++)
        ck_assert_float_eq_tol(z[0][i], z[1][i], 1e-6f);
    set_model(DT_TASK_CLASSIFY, 2);
    ck_assert_int_eq(dt__model_set_loss(model, &custom), DT_EUSAGE);
}
END_TEST

/* Labels of all rows count alike, as in scikit-learn's scores with average="micro". */
START_TEST(labels_are_counted)
{
    const float z[6] = {2, -1, 0.5f, -3, 4, -0.1f}, goal[6] = {1, 0, 0, 1, 1, 1},
                weight[2] = {1, 3};
    const struct dt_batch rows = {.rows = 2, .target = goal, .weight = weight};
    struct dt_metric_values values;
    struct dt_metrics *metrics;
    memset(sums, 0, sizeof sums);
    set_model(DT_TASK_MULTILABEL, 3);
    EXPECT_OK(dt__metrics_create(model, NULL, &metrics));
    dt__metrics_chunk(model, z, &rows, sums, NULL);
    EXPECT_OK(dt__metrics_add(metrics, sums));
    dt__metrics_values(metrics, &values);
    ck_assert_double_eq_tol(values.accuracy, (1 + 1 + 3) / 12.0, 1e-12);
    ck_assert_double_eq_tol(values.precision, 4 / 5.0, 1e-12);
    ck_assert_double_eq_tol(values.recall, 4 / 10.0, 1e-12);
    ck_assert(isnan(values.rmse) && isnan(values.auc));
    dt__metrics_destroy(metrics);
}
END_TEST

/* The r2_score of a constant target is 1 if it is met and 0 if not, as in scikit-learn, and the
 * other targets still count; with NaN it is NaN. */
START_TEST(r2_of_constant_targets_is_0_or_1)
{
    enum { NOUT = 2 };
    struct dt_metric_values values;
    set_model(DT_TASK_REGRESS, NOUT);
    for (int case_index = 0; case_index < 3; case_index++) {
        fill(NOUT, 0);
        for (int r = 0; r < ROWS; r++) {
            target[2 * r] = 0.1f;
            logits[2 * r] = case_index == 2 ? NAN : case_index ? 0.1f : 0.2f;
            logits[2 * r + 1] = target[2 * r + 1];
        }
        dt__metrics_destroy(measure(&values));
        ck_assert(case_index == 2 ? isnan(values.r2) : values.r2 == (case_index ? 1.0 : 0.5));
    }
}
END_TEST

/* A row of weight w counts as w rows: a chunk with weights gives the same values as a chunk with
 * repeated rows. */
START_TEST(weights_count_as_repetitions)
{
    enum { FEW = 60 };
    static const struct {
        int task, nout, classes;
    } kinds[] = {{DT_TASK_CLASSIFY, 7, 7}, {DT_TASK_CLASSIFY, 1, 2}, {DT_TASK_REGRESS, 3, 0}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const int nout = kinds[k].nout;
        float weight[FEW], again[4 * FEW * MAX_CLASSES], again_target[4 * FEW * MAX_CLASSES];
        int32_t again_label[4 * FEW];
        int rows = 0;
        set_model(kinds[k].task, nout);
        fill(nout, kinds[k].classes);
        for (int r = 0; r < FEW; r++) {
            weight[r] = (float)(r % 4);
            for (int i = 0; i < r % 4; i++, rows++) {
                memcpy(again + rows * nout, logits + r * nout, (size_t)nout * sizeof *logits);
                memcpy(again_target + rows * nout, target + r * nout,
                       (size_t)nout * sizeof *target);
                again_label[rows] = label[r];
            }
        }
        const struct dt_batch batches[] = {
            {.rows = FEW, .label = label, .target = target, .weight = weight},
            {.rows = rows, .label = again_label, .target = again_target}};
        struct dt_metric_values values[2];
        for (int i = 0; i < 2; i++) {
            struct dt_metrics *metrics;
            EXPECT_OK(dt__metrics_create(model, NULL, &metrics));
            dt__metrics_chunk(model, i ? again : logits, &batches[i], sums, NULL);
            EXPECT_OK(dt__metrics_add(metrics, sums));
            dt__metrics_values(metrics, &values[i]);
            dt__metrics_destroy(metrics);
        }
        const char *name;
        double weighted, repeated;
        for (int i = 0; dt__metric_at(i, &values[0], &name, &weighted); i++) {
            dt__metric_at(i, &values[1], &name, &repeated);
            ck_assert_msg(isnan(weighted) ? isnan(repeated) : fabs(weighted - repeated) < 1e-9,
                          "%s of kind %zu is %g, expected %g", name, k, weighted, repeated);
        }
    }
}
END_TEST

/* A diverged model must not count as right. */
START_TEST(nan_is_never_right)
{
    struct dt_metric_values values;
    set_model(DT_TASK_CLASSIFY, MAX_CLASSES);
    fill(MAX_CLASSES, MAX_CLASSES);
    for (int i = 0; i < ROWS * MAX_CLASSES; i++)
        logits[i] = NAN;
    dt__metrics_destroy(measure(&values));
    ck_assert(values.accuracy == 0.0 && isnan(values.loss));
    set_model(DT_TASK_CLASSIFY, 1);
    fill(1, 2);
    for (int i = 0; i < ROWS; i++)
        logits[i] = NAN;
    dt__metrics_destroy(measure(&values));
    ck_assert(values.accuracy == 0.0 && isnan(values.auc));
}
END_TEST

START_TEST(the_task_decides_the_metric)
{
    const struct dt_metric_values values = {.loss = 1,
                                            .accuracy = 2,
                                            .top5 = 3,
                                            .auc = 4,
                                            .rmse = 5,
                                            .mae = 6,
                                            .r2 = 7,
                                            .brier = 8,
                                            .f1 = 9};
    static const struct {
        int task, nout, metric;
        const char *name; /* NULL: refused */
        double value;
        bool more;
    } rows[] = {{DT_TASK_CLASSIFY, 10, DT_METRIC_AUTO, "accuracy", 2, true},
                {DT_TASK_REGRESS, 1, DT_METRIC_AUTO, "rmse", 5, false},
                {DT_TASK_REGRESS, 1, DT_METRIC_LOSS, "loss", 1, false},
                {DT_TASK_CLASSIFY, 10, DT_METRIC_TOP5, "top5", 3, true},
                {DT_TASK_CLASSIFY, 5, DT_METRIC_TOP5, NULL, 0, false},
                {DT_TASK_CLASSIFY, 1, DT_METRIC_AUC, "auc", 4, true},
                {DT_TASK_CLASSIFY, 3, DT_METRIC_AUC, NULL, 0, false},
                {DT_TASK_REGRESS, 1, DT_METRIC_MAE, "mae", 6, false},
                {DT_TASK_REGRESS, 1, DT_METRIC_R2, "r2", 7, true},
                {DT_TASK_CLASSIFY, 1, DT_METRIC_R2, NULL, 0, false},
                {DT_TASK_MULTILABEL, 3, DT_METRIC_AUTO, "accuracy", 2, true},
                {DT_TASK_MULTILABEL, 1, DT_METRIC_AUC, NULL, 0, false},
                {DT_TASK_REGRESS, 1, DT_METRIC_ACCURACY, NULL, 0, false},
                {DT_TASK_CLASSIFY, 3, DT_METRIC_LOG_LOSS, "loss", 1, false},
                {DT_TASK_CLASSIFY, 3, DT_METRIC_BRIER, "brier", 8, false},
                {DT_TASK_CLASSIFY, 3, DT_METRIC_AVERAGE_PRECISION, NULL, 0, false},
                {DT_TASK_MULTILABEL, 3, DT_METRIC_F1, "f1", 9, true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        set_model(rows[i].task, rows[i].nout);
        struct dt_metric_score metric;
        dt_status status = dt__metric_pick(model, rows[i].metric, &values, &metric);
        ck_assert_int_eq(status, rows[i].name ? DT_OK : DT_EUSAGE);
        if (status) continue;
        ck_assert_str_eq(metric.name, rows[i].name);
        ck_assert_double_eq(metric.value, rows[i].value);
        ck_assert(metric.more_is_better == rows[i].more);
    }
}
END_TEST

/* Makes the rows of tests/data/make_metrics.py, whose scikit-learn values follow. */
static unsigned scattered(unsigned k, unsigned i)
{
    unsigned x = i * 2654435761u + k * 2246822519u;
    x = (x ^ x >> 15) * 2246822519u;
    return (x ^ x >> 13) >> 16;
}

static const struct golden_kind {
    int task, nout, present; /* number of classes that have rows */
    bool weighted;
} GOLDEN_KINDS[] = {{DT_TASK_CLASSIFY, 1, 2, false}, {DT_TASK_CLASSIFY, 1, 2, true},
                    {DT_TASK_CLASSIFY, 1, 1, true},  {DT_TASK_CLASSIFY, 4, 3, false},
                    {DT_TASK_CLASSIFY, 7, 7, true},  {DT_TASK_REGRESS, 2, 0, false},
                    {DT_TASK_REGRESS, 2, 0, true},   {DT_TASK_MULTILABEL, 3, 0, true}};
static const struct {
    size_t kind;
    const char *name;
    double value;
} GOLDEN[] = {
    {0, "loss", 0.502353327},
    {0, "accuracy", 0.746666667},
    {0, "balanced_accuracy", 0.748880373},
    {0, "ece", 0.090376171},
    {0, "f1", 0.707692308},
    {0, "brier", 0.165350964},
    {0, "recall", 0.760330579},
    {0, "precision", 0.661870504},
    {0, "auc", 0.842721271},
    {0, "average_precision", 0.769580888},
    {1, "loss", 0.515515880},
    {1, "accuracy", 0.748792271},
    {1, "balanced_accuracy", 0.749605687},
    {1, "ece", 0.098394302},
    {1, "f1", 0.697674419},
    {1, "brier", 0.170225875},
    {1, "recall", 0.753138075},
    {1, "precision", 0.649819495},
    {1, "auc", 0.829716971},
    {1, "average_precision", 0.738411997},
    {2, "loss", 0.781820228},
    {2, "accuracy", 0.553945250},
    {2, "balanced_accuracy", 0.553945250},
    {2, "ece", 0.468896534},
    {2, "f1", 0.000000000},
    {2, "brier", 0.282628114},
    {3, "loss", 1.171379040},
    {3, "accuracy", 0.480000000},
    {3, "balanced_accuracy", 0.478945035},
    {3, "ece", 0.098365501},
    {3, "f1", 0.409793351},
    {3, "brier", 0.651910611},
    {4, "loss", 1.306690537},
    {4, "accuracy", 0.473429952},
    {4, "balanced_accuracy", 0.474656218},
    {4, "ece", 0.080919291},
    {4, "f1", 0.469711844},
    {4, "brier", 0.649545922},
    {5, "rmse", 1.204029692},
    {5, "mae", 1.046250000},
    {5, "r2", 0.476358981},
    {5, "mape", 312437224148829.000000000},
    {6, "rmse", 1.175374037},
    {6, "mae", 1.014392110},
    {6, "r2", 0.500137729},
    {6, "mape", 288727150023652.937500000},
    {7, "accuracy", 0.757917338},
    {7, "precision", 0.712918660},
    {7, "recall", 0.738537794},
    {7, "f1", 0.725502130},
};

static int golden_label(const struct golden_kind *kind, const float *z, const float *noise)
{
    int best = 0;
    if (kind->nout == 1) return kind->present > 1 && z[0] + noise[0] > 0;
    for (int c = 1; c < kind->present; c++)
        if (z[c] + noise[c] > z[best] + noise[best]) best = c;
    return best;
}

static void golden_measure(const struct golden_kind *kind, struct dt_metric_values *values)
{
    enum { COUNT = 300 };
    const int n = kind->nout;
    float weight[COUNT];
    struct dt_metrics *metrics;
    set_model(kind->task, n);
    for (unsigned r = 0; r < COUNT; r++) {
        float *z = logits + (int)r * n, *goal = target + (int)r * n;
        for (unsigned c = 0; c < (unsigned)n; c++) {
            z[c] = (float)(scattered(c, r) % 33) / 8 - 2;
            goal[c] = (float)(scattered(50 + c, r) % 33) / 8 - 2;
        }
        weight[r] = kind->weighted ? (float)(scattered(99, r) % 5) / 2 : 1;
        label[r] = golden_label(kind, z, goal);
        for (int c = 0; c < n; c++)
            goal[c] = kind->task == DT_TASK_MULTILABEL ? goal[c] + z[c] > 0 : goal[c] + z[c];
    }
    EXPECT_OK(dt__metrics_create(model, NULL, &metrics));
    for (int r = 0; r < COUNT; r += DT_EVAL_CHUNK) {
        const struct dt_batch rows = {.rows = COUNT - r < DT_EVAL_CHUNK ? COUNT - r : DT_EVAL_CHUNK,
                                      .label = label + r,
                                      .target = target + r * n,
                                      .weight = kind->weighted ? weight + r : NULL};
        dt__metrics_chunk(model, logits + r * n, &rows, sums, NULL);
        EXPECT_OK(dt__metrics_add(metrics, sums));
    }
    dt__metrics_values(metrics, values);
    dt__metrics_destroy(metrics);
}

/* The rows have ties, weights, targets of 0 and a class without rows. Fails if a definition
 * differs: a mean that includes absent classes, ties taken one after the other, or bins that are
 * open on the other side. */
START_TEST(metrics_agree_with_scikit_learn)
{
    struct dt_metric_values values[sizeof GOLDEN_KINDS / sizeof *GOLDEN_KINDS];
    for (size_t k = 0; k < sizeof GOLDEN_KINDS / sizeof *GOLDEN_KINDS; k++)
        golden_measure(&GOLDEN_KINDS[k], &values[k]);
    for (size_t i = 0; i < sizeof GOLDEN / sizeof *GOLDEN; i++) {
        const char *name = "";
        double value = NAN;
        for (int m = 0; dt__metric_at(m, &values[GOLDEN[i].kind], &name, &value); m++)
            if (!strcmp(name, GOLDEN[i].name)) break;
        ck_assert_str_eq(name, GOLDEN[i].name);
        ck_assert_msg(fabs(value - GOLDEN[i].value) <= 1e-6 * fmax(1, GOLDEN[i].value),
                      "%s of kind %zu is %.9g, expected %.9g", name, GOLDEN[i].kind, value,
                      GOLDEN[i].value);
    }
    ck_assert(isnan(values[2].average_precision) && isnan(values[2].auc));
}
END_TEST

/* A row whose class training never saw is wrong whatever the prediction, and has no loss. Fails if
 * such a row counts as class 0 in the loss or in a confusion matrix. */
START_TEST(unknown_classes_are_wrong)
{
    const float z[3] = {2, -1, 3}, many[9] = {2, 0, 0, 0, 2, 0, 2, 0, 0};
    const int32_t known[3] = {1, 0, -1};
    const struct dt_batch rows = {.rows = 3, .label = known};
    for (int n = 1; n <= 3; n += 2) {
        struct dt_metric_values values;
        struct dt_metrics *metrics;
        uint64_t confusion[9] = {0}, counted = 0;
        const double loss = n == 1 ? (log1p(exp(-2)) + log1p(exp(-1))) / 2 : log(exp(2) + 2);
        set_model(DT_TASK_CLASSIFY, n);
        EXPECT_OK(dt__metrics_create(model, NULL, &metrics));
        dt__metrics_chunk(model, n == 1 ? z : many, &rows, sums, confusion);
        EXPECT_OK(dt__metrics_add(metrics, sums));
        dt__metrics_values(metrics, &values);
        for (int i = 0; i < 9; i++)
            counted += confusion[i];
        ck_assert_uint_eq(counted, 2);
        ck_assert_double_eq(values.unknown, 1);
        ck_assert_double_eq_tol(values.loss, loss, 1e-6);
        ck_assert_double_eq_tol(values.accuracy, n == 1 ? 2.0 / 3 : 0, 1e-12);
        ck_assert_double_eq_tol(values.balanced_accuracy, n == 1 ? 2.0 / 3 : 0, 1e-12);
        ck_assert(n == 3 || fabs(values.precision - 0.5) < 1e-12);
        ck_assert(n == 3 || fabs(values.auc - 0.5) < 1e-12);
        ck_assert(values.brier > (n == 1 ? 0.3 : 1));
        dt__metrics_destroy(metrics);
    }
}
END_TEST

/* softmax sums to 1, survives large logits and works in place; one logit gives two columns. */
START_TEST(softmax_is_stable)
{
    float rows[2][3] = {{1000.0f, 999.0f, -1000.0f}, {0.0f, 0.0f, 0.0f}}, pair[4];
    const float row_logit[2] = {2.0f, -300.0f};
    set_model(DT_TASK_CLASSIFY, 3);
    dt__model_predict(model, rows[0], 2, rows[0]);
    ck_assert_int_eq(dt__model_choose(model, rows[0]), 0);
    ck_assert_float_eq_tol(rows[0][0], 1.0f / (1.0f + expf(-1.0f)), 1e-6f);
    ck_assert_float_eq(rows[0][2], 0.0f);
    ck_assert_float_eq_tol(rows[1][1], 1.0f / 3.0f, 1e-7f);
    set_model(DT_TASK_CLASSIFY, 1);
    dt__model_predict(model, row_logit, 2, pair);
    ck_assert(dt__model_choose(model, row_logit) == 1 &&
              dt__model_choose(model, row_logit + 1) == 0);
    ck_assert_float_eq_tol(pair[1], 0.880797078f, 1e-6f);
    ck_assert_float_eq_tol(pair[0] + pair[1], 1.0f, 1e-6f);
    ck_assert_float_eq_tol(pair[2], 1.0f, 1e-6f);
}
END_TEST

SUITE("metrics", classes_are_counted, two_classes_are_ranked, errors_are_measured,
      regression_outputs_have_units, losses_agree_with_pytorch, losses_have_units,
      constants_have_the_least_loss, constants_of_classes_are_frequencies,
      the_bias_of_the_output_layer_is_found, quantiles_never_cross, a_program_may_pass_its_loss,
      labels_are_counted, r2_of_constant_targets_is_0_or_1, weights_count_as_repetitions,
      nan_is_never_right, the_task_decides_the_metric, metrics_agree_with_scikit_learn,
      unknown_classes_are_wrong, softmax_is_stable)
