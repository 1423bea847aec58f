/* The run directory's files: configuration, records, checkpoints, exports. Bank only.
 *
 * A save copies the state, the writer's thread writes the copy, and the bank collects the result
 * later. A failed save is repeated with the next one; the last save must succeed. */
#include <math.h>
#include <string.h>

#include "state/directory.h"
#include "train/bank.h"

/* ---- saves ---------------------------------------------------------------------------------- */

/* A full disk stays full for a while. */
static const double RETRY_SECS = 10;

static bool can_save(const struct dt_bank *bank)
{
    return dt__clock_secs() >= bank->files.retry_at && !dt__writer_busy(bank->files.writer);
}

/* A stop does not wait for the end of a long round of local steps. Each such round is therefore
 * saved, so that at most one is repeated. */
bool dt__save_time_due(const struct dt_bank *bank)
{
    const struct dt_job *job = bank->job;
    const double secs = job->config->run.checkpoint_secs;
    const bool due = secs > 0 && dt__clock_secs() - bank->files.saved_at >= secs;
    return (due || dt__round_is_long(job, bank->log.step_secs)) && can_save(bank);
}

bool dt__save_due(const struct dt_bank *bank)
{
    int64_t steps = bank->job->config->run.checkpoint_steps;
    return dt__save_time_due(bank) ||
           (steps && (!bank->job->step || dt__round_passed(bank->job, steps)) && can_save(bank));
}

dt_status dt__best_found(struct dt_bank *bank)
{
    bank->files.best_unsaved = true;
    bank->state.best = bank->job->best;
    return dt__exports(bank->job, &bank->job->best)
               ? dt__writer_best(bank->files.writer, &bank->state)
               : DT_OK;
}

/* Waits for the writer's thread. If the thread makes no progress, the watchdog reports it. */
static void await_writer(struct dt_bank *bank)
{
    const struct dt_job *job = bank->job;
    while (dt__writer_busy(bank->files.writer)) {
        dt__world_idle(job->world, "the checkpoint");
        dt__sleep_secs(0.001);
    }
    dt__world_heartbeat(job->world, "synchronization", job->step);
}

/* A failed save does not end the run: the older checkpoint is intact, and the next save may
 * succeed. Only the last save must. */
dt_status dt__saves_collect(struct dt_bank *bank, bool last)
{
    struct dt_saved saved;
    while (dt__writer_poll(bank->files.writer, false, &saved)) {
        if (saved.status && last) return saved.status;
        if (!saved.status) DT_TRY(dt__record_saved(bank, &saved));
        if (saved.exported && last)
            return dt_fail(saved.exported, "export of step %llu: %s",
                           (unsigned long long)saved.export_step, saved.export_error);
        if (saved.exported) {
            bank->files.saved_step = DT__NOT_SAVED; /* the last save must be repeated */
            dt__warn("export of step %llu: %s; tried again with the next save",
                     (unsigned long long)saved.export_step, saved.export_error);
        }
        if (!saved.status) continue;
        bank->files.saved_step = DT__NOT_SAVED;
        bank->files.retry_at = dt__clock_secs() + RETRY_SECS;
        dt__warn("checkpoint of step %llu: %s; the older one stays", (unsigned long long)saved.step,
                 dt_error_text());
    }
    return DT_OK;
}

dt_status dt__saves_finish(struct dt_bank *bank)
{
    await_writer(bank);
    return dt__saves_collect(bank, true);
}

