/* Metrics: sums of chunks, merged in the order of chunks, and the values computed from them. The
 * task defines most of the sums. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "model/task.h"

/* Sums of every chunk; those of the task follow. */
enum { ROWS, WEIGHT, LOSS, UNKNOWN, UNKNOWN_WEIGHT, SUMS };

struct dt_metrics {
    const struct dt__task *task;
    const struct dt_outputs *outputs; /* the model's */
    int nout, classes;
    double *sums; /* (SUMS + added) totals over all chunks */
    size_t added;
    uint64_t *confusion;       /* (classes, classes), true class major; NULL: not kept */
    struct dt__scored *scored; /* (rows) if the task needs the rows, else NULL */
    size_t nscored, capacity;
    double *class_sums; /* (1 + classes, 3) scratch memory */
    bool all;           /* compute all optional metrics; else ... */
    int picked;         /* ... only this one, if it is an optional one */
    bool unsorted;      /* leave out the metrics that sort the rows */
};

static size_t added_of(const struct dt__task *task, int nout)
{
    return task->added.fixed + task->added.each * (size_t)nout;
}

size_t dt__metrics_sums(const struct dt_model *model)
{
    const struct dt__task *task = model->loss->task;
    return SUMS + added_of(task, model->outputs.count / model->outputs.each) +
           (task->scores ? 3 * DT_EVAL_CHUNK : 0);
}

dt_status dt__metrics_create(const struct dt_model *model, const struct dt_config *config,
                             struct dt_metrics **out)
{
    dt_status status;
    struct dt_metrics *metrics = NULL;
    const size_t classes = (size_t)model->classes;
    DT_GUARD(dt__alloc(1, sizeof *metrics, "metrics", &metrics));
    metrics->task = model->loss->task;
    metrics->outputs = &model->outputs;
    metrics->nout = model->outputs.count / model->outputs.each;
    metrics->classes = (int)classes;
    metrics->added = added_of(metrics->task, metrics->nout);
    metrics->all = !config || config->eval.full;
    metrics->picked = config ? config->eval.metric : DT_METRIC_AUTO;
    DT_GUARD(dt__alloc(SUMS + metrics->added, sizeof *metrics->sums, "metrics", &metrics->sums));
    DT_GUARD(
        dt__alloc(1 + classes, 3 * sizeof *metrics->class_sums, "metrics", &metrics->class_sums));
    if (classes && classes <= DT_MAX_CONFUSION)
        DT_GUARD(dt__alloc(classes * classes, sizeof *metrics->confusion, "confusion matrix",
                           &metrics->confusion));
    *out = metrics;
    return DT_OK;
done:
    dt__metrics_destroy(metrics);
    return status;
}

void dt__metrics_destroy(struct dt_metrics *metrics)
{
    if (!metrics) return;
    dt_free(metrics->sums);
    dt_free(metrics->confusion);
    dt_free(metrics->scored);
    dt_free(metrics->class_sums);
    dt_free(metrics);
}

void dt__metrics_reset(struct dt_metrics *metrics)
{
    const size_t classes = (size_t)metrics->classes;
    memset(metrics->sums, 0, (SUMS + metrics->added) * sizeof *metrics->sums);
    if (metrics->confusion)
        memset(metrics->confusion, 0, classes * classes * sizeof *metrics->confusion);
    metrics->nscored = 0;
}

/* Returns the sum of a chunk's losses. Rows of classes that training never saw have no loss; they
 * are only counted, in `sums`. */
static double loss_of_known(const struct dt_model *model, const float *logits,
                            const struct dt_batch *batch, double *sums)
{
    struct dt_batch known = *batch;
    float weight[DT_EVAL_CHUNK];
    int32_t label[DT_EVAL_CHUNK];
    for (int r = 0; model->classes && r < batch->rows && r < DT_EVAL_CHUNK; r++) {
        weight[r] = batch->weight ? batch->weight[r] : 1;
        label[r] = batch->label[r];
        if (label[r] >= 0) continue;
        sums[UNKNOWN]++;
        sums[UNKNOWN_WEIGHT] += (double)weight[r];
        weight[r] = 0;
        label[r] = 0;
    }
    if (sums[UNKNOWN] > 0) known.label = label, known.weight = weight;
    return model->loss->sum(&model->outputs, &known, logits, NULL);
}

