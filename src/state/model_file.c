/* What defines the network, the schema and the tensors in a file. */
#include "state/model_file.h"

#include <math.h>
#include <string.h>

#include "data/columns.h"
#include "state/field.h"

enum { PATH_SIZE = 192 };

/* ---- what defines the network --------------------------------------------------------------- */

#define DESC(name, member, kind, words) DT__FIELD(dt_model_desc, name, member, kind, words, false)
static const struct dt__field DESC_FIELDS[] = {
    DESC("layers", layers, DT__FIELD_TEXT, NULL), DESC("task", task, DT__FIELD_WORD, DT_TASK_WORDS),
    DESC("nout", nout, DT__FIELD_INT, NULL),      DESC("height", shape[0], DT__FIELD_INT, NULL),
    DESC("width", shape[1], DT__FIELD_INT, NULL), DESC("channels", shape[2], DT__FIELD_INT, NULL),
};
/* Of a model with an embedding. */
#define INPUTS(name) DT__FIELD(dt_model_desc, #name, name, DT__FIELD_INT, NULL, true)
static const struct dt__field INPUT_FIELDS[] = {INPUTS(dense), INPUTS(categories)};
/* Of a loss that is not the task's usual one. */
static const struct dt__field LOSS_FIELDS[] = {
    DT__FIELD(dt_model_desc, "loss", loss, DT__FIELD_WORD, DT_LOSS_WORDS, true),
    DT__FIELD(dt_model_desc, "huber_delta", huber_delta, DT__FIELD_REAL, NULL, true),
};

/* What version 0.1 wrote instead of a text: an MLP, whose hidden widths are those of its
 * weights. */
struct short_form {
    char kind[16], activation[16];
    double dropout;
    int task, nin, nout, nhidden;
};
#define SHORT(name, kind, words) DT__FIELD(short_form, #name, name, kind, words, false)
static const struct dt__field SHORT_FIELDS[] = {
    SHORT(kind, DT__FIELD_NAME, NULL),    SHORT(activation, DT__FIELD_NAME, NULL),
    SHORT(dropout, DT__FIELD_REAL, NULL), SHORT(task, DT__FIELD_WORD, DT_TASK_WORDS),
    SHORT(nin, DT__FIELD_INT, NULL),      SHORT(nout, DT__FIELD_INT, NULL),
    SHORT(nhidden, DT__FIELD_INT, NULL),
};

static dt_status short_form_get(const struct dt__h5_file *file, struct dt_model_desc *out)
{
    struct short_form form = {0};
    struct dt_text layers = {0};
    char path[PATH_SIZE], real[DT_REAL_TEXT];
    dt_status status;
    DT_GUARD(dt__fields_get(file, "/model", DT__FIELDS(SHORT_FIELDS), &form));
    if (form.nhidden < 0 || form.nhidden > 1000)
        DT_GUARD(dt_fail(DT_EFORMAT, "/model: %d hidden layers", form.nhidden));
    if (form.nhidden == 0) DT_GUARD(dt_text_add(&layers, "linear"));
    for (int i = 0; i < form.nhidden; i++) {
        const struct dt__h5_item *weight;
        snprintf(path, sizeof path, "/model/layers/%d/weight", i);
        DT_GUARD(dt__h5_array(file, path, &weight));
        if (weight->rank != 2 || weight->dims[1] > DT_MAX_WIDTH)
            DT_GUARD(dt_fail(DT_EFORMAT, "%s has not the shape that it should have", path));
        DT_GUARD(dt_text_add(&layers, "%sdense %d %s", i ? ", " : "", (int)weight->dims[1],
                             form.activation));
        if (form.dropout > 0)
            DT_GUARD(dt_text_add(&layers, ", dropout %s", dt_real_text(form.dropout, real)));
    }
    *out = (struct dt_model_desc){
        .layers = layers.data, .shape = {1, 1, form.nin}, .nout = form.nout, .task = form.task};
    return DT_OK;
done:
    dt_text_free(&layers);
    return status;
}

