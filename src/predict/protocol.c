/* Requests and answers of the server, as JSON.
 *
 * A request is a list of rows, a tensor of rows, or a list for each column. Its body is read from
 * left to right into a table with one word per value; nothing is computed before the whole body has
 * been checked. A part that cannot be read where it appears (an input of v2, whose name may follow
 * its data) is skipped, and read later.
 *
 * Source: TensorFlow Serving's RESTful API; KServe, Open Inference Protocol v2, "required_api". */
#include <string.h>

#include "predict/serve.h"
#include "report/report.h"
#include "table/normalize.h"
#include "table/values.h"

/* Parts of a row's answer; in v2 each part is an output. */
enum part { NUMBERS, CLASS, LABEL, LOW, HIGH, PARTS };

static bool has_part(const struct dt_predictor *predictor, enum part part)
{
    if (part == LOW || part == HIGH) return predictor->margin != NULL;
    return part == NUMBERS ||
           (predictor->classes && (part == CLASS || dt_predictor_class_name(predictor, 0)));
}

static const char *part_name(const struct dt_predictor *predictor, enum part part)
{
    static const char *const names[] = {NULL, "class", "label", "low", "high"};
    return part == NUMBERS ? predictor->answer : names[part];
}

/* ---- rows ----------------------------------------------------------------------------------- */

static dt_status rows_check(size_t rows, int max_rows)
{
    if (!rows) return dt_fail(DT_EFORMAT, "no rows");
    if (rows <= (size_t)max_rows) return DT_OK;
    return dt_fail(DT_EFORMAT, "%zu rows, at most %d in a request", rows, max_rows);
}

static dt_status request_read_list(struct dt__request *request, struct dt__json *json, char token)
{
    const struct dt__json_rows *reader = &request->reader;
    const size_t count = reader->columns->count, most = (size_t)request->max_rows;
    size_t rows = 0;
    if (token != '[') return dt_fail(DT_EFORMAT, "expected a list of rows");
    for (; (token = dt__json_next(json)) && token != ']'; rows++) {
        dt_status status = DT_OK;
        if (rows < most)
            status = dt__json_row(reader, json, token, request->words + rows * count);
        else
            dt__json_pass(json, token);
        if (status) return dt_fail_prefix(status, "row %zu: ", rows);
    }
    request->rows = rows;
    return rows_check(rows, request->max_rows);
}

static bool is_number(const struct dt__columns *columns, size_t column)
{
    return !columns->items || columns->items[column].kind == DT_COLUMN_NUMBER;
}

static bool are_numbers(const struct dt__columns *columns)
{
    size_t numbers = 0;
    while (numbers < columns->count && is_number(columns, numbers))
        numbers++;
    return numbers == columns->count;
}

/* Returns true if one input may hold all columns, which must be numbers or have no names. */
static bool takes_tensor(const struct dt__columns *columns)
{
    return !columns->names.count || are_numbers(columns);
}

/* Reads the list of a column's values. Fails if its length differs from that of earlier lists. */
static dt_status request_read_column(struct dt__request *request, struct dt__json *json,
                                     uint32_t column)
{
    const char *name = request->reader.columns->items[column].name;
    uint32_t *const words = request->list_end;
    const bool first = request->list_end == request->words;
    size_t values = 0;
    char token;
    if (request->lists[column]) return dt_fail(DT_EFORMAT, "'%s' appears twice", name);
    if (dt__json_next(json) != '[') return dt_fail(DT_EFORMAT, "'%s': expected a list", name);
    for (; (token = dt__json_next(json)) && token != ']'; values++) {
        dt_status status = DT_OK;
        if (values < (size_t)request->max_rows)
            status = dt__json_values(&request->reader, json, token, column, 1, words + values);
        else
            dt__json_pass(json, token);
        if (status) dt_fail_prefix(status, "'%s': ", name);
        if (status) return dt_fail_prefix(status, "row %zu: ", values);
    }
    if (first) DT_TRY(rows_check(values, request->max_rows));
    if (!first && values != request->rows)
        return dt_fail(DT_EFORMAT, "'%s': %zu values for %zu rows", name, values, request->rows);
    request->rows = values;
    request->lists[column] = words;
    request->list_end = words + values;
    return DT_OK;
}

