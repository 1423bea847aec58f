#include "train/certify.h"

#include <math.h>
#include <string.h>

#include "train/bank.h"
#include "train/sets.h"

dt_status dt__judged_read(const struct dt_config *config, struct dt_world *world,
                          const struct dt_source *source, const struct dt_model *model,
                          const float *params, struct dt_judged *out)
{
    const uint64_t chunks = dt__measure_chunks(config, source);
    const size_t rows = (size_t)dt__measure_rows(config, source);
    struct dt_measure *measure = NULL;
    dt_status status;
    *out = (struct dt_judged){0};
    DT_GUARD(dt__measure_create(config, source, model, 0, chunks, &measure));
    DT_GUARD(dt__judged_alloc(model, rows, config->eval.weighted, out));
    for (uint64_t c = 0; c < chunks; c++) {
        const float *logits;
        struct dt_batch batch;
        dt__world_heartbeat(world, "evaluation", c);
        DT_GUARD(dt__measure_outputs(measure, params, c, &batch, &logits));
        dt__judged_set(model, out, (size_t)c * DT_EVAL_CHUNK, &batch, logits);
        DT_GUARD(dt__stop_check());
    }
done:
    dt__measure_destroy(measure);
    if (status) dt__judged_free(out);
    return status;
}

/* ---- what was asked for, what was found ----------------------------------------------------- */

static const char *class_name(const struct dt_schema *schema, int class_number)
{
    return schema->label_names ? schema->label_names[class_number] : class_number ? "1" : "0";
}

dt_status dt__certainty_begin(const struct dt_config *config, const struct dt_schema *schema,
                              struct dt_certainty *out)
{
    const char *positive = config->eval.positive;
    struct dt__threshold rule;
    *out = (struct dt_certainty){.known = dt__config_certifies(config),
                                 .positive = 1,
                                 .temperature = 1,
                                 .coverage = config->predict.interval};
    DT_TRY(dt__threshold_parse(config->eval.threshold, &rule));
    const bool cuts = *positive || rule.kind != DT__CUT_AT || rule.number[0] != 0.5;
    if (!cuts) return DT_OK;
    if (schema->classes != 2)
        return dt_fail(DT_EUSAGE,
                       "eval.positive, eval.threshold: the data has %d classes; expected 2",
                       schema->classes);
    while (*positive && out->positive >= 0 && strcmp(class_name(schema, out->positive), positive))
        out->positive--;
    if (out->positive < 0)
        return dt_fail(DT_EUSAGE, "eval.positive=%.100s: no such class; expected %.100s or %.100s",
                       positive, class_name(schema, 1), class_name(schema, 0));
    if (rule.kind != DT__CUT_AT) return DT_OK;
    const double cut = log(rule.number[0] / (1 - rule.number[0]));
    out->cut = out->positive ? cut : -cut;
    return DT_OK;
}

void dt__certainty_print(const struct dt_config *config, const struct dt_schema *schema,
                         const struct dt_certainty *certainty, const char *of)
{
    const double cut = certainty->positive ? certainty->cut : -certainty->cut;
    const double n =
        schema->targets > 1 ? certainty->residuals / schema->targets : certainty->residuals;
    float margin = 0;
    if (config->eval.calibrate && certainty->temperature == 1)
        dt__info(
            "eval.calibrate: no temperature is kept: none lowers the log loss of the rows held "
            "out by more than its standard error, or all of them are predicted right");
    else if (config->eval.calibrate)
        dt__info(
            "eval.calibrate: outputs are divided by a temperature of %.4g, which the rows held "
            "out fitted",
            certainty->temperature);
    if (strcmp(config->eval.threshold, "0.5") != 0)
        dt__info("eval.threshold=%s: a row is called '%s' above a probability of %.4g%s",
                 config->eval.threshold, class_name(schema, certainty->positive),
                 1 / (1 + exp(-cut)),
                 dt__config_fits(config) ? ", which the rows held out chose" : "");
    if (certainty->residuals && schema->targets <= 1 &&
        !dt__certainty_margin(certainty, 1, certainty->coverage, &margin))
        dt__info("predict.interval=%g: intervals reach %.4g beyond the predictions, by %.0f %s",
                 certainty->coverage, (double)margin, n, of);
    else if (certainty->residuals)
        dt__info("predict.interval=%g: intervals of %d targets, by %.0f %s", certainty->coverage,
                 schema->targets, n, of);
}

