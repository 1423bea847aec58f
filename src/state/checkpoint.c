/* Checkpoints: all that a resume needs, beyond what an export has. */
#include "state/checkpoint.h"

#include <string.h>

#include "state/field.h"
#include "state/model_file.h"

#define FIELD(name, kind, words) DT__FIELD(dt_checkpoint, #name, name, kind, words, false)

/* What an export has not. */
static const struct dt__field FIELDS[] = {
    FIELD(mode, DT__FIELD_WORD, DT_MODE_WORDS), FIELD(seed, DT__FIELD_U64, NULL),
    FIELD(replicas, DT__FIELD_INT, NULL),       FIELD(samples, DT__FIELD_U64, NULL),
    FIELD(wall_secs, DT__FIELD_REAL, NULL),     FIELD(train_secs, DT__FIELD_REAL, NULL),
    FIELD(loss_rows, DT__FIELD_REAL, NULL),     FIELD(kernel, DT__FIELD_TEXT, NULL),
    FIELD(data_crc, DT__FIELD_U32, NULL),       FIELD(history, DT__FIELD_TEXT, NULL),
};

/* Names of the optimizer's vectors; an attribute that is not there is a vector that is not. */
#define STATE(member, i) DT__FIELD(dt_checkpoint, "state" #i, member[i], DT__FIELD_TEXT, NULL, true)
static const struct dt__field STATE_FIELDS[] = {STATE(state_name, 0), STATE(state_name, 1),
                                                STATE(state_name, 2)};
_Static_assert(sizeof STATE_FIELDS / sizeof *STATE_FIELDS == DT_CHECKPOINT_STATE,
               "a field for each vector");

/* The same of each group's, and how many groups there are. */
static const struct dt__field GROUP_FIELDS[] = {
    STATE(group_state_name, 0), STATE(group_state_name, 1), STATE(group_state_name, 2),
    FIELD(groups, DT__FIELD_INT, NULL),
};

enum { MAX_REPLICAS = 65536, PATH_SIZE = 96 };

void dt_checkpoint_free(struct dt_checkpoint *checkpoint)
{
    dt_free(checkpoint->draws);
    dt_free(checkpoint->loss_sums);
    dt_free(checkpoint->config);
    dt_free(checkpoint->kernel);
    dt_free(checkpoint->history);
    dt_model_desc_free(&checkpoint->desc);
    dt_schema_free(&checkpoint->schema);
    dt_free(checkpoint->params);
    dt_free(checkpoint->best_params);
    for (int i = 0; i < DT_CHECKPOINT_STATE; i++) {
        dt_free((void *)checkpoint->state_name[i]); /* a copy, if it was loaded */
        dt_free(checkpoint->state[i]);
        dt_free((void *)checkpoint->group_state_name[i]);
    }
    for (int i = 0; checkpoint->group_state && i < checkpoint->groups * checkpoint->group_nstate;
         i++)
        dt_free(checkpoint->group_state[i]);
    dt_free(checkpoint->group_state);
    for (int g = 0; checkpoint->group_difference && g < checkpoint->groups; g++)
        dt_free(checkpoint->group_difference[g]);
    dt_free(checkpoint->group_difference);
    *checkpoint = (struct dt_checkpoint){0};
}

struct dt_export dt_export_of(const struct dt_checkpoint *checkpoint)
{
    return (struct dt_export){.step = checkpoint->step,
                              .desc = checkpoint->desc,
                              .schema = checkpoint->schema,
                              .params_count = checkpoint->params_count,
                              .params = checkpoint->params,
                              .config = checkpoint->config,
                              .best = checkpoint->best};
}

/* Beside a group's optimizer, of states too; if any group has one, all have. */
static void difference_path(char path[PATH_SIZE], int group)
{
    snprintf(path, PATH_SIZE, "/groups/%d/difference", group);
}

/* ---- writing -------------------------------------------------------------------------------- */

