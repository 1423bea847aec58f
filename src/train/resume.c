/* What a run starts from: new weights, those of a model (run.init), or a checkpoint's state; and what a
 * resume changes. Bank only.
 *
 * A resume takes all of the checkpoint: weights, optimizer, counts, the sums of the open log window. Its
 * configuration has to match, but for keys that may change; those that change the bits go into the
 * history, a JSON line a resume, which every later checkpoint carries. */
#include <stdlib.h>
#include <string.h>

#include "model/layer.h"
#include "train/local.h"

/* ---- the checkpoint ----------------------------------------------------------------------- */

/* The configuration of the run that is resumed. Free it in either case. */
static dt_status read_config_before(const struct dt_bank *bank, struct dt_config *out)
{
    DT_TRY(dt_config_init(out));
    DT_TRY(dt_config_read_text(out, "checkpoint", bank->loaded.config));
    return dt_model_settle(out); /* a run of version 0.1 has the short forms alone */
}

dt_status dt__resume_load(struct dt_bank *bank)
{
    const char *resume = bank->job->config->run.resume;
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
    if (!status) status = dt_config_match(&before, bank->job->config);
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

/* The rate of the next update, which more epochs change too, if the schedule ends with them. */
static dt_status add_rate_change(struct dt_bank *bank, const struct dt_config *before)
{
    struct dt_job *now = bank->job, was = *now;
    char from[DT_REAL_TEXT], to[DT_REAL_TEXT];
    was.config = before;
    was.last_step = dt__last_step(&was);
    dt_schedule_init(&was.schedule, before, was.last_step);
    was.schedule.drops = now->schedule.drops = bank->loaded.best.drops;
    if (now->step >= now->last_step) return DT_OK;
    dt_real_text(dt_schedule_lr(&was.schedule, now->step), from);
    dt_real_text(dt_schedule_lr(&now->schedule, now->step), to);
    return strcmp(from, to) != 0 ? add_change(bank, "rate", from, to) : DT_OK;
}

/* What goes into the history: the bits depend on it. */
static dt_status collect_changes(struct dt_bank *bank)
{
    struct dt_config before;
    dt_status status = read_config_before(bank, &before);
    if (!status) status = dt_config_changes(&before, bank->job->config, add_change, bank);
    if (!status) status = add_rate_change(bank, &before);
    if (!status && bank->change.text.length > 0) status = dt_json_end(&bank->change);
    dt_config_free(&before);
    return status;
}

/* ---- new weights ---------------------------------------------------------------------------- */

/* Inputs go by their names: two tables may have the same columns in another order, and number the same categories
 * otherwise, which go by their counts. */
struct named {
    const char *text;
    uint32_t input;
};

static int named_compare(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->text, ((const struct named *)b)->text);
}

/* For each input of `to` the one of `from` that bears its name, UINT32_MAX: none. *out NULL: all have their
 * places, or have no names. */
static dt_status match_inputs(const struct dt_schema *to, const struct dt_schema *from, uint32_t **out)
{
    const size_t count = (size_t)from->features;
    struct named *named = NULL;
    uint32_t *match = NULL;
    bool same = to->features == from->features;
    *out = NULL;
    if (!to->feature_names || !from->feature_names) return DT_OK;
    dt_status status = dt_alloc(count, sizeof *named, "names", &named);
    if (!status) status = dt_alloc((size_t)to->features, sizeof *match, "inputs", &match);
    for (uint32_t i = 0; i < count && !status; i++)
        named[i] = (struct named){from->feature_names[i], i};
    if (!status) qsort(named, count, sizeof *named, named_compare);
    for (uint32_t i = 0; i < (uint32_t)to->features && !status; i++) {
        const struct named key = {to->feature_names[i], i};
        const struct named *found = bsearch(&key, named, count, sizeof key, named_compare);
        const bool stays = i < count && strcmp(from->feature_names[i], key.text) == 0;
        match[i] = stays ? i : found ? found->input : UINT32_MAX;
        same &= stays;
    }
    dt_free(named);
    if (!status && !same)
        *out = match;
    else
        dt_free(match);
    return status;
}