/* Checks that each of the model's columns had a list. */
static dt_status columns_check(const struct dt__request *request)
{
    const struct dt__columns *columns = request->reader.columns;
    if (!request->lists)
        return dt_fail(DT_EFORMAT, "the model's features have no names: expected 'input'");
    if (!request->rows)
        return dt_fail(DT_EFORMAT, "expected lists by the names of the model's columns");
    for (size_t c = 0; c < columns->count; c++)
        if (!request->lists[c])
            return dt_fail(DT_EFORMAT, "row 0: %s'%s' is missing",
                           request->reader.exact ? "" : "column ", columns->items[c].name);
    return DT_OK;
}

/* Reads the "inputs" of TensorFlow Serving: {"input": [rows]}, or one list per column, by name;
 * unknown names are ignored. */
static dt_status request_read_named(struct dt__request *request, struct dt__json *json)
{
    const struct dt__dict *names = &request->reader.columns->names;
    struct dt__json input = {0};
    size_t keys = 0;
    uint32_t column;
    for (; dt__json_next(json) == ':'; keys++) {
        if (dt__cell_is(json->token, "input")) {
            if (input.at) return dt_fail(DT_EFORMAT, "'input' appears twice");
            input = *json;
            dt__json_pass(json, dt__json_next(json));
        } else if (dt__dict_find_blank(names, json->token.text, json->token.length, &column)) {
            DT_TRY(request_read_column(request, json, column));
        } else {
            dt__json_pass(json, dt__json_next(json));
        }
    }
    if (input.at && keys == 1) return request_read_list(request, &input, dt__json_next(&input));
    if (input.at && dt__dict_find(names, "input", strlen("input"), &column))
        DT_TRY(request_read_column(request, &input, column));
    return columns_check(request);
}

/* ---- Open Inference Protocol v2 ------------------------------------------------------------- */

/* An input of a v2 request. */
struct input {
    struct dt__json shape, data; /* their place in the body; at NULL: missing */
    size_t values;
    size_t dims, rows; /* dimensions and rows of the shape, once checked, */
    double width;      /* and values per row */
    uint32_t column;   /* index of the input's column; the number of columns if it has none */
};

/* Checks the shape of an input: its first dimension is the number of rows, the product of the
 * others the number of values per row, and the data must have rows * values per row. */
static dt_status shape_check(struct input *input)
{
    struct dt__json shape = input->shape;
    double rows = 0, width = 1;
    size_t i = 0;
    char token;
    if (!shape.at || dt__json_next(&shape) != '[') return dt_fail(DT_EFORMAT, "expected a shape");
    for (; (token = dt__json_next(&shape)) != ']'; i++) {
        const double size = shape.value;
        if (token != '0' || !shape.scanned || size < 1 || size > INT32_MAX ||
            size != (double)(int)size)
            return dt_fail(DT_EFORMAT, "the shape's item %zu is not a size", i);
        if (i)
            width *= size;
        else
            rows = size;
    }
    if (!i) return dt_fail(DT_EFORMAT, "expected a shape");
    if ((double)input->values != rows * width)
        return dt_fail(DT_EFORMAT, "%zu values, its shape has %.0f", input->values, rows * width);
    input->dims = i;
    input->rows = (size_t)rows;
    input->width = width;
    return DT_OK;
}

/* Sets out->column by the input's name. An input named 'input' that holds all columns has none. */
static dt_status input_find(const struct dt__request *request, struct dt__json *name,
                            struct input *out)
{
    const struct dt__columns *columns = request->reader.columns;
    const bool tensor = takes_tensor(columns);
    if (!name->at || dt__json_next(name) != '"') return dt_fail(DT_EFORMAT, "expected a name");
    const struct dt__cell text = name->token;
    if (dt__dict_find_blank(&columns->names, text.text, text.length, &out->column) ||
        (tensor && dt__cell_is(text, "input")))
        return DT_OK;
    return dt_fail(DT_EFORMAT, "the model has no input '%.*s'%s", dt__shown(text.length), text.text,
                   tensor ? ": expected 'input'" : "");
}

