/* `dtrain eval`: measures a model on held-out data, chunk by chunk, as evaluation during training
 * does. Prints a table with the scores of each class or target on a terminal, and one JSON line
 * elsewhere. */
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "config/named_sets.h"
#include "config/threshold.h"
#include "text/text.h"
#include "report/report.h"
#include "train/train.h"

/* Limit for scores by target; with more targets (fields, for example) none are shown. */
enum { MOST_TARGETS = 64 };

/* The measurement of one set of rows. */
struct result {
    const struct dt_predictor *predictor;
    struct dt_metrics *metrics;
    struct dt_metric_values values;
    const char *fitted; /* parts of the model that were fitted to these rows; NULL: none */
    int folds;          /* the rows are those of all folds of a search, each measured by the members
                         * that did not train on it; 0: they are not */
    bool has_interval;  /* eval.full: each value has an interval, from `low` to `high` */
    struct dt_metric_values low, high;
    const uint64_t *confusion; /* (classes, classes); NULL: there is no confusion matrix, and there
                                * are no scores by class */
    struct dt_class_scores scores;
    int ntargets;
    struct dt_target_score target[MOST_TARGETS];
    struct dt__names names; /* (ntargets) names of the targets, or empty */
};

/* Returns the name of a class or, if it has none, its number as text. */
static const char *class_name(const struct result *result, size_t c, char buffer[24])
{
    const char *name = dt_predictor_class_name(result->predictor, (int)c);
    snprintf(buffer, 24, "%zu", c);
    return name ? name : buffer;
}

static dt_status targets_score(struct result *result)
{
    const struct dt_schema *schema = &result->predictor->file.schema;
    int *n = &result->ntargets;
    if (schema->targets < 2 || schema->targets > MOST_TARGETS) return DT_OK;
    while (*n < schema->targets && dt__metrics_target(result->metrics, *n, &result->target[*n]))
        ++*n;
    return schema->label_column ? dt__names_split(schema->label_column, &result->names) : DT_OK;
}

/* The results for the held-out rows, `main`, and for the sets of eval.also, `set`. */
struct report {
    struct result main;
    struct dt__named_sets named;
    struct result *set; /* (named.count) */
};

/* ---- JSON ----------------------------------------------------------------------------------- */

static void result_add(struct dt_json *json, const struct result *result)
{
    const struct dt_checkpoint *file = &result->predictor->file;
    const struct dt_class_scores *scores = &result->scores;
    const size_t classes = scores->classes, targets = (size_t)result->ntargets;
    const char *metric;
    char name[64];
    double rmse[MOST_TARGETS], r2[MOST_TARGETS], ends[2];
    dt__json_metrics(json, &result->values);
    for (int i = 0; result->has_interval && dt__metric_at(i, &result->low, &metric, &ends[0]);
         i++) {
        (void)dt__metric_at(i, &result->high, &metric, &ends[1]);
        snprintf(name, sizeof name, "%s_interval", metric);
        if (!isnan(ends[0])) dt__json_reals(json, name, ends, 2);
    }
    if (result->predictor->classes == 2)
        dt__json_text(json, "positive",
                      class_name(result, (size_t)result->predictor->model->outputs.positive, name));
    if (result->fitted) dt__json_text(json, "fitted", result->fitted);
    if (result->folds) dt__json_int(json, "folds", result->folds);
    if (result->confusion) {
        dt__json_confusion(json, result->confusion, (int)classes);
        if (file->schema.label_names)
            dt__json_texts(json, "labels", file->schema.label_names, classes);
        dt__json_reals(json, "class_precision", scores->precision, classes);
        dt__json_reals(json, "class_recall", scores->recall, classes);
        dt__json_reals(json, "class_f1", scores->f1, classes);
    }
    for (size_t i = 0; i < targets; i++)
        rmse[i] = result->target[i].rmse, r2[i] = result->target[i].r2;
    if (targets) {
        dt__json_reals(json, "target_rmse", rmse, targets);
        dt__json_reals(json, "target_r2", r2, targets);
    }
}