static dt_status desc_get(const struct dt__h5_file *file, struct dt_model_desc *out)
{
    struct dt_model_desc desc = {0};
    if (dt__h5_find(file, DT__H5_ATTRIBUTE, "/model@nhidden")) return short_form_get(file, out);
    dt_status status = dt__fields_get(file, "/model", DT__FIELDS(DESC_FIELDS), &desc);
    if (!status) status = dt__fields_get(file, "/model", DT__FIELDS(INPUT_FIELDS), &desc);
    if (!status) status = dt__fields_get(file, "/model", DT__FIELDS(LOSS_FIELDS), &desc);
    if (!status && !desc.layers)
        status = dt_fail(DT_EFORMAT, "attribute layers of /model is missing or not as expected");
    if (status)
        dt_model_desc_free(&desc);
    else
        *out = desc;
    return status;
}

/* ---- vectors -------------------------------------------------------------------------------- */

/* An array of just this type and shape. */
static dt_status find_array(const struct dt__h5_file *file, const char *path, enum dt__h5_type type,
                            int rank, const uint64_t *dims, const struct dt__h5_item **out)
{
    DT_TRY(dt__h5_array(file, path, out));
    if ((*out)->type != type)
        return dt_fail(DT_EFORMAT, "%s has not the type that it should have", path);
    bool same = (*out)->rank == rank;
    for (int i = 0; same && i < rank; i++)
        same = (*out)->dims[i] == dims[i];
    return same ? DT_OK : dt_fail(DT_EFORMAT, "%s has not the shape that it should have", path);
}

dt_status dt__vector_load(struct dt__h5_file *file, const char *path, enum dt__h5_type type,
                          uint64_t length, void *out_data)
{
    void *data;
    const struct dt__h5_item *array;
    DT_TRY(find_array(file, path, type, 1, &length, &array));
    DT_TRY(dt_alloc(length, array->size, path, &data));
    dt_status status = dt__h5_read(file, array, 0, length, type, data);
    if (status)
        dt_free(data);
    else
        memcpy(out_data, &data, sizeof data);
    return status;
}

/* ---- tensors -------------------------------------------------------------------------------- */

static void tensor_dims(const struct dt_tensor *tensor, uint64_t dims[DT__H5_MAX_RANK])
{
    for (int i = 0; i < tensor->rank; i++)
        dims[i] = tensor->shape[i];
}

static bool is_meant(const struct dt_tensor *tensor, enum dt__tensors which)
{
    return which == DT__ALL_TENSORS || tensor->role != DT_TENSOR_STATE;
}

/* By bits: what is read back has the checksum of what was written, also where a 0 has a sign. */
static bool row_is_zero(const float *row, size_t width)
{
    uint32_t bits = 0, all = 0;
    for (size_t i = 0; i < width; i++) {
        memcpy(&bits, &row[i], sizeof bits);
        all |= bits;
    }
    return all == 0;
}

static dt_status keep_rows(const struct dt_tensor *tensor, const float *values,
                           struct dt__kept_rows *out)
{
    const size_t rows = tensor->shape[0], width = tensor->count / rows;
    size_t count = 0, at = 0;
    for (size_t r = 0; r < rows; r++)
        count += !row_is_zero(values + r * width, width);
    if (count == 0) count = 1; /* files have no empty arrays */
    if (count > rows / 2 * width / (width + 1)) return DT_OK;
    DT_TRY(dt_alloc(count, sizeof *out->row, "numbers of rows that are not 0", &out->row));
    DT_TRY(dt_alloc(count * width, sizeof *out->values, "rows that are not 0", &out->values));
    out->count = count;
    for (size_t r = 0; r < rows; r++)
        if (!row_is_zero(values + r * width, width)) {
            out->row[at] = (uint32_t)r;
            memcpy(out->values + at++ * width, values + r * width, width * sizeof *values);
        }
    return DT_OK;
}

dt_status dt__kept_rows_create(const struct dt_model *model, const float *params,
                               struct dt__kept_rows **out)
{
    *out = NULL;
    DT_TRY(dt_alloc(model->row_sparse, sizeof **out, "rows that are not 0", out));
    for (size_t i = 0; i < model->row_sparse; i++) {
        const struct dt_tensor *tensor = dt_model_row_sparse_tensor(model, i);
        DT_TRY(keep_rows(tensor, params + tensor->offset, &(*out)[i]));
    }
    return DT_OK;
}