/* A group for each of an optimizer's vectors below the group `path`. */
static void vectors_put(struct dt__h5_layout *layout, const char *path,
                        const struct dt_model *model, const char *const *names,
                        float *const *vectors, int count)
{
    char below[2 * PATH_SIZE];
    for (int i = 0; i < count; i++) {
        snprintf(below, sizeof below, "%s/%s", path, names[i]);
        dt__h5_put_group(layout, below);
        dt__flat_put(layout, below, model, DT__TRAINED_TENSORS, vectors[i], NULL);
    }
}

static void checkpoint_put(struct dt__h5_layout *layout, const struct dt_model *model,
                           const struct dt_checkpoint *from)
{
    char path[PATH_SIZE];
    const uint64_t replicas = (uint64_t)from->replicas;
    dt__fields_put(layout, "/", DT__FIELDS(FIELDS), from);
    dt__h5_put_group(layout, "/replicas");
    dt__h5_put_array(layout, "/replicas/draws", DT__H5_U64, 1, &replicas, from->draws, NULL);
    dt__h5_put_array(layout, "/replicas/loss_sums", DT__H5_F64, 1, &replicas, from->loss_sums,
                     NULL);
    if (from->best_params) {
        dt__h5_put_group(layout, "/best");
        dt__flat_put(layout, "/best", model, DT__ALL_TENSORS, from->best_params, NULL);
    }
    dt__h5_put_group(layout, "/optimizer");
    dt__fields_put(layout, "/optimizer", STATE_FIELDS, from->nstate, from);
    vectors_put(layout, "/optimizer", model, from->state_name, from->state, from->nstate);
    if (from->groups == 0) return;
    dt__h5_put_group(layout, "/groups");
    dt__fields_put(layout, "/groups", DT__FIELDS(GROUP_FIELDS), from);
    for (int g = 0; g < from->groups; g++) {
        snprintf(path, sizeof path, "/groups/%d", g);
        dt__h5_put_group(layout, path);
        vectors_put(layout, path, model, from->group_state_name,
                    from->group_state + g * from->group_nstate, from->group_nstate);
        if (!from->group_difference) continue;
        difference_path(path, g);
        dt__h5_put_group(layout, path);
        dt__flat_put(layout, path, model, DT__ALL_TENSORS, from->group_difference[g], NULL);
    }
}

dt_status dt__state_write(const char *path, const struct dt_export *from,
                          const struct dt_checkpoint *rest)
{
    struct dt_model *model;
    struct dt__h5_layout *layout = NULL;
    struct dt__kept_rows *kept = NULL;
    dt_status status;
    DT_TRY(dt_model_create(&from->desc, &model));
    if (model->params != from->params_count)
        DT_GUARD(dt_fail(DT_EBUG, "a file of %llu parameters for a network of %zu",
                         (unsigned long long)from->params_count, model->params));
    if (!rest && model->row_sparse) DT_GUARD(dt__kept_rows_create(model, from->params, &kept));
    DT_GUARD(dt__h5_layout_create(DT__USER_BLOCK, &layout));
    dt__export_put(layout, model, from, kept);
    if (rest) checkpoint_put(layout, model, rest);
    status = dt__file_save(path, rest ? DT__CHECKPOINT : DT__MODEL, layout);
done:
    dt__h5_layout_free(layout);
    dt__kept_rows_free(model, kept);
    dt_model_destroy(model);
    return status;
}

/* ---- loading -------------------------------------------------------------------------------- */

/* How many vectors have names, each of which is a plain one. */
static dt_status names_check(const char *where, const char *const *names, int *out_count)
{
    int count = 0;
    for (; count < DT_CHECKPOINT_STATE && names[count]; count++) {
        size_t length = strspn(names[count], "abcdefghijklmnopqrstuvwxyz0123456789_");
        if (length == 0 || length >= PATH_SIZE / 2 || names[count][length])
            return dt_fail(DT_EFORMAT, "%s: '%s' is no name", where, names[count]);
    }
    *out_count = count;
    return DT_OK;
}

static dt_status vectors_load(struct dt__h5_file *file, const char *path,
                              const struct dt_model *model, const char *const *names, int count,
                              float **vectors)
{
    char below[2 * PATH_SIZE];
    for (int i = 0; i < count; i++) {
        snprintf(below, sizeof below, "%s/%s", path, names[i]);
        DT_TRY(dt__flat_load(file, below, model, DT__TRAINED_TENSORS, &vectors[i]));
    }
    return DT_OK;
}

