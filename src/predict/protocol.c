/* Requests and answers of the server, as JSON.
 *
 * Rows come as lists of numbers, nested as deep as a row's shape asks for, as objects by the features' names,
 * or as columns. What is not exactly as many finite numbers as the model has features is refused with a
 * message that says where.
 * Source: TensorFlow Serving's RESTful API; KServe, Open Inference Protocol v2, "required_api". */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "predict/serve.h"
#include "report/report.h"

enum { MOST_DEPTH = 8 };

/* ---- rows ----------------------------------------------------------------------------------- */

/* Adds the numbers in a value to x[*at..n), row-major. Numbers beyond the room are only counted. */
static dt_status value_flatten(const json_t *value, size_t n, float *x, size_t *at, int depth)
{
    size_t i;
    const json_t *item;
    if (json_is_array(value)) {
        if (depth == MOST_DEPTH) return dt_fail(DT_EFORMAT, "lists more than %d deep", MOST_DEPTH);
        json_array_foreach(value, i, item) DT_TRY(value_flatten(item, n, x, at, depth + 1));
        return DT_OK;
    }
    if (!json_is_number(value)) return dt_fail(DT_EFORMAT, "item %zu is not a number", *at);
    float number = (float)json_number_value(value);
    if (!isfinite(number)) return dt_fail(DT_EFORMAT, "item %zu is too large for 32 bits", *at);
    if (*at < n) x[*at] = number;
    ++*at;
    return DT_OK;
}

static dt_status row_of_list(const json_t *value, size_t features, float *x)
{
    size_t count = 0;
    DT_TRY(value_flatten(value, features, x, &count, 0));
    if (count == features) return DT_OK;
    return dt_fail(DT_EFORMAT, "%zu numbers, the model has %zu features", count, features);
}

/* {"width": 1, "height": 2}, or {"input": [1, 2]}. */
static dt_status row_of_object(const json_t *value, const struct dt_predictor *predictor, float *x)
{
    size_t features = (size_t)dt_predictor_features(predictor);
    const json_t *whole = json_object_get(value, "input");
    if (whole && json_object_size(value) == 1) return row_of_list(whole, features, x);
    for (int f = 0; f < (int)features; f++) {
        const char *name = dt_predictor_feature_name(predictor, f);
        if (!name) return dt_fail(DT_EFORMAT, "the model's features have no names: expected lists");
        const json_t *item = json_object_get(value, name);
        if (!item) return dt_fail(DT_EFORMAT, "'%s' is missing", name);
        if (row_of_list(item, 1, x + f)) return dt_fail_prefix(DT_EFORMAT, "'%s': ", name);
    }
    if (json_object_size(value) > features)
        return dt_fail(DT_EFORMAT, "more names than the model's %zu features", features);
    return DT_OK;
}

static dt_status rows_check(size_t rows, int max_rows)
{
    if (!rows) return dt_fail(DT_EFORMAT, "no rows");
    if (rows <= (size_t)max_rows) return DT_OK;
    return dt_fail(DT_EFORMAT, "%zu rows, at most %d in a request", rows, max_rows);
}

static dt_status request_alloc_rows(size_t rows, const struct dt_predictor *predictor, int max_rows,
                                    struct dt__request *out)
{
    DT_TRY(rows_check(rows, max_rows));
    out->rows = rows;
    return dt_inputs_init(&out->inputs, predictor, rows);
}

