#include "state/contents.h"

#include <limits.h>
#include <stddef.h>

#include "data/h5.h"
#include "state/array.h"
#include "state/field.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof(table)[0]))

enum { PATH_SIZE = 128 };

static void layer_path(char path[PATH_SIZE], const char *group, int layer, const char *name)
{
    snprintf(path, PATH_SIZE, "%s/layers/%d%s", group, layer, name);
}

/* ---- spec ----------------------------------------------------------------------------------- */

#define SPEC(name, type, words) {#name, type, offsetof(struct dt_model_spec, name), words}
static const struct dt__field SPEC_FIELDS[] = {
    SPEC(kind, DT__FIELD_WORD, DT_KIND_WORDS),
    SPEC(activation, DT__FIELD_WORD, DT_ACTIVATION_WORDS),
    SPEC(task, DT__FIELD_WORD, DT_TASK_WORDS),
    SPEC(dropout, DT__FIELD_REAL, NULL),
    SPEC(nin, DT__FIELD_INT, NULL),
    SPEC(nout, DT__FIELD_INT, NULL),
    SPEC(nhidden, DT__FIELD_INT, NULL),
};

dt_status dt__spec_put(hid_t file, const struct dt_model_spec *spec)
{
    DT_TRY(dt__group_put(file, "/model"));
    return dt__fields_put(file, "/model", SPEC_FIELDS, COUNT(SPEC_FIELDS), spec);
}

static dt_status get_width(hid_t file, int layer, int *out)
{
    char path[PATH_SIZE];
    struct dt__h5_dataset weight;
    layer_path(path, "/model", layer, "/weight");
    DT_TRY(dt__h5_dataset_open(file, path, &weight));
    bool good = weight.rank == 2 && weight.dims[1] <= INT_MAX;
    if (good) *out = (int)weight.dims[1];
    dt__h5_dataset_close(&weight);
    return good ? DT_OK : dt_fail(DT_EFORMAT, "%s is not a matrix", path);
}

dt_status dt__spec_get(hid_t file, struct dt_model_spec *out)
{
    struct dt_model_spec spec = {0};
    DT_TRY(dt__fields_get(file, "/model", SPEC_FIELDS, COUNT(SPEC_FIELDS), &spec));
    if (spec.nhidden < 0 || spec.nhidden >= DT_MAX_LAYERS)
        return dt_fail(DT_EFORMAT, "/model: %d hidden layers", spec.nhidden);
    for (int i = 0; i < spec.nhidden; i++) DT_TRY(get_width(file, i, &spec.hidden[i]));
    *out = spec;
    return DT_OK;
}

/* ---- schema --------------------------------------------------------------------------------- */

#define SCHEMA(name, type, words) {#name, type, offsetof(struct dt_schema, name), words}
static const struct dt__field SCHEMA_FIELDS[] = {
    SCHEMA(task, DT__FIELD_WORD, DT_TASK_WORDS),
    SCHEMA(features, DT__FIELD_INT, NULL),
    SCHEMA(classes, DT__FIELD_INT, NULL),
    SCHEMA(targets, DT__FIELD_INT, NULL),
    SCHEMA(scale, DT__FIELD_REAL, NULL),
    SCHEMA(label_column, DT__FIELD_TEXT, NULL),
};

static struct dt__array per_feature(const struct dt_schema *schema)
{
    return (struct dt__array){DT__F32, (uint64_t)schema->features, 0};
}

static dt_status put_lists(hid_t file, const struct dt_schema *schema)
{
    if (schema->mean)
        DT_TRY(dt__array_put(file, "/schema/mean", per_feature(schema), schema->mean));
    if (schema->inv_std)
        DT_TRY(dt__array_put(file, "/schema/inv_std", per_feature(schema), schema->inv_std));
    if (schema->feature_names)
        DT_TRY(dt__h5_names_put(file, "/schema/feature_names", schema->feature_names,
                                (size_t)schema->features));
    if (schema->label_names)
        DT_TRY(dt__h5_names_put(file, "/schema/label_names", schema->label_names,
                                (size_t)schema->classes));
    return DT_OK;
}

dt_status dt__schema_put(hid_t file, const struct dt_schema *schema)
{
    DT_TRY(dt__group_put(file, "/schema"));
    DT_TRY(dt__fields_put(file, "/schema", SCHEMA_FIELDS, COUNT(SCHEMA_FIELDS), schema));
    return put_lists(file, schema);
}

