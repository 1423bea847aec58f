/* `dtrain eval`: measures a model on held-out data as evaluation during training does, chunk by
 * chunk. On a terminal it prints a table, with the scores of each class or target; elsewhere one
 * JSON line. */
#include <math.h>
#include <unistd.h>

#include "cli/cli.h"
#include "text/text.h"
#include "report/report.h"
#include "train/train.h"

/* Limit for scores of numeric targets; with more, as in fields, none are shown. */
enum { MOST_TARGETS = 64 };

/* The result of a measurement. */
struct result {
    const struct dt_predictor *predictor;
    struct dt_metric_values values;
    const uint64_t *confusion; /* (classes, classes); NULL: no confusion matrix and no scores by
                                * class */
    struct dt_class_scores scores;
    int ntargets;
    struct dt_target_score target[MOST_TARGETS];
    struct dt__names names; /* (ntargets), or empty */
};

/* Returns "Pullover", or the class's number. */
static const char *class_name(const struct result *result, size_t c, char buffer[24])
{
    const char *name = dt_predictor_class_name(result->predictor, (int)c);
    snprintf(buffer, 24, "%zu", c);
    return name ? name : buffer;
}

static dt_status targets_score(struct result *result, const struct dt_metrics *metrics)
{
    const struct dt_schema *schema = &result->predictor->file.schema;
    int *n = &result->ntargets;
    if (schema->targets < 2 || schema->targets > MOST_TARGETS) return DT_OK;
    while (*n < schema->targets && dt__metrics_target(metrics, *n, &result->target[*n]))
        ++*n;
    return schema->label_column ? dt__names_split(schema->label_column, &result->names) : DT_OK;
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static dt_status result_print_json(const struct result *result)
{
    const struct dt_checkpoint *file = &result->predictor->file;
    const struct dt_class_scores *scores = &result->scores;
    const size_t classes = scores->classes, targets = (size_t)result->ntargets;
    struct dt_json json = {0};
    char name[24];
    double rmse[MOST_TARGETS], r2[MOST_TARGETS];
    dt__json_start(&json);
    dt__json_int(&json, "step", (int64_t)file->step);
    dt__json_metrics(&json, &result->values);
    if (result->predictor->classes == 2)
        dt__json_text(&json, "positive", class_name(result, 1, name));
    if (result->confusion) {
        dt__json_confusion(&json, result->confusion, (int)classes);
        if (file->schema.label_names)
            dt__json_texts(&json, "labels", file->schema.label_names, classes);
        dt__json_reals(&json, "class_precision", scores->precision, classes);
        dt__json_reals(&json, "class_recall", scores->recall, classes);
        dt__json_reals(&json, "class_f1", scores->f1, classes);
    }
    for (size_t i = 0; i < targets; i++)
        rmse[i] = result->target[i].rmse, r2[i] = result->target[i].r2;
    if (targets) {
        dt__json_reals(&json, "target_rmse", rmse, targets);
        dt__json_reals(&json, "target_r2", r2, targets);
    }
    dt_status status = dt__json_end(&json);
    if (!status) puts(json.text.data);
    dt__json_free(&json);
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

/* Mean over the classes that have rows; one that is never predicted counts as 0. */
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

/* Prints precision, recall and f1 of each class and, unless there are many, the confusion matrix:
 * one row a true class, one column a predicted one. */
static void classes_print(const struct result *result)
{
    enum { LEAST_WIDTH = 11, MOST_WIDTH = 32, MOST_CONFUSION = 16, CELL = 9 };
    const struct dt_class_scores *scores = &result->scores;
    const size_t classes = scores->classes;
    char buffer[24];
    int width = LEAST_WIDTH;
    for (size_t c = 0; c < classes; c++) {
        const int wide = cli_text_width(class_name(result, c, buffer));
        if (wide > width) width = wide > MOST_WIDTH ? MOST_WIDTH : wide;
    }
    printf("\n%-*s  %9s  %9s  %9s  %9s\n", width, "class", "precision", "recall", "f1", "rows");
    for (size_t c = 0; c < classes; c++) {
        cli_print_text(class_name(result, c, buffer), width);
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
        const int wide = cli_text_width(class_name(result, c, buffer));
        printf("  %*s", wide < CELL ? CELL - wide : 0, "");
        cli_print_text(class_name(result, c, buffer), wide < CELL ? wide : CELL);
    }
    for (size_t r = 0; r < classes; r++) {
        putchar('\n');
        cli_print_text(class_name(result, r, buffer), width);
        for (size_t c = 0; c < classes; c++)
            printf("  %*llu", CELL, (unsigned long long)result->confusion[r * classes + c]);
    }
    putchar('\n');
}

/* Prints each target's error next to that of its mean. */
static void targets_print(const struct result *result)
{
    enum { WIDTH = 24 };
    printf("\n%-*s  %9s  %9s  %9s\n", WIDTH, "target", "rmse", "guess", "r2");
    for (int i = 0; i < result->ntargets; i++) {
        const struct dt_target_score *score = &result->target[i];
        if (result->names.count == (size_t)result->ntargets)
            cli_print_text(result->names.items[i], WIDTH);
        else
            printf("%-*d", WIDTH, i);
        printf("  %9.5g  %9.5g  %9.4f\n", score->rmse, score->guess_rmse, score->r2);
    }
}

static void result_print_table(const struct result *result)
{
    const char *name;
    double value;
    printf("step %llu, %.0f rows\n", (unsigned long long)result->predictor->file.step,
           result->values.rows);
    for (int i = 0; dt__metric_at(i, &result->values, &name, &value); i++)
        if (!isnan(value)) printf("%-10s  %.5g\n", name, value);
    if (result->confusion) classes_print(result);
    if (result->ntargets) targets_print(result);
}

/* ---- the command ---------------------------------------------------------------------------- */

dt_status cmd_eval(int argc, char **argv)
{
    struct cli_model model;
    struct dt_source *source = NULL;
    struct dt_metrics *metrics = NULL;
    struct dt_measure *measure = NULL;
    struct result result = {0};
    dt_status status;
    DT_TRY(cli_model_open(&model, argc, argv));
    result.predictor = model.predictor;
    const struct dt_model *network = model.predictor->model;
    DT_GUARD(cli_model_survey(&model, DT_PART_EVAL, &source));
    DT_GUARD(dt__metrics_create(network, &model.config, &metrics));
    const uint64_t chunks = dt__measure_chunks(&model.config, source);
    DT_GUARD(dt__measure_create(&model.config, source, network, 0, chunks, &measure));
    for (uint64_t c = 0; c < chunks; c++)
        DT_GUARD(dt__measure_add(measure, model.predictor->file.params, c, metrics));
    result.confusion = dt__metrics_confusion(metrics);
    dt__metrics_values(metrics, &result.values);
    if (result.confusion)
        DT_GUARD(dt__class_scores_make(result.confusion, (size_t)model.predictor->classes,
                                       &result.scores));
    DT_GUARD(targets_score(&result, metrics));
    if (isatty(STDOUT_FILENO) && !model.config.eval.json)
        result_print_table(&result);
    else
        status = result_print_json(&result);
done:
    dt__names_free(result.names.items, result.names.count);
    dt_free(result.scores.precision);
    dt__measure_destroy(measure);
    dt__metrics_destroy(metrics);
    dt__source_destroy(source);
    cli_model_close(&model);
    return status;
}
