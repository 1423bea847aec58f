#include "train/incumbent.h"

#include <math.h>
#include <string.h>

#include "config/named_sets.h"
#include "report/history.h"
#include "train/bank.h"

bool dt__exports(const struct dt_job *job, const struct dt_best *best)
{
    const int64_t exports = job->config->export.best;
    return exports == DT_EXPORT_BETTER ? dt__best_beats(job, best, &job->incumbent) : exports;
}

void dt__incumbent_free(struct dt_incumbent *incumbent)
{
    dt_free(incumbent->path);
}

/* ---- measuring ------------------------------------------------------------------------------ */

/* The old model with its layers, units and schema. */
struct old {
    struct dt_checkpoint file;
    struct dt_model *model;
    struct dt_source *source; /* the held-out rows, read with this schema */
};

static void old_free(struct old *old)
{
    dt__source_destroy(old->source);
    dt__model_destroy(old->model);
    dt__checkpoint_free(&old->file);
}

static dt_status old_load(const char *from, struct old *old, char **out_path)
{
    const struct dt_schema *schema = &old->file.schema;
    DT_TRY(dt__export_load(from, false, &old->file, out_path));
    DT_TRY(dt__model_create(&old->file.desc, &old->model));
    if (old->model->params != old->file.params_count)
        return dt_fail(DT_EFORMAT, "%s: its parameters are not those of its layers", *out_path);
    DT_TRY(dt__model_set_units(old->model, schema->target_mean, schema->target_std));
    return dt__model_set_range(old->model, schema->target_least, schema->target_greatest);
}

/* Checks that eval.metric means the same for both models. DT_EMISMATCH, DT_EUSAGE. */
static dt_status old_compare(const struct dt_job *job, const struct old *old)
{
    const struct dt_schema *now = dt__source_schema(job->train), *before = &old->file.schema;
    struct dt_metric_score ours, theirs;
    DT_TRY(dt__metric_pick(job->model, job->config->eval.metric, NULL, &ours));
    DT_TRY(dt__metric_pick(old->model, job->config->eval.metric, NULL, &theirs));
    if (now->task != before->task || strcmp(ours.name, theirs.name) ||
        (job->model->loss != old->model->loss && !strcmp(ours.name, "loss")))
        return dt_fail(DT_EMISMATCH, "it has another task or loss");
    if (now->classes == 2 && before->classes == 2 && now->label_names && before->label_names &&
        strcmp(now->label_names[1], before->label_names[1]))
        return dt_fail(DT_EMISMATCH, "its class 1 is '%s', not '%s'", before->label_names[1],
                       now->label_names[1]);
    return DT_OK;
}

/* Surveys the held-out rows with the old model's schema. */
static dt_status old_survey(const struct dt_job *job, const struct dt__train_options *options,
                            struct old *old)
{
    const struct dt_config *config = job->config;
    const struct dt_schema *schema = &old->file.schema;
    const bool files = *config->data.eval;
    const struct dt_arrays *arrays = files ? options->eval : options->train;
    struct dt_config borrowed = *config;
    if (!files) {
        borrowed.data.eval = config->data.train;
        borrowed.data.eval_labels = config->data.train_labels;
        borrowed.data.eval_fraction = 0;
    }
    DT_TRY(arrays ? dt__source_from_arrays(&borrowed, arrays, schema, &old->source)
                  : dt__source_survey(&borrowed, DT_PART_ALSO, schema, &old->source));
    return files ? DT_OK : dt__source_take_rows(old->source, job->eval);
}

static dt_status old_measure(const struct dt_job *job, const struct old *old,
                             struct dt_metric_values *out)
{
    const uint64_t chunks = dt__measure_chunks(job->config, old->source);
    struct dt_metrics *metrics = NULL;
    struct dt_measure *measure = NULL;
    dt_status status;
    DT_GUARD(dt__metrics_create(old->model, job->config, &metrics));
    DT_GUARD(dt__measure_create(job->config, old->source, old->model, 0, chunks, &measure));
    for (uint64_t c = 0; c < chunks; c++) {
        dt__world_heartbeat(job->world, "evaluation", job->step);
        DT_GUARD(dt__measure_add(measure, old->file.params, c, metrics));
        DT_GUARD(dt__stop_check());
    }
    dt__metrics_values(metrics, out);
done:
    dt__measure_destroy(measure);
    dt__metrics_destroy(metrics);
    return status;
}