dt_status dt__save(struct dt_bank *bank, bool last)
{
    struct dt_checkpoint *state = &bank->state;
    struct dt_files *files = &bank->files;
    const size_t params = (size_t)state->params_count;
    const bool pending = bank->job->pending;
    /* Checks that the weights and the pending differences are finite. The sum of squares of floats
     * does not overflow in double. */
    bool finite = isfinite(dt__norm2(state->params, params));
    for (int g = 0; pending && g < state->groups; g++)
        finite = finite && isfinite(dt__norm2(state->group_difference[g], params));
    if (!finite)
        return dt_fail(DT_ENUMERIC,
                       "step %llu: a weight is not finite: the last good checkpoint stays",
                       (unsigned long long)state->step);
    await_writer(bank);
    DT_TRY(dt__saves_collect(bank, false));
    if (files->saved_step != bank->job->step || files->saved_pending != pending ||
        (last && files->best_unsaved)) {
        state->best = bank->job->best;
        state->wall_secs = dt__wall_secs(bank);
        struct dt_checkpoint saved = *state;
        if (!pending) saved.group_difference = NULL;
        DT_TRY(dt__writer_start(bank->files.writer, &saved));
        files->saved_at = dt__clock_secs();
        files->saved_step = bank->job->step;
        files->saved_pending = pending;
        files->best_unsaved = false;
    }
    return last ? dt__saves_finish(bank) : DT_OK;
}

/* ---- exports ------------------------------------------------------------------------------- */

/* Loads the best model from the first file that contains it. The files are the run's kept
 * checkpoint and its export and, if the run resumed another directory's checkpoint, the checkpoint
 * and the export there. All but the first are checked to hold this model, since another run may
 * have written them. out->params NULL: no file does. */
void dt__best_load(const struct dt_job *job, const struct dt_best *best, struct dt_checkpoint *out)
{
    const char *from = job->config->run.resume, *slash = strrchr(from, '/');
    const int length = slash ? (int)(slash - from) : 1; /* of the directory's name */
    const int places = strcmp(from, "auto") ? 4 : 2;
    const unsigned long long step = best->step;
    const struct dt__path dir = dt__path("%.*s", length, slash ? from : ".");
    const struct dt__path path[] = {dt__step_path(job->dirs->ckpt_dir.text, step),
                                    dt__path("%s/%llu/model.h5", job->dirs->best_dir.text, step),
                                    dt__step_path(dir.text, step),
                                    dt__path("%s/../export/best/%llu/model.h5", dir.text, step)};
    for (int i = 0; i < places && !out->params; i++) {
        if (!dt__path_exists(path[i].text)) continue;
        if (dt__file_load(path[i].text, DT__WANT_MODEL, out, NULL))
            dt__warn("%s", dt_error_text());
        else if (i > 0 && (out->best.step != best->step || out->best.value != best->value ||
                           out->best.loss != best->loss))
            dt__checkpoint_free(out);
    }
}

/* Exports the best model if its export is missing. Its weights come from the loaded checkpoint (its
 * own weights, or best_params) or from a file that has the best model. */
static dt_status catch_up_best(const struct dt_bank *bank)
{
    const struct dt_job *job = bank->job;
    const struct dt_checkpoint *loaded = &bank->start.loaded;
    const struct dt_best best = loaded->best;
    struct dt_checkpoint saved = {0}, model = *loaded; /* borrows its memory */
    struct dt_best exported;
    dt_status status = DT_OK;
    if (!best.known) return DT_OK;
    DT_TRY(dt__export_best(job->dirs->best_dir.text, &exported));
    if (exported.known && exported.era == best.era &&
        (exported.step == best.step || dt__best_beats(job, &exported, &best)))
        return DT_OK;
    model.params = loaded->step == best.step ? loaded->params : loaded->best_params;
    if (!model.params) {
        dt__best_load(job, &best, &saved);
        model = saved;
    }
    model.step = best.step;
    model.best = best;
    if (model.params)
        status = dt__export_write(job->dirs->best_dir.text, &model, job->config->export.keep);
    else
        dt__warn("%s: the best model, of step %llu, is missing here and in all checkpoints",
                 job->dirs->best_dir.text, (unsigned long long)best.step);
    dt__checkpoint_free(&saved);
    return status;
}

/* Writes exports that a kill between save and export prevented, or that were deleted. */
dt_status dt__exports_catch_up(struct dt_bank *bank)
{
    const struct dt_job *job = bank->job;
    struct dt_checkpoint model = bank->start.loaded; /* borrows its memory */
    if (!bank->start.resumed) return DT_OK;
    model.best = (struct dt_best){0};
    const struct dt__path path =
        dt__path("%s/%llu", job->dirs->latest_dir.text, (unsigned long long)model.step);
    if (job->config->export.latest && !dt__path_exists(path.text))
        DT_TRY(dt__export_write(job->dirs->latest_dir.text, &model, job->config->export.keep));
    return dt__exports(job, &bank->start.loaded.best) ? catch_up_best(bank) : DT_OK;
}