dt_status dt__certainty_check(const struct dt_config *config, const struct dt_source *held_out,
                              uint64_t residuals)
{
    struct dt__threshold rule;
    struct dt_batch labels;
    size_t of[2] = {0};
    if (config->predict.interval > 0)
        DT_TRY(dt__certainty_suffices((size_t)residuals, config->predict.interval));
    DT_TRY(dt__threshold_parse(config->eval.threshold, &rule));
    if (!held_out || rule.kind == DT__CUT_AT) return DT_OK;
    DT_TRY(dt__source_targets(held_out, &labels));
    for (int r = 0; r < labels.rows; r++)
        of[labels.label[r] == 1] +=
            !config->eval.weighted || !labels.weight || labels.weight[r] > 0;
    dt__source_targets_free(&labels);
    return dt__certainty_classes(of[0], of[1]);
}

/* ---- the end of a run ----------------------------------------------------------------------- */

/* Returns the test rows; NULL: there are none. */
static const struct dt_source *test_rows(const struct dt_job *job)
{
    for (int i = 1; i < job->sets.count; i++)
        if (job->sets.at[i].last) return job->sets.at[i].source;
    return NULL;
}

dt_status dt__certify_check(const struct dt_job *job)
{
    const struct dt_source *test = test_rows(job);
    const uint64_t residuals = test ? dt__measure_rows(job->config, test) : 0;
    return dt__certainty_check(job->config, job->eval, residuals);
}

static dt_status certainty_fit(const struct dt_job *job, const float *params,
                               struct dt_certainty *out)
{
    const struct dt_config *config = job->config;
    const struct dt_source *test = test_rows(job);
    struct dt_judged rows;
    dt_status status = DT_OK;
    if (dt__config_fits(config)) {
        DT_TRY(dt__judged_read(config, job->world, job->eval, job->model, params, &rows));
        status = dt__certainty_fit(config, job->model, &rows, out);
        out->rows_crc = dt__source_crc(job->eval);
        dt__judged_free(&rows);
    }
    if (status || !(config->predict.interval > 0)) return status;
    DT_TRY(dt__judged_read(config, job->world, test, job->model, params, &rows));
    status = dt__certainty_keep(job->model, &rows, out);
    dt__judged_free(&rows);
    return status;
}

static dt_status certainty_record(struct dt_bank *bank, uint64_t step,
                                  const struct dt_certainty *certainty)
{
    const struct dt_schema *schema = dt__source_schema(bank->job->train);
    struct dt_json *record = dt__record_begin(bank->log.report, "certainty");
    dt__json_int(record, "step", (int64_t)step);
    if (schema->classes) dt__json_real(record, "temperature", certainty->temperature);
    if (schema->classes == 2) {
        const double cut = certainty->positive ? certainty->cut : -certainty->cut;
        dt__json_text(record, "positive", class_name(schema, certainty->positive));
        dt__json_real(record, "threshold", 1 / (1 + exp(-cut)));
    }
    if (certainty->residuals) dt__json_int(record, "residuals", certainty->residuals);
    return dt__record_end(bank->log.report);
}

/* Writes the exports of the model in *file again, with the fitted values in *certainty. */
static dt_status exports_write(const struct dt_bank *bank, const struct dt_checkpoint *file,
                               const struct dt_certainty *certainty)
{
    const struct dt_job *job = bank->job;
    const bool chosen = job->best.known && job->best.step == file->step;
    const bool only =
        !job->eval && job->config->export.best == DT_EXPORT_YES; /* without held-out rows every
                                                                  * model is the best */
    struct dt_checkpoint model = *file;                          /* borrows its memory */
    model.certainty = *certainty;
    model.best = job->best;
    if (only || (chosen && dt__exports(job, &job->best)))
        DT_TRY(dt__export_write(job->dirs->best_dir.text, &model, job->config->export.keep));
    model.best = (struct dt_best){0};
    if (!job->config->export.latest || file->step != job->step) return DT_OK;
    return dt__export_write(job->dirs->latest_dir.text, &model, job->config->export.keep);
}

dt_status dt__certify(struct dt_bank *bank, const struct dt_checkpoint *file)
{
    struct dt_job *job = bank->job;
    const struct dt_schema *schema = dt__source_schema(job->train);
    struct dt_certainty certainty;
    if (!dt__config_certifies(job->config)) return DT_OK;
    DT_TRY(dt__certainty_begin(job->config, schema, &certainty));
    dt_status status = certainty_fit(job, file->params, &certainty);
    if (!status) status = exports_write(bank, file, &certainty);
    if (!status) status = certainty_record(bank, file->step, &certainty);
    if (!status)
        dt__certainty_print(job->config, schema, &certainty,
                            "residuals of the test rows, so that none are left for the score");
    if (!status) dt__model_set_certainty(job->model, &certainty);
    dt_free(certainty.residual);
    return status;
}
