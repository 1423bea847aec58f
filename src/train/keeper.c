/* The bank's keeping of the run directory: state to resume from, saves, exports. Bank only. */
#include <math.h>
#include <string.h>

#include "train/run.h"

/* ---- what a resume starts from -------------------------------------------------------------- */

static dt_status load_state(struct dt__run *run, bool *out_found)
{
    const char *resume = run->config->run.resume;
    struct dt__keeper *keeper = &run->keeper;
    char *path = NULL;
    *out_found = false;
    dt_status status;
    if (strcmp(resume, "never") == 0) {
        uint64_t step;
        if (dt_checkpoint_newest(keeper->ckpt_dir, &step, &path))
            status = dt_fail(DT_EMISMATCH, "%s: there is a checkpoint, and run.resume=never", path);
        else
            status = DT_OK;
    } else if (strcmp(resume, "auto") == 0) {
        status = dt_checkpoint_load_latest(keeper->ckpt_dir, &keeper->loaded, &path, out_found);
    } else {
        status = dt_checkpoint_load(resume, &keeper->loaded);
        *out_found = status == DT_OK;
    }
    dt_free(path);
    return status;
}

/* The config may differ only where a resume may change things. */
static dt_status check_config(struct dt__run *run)
{
    struct dt_config before;
    DT_TRY(dt_config_init(&before));
    dt_status status = dt_config_read_text(&before, "checkpoint", run->keeper.loaded.config);
    if (!status) status = dt_config_match(&before, run->config);
    dt_config_free(&before);
    return status;
}

dt_status dt__keeper_prepare(struct dt__run *run)
{
    struct dt__keeper *keeper = &run->keeper;
    const char *dir = run->config->run.dir;
    keeper->run_start = dt_clock_secs();
    DT_TRY(dt_format(&keeper->ckpt_dir, "%s/ckpt", dir));
    DT_TRY(dt_format(&keeper->latest_dir, "%s/export/latest", dir));
    DT_TRY(dt_format(&keeper->best_dir, "%s/export/best", dir));
    DT_TRY(dt_dir_make(keeper->ckpt_dir));
    DT_TRY(dt_lock_take(dir, &keeper->lock));
    DT_TRY(load_state(run, &keeper->resumed));
    if (!keeper->resumed) return DT_OK;
    DT_TRY(check_config(run));
    run->step = keeper->loaded.step;
    run->replicas = keeper->loaded.replicas;
    return DT_OK;
}

/* ---- open ----------------------------------------------------------------------------------- */

/* A dedicated evaluator exports the best itself. */
static bool is_best(const struct dt__run *run, const struct dt_checkpoint *state)
{
    return run->config->export.best && !run->config->eval.dedicated && state->best.known &&
           state->best.step == state->step;
}

/* Behind a save that came good, in the writer's thread: the exports. */
static dt_status export_models(void *arg, const struct dt_checkpoint *state)
{
    const struct dt__run *run = arg;
    const struct dt_config *config = run->config;
    struct dt_export model = dt_export_of(state);
    model.best = (struct dt_best){0};
    if (config->export.latest)
        DT_TRY(dt_export_write(run->keeper.latest_dir, &model, config->export.keep));
    model.best = state->best;
    return is_best(run, state) ? dt_export_write(run->keeper.best_dir, &model, config->export.keep)
                               : DT_OK;
}

static dt_status export_if_missing(struct dt__run *run, const char *base)
{
    char *path;
    DT_TRY(dt_format(&path, "%s/%llu", base, (unsigned long long)run->keeper.loaded.step));
    bool missing = !dt_path_exists(path);
    dt_free(path);
    return missing ? export_models(run, &run->keeper.loaded) : DT_OK;
}

/* A kill between save and export is made good. */
static dt_status catch_up(struct dt__run *run)
{
    const struct dt_config *config = run->config;
    struct dt__keeper *keeper = &run->keeper;
    if (!keeper->resumed) return DT_OK;
    if (config->export.latest) DT_TRY(export_if_missing(run, keeper->latest_dir));
    bool best = is_best(run, &keeper->loaded);
    return best ? export_if_missing(run, keeper->best_dir) : DT_OK;
}

static dt_status write_config(const struct dt__run *run)
{
    char *path = NULL;
    dt_status status = dt_format(&path, "%s/config.ini", run->config->run.dir);
    if (!status)
        status = dt_file_write(path, run->keeper.state.config, strlen(run->keeper.state.config),
                               NULL, NULL);
    dt_free(path);
    return status;
}