static dt_status incumbent_measure(struct dt_bank *bank, const char *from,
                                   const struct dt__train_options *options)
{
    const struct dt_job *job = bank->job;
    struct dt_incumbent *incumbent = &bank->incumbent;
    struct old old = {0};
    dt_status status = old_load(from, &old, &incumbent->path);
    if (!status) status = old_compare(job, &old);
    if (!status) status = old_survey(job, options, &old);
    if (!status) status = old_measure(job, &old, &incumbent->values);
    incumbent->fresh = !status;
    old_free(&old);
    return status;
}

/* ---- the value to beat --------------------------------------------------------------------- */

static void incumbent_set(struct dt_job *job, const char *metric, double value, double loss,
                          int64_t era)
{
    job->incumbent = (struct dt_best){.known = true, .value = value, .loss = loss, .era = era};
    snprintf(job->incumbent.metric, sizeof job->incumbent.metric, "%s", metric);
}

/* Sets job->incumbent from the record of an earlier start that has the same best_era, and so the
 * same held-out rows. Returns false if there is none. */
static bool incumbent_recall(struct dt_bank *bank, const char *metric, int64_t era)
{
    struct dt_job *job = bank->job;
    struct dt_history *history;
    if (!bank->start.resumed || dt_history_read(job->config->run.dir, &history)) return false;
    for (size_t i = dt_history_count(history, DT_RECORD_SET); i-- > 0;) {
        const char *set = dt_history_text(history, DT_RECORD_SET, i, "set");
        const double value = dt_history_real(history, DT_RECORD_SET, i, metric);
        if (!strcmp(set, DT__INIT_SET) && !isnan(value) &&
            dt_history_real(history, DT_RECORD_SET, i, "best_era") == (double)era)
            incumbent_set(job, metric, value, dt_history_real(history, DT_RECORD_SET, i, "loss"),
                          era);
    }
    dt_history_free(history);
    return job->incumbent.known;
}

dt_status dt__incumbent_find(struct dt_bank *bank, const struct dt__train_options *options)
{
    struct dt_job *job = bank->job;
    const struct dt_config *config = bank->start.resumed ? &bank->start.before : job->config;
    const char *from = config->run.init, *metric = dt__metric_name(job, job->config);
    const bool better = job->config->export.best == DT_EXPORT_BETTER;
    const int64_t era = bank->start.resumed ? bank->start.loaded.best.era : 0;
    if (better && !*from)
        return dt_fail(DT_EMISMATCH, "export.best=better: the run that goes on did not start from "
                                     "a model (run.init); expected yes or no");
    if (!*from || !job->eval || options->test || job->model->outputs.own ||
        incumbent_recall(bank, metric, era))
        return DT_OK;
    const dt_status status = incumbent_measure(bank, from, options);
    if (status == DT_EMEMORY || status == DT_STOPPED || (status && better))
        return dt_fail_prefix(status, "run.init: measuring the old model: ");
    if (status)
        dt__info("run.init: the old model is not measured on these rows: %s", dt_error_text());
    if (status) return DT_OK;
    struct dt_metric_score score;
    DT_TRY(dt__metric_pick(job->model, job->config->eval.metric, &bank->incumbent.values, &score));
    incumbent_set(job, metric, score.value, bank->incumbent.values.loss, era);
    return DT_OK;
}

dt_status dt__incumbent_record(struct dt_bank *bank)
{
    const struct dt_job *job = bank->job;
    const struct dt_incumbent *incumbent = &bank->incumbent;
    const struct dt_metric_values *values = &incumbent->values;
    const struct dt_metric_score shown = dt__metric_shown(job, values);
    char extra[64] = "";
    if (!incumbent->fresh) return DT_OK;
    if (strcmp(shown.name, "loss"))
        snprintf(extra, sizeof extra, ", %s %.5g", shown.name, shown.value);
    dt__info("the old model on the rows held out: loss %.5g%s (%s)", values->loss, extra,
             incumbent->path);
    struct dt_json *record = dt__record_begin(bank->log.report, "eval");
    dt__json_text(record, "set", DT__INIT_SET);
    dt__json_int(record, "step", (int64_t)job->step);
    dt__json_metrics(record, values);
    dt__json_text(record, "model", incumbent->path);
    dt__json_int(record, "best_era", job->incumbent.era);
    return dt__record_end(bank->log.report);
}
