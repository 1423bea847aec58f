/* The state that a run starts from: a checkpoint's, or a new one; and what a resume changes. Bank
 * only.
 *
 * A resume takes all of the checkpoint: weights, optimizer, counts, the sums of the open log
 * window. Its configuration has to match, but for keys that may change; those that change the bits
 * go into the history, a JSON line a resume, which every later checkpoint carries. */
#include <string.h>

#include "train/local.h"

/* ---- the checkpoint ----------------------------------------------------------------------- */

/* The configuration of the run that is resumed. Free it in either case. */
static dt_status read_config_before(const struct dt_bank *bank, struct dt_config *out)
{
    DT_TRY(dt_config_init(out));
    return dt_config_read_text(out, "checkpoint", bank->loaded.config);
}

dt_status dt__resume_load(struct dt_bank *bank)
{
    struct dt_config *config = bank->job->config;
    const char *resume = config->run.resume;
    char *path = NULL;
    dt_status status = DT_OK;
    if (strcmp(resume, "never") == 0) {
        uint64_t step;
        if (dt_checkpoint_newest(bank->ckpt_dir, &step, &path))
            status = dt_fail(DT_EMISMATCH, "%s: there is a checkpoint, and run.resume=never", path);
    } else if (strcmp(resume, "auto") == 0) {
        status = dt_checkpoint_load_latest(bank->ckpt_dir, &bank->loaded, &path, &bank->resumed);
    } else {
        status = dt_checkpoint_load(resume, &bank->loaded);
        bank->resumed = status == DT_OK;
    }
    dt_free(path);
    if (status || !bank->resumed) return status;
    struct dt_config before; /* the config may differ only where a resume may change things */
    status = read_config_before(bank, &before);
    if (!status) status = dt_config_settle_resume(config, &before);
    if (!status) status = dt_model_settle(config);
    if (!status) status = dt_config_match(&before, config);
    if (!status && (before.train.local_steps > 1 || before.train.wire != DT_WIRE_F32))
        bank->groups_before = (int)before.train.groups;
    dt_config_free(&before);
    return status;
}

/* ---- what a resume changes ------------------------------------------------------------------ */

/* dt_change_fn; arg: struct dt_bank. */
static dt_status add_change(void *arg, const char *key, const char *before, const char *now)
{
    struct dt_bank *bank = arg;
    char *change;
    if (bank->change.text.length == 0) {
        dt_json_begin(&bank->change);
        dt_json_text(&bank->change, "kind", "change");
        dt_json_int(&bank->change, "step", (int64_t)bank->loaded.step);
    }
    DT_TRY(dt_format(&change, "%s -> %s", before, now));
    dt_json_text(&bank->change, key, change);
    dt_info("the resume changes %s: %s", strcmp(key, "rate") ? key : "the rate of the next step",
            change);
    dt_free(change);
    return DT_OK;
}

/* What goes into the history: the bits depend on it. So they do on the rate of the next update,
 * which more epochs change too, if the schedule ends with them. */
static dt_status collect_changes(struct dt_bank *bank)
{
    struct dt_job *now = bank->job, was = *now;
    struct dt_config before;
    char from[DT_REAL_TEXT], to[DT_REAL_TEXT];
    dt_status status;
    DT_GUARD(read_config_before(bank, &before));
    DT_GUARD(dt_config_changes(&before, now->config, add_change, bank));
    was.config = &before;
    was.last_step = dt__last_step(&was);
    dt_schedule_init(&was.schedule, &before, was.last_step);
    was.schedule.drops = now->schedule.drops = bank->loaded.best.drops;
    dt_real_text(dt_schedule_lr(&was.schedule, now->step), from);
    dt_real_text(dt_schedule_lr(&now->schedule, now->step), to);
    if (now->step < now->last_step && strcmp(from, to) != 0)
        DT_GUARD(add_change(bank, "rate", from, to));
    if (bank->change.text.length > 0) status = dt_json_end(&bank->change);
done:
    dt_config_free(&before);
    return status;
}

/* ---- the state at the start ----------------------------------------------------------------- */

