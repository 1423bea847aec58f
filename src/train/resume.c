/* The state from which a run starts, loaded or new, and what a resume changes. Bank only.
 *
 * A resume takes everything from the checkpoint: weights, optimizer state, counts, and the loss
 * sums since the last train record. Its configuration must match, except for keys that a resume may
 * change. Changes of keys that affect the bits go into the history, which has one JSON line for
 * each resume, and which every later checkpoint carries. */
#include <string.h>

#include "train/certify.h"
#include "train/replicas.h"

/* ---- the checkpoint ----------------------------------------------------------------------- */

/* Warns that a resume from run.resume=FILE discards the run's own later checkpoints. */
static void warn_of_own(const struct dt_bank *bank)
{
    const uint64_t step = bank->start.loaded.step;
    uint64_t own;
    if (dt__checkpoint_newest(bank->job->dirs->ckpt_dir.text, &own) && own > step)
        dt__warn("run.resume=%s: continues from step %llu, and discards the run's own checkpoints "
                 "up to step %llu (run.resume=auto continues from those)",
                 bank->job->config->run.resume, (unsigned long long)step, (unsigned long long)own);
}

dt_status dt__resume_load(struct dt_bank *bank)
{
    struct dt_config *config = bank->job->config;
    const char *resume = config->run.resume, *dir = bank->job->dirs->ckpt_dir.text;
    char *path = NULL;
    uint64_t step;
    dt_status status = DT_OK;
    if (strcmp(resume, "never") == 0) {
        if (dt__checkpoint_newest(dir, &step))
            status = dt_fail(DT_EMISMATCH, "%s: there is a checkpoint, and run.resume=never",
                             dt__step_path(dir, step).text);
    } else if (strcmp(resume, "auto") == 0) {
        status = dt__checkpoint_load_newest(dir, &bank->start.loaded, &path, &bank->start.resumed);
    } else {
        status = dt__checkpoint_load(resume, &bank->start.loaded);
        bank->start.resumed = status == DT_OK;
        if (bank->start.resumed) warn_of_own(bank);
    }
    dt_free(path);
    if (status || !bank->start.resumed) return status;
    /* The configurations may differ only in keys that a resume may change. */
    struct dt_config *before = &bank->start.before;
    DT_TRY(dt__config_init(before));
    DT_TRY(dt__config_read_saved(before, "checkpoint", bank->start.loaded.config));
    if (*config->run.init && strcmp(config->run.init, before->run.init))
        dt__warn("run.init=%s: not used: the run continues from its own checkpoint (another "
                 "run.dir starts a new run)",
                 config->run.init);
    DT_TRY(dt__config_resolve_resume(config, before));
    if (!dt__config_widths_wait(config)) DT_TRY(dt__model_resolve(config));
    if (!config->run.parts) config->run.parts = before->run.parts;
    return dt__config_match(before, config);
}

dt_status dt__resume_check_data(const struct dt_bank *bank, uint32_t content)
{
    const struct dt_checkpoint *loaded = &bank->start.loaded;
    const struct dt_job *job = bank->job;
    const bool files = loaded->data_crc != dt__source_crc(job->train);
    const bool values = loaded->content_crc && loaded->content_crc != content;
    if (!bank->start.resumed || (!files && !values)) return DT_OK;
    return dt_fail(DT_EMISMATCH,
                   "data.train=%s: %s are not those that the checkpoint was trained on; "
                   "run.dir=NEW begins a new run, with run.init from its weights",
                   job->config->data.train,
                   files ? "files, rows or columns"
                         : "values, the order of rows, or how they are written,");
}

/* ---- what a resume changes ------------------------------------------------------------------ */

/* dt_change_fn; arg: struct dt_bank. */
static dt_status add_change(void *arg, const char *key, const char *before, const char *now)
{
    struct dt_bank *bank = arg;
    char *change;
    DT_TRY(dt__format(&change, "%s -> %s", before, now));
    dt__record_change(bank, bank->start.loaded.step, key, change);
    dt__info("the resume changes %s: %s", strcmp(key, "rate") ? key : "the rate of the next step",
             change);
    dt_free(change);
    return DT_OK;
}

/* Records that the former run ended within a round, and so exchanged early, or, with train.overlap,
 * exchanged its last round at once. An uninterrupted run does neither, so its bits differ. */
static void record_round(struct dt_bank *bank)
{
    const struct dt_checkpoint *loaded = &bank->start.loaded;
    const bool pending = loaded->group_difference != NULL;
    if (loaded->step >= bank->job->last_step ||
        !dt__round_was_cut(bank->job, &bank->start.before, loaded->step, pending))
        return;
    dt__record_change(bank, loaded->step, "round", "ended with the run");
    dt__info("train.local_steps: the last round ended with the run at step %llu: a run without a "
             "break has other bits",
             (unsigned long long)loaded->step);
}

