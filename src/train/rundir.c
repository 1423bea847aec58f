/* The run directory's files: configuration, records, checkpoints, exports. Bank only.
 *
 * A save is a copy of the state; the writer's thread does the rest, and what became of it is
 * collected later. What fails is tried again, but for the last save. */
#include <math.h>
#include <string.h>

#include "train/bank.h"

/* ---- saves ---------------------------------------------------------------------------------- */

/* A disk that is full stays so for a while. */
static const double RETRY_SECS = 10;

static bool are_finite(uint64_t n, const float *values)
{
    enum { LANES = 64 }; /* sums of zeros, unless some value is not finite; vectors of them */
    float lane[LANES] = {0}, sum = 0;
    uint64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] += values[i + (uint64_t)l] * 0.0f;
    for (; i < n; i++)
        sum += values[i] * 0.0f;
    for (int l = 0; l < LANES; l++)
        sum += lane[l];
    return sum == 0;
}

static bool can_save(const struct dt_bank *bank)
{
    return dt_clock_secs() >= bank->retry_at && !dt_writer_busy(bank->writer);
}

/* Rounds of local steps whose end a stop may not wait for are each saved, so that no more than one
 * is done again. */
bool dt__save_time_due(const struct dt_bank *bank)
{
    const struct dt_job *job = bank->job;
    const double secs = job->config->run.checkpoint_secs;
    const double round = bank->step_secs * (double)job->config->train.local_steps;
    const bool due = secs > 0 && dt_clock_secs() - bank->saved_at >= secs;
    return (due || (job->local && round > job->config->test.round_secs / 2)) && can_save(bank);
}

bool dt__save_due(const struct dt_bank *bank)
{
    int64_t steps = bank->job->config->run.checkpoint_steps;
    return dt__save_time_due(bank) ||
           (steps && (!bank->job->step || dt__round_passed(bank->job, steps)) && can_save(bank));
}

dt_status dt__best_found(struct dt_bank *bank)
{
    bank->best_unsaved = true;
    bank->state.best = bank->job->best;
    return dt_writer_best(bank->writer, &bank->state);
}

/* The writer's thread gets on, or the watchdog sees that nobody does. */
static void await_writer(struct dt_bank *bank)
{
    const struct dt_job *job = bank->job;
    while (dt_writer_busy(bank->writer)) {
        dt_world_idle(job->world, "the checkpoint");
        dt_sleep_secs(0.001);
    }
    dt_world_heartbeat(job->world, "synchronization", job->step);
}

/* A save that failed is not the run's end: the older checkpoint stays good and the next save may
 * come through. Only the last one must. */
static dt_status collect(struct dt_bank *bank, bool last)
{
    struct dt_saved saved;
    while (dt_writer_poll(bank->writer, false, &saved)) {
        if (saved.status && last) return saved.status;
        if (!saved.status) DT_TRY(dt__record_saved(bank, &saved));
        if (saved.exported && last)
            return dt_fail(saved.exported, "export of step %llu: %s",
                           (unsigned long long)saved.export_step, saved.export_error);
        if (saved.exported) {
            bank->saved_step = DT__NOT_SAVED; /* the last save is to try again */
            dt_warn("export of step %llu: %s; tried again with the next save",
                    (unsigned long long)saved.export_step, saved.export_error);
        }
        if (!saved.status) continue;
        bank->saved_step = DT__NOT_SAVED;
        bank->retry_at = dt_clock_secs() + RETRY_SECS;
        dt_warn("checkpoint of step %llu: %s; going on with the older one",
                (unsigned long long)saved.step, dt_error_text());
    }
    return DT_OK;
}

dt_status dt__saves_collect(struct dt_bank *bank)
{
    return collect(bank, false);
}

dt_status dt__saves_finish(struct dt_bank *bank)
{
    await_writer(bank);
    return collect(bank, true);
}

dt_status dt__save(struct dt_bank *bank, bool last)
{
    struct dt_checkpoint *state = &bank->state;
    /* The weights, and what groups have done and not yet exchanged. */
    bool finite = are_finite(state->params_count, state->params);
    for (int g = 0; state->group_difference && g < state->groups; g++)
        finite = finite && are_finite(state->params_count, state->group_difference[g]);
    if (!finite)
        return dt_fail(DT_ENUMERIC,
                       "step %llu: a weight is not finite: the last good checkpoint stays",
                       (unsigned long long)state->step);
    await_writer(bank);
    DT_TRY(collect(bank, false));
    if (bank->saved_step != bank->job->step || (last && bank->best_unsaved)) {
        state->best = bank->job->best;
        state->wall_secs = dt__wall_secs(bank);
        DT_TRY(dt_writer_start(bank->writer, state));
        bank->saved_at = dt_clock_secs();
        bank->saved_step = bank->job->step;
        bank->best_unsaved = false;
    }
    return last ? dt__saves_finish(bank) : DT_OK;
}

/* ---- exports ------------------------------------------------------------------------------- */

/* The best model from where its weights are: the loaded checkpoint (its own, or those it carries),
 * or one that is kept. */