/* Reads an input's name, datatype and shape, and skips its data. Datatype BYTES means texts. */
static dt_status input_open(const struct dt__request *request, struct dt__json *json, char token,
                            struct input *out)
{
    enum { NAME, DATATYPE, SHAPE, DATA, MEMBERS };
    static const char *const names[MEMBERS] = {"name", "datatype", "shape", "data"};
    static const char *const types[] = {"FP64", "FP32",   "FP16",   "INT64",  "INT32", "INT16",
                                        "INT8", "UINT64", "UINT32", "UINT16", "UINT8", "BYTES"};
    const size_t ntypes = sizeof types / sizeof *types - request->reader.exact;
    const struct dt__columns *columns = request->reader.columns;
    struct dt__json found[MEMBERS], *name = &found[NAME], *type = &found[DATATYPE];
    bool typed = false;
    DT_TRY(dt__json_members(json, token, names, MEMBERS, found));
    *out = (struct input){
        .shape = found[SHAPE], .data = found[DATA], .column = (uint32_t)columns->count};
    if (out->data.at) out->values = dt__json_pass(&found[DATA], dt__json_next(&found[DATA]));
    if (type->at && dt__json_next(type) == '"')
        for (size_t t = 0; t < ntypes; t++)
            typed |= dt__cell_is(type->token, types[t]);
    if (!typed) return dt_fail(DT_EFORMAT, "a datatype that is not expected");
    DT_TRY(input_find(request, name, out));
    if (out->column == columns->count) return DT_OK;
    DT_TRY(shape_check(out));
    if (out->width != 1) return dt_fail(DT_EFORMAT, "%.0f values in a row, expected 1", out->width);
    if (!request->lists[out->column]) return DT_OK;
    return dt_fail(DT_EFORMAT, "'%s' appears twice", columns->items[out->column].name);
}

/* Reads an input that holds all columns: its values in order, however its lists are nested. */
static dt_status request_read_tensor(struct dt__request *request, struct input *input)
{
    const size_t features = request->reader.columns->count;
    DT_TRY(shape_check(input));
    request->rows = input->rows;
    if (input->width != (double)features)
        return dt_fail(DT_EFORMAT, "%.0f numbers in a row, the model has %zu features",
                       input->width, features);
    if (input->dims != 2)
        return dt_fail(DT_EFORMAT, "a shape of %zu dimensions, expected [%zu,%zu]", input->dims,
                       input->rows, features);
    DT_TRY(rows_check(request->rows, request->max_rows));
    for (size_t i = 0; i < request->rows * features;) {
        const char token = dt__json_next(&input->data);
        if (token == '[' || token == ']') continue;
        dt_status status = dt__json_values(&request->reader, &input->data, token, i % features, 1,
                                           request->words + i);
        if (status) {
            dt_fail_prefix(status, "item %zu: ", i % features);
            return dt_fail_prefix(status, "row %zu: ", i / features);
        }
        i++;
    }
    return DT_OK;
}

static dt_status request_read_inputs(struct dt__request *request, struct dt__json *json)
{
    const struct dt__columns *columns = request->reader.columns;
    struct input input;
    size_t count = 0;
    char token;
    for (; (token = dt__json_next(json)) && token != ']'; count++) {
        dt_status status = input_open(request, json, token, &input);
        if (status) return dt_fail_prefix(status, "item %zu: ", count);
        if (input.column < columns->count)
            DT_TRY(request_read_column(request, &input.data, input.column));
    }
    if (count == 1 && input.column == columns->count && takes_tensor(columns))
        return request_read_tensor(request, &input);
    return columns_check(request);
}