/* Columns alike by place and name, as far as an embedding's vectors lie by them. */
static bool columns_match(const struct dt_schema *to, const struct dt_schema *from)
{
    if (!to->columns || !from->columns) return to->columns == from->columns;
    bool same = to->ncolumns == from->ncolumns && to->hash_bits == from->hash_bits;
    for (int c = 0; c < to->ncolumns && same; c++) {
        const char *name = to->columns[c].name, *other = from->columns[c].name;
        same = to->columns[c].kind == from->columns[c].kind &&
               (!name || !other || strcmp(name, other) == 0);
    }
    return same;
}

/* Rows of a tensor that reads the inputs, from where their inputs stand in `from`; the others stay as they
 * are in `rows`, which has the tensor's size. */
static size_t copy_rows(const struct dt_tensor *to, size_t inputs, const uint32_t *match,
                        const struct dt_tensor *from, size_t inputs_before, const float *source,
                        float *rows)
{
    const size_t first = inputs - to->shape[0], first_before = inputs_before - from->shape[0];
    const size_t width = to->count / to->shape[0];
    size_t copied = 0;
    for (size_t r = 0; r < to->shape[0]; r++) {
        const uint32_t input = match[first + r];
        if (input == UINT32_MAX || input < first_before) continue;
        memcpy(rows + r * width, source + (input - first_before) * width, width * sizeof *rows);
        copied++;
    }
    return copied;
}

/* The tensor of this name and shape; NULL: there is none. *out_named: there is one of the name. by_name: a tensor
 * that reads the inputs may have other ones. */
static const struct dt_tensor *find_tensor(const struct dt_model *model, const struct dt_tensor *like,
                                           bool by_name, bool *out_named)
{
    const size_t free_dims = by_name && like->row_sparse;
    *out_named = false;
    for (size_t i = 0; i < model->tensors; i++) {
        const struct dt_tensor *tensor = &model->tensor[i];
        if (strcmp(tensor->name, like->name) != 0) continue;
        *out_named = true;
        if (tensor->rank == like->rank && (!free_dims || tensor->row_sparse) &&
            memcmp(tensor->shape + free_dims, like->shape + free_dims,
                   ((size_t)like->rank - free_dims) * sizeof *like->shape) == 0)
            return tensor;
    }
    return NULL;
}

/* Copies a tensor. Weights and bias of the output layer are put into the new targets' units, so that the same
 * values are predicted: (W x + b) s0 + m0 = (W' x + b') s1 + m1. */
static void copy_tensor(const struct dt_model *to, const struct dt_schema *schema, float *params,
                        const struct dt_schema *before, const float *source,
                        const struct dt_tensor *tensor)
{
    const float *m0 = before->target_mean, *m1 = schema->target_mean;
    const float *s0 = before->target_std, *s1 = schema->target_std;
    const size_t channels = tensor->rank ? tensor->shape[tensor->rank - 1] : 1;
    const size_t outputs = (size_t)to->desc.nout;
    const struct dt__layer *last = &to->layer[to->layers - 1];
    if (!last->last) last--; /* the linear path is behind the output layer, with weights in the same units */
    float *params_at = params + tensor->offset;
    memcpy(params_at, source, tensor->count * sizeof *params);
    if ((!m0 && !m1) || tensor->layer < last->index || channels > outputs) return;
    for (size_t i = 0; i < tensor->count && tensor->role != DT_TENSOR_STATE; i++) {
        const size_t c = i % channels;
        const double factor = (s0 ? (double)s0[c] : 1) / (s1 ? (double)s1[c] : 1);
        double offset = ((m0 ? (double)m0[c] : 0) - (m1 ? (double)m1[c] : 0));
        offset = tensor->role == DT_TENSOR_BIAS ? offset / (s1 ? (double)s1[c] : 1) : 0;
        params_at[i] = (float)((double)source[i] * factor + offset);
    }
}