/* An evaluator may have found and exported a better one after the checkpoint was made. */
static dt_status restore_best(struct dt__run *run, struct dt_best *best)
{
    struct dt_best exported = {0};
    *best = run->keeper.loaded.best;
    if (run->config->eval.dedicated) DT_TRY(dt_export_best(run->keeper.best_dir, &exported));
    if (dt__best_beats(run, &exported, best)) *best = exported;
    best->stop = dt__stops_early(run, best);
    return DT_OK;
}

/* The state as the first save will hold it; its vectors are the exchange's own. */
static dt_status fill_state(struct dt__run *run)
{
    struct dt__keeper *keeper = &run->keeper;
    const struct dt_checkpoint *loaded = &keeper->loaded;
    struct dt_checkpoint *state = &keeper->state;
    size_t replicas = (size_t)run->replicas;
    *state = (struct dt_checkpoint){.step = run->step,
                                    .mode = run->mode,
                                    .seed = (uint64_t)run->config->run.seed,
                                    .replicas = run->replicas,
                                    .kernel = (char *)(uintptr_t)dt_blas_kernel(),
                                    .data_crc = dt_source_crc(run->train),
                                    .spec = *dt_model_get_spec(run->model),
                                    .schema = *dt_source_schema(run->train),
                                    .params_count = dt_model_params(run->model),
                                    .nstate = run->optimizer.nstate};
    DT_TRY(dt_alloc(replicas, sizeof(uint64_t), "draw counts", &state->draws));
    DT_TRY(dt_alloc(replicas, sizeof(double), "loss sums", &state->loss_sums));
    DT_TRY(dt_config_print(run->config, &state->config));
    for (int i = 0; i < state->nstate; i++)
        state->state_name[i] = run->optimizer.state_name[i];
    if (!keeper->resumed) return DT_OK;
    state->samples = loaded->samples;
    state->wall_secs = keeper->wall_before = loaded->wall_secs;
    state->train_secs = keeper->log_train_secs = loaded->train_secs;
    DT_TRY(restore_best(run, &state->best));
    state->loss_rows = loaded->loss_rows;
    memcpy(state->draws, loaded->draws, replicas * sizeof(uint64_t));
    memcpy(state->loss_sums, loaded->loss_sums, replicas * sizeof(double));
    return DT_OK;
}

/* Weights and optimizer state: the checkpoint's, or new ones. */
static dt_status fill_vectors(struct dt__run *run, float *const *vectors)
{
    struct dt_checkpoint *state = &run->keeper.state, *loaded = &run->keeper.loaded;
    size_t bytes = (size_t)state->params_count * sizeof(float);
    state->params = vectors[0];
    for (int i = 0; i < state->nstate; i++)
        state->state[i] = vectors[1 + i];
    if (!run->keeper.resumed) {
        for (int i = 0; i < state->nstate; i++)
            memset(vectors[1 + i], 0, bytes);
        dt_model_init(run->model, state->seed, vectors[0]);
        return DT_OK;
    }
    if (loaded->params_count != state->params_count || loaded->nstate != state->nstate)
        return dt_fail(DT_EMISMATCH, "the checkpoint holds %llu parameters, the model has %llu",
                       (unsigned long long)loaded->params_count,
                       (unsigned long long)state->params_count);
    memcpy(vectors[0], loaded->params, bytes);
    for (int i = 0; i < state->nstate; i++)
        memcpy(vectors[1 + i], loaded->state[i], bytes);
    return DT_OK;
}

static dt_status check_data(const struct dt__run *run)
{
    const struct dt__keeper *keeper = &run->keeper;
    if (!keeper->resumed) return DT_OK;
    if (strcmp(keeper->loaded.kernel, keeper->state.kernel) != 0)
        dt_warn("the checkpoint was made with kernel %s, this run has %s: other bits "
                "(run.kernel=%s keeps them)",
                keeper->loaded.kernel, keeper->state.kernel, keeper->loaded.kernel);
    if (keeper->loaded.data_crc == keeper->state.data_crc) return DT_OK;
    return dt_fail(DT_EMISMATCH,
                   "data.train=%s: files, rows or columns are not those that the "
                   "checkpoint was trained on",
                   run->config->data.train);
}

dt_status dt__keeper_open(struct dt__run *run, float *const *vectors)
{
    struct dt__keeper *keeper = &run->keeper;
    DT_TRY(fill_state(run));
    DT_TRY(check_data(run));
    DT_TRY(fill_vectors(run, vectors));
    DT_TRY(write_config(run));
    DT_TRY(dt_report_open(run->config->run.dir, run->last_step, &keeper->report));
    DT_TRY(dt_metrics_create(&keeper->state.spec, &keeper->metrics));
    DT_TRY(dt_writer_create(keeper->ckpt_dir, run->config->run.keep, export_models, run,
                            &keeper->writer));
    DT_TRY(catch_up(run));
    keeper->last_loss = NAN;
    keeper->saved_at = dt_clock_secs();
    bool here = keeper->resumed && strcmp(run->config->run.resume, "auto") == 0;
    keeper->saved_step = here ? run->step : DT__NOT_SAVED;
    return DT_OK;
}