/* Reads the names of the requested outputs. A request without such a list gets all outputs. */
static dt_status request_read_outputs(struct dt__request *request, struct dt__json *json,
                                      const struct dt_predictor *predictor)
{
    static const char *const names[] = {"name"};
    struct dt__json name;
    char token = dt__json_next(json);
    if (token != '[') return dt_fail(DT_EFORMAT, "expected a list");
    while ((token = dt__json_next(json)) && token != ']') {
        enum part part = 0;
        DT_TRY(dt__json_members(json, token, names, 1, &name));
        if (!name.at || dt__json_next(&name) != '"') return dt_fail(DT_EFORMAT, "expected names");
        while (part < PARTS &&
               !(has_part(predictor, part) && dt__cell_is(name.token, part_name(predictor, part))))
            part++;
        if (part == PARTS)
            return dt_fail(DT_EFORMAT, "there is no '%.*s'", dt__shown(name.token.length),
                           name.token.text);
        request->outputs |= 1u << part;
    }
    return DT_OK;
}

/* ---- requests ------------------------------------------------------------------------------- */

/* Reads the members of a request: in v1 "instances" or "inputs", in v2 "inputs", "id" and
 * "outputs". */
static dt_status request_read_members(struct dt__request *request, struct dt__json *json,
                                      const struct dt_predictor *predictor)
{
    enum { INSTANCES, INPUTS, ID, OUTPUTS, MEMBERS };
    static const char *const names[] = {"instances", "inputs", "id", "outputs"};
    const bool v2 = request->protocol == DT__INFER;
    unsigned seen = 0;
    if (dt__json_next(json) != '{') return dt_fail(DT_EFORMAT, "expected a JSON object");
    while (dt__json_next(json) == ':') {
        int m = v2 ? INPUTS : INSTANCES;
        const int end = v2 ? MEMBERS : ID;
        while (m < end && !dt__cell_is(json->token, names[m]))
            m++;
        if (m < end && seen >> m & 1)
            return dt_fail(DT_EFORMAT, "not JSON: '%s' appears twice", names[m]);
        seen |= 1u << m;
        if (m == end) {
            dt__json_pass(json, dt__json_next(json));
        } else if (m == OUTPUTS) {
            dt_status status = request_read_outputs(request, json, predictor);
            if (status) return dt_fail_prefix(status, "outputs: ");
        } else if (m == ID) {
            const char token = dt__json_next(json);
            if (token == '"')
                DT_TRY(dt__format(&request->id, "%.*s", (int)json->token.length, json->token.text));
            dt__json_pass(json, token);
        } else if (!request->key) {
            const char token = dt__json_next(json);
            dt_status status;
            if (v2 && token != '[') break;
            request->key = names[m];
            if (!v2) request->protocol = m == INPUTS ? DT__INPUTS : DT__INSTANCES;
            status = v2                            ? request_read_inputs(request, json)
                     : m == INPUTS && token == '{' ? request_read_named(request, json)
                                                   : request_read_list(request, json, token);
            if (status) return dt_fail_prefix(status, "%s: ", request->key);
        } else {
            request->key = NULL; /* the request has both "instances" and "inputs" */
            break;
        }
    }
    if (request->key) return DT_OK;
    return dt_fail(DT_EFORMAT,
                   v2 ? "expected \"inputs\", a list" : "expected \"instances\" or \"inputs\"");
}

/* The memory is proportional to the body's length, since a value takes at least two bytes of it. */
dt_status dt__request_read(const char *body, size_t length, bool v2,
                           const struct dt__version *version, int max_rows, struct dt__request *out)
{
    const struct dt_predictor *predictor = version->predictor;
    const struct dt__columns *columns = &version->columns;
    const size_t fit = length / 2 / columns->count, most = (size_t)max_rows;
    const size_t words = ((fit < most ? fit : most) + 1) * columns->count;
    struct dt__json json;
    dt_status status;
    *out = (struct dt__request){.protocol = v2 ? DT__INFER : DT__INSTANCES, .max_rows = max_rows};
    DT_GUARD(dt__json_rows_init(&out->reader, columns, !predictor->file.schema.columns));
    DT_GUARD(dt__alloc(words, sizeof *out->words, "rows", &out->words));
    DT_GUARD(dt__alloc(columns->count, sizeof *out->row, "columns", &out->row));
    out->list_end = out->words;
    if (columns->names.count)
        DT_GUARD(dt__alloc(columns->count, sizeof *out->lists, "columns", &out->lists));
    dt__json_begin(&json, body, length, &out->reader.scratch);
    status = request_read_members(out, &json, predictor);
    /* If the body is not JSON, say so, whatever error was found before. */
    if (status != DT_EMEMORY && dt__json_finish(&json)) status = DT_EFORMAT;
done:
    return status;
}

