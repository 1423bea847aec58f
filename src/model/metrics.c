#include "dtrain/model.h"
#include "model/loss.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct scored {
    float score;
    bool positive;
};

struct dt_metrics {
    struct dt_model_spec spec;
    int classes;
    struct dt_chunk_sums sums; /* its scores and labels are not used */
    uint64_t *confusion;       /* (classes, classes), true class major; NULL: none is kept */
    struct scored *scored;     /* (rows) two classes */
    size_t nscored, capacity;
};

enum { TOP = 5 };

int dt_metrics_classes(const struct dt_model_spec *spec)
{
    if (spec->task == DT_REGRESS) return 0;
    return spec->nout == 1 ? 2 : spec->nout;
}

static bool has_top5(const struct dt_model_spec *spec)
{
    return spec->task == DT_CLASSIFY && spec->nout > TOP;
}

static bool is_binary(const struct dt_model_spec *spec)
{
    return spec->task == DT_CLASSIFY && spec->nout == 1;
}

dt_status dt_metrics_create(const struct dt_model_spec *spec, struct dt_metrics **out)
{
    dt_status status;
    struct dt_metrics *metrics = NULL;
    DT_GUARD(dt_alloc(1, sizeof *metrics, "metrics", &metrics));
    metrics->spec = *spec;
    metrics->classes = dt_metrics_classes(spec);
    size_t classes = (size_t)metrics->classes;
    if (classes && classes <= DT_MAX_CONFUSION)
        DT_GUARD(dt_alloc(classes * classes, sizeof *metrics->confusion, "confusion matrix",
                          &metrics->confusion));
    *out = metrics;
    return DT_OK;
done:
    dt_metrics_destroy(metrics);
    return status;
}

void dt_metrics_destroy(struct dt_metrics *metrics)
{
    if (!metrics) return;
    dt_free(metrics->confusion);
    dt_free(metrics->scored);
    dt_free(metrics);
}

void dt_metrics_reset(struct dt_metrics *metrics)
{
    const size_t classes = (size_t)metrics->classes;
    memset(&metrics->sums, 0, sizeof metrics->sums);
    if (metrics->confusion)
        memset(metrics->confusion, 0, classes * classes * sizeof *metrics->confusion);
    metrics->nscored = 0;
}

/* Classes that come before `label` when sorted by falling logit, ties by class number; NaN counts as
 * before. Top k if below k. */
static int rank_of(int n, const float *logits, int label)
{
    const float own = logits[label];
    int before = 0;
    for (int i = 0; i < n; i++)
        before += !(logits[i] < own || (logits[i] == own && i >= label));
    return before;
}

