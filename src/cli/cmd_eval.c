/* `dtrain eval`: measures a model on held-out data, as evaluation during training does, chunk by
 * chunk. A terminal gets a table, with the scores of each class or target; everything else gets one
 * JSON line. */
#include <math.h>
#include <unistd.h>

#include "cli/cli.h"
#include "data/text.h"
#include "dtrain/report.h"
#include "dtrain/train.h"

/* "Pullover", or the class's number. */
static const char *class_name(const struct cli_model *model, size_t c, char buffer[24])
{
    const char *name = dt_predictor_class_name(model->predictor, (int)c);
    snprintf(buffer, 24, "%zu", c);
    return name ? name : buffer;
}

/* The scores of several numeric targets; of very many, as fields are, none. */
enum { MOST_TARGETS = 64 };
struct targets {
    int count;
    struct dt_target_score scores[MOST_TARGETS];
    struct dt__names names; /* (count), or none */
};

static dt_status targets_score(const struct cli_model *model, const struct dt_metrics *metrics,
                               struct targets *out)
{
    const struct dt_schema *schema = &model->predictor->file.schema;
    if (schema->targets < 2 || schema->targets > MOST_TARGETS) return DT_OK;
    while (out->count < schema->targets &&
           dt_metrics_target(metrics, out->count, &out->scores[out->count]))
        out->count++;
    return schema->label_column ? dt__names_split(schema->label_column, &out->names) : DT_OK;
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static dt_status metrics_print_json(const struct cli_model *model,
                                    const struct dt_metric_values *values,
                                    const uint64_t *confusion, const struct dt_class_scores *scores,
                                    const struct targets *targets)
{
    struct dt_json json = {0};
    char name[24];
    double rmse[MOST_TARGETS], r2[MOST_TARGETS];
    size_t classes = scores->classes;
    dt_json_begin(&json);
    dt_json_int(&json, "step", (int64_t)model->predictor->file.step);
    dt_json_metrics(&json, values);
    if (model->predictor->classes == 2) dt_json_text(&json, "positive", class_name(model, 1, name));
    if (confusion) {
        dt_json_confusion(&json, confusion, (int)classes);
        if (model->predictor->file.schema.label_names)
            dt_json_texts(&json, "labels", model->predictor->file.schema.label_names, classes);
        dt_json_reals(&json, "class_precision", scores->precision, classes);
        dt_json_reals(&json, "class_recall", scores->recall, classes);
        dt_json_reals(&json, "class_f1", scores->f1, classes);
    }
    for (int i = 0; i < targets->count; i++)
        rmse[i] = targets->scores[i].rmse, r2[i] = targets->scores[i].r2;
    if (targets->count) {
        dt_json_reals(&json, "target_rmse", rmse, (size_t)targets->count);
        dt_json_reals(&json, "target_r2", r2, (size_t)targets->count);
    }
    dt_status status = dt_json_end(&json);
    if (!status) puts(json.text.data);
    dt_json_free(&json);
    return status;
}

/* ---- a table -------------------------------------------------------------------------------- */

static void score_print(double value)
{
    if (isnan(value))
        printf("  %9s", "-");
    else
        printf("  %9.4f", value);
}

/* Over the classes that have rows: one that is never predicted counts as 0. */
static double scores_mean(const double *values, const struct dt_class_scores *scores)
{
    double sum = 0, count = 0;
    for (size_t i = 0; i < scores->classes; i++) {
        if (scores->rows[i] == 0) continue;
        sum += isnan(values[i]) ? 0 : values[i];
        count++;
    }
    return sum / count;
}

/* Precision, recall and f1 of each class; and of not too many a row a true one, a column a
 * predicted one. */
static void classes_print(const struct cli_model *model, const struct dt_class_scores *scores,
                          const uint64_t *confusion)
{
    enum { LEAST_WIDTH = 11, MOST_WIDTH = 32, MOST_CONFUSION = 16, CELL = 9 };
    const size_t classes = scores->classes;
    char buffer[24];
    int width = LEAST_WIDTH;
    for (size_t c = 0; c < classes; c++) {
        const int wide = cli_text_width(class_name(model, c, buffer));
        if (wide > width) width = wide > MOST_WIDTH ? MOST_WIDTH : wide;
    }
    printf("\n%-*s  %9s  %9s  %9s  %9s\n", width, "class", "precision", "recall", "f1", "rows");
    for (size_t c = 0; c < classes; c++) {
        cli_print_text(class_name(model, c, buffer), width);
        score_print(scores->precision[c]);
        score_print(scores->recall[c]);
        score_print(scores->f1[c]);
        printf("  %9.0f\n", scores->rows[c]);
    }
    printf("%-*s", width, "mean");
    score_print(scores_mean(scores->precision, scores));
    score_print(scores_mean(scores->recall, scores));
    score_print(scores_mean(scores->f1, scores));
    putchar('\n');
    if (classes > MOST_CONFUSION) return;
    printf("\n%-*s", width, "true \\ said");
    for (size_t c = 0; c < classes; c++) {
        const int wide = cli_text_width(class_name(model, c, buffer));
        printf("  %*s", wide < CELL ? CELL - wide : 0, "");
        cli_print_text(class_name(model, c, buffer), wide < CELL ? wide : CELL);
    }
    for (size_t r = 0; r < classes; r++) {
        putchar('\n');
        cli_print_text(class_name(model, r, buffer), width);
        for (size_t c = 0; c < classes; c++)
            printf("  %*llu", CELL, (unsigned long long)confusion[r * classes + c]);
    }
    putchar('\n');
}

/* Each target's error beside that of its mean. */
static void targets_print(const struct targets *targets)
{
    enum { WIDTH = 24 };
    printf("\n%-*s  %9s  %9s  %9s\n", WIDTH, "target", "rmse", "guess", "r2");
    for (int i = 0; i < targets->count; i++) {
        const struct dt_target_score *score = &targets->scores[i];
        if (targets->names.count == (size_t)targets->count)
            cli_print_text(targets->names.items[i], WIDTH);
        else
            printf("%-*d", WIDTH, i);
        printf("  %9.5g  %9.5g  %9.4f\n", score->rmse, score->guess_rmse, score->r2);
    }
}

static void metrics_print_table(const struct cli_model *model,
                                const struct dt_metric_values *values, const uint64_t *confusion,
                                const struct dt_class_scores *scores, const struct targets *targets)
{
    const char *name;
    double value;
    printf("step %llu, %.0f rows\n", (unsigned long long)model->predictor->file.step, values->rows);
    for (int i = 0; dt_metric_at(i, values, &name, &value); i++)
        if (!isnan(value)) printf("%-10s  %.5g\n", name, value);
    if (confusion) classes_print(model, scores, confusion);
    if (targets->count) targets_print(targets);
}

/* ---- the command ---------------------------------------------------------------------------- */

dt_status cmd_eval(int argc, char **argv)
{
    struct cli_model model;
    struct dt_source *source = NULL;
    struct dt_metrics *metrics = NULL;
    struct dt_measure *measure = NULL;
    struct dt_metric_values values;
    struct dt_class_scores scores = {0};
    struct targets targets = {0};
    dt_status status;
    DT_TRY(cli_model_open(&model, argc, argv));
    const struct dt_model *network = model.predictor->model;
    DT_GUARD(cli_model_survey(&model, DT_PART_EVAL, &source));
    DT_GUARD(dt_metrics_create(network, &metrics));
    const uint64_t chunks = dt_measure_chunks(&model.config, source);
    DT_GUARD(dt_measure_create(&model.config, source, network, 0, chunks, &measure));
    for (uint64_t c = 0; c < chunks; c++)
        DT_GUARD(dt_measure_add(measure, model.predictor->file.params, c, metrics));
    const uint64_t *confusion = dt_metrics_confusion(metrics);
    dt_metrics_values(metrics, &values);
    if (confusion)
        DT_GUARD(dt_class_scores_make(confusion, (size_t)model.predictor->classes, &scores));
    DT_GUARD(targets_score(&model, metrics, &targets));
    if (isatty(STDOUT_FILENO) && !model.config.eval.json)
        metrics_print_table(&model, &values, confusion, &scores, &targets);
    else
        status = metrics_print_json(&model, &values, confusion, &scores, &targets);
done:
    dt__names_free(targets.names.items, targets.names.count);
    dt_free(scores.precision);
    dt_measure_destroy(measure);
    dt_metrics_destroy(metrics);
    dt_source_destroy(source);
    cli_model_close(&model);
    return status;
}