void dt__request_free(struct dt__request *request)
{
    dt__json_rows_free(&request->reader);
    dt_free(request->words);
    dt_free(request->lists);
    dt_free(request->row);
    dt_free(request->id);
}

dt_status dt__request_inputs(const struct dt__request *request, size_t first, size_t count,
                             const struct dt_predictor *predictor, struct dt_inputs *to, size_t at)
{
    const struct dt__columns *columns = request->reader.columns;
    const size_t numbers = predictor->numbers, entries = predictor->entries;
    const struct dt_schema *schema = &predictor->file.schema;
    const struct dt__row_layout layout = dt__row_layout_of(schema);
    struct dt__block row = {0};
    dt_status status;
    DT_GUARD(dt__block_alloc(&layout, 1, 0, &row));
    for (size_t r = first; r < first + count; r++, at++) {
        row.rows = 0;
        const uint32_t *words = request->words + r * columns->count;
        if (request->list_end > request->words) {
            for (size_t c = 0; c < columns->count; c++)
                request->row[c] = request->lists[c][r];
            words = request->row;
        }
        DT_GUARD(dt__table_row(columns, words, columns->count, &layout, &row));
        dt__row_normalize(schema, &row, to->x + at * numbers,
                          entries ? to->index + at * entries : NULL,
                          entries ? to->value + at * entries : NULL);
    }
done:
    dt__block_free(&row);
    return status;
}

/* ---- answers -------------------------------------------------------------------------------- */

/* Adds an output of v2, up to its data, to the list that `text` ends with. */
static void output_begin(const struct dt_predictor *predictor, enum part part, long long rows,
                         struct dt_text *text)
{
    static const char *const types[] = {"FP32", "INT64", "BYTES", "FP32", "FP32"};
    const bool first = text->data[text->length - 1] == '[';
    dt__text_add(text, "%s{\"name\":\"%s\",\"datatype\":\"%s\",\"shape\":[%lld", first ? "" : ",",
                 part_name(predictor, part), types[part], rows);
    if (part == NUMBERS) dt__text_add(text, ",%d", (int)predictor->width);
    if (part == LOW || part == HIGH) dt__text_add(text, ",%d", (int)predictor->targets);
    dt__text_append(text, "]", 1);
}

/* Adds the lower or upper ends of a row's intervals: a list, or just the number if there is one
 * target. `flat`: without brackets. */
static void bounds_add(const struct dt_predictor *predictor, bool upper, const float *values,
                       bool flat, struct dt_text *text)
{
    const size_t targets = predictor->targets;
    const bool list = targets > 1 && !flat;
    if (list) dt__text_append(text, "[", 1);
    for (size_t t = 0; t < targets; t++) {
        if (t) dt__text_append(text, ",", 1);
        dt__json_add_float(text, dt__predictor_bound(predictor, values, t, upper));
    }
    if (list) dt__text_append(text, "]", 1);
}

/* Adds one part of the answers to `rows` rows. A row's part is a list if it has several numbers,
 * else the number itself. */
static void part_add(const struct dt_predictor *predictor, enum part part, const float *values,
                     const int32_t *classes, size_t rows, bool list, bool flat,
                     struct dt_text *text)
{
    const size_t width = predictor->width;
    for (size_t r = 0; r < rows; r++, values += width) {
        if (list) dt__text_append(text, r ? "," : "[", 1);
        if (part == CLASS)
            dt__text_add(text, "%d", (int)classes[r]);
        else if (part == LABEL)
            dt__json_add_string(text, dt_predictor_class_name(predictor, classes[r]));
        else if (part == LOW || part == HIGH)
            bounds_add(predictor, part == HIGH, values, flat, text);
        else if (width == 1)
            dt__json_add_float(text, *values);
        else
            dt__json_add_floats(text, values, width);
    }
    if (list) dt__text_append(text, "]", 1);
}