void dt__metrics_chunk(const struct dt_model *model, const float *logits,
                       const struct dt_batch *batch, double *sums, uint64_t *confusion)
{
    const struct dt__task *task = model->loss->task;
    memset(sums, 0, dt__metrics_sums(model) * sizeof *sums);
    sums[ROWS] = batch->rows;
    for (int r = 0; r < batch->rows; r++)
        sums[WEIGHT] += batch->weight ? (double)batch->weight[r] : 1.0;
    sums[LOSS] = loss_of_known(model, logits, batch, sums);
    task->measure(&model->outputs, logits, batch, sums + SUMS, confusion);
}

dt_status dt__metrics_add(struct dt_metrics *metrics, const double *sums)
{
    const size_t rows = (size_t)sums[ROWS], all = SUMS + metrics->added;
    const double *score = sums + all, *label = score + DT_EVAL_CHUNK,
                 *weight = label + DT_EVAL_CHUNK;
    if (metrics->task->scores) {
        DT_TRY(dt__grow(&metrics->scored, &metrics->capacity, metrics->nscored + rows,
                        sizeof *metrics->scored, "scores"));
        for (size_t i = 0; i < rows; i++)
            metrics->scored[metrics->nscored++] =
                (struct dt__scored){(float)score[i], (float)weight[i], (int32_t)label[i]};
    }
    for (size_t i = 0; i < all; i++)
        metrics->sums[i] += sums[i];
    return DT_OK;
}

void dt__metrics_add_confusion(struct dt_metrics *metrics, const uint64_t *confusion)
{
    const size_t classes = (size_t)metrics->classes;
    for (size_t i = 0; i < classes * classes; i++)
        metrics->confusion[i] += confusion[i];
}

void dt__metrics_limit(struct dt_metrics *metrics)
{
    metrics->unsorted =
        metrics->picked != DT_METRIC_AUC && metrics->picked != DT_METRIC_AVERAGE_PRECISION;
}

uint64_t *dt__metrics_confusion(struct dt_metrics *metrics)
{
    return metrics->confusion;
}

bool dt__metrics_target(const struct dt_metrics *metrics, int target, struct dt_target_score *out)
{
    if (!metrics->task->score || target >= metrics->nout) return false;
    *out = metrics->task->score(metrics->nout, metrics->sums[WEIGHT], metrics->sums + SUMS, target);
    return true;
}

/* ---- classes -------------------------------------------------------------------------------- */

dt_status dt__class_scores_make(const uint64_t *confusion, size_t classes,
                                struct dt_class_scores *out)
{
    double *memory;
    DT_TRY(dt__alloc(classes, 4 * sizeof *memory, "scores of classes", &memory));
    *out = (struct dt_class_scores){classes, memory, memory + classes, memory + 2 * classes,
                                    memory + 3 * classes};
    for (size_t c = 0; c < classes; c++) {
        double right = (double)confusion[c * classes + c], predicted = 0;
        for (size_t i = 0; i < classes; i++) {
            out->rows[c] += (double)confusion[c * classes + i];
            predicted += (double)confusion[i * classes + c];
        }
        out->precision[c] = right / predicted;
        out->recall[c] = right / out->rows[c];
        out->f1[c] = 2 * right / (predicted + out->rows[c]);
    }
    return DT_OK;
}

/* ---- names ---------------------------------------------------------------------------------- */

#define METRIC(key, field, more, ...)                                                              \
    {                                                                                              \
        key, #field, offsetof(struct dt_metric_values, field), more, __VA_ARGS__                   \
    }