static dt_status catch_up_best(struct dt_bank *bank)
{
    const struct dt_checkpoint *loaded = &bank->loaded;
    struct dt_checkpoint kept = {0};
    struct dt_best best = loaded->best, exported;
    char *path, name[DT_CHECKPOINT_NAME];
    if (!best.known) return DT_OK;
    DT_TRY(dt_export_best(bank->best_dir, &exported));
    if (exported.known &&
        (exported.step == best.step || dt__best_beats(bank->job, &exported, &best)))
        return DT_OK;
    struct dt_checkpoint model = *loaded; /* lent */
    model.params = loaded->step == best.step ? loaded->params : loaded->best_params;
    if (!model.params) {
        DT_TRY(dt_format(&path, "%s/%s", bank->ckpt_dir, dt_checkpoint_name(best.step, name)));
        if (dt_path_exists(path) && dt_checkpoint_load(path, &kept)) dt_warn("%s", dt_error_text());
        dt_free(path);
        model = kept;
    }
    model.step = best.step;
    model.best = best;
    dt_status status = DT_OK;
    if (model.params)
        status = dt_export_write(bank->best_dir, &model, bank->job->config->export.keep);
    else
        dt_warn("%s: the best model, of step %llu, is not there, and no checkpoint holds it",
                bank->best_dir, (unsigned long long)best.step);
    dt_checkpoint_free(&kept);
    return status;
}

/* A kill between save and export is made good, and so is what was deleted. */
dt_status dt__exports_catch_up(struct dt_bank *bank)
{
    if (!bank->resumed) return DT_OK;
    if (bank->job->config->export.latest) {
        char *path;
        struct dt_checkpoint model = bank->loaded; /* lent */
        model.best = (struct dt_best){0};
        DT_TRY(dt_format(&path, "%s/%llu", bank->latest_dir, (unsigned long long)model.step));
        bool missing = !dt_path_exists(path);
        dt_free(path);
        if (missing)
            DT_TRY(dt_export_write(bank->latest_dir, &model, bank->job->config->export.keep));
    }
    return bank->job->config->export.best ? catch_up_best(bank) : DT_OK;
}

/* ---- open and close ------------------------------------------------------------------------- */

dt_status dt__bank_prepare(struct dt_bank *bank, struct dt_job *job)
{
    const char *dir = job->config->run.dir;
    bank->job = job;
    bank->lock = -1;
    bank->run_start = dt_clock_secs();
    DT_TRY(dt_format(&bank->ckpt_dir, "%s/ckpt", dir));
    DT_TRY(dt_format(&bank->latest_dir, "%s/export/latest", dir));
    DT_TRY(dt_format(&bank->best_dir, "%s/export/best", dir));
    DT_TRY(dt_dir_make(bank->ckpt_dir));
    DT_TRY(dt_lock_take(dir, &bank->lock));
    DT_TRY(dt__resume_load(bank));
    if (!bank->resumed) return DT_OK;
    job->step = bank->loaded.step;
    job->replicas = bank->loaded.replicas;
    return DT_OK;
}

dt_status dt__bank_open(struct dt_bank *bank, float *const *vectors)
{
    const struct dt_job *job = bank->job;
    char *path;
    DT_TRY(dt__bank_start(bank, vectors));
    const char *text = bank->state.config;
    DT_TRY(dt_format(&path, "%s/config.ini", job->config->run.dir));
    dt_status status = dt_file_write(path, text, strlen(text), NULL, NULL);
    dt_free(path);
    DT_TRY(status);
    DT_TRY(dt_report_open(job->config->run.dir, job->last_step, &bank->report));
    if (job->config->report.tensorboard)
        DT_TRY(dt_report_tensorboard(bank->report, job->config->run.dir));
    if (*job->config->report.prometheus)
        DT_TRY(dt_report_prometheus(bank->report, job->config->report.prometheus,
                                    job->config->run.dir));
    dt_report_listen(bank->report, bank->options->record, bank->options->arg);
    DT_TRY(dt_metrics_create(job->model, &bank->metrics));
    size_t size = (size_t)job->world->size;
    DT_TRY(dt_alloc(size, sizeof *bank->ranks, "status", &bank->ranks));
    const struct dt_config *config = job->config;
    bool best = config->export.best && !config->eval.dedicated; /* an evaluator exports it itself */
    struct dt_writer_spec spec = {.dir = bank->ckpt_dir,
                                  .keep = config->run.keep,
                                  .latest_dir = config->export.latest ? bank->latest_dir : NULL,
                                  .best_dir = best ? bank->best_dir : NULL,
                                  .export_keep = config->export.keep};
    DT_TRY(dt_writer_create(&spec, &bank->writer));
    DT_TRY(dt__exports_catch_up(bank));
    bank->last_loss = NAN;
    bank->saved_at = dt_clock_secs();
    bool here = bank->resumed && strcmp(job->config->run.resume, "auto") == 0;
    if (bank->loaded.group_difference && !job->pending) here = false; /* these weights are others */
    bank->saved_step = here ? job->step : DT__NOT_SAVED;
    return DT_OK;
}

void dt__bank_close(struct dt_bank *bank)
{
    dt_writer_destroy(bank->writer);
    if (bank->report) dt_report_close(bank->report);
    dt_metrics_destroy(bank->metrics);
    dt_checkpoint_free(&bank->loaded);
    dt_free(bank->state.draws);
    dt_free(bank->state.loss_sums);
    dt_free(bank->no_loss);
    dt_free(bank->ranks);
    dt_free(bank->budgets);
    dt_free(bank->state.config);
    dt_free(bank->state.history);
    dt__bank_groups_free(bank);
    dt_json_free(&bank->change);
    if (bank->job) dt_lock_drop(bank->lock);
    dt_free(bank->ckpt_dir);
    dt_free(bank->latest_dir);
    dt_free(bank->best_dir);
}
