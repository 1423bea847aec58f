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

#define SPEC(name, what, words)                                                                    \
    {                                                                                              \
#name, what, offsetof(struct dt_model_spec, name), words                                   \
    }
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

static dt_status get_width(const struct dt__tree *tree, int layer, int *out)
{
    char path[PATH_SIZE];
    struct dt__value weight;
    layer_path(path, "/model", layer, "/weight");
    if (!dt__tree_dataset(tree, path, &weight) || weight.rank != 2 || weight.dims[1] > INT_MAX)
        return dt_fail(DT_EFORMAT, "%s is missing, or not a matrix that is in the file", path);
    *out = (int)weight.dims[1];
    return DT_OK;
}

dt_status dt__spec_get(const struct dt__tree *tree, struct dt_model_spec *out)
{
    struct dt_model_spec spec = {0};
    DT_TRY(dt__fields_get(tree, "/model", SPEC_FIELDS, COUNT(SPEC_FIELDS), &spec));
    if (spec.nhidden < 0 || spec.nhidden >= DT_MAX_LAYERS)
        return dt_fail(DT_EFORMAT, "/model: %d hidden layers", spec.nhidden);
    for (int i = 0; i < spec.nhidden; i++)
        DT_TRY(get_width(tree, i, &spec.hidden[i]));
    *out = spec;
    return DT_OK;
}

/* ---- schema --------------------------------------------------------------------------------- */

#define SCHEMA(name, what, words)                                                                  \
    {                                                                                              \
#name, what, offsetof(struct dt_schema, name), words                                       \
    }
static const struct dt__field SCHEMA_FIELDS[] = {
    SCHEMA(task, DT__FIELD_WORD, DT_TASK_WORDS), SCHEMA(features, DT__FIELD_INT, NULL),
    SCHEMA(classes, DT__FIELD_INT, NULL),        SCHEMA(targets, DT__FIELD_INT, NULL),
    SCHEMA(scale, DT__FIELD_REAL, NULL),         SCHEMA(label_column, DT__FIELD_TEXT, NULL),
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

static bool has(const struct dt__tree *tree, const char *path)
{
    struct dt__object object;
    return dt__tree_object(tree, path, &object);
}

static dt_status get_normalisation(const struct dt__tree *tree, struct dt_schema *schema)
{
    if (!has(tree, "/schema/mean") && !has(tree, "/schema/inv_std")) return DT_OK;
    DT_TRY(dt__array_load(tree, "/schema/mean", per_feature(schema), &schema->mean));
    return dt__array_load(tree, "/schema/inv_std", per_feature(schema), &schema->inv_std);
}

static dt_status get_names(const struct dt__tree *tree, const char *path, int count, char ***out)
{
    return has(tree, path) ? dt__names_load(tree, path, (size_t)count, out) : DT_OK;
}

dt_status dt__schema_get(const struct dt__tree *tree, const struct dt_model_spec *spec,
                         struct dt_schema *out)
{
    struct dt_schema s = {0};
    dt_status status;
    DT_GUARD(dt__fields_get(tree, "/schema", SCHEMA_FIELDS, COUNT(SCHEMA_FIELDS), &s));
    DT_GUARD(check_schema(&s, spec));
    DT_GUARD(get_normalisation(tree, &s));
    DT_GUARD(get_names(tree, "/schema/feature_names", s.features, &s.feature_names));
    DT_GUARD(get_names(tree, "/schema/label_names", s.classes, &s.label_names));
    *out = s;
    return DT_OK;
done:
    dt_schema_free(&s);
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

static dt_status get_layer(const struct dt__tree *tree, const char *group, int index,
                           const struct dt_layer *layer, float *flat)
{
    char path[PATH_SIZE];
    layer_path(path, group, index, "/weight");
    DT_TRY(dt__array_get(tree, path, weight_of(layer), flat + layer->weight));
    layer_path(path, group, index, "/bias");
    return dt__array_get(tree, path, bias_of(layer), flat + layer->bias);
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
static dt_status check_room(const struct dt__tree *tree, const char *group, size_t params)
{
    if (params <= tree->file.left / sizeof(float)) return DT_OK;
    return dt_fail(DT_EFORMAT, "the file is too short for the %zu floats of %s", params, group);
}

dt_status dt__flat_load(const struct dt__tree *tree, const char *group,
                        const struct dt_model *model, float **out)
{
    float *flat;
    size_t params = dt_model_params(model);
    DT_TRY(check_room(tree, group, params));
    DT_TRY(dt_alloc(params, sizeof *flat, group, &flat));
    dt_status status = DT_OK;
    for (int i = 0; i < dt_model_layers(model) && !status; i++)
        status = get_layer(tree, group, i, dt_model_layer(model, i), flat);
    if (status)
        dt_free(flat);
    else
        *out = flat;
    return status;
}
