/* The baseline: the model whose outputs are constants, chosen to minimise the loss on the training
 * rows. The output layer's bias may start there (model.output_bias); the start of a run prints the
 * baseline; the end compares each metric of the chosen model with it. */
#include "train/baseline.h"

#include <math.h>
#include <string.h>

#include "report/history.h"
#include "train/bank.h"

/* ---- the constants --------------------------------------------------------------------------- */

/* If predictions are exponentials of outputs, the weights start at 0: random ones would multiply
 * the predictions by e^noise. */
void dt__baseline_start(const struct dt_bank *bank, float *params)
{
    const struct dt_job *job = bank->job;
    const struct dt_tensor *bias = job->rules->undecayed;
    if (!bias) return;
    const struct dt_tensor *weight = bias - 1; /* the layer's other tensor */
    memcpy(params + bias->offset, bank->baseline.outputs, bias->count * sizeof *params);
    if (job->model->outputs.link == DT_LINK_EXP)
        memset(params + weight->offset, 0, weight->count * sizeof *params);
}

/* Describes the constant prediction. */
static void constant_text(const struct dt_job *job, const float *outputs, char text[96])
{
    const struct dt_model *model = job->model;
    char *const *names = dt__source_schema(job->train)->label_names;
    const int n = model->desc.nout;
    float value[DT_MAX_QUANTILES + 1];
    snprintf(text, 96, "always %s", model->classes ? "the classes' frequencies" : "a constant");
    if (n > DT_MAX_QUANTILES || model->classes > 2) return;
    dt__model_predict(model, outputs, 1, value);
    if (model->classes)
        snprintf(text, 96, "always %.3g for class '%.40s'", (double)value[1],
                 names ? names[1] : "1");
    else if (n == 1)
        snprintf(text, 96, "always %.6g", (double)value[0]);
    else if (n == model->outputs.each)
        snprintf(text, 96, "always %.6g to %.6g", (double)value[0], (double)value[n - 1]);
}

/* ---- its metrics on held-out rows ------------------------------------------------------------ */

/* State that the passes over the held-out rows share. */
struct measure {
    const struct dt_job *job;
    const float *logits; /* (rows, nout) the constants, once for each row */
    double *sums;
    struct dt_metrics *metrics;
};

static dt_status measure_rows(const struct measure *measure, uint64_t begin, uint64_t rows)
{
    const struct dt_job *job = measure->job;
    struct dt_table *table = NULL;
    struct dt_batch batch;
    DT_TRY(dt__table_create(job->config, job->eval, begin, begin + rows, &table));
    dt_status status = dt__table_read(table, begin, (int)rows, &batch);
    if (!status)
        dt__metrics_chunk(job->model, measure->logits, &batch, measure->sums,
                          dt__metrics_confusion(measure->metrics));
    if (!status) status = dt__metrics_add(measure->metrics, measure->sums);
    dt__table_destroy(table);
    return status;
}

/* Sets the accuracy to that of always predicting the most frequent class. With class weights the
 * constant outputs may predict another class. */
static void accuracy_set(struct dt_metrics *metrics, size_t classes,
                         struct dt_metric_values *values)
{
    const uint64_t *confusion = dt__metrics_confusion(metrics);
    for (size_t c = 0; confusion && c < classes; c++) {
        double rows = 0;
        for (size_t i = 0; i < classes; i++)
            rows += (double)confusion[c * classes + i];
        if (c == 0 || rows / values->rows > values->accuracy)
            values->accuracy = rows / values->rows;
    }
}

/* Measures the rows that evaluations measure or, if there are too many, chunks spread evenly over
 * them. */
static dt_status baseline_measure(struct dt_baseline *baseline, const struct dt_job *job)
{
    enum { LEAST = 4096, MOST_VALUES = 1 << 24, MOST_LOGITS = 1 << 22 };
    const size_t nout = (size_t)job->model->desc.nout;
    const uint64_t features = (uint64_t)dt__source_schema(job->eval)->features;
    const uint64_t rows = dt__measure_rows(job->config, job->eval);
    const uint64_t few = MOST_LOGITS / nout + 1;
    const uint64_t step = few < DT_EVAL_CHUNK ? few : DT_EVAL_CHUNK;
    const uint64_t all = (rows + step - 1) / step;
    const uint64_t most = (LEAST + MOST_VALUES / features) / step + 1;
    const uint64_t chunks = all < most ? all : most;
    struct measure measure = {.job = job};
    float *logits = NULL;
    dt_status status;
    DT_GUARD(dt__metrics_create(job->model, job->config, &measure.metrics));
    DT_GUARD(dt__alloc((size_t)step, nout * sizeof *logits, "the baseline", &logits));
    DT_GUARD(
        dt__alloc(dt__metrics_sums(job->model), sizeof(double), "the baseline", &measure.sums));
    for (size_t r = 0; r < (size_t)step; r++)
        memcpy(logits + r * nout, baseline->outputs, nout * sizeof *logits);
    measure.logits = logits;
    for (uint64_t c = 0; c < chunks; c++) {
        const uint64_t begin = c * all / chunks * step;
        DT_GUARD(measure_rows(&measure, begin, rows - begin < step ? rows - begin : step));
    }
    dt__metrics_values(measure.metrics, &baseline->values);
    if (!job->config->eval.weighted)
        accuracy_set(measure.metrics, (size_t)job->model->classes, &baseline->values);
    baseline->values.precision = baseline->values.recall = NAN; /* not meaningful for a constant */
    baseline->measured = true;
    baseline->sampled = chunks < all;
done:
    dt__metrics_destroy(measure.metrics);
    dt_free(measure.sums);
    dt_free(logits);
    return status;
}