/* The rows of a table that has texts among its columns go the way of `dtrain predict`: as JSON lines. */
static dt_status rows_of_table(const json_t *list, const struct dt_predictor *predictor,
                               struct dt__request *out)
{
    const struct dt_schema *schema = &dt_predictor_export(predictor)->schema;
    struct dt_text lines = {0};
    struct dt_rows *rows = NULL;
    FILE *in = NULL;
    uint64_t line;
    bool end;
    size_t i;
    const json_t *row;
    dt_status status = DT_OK;
    json_array_foreach(list, i, row)
    {
        const json_t *first = json_array_get(row, 0); /* a list of rows would be read as several */
        bool plain = json_is_array(row) ? !json_is_array(first) && !json_is_object(first)
                                        : json_is_object(row) && !json_object_get(row, "instances");
        if (!plain) DT_GUARD(dt_fail(DT_EFORMAT, "row %zu: expected a list of values or an object", i));
        if (!dt__json_add(&lines, row, JSON_COMPACT))
            DT_GUARD(dt_fail(DT_EMEMORY, "out of memory for a request"));
        DT_GUARD(dt_text_append(&lines, "\n", 1));
    }
    in = fmemopen(lines.data, lines.length, "r");
    if (!in) DT_GUARD(dt_fail(DT_EMEMORY, "out of memory for a request"));
    DT_GUARD(dt_rows_open(in, "request", schema, NULL, &rows));
    for (i = 0; i < out->rows && !status; i++) {
        status = dt_inputs_read(&out->inputs, i, predictor, rows, &line, &end);
        if (status) dt_fail_prefix(status, "row %zu: ", i);
    }
done:
    dt_rows_close(rows);
    if (in) fclose(in);
    dt_text_free(&lines);
    return status;
}

static dt_status rows_of_list(const json_t *list, const struct dt_predictor *predictor,
                              int max_rows, struct dt__request *out)
{
    size_t i, features = (size_t)dt_predictor_features(predictor);
    const json_t *row;
    if (!json_is_array(list)) return dt_fail(DT_EFORMAT, "expected a list of rows");
    DT_TRY(request_alloc_rows(json_array_size(list), predictor, max_rows, out));
    if (dt_predictor_export(predictor)->schema.columns) return rows_of_table(list, predictor, out);
    json_array_foreach(list, i, row)
    {
        float *x = out->inputs.x + i * features;
        dt_status status =
            json_is_object(row) ? row_of_object(row, predictor, x) : row_of_list(row, features, x);
        if (status) return dt_fail_prefix(status, "row %zu: ", i);
    }
    return DT_OK;
}

typedef const json_t *find_column_fn(const json_t *columns, const char *name);

/* Lists by the columns' names, of as many values each, are made into rows by name, which miss what is missing. */
static dt_status rows_of_columns(const json_t *columns, size_t count, find_column_fn *find,
                                 const struct dt_predictor *predictor, int max_rows,
                                 struct dt__request *out)
{
    const struct dt_schema *schema = &dt_predictor_export(predictor)->schema;
    const int ncolumns = schema->columns ? schema->ncolumns : schema->features;
    json_t *list = json_array();
    dt_status status = DT_OK;
    if (!schema->columns && !schema->feature_names)
        DT_GUARD(dt_fail(DT_EFORMAT, "the model's features have no names: expected 'input'"));
    if (!schema->columns && count > (size_t)ncolumns)
        DT_GUARD(dt_fail(DT_EFORMAT, "more inputs than the model's %d features", ncolumns));
    for (int c = 0; c < ncolumns; c++) {
        const char *name = schema->columns ? schema->columns[c].name : schema->feature_names[c];
        const json_t *values = name ? find(columns, name) : NULL;
        const size_t rows = json_array_size(values);
        if (!values) continue;
        if (!json_is_array(values)) DT_GUARD(dt_fail(DT_EFORMAT, "'%s': expected a list", name));
        if (!json_array_size(list)) { /* the first */
            DT_GUARD(rows_check(rows, max_rows));
            for (size_t r = 0; r < rows; r++)
                json_array_append_new(list, json_object());
        }
        if (rows != json_array_size(list))
            DT_GUARD(dt_fail(DT_EFORMAT, "'%s': %zu values for %zu rows", name, rows,
                             json_array_size(list)));
        for (size_t r = 0; r < rows; r++)
            json_object_set(json_array_get(list, r), name, json_array_get(values, r));
    }
    if (!json_array_size(list))
        DT_GUARD(dt_fail(DT_EFORMAT, "expected lists by the names of the model's columns"));
    status = rows_of_list(list, predictor, max_rows, out);
done:
    json_decref(list);
    return status;
}

static const json_t *object_find(const json_t *columns, const char *name)
{
    return json_object_get(columns, name);
}

/* ---- TensorFlow Serving --------------------------------------------------------------------- */