/* A tensor that reads the inputs, by their names. */
static dt_status copy_by_name(const struct dt_job *job, const struct dt_tensor *tensor,
                              const uint32_t *match, const struct dt_export *file,
                              const struct dt_tensor *source, float *params)
{
    const struct dt_schema *schema = dt_source_schema(job->train);
    float *rows;
    DT_TRY(dt_alloc(tensor->count, sizeof *rows, tensor->name, &rows));
    memcpy(rows, params + tensor->offset, tensor->count * sizeof *rows);
    const size_t copied =
        copy_rows(tensor, (size_t)schema->features, match, source, (size_t)file->schema.features,
                  file->params + source->offset, rows);
    copy_tensor(job->model, schema, params, &file->schema, rows, tensor);
    dt_free(rows);
    dt_info("run.init: %s: %zu of %zu inputs by their names%s", tensor->name, copied,
            tensor->shape[0], copied < tensor->shape[0] ? ", the others start fresh" : "");
    return DT_OK;
}

/* What does not fit keeps the weights that it has, which are new; that is said. */
static dt_status copy_tensors(const struct dt_job *job, float *params, const struct dt_model *from,
                              const struct dt_export *file, const char *path, size_t *out_taken)
{
    const struct dt_model *to = job->model;
    const struct dt_schema *schema = dt_source_schema(job->train);
    size_t taken = 0, tensors = to->tensors;
    uint32_t *match;
    dt_status status = match_inputs(schema, &file->schema, &match);
    const bool embeds = to->desc.categories && to->layer->row_sparse >= 0;
    if (!status && ((embeds && !columns_match(schema, &file->schema)) ||
                    (match && to->layer->row_sparse < 0)))
        dt_warn("run.init: %s was trained on other columns, or in another order; weights behind the "
                "first layer go by their places", path);
    /* Hashed inputs, and those of a file without header, have no names. */
    const bool unnamed = !schema->feature_names || !file->schema.feature_names;
    const bool known = schema->feature_names || file->schema.feature_names;
    if (!status && unnamed && !embeds && (known || !columns_match(schema, &file->schema)))
        dt_warn("run.init: %s: inputs go by their places: they have no names to go by, and may differ",
                path);
    for (size_t i = 0; i < tensors && !status; i++) {
        const struct dt_tensor *tensor = &to->tensor[i];
        bool named;
        const struct dt_tensor *source = find_tensor(from, tensor, match != NULL, &named);
        if (source && match && tensor->row_sparse)
            status = copy_by_name(job, tensor, match, file, source, params);
        else if (source)
            copy_tensor(to, schema, params, &file->schema, file->params + source->offset, tensor);
        else
            dt_info("run.init: %s starts fresh: %s", tensor->name,
                    named ? "it has another shape there" : "it is not there");
        taken += source != NULL;
    }
    dt_free(match);
    DT_TRY(status);
    if (taken == 0)
        return dt_fail(DT_EMISMATCH,
                       "run.init=%s: not one tensor has a name and shape of this model", path);
    dt_info("run.init: %zu of %zu tensors from %s", taken, tensors, path);
    *out_taken = taken;
    return DT_OK;
}

/* A new run's weights. Those of another run are the first line of the history. */
static dt_status init_weights(struct dt_bank *bank, float *params)
{
    const struct dt_job *job = bank->job;
    const char *from = job->config->run.init;
    struct dt_export file = {0};
    struct dt_model *model = NULL;
    char *path = NULL, *text = NULL;
    size_t taken = 0;
    dt_model_init(job->model, (uint64_t)job->config->run.seed, params);
    /* A linear model begins at 0, as in ftrl's paper: features that never come have no weight. */
    if (job->optimizer.kind == DT_OPT_FTRL && job->model->buckets == 1)
        memset(params, 0, job->model->params * sizeof *params);
    if (!*from) return DT_OK;
    dt_status status = dt_export_load(from, &file, &path);
    if (!status) status = dt_model_create(&file.desc, &model);
    if (!status && model->params != file.params_count)
        status = dt_fail(DT_EFORMAT, "%s: %llu parameters are not those of its layers", path,
                         (unsigned long long)file.params_count);
    if (!status) status = copy_tensors(job, params, model, &file, path, &taken);
    if (!status)
        status = dt_format(&text, "%zu tensors of %s, params_crc32c %08x", taken, path,
                           dt_crc32c(0, file.params, file.params_count * sizeof(float)));
    if (!status) {
        dt_json_begin(&bank->change);
        dt_json_text(&bank->change, "kind", "change");
        dt_json_int(&bank->change, "step", 0);
        dt_json_text(&bank->change, "run.init", text);
        status = dt_json_end(&bank->change);
    }
    if (!status) status = dt_format(&bank->state.history, "%s\n", bank->change.text.data);
    dt_free(text);
    dt_model_destroy(model);
    dt_export_free(&file);
    dt_free(path);
    return status;
}