static int argmax(int n, const float *logits)
{
    int best = 0;
    for (int i = 1; i < n; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

static void classify_chunk(int n, const float *logits, const struct dt_batch *batch,
                           struct dt_chunk_sums *out, uint64_t *confusion)
{
    for (int r = 0; r < batch->rows; r++, logits += n) {
        int label = batch->label[r], rank = rank_of(n, logits, label);
        out->correct += rank == 0;
        out->top5 += rank < TOP;
        if (confusion) confusion[(size_t)label * (size_t)n + (size_t)argmax(n, logits)]++;
    }
}

static void binary_chunk(const float *logits, const struct dt_batch *batch,
                         struct dt_chunk_sums *out, uint64_t *confusion)
{
    for (int r = 0; r < batch->rows; r++) {
        int label = batch->label[r], predicted = logits[r] > 0.0f;
        out->correct += predicted == label && !isnan(logits[r]);
        out->score[r] = (double)logits[r];
        out->positive[r] = label;
        if (confusion) confusion[2 * label + predicted]++;
    }
}

static void regress_chunk(int n, const float *values, const struct dt_batch *batch,
                          struct dt_chunk_sums *out)
{
    const size_t count = (size_t)batch->rows * (size_t)n;
    for (size_t i = 0; i < count; i++) {
        double target = (double)batch->target[i], error = (double)values[i] - target;
        out->error2 += error * error;
        out->error1 += fabs(error);
        out->target += target;
        out->target2 += target * target;
    }
}

void dt_metrics_chunk(const struct dt_model_spec *spec, const float *logits,
                      const struct dt_batch *batch, struct dt_chunk_sums *out, uint64_t *confusion)
{
    memset(out, 0, sizeof *out);
    out->rows = batch->rows;
    out->loss = dt__loss(spec, batch, logits);
    if (spec->task == DT_REGRESS)
        regress_chunk(spec->nout, logits, batch, out);
    else if (spec->nout == 1)
        binary_chunk(logits, batch, out, confusion);
    else
        classify_chunk(spec->nout, logits, batch, out, confusion);
}

dt_status dt_metrics_add(struct dt_metrics *metrics, const struct dt_chunk_sums *sums)
{
    const size_t rows = (size_t)sums->rows;
    struct dt_chunk_sums *total = &metrics->sums;
    if (is_binary(&metrics->spec)) {
        DT_TRY(dt_grow(&metrics->scored, &metrics->capacity, metrics->nscored + rows,
                       sizeof *metrics->scored, "scores"));
        for (size_t i = 0; i < rows; i++)
            metrics->scored[metrics->nscored++] =
                (struct scored){(float)sums->score[i], sums->positive[i] > 0.0};
    }
    total->rows += sums->rows;
    total->loss += sums->loss;
    total->correct += sums->correct;
    total->top5 += sums->top5;
    total->error2 += sums->error2;
    total->error1 += sums->error1;
    total->target += sums->target;
    total->target2 += sums->target2;
    return DT_OK;
}

void dt_metrics_add_confusion(struct dt_metrics *metrics, const uint64_t *confusion)
{
    const size_t classes = (size_t)metrics->classes;
    for (size_t i = 0; i < classes * classes; i++)
        metrics->confusion[i] += confusion[i];
}

uint64_t *dt_metrics_confusion(struct dt_metrics *metrics)
{
    return metrics->confusion;
}

static int by_score(const void *a, const void *b)
{
    const struct scored *left = a, *right = b;
    return (left->score > right->score) - (left->score < right->score);
}

/* Pairs (positive, negative) that the scores put in order, ties a half, over all pairs.
 * Source: Hanley and McNeil 1982 (the Mann-Whitney statistic). */
static double area_under_curve(struct scored *scored, size_t n)
{
    double positives = 0.0, negatives = 0.0, ordered = 0.0;
    for (size_t i = 0; i < n; i++)
        if (isnan(scored[i].score)) return NAN;
    if (n) qsort(scored, n, sizeof *scored, by_score);
    for (size_t i = 0; i < n;) {
        double tied[2] = {0.0, 0.0};
        const float score = scored[i].score;
        for (; i < n && scored[i].score == score; i++)
            tied[scored[i].positive] += 1.0;
        ordered += tied[1] * (negatives + 0.5 * tied[0]);
        negatives += tied[0];
        positives += tied[1];
    }
    return ordered / (positives * negatives);
}

/* Precision and recall of class 1, predicted where the score is above 0. */
static void precision_recall(const struct dt_metrics *metrics, struct dt_metric_values *out)
{
    double predicted = 0.0, positive = 0.0, both = 0.0;
    for (size_t i = 0; i < metrics->nscored; i++) {
        const struct scored *row = &metrics->scored[i];
        predicted += row->score > 0.0f;
        positive += row->positive;
        both += row->score > 0.0f && row->positive;
    }
    out->precision = both / predicted;
    out->recall = both / positive;
}

static void regress_values(const struct dt_metrics *metrics, struct dt_metric_values *out)
{
    const struct dt_chunk_sums *sums = &metrics->sums;
    const double count = sums->rows * metrics->spec.nout;
    const double variation = sums->target2 - sums->target * sums->target / count;
    out->rmse = sqrt(sums->error2 / count);
    out->mae = sums->error1 / count;
    out->r2 = 1.0 - sums->error2 / variation;
}

void dt_metrics_values(struct dt_metrics *metrics, struct dt_metric_values *out)
{
    const struct dt_chunk_sums *sums = &metrics->sums;
    *out = (struct dt_metric_values){
        sums->rows, sums->loss / sums->rows, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    if (metrics->spec.task == DT_REGRESS) {
        regress_values(metrics, out);
        return;
    }
    out->accuracy = sums->correct / sums->rows;
    if (has_top5(&metrics->spec)) out->top5 = sums->top5 / sums->rows;
    if (!is_binary(&metrics->spec)) return;
    out->auc = area_under_curve(metrics->scored, metrics->nscored);
    precision_recall(metrics, out);
}

static bool is_classify(const struct dt_model_spec *spec)
{
    return spec->task == DT_CLASSIFY;
}

static bool is_regress(const struct dt_model_spec *spec)
{
    return spec->task == DT_REGRESS;
}

static bool is_any(const struct dt_model_spec *spec)
{
    (void)spec;
    return true;
}

#define VALUE(field) #field, offsetof(struct dt_metric_values, field)
static const struct {
    const char *name;
    size_t offset;
    bool more_is_better;
    bool (*exists)(const struct dt_model_spec *spec);
} METRICS[] = {
    [DT_METRIC_LOSS] = {VALUE(loss), false, is_any},
    [DT_METRIC_ACCURACY] = {VALUE(accuracy), true, is_classify},
    [DT_METRIC_TOP5] = {VALUE(top5), true, has_top5},
    [DT_METRIC_AUC] = {VALUE(auc), true, is_binary},
    [DT_METRIC_RMSE] = {VALUE(rmse), false, is_regress},
    [DT_METRIC_MAE] = {VALUE(mae), false, is_regress},
    [DT_METRIC_R2] = {VALUE(r2), true, is_regress},
};

dt_status dt_metric_pick(const struct dt_model_spec *spec, int metric,
                         const struct dt_metric_values *values, double *out_value,
                         bool *out_more_is_better, const char **out_name)
{
    if (metric == DT_METRIC_AUTO) metric = is_regress(spec) ? DT_METRIC_RMSE : DT_METRIC_ACCURACY;
    if (!METRICS[metric].exists(spec))
        return dt_fail(
            DT_EUSAGE, "eval.metric = %s: there is none of a model with %d outputs for %s",
            METRICS[metric].name, spec->nout, is_regress(spec) ? "regression" : "classification");
    memcpy(out_value, (const char *)values + METRICS[metric].offset, sizeof *out_value);
    *out_more_is_better = METRICS[metric].more_is_better;
    *out_name = METRICS[metric].name;
    return DT_OK;
}