static dt_status request_parse_v1(const json_t *body, const struct dt_predictor *predictor,
                                  int max_rows, struct dt__request *out)
{
    const json_t *instances = json_object_get(body, "instances");
    const json_t *inputs = json_object_get(body, "inputs");
    if (!instances == !inputs) return dt_fail(DT_EFORMAT, "expected \"instances\" or \"inputs\"");
    out->protocol = instances ? DT__INSTANCES : DT__INPUTS;
    const size_t columns = json_object_size(inputs); /* 0 of a list */
    const json_t *input = json_object_get(inputs, "input");
    const json_t *list = instances                 ? instances
                         : !json_is_object(inputs) ? inputs
                         : columns == 1            ? input
                                                   : NULL;
    dt_status status =
        list ? rows_of_list(list, predictor, max_rows, out)
             : rows_of_columns(inputs, columns, object_find, predictor, max_rows, out);
    return status ? dt_fail_prefix(status, instances ? "instances: " : "inputs: ") : DT_OK;
}

/* ---- Open Inference Protocol v2 ------------------------------------------------------------- */

static const json_t *inputs_find(const json_t *inputs, const char *name)
{
    size_t i;
    const json_t *input;
    json_array_foreach(inputs, i, input)
    {
        const char *own = json_string_value(json_object_get(input, "name"));
        if (own && !strcmp(own, name)) return json_object_get(input, "data");
    }
    return NULL;
}

/* The one input, whole. */
static dt_status input_parse(const json_t *input, const struct dt_predictor *predictor,
                             int max_rows, struct dt__request *out)
{
    size_t rows, count = 0;
    /* The shape's first dimension is the rows; the product of the others is a row's numbers. */
    int features = dt_predictor_features(predictor);
    size_t i;
    const json_t *item, *shape = json_object_get(input, "shape");
    double width = 1;
    if (!json_array_size(shape)) return dt_fail(DT_EFORMAT, "expected a shape");
    json_array_foreach(shape, i, item)
    {
        json_int_t n = json_integer_value(item);
        if (!json_is_integer(item) || n < 1 || n > INT32_MAX)
            return dt_fail(DT_EFORMAT, "the shape's item %zu is not a size", i);
        if (i) width *= (double)n;
    }
    rows = (size_t)json_integer_value(json_array_get(shape, 0));
    if (width != features)
        return dt_fail(DT_EFORMAT, "%.0f numbers in a row, the model has %d features", width,
                       features);
    DT_TRY(request_alloc_rows(rows, predictor, max_rows, out));
    size_t n = rows * (size_t)dt_predictor_features(predictor);
    DT_TRY(value_flatten(json_object_get(input, "data"), n, out->inputs.x, &count, 0));
    return count == n ? DT_OK : dt_fail(DT_EFORMAT, "%zu numbers, its shape has %zu", count, n);
}

static dt_status request_parse_v2(const json_t *body, const struct dt_predictor *predictor,
                                  int max_rows, struct dt__request *out)
{
    static const char *const types[] = {"FP64", "FP32",   "FP16",   "INT64",  "INT32", "INT16",
                                        "INT8", "UINT64", "UINT32", "UINT16", "UINT8", "BYTES"};
    size_t i;
    const json_t *input, *inputs = json_object_get(body, "inputs");
    const char *id = json_string_value(json_object_get(body, "id"));
    const struct dt_schema *schema = &dt_predictor_export(predictor)->schema;
    const char *first_feature = dt_predictor_feature_name(predictor, 0);
    out->protocol = DT__INFER;
    if (id) DT_TRY(dt_strdup(id, &out->id));
    if (!json_array_size(inputs)) return dt_fail(DT_EFORMAT, "expected \"inputs\", a list");
    json_array_foreach(inputs, i, input)
    {
        const size_t count = sizeof types / sizeof *types - !schema->columns; /* BYTES: texts */
        const char *type = json_string_value(json_object_get(input, "datatype"));
        size_t t = 0;
        while (type && t < count && strcmp(type, types[t]))
            t++;
        if (!type || t == count)
            return dt_fail(DT_EFORMAT, "inputs: item %zu: a datatype that is not expected", i);
    }
    dt_status status;
    bool by_name = first_feature && inputs_find(inputs, first_feature);
    if (json_array_size(inputs) == 1 && !by_name && !schema->columns)
        status = input_parse(json_array_get(inputs, 0), predictor, max_rows, out);
    else
        status =
            rows_of_columns(inputs, json_array_size(inputs), inputs_find, predictor, max_rows, out);
    return status ? dt_fail_prefix(status, "inputs: ") : DT_OK;
}