void dt__kept_rows_free(const struct dt_model *model, struct dt__kept_rows *kept)
{
    for (size_t i = 0; kept && i < model->row_sparse; i++) {
        dt_free(kept[i].row);
        dt_free(kept[i].values);
    }
    dt_free(kept);
}

static void put_kept_rows(struct dt__h5_layout *layout, const char *path,
                          const struct dt_tensor *tensor, const struct dt__kept_rows *kept)
{
    char name[PATH_SIZE + sizeof "_values"];
    uint64_t dims[DT__H5_MAX_RANK];
    tensor_dims(tensor, dims);
    dims[0] = kept->count;
    snprintf(name, sizeof name, "%s_rows", path);
    dt__h5_put_array(layout, name, DT__H5_U32, 1, dims, kept->row, NULL);
    snprintf(name, sizeof name, "%s_values", path);
    dt__h5_put_array(layout, name, DT__H5_F32, tensor->rank, dims, kept->values, NULL);
}

void dt__flat_put(struct dt__h5_layout *layout, const char *group, const struct dt_model *model,
                  enum dt__tensors which, const float *flat, const struct dt__kept_rows *kept)
{
    char path[PATH_SIZE];
    uint64_t dims[DT__H5_MAX_RANK];
    size_t row_sparse = 0;
    for (size_t i = 0; i < model->tensors; i++) {
        const struct dt_tensor *tensor = &model->tensor[i];
        if (!is_meant(tensor, which)) continue;
        /* The groups on the way to the tensor come first. */
        for (const char *at = strchr(tensor->name, '/'); at; at = strchr(at + 1, '/')) {
            snprintf(path, sizeof path, "%s/%.*s", group, (int)(at - tensor->name), tensor->name);
            dt__h5_put_group(layout, path);
        }
        snprintf(path, sizeof path, "%s/%s", group, tensor->name);
        tensor_dims(tensor, dims);
        const struct dt__kept_rows *rows = tensor->row_sparse && kept ? &kept[row_sparse] : NULL;
        row_sparse += tensor->row_sparse;
        if (rows && rows->row)
            put_kept_rows(layout, path, tensor, rows);
        else
            dt__h5_put_array(layout, path, DT__H5_F32, tensor->rank, dims, flat + tensor->offset,
                             NULL);
    }
}

/* Where a file has a tensor: whole, or the rows of it that are not 0, whose numbers are at
 * *out_rows (else NULL). */
static dt_status find_tensor(const struct dt__h5_file *file, const char *group,
                             const struct dt_tensor *tensor, const struct dt__h5_item **out,
                             const struct dt__h5_item **out_rows)
{
    char path[PATH_SIZE];
    uint64_t dims[DT__H5_MAX_RANK];
    tensor_dims(tensor, dims);
    snprintf(path, sizeof path, "%s/%s_rows", group, tensor->name);
    *out_rows = tensor->row_sparse ? dt__h5_find(file, DT__H5_ARRAY, path) : NULL;
    snprintf(path, sizeof path, "%s/%s%s", group, tensor->name, *out_rows ? "_values" : "");
    if (*out_rows) dims[0] = (*out_rows)->count;
    return find_array(file, path, DT__H5_F32, tensor->rank, dims, out);
}