/* ---- open and close ------------------------------------------------------------------------- */

/* Returns whether a file is a temporary one that a killed process left; see dt__file_write. */
static bool is_leftover(const char *name)
{
    return !strncmp(name, "config.ini.tmp-", 15) || !strncmp(name, "trace.json.tmp-", 15);
}

dt_status dt__bank_prepare(struct dt_bank *bank, struct dt_job *job)
{
    const char *dir = job->config->run.dir;
    bank->job = job;
    bank->files.lock = -1;
    dt__log_begin(bank);
    bank->files.dir_made = !dt__path_exists(dir);
    if (dt__path_exists(dt__path("%s/search.jsonl", dir).text))
        return dt_fail(DT_EIO, "%s: holds a search, not a run: expected another run.dir", dir);
    DT_TRY(dt__dir_make(job->dirs->ckpt_dir.text));
    DT_TRY(dt__lock_take(dir, &bank->files.lock));
    DT_TRY(dt__dir_clear(dir, is_leftover));
    DT_TRY(dt__resume_load(bank));
    job->step = bank->start.loaded.step; /* 0 of a new run */
    job->replicas =
        bank->start.resumed ? bank->start.loaded.replicas : (int)job->config->run.replicas;
    return DT_OK;
}

dt_status dt__bank_open(struct dt_bank *bank, float *const *vectors)
{
    struct dt_job *job = bank->job;
    const struct dt_config *config = job->config;
    const char *dir = config->run.dir;
    const bool best = config->export.best && !config->eval.dedicated; /* else the evaluator exports
                                                                       * the best */
    const struct dt_writer_spec spec = {
        .dir = job->dirs->ckpt_dir.text,
        .keep = config->run.keep,
        .latest_dir = config->export.latest ? job->dirs->latest_dir.text : NULL,
        .best_dir = best ? job->dirs->best_dir.text : NULL,
        .export_keep = config->export.keep,
        .records = job->dirs->records.text};
    DT_TRY(dt__bank_start(bank, vectors));
    bank->files.dir_made = false;
    DT_TRY(dt__file_write(dt__path("%s/config.ini", dir).text, bank->state.config,
                          strlen(bank->state.config), NULL, NULL));
    DT_TRY(dt__log_open(bank));
    DT_TRY(dt__metrics_create(job->model, job->config, &bank->metrics));
    DT_TRY(dt__writer_create(&spec, &bank->files.writer));
    DT_TRY(dt__exports_catch_up(bank));
    bank->files.saved_at = dt__clock_secs();
    bool here = bank->start.resumed && strcmp(config->run.resume, "auto") == 0;
    if (bank->start.loaded.group_difference && !job->pending)
        here = false; /* the weights have changed since */
    bank->files.saved_step = here ? job->step : DT__NOT_SAVED;
    bank->files.saved_pending = job->pending;
    dt__checkpoint_drop(&bank->start.loaded); /* its vectors have been copied */
    return DT_OK;
}

void dt__bank_close(struct dt_bank *bank)
{
    char error[DT_ERROR_MAX]; /* the run's error, printed after this function; failures in it must
                               * not replace the text */
    snprintf(error, sizeof error, "%s", dt_error_text());
    dt__writer_destroy(bank->files.writer);
    dt__log_close(bank);
    (void)dt_fail(DT_EIO, "%s", error);
    dt__metrics_destroy(bank->metrics);
    dt__config_free(&bank->start.before);
    dt__baseline_free(&bank->baseline);
    dt__incumbent_free(&bank->incumbent);
    dt__checkpoint_free(&bank->start.loaded);
    dt_free(bank->state.config);
    dt_free(bank->state.history);
    if (bank->files.dir_made && bank->files.lock >= 0) dt__run_unmake(bank->job->config->run.dir);
    if (bank->job) dt__lock_drop(bank->files.lock);
}