/* The state as the first save will hold it; its vectors are the exchange's own. */
static dt_status fill_state(struct dt_bank *bank)
{
    struct dt_job *job = bank->job;
    const struct dt_checkpoint *loaded = &bank->loaded;
    struct dt_checkpoint *state = &bank->state;
    size_t replicas = (size_t)job->replicas;
    *state = (struct dt_checkpoint){.step = job->step,
                                    .mode = job->mode,
                                    .seed = (uint64_t)job->config->run.seed,
                                    .replicas = job->replicas,
                                    .kernel = (char *)(uintptr_t)dt_blas_kernel(),
                                    .data_crc = dt_source_crc(job->train),
                                    .desc = job->model->desc,
                                    .schema = *dt_source_schema(job->train),
                                    .params_count = job->model->params};
    DT_TRY(dt_alloc(replicas, sizeof(uint64_t), "draw counts", &state->draws));
    DT_TRY(dt_alloc(replicas, sizeof(double), "loss sums", &state->loss_sums));
    DT_TRY(dt_alloc(replicas, sizeof(double), "loss sums", &bank->no_loss));
    DT_TRY(dt_config_print(job->config, &state->config));
    if (!bank->resumed) return DT_OK;
    const char *before = loaded->history ? loaded->history : "";
    if (bank->change.text.length > 0)
        DT_TRY(dt_format(&state->history, "%s%s\n", before, bank->change.text.data));
    else if (*before)
        DT_TRY(dt_strdup(before, &state->history));
    state->samples = loaded->samples;
    state->wall_secs = bank->wall_before = loaded->wall_secs;
    state->train_secs = bank->log_train_secs = loaded->train_secs;
    /* An evaluator may have found and exported a better one after the checkpoint was made. */
    struct dt_best exported = {0}, *best = &job->best;
    *best = loaded->best;
    if (job->config->eval.dedicated) DT_TRY(dt_export_best(bank->best_dir, &exported));
    if (dt__best_beats(job, &exported, best)) *best = exported;
    best->stop = dt__stops_early(job, best);
    state->loss_rows = bank->log_rows_before = loaded->loss_rows;
    memcpy(state->draws, loaded->draws, replicas * sizeof(uint64_t));
    memcpy(state->loss_sums, loaded->loss_sums, replicas * sizeof(double));
    return DT_OK;
}

/* ---- weights and the optimizer's state ------------------------------------------------------ */

/* The one of n vectors that has this name; NULL: there is none. */
static const float *find_state(int n, const char *const *names, float *const *states,
                               const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0) return states[i];
    return NULL;
}

static const float *find_group_state(const struct dt_checkpoint *from, int group, const char *name)
{
    const int n = from->group_nstate;
    return find_state(n, from->group_state_name, from->group_state + group * n, name);
}

/* What a rounded wire keeps: of the update, and of what each group gives, which is gradients or
 * differences: an error goes on only as part of the same. */
static const char UPDATE_ERROR[] = "update_error", GRADIENT_ERROR[] = "gradient_error",
                  DIFFERENCE_ERROR[] = "difference_error";

/* By name: a momentum of 0 had none. `same`: there were these groups, of which this is the state of
 * `group`; what none of them had, but all in common, each has a copy of. Other groups than there
 * were: such as come together have the mean, such as part each a copy; but no rounding error, which
 * begins at 0. */
static void load_state(const struct dt_checkpoint *from, const char *name, bool same, int group,
                       float *out)
{
    const bool error = !strcmp(name, GRADIENT_ERROR) || !strcmp(name, DIFFERENCE_ERROR);
    const size_t n = (size_t)from->params_count;
    const float *one = same ? find_group_state(from, group, name) : NULL;
    if (!one) one = find_state(from->nstate, from->state_name, from->state, name);
    memset(out, 0, n * sizeof *out);
    if (one) memcpy(out, one, n * sizeof *out);
    for (int g = 0; g < from->groups && !same && !one && !error; g++) {
        const float *more = find_group_state(from, g, name);
        for (size_t i = 0; more && i < n; i++)
            out[i] += more[i] / (float)from->groups;
    }
}

/* The bank's copy of a group's vector (dt__local_vector); a process alone has it in one place. */
static dt_status make_group_vector(const struct dt_job *job, int group, int index, float **out)
{
    if (job->world->size > 1)
        return dt_alloc(job->model->params, sizeof **out, "the groups' state", out);
    *out = dt__local_vector(job, group, index);
    return DT_OK;
}