/* To where they lie in the tensor, whose other rows are 0. */
static dt_status load_kept_rows(struct dt__h5_file *file, const struct dt_tensor *tensor,
                                const struct dt__h5_item *values, const struct dt__h5_item *rows,
                                float *out)
{
    const size_t width = tensor->count / tensor->shape[0];
    uint32_t *row = NULL;
    float *value = NULL;
    dt_status status;
    if (rows->type != DT__H5_U32 || rows->rank != 1 || rows->count > tensor->shape[0])
        return dt_fail(DT_EFORMAT, "%s has not the type or the shape that it should have",
                       rows->path);
    DT_GUARD(dt_alloc(rows->count, sizeof *row, rows->path, &row));
    DT_GUARD(dt_alloc(rows->count * width, sizeof *value, values->path, &value));
    DT_GUARD(dt__h5_read(file, rows, 0, rows->count, DT__H5_U32, row));
    DT_GUARD(dt__h5_read(file, values, 0, rows->count, DT__H5_F32, value));
    for (uint64_t i = 0; i < rows->count; i++) {
        if (row[i] >= tensor->shape[0] || (i > 0 && row[i] <= row[i - 1]))
            DT_GUARD(dt_fail(DT_EFORMAT, "%s: numbers of rows do not rise, or are too large",
                             rows->path));
        memcpy(out + row[i] * width, value + i * width, width * sizeof *out);
    }
done:
    dt_free(value);
    dt_free(row);
    return status;
}

dt_status dt__flat_load(struct dt__h5_file *file, const char *group, const struct dt_model *model,
                        enum dt__tensors which, float **out)
{
    float *flat;
    const struct dt__h5_item *array, *rows;
    for (size_t i = 0; i < model->tensors; i++)
        if (is_meant(&model->tensor[i], which))
            DT_TRY(find_tensor(file, group, &model->tensor[i], &array, &rows));
    DT_TRY(dt_alloc(model->params, sizeof *flat, group, &flat));
    dt_status status = DT_OK;
    for (size_t i = 0; i < model->tensors && !status; i++) {
        const struct dt_tensor *tensor = &model->tensor[i];
        if (!is_meant(tensor, which)) continue;
        status = find_tensor(file, group, tensor, &array, &rows);
        if (!status && rows)
            status = load_kept_rows(file, tensor, array, rows, flat + tensor->offset);
        else if (!status)
            status = dt__h5_read(file, array, 0, array->dims[0], DT__H5_F32, flat + tensor->offset);
    }
    if (status)
        dt_free(flat);
    else
        *out = flat;
    return status;
}

/* ---- schema --------------------------------------------------------------------------------- */

#define SCHEMA(name, member, kind, words, optional)                                                \
    DT__FIELD(dt_schema, name, member, kind, words, optional)
static const struct dt__field SCHEMA_FIELDS[] = {
    SCHEMA("task", task, DT__FIELD_WORD, DT_TASK_WORDS, false),
    SCHEMA("features", features, DT__FIELD_INT, NULL, false),
    SCHEMA("height", shape[0], DT__FIELD_INT, NULL, true),
    SCHEMA("width", shape[1], DT__FIELD_INT, NULL, true),
    SCHEMA("channels", shape[2], DT__FIELD_INT, NULL, true),
    SCHEMA("classes", classes, DT__FIELD_INT, NULL, false),
    SCHEMA("targets", targets, DT__FIELD_INT, NULL, false),
    SCHEMA("scale", scale, DT__FIELD_REAL, NULL, false),
    SCHEMA("clip", clip, DT__FIELD_REAL, NULL, true),
    SCHEMA("label_column", label_column, DT__FIELD_TEXT, NULL, true),
};

/* A vector of the schema; NULL: it has none. */
static void put_floats(struct dt__h5_layout *layout, const char *path, int length,
                       const float *data)
{
    const uint64_t dims = (uint64_t)length;
    if (data) dt__h5_put_array(layout, path, DT__H5_F32, 1, &dims, data, NULL);
}

/* Columns of a table that are not all plain numbers, or a sparse part, are two lists of texts. */
static dt_status schema_put(struct dt__h5_layout *layout, const struct dt_schema *schema)
{
    dt__h5_put_group(layout, "/schema");
    dt__fields_put(layout, "/schema", DT__FIELDS(SCHEMA_FIELDS), schema);
    put_floats(layout, "/schema/mean", schema->features, schema->mean);
    put_floats(layout, "/schema/inv_std", schema->features, schema->inv_std);
    put_floats(layout, "/schema/target_mean", schema->targets, schema->target_mean);
    put_floats(layout, "/schema/target_std", schema->targets, schema->target_std);
    if (schema->feature_names)
        dt__h5_put_names(layout, "/schema/feature_names", schema->feature_names,
                         (size_t)schema->features);
    if (schema->label_names)
        dt__h5_put_names(layout, "/schema/label_names", schema->label_names,
                         (size_t)schema->classes);
    if (!schema->columns && schema->dense == schema->features) return DT_OK;
    return dt__columns_put(layout, "/schema", schema);
}