dt_status dt__request_parse(const char *body, size_t length, bool v2,
                            const struct dt_predictor *predictor, int max_rows,
                            struct dt__request *out)
{
    json_error_t error;
    struct dt__request request = {0};
    json_t *json = json_loadb(body, length, JSON_REJECT_DUPLICATES, &error);
    if (!json)
        return dt_fail(DT_EFORMAT, "not JSON: line %d, column %d: %s", error.line, error.column,
                       error.text);
    dt_status status;
    if (!json_is_object(json))
        status = dt_fail(DT_EFORMAT, "expected a JSON object");
    else
        status = v2 ? request_parse_v2(json, predictor, max_rows, &request)
                    : request_parse_v1(json, predictor, max_rows, &request);
    json_decref(json);
    const struct dt_schema *schema = &dt_predictor_export(predictor)->schema;
    if (!status && !schema->columns) { /* rows of a table come normalised */
        struct dt_inputs raw = request.inputs;
        status = dt_inputs_init(&request.inputs, predictor, request.rows);
        if (!status) dt_schema_normalize(schema, raw.x, request.rows, request.inputs.x);
        dt_inputs_free(&raw);
    }
    if (status)
        dt__request_free(&request);
    else
        *out = request;
    return status;
}

void dt__request_free(struct dt__request *request)
{
    dt_inputs_free(&request->inputs);
    dt_free(request->id);
    *request = (struct dt__request){0};
}

/* ---- answers -------------------------------------------------------------------------------- */

struct answers {
    const struct dt_predictor *predictor;
    size_t rows, width;
    const float *values;
    const int32_t *classes;
    struct dt_text *text;
};

enum part { CLASS, LABEL, NUMBERS };
#define ALL_ROWS SIZE_MAX

/* Part of the answer to one row, or of all as a list. Of numbers a single one stands alone, more are a list. */
static dt_status answers_add_part(const struct answers *a, enum part part, size_t row)
{
    const size_t first = row == ALL_ROWS ? 0 : row, end = row == ALL_ROWS ? a->rows : row + 1;
    for (size_t r = first; r < end; r++) {
        const float *values = a->values + r * a->width;
        if (row == ALL_ROWS) DT_TRY(dt_text_add(a->text, r ? "," : "["));
        if (part == CLASS)
            DT_TRY(dt_text_add(a->text, "%d", (int)a->classes[r]));
        else if (part == LABEL)
            DT_TRY(
                dt_json_add_string(a->text, dt_predictor_class_name(a->predictor, a->classes[r])));
        else if (a->width == 1)
            DT_TRY(dt_json_add_float(a->text, *values));
        else
            DT_TRY(dt_json_add_floats(a->text, values, a->width));
    }
    return row == ALL_ROWS ? dt_text_add(a->text, "]") : DT_OK;
}

static dt_status answers_add_prediction(const struct answers *a, size_t row)
{
    if (!dt_predictor_classes(a->predictor)) return answers_add_part(a, NUMBERS, row);
    DT_TRY(dt_text_add(a->text, "{\"class\":"));
    DT_TRY(answers_add_part(a, CLASS, row));
    if (dt_predictor_class_name(a->predictor, 0)) {
        DT_TRY(dt_text_add(a->text, ",\"label\":"));
        DT_TRY(answers_add_part(a, LABEL, row));
    }
    DT_TRY(dt_text_add(a->text, ",\"probabilities\":"));
    DT_TRY(answers_add_part(a, NUMBERS, row));
    return dt_text_add(a->text, "}");
}

