/* Metrics against brute force, chunks against the whole, what exists for which model. */
#include "dtrain/model.h"
#include "suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 700, MOST_CLASSES = 12 };

static float logits[ROWS * MOST_CLASSES], target[ROWS * MOST_CLASSES];
static int32_t label[ROWS];
static struct dt_chunk_sums sums;

/* Coarse values, so that ties are many. */
static void fill(int nout, int classes)
{
    struct dt_rng rng = dt_rng_make(2, DT_STREAM_TEST, (uint64_t)nout, 0);
    for (int i = 0; i < ROWS * nout; i++) {
        logits[i] = (float)(round(4.0 * dt_rng_normal(&rng, (uint64_t)i)) / 4.0);
        target[i] = logits[i] + 0.5f * (float)dt_rng_normal(&rng, 100000 + (uint64_t)i);
    }
    for (int i = 0; i < ROWS; i++)
        label[i] =
            (int32_t)(dt_rng_u64(&rng, 200000 + (uint64_t)i) % (uint64_t)(classes ? classes : 1));
}

/* All rows in chunks; *confusion is what the last chunk left, added up by the metrics. */
static struct dt_metrics *measure(const struct dt_model_spec *spec, struct dt_metric_values *values)
{
    struct dt_metrics *metrics;
    uint64_t confusion[MOST_CLASSES * MOST_CLASSES];
    EXPECT_OK(dt_metrics_create(spec, &metrics));
    const int nout = spec->nout;
    for (int r = 0; r < ROWS; r += DT_EVAL_CHUNK) {
        struct dt_batch batch = {.rows = ROWS - r < DT_EVAL_CHUNK ? ROWS - r : DT_EVAL_CHUNK,
                                 .label = label + r,
                                 .target = target + r * nout};
        memset(confusion, 0, sizeof confusion);
        bool classify = spec->task == DT_CLASSIFY;
        dt_metrics_chunk(spec, logits + r * nout, &batch, &sums, classify ? confusion : NULL);
        EXPECT_OK(dt_metrics_add(metrics, &sums));
        if (classify) dt_metrics_add_confusion(metrics, confusion);
    }
    dt_metrics_values(metrics, values);
    return metrics;
}

static struct dt_model_spec spec_of(int task, int nout)
{
    return (struct dt_model_spec){.task = task, .nin = 1, .nout = nout};
}

/* Sorts the classes of a row by selection: k-th best, ties to the lower class. */
static bool in_top(const float *row, int nout, int wanted, int k)
{
    bool taken[MOST_CLASSES] = {false};
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
    const struct dt_model_spec spec = spec_of(DT_CLASSIFY, MOST_CLASSES);
    struct dt_metric_values values;
    fill(MOST_CLASSES, MOST_CLASSES);
    struct dt_metrics *metrics = measure(&spec, &values);
    double loss = 0.0, first = 0.0, top5 = 0.0, diagonal = 0.0, cells = 0.0;
    for (int r = 0; r < ROWS; r++) {
        const float *row = logits + r * MOST_CLASSES;
        double total = 0.0;
        for (int c = 0; c < MOST_CLASSES; c++)
            total += exp((double)row[c]);
        loss += log(total) - (double)row[label[r]];
        first += in_top(row, MOST_CLASSES, label[r], 1);
        top5 += in_top(row, MOST_CLASSES, label[r], 5);
    }
    ck_assert_double_eq_tol(values.loss, loss / ROWS, 1e-6);
    ck_assert_double_eq(values.accuracy, first / ROWS);
    ck_assert_double_eq(values.top5, top5 / ROWS);
    ck_assert(isnan(values.auc) && isnan(values.rmse));
    const uint64_t *confusion = dt_metrics_confusion(metrics);
    for (int i = 0; i < MOST_CLASSES * MOST_CLASSES; i++) {
        cells += (double)confusion[i];
        if (i % (MOST_CLASSES + 1) == 0) diagonal += (double)confusion[i];
    }
    ck_assert_double_eq(cells, ROWS);
    ck_assert_double_eq(diagonal, first);
    dt_metrics_destroy(metrics);
}
END_TEST

/* Every pair of a positive and a negative row. */
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

/* Ties at half, in the AUC; the threshold at 0; counts of the right cells. */
START_TEST(two_classes_are_ranked)
{
    const struct dt_model_spec spec = spec_of(DT_CLASSIFY, 1);
    struct dt_metric_values values;
    fill(1, 2);
    struct dt_metrics *metrics = measure(&spec, &values);
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
    ck_assert_double_eq((double)dt_metrics_confusion(metrics)[2], cell[1][0]);
    dt_metrics_reset(metrics);
    dt_metrics_values(metrics, &values);
    ck_assert(values.rows == 0.0 && isnan(values.auc));
    dt_metrics_destroy(metrics);
}
END_TEST