/* ---- saves ---------------------------------------------------------------------------------- */

/* A disk that is full stays so for a while. */
static const double RETRY_SECS = 10;

static dt_status check_finite(const struct dt_checkpoint *state)
{
    enum { LANES = 64 }; /* sums of zeros, unless some parameter is not finite; vectors of them */
    float lane[LANES] = {0}, sum = 0;
    uint64_t i = 0;
    for (; i + LANES <= state->params_count; i += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] += state->params[i + (uint64_t)l] * 0.0f;
    for (; i < state->params_count; i++)
        sum += state->params[i] * 0.0f;
    for (int l = 0; l < LANES; l++)
        sum += lane[l];
    if (sum == 0) return DT_OK;
    return dt_fail(DT_ENUMERIC, "step %llu: a weight is not finite: the last good checkpoint stays",
                   (unsigned long long)state->step);
}

bool dt__keeper_save_due(const struct dt__run *run)
{
    const struct dt__keeper *keeper = &run->keeper;
    const struct dt_config *config = run->config;
    if (dt_clock_secs() < keeper->retry_at) return false;
    if (keeper->save_wanted) return true;
    if (dt_writer_busy(keeper->writer)) return false;
    int64_t steps = config->run.checkpoint_steps;
    double secs = config->run.checkpoint_secs;
    return (steps && run->step % (uint64_t)steps == 0) ||
           (secs > 0 && dt_clock_secs() - keeper->saved_at >= secs);
}

/* The writer's thread gets on, or the watchdog sees that nobody does. */
static void await_writer(struct dt__run *run)
{
    while (dt_writer_busy(run->keeper.writer)) {
        dt_world_rest(run->world, "the checkpoint");
        dt_sleep_secs(0.001);
    }
    dt_world_beat(run->world, "meeting", run->step);
}

/* A save that failed is not the run's end: the older checkpoint stays good and the next save may
 * come through. Only the last one must. */
static dt_status collect(struct dt__run *run, bool last)
{
    struct dt__keeper *keeper = &run->keeper;
    struct dt_saved saved;
    while (dt_writer_poll(keeper->writer, false, &saved)) {
        if (!saved.status) {
            DT_TRY(dt__record_saved(run, &saved));
            continue;
        }
        if (last) return saved.status;
        keeper->saved_step = DT__NOT_SAVED;
        keeper->retry_at = dt_clock_secs() + RETRY_SECS;
        dt_warn("checkpoint of step %llu: %s; going on with the older one",
                (unsigned long long)saved.step, dt_error_text());
    }
    return DT_OK;
}

dt_status dt__keeper_collect(struct dt__run *run)
{
    return collect(run, false);
}

static dt_status start_save(struct dt__run *run)
{
    struct dt__keeper *keeper = &run->keeper;
    struct dt_checkpoint *state = &keeper->state;
    state->wall_secs = keeper->wall_before + dt_clock_secs() - keeper->run_start;
    DT_TRY(dt_writer_start(keeper->writer, state));
    keeper->saved_at = dt_clock_secs();
    keeper->saved_step = run->step;
    keeper->save_wanted = false;
    return DT_OK;
}

dt_status dt__keeper_save(struct dt__run *run, bool last)
{
    const struct dt__keeper *keeper = &run->keeper;
    DT_TRY(check_finite(&keeper->state));
    await_writer(run);
    DT_TRY(collect(run, false));
    if (keeper->saved_step != run->step || keeper->save_wanted) DT_TRY(start_save(run));
    if (!last) return DT_OK;
    await_writer(run);
    return collect(run, true);
}

void dt__keeper_close(struct dt__run *run)
{
    struct dt__keeper *keeper = &run->keeper;
    dt_writer_destroy(keeper->writer);
    if (keeper->report) dt_report_close(keeper->report);
    dt_metrics_destroy(keeper->metrics);
    dt_checkpoint_free(&keeper->loaded);
    dt_free(keeper->state.draws);
    dt_free(keeper->state.loss_sums);
    dt_free(keeper->state.config);
    dt_lock_drop(keeper->lock);
    dt_free(keeper->ckpt_dir);
    dt_free(keeper->latest_dir);
    dt_free(keeper->best_dir);
}
