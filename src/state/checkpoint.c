#include "state/checkpoint.h"

#include <stddef.h>
#include <string.h>

#include "state/array.h"
#include "state/contents.h"
#include "state/export.h"
#include "state/field.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof(table)[0]))
#define FIELD(name, type, words)                                                                   \
    {                                                                                              \
#name, type, offsetof(struct dt_checkpoint, name), words                                   \
    }

/* What an export has not. */
static const struct dt__field FIELDS[] = {
    FIELD(mode, DT__FIELD_WORD, DT_MODE_WORDS), FIELD(seed, DT__FIELD_U64, NULL),
    FIELD(replicas, DT__FIELD_INT, NULL),       FIELD(samples, DT__FIELD_U64, NULL),
    FIELD(wall_secs, DT__FIELD_REAL, NULL),     FIELD(train_secs, DT__FIELD_REAL, NULL),
    FIELD(loss_rows, DT__FIELD_REAL, NULL),     FIELD(kernel, DT__FIELD_TEXT, NULL),
    FIELD(data_crc, DT__FIELD_U32, NULL),
};

/* Names of the optimizer's vectors; an attribute that is not there is a vector that is not. */
static const struct dt__field STATE_FIELDS[] = {
    {"state0", DT__FIELD_TEXT, offsetof(struct dt_checkpoint, state_name[0]), NULL},
    {"state1", DT__FIELD_TEXT, offsetof(struct dt_checkpoint, state_name[1]), NULL},
};
_Static_assert(COUNT(STATE_FIELDS) == DT_MAX_STATE, "a field for each vector of an optimizer");

enum { MAX_REPLICAS = 65536, PATH_SIZE = 64 };

void dt_checkpoint_free(struct dt_checkpoint *checkpoint)
{
    dt_free(checkpoint->draws);
    dt_free(checkpoint->loss_sums);
    dt_free(checkpoint->config);
    dt_free(checkpoint->kernel);
    dt_schema_free(&checkpoint->schema);
    dt_free(checkpoint->params);
    for (int i = 0; i < DT_MAX_STATE; i++) {
        dt_free((void *)checkpoint->state_name[i]); /* a copy, if it was loaded */
        dt_free(checkpoint->state[i]);
    }
    *checkpoint = (struct dt_checkpoint){0};
}

/* ---- packing -------------------------------------------------------------------------------- */

struct dt_export dt_export_of(const struct dt_checkpoint *checkpoint)
{
    return (struct dt_export){.step = checkpoint->step,
                              .spec = checkpoint->spec,
                              .schema = checkpoint->schema,
                              .params_count = checkpoint->params_count,
                              .params = checkpoint->params,
                              .config = checkpoint->config,
                              .best = checkpoint->best};
}

static struct dt__array per_replica(const struct dt_checkpoint *checkpoint, enum dt__type type)
{
    return (struct dt__array){type, (uint64_t)checkpoint->replicas, 0};
}

static dt_status put_replicas(hid_t file, const struct dt_checkpoint *from)
{
    DT_TRY(dt__group_put(file, "/replicas"));
    DT_TRY(dt__array_put(file, "/replicas/draws", per_replica(from, DT__U64), from->draws));
    return dt__array_put(file, "/replicas/loss_sums", per_replica(from, DT__F64), from->loss_sums);
}

static void state_path(char path[PATH_SIZE], const char *name)
{
    snprintf(path, PATH_SIZE, "/optimizer/%s", name);
}

static dt_status put_optimizer(hid_t file, const struct dt_model *model,
                               const struct dt_checkpoint *from)
{
    DT_TRY(dt__group_put(file, "/optimizer"));
    DT_TRY(dt__fields_put(file, "/optimizer", STATE_FIELDS, from->nstate, from));
    for (int i = 0; i < from->nstate; i++) {
        char path[PATH_SIZE];
        state_path(path, from->state_name[i]);
        DT_TRY(dt__group_put(file, path));
        DT_TRY(dt__flat_put(file, path, model, from->state[i]));
    }
    return DT_OK;
}

static dt_status put_all(hid_t file, const struct dt_model *model, const struct dt_checkpoint *from)
{
    struct dt_export shared = dt_export_of(from);
    if (dt_model_params(model) != from->params_count)
        return dt_fail(DT_EBUG, "a checkpoint of %llu parameters for a network of %zu",
                       (unsigned long long)from->params_count, dt_model_params(model));
    DT_TRY(dt__export_put(file, model, &shared));
    DT_TRY(dt__fields_put(file, "/", FIELDS, COUNT(FIELDS), from));
    DT_TRY(put_replicas(file, from));
    return put_optimizer(file, model, from);
}