/* The groups' state and differences, as the bank has them. Rounding errors stand in the
 * exchange. */
static dt_status make_groups(struct dt_bank *bank)
{
    const struct dt_job *job = bank->job;
    struct dt_checkpoint *state = &bank->state;
    const int owned = job->local ? job->optimizer.nstate : 0, states = owned + dt__is_rounded(job);
    float **vectors;
    dt__bank_groups_free(bank);
    if (!job->local && !dt__is_rounded(job)) return DT_OK;
    DT_TRY(dt_alloc((size_t)(job->groups * states), sizeof *vectors, "groups", &vectors));
    bank->groups_owned = job->world->size > 1 ? owned : 0;
    state->group_state = vectors;
    state->groups = job->groups;
    state->group_nstate = states;
    for (int i = 0; i < owned; i++)
        state->group_state_name[i] = job->optimizer.state_name[i];
    if (states > owned)
        state->group_state_name[owned] = job->local ? DIFFERENCE_ERROR : GRADIENT_ERROR;
    for (int i = 0; i < job->groups * states; i++)
        if (i % states == owned)
            vectors[i] = dt_exchange_error(job->exchange, i / states);
        else
            DT_TRY(make_group_vector(job, i / states, i % states, &vectors[i]));
    if (!job->local || !dt__overlaps(job)) return DT_OK;
    DT_TRY(dt_alloc((size_t)job->groups, sizeof *vectors, "groups", &bank->group_difference));
    bank->differences_owned = job->world->size > 1;
    for (int g = 0; g < job->groups; g++)
        DT_TRY(make_group_vector(job, g, owned, &bank->group_difference[g]));
    return DT_OK;
}

void dt__bank_groups_free(struct dt_bank *bank)
{
    struct dt_checkpoint *state = &bank->state;
    for (int i = 0; i < state->groups * state->group_nstate; i++)
        if (i % state->group_nstate < bank->groups_owned) dt_free(state->group_state[i]);
    dt_free(state->group_state);
    for (int g = 0; bank->group_difference && bank->differences_owned && g < state->groups; g++)
        dt_free(bank->group_difference[g]);
    dt_free(bank->group_difference);
    bank->group_difference = state->group_difference = NULL;
    state->group_state = NULL;
    state->groups = state->group_nstate = 0;
}

/* What the state's vectors are: of the optimizer, or of the outer update and of each group's
 * optimizer. */
static dt_status name_vectors(struct dt_bank *bank, float *const *vectors)
{
    const struct dt_job *job = bank->job;
    const struct dt_optimizer *optimizer = job->local ? &job->outer : &job->optimizer;
    struct dt_checkpoint *state = &bank->state;
    state->params = vectors[0];
    state->nstate = optimizer->nstate;
    for (int i = 0; i < state->nstate; i++)
        state->state_name[i] = optimizer->state_name[i];
    if (dt__is_rounded(job)) state->state_name[state->nstate++] = UPDATE_ERROR;
    for (int i = 0; i < state->nstate; i++) {
        state->state[i] = vectors[1 + i];
        memset(vectors[1 + i], 0, (size_t)state->params_count * sizeof(float));
    }
    DT_TRY(make_groups(bank));
    for (int g = 0; g < state->groups && dt__is_rounded(job); g++)
        memset(dt_exchange_error(job->exchange, g), 0, (size_t)state->params_count * sizeof(float));
    return DT_OK;
}

/* The mean of what the groups' last round did. */
static void mean_difference(const struct dt_checkpoint *from, float *out)
{
    memset(out, 0, (size_t)from->params_count * sizeof *out);
    for (int g = 0; g < from->groups; g++)
        for (size_t i = 0; i < (size_t)from->params_count; i++)
            out[i] += from->group_difference[g][i] / (float)from->groups;
}

