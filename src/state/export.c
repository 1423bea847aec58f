#include "state/export.h"

#include <stddef.h>

#include "state/contents.h"
#include "state/field.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof(table)[0]))
#define EXPORT(name, type)                                                                         \
    {                                                                                              \
#name, type, offsetof(struct dt_export, name), NULL                                        \
    }
#define BEST(name, type)                                                                           \
    {                                                                                              \
        "best_" #name, type, offsetof(struct dt_export, best.name), NULL                           \
    }

static const struct dt__field FIELDS[] = {
    EXPORT(step, DT__FIELD_U64), EXPORT(config, DT__FIELD_TEXT), BEST(known, DT__FIELD_BOOL),
    BEST(value, DT__FIELD_REAL), BEST(metric, DT__FIELD_NAME),   BEST(step, DT__FIELD_U64),
    BEST(since, DT__FIELD_I64),  BEST(seen, DT__FIELD_U64),      BEST(stop, DT__FIELD_BOOL),
};

/* For readers with HDF5 alone; the user block has the version as well. */
struct format {
    int version;
};
static const struct dt__field FORMAT_FIELD = {"format_version", DT__FIELD_INT,
                                              offsetof(struct format, version), NULL};

void dt_export_free(struct dt_export *model)
{
    dt_schema_free(&model->schema);
    dt_free(model->params);
    dt_free(model->config);
    *model = (struct dt_export){0};
}

dt_status dt__export_put(hid_t file, const struct dt_model *model, const struct dt_export *from)
{
    struct format format = {DT__FORMAT_VERSION};
    DT_TRY(dt__fields_put(file, "/", &FORMAT_FIELD, 1, &format));
    DT_TRY(dt__fields_put(file, "/", FIELDS, COUNT(FIELDS), from));
    DT_TRY(dt__schema_put(file, &from->schema));
    DT_TRY(dt__spec_put(file, &from->spec));
    return dt__flat_put(file, "/model", model, from->params);
}

/* The network of the spec; a spec that makes none is the file's fault. */
static dt_status make_model(const struct dt_model_spec *spec, struct dt_model **out)
{
    dt_status status = dt_model_create(spec, out);
    return status == DT_EUSAGE ? dt_fail_prefix(DT_EFORMAT, "/model: ") : status;
}

static dt_status get(const struct dt__tree *tree, struct dt_export *out,
                     struct dt_model **out_model)
{
    struct format format;
    DT_TRY(dt__fields_get(tree, "/", &FORMAT_FIELD, 1, &format));
    if (format.version != DT__FORMAT_VERSION)
        return dt_fail(DT_EFORMAT, "format_version is %d", format.version);
    DT_TRY(dt__fields_get(tree, "/", FIELDS, COUNT(FIELDS), out));
    if (!out->config)
        return dt_fail(DT_EFORMAT, "attribute config of / is missing or not as expected");
    DT_TRY(dt__spec_get(tree, &out->spec));
    DT_TRY(make_model(&out->spec, out_model));
    DT_TRY(dt__schema_get(tree, &out->spec, &out->schema));
    out->params_count = dt_model_params(*out_model);
    return dt__flat_load(tree, "/model", *out_model, &out->params);
}

dt_status dt__export_get(const struct dt__tree *tree, struct dt_export *out,
                         struct dt_model **out_model)
{
    struct dt_export from = {0};
    struct dt_model *model = NULL;
    dt_status status = get(tree, &from, &model);
    if (status) {
        dt_export_free(&from);
        dt_model_destroy(model);
        return status;
    }
    if (out_model)
        *out_model = model;
    else
        dt_model_destroy(model);
    *out = from;
    return DT_OK;
}

dt_status dt__export_unpack(const char *name, const struct dt__image *image, struct dt_export *out)
{
    struct dt__tree tree;
    if (!dt__tree_open(image, &tree))
        return dt_fail(DT_EFORMAT, "%s: not an HDF5 file of ours", name);
    dt_status status = dt__export_get(&tree, out, NULL);
    return status ? dt_fail_prefix(status, "%s: ", name) : DT_OK;
}