/* Collects the changes that affect the bits, for the history. They include the rate of the next
 * update, which a change of train.epochs alone may affect, since a schedule may end with the
 * epochs. */
static dt_status collect_changes(struct dt_bank *bank)
{
    struct dt_job *now = bank->job, was = *now;
    struct dt_schedule schedule;
    char from[DT_REAL_TEXT], to[DT_REAL_TEXT];
    DT_TRY(dt__config_changes(&bank->start.before, now->config, add_change, bank));
    record_round(bank);
    was.config = &bank->start.before;
    was.last_step = dt__last_step(&was);
    dt__schedule_init(&schedule, was.config, was.last_step);
    schedule.drops = bank->start.loaded.best.drops;
    dt__rate_drop(now, schedule.drops);
    dt__real_text(dt__schedule_lr(&schedule, now->step), from);
    dt__real_text(dt__schedule_lr(&now->rules->schedule, now->step), to);
    const bool differs = now->step < now->last_step && strcmp(from, to) != 0;
    return differs ? add_change(bank, "rate", from, to) : DT_OK;
}

/* Sets state.history to the changes of earlier starts and of this one. */
static dt_status write_history(struct dt_bank *bank)
{
    const char *before = bank->start.loaded.history ? bank->start.loaded.history : "";
    if (bank->log.change.text.length == 0)
        return *before ? dt__strdup(before, &bank->state.history) : DT_OK;
    DT_TRY(dt__json_end(&bank->log.change));
    return dt__format(&bank->state.history, "%s%s\n", before, bank->log.change.text.data);
}

/* A best value on other rows or by another metric cannot be compared with new evaluations. An
 * evaluator may have exported a best model that the checkpoint does not know; the new era
 * distinguishes that model. */
void dt__best_forget_if_other(struct dt_bank *bank)
{
    const struct dt_job *job = bank->job;
    const struct dt_config *before = &bank->start.before, *now = job->config;
    struct dt_best *best = &bank->start.loaded.best;
    char of[64] = "";
    if (!bank->start.resumed ||
        (!strcmp(dt__metric_name(job, now), dt__metric_name(job, before)) &&
         now->eval.batches == before->eval.batches && !strcmp(now->data.eval, before->data.eval) &&
         !strcmp(now->data.eval_labels, before->data.eval_labels)))
        return;
    if (best->known)
        snprintf(of, sizeof of, " (%s %.5g, of step %llu)", best->metric, best->value,
                 (unsigned long long)best->step);
    if (*before->data.eval || dt__config_holds_out(before))
        dt__info(
            "the held-out rows or eval.metric changed: the best model so far%s no longer counts",
            of);
    *best = (struct dt_best){.seen = best->seen, .drops = best->drops, .era = dt__clock_unix()};
}

/* ---- the state at the start ----------------------------------------------------------------- */

/* Fills the state as the first save will write it; its vectors are set later, by name_vectors. */
static dt_status fill_state(struct dt_bank *bank)
{
    struct dt_job *job = bank->job;
    const struct dt_checkpoint *loaded = &bank->start.loaded;
    struct dt_checkpoint *state = &bank->state;
    size_t replicas = (size_t)job->replicas;
    *state = (struct dt_checkpoint){.step = job->step,
                                    .mode = job->mode,
                                    .seed = (uint64_t)job->config->run.seed,
                                    .replicas = job->replicas,
                                    .kernel = (char *)(uintptr_t)dt__blas_kernel(),
                                    .data_crc = dt__source_crc(job->train),
                                    .desc = job->model->desc,
                                    .schema = *dt__source_schema(job->train),
                                    .params_count = job->model->params,
                                    .samples = loaded->samples,
                                    .wall_secs = loaded->wall_secs,
                                    .train_secs = loaded->train_secs,
                                    .loss_rows = loaded->loss_rows};
    DT_TRY(dt__source_content(job->train, &state->content_crc));
    DT_TRY(DT__ARENA_ALLOC(&job->arena, "loss sums", DT__TABLE(state->draws, replicas),
                           DT__TABLE(state->loss_sums, replicas)));
    DT_TRY(dt_config_print(job->config, &state->config));
    if (!bank->start.resumed) return DT_OK;
    memcpy(state->draws, loaded->draws, replicas * sizeof(uint64_t));
    memcpy(state->loss_sums, loaded->loss_sums, replicas * sizeof(double));
    /* An evaluator may have exported a better model after the checkpoint. */
    struct dt_best exported = {0}, *best = &job->best;
    *best = loaded->best;
    if (job->config->eval.dedicated || bank->start.before.eval.dedicated)
        DT_TRY(dt__export_best(job->dirs->best_dir.text, &exported));
    if (dt__exports(job, &exported) && dt__best_beats(job, &exported, best)) *best = exported;
    best->stop = dt__stops_early(job, best);
    return DT_OK;
}