static dt_status schema_check(const struct dt_schema *schema, const struct dt_model_desc *desc)
{
    const int64_t row = (int64_t)desc->shape[0] * desc->shape[1];
    const int *shape = schema->shape; /* (0, 0, 0): none */
    size_t area, cells;
    bool shape_fits =
        (!shape[0] && !shape[1] && !shape[2]) ||
        (shape[0] > 0 && shape[1] > 0 && shape[2] > 0 &&
         dt_size_mul((size_t)shape[0], (size_t)shape[1], &area) &&
         dt_size_mul(area, (size_t)shape[2], &cells) && cells == (size_t)schema->features);
    bool good = schema->task == desc->task && schema->features == row * desc->shape[2] &&
                schema->classes >= 0 && schema->targets >= 0 &&
                dt_schema_nout(schema) == desc->nout && shape_fits;
    return good ? DT_OK : dt_fail(DT_EFORMAT, "/schema does not fit /model");
}

static bool has_array(const struct dt__h5_file *file, const char *path)
{
    return dt__h5_find(file, DT__H5_ARRAY, path) || dt__h5_find(file, DT__H5_REFUSED, path);
}

static dt_status get_names(const struct dt__h5_file *file, const char *path, int count, char ***out)
{
    size_t found;
    const struct dt__h5_item *array;
    if (!has_array(file, path)) return DT_OK;
    DT_TRY(dt__h5_array(file, path, &array));
    if (array->count != (uint64_t)count)
        return dt_fail(DT_EFORMAT, "%s has not the shape that it should have", path);
    return dt__h5_names(file, path, out, &found);
}

static dt_status schema_get(struct dt__h5_file *file, const struct dt_model_desc *desc,
                            struct dt_schema *out)
{
    struct dt_schema s = {0};
    dt_status status;
    DT_GUARD(dt__fields_get(file, "/schema", DT__FIELDS(SCHEMA_FIELDS), &s));
    DT_GUARD(schema_check(&s, desc));
    if (has_array(file, "/schema/mean") || has_array(file, "/schema/inv_std")) {
        uint64_t features = (uint64_t)s.features;
        DT_GUARD(dt__vector_load(file, "/schema/mean", DT__H5_F32, features, &s.mean));
        DT_GUARD(dt__vector_load(file, "/schema/inv_std", DT__H5_F32, features, &s.inv_std));
    }
    if (has_array(file, "/schema/target_mean") || has_array(file, "/schema/target_std")) {
        uint64_t n = (uint64_t)s.targets;
        DT_GUARD(dt__vector_load(file, "/schema/target_mean", DT__H5_F32, n, &s.target_mean));
        DT_GUARD(dt__vector_load(file, "/schema/target_std", DT__H5_F32, n, &s.target_std));
    }
    if (!(s.clip == 0 || s.clip >= 1))
        DT_GUARD(dt_fail(DT_EFORMAT, "/schema: clip is not as expected"));
    for (int i = 0; s.target_mean && i < s.targets; i++)
        if (!isfinite(s.target_mean[i]) || !isfinite(s.target_std[i]) || !(s.target_std[i] > 0))
            DT_GUARD(dt_fail(DT_EFORMAT, "/schema/target_mean and target_std are not as expected"));
    DT_GUARD(get_names(file, "/schema/feature_names", s.features, &s.feature_names));
    DT_GUARD(get_names(file, "/schema/label_names", s.classes, &s.label_names));
    s.dense = s.features;
    DT_GUARD(dt__columns_get(file, "/schema", &s));
done:
    if (status)
        dt_schema_free(&s);
    else
        *out = s;
    return status;
}

/* ---- exports -------------------------------------------------------------------------------- */