static dt_status check_schema(const struct dt_schema *schema, const struct dt_model_spec *spec)
{
    bool good = schema->task == spec->task && schema->features == spec->nin &&
                schema->classes >= 0 && schema->targets >= 0 &&
                dt_schema_nout(schema) == spec->nout;
    return good ? DT_OK : dt_fail(DT_EFORMAT, "/schema does not fit /model");
}

static dt_status get_names(hid_t file, const char *path, int count, char ***out)
{
    struct dt__names list = {0};
    if (!dt__h5_exists(file, path)) return DT_OK;
    dt_status status = dt__h5_names_get(file, path, &list);
    if (!status && list.count != (size_t)count)
        status = dt_fail(DT_EFORMAT, "%s has %zu names, not %d", path, list.count, count);
    if (status)
        dt__names_free(list.items, list.count);
    else
        *out = list.items;
    return status;
}

static dt_status get_lists(hid_t file, struct dt_schema *schema)
{
    if (dt__h5_exists(file, "/schema/mean"))
        DT_TRY(dt__array_load(file, "/schema/mean", per_feature(schema), &schema->mean));
    if (dt__h5_exists(file, "/schema/inv_std"))
        DT_TRY(dt__array_load(file, "/schema/inv_std", per_feature(schema), &schema->inv_std));
    if (!schema->mean != !schema->inv_std)
        return dt_fail(DT_EFORMAT, "/schema has only one of mean and inv_std");
    DT_TRY(get_names(file, "/schema/feature_names", schema->features, &schema->feature_names));
    return get_names(file, "/schema/label_names", schema->classes, &schema->label_names);
}

dt_status dt__schema_get(hid_t file, const struct dt_model_spec *spec, struct dt_schema *out)
{
    struct dt_schema schema = {0};
    dt_status status;
    DT_GUARD(dt__fields_get(file, "/schema", SCHEMA_FIELDS, COUNT(SCHEMA_FIELDS), &schema));
    DT_GUARD(check_schema(&schema, spec));
    DT_GUARD(get_lists(file, &schema));
    *out = schema;
    return DT_OK;
done:
    dt_schema_free(&schema);
    return status;
}

/* ---- flat vectors --------------------------------------------------------------------------- */

static struct dt__array weight_of(const struct dt_layer *layer)
{
    return (struct dt__array){DT__F32, (uint64_t)layer->nin, (uint64_t)layer->nout};
}

static struct dt__array bias_of(const struct dt_layer *layer)
{
    return (struct dt__array){DT__F32, (uint64_t)layer->nout, 0};
}

static dt_status put_layer(hid_t file, const char *group, int index, const struct dt_layer *layer,
                           const float *flat)
{
    char path[PATH_SIZE];
    layer_path(path, group, index, "");
    DT_TRY(dt__group_put(file, path));
    layer_path(path, group, index, "/weight");
    DT_TRY(dt__array_put(file, path, weight_of(layer), flat + layer->weight));
    layer_path(path, group, index, "/bias");
    return dt__array_put(file, path, bias_of(layer), flat + layer->bias);
}

static dt_status get_layer(hid_t file, const char *group, int index, const struct dt_layer *layer,
                           float *flat)
{
    char path[PATH_SIZE];
    layer_path(path, group, index, "/weight");
    DT_TRY(dt__array_get(file, path, weight_of(layer), flat + layer->weight));
    layer_path(path, group, index, "/bias");
    return dt__array_get(file, path, bias_of(layer), flat + layer->bias);
}

dt_status dt__flat_put(hid_t file, const char *group, const struct dt_model *model,
                       const float *flat)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/layers", group);
    DT_TRY(dt__group_put(file, path));
    for (int i = 0; i < dt_model_layers(model); i++)
        DT_TRY(put_layer(file, group, i, dt_model_layer(model, i), flat));
    return DT_OK;
}

/* The file cannot hold more floats than it has bytes for. */
static dt_status check_room(hid_t file, const char *group, size_t params)
{
    hsize_t size;
    if (H5Fget_filesize(file, &size) >= 0 && params <= size / sizeof(float)) return DT_OK;
    return dt_fail(DT_EFORMAT, "the file is too short for the %zu floats of %s", params, group);
}

dt_status dt__flat_load(hid_t file, const char *group, const struct dt_model *model, float **out)
{
    float *flat;
    size_t params = dt_model_params(model);
    DT_TRY(check_room(file, group, params));
    DT_TRY(dt_alloc(params, sizeof *flat, group, &flat));
    dt_status status = DT_OK;
    for (int i = 0; i < dt_model_layers(model) && !status; i++)
        status = get_layer(file, group, i, dt_model_layer(model, i), flat);
    if (status)
        dt_free(flat);
    else
        *out = flat;
    return status;
}