/* Where no exchange takes them up, the outer update with their mean is made here. */
static dt_status apply_differences(struct dt_bank *bank)
{
    struct dt_job *job = bank->job;
    struct dt_checkpoint *from = &bank->loaded;
    const size_t n = (size_t)from->params_count;
    const struct dt_update_info info = {.step = from->step};
    float *mean = NULL, *none = NULL;
    DT_TRY(dt_alloc(n, sizeof *mean, "differences", &mean));
    dt_status status = dt_alloc(n, sizeof *none, "outer momentum", &none);
    if (!status) {
        float *vectors[] = {from->params, none};
        for (int i = 0; i < from->nstate; i++)
            if (!strcmp(from->state_name[i], job->outer.state_name[0])) vectors[1] = from->state[i];
        mean_difference(from, mean);
        job->pending = true;
        dt__update_outer(job, &info, 0, n, mean, vectors, from->params);
        job->pending = false;
        dt_info("what the groups did in their last round, and were about to exchange, is applied "
                "now: train.overlap is off");
    }
    dt_free(none);
    dt_free(mean);
    return status;
}

static dt_status load_vectors(struct dt_bank *bank)
{
    struct dt_checkpoint *state = &bank->state;
    const struct dt_checkpoint *from = &bank->loaded;
    const bool same = from->groups == state->groups;
    const size_t bytes = (size_t)state->params_count * sizeof(float);
    if (from->group_difference && !bank->group_difference) {
        DT_TRY(apply_differences(bank));
    } else if (from->group_difference) {
        /* To where the groups' exchange takes them up; other groups each begin with the mean. */
        bank->job->pending = true;
        state->group_difference = bank->group_difference;
        for (int g = 0; g < state->groups; g++)
            if (same)
                memcpy(state->group_difference[g], from->group_difference[g], bytes);
            else
                mean_difference(from, state->group_difference[g]);
    }
    memcpy(state->params, from->params, bytes);
    for (int i = 0; i < state->nstate; i++)
        load_state(from, state->state_name[i], false, 0, state->state[i]);
    for (int i = 0; i < state->groups * state->group_nstate; i++)
        load_state(from, state->group_state_name[i % state->group_nstate], same,
                   i / state->group_nstate, state->group_state[i]);
    return DT_OK;
}

dt_status dt__bank_set_aside(struct dt_bank *bank)
{
    const struct dt_checkpoint *state = &bank->state;
    struct dt_checkpoint *to = &bank->loaded;
    const size_t n = (size_t)state->params_count;
    dt_checkpoint_free(to);
    DT_TRY(dt_alloc(n, sizeof(float), "weights", &to->params));
    memcpy(to->params, state->params, n * sizeof(float));
    to->params_count = n;
    for (int i = 0; i < state->nstate; i++) {
        DT_TRY(dt_strdup(state->state_name[i], (char **)(uintptr_t)&to->state_name[i]));
        DT_TRY(dt_alloc(n, sizeof(float), "optimizer state", &to->state[i]));
        memcpy(to->state[i], state->state[i], n * sizeof(float));
        to->nstate = i + 1;
    }
    return DT_OK;
}

dt_status dt__bank_refill(struct dt_bank *bank, float *const *vectors)
{
    DT_TRY(name_vectors(bank, vectors));
    return load_vectors(bank);
}

dt_status dt__bank_start(struct dt_bank *bank, float *const *vectors)
{
    const struct dt_checkpoint *state = &bank->state, *loaded = &bank->loaded;
    if (bank->resumed) DT_TRY(collect_changes(bank));
    DT_TRY(fill_state(bank));
    if (bank->resumed && strcmp(loaded->kernel, state->kernel) != 0)
        dt_warn("the checkpoint was made with kernel %s, this run has %s: other bits "
                "(run.kernel=%s keeps them)",
                loaded->kernel, state->kernel, loaded->kernel);
    if (bank->resumed && loaded->data_crc != state->data_crc)
        return dt_fail(DT_EMISMATCH,
                       "data.train=%s: files, rows or columns are not those that the "
                       "checkpoint was trained on",
                       bank->job->config->data.train);
    DT_TRY(name_vectors(bank, vectors));
    if (!bank->resumed) return dt__init_weights(bank, vectors[0]);
    if (loaded->params_count != state->params_count)
        return dt_fail(DT_EMISMATCH, "the checkpoint holds %llu parameters, the model has %llu",
                       (unsigned long long)loaded->params_count,
                       (unsigned long long)state->params_count);
    return load_vectors(bank);
}