#define EXPORT(name, kind) DT__FIELD(dt_export, #name, name, kind, NULL, false)
#define BEST(name, kind) DT__FIELD(dt_export, "best_" #name, best.name, kind, NULL, false)
/* Files of version 0.1 have none. */
#define BEST_LATER(name, kind) DT__FIELD(dt_export, "best_" #name, best.name, kind, NULL, true)
static const struct dt__field EXPORT_FIELDS[] = {
    EXPORT(step, DT__FIELD_U64),      EXPORT(config, DT__FIELD_TEXT),
    BEST(known, DT__FIELD_BOOL),      BEST(value, DT__FIELD_REAL),
    BEST(metric, DT__FIELD_NAME),     BEST(step, DT__FIELD_U64),
    BEST(since, DT__FIELD_I64),       BEST_LATER(plateau, DT__FIELD_I64),
    BEST_LATER(drops, DT__FIELD_I64), BEST(seen, DT__FIELD_U64),
    BEST(stop, DT__FIELD_BOOL),       BEST_LATER(loss, DT__FIELD_REAL),
};

/* For readers with HDF5 alone; the user block has the version as well. */
struct format {
    int version;
};
static const struct dt__field FORMAT_FIELDS[] = {
    DT__FIELD(format, "format_version", version, DT__FIELD_INT, NULL, false)};

void dt_export_free(struct dt_export *model)
{
    dt_model_desc_free(&model->desc);
    dt_schema_free(&model->schema);
    dt_free(model->params);
    dt_free(model->config);
    *model = (struct dt_export){0};
}

void dt__export_put(struct dt__h5_layout *layout, const struct dt_model *model,
                    const struct dt_export *from, const struct dt__kept_rows *kept)
{
    struct format format = {DT__FORMAT_VERSION};
    dt__fields_put(layout, "/", DT__FIELDS(FORMAT_FIELDS), &format);
    dt__fields_put(layout, "/", DT__FIELDS(EXPORT_FIELDS), from);
    dt__h5_layout_fail(layout, schema_put(layout, &from->schema));
    dt__h5_put_group(layout, "/model");
    dt__fields_put(layout, "/model", DT__FIELDS(DESC_FIELDS), &from->desc);
    if (from->desc.categories)
        dt__fields_put(layout, "/model", DT__FIELDS(INPUT_FIELDS), &from->desc);
    if (from->desc.loss) dt__fields_put(layout, "/model", DT__FIELDS(LOSS_FIELDS), &from->desc);
    dt__flat_put(layout, "/model", model, DT__ALL_TENSORS, from->params, kept);
}

dt_status dt__export_get(struct dt__h5_file *file, struct dt_export *out,
                         struct dt_model **out_model)
{
    struct dt_export from = {0};
    struct dt_model *model = NULL;
    struct format format;
    dt_status status;
    DT_GUARD(dt__fields_get(file, "/", DT__FIELDS(FORMAT_FIELDS), &format));
    if (format.version != DT__FORMAT_VERSION)
        DT_GUARD(dt_fail(DT_EFORMAT, "format_version is %d", format.version));
    DT_GUARD(dt__fields_get(file, "/", DT__FIELDS(EXPORT_FIELDS), &from));
    if (!from.config)
        DT_GUARD(dt_fail(DT_EFORMAT, "attribute config of / is missing or not as expected"));
    DT_GUARD(desc_get(file, &from.desc));
    status = dt_model_create(&from.desc, &model);
    if (status == DT_EUSAGE) /* a text that makes no network is the file's fault */
        status = dt_fail_prefix(DT_EFORMAT, "/model: ");
    if (status) goto done;
    DT_GUARD(schema_get(file, &from.desc, &from.schema));
    if (from.desc.categories && (from.desc.dense != from.schema.dense ||
                                 from.desc.categories != dt_schema_categories(&from.schema)))
        DT_GUARD(dt_fail(DT_EFORMAT, "/schema does not fit /model: its columns are others"));
    from.params_count = model->params;
    DT_GUARD(dt__flat_load(file, "/model", model, DT__ALL_TENSORS, &from.params));
    if (out_model) {
        *out_model = model;
        model = NULL;
    }
    *out = from;
    from = (struct dt_export){0};
done:
    dt_export_free(&from);
    dt_model_destroy(model);
    return status;
}