/* ---- the state at the start ----------------------------------------------------------------- */

/* An evaluator may have found and exported a better one after the checkpoint was made. */
static dt_status restore_best(struct dt_bank *bank)
{
    struct dt_job *job = bank->job;
    struct dt_best exported = {0}, *best = &job->best;
    *best = bank->loaded.best;
    if (job->config->eval.dedicated) DT_TRY(dt_export_best(bank->best_dir, &exported));
    if (dt__best_beats(job, &exported, best)) *best = exported;
    best->stop = dt__stops_early(job, best);
    return DT_OK;
}

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
    DT_TRY(restore_best(bank));
    state->loss_rows = loaded->loss_rows;
    memcpy(state->draws, loaded->draws, replicas * sizeof(uint64_t));
    memcpy(state->loss_sums, loaded->loss_sums, replicas * sizeof(double));
    return DT_OK;
}

/* ---- weights and the optimizer's state ------------------------------------------------------ */

/* The vector of this name; NULL: there is none. */
static const float *find_state(const struct dt_checkpoint *from, const char *name)
{
    for (int i = 0; i < from->nstate; i++)
        if (strcmp(from->state_name[i], name) == 0) return from->state[i];
    return NULL;
}

static const float *find_group_state(const struct dt_checkpoint *from, int group, const char *name)
{
    for (int i = 0; i < from->group_nstate; i++)
        if (strcmp(from->group_state_name[i], name) == 0)
            return from->group_state[group * from->group_nstate + i];
    return NULL;
}

/* What a rounded wire keeps: of the update, and of what each group gives, which is gradients or differences: an
 * error goes on only as part of the same. */
static const char UPDATE_ERROR[] = "update_error", GRADIENT_ERROR[] = "gradient_error",
                  DIFFERENCE_ERROR[] = "difference_error";

/* By name: a momentum of 0 had none. `group` one of other groups than there were: groups that come together
 * have the mean, groups that part each a copy; but no rounding error, which begins at 0. */
static void load_state(const struct dt_checkpoint *from, const char *name, bool same, int group,
                       float *out)
{
    const bool error = !strcmp(name, GRADIENT_ERROR) || !strcmp(name, DIFFERENCE_ERROR);
    const size_t n = (size_t)from->params_count;
    const float *one = same ? find_group_state(from, group, name) : find_state(from, name);
    memset(out, 0, n * sizeof *out);
    if (one) memcpy(out, one, n * sizeof *out);
    for (int g = 0; g < from->groups && !same && !one && !error; g++) {
        const float *more = find_group_state(from, g, name);
        for (size_t i = 0; more && i < n; i++)
            out[i] += more[i] / (float)from->groups;
    }
}

/* Likewise of the groups' differences. */
static dt_status make_differences(struct dt_bank *bank)
{
    const struct dt_job *job = bank->job;
    const size_t groups = (size_t)job->groups, params = job->model->params;
    DT_TRY(dt_alloc(groups, sizeof(float *), "groups", &bank->group_difference));
    bank->differences_owned = job->world->size > 1;
    for (int g = 0; g < job->groups; g++)
        if (bank->differences_owned)
            DT_TRY(dt_alloc(params, sizeof(float), "groups", &bank->group_difference[g]));
        else
            bank->group_difference[g] = dt__local_difference(job, g);
    return DT_OK;
}

/* The bank's copy of the groups' state; a process alone has it in one place. Rounding errors stand in the
 * exchange. */