START_TEST(errors_are_measured)
{
    enum { NOUT = 3, COUNT = ROWS * NOUT };
    const struct dt_model_spec spec = spec_of(DT_REGRESS, NOUT);
    struct dt_metric_values values;
    fill(NOUT, 0);
    struct dt_metrics *metrics = measure(&spec, &values);
    double mean = 0.0, square = 0.0, absolute = 0.0, variation = 0.0;
    for (int i = 0; i < COUNT; i++)
        mean += (double)target[i] / COUNT;
    for (int i = 0; i < COUNT; i++) {
        double error = (double)logits[i] - (double)target[i];
        square += error * error;
        absolute += fabs(error);
        variation += ((double)target[i] - mean) * ((double)target[i] - mean);
    }
    ck_assert_double_eq_tol(values.rmse, sqrt(square / COUNT), 1e-12);
    ck_assert_double_eq_tol(values.loss, square / COUNT, 1e-6);
    ck_assert_double_eq_tol(values.mae, absolute / COUNT, 1e-12);
    ck_assert_double_eq_tol(values.r2, 1.0 - square / variation, 1e-10);
    ck_assert(isnan(values.accuracy) && isnan(values.top5));
    ck_assert_ptr_null(dt_metrics_confusion(metrics));
    dt_metrics_destroy(metrics);
}
END_TEST

/* A diverged model may not count as right. */
START_TEST(nan_is_never_right)
{
    struct dt_metric_values values;
    struct dt_model_spec spec = spec_of(DT_CLASSIFY, MOST_CLASSES);
    fill(MOST_CLASSES, MOST_CLASSES);
    for (int i = 0; i < ROWS * MOST_CLASSES; i++)
        logits[i] = NAN;
    dt_metrics_destroy(measure(&spec, &values));
    ck_assert(values.accuracy == 0.0 && isnan(values.loss));
    spec.nout = 1;
    fill(1, 2);
    for (int i = 0; i < ROWS; i++)
        logits[i] = NAN;
    dt_metrics_destroy(measure(&spec, &values));
    ck_assert(values.accuracy == 0.0 && isnan(values.auc));
}
END_TEST

START_TEST(metric_is_picked_by_the_task)
{
    const struct dt_metric_values values = {
        .loss = 1, .accuracy = 2, .top5 = 3, .auc = 4, .rmse = 5, .mae = 6, .r2 = 7};
    static const struct {
        int task, nout, metric;
        const char *name; /* NULL: refused */
        double value;
        bool more;
    } rows[] = {{DT_CLASSIFY, 10, DT_METRIC_AUTO, "accuracy", 2, true},
                {DT_REGRESS, 1, DT_METRIC_AUTO, "rmse", 5, false},
                {DT_REGRESS, 1, DT_METRIC_LOSS, "loss", 1, false},
                {DT_CLASSIFY, 10, DT_METRIC_TOP5, "top5", 3, true},
                {DT_CLASSIFY, 5, DT_METRIC_TOP5, NULL, 0, false},
                {DT_CLASSIFY, 1, DT_METRIC_AUC, "auc", 4, true},
                {DT_CLASSIFY, 3, DT_METRIC_AUC, NULL, 0, false},
                {DT_REGRESS, 1, DT_METRIC_MAE, "mae", 6, false},
                {DT_REGRESS, 1, DT_METRIC_R2, "r2", 7, true},
                {DT_CLASSIFY, 1, DT_METRIC_R2, NULL, 0, false},
                {DT_REGRESS, 1, DT_METRIC_ACCURACY, NULL, 0, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct dt_model_spec spec = spec_of(rows[i].task, rows[i].nout);
        double value;
        bool more;
        const char *name;
        dt_status status = dt_metric_pick(&spec, rows[i].metric, &values, &value, &more, &name);
        ck_assert_int_eq(status, rows[i].name ? DT_OK : DT_EUSAGE);
        if (status) continue;
        ck_assert_str_eq(name, rows[i].name);
        ck_assert_double_eq(value, rows[i].value);
        ck_assert(more == rows[i].more);
    }
}
END_TEST

/* softmax: sums to 1, survives large logits, works in place; two columns of one logit. */
START_TEST(softmax_is_stable)
{
    float rows[2][3] = {{1000.0f, 999.0f, -1000.0f}, {0.0f, 0.0f, 0.0f}}, pair[4];
    const float one[2] = {2.0f, -300.0f};
    dt_softmax(rows[0], 2, 3, rows[0]);
    ck_assert_float_eq_tol(rows[0][0], 1.0f / (1.0f + expf(-1.0f)), 1e-6f);
    ck_assert_float_eq(rows[0][2], 0.0f);
    ck_assert_float_eq_tol(rows[1][1], 1.0f / 3.0f, 1e-7f);
    dt_softmax(one, 2, 1, pair);
    ck_assert_float_eq_tol(pair[1], 0.880797078f, 1e-6f);
    ck_assert_float_eq_tol(pair[0] + pair[1], 1.0f, 1e-6f);
    ck_assert_float_eq_tol(pair[2], 1.0f, 1e-6f);
}
END_TEST

SUITE("metrics", classes_are_counted, two_classes_are_ranked, errors_are_measured,
      nan_is_never_right, metric_is_picked_by_the_task, softmax_is_stable)