/* ---- weights and the optimizer's state ------------------------------------------------------ */

/* The name, in checkpoints, of the rounding error of the update. */
static const char UPDATE_ERROR[] = "update_error";

/* Returns the state with this name that belongs to a group or, for group -1, to all; NULL: there is
 * none. */
static float *find_state(const struct dt_checkpoint *from, int group, const char *name)
{
    struct dt_checkpoint borrowed = *from;
    struct dt__vector vector;
    for (int i = DT__FIRST_STATE; dt__vector_at(&borrowed, i, &vector); i++)
        if (vector.at && vector.group == group && !strcmp(vector.name, name)) return *vector.at;
    return NULL;
}

/* Returns the weight of a group's vector in the sum over groups. Differences are weighted by the
 * group's number of replicas. */
static float group_weight(const struct dt_job *job, int groups, int group, bool difference)
{
    const int begin = dt__part_begin(job->replicas, groups, group);
    const int count = dt__part_begin(job->replicas, groups, group + 1) - begin;
    return difference ? (float)count / (float)job->replicas : 1 / (float)groups;
}

/* Fills `out`, which holds zeros, with the state of this name.
 *   group >= 0, same number of groups      that group's vector
 *   a vector that all groups share         a copy of it for each group
 *   group -1, or another number of groups  sum of the groups' vectors, times group_weight
 * Rounding errors for another number of groups are not used; they start at 0. */
static void load_state(const struct dt_job *job, const struct dt_checkpoint *from, const char *name,
                       int group, float *out)
{
    const bool error = !strcmp(name, DT__GRADIENT_ERROR) || !strcmp(name, DT__DIFFERENCE_ERROR);
    const size_t n = job->model->params;
    const float *one = find_state(from, group, name);
    if (!one) one = find_state(from, -1, name);
    if (one) memcpy(out, one, n * sizeof *out);
    for (int g = 0; g < from->groups && group < 0 && !one && !error; g++) {
        const float *more = find_state(from, g, name);
        const float weight = group_weight(job, from->groups, g, !strcmp(name, DT__DIFFERENCE));
        for (size_t i = 0; more && i < n; i++)
            out[i] += weight * more[i];
    }
}

/* Sets the groups' vectors in bank->state: memory for copies of their state and differences or, in
 * a run with one process, the groups' vectors themselves (dt__local_vector). The vectors of
 * rounding errors are the exchange's. */
static dt_status make_groups(struct dt_bank *bank)
{
    struct dt_job *job = bank->job;
    struct dt_checkpoint *state = &bank->state;
    const struct dt_saved_vectors *of = &job->steps->saved;
    const int states = of->states + (of->error != NULL), copied = of->states + of->differences;
    const size_t groups = (size_t)of->groups, params = job->model->params;
    float *vectors = NULL;
    if (!groups) return DT_OK;
    DT_TRY(DT__ARENA_ALLOC(&job->arena, "groups",
                           DT__TABLE(state->group_state, groups * (size_t)states)));
    state->groups = of->groups;
    state->group_nstate = states;
    for (int i = 0; i < of->states; i++)
        state->group_state_name[i] = job->rules->optimizer.state_name[i];
    if (of->error) state->group_state_name[of->states] = of->error;
    if (of->differences)
        DT_TRY(DT__ARENA_ALLOC(&job->arena, "groups", DT__TABLE(state->group_difference, groups)));
    if (job->world->size > 1)
        DT_TRY(dt__arena_alloc(&job->arena, groups * (size_t)copied, params * sizeof(float),
                               "the groups' state", &vectors));
    for (int g = 0; g < of->groups; g++) {
        for (int i = 0; i < copied; i++)
            *dt__group_vector(bank, g, i) =
                vectors ? vectors + (size_t)(g * copied + i) * params : dt__local_vector(job, g, i);
        if (of->error)
            state->group_state[g * states + of->states] =
                dt__exchange_error(job->steps->exchange, g);
    }
    return DT_OK;
}

/* Sets the vectors in bank->state: those of the exchange, and the groups'. */
static dt_status name_vectors(struct dt_bank *bank, float *const *vectors)
{
    const struct dt_saved_vectors *of = &bank->job->steps->saved;
    struct dt_checkpoint *state = &bank->state;
    state->params = vectors[0];
    state->nstate = of->optimizer->nstate;
    for (int i = 0; i < state->nstate; i++)
        state->state_name[i] = of->optimizer->state_name[i];
    if (of->error) state->state_name[state->nstate++] = UPDATE_ERROR;
    for (int i = 0; i < state->nstate; i++)
        state->state[i] = vectors[1 + i];
    return make_groups(bank);
}

/* Applies the loaded differences to the weights in bank->state, if no exchange will use them. The
 * loaded weights do not change, since they may still be exported. */