/* Bytes that a file of the checkpoint will need: its vectors, names and some room for the rest. */
static size_t expected_size(const struct dt_checkpoint *from)
{
    enum { SLACK = 1 << 21 };
    return (size_t)from->params_count * sizeof(float) * (size_t)(1 + from->nstate) + SLACK;
}

dt_status dt__checkpoint_pack(const struct dt_checkpoint *checkpoint, struct dt__image *image)
{
    hid_t file = -1;
    struct dt_model *model;
    DT_TRY(dt_model_create(&checkpoint->spec, &model));
    dt_status status = dt__image_create(image, expected_size(checkpoint), &file);
    if (!status) status = put_all(file, model, checkpoint);
    if (!status)
        status = dt__image_seal(image, file, DT__CHECKPOINT);
    else
        dt__image_close(file);
    dt_model_destroy(model);
    return status;
}

dt_status dt_checkpoint_pack(const struct dt_checkpoint *checkpoint, void *out_bytes,
                             size_t *out_length)
{
    struct dt__image image = {0};
    dt_status status = dt__checkpoint_pack(checkpoint, &image);
    if (status) {
        dt__image_free(&image);
        return status;
    }
    memcpy(out_bytes, &image.bytes, sizeof image.bytes);
    *out_length = image.length;
    return DT_OK;
}

/* ---- loading -------------------------------------------------------------------------------- */

static void adopt(struct dt_checkpoint *to, const struct dt_export *shared)
{
    to->step = shared->step;
    to->spec = shared->spec;
    to->schema = shared->schema;
    to->params_count = shared->params_count;
    to->params = shared->params;
    to->config = shared->config;
    to->best = shared->best;
}

static dt_status get_replicas(const struct dt__tree *tree, struct dt_checkpoint *to)
{
    if (to->replicas < 1 || to->replicas > MAX_REPLICAS)
        return dt_fail(DT_EFORMAT, "%d replicas", to->replicas);
    DT_TRY(dt__array_load(tree, "/replicas/draws", per_replica(to, DT__U64), &to->draws));
    return dt__array_load(tree, "/replicas/loss_sums", per_replica(to, DT__F64), &to->loss_sums);
}

static bool is_plain_name(const char *name)
{
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return length > 0 && length < PATH_SIZE / 2 && name[length] == '\0';
}

static dt_status get_optimizer(const struct dt__tree *tree, const struct dt_model *model,
                               struct dt_checkpoint *to)
{
    DT_TRY(dt__fields_get(tree, "/optimizer", STATE_FIELDS, COUNT(STATE_FIELDS), to));
    for (; to->nstate < DT_MAX_STATE && to->state_name[to->nstate]; to->nstate++) {
        char path[PATH_SIZE];
        const char *name = to->state_name[to->nstate];
        if (!is_plain_name(name)) return dt_fail(DT_EFORMAT, "/optimizer: '%s' is no name", name);
        state_path(path, name);
        DT_TRY(dt__flat_load(tree, path, model, &to->state[to->nstate]));
    }
    return DT_OK;
}

static dt_status get_rest(const struct dt__tree *tree, const struct dt_model *model,
                          struct dt_checkpoint *to)
{
    DT_TRY(dt__fields_get(tree, "/", FIELDS, COUNT(FIELDS), to));
    if (!to->kernel)
        return dt_fail(DT_EFORMAT, "attribute kernel of / is missing or not as expected");
    DT_TRY(get_replicas(tree, to));
    return get_optimizer(tree, model, to);
}

static dt_status get_all(const struct dt__tree *tree, struct dt_checkpoint *out)
{
    struct dt_export shared;
    struct dt_model *model;
    struct dt_checkpoint to = {0};
    DT_TRY(dt__export_get(tree, &shared, &model));
    adopt(&to, &shared);
    dt_status status = get_rest(tree, model, &to);
    dt_model_destroy(model);
    if (status)
        dt_checkpoint_free(&to);
    else
        *out = to;
    return status;
}

dt_status dt__checkpoint_unpack(const char *name, const struct dt__image *image,
                                struct dt_checkpoint *out)
{
    struct dt__tree tree;
    if (!dt__tree_open(image, &tree))
        return dt_fail(DT_EFORMAT, "%s: not an HDF5 file of ours", name);
    dt_status status = get_all(&tree, out);
    return status ? dt_fail_prefix(status, "%s: ", name) : DT_OK;
}

dt_status dt_checkpoint_load(const char *path, struct dt_checkpoint *out)
{
    struct dt__image image;
    enum dt__image_kind kind;
    DT_TRY(dt__image_read(path, &image, &kind));
    dt_status status = kind == DT__CHECKPOINT
                           ? dt__checkpoint_unpack(path, &image, out)
                           : dt_fail(DT_EFORMAT, "%s: a model, not a checkpoint", path);
    dt__image_free(&image);
    return status;
}