static dt_status groups_load(struct dt__h5_file *file, const struct dt_model *model,
                             struct dt_checkpoint *to)
{
    char path[PATH_SIZE];
    dt_status status = dt__fields_get(file, "/groups", DT__FIELDS(GROUP_FIELDS), to);
    int groups = to->groups;
    to->groups = 0; /* until their vectors are there */
    DT_TRY(status);
    if (groups < 1 || groups > to->replicas)
        return dt_fail(DT_EFORMAT, "/groups: %d groups", groups);
    DT_TRY(names_check("/groups", to->group_state_name, &to->group_nstate));
    DT_TRY(dt_alloc((size_t)groups * (size_t)to->group_nstate, sizeof *to->group_state, "groups",
                    &to->group_state));
    to->groups = groups;
    for (int g = 0; g < groups; g++) {
        snprintf(path, sizeof path, "/groups/%d", g);
        DT_TRY(vectors_load(file, path, model, to->group_state_name, to->group_nstate,
                            to->group_state + g * to->group_nstate));
    }
    difference_path(path, 0);
    if (!dt__h5_find(file, DT__H5_GROUP, path)) return DT_OK;
    DT_TRY(dt_alloc((size_t)groups, sizeof *to->group_difference, "groups", &to->group_difference));
    for (int g = 0; g < groups; g++) {
        difference_path(path, g);
        DT_TRY(dt__flat_load(file, path, model, DT__ALL_TENSORS, &to->group_difference[g]));
    }
    return DT_OK;
}

dt_status dt__checkpoint_get(struct dt__h5_file *file, struct dt_checkpoint *out)
{
    struct dt_export shared;
    struct dt_model *model;
    dt_status status;
    DT_TRY(dt__export_get(file, &shared, &model));
    struct dt_checkpoint to = {.step = shared.step,
                               .desc = shared.desc,
                               .schema = shared.schema,
                               .params_count = shared.params_count,
                               .params = shared.params,
                               .config = shared.config,
                               .best = shared.best};
    DT_GUARD(dt__fields_get(file, "/", DT__FIELDS(FIELDS), &to));
    if (!to.kernel)
        DT_GUARD(dt_fail(DT_EFORMAT, "attribute kernel of / is missing or not as expected"));
    if (to.replicas < 1 || to.replicas > MAX_REPLICAS)
        DT_GUARD(dt_fail(DT_EFORMAT, "%d replicas", to.replicas));
    uint64_t replicas = (uint64_t)to.replicas;
    DT_GUARD(dt__vector_load(file, "/replicas/draws", DT__H5_U64, replicas, &to.draws));
    DT_GUARD(dt__vector_load(file, "/replicas/loss_sums", DT__H5_F64, replicas, &to.loss_sums));
    if (dt__h5_find(file, DT__H5_GROUP, "/best"))
        DT_GUARD(dt__flat_load(file, "/best", model, DT__ALL_TENSORS, &to.best_params));
    DT_GUARD(dt__fields_get(file, "/optimizer", DT__FIELDS(STATE_FIELDS), &to));
    DT_GUARD(names_check("/optimizer", to.state_name, &to.nstate));
    DT_GUARD(vectors_load(file, "/optimizer", model, to.state_name, to.nstate, to.state));
    if (dt__h5_find(file, DT__H5_GROUP, "/groups")) DT_GUARD(groups_load(file, model, &to));
done:
    dt_model_destroy(model);
    if (status)
        dt_checkpoint_free(&to);
    else
        *out = to;
    return status;
}

dt_status dt_checkpoint_load(const char *path, struct dt_checkpoint *out)
{
    struct dt__h5_file *file;
    enum dt__file_kind kind;
    DT_TRY(dt__file_open(path, &kind, NULL, &file));
    dt_status status = kind == DT__CHECKPOINT ? dt__checkpoint_get(file, out)
                                              : dt_fail(DT_EFORMAT, "a model, not a checkpoint");
    dt__h5_close(file);
    return status ? dt_fail_prefix(status, "%s: ", path) : DT_OK;
}