enum { NO_KEY = -1 }; /* a recorded metric that eval.metric cannot choose */
static const struct {
    int key; /* enum dt_metric, the value of eval.metric */
    const char *name;
    size_t offset;
    bool more_is_better;
    bool if_picked; /* optional: recorded only if eval.metric chooses it or with eval.full */
} METRICS[] = {
    METRIC(DT_METRIC_LOSS, loss, false, false),
    METRIC(DT_METRIC_ACCURACY, accuracy, true, false),
    METRIC(DT_METRIC_TOP5, top5, true, false),
    METRIC(DT_METRIC_AUC, auc, true, false),
    METRIC(NO_KEY, precision, true, false),
    METRIC(NO_KEY, recall, true, false),
    METRIC(DT_METRIC_RMSE, rmse, false, false),
    METRIC(DT_METRIC_MAE, mae, false, false),
    METRIC(DT_METRIC_R2, r2, true, false),
    METRIC(DT_METRIC_F1, f1, true, true),
    METRIC(DT_METRIC_BALANCED_ACCURACY, balanced_accuracy, true, true),
    METRIC(DT_METRIC_AVERAGE_PRECISION, average_precision, true, true),
    METRIC(DT_METRIC_BRIER, brier, false, true),
    METRIC(DT_METRIC_ECE, ece, false, true),
    METRIC(DT_METRIC_MAPE, mape, false, true),
};
enum { METRIC_COUNT = sizeof METRICS / sizeof *METRICS };

static double *value_at(int index, struct dt_metric_values *values)
{
    return (double *)(void *)((char *)values + METRICS[index].offset);
}

static double value_of(int index, const struct dt_metric_values *values)
{
    double value;
    memcpy(&value, (const char *)values + METRICS[index].offset, sizeof value);
    return value;
}

void dt__metrics_values(struct dt_metrics *metrics, struct dt_metric_values *out)
{
    const double *sums = metrics->sums;
    const struct dt__summed summed = {.nout = metrics->nout,
                                      .outputs = metrics->outputs,
                                      .weight = sums[WEIGHT],
                                      .sums = sums + SUMS,
                                      .scored = metrics->scored,
                                      .n = metrics->nscored,
                                      .unsorted = metrics->unsorted,
                                      .class_sums = metrics->class_sums};
    *out = (struct dt_metric_values){.rows = sums[ROWS], .unknown = sums[UNKNOWN]};
    out->guess_rmse = NAN;
    for (int i = 0; i < METRIC_COUNT; i++)
        *value_at(i, out) = NAN;
    out->loss = sums[LOSS] / (sums[WEIGHT] - sums[UNKNOWN_WEIGHT]);
    metrics->task->values(&summed, out);
    for (int i = 0; i < METRIC_COUNT && !metrics->all; i++)
        if (METRICS[i].if_picked && METRICS[i].key != metrics->picked) *value_at(i, out) = NAN;
}

bool dt__metric_at(int index, const struct dt_metric_values *values, const char **out_name,
                   double *out_value)
{
    if (index >= METRIC_COUNT) return false;
    *out_name = METRICS[index].name;
    *out_value = value_of(index, values);
    return true;
}

void dt__metric_set(int index, struct dt_metric_values *values, double value)
{
    *value_at(index, values) = value;
}

dt_status dt__metric_pick(const struct dt_model *model, int metric,
                          const struct dt_metric_values *values, struct dt_metric_score *out)
{
    const struct dt__task *task = model->loss->task;
    const int nout = model->desc.nout;
    int index = 0;
    if (metric == DT_METRIC_AUTO) metric = model->loss->usual;
    if (metric == DT_METRIC_LOG_LOSS || metric == DT_METRIC_PINBALL) metric = DT_METRIC_LOSS;
    while (METRICS[index].key != metric)
        index++;
    const bool has = task->metrics >> metric & 1 && (metric != DT_METRIC_TOP5 || nout > DT__TOP);
    if (metric != DT_METRIC_LOSS && !has)
        return dt_fail(DT_EUSAGE,
                       "eval.metric=%s: there is none of a model with %d outputs for %s%s",
                       METRICS[index].name, nout, task->name,
                       metric == DT_METRIC_AUC ? " (auc is of two classes)" : "");
    *out = (struct dt_metric_score){.name = METRICS[index].name,
                                    .value = values ? value_of(index, values) : (double)NAN,
                                    .more_is_better = METRICS[index].more_is_better};
    return DT_OK;
}

bool dt__metric_rises(const char *name)
{
    for (int i = 0; i < METRIC_COUNT; i++)
        if (!strcmp(METRICS[i].name, name)) return METRICS[i].more_is_better;
    return true;
}