static dt_status make_groups(struct dt_bank *bank)
{
    const struct dt_job *job = bank->job;
    struct dt_checkpoint *state = &bank->state;
    const int owned = job->local ? job->optimizer.nstate : 0, states = owned + dt__is_rounded(job);
    const bool own = job->world->size > 1;
    float **vectors;
    dt__bank_groups_free(bank);
    if (!job->local && !dt__is_rounded(job)) return DT_OK;
    DT_TRY(dt_alloc((size_t)(job->groups * states), sizeof *vectors, "groups", &vectors));
    bank->groups_owned = own ? owned : 0;
    state->group_state = vectors;
    state->groups = job->groups;
    state->group_nstate = states;
    for (int i = 0; i < owned; i++)
        state->group_state_name[i] = job->optimizer.state_name[i];
    if (states > owned)
        state->group_state_name[owned] = job->local ? DIFFERENCE_ERROR : GRADIENT_ERROR;
    for (int i = 0; i < job->groups * states; i++)
        if (i % states == owned)
            vectors[i] = dt_reducer_error(job->reducer, i / states);
        else if (own)
            DT_TRY(dt_alloc((size_t)state->params_count, sizeof(float), "the groups' state",
                            &vectors[i]));
        else
            vectors[i] = dt__local_state(job, i / states, i % states);
    return job->local && dt__overlaps(job) ? make_differences(bank) : DT_OK;
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

/* What the state's vectors are: of the optimizer, or of the outer update and of each group's optimizer. */
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
        memset(dt_reducer_error(job->reducer, g), 0, (size_t)state->params_count * sizeof(float));
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

/* To where the groups' exchange takes them up; other groups each begin with the mean. */
static void load_differences(struct dt_bank *bank, bool same)
{
    struct dt_checkpoint *state = &bank->state;
    const struct dt_checkpoint *from = &bank->loaded;
    bank->job->pending = true;
    state->group_difference = bank->group_difference;
    for (int g = 0; g < state->groups; g++)
        if (same)
            memcpy(state->group_difference[g], from->group_difference[g],
                   (size_t)from->params_count * sizeof(float));
        else
            mean_difference(from, state->group_difference[g]);
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
    if (from->group_difference && bank->group_difference)
        load_differences(bank, same);
    else if (from->group_difference)
        DT_TRY(apply_differences(bank));
    memcpy(state->params, from->params, (size_t)state->params_count * sizeof(float));
    for (int i = 0; i < state->nstate; i++)
        load_state(from, state->state_name[i], false, 0, state->state[i]);
    for (int i = 0; i < state->groups * state->group_nstate; i++)
        load_state(from, state->group_state_name[i % state->group_nstate], same,
                   i / state->group_nstate, state->group_state[i]);
    return DT_OK;
}

/* Weights and optimizer state: the checkpoint's, or new ones. */
static dt_status fill_vectors(struct dt_bank *bank, float *const *vectors)
{
    const struct dt_checkpoint *state = &bank->state, *loaded = &bank->loaded;
    DT_TRY(name_vectors(bank, vectors));
    if (!bank->resumed) return init_weights(bank, vectors[0]);
    if (loaded->params_count != state->params_count)
        return dt_fail(DT_EMISMATCH, "the checkpoint holds %llu parameters, the model has %llu",
                       (unsigned long long)loaded->params_count,
                       (unsigned long long)state->params_count);
    return load_vectors(bank);
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

static dt_status check_data(const struct dt_bank *bank)
{
    if (strcmp(bank->loaded.kernel, bank->state.kernel) != 0)
        dt_warn("the checkpoint was made with kernel %s, this run has %s: other bits "
                "(run.kernel=%s keeps them)",
                bank->loaded.kernel, bank->state.kernel, bank->loaded.kernel);
    if (bank->loaded.data_crc == bank->state.data_crc) return DT_OK;
    return dt_fail(DT_EMISMATCH,
                   "data.train=%s: files, rows or columns are not those that the "
                   "checkpoint was trained on",
                   bank->job->config->data.train);
}

dt_status dt__bank_start(struct dt_bank *bank, float *const *vectors)
{
    if (bank->resumed) DT_TRY(collect_changes(bank));
    DT_TRY(fill_state(bank));
    if (bank->resumed) DT_TRY(check_data(bank));
    return fill_vectors(bank, vectors);
}