static dt_status apply_differences(struct dt_bank *bank)
{
    struct dt_job *job = bank->job;
    const struct dt_checkpoint *from = &bank->start.loaded;
    const size_t n = (size_t)from->params_count;
    float *mean, *outer = find_state(from, -1, job->rules->outer.state_name[0]);
    DT_TRY(dt__alloc(2 * n, sizeof *mean, "differences", &mean));
    float *const vectors[] = {bank->state.params, outer ? outer : mean + n};
    load_state(job, from, DT__DIFFERENCE, -1, mean);
    dt__apply_differences(job, from->step, mean, vectors, n);
    dt_free(mean);
    return DT_OK;
}

/* Corrects the weights of a checkpoint that has differences. These weights already include what the
 * next outer update will take from the momentum, by the former train.outer_lr and
 * train.outer_momentum; the correction makes it what the current values give. */
static void adjust_ahead(struct dt_bank *bank)
{
    const struct dt_checkpoint *from = &bank->start.loaded;
    const float *momentum = find_state(from, -1, bank->job->rules->outer.state_name[0]);
    const float more = dt__ahead_rate(&bank->start.before) - dt__ahead_rate(bank->job->config);
    for (size_t i = 0; momentum && more != 0 && i < bank->job->model->trained; i++)
        bank->state.params[i] += more * momentum[i];
}

/* Loads all vectors; a new run's weights are set elsewhere. Differences go to where the groups'
 * exchange finds them, and job->pending is set if there are any. */
static dt_status load_vectors(struct dt_bank *bank)
{
    struct dt_job *job = bank->job;
    struct dt_checkpoint *state = &bank->state;
    const struct dt_checkpoint *from = &bank->start.loaded;
    const bool same = from->groups == state->groups, differ = from->group_difference != NULL;
    struct dt__vector vector;
    if (from->params)
        memcpy(state->params, from->params, (size_t)state->params_count * sizeof(float));
    if (differ) adjust_ahead(bank);
    if (differ && !state->group_difference) DT_TRY(apply_differences(bank));
    job->pending = differ && state->group_difference;
    for (int i = DT__FIRST_STATE; dt__vector_at(state, i, &vector); i++)
        if (vector.at) load_state(job, from, vector.name, same ? vector.group : -1, *vector.at);
    return DT_OK;
}

dt_status dt__bank_set_aside(struct dt_bank *bank)
{
    const struct dt_checkpoint *state = &bank->state;
    struct dt_checkpoint *to = &bank->start.loaded;
    const size_t n = (size_t)state->params_count;
    dt__checkpoint_free(to);
    DT_TRY(
        dt__alloc_backed(bank->job->dirs->ckpt_dir.text, n, sizeof(float), "weights", &to->params));
    memcpy(to->params, state->params, n * sizeof(float));
    to->params_count = n;
    for (int i = 0; i < state->nstate; i++) {
        DT_TRY(dt__strdup(state->state_name[i], (char **)(uintptr_t)&to->state_name[i]));
        DT_TRY(dt__alloc_backed(bank->job->dirs->ckpt_dir.text, n, sizeof(float), "optimizer state",
                                &to->state[i]));
        memcpy(to->state[i], state->state[i], n * sizeof(float));
        to->nstate = i + 1;
    }
    return DT_OK;
}

dt_status dt__bank_refill(struct dt_bank *bank, float *const *vectors)
{
    DT_TRY(name_vectors(bank, vectors));
    DT_TRY(load_vectors(bank));
    dt__checkpoint_drop(&bank->start.loaded); /* its vectors have been copied */
    return DT_OK;
}

dt_status dt__bank_start(struct dt_bank *bank, float *const *vectors)
{
    const struct dt_checkpoint *state = &bank->state, *loaded = &bank->start.loaded;
    DT_TRY(fill_state(bank));
    if (bank->start.resumed && strcmp(loaded->kernel, state->kernel) != 0)
        dt__warn("the checkpoint was made with kernel %s, this run has %s: other bits "
                 "(run.kernel=%s keeps them)",
                 loaded->kernel, state->kernel, loaded->kernel);
    DT_TRY(dt__resume_check_data(bank, state->content_crc));
    DT_TRY(name_vectors(bank, vectors));
    if (bank->start.resumed && loaded->params_count != state->params_count)
        return dt_fail(DT_EMISMATCH, "the checkpoint holds %llu parameters, the model has %llu",
                       (unsigned long long)loaded->params_count,
                       (unsigned long long)state->params_count);
    DT_TRY(load_vectors(bank));
    DT_TRY(dt__baseline_make(bank));
    DT_TRY(dt__certify_check(bank->job));
    DT_TRY(bank->start.resumed ? collect_changes(bank) : dt__init_weights(bank, vectors[0]));
    return write_history(bank);
}