/* An output of v2: one flat list. */
static dt_status answers_add_output(const struct answers *a, const char *name, const char *type,
                                    size_t width)
{
    DT_TRY(dt_text_add(a->text, "{\"name\":\"%s\",\"datatype\":\"%s\",\"shape\":[%zu", name, type,
                       a->rows));
    if (width) DT_TRY(dt_text_add(a->text, ",%zu", width));
    return dt_text_add(a->text, "],\"data\":");
}

static dt_status answers_format_outputs(const struct answers *a, const char *id, const char *name,
                                        uint64_t version)
{
    bool classifies = dt_predictor_classes(a->predictor);
    DT_TRY(dt_text_add(a->text, "{\"model_name\":"));
    DT_TRY(dt_json_add_string(a->text, name));
    DT_TRY(dt_text_add(a->text, ",\"model_version\":\"%llu\"", (unsigned long long)version));
    if (id) {
        DT_TRY(dt_text_add(a->text, ",\"id\":"));
        DT_TRY(dt_json_add_string(a->text, id));
    }
    DT_TRY(dt_text_add(a->text, ",\"outputs\":["));
    DT_TRY(answers_add_output(a, classifies ? "probabilities" : "values", "FP32", a->width));
    DT_TRY(dt_json_add_floats(a->text, a->values, a->rows * a->width));
    if (classifies) {
        DT_TRY(dt_text_add(a->text, "},"));
        DT_TRY(answers_add_output(a, "class", "INT64", 0));
        DT_TRY(answers_add_part(a, CLASS, ALL_ROWS));
    }
    if (classifies && dt_predictor_class_name(a->predictor, 0)) {
        DT_TRY(dt_text_add(a->text, "},"));
        DT_TRY(answers_add_output(a, "label", "BYTES", 0));
        DT_TRY(answers_add_part(a, LABEL, ALL_ROWS));
    }
    return dt_text_add(a->text, "}]}");
}

dt_status dt__answer_format(const struct dt__request *request, const struct dt_predictor *predictor,
                            const char *name, uint64_t version, const float *answers,
                            const int32_t *classes, struct dt_text *text)
{
    const struct answers a = {.predictor = predictor,
                              .rows = request->rows,
                              .width = (size_t)dt_predictor_width(predictor),
                              .values = answers,
                              .classes = classes,
                              .text = text};
    if (request->protocol == DT__INFER)
        return answers_format_outputs(&a, request->id, name, version);
    if (request->protocol == DT__INPUTS) {
        DT_TRY(dt_text_add(text, "{\"outputs\":"));
        DT_TRY(answers_add_prediction(&a, ALL_ROWS));
        return dt_text_add(text, "}");
    }
    DT_TRY(dt_text_add(text, "{\"predictions\":"));
    for (size_t r = 0; r < a.rows; r++) {
        DT_TRY(dt_text_add(text, r ? "," : "["));
        DT_TRY(answers_add_prediction(&a, r));
    }
    return dt_text_add(text, "]}");
}

dt_status dt__metadata_format(const struct dt_predictor *predictor, const char *name,
                              uint64_t version, struct dt_text *text)
{
    bool classifies = dt_predictor_classes(predictor);
    DT_TRY(dt_text_add(text, "{\"name\":"));
    DT_TRY(dt_json_add_string(text, name));
    DT_TRY(dt_text_add(text, ",\"versions\":[\"%llu\"],\"platform\":\"dtrain\",\"inputs\":[",
                       (unsigned long long)version));
    DT_TRY(dt_text_add(
        text, "{\"name\":\"input\",\"datatype\":\"FP32\",\"shape\":[-1,%d]}],\"outputs\":[",
        dt_predictor_features(predictor)));
    DT_TRY(dt_text_add(text, "{\"name\":\"%s\",\"datatype\":\"FP32\",\"shape\":[-1,%d]}",
                       classifies ? "probabilities" : "values", dt_predictor_width(predictor)));
    if (classifies)
        DT_TRY(dt_text_add(text, ",{\"name\":\"class\",\"datatype\":\"INT64\",\"shape\":[-1]}"));
    if (classifies && dt_predictor_class_name(predictor, 0))
        DT_TRY(dt_text_add(text, ",{\"name\":\"label\",\"datatype\":\"BYTES\",\"shape\":[-1]}"));
    return dt_text_add(text, "]}");
}