/* The form of a protocol's answers: the parts in their order, once per row or once for all rows.
 * Each part has its name, except in v1 if it is the only one. */
static const struct form {
    const char *begin, *end;
    bool per_row;
    enum part order[PARTS];
} FORMS[] = {
    [DT__INSTANCES] = {"{\"predictions\":[", "]}\n", true, {CLASS, LABEL, NUMBERS, LOW, HIGH}},
    [DT__INPUTS] = {"{\"outputs\":", "}\n", false, {CLASS, LABEL, NUMBERS, LOW, HIGH}},
    [DT__INFER] = {",\"outputs\":[", "]}\n", false, {NUMBERS, CLASS, LABEL, LOW, HIGH}}};

dt_status dt__answer_format(const struct dt__request *request, const struct dt__version *version,
                            const char *name, const float *answers, const int32_t *classes,
                            struct dt_text *text)
{
    const struct dt_predictor *predictor = version->predictor;
    const struct form *form = &FORMS[request->protocol];
    const bool v2 = request->protocol == DT__INFER;
    const bool object = !v2 && (has_part(predictor, CLASS) || has_part(predictor, LOW));
    const size_t step = form->per_row ? 1 : request->rows, width = predictor->width;
    if (v2)
        dt__text_add(text, "{\"model_name\":%s,\"model_version\":\"%llu\"", name,
                     (unsigned long long)version->number);
    if (request->id) dt__text_add(text, ",\"id\":");
    if (request->id) dt__json_add_string(text, request->id);
    DT_TRY(dt__text_add(text, "%s", form->begin)); /* the calls after this need no check: the text
                                                    * keeps its first failure */
    for (size_t r = 0; r < request->rows; r += step) {
        const char *before = "{\"";
        const float *values = answers + r * width;
        if (r) dt__text_append(text, ",", 1);
        for (int i = 0; i < PARTS; i++) {
            const enum part part = form->order[i];
            const char *key = part_name(predictor, part);
            if (!has_part(predictor, part)) continue;
            if (request->outputs && !(request->outputs >> part & 1)) continue;
            if (v2) output_begin(predictor, part, (long long)request->rows, text);
            if (v2) dt__text_add(text, ",\"data\":");
            if (object) {
                dt__text_append(text, before, 2);
                dt__text_append(text, key, strlen(key));
                dt__text_append(text, "\":", 2);
            }
            before = ",\"";
            if (v2 && part == NUMBERS) /* a flat list */
                dt__json_add_floats(text, values, step * width);
            else
                part_add(predictor, part, values, classes + r, step, !form->per_row, v2, text);
            if (v2) dt__text_append(text, "}", 1);
        }
        if (object) dt__text_append(text, "}", 1);
    }
    return dt__text_add(text, "%s", form->end);
}

dt_status dt__metadata_format(const struct dt__version *version, const char *name,
                              struct dt_text *text)
{
    const struct dt_predictor *predictor = version->predictor;
    const struct dt__columns *columns = &version->columns;
    const bool tensor = takes_tensor(columns);
    DT_TRY(dt__text_add(text,
                        "{\"name\":%s,\"versions\":[\"%llu\"],\"platform\":\"dtrain\",\"inputs\":[",
                        name, (unsigned long long)version->number));
    for (size_t c = 0; c < (tensor ? 1 : columns->count); c++) {
        const bool number = tensor ? are_numbers(columns) : is_number(columns, c);
        dt__text_add(text, "%s{\"name\":", c ? "," : "");
        dt__json_add_string(text, tensor ? "input" : columns->items[c].name);
        dt__text_add(text, ",\"datatype\":\"%s\",\"shape\":[-1", number ? "FP32" : "BYTES");
        if (tensor) dt__text_add(text, ",%zu", columns->count);
        dt__text_add(text, "]}");
    }
    dt__text_add(text, "],\"outputs\":[");
    for (enum part part = 0; part < PARTS; part++) {
        if (!has_part(predictor, part)) continue;
        output_begin(predictor, part, -1, text);
        dt__text_append(text, "}", 1);
    }
    return dt__text_add(text, "]}\n");
}