dt_status dt__baseline_make(struct dt_bank *bank)
{
    const struct dt_job *job = bank->job;
    struct dt_baseline *baseline = &bank->baseline;
    struct dt_batch batch;
    DT_TRY(dt__source_targets(job->train, &batch));
    dt_status status = dt__alloc((size_t)job->model->desc.nout, sizeof *baseline->outputs,
                                 "the baseline", &baseline->outputs);
    if (!status) status = dt__model_constant(job->model, &batch, baseline->outputs);
    dt__source_targets_free(&batch);
    if (status || !job->eval || bank->options->test) return status;
    return baseline_measure(baseline, job);
}

void dt__baseline_free(struct dt_baseline *baseline)
{
    dt_free(baseline->outputs);
    *baseline = (struct dt_baseline){0};
}

/* ---- what is printed ------------------------------------------------------------------------- */

struct dt_metric_score dt__metric_shown(const struct dt_job *job,
                                        const struct dt_metric_values *values)
{
    struct dt_metric_score metric = {.name = "loss"};
    (void)dt__metric_pick(job->model, job->config->eval.metric, values, &metric);
    if (!strcmp(metric.name, "loss"))
        (void)dt__metric_pick(job->model, DT_METRIC_AUTO, values, &metric);
    if (!strcmp(metric.name, "loss") && !isnan(values->rmse))
        metric = (struct dt_metric_score){"rmse", values->rmse, false};
    return metric;
}

void dt__baseline_text(const struct dt_bank *bank, char text[DT__BASELINE_TEXT])
{
    const struct dt_baseline *baseline = &bank->baseline;
    const struct dt_metric_values *values = &baseline->values;
    const struct dt_metric_score metric = dt__metric_shown(bank->job, values);
    char constant[96], extra[64] = "";
    *text = '\0';
    if (!baseline->measured) return;
    constant_text(bank->job, baseline->outputs, constant);
    if (strcmp(metric.name, "loss"))
        snprintf(extra, sizeof extra, ", %s %.5g", metric.name, metric.value);
    snprintf(text, DT__BASELINE_TEXT, "; the baseline, %s, has %sloss %.5g%s", constant,
             baseline->sampled ? "about " : "", values->loss, extra);
}

/* Returns by how much a metric may differ from the baseline's value through noise. The area under
 * the curve of a random order deviates about as much as the mean rank of the rarer class's rows. */
static double metric_noise(const struct dt_baseline *baseline, const char *name, double value)
{
    const double accuracy = baseline->values.accuracy, rows = baseline->values.rows;
    const double sample = baseline->sampled ? 0.02 * fabs(value) : 0;
    if (!strcmp(name, "accuracy")) return sample + sqrt(accuracy * (1 - accuracy) / rows);
    if (!strcmp(name, "auc")) return sample + 1 / sqrt(12 * (1 - accuracy) * rows);
    return strcmp(name, "rmse") ? sample : 0.02 * value;
}

/* Returns the index of the record of the evaluation at this step; -1: there is none. */
static int64_t best_record(const struct dt_history *history, uint64_t step)
{
    for (size_t i = dt_history_count(history, DT_RECORD_EVAL); i-- > 0;)
        if (dt_history_real(history, DT_RECORD_EVAL, i, "step") == (double)step) return (int64_t)i;
    return -1;
}

/* Adds a metric to the comparison if the chosen model is not better in it. */
static void comparison_add(const struct dt_bank *bank, const char *name, double value, double base,
                           struct dt_comparison *out)
{
    const struct dt_config *config = bank->job->config;
    const bool chosen = !strcmp(name, bank->job->best.metric);
    const bool balanced = config->train.class_weight == DT_CLASS_WEIGHT_BALANCED;
    const double gain = dt__metric_rises(name) ? value - base : base - value;
    const double noise = metric_noise(&bank->baseline, name, base);
    const size_t length = strlen(out->text);
    if (isnan(gain) || (chosen ? gain > noise : gain >= -noise)) return;
    /* With balanced weights rare classes count as much as the frequent one, at the cost of
     * accuracy. */
    if (!chosen && balanced && !strcmp(name, "accuracy")) return;
    out->chosen |= chosen;
    out->worse |= gain < 0;
    if (!out->first) out->first = name;
    snprintf(out->text + length, sizeof out->text - length, "%s%s %.5g (baseline %.5g)",
             length ? ", " : "", name, value, base);
}

void dt__baseline_compare(const struct dt_bank *bank, struct dt_comparison *out)
{
    const struct dt_job *job = bank->job;
    struct dt_history *history = NULL;
    const char *name;
    double base;
    *out = (struct dt_comparison){0};
    if (!bank->baseline.measured || !job->best.known || job->model->outputs.own) return;
    if (dt_history_read(job->config->run.dir, &history)) return;
    const int64_t record = best_record(history, job->best.step);
    for (int i = 0; record >= 0 && dt__metric_at(i, &bank->baseline.values, &name, &base); i++)
        comparison_add(bank, name, dt_history_real(history, DT_RECORD_EVAL, (size_t)record, name),
                       base, out);
    dt_history_free(history);
}