static dt_status report_print_json(const struct report *report)
{
    const size_t sets = report->named.count;
    struct dt_json json = {0};
    dt__json_start(&json);
    dt__json_int(&json, "step", (int64_t)report->main.predictor->file.step);
    result_add(&json, &report->main);
    if (sets) dt__json_open(&json, "sets");
    for (size_t i = 0; i < sets; i++) {
        dt__json_open(&json, report->named.items[i].name);
        result_add(&json, &report->set[i]);
        dt__json_close(&json);
    }
    if (sets) dt__json_close(&json);
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

/* Returns the mean of a score over the classes that have rows. The score of a class that is never
 * predicted counts as 0. */
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

/* Prints precision, recall and f1 of each class and, unless there are many classes, the confusion
 * matrix: one row per actual class, one column per predicted class. */
static void classes_print(const struct result *result)
{
    enum { LEAST_WIDTH = 18, MOST_WIDTH = 32, MOST_CONFUSION = 16, CELL = 9 };
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
    printf("\n%-*s", width, "actual \\ predicted");
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

/* Prints the error of each target, next to the error of always predicting the target's mean. */
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

static void metrics_print(const struct result *result)
{
    const char *name;
    double value, low, high;
    for (int i = 0; dt__metric_at(i, &result->values, &name, &value); i++) {
        if (isnan(value)) continue;
        printf("%-*s  %.5g", result->has_interval ? 17 : 10, name, value);
        if (result->has_interval) {
            (void)dt__metric_at(i, &result->low, &name, &low);
            (void)dt__metric_at(i, &result->high, &name, &high);
            printf("  (%.5g to %.5g)", low, high);
        }
        putchar('\n');
    }
}

static void report_print_table(const struct report *report)
{
    const struct result *main = &report->main;
    printf("step %llu, %.0f rows\n", (unsigned long long)main->predictor->file.step,
           main->values.rows);
    if (main->folds)
        printf("(rows of %d folds, each by the members that did not train on it)\n", main->folds);
    if (main->fitted) printf("(these rows also fitted the model's %s)\n", main->fitted);
    metrics_print(main);
    if (main->confusion) classes_print(main);
    if (main->ntargets) targets_print(main);
    for (size_t i = 0; i < report->named.count; i++) {
        const struct dt_metric_values *values = &report->set[i].values;
        printf("\nset '%s', %.0f rows", report->named.items[i].name, values->rows);
        if (values->unknown > 0)
            printf(", %.0f of classes that training never saw", values->unknown);
        puts(report->set[i].fitted ? ", which also fitted the model" : "");
        metrics_print(&report->set[i]);
    }
}

/* ---- the command ---------------------------------------------------------------------------- */

static void result_free(struct result *result)
{
    dt__names_free(result->names.items, result->names.count);
    dt_free(result->scores.precision);
    dt__metrics_destroy(result->metrics);
}

/* Returns which parts of the model were fitted to these rows, which makes their score too good;
 * NULL: none. */
static const char *rows_fitted(const struct cli_model *model, const struct dt_source *rows)
{
    static const char *const parts[2][2] = {{NULL, "temperature"},
                                            {"threshold", "temperature and threshold"}};
    const struct dt_certainty *certainty = &model->predictor->file.certainty;
    struct dt__threshold rule;
    if (!certainty->rows_crc || dt__source_crc(rows) != certainty->rows_crc) return NULL;
    const bool cuts = !dt__threshold_parse(model->config.eval.threshold, &rule) &&
                      rule.kind != DT__CUT_AT; /* a given probability is not fitted to rows */
    return parts[cuts][certainty->temperature != 1];
}

/* Measures the rows of a source, and adds them to the result. */
static dt_status rows_measure(const struct cli_model *model, const struct dt_model *network,
                              const struct dt_source *source, struct result *result)
{
    const float *params = model->predictor->file.params;
    const uint64_t chunks = dt__measure_chunks(&model->config, source);
    struct dt_measure *measure = NULL;
    dt_status status;
    DT_GUARD(dt__measure_create(&model->config, source, network, 0, chunks, &measure));
    for (uint64_t c = 0; c < chunks; c++)
        DT_GUARD(dt__measure_add(measure, params, c, result->metrics));
    result->has_interval = model->config.eval.full && !network->folds;
    if (result->has_interval)
        status = dt__measure_intervals(&model->config, measure, params, chunks, &result->low,
                                       &result->high);
done:
    dt__measure_destroy(measure);
    return status;
}

static dt_status result_begin(const struct cli_model *model, const struct dt_source *source,
                              struct result *result)
{
    result->predictor = model->predictor;
    result->fitted = rows_fitted(model, source);
    return dt__metrics_create(model->predictor->model, &model->config, &result->metrics);
}

static dt_status result_end(struct result *result)
{
    result->confusion = dt__metrics_confusion(result->metrics);
    dt__metrics_values(result->metrics, &result->values);
    if (result->confusion)
        DT_TRY(dt__class_scores_make(result->confusion, (size_t)result->predictor->classes,
                                     &result->scores));
    return targets_score(result);
}

static dt_status result_measure(const struct cli_model *model, const struct dt_source *source,
                                struct result *result)
{
    DT_TRY(result_begin(model, source, result));
    DT_TRY(rows_measure(model, model->predictor->model, source, result));
    return result_end(result);
}

/* Measures the rows of all folds: each fold by the members that did not train on it. */
static dt_status folds_measure(const struct cli_model *model, struct result *result)
{
    const struct dt_predictor *predictor = model->predictor;
    struct dt_model members = *predictor->model; /* borrows all memory of the predictor's model */
    struct dt_source *train = NULL, *source = NULL;
    dt_status status;
    result->folds = members.folds = (int)model->config.search.folds;
    DT_GUARD(dt__source_survey(&model->config, DT_PART_TRAIN, &predictor->file.schema, &train));
    for (; members.fold < members.folds; members.fold++) {
        DT_GUARD(dt__source_fold(train, members.fold, DT__HELD_OUT, &source));
        if (members.fold == 0) DT_GUARD(result_begin(model, source, result));
        DT_GUARD(rows_measure(model, &members, source, result));
        dt__source_destroy(source);
        source = NULL;
    }
    status = result_end(result);
done:
    dt__source_destroy(source);
    dt__source_destroy(train);
    return status;
}

/* Surveys a sample of the rows that the run trained on, even if other rows are measured. */
static dt_status sample_survey(const struct cli_model *model, uint64_t rows, struct dt_source **out)
{
    struct dt_config config = model->config;
    struct dt_source *train;
    config.data.eval = ""; /* without the run's held-out rows: if it held rows out, it had no
                            * data.eval */
    config.data.eval_fraction = model->held_out;
    config.data.test_fraction = model->test;
    config.data.folds = model->folds;
    DT_TRY(dt__source_survey(&config, DT_PART_TRAIN, &model->predictor->file.schema, &train));
    const dt_status status = dt__source_sample(train, (uint64_t)config.run.seed, rows, out);
    dt__source_destroy(train);
    return status;
}

/* Surveys the rows of a set. */
static dt_status set_survey(const struct cli_model *model, const struct dt__named_set *set,
                            struct dt_source **out)
{
    const struct dt_schema *schema = &model->predictor->file.schema;
    const struct dt_config config = dt__set_config(&model->config, set);
    if (set->split) return dt__source_survey(&model->config, DT_PART_TEST, schema, out);
    if (set->sample) return sample_survey(model, set->sample, out);
    return dt__source_survey(&config, DT_PART_ALSO, schema, out);
}

static dt_status sets_measure(const struct cli_model *model, struct report *report)
{
    DT_TRY(dt__sets_parse(&model->config, &report->named));
    DT_TRY(dt__alloc(report->named.count, sizeof *report->set, "sets of rows", &report->set));
    for (size_t i = 0; i < report->named.count; i++) {
        struct dt_source *source = NULL;
        dt_status status = set_survey(model, &report->named.items[i], &source);
        if (!status) status = result_measure(model, source, &report->set[i]);
        if (report->named.items[i].split)
            report->set[i].fitted = model->predictor->file.certainty.residuals ? "interval" : NULL;
        dt__source_destroy(source);
        if (status)
            return dt_fail_prefix(status, "eval.also, set '%s': ", report->named.items[i].name);
    }
    return DT_OK;
}

static bool is_one_of(const struct dt__names *paths, const char *path)
{
    struct stat file, other;
    for (size_t i = 0; i < paths->count; i++)
        if (!stat(path, &file) && !stat(paths->items[i], &other) && file.st_ino == other.st_ino &&
            file.st_dev == other.st_dev)
            return true;
    return false;
}

/* Warns if a file of data.eval was also in data.train. */
static void rows_warn(const struct cli_model *model)
{
    const struct dt_config *config = &model->config;
    const bool held_out = model->held_out > 0 || model->folds || config->search.folds;
    struct dt__names train = {0}, eval = {0};
    size_t at = 0;
    dt_status status = dt__paths_expand("data.train", config->data.train, &train);
    if (!status) status = dt__paths_expand("data.eval", config->data.eval, &eval);
    while (at < eval.count && !is_one_of(&train, eval.items[at]))
        at++;
    if (at < eval.count)
        dt__warn("data.eval=%s: the model was trained on rows of this file, so its score is too "
                 "good%s",
                 eval.items[at],
                 held_out ? "; without data.eval, rows that were held out are measured" : "");
    dt__names_free(train.items, train.count);
    dt__names_free(eval.items, eval.count);
}

/* Measures data.eval if it is given; else the rows that the run held out or, for an ensemble of
 * folds, all rows. */
static dt_status main_measure(const struct cli_model *model, struct result *result)
{
    const bool given = dt__config_is_given(&model->config, "data.eval");
    struct dt_source *source = NULL;
    if (!given && model->config.search.folds && model->predictor->model->members)
        return folds_measure(model, result);
    if (given) rows_warn(model);
    DT_TRY(cli_model_survey(model, DT_PART_EVAL, &source));
    const dt_status status = result_measure(model, source, result);
    dt__source_destroy(source);
    return status;
}

dt_status cmd_eval(int argc, char **argv)
{
    struct cli_model model;
    struct report report = {0};
    dt_status status;
    DT_TRY(cli_model_open(&model, argc, argv));
    DT_GUARD(main_measure(&model, &report.main));
    DT_GUARD(sets_measure(&model, &report));
    if (isatty(STDOUT_FILENO) && !model.config.eval.json)
        report_print_table(&report);
    else
        status = report_print_json(&report);
done:
    for (size_t i = 0; report.set && i < report.named.count; i++)
        result_free(&report.set[i]);
    dt_free(report.set);
    dt__sets_free(&report.named);
    result_free(&report.main);
    cli_model_close(&model);
    return status;
}
