/* Requests and answers of the server, as JSON.
 *
 * A request is a list of rows, a tensor of them, or a list for each column. It is checked whole,
 * then read row by row into numbers, as many at a time as are computed together: nothing stands
 * between the bytes and those.
 * Source: TensorFlow Serving's RESTful API; KServe, Open Inference Protocol v2, "required_api". */
#include <string.h>

#include "data/csv.h"
#include "dtrain/report.h"
#include "predict/serve.h"

/* What is said of a row; in v2 an output each. */
enum part { NUMBERS, CLASS, LABEL, PARTS };

static bool has_part(const struct dt_predictor *predictor, enum part part)
{
    return part == NUMBERS ||
           (predictor->classes && (part == CLASS || dt_predictor_class_name(predictor, 0)));
}

static const char *part_name(const struct dt_predictor *predictor, enum part part)
{
    return part == NUMBERS ? predictor->answer : part == CLASS ? "class" : "label";
}

/* ---- rows ----------------------------------------------------------------------------------- */

static dt_status rows_check(size_t rows, int max_rows)
{
    if (!rows) return dt_fail(DT_EFORMAT, "no rows");
    if (rows <= (size_t)max_rows) return DT_OK;
    return dt_fail(DT_EFORMAT, "%zu rows, at most %d in a request", rows, max_rows);
}

static size_t list_count(struct dt__json list)
{
    size_t count = 0;
    for (; dt__json_peek(&list) != ']'; count++)
        dt__json_skip(&list);
    return count;
}

static dt_status request_set_list(struct dt__request *request, struct dt__json list)
{
    if (dt__json_peek(&list) != '[') return dt_fail(DT_EFORMAT, "expected a list of rows");
    list.at++;
    request->form = DT__ROWS;
    request->left = list;
    return dt__json_peek(&list) == ']' ? rows_check(0, request->max_rows) : DT_OK;
}

static bool is_number(const struct dt__columns *columns, size_t column)
{
    return !columns->items || columns->items[column].kind == DT_COLUMN_NUMBER;
}

/* Number columns, and columns without names, may come as one input. */
static bool takes_tensor(const struct dt__columns *columns)
{
    size_t numbers = 0;
    for (size_t c = 0; c < columns->count; c++)
        numbers += is_number(columns, c);
    return !columns->names.count || numbers == columns->count;
}

/* The values of a tensor: its shape's first dimension is the rows, the product of the others is
 * what a row has, and the data have as many. */
static dt_status tensor_check(struct dt__json shape, struct dt__json data, size_t *out_rows,
                              double *out_width)
{
    double size, rows = 0, width = 1;
    size_t count = 0, i = 0;
    if (!shape.at || dt__json_peek(&shape) != '[') return dt_fail(DT_EFORMAT, "expected a shape");
    for (shape.at++; dt__json_peek(&shape) != ']'; i++) {
        if (!dt__number_scan(&shape.at, shape.end, &size) || size < 1 || size > INT32_MAX ||
            size != (double)(int)size)
            return dt_fail(DT_EFORMAT, "the shape's item %zu is not a size", i);
        if (i)
            width *= size;
        else
            rows = size;
    }
    if (!i) return dt_fail(DT_EFORMAT, "expected a shape");
    for (char c; data.at && (c = dt__json_peek(&data)); count += c != '[' && c != ']')
        if (c == '[' || c == ']')
            data.at++;
        else
            dt__json_skip(&data);
    if ((double)count != rows * width)
        return dt_fail(DT_EFORMAT, "%zu values, its shape has %.0f", count, rows * width);
    *out_rows = (size_t)rows;
    *out_width = width;
    return DT_OK;
}

static dt_status request_set_tensor(struct dt__request *request, struct dt__json shape,
                                    struct dt__json data)
{
    const size_t features = request->reader.columns->count;
    double width;
    DT_TRY(tensor_check(shape, data, &request->total, &width));
    if (width != (double)features)
        return dt_fail(DT_EFORMAT, "%.0f numbers in a row, the model has %zu features", width,
                       features);
    request->form = DT__TENSOR;
    request->left = data;
    return rows_check(request->total, request->max_rows);
}

/* Lists by the columns' names, of as many values each, others aside; rows will miss what is
 * missing. */
static dt_status request_set_columns(struct dt__request *request)
{
    const struct dt__columns *columns = request->reader.columns;
    bool some = false;
    if (!request->columns)
        return dt_fail(DT_EFORMAT, "the model's features have no names: expected 'input'");
    for (size_t c = 0; c < columns->count; c++) {
        const char *name = columns->items[c].name;
        struct dt__json *list = &request->columns[c];
        if (!list->at) continue;
        if (dt__json_peek(list) != '[') return dt_fail(DT_EFORMAT, "'%s': expected a list", name);
        list->at++;
        const size_t values = list_count(*list);
        if (!some) DT_TRY(rows_check(values, request->max_rows));
        if (some && values != request->total)
            return dt_fail(DT_EFORMAT, "'%s': %zu values for %zu rows", name, values,
                           request->total);
        request->total = values;
        some = true;
    }
    request->form = DT__COLUMNS;
    if (some) return DT_OK;
    return dt_fail(DT_EFORMAT, "expected lists by the names of the model's columns");
}

/* The list of a column, if there is one of that name. */
static dt_status request_note_column(struct dt__request *request, struct dt__cell name,
                                     struct dt__json list)
{
    const struct dt__columns *columns = request->reader.columns;
    uint32_t column;
    if (!dt__dict_find(&columns->names, name.text, name.length, &column)) return DT_OK;
    if (request->columns[column].at)
        return dt_fail(DT_EFORMAT, "'%s' stands twice", columns->items[column].name);
    request->columns[column] = list;
    return DT_OK;
}

/* ---- TensorFlow Serving --------------------------------------------------------------------- */

static dt_status request_open_v1(struct dt__request *request, struct dt__json body)
{
    static const char *const names[] = {"instances", "inputs"};
    struct dt__json found[2], input = {0};
    struct dt__cell name;
    size_t count = 0;
    DT_TRY(dt__json_members(body, names, 2, found));
    if (!found[0].at == !found[1].at)
        return dt_fail(DT_EFORMAT, "expected \"instances\" or \"inputs\"");
    request->protocol = found[0].at ? DT__INSTANCES : DT__INPUTS;
    request->key = names[request->protocol == DT__INPUTS];
    if (found[0].at) return request_set_list(request, found[0]);
    struct dt__json inputs = found[1];
    if (dt__json_peek(&inputs) != '{') return request_set_list(request, inputs);
    for (inputs.at++; dt__json_peek(&inputs) != '}'; count++) {
        DT_TRY(dt__json_read_string(&inputs, &request->reader.scratch, &name));
        DT_TRY(request_note_column(request, name, inputs));
        if (dt__cell_is(name, "input")) input = inputs;
        dt__json_skip(&inputs);
    }
    return count == 1 && input.at ? request_set_list(request, input) : request_set_columns(request);
}

/* ---- Open Inference Protocol v2 ------------------------------------------------------------- */

enum { NAME, DATATYPE, SHAPE, DATA, MEMBERS };

/* One input; BYTES are texts. */
static dt_status request_note_input(struct dt__request *request, struct dt__json input,
                                    struct dt__json members[MEMBERS])
{
    static const char *const names[MEMBERS] = {"name", "datatype", "shape", "data"};
    static const char *const types[] = {"FP64", "FP32",   "FP16",   "INT64",  "INT32", "INT16",
                                        "INT8", "UINT64", "UINT32", "UINT16", "UINT8", "BYTES"};
    const size_t count = sizeof types / sizeof *types - request->reader.exact;
    struct dt_text *scratch = &request->reader.scratch;
    struct dt__cell name = {0}, type = {"", 0};
    uint32_t column;
    double width;
    size_t t = 0, rows;
    DT_TRY(dt__json_members(input, names, MEMBERS, members));
    if (members[DATATYPE].at && *members[DATATYPE].at == '"')
        DT_TRY(dt__json_read_string(&members[DATATYPE], scratch, &type));
    while (t < count && !dt__cell_is(type, types[t]))
        t++;
    if (t == count) return dt_fail(DT_EFORMAT, "a datatype that is not expected");
    if (!members[NAME].at || *members[NAME].at != '"') return DT_OK;
    DT_TRY(dt__json_read_string(&members[NAME], scratch, &name));
    if (!dt__dict_find(&request->reader.columns->names, name.text, name.length, &column))
        return DT_OK;
    DT_TRY(tensor_check(members[SHAPE], members[DATA], &rows, &width));
    if (width != 1) return dt_fail(DT_EFORMAT, "%.0f values in a row, expected 1", width);
    return request_note_column(request, name, members[DATA]);
}

/* The outputs that are asked for, by their names; without a list all are. */
static dt_status request_note_outputs(struct dt__request *request, struct dt__json list,
                                      const struct dt_predictor *predictor)
{
    static const char *const names[] = {"name"};
    struct dt__json member;
    struct dt__cell name;
    if (!list.at) return DT_OK;
    if (*list.at != '[') return dt_fail(DT_EFORMAT, "expected a list");
    for (list.at++; dt__json_peek(&list) != ']';) {
        enum part part = 0;
        DT_TRY(dt__json_members(list, names, 1, &member));
        if (!member.at || *member.at != '"') return dt_fail(DT_EFORMAT, "expected names");
        DT_TRY(dt__json_read_string(&member, &request->reader.scratch, &name));
        while (part < PARTS &&
               !(has_part(predictor, part) && dt__cell_is(name, part_name(predictor, part))))
            part++;
        if (part == PARTS)
            return dt_fail(DT_EFORMAT, "there is no '%.*s'", dt__shown(name.length), name.text);
        request->outputs |= 1u << part;
        dt__json_skip(&list);
    }
    return DT_OK;
}

static dt_status request_open_v2(struct dt__request *request, struct dt__json body,
                                 const struct dt_predictor *predictor)
{
    static const char *const names[] = {"inputs", "id", "outputs"};
    struct dt__json found[3], members[MEMBERS];
    struct dt__cell id;
    size_t count = 0;
    DT_TRY(dt__json_members(body, names, 3, found));
    request->protocol = DT__INFER;
    dt_status status = request_note_outputs(request, found[2], predictor);
    if (status) return dt_fail_prefix(status, "outputs: ");
    if (found[1].at && *found[1].at == '"') {
        DT_TRY(dt__json_read_string(&found[1], &request->reader.scratch, &id));
        DT_TRY(dt_format(&request->id, "%.*s", (int)id.length, id.text));
    }
    struct dt__json inputs = found[0];
    if (!inputs.at || *inputs.at != '[') return dt_fail(DT_EFORMAT, "expected \"inputs\", a list");
    request->key = names[0];
    for (inputs.at++; dt__json_peek(&inputs) != ']'; count++) {
        status = request_note_input(request, inputs, members);
        if (status) return dt_fail_prefix(status, "item %zu: ", count);
        dt__json_skip(&inputs);
    }
    bool by_name = false;
    for (size_t c = 0; request->columns && c < request->reader.columns->count; c++)
        by_name |= request->columns[c].at != NULL;
    if (count == 1 && !by_name && takes_tensor(request->reader.columns))
        return request_set_tensor(request, members[SHAPE], members[DATA]);
    return request_set_columns(request);
}

/* ---- requests ------------------------------------------------------------------------------- */

/* A value takes two bytes at least, so that what is allocated is in proportion to the body. */
dt_status dt__request_open(const char *body, size_t length, bool v2,
                           const struct dt__version *version, int max_rows, struct dt__request *out)
{
    const struct dt_predictor *predictor = version->predictor;
    const struct dt__json json = {body, body + length};
    const struct dt__columns *columns = &version->columns;
    const size_t most = predictor->chunk, fit = length / 2 / columns->count;
    dt_status status;
    *out = (struct dt__request){.max_rows = max_rows, .room = fit < most ? fit + 1 : most};
    DT_GUARD(dt__json_check(body, length));
    DT_GUARD(dt__json_rows_init(&out->reader, columns, !predictor->file.schema.columns));
    if (columns->names.count)
        DT_GUARD(dt_alloc(columns->count, sizeof *out->columns, "columns", &out->columns));
    DT_GUARD(v2 ? request_open_v2(out, json, predictor) : request_open_v1(out, json));
    DT_GUARD(dt_inputs_reserve(&out->inputs, predictor, out->room));
    out->row.capacity = predictor->numbers;
    DT_GUARD(dt_alloc(out->row.capacity, sizeof *out->row.x, "row", &out->row.x));
done:
    return status && out->key ? dt_fail_prefix(status, "%s: ", out->key) : status;
}

void dt__request_free(struct dt__request *request)
{
    dt__json_rows_free(&request->reader);
    dt__row_free(&request->row);
    dt_inputs_free(&request->inputs);
    dt_free(request->columns);
    dt_free(request->id);
}

static dt_status request_read_row(struct dt__request *request)
{
    const struct dt__columns *columns = request->reader.columns;
    if (request->form == DT__ROWS)
        return dt__json_row(&request->reader, &request->left, &request->row);
    if (request->form == DT__TENSOR)
        return dt__json_flat_row(&request->reader, &request->left, &request->row);
    for (size_t c = 0; c < columns->count; c++) {
        const char *name = columns->items[c].name;
        if (!request->columns[c].at)
            return dt_fail(DT_EFORMAT, "%s'%s' is missing", request->reader.exact ? "" : "column ",
                           name);
        dt_status status = dt__json_values(&request->reader, &request->columns[c], c, 1);
        if (status) return dt_fail_prefix(status, "'%s': ", name);
    }
    return dt__table_row(columns, request->reader.words, columns->count, &request->row);
}

dt_status dt__request_read(struct dt__request *request, const struct dt_predictor *predictor)
{
    const size_t numbers = predictor->numbers;
    const size_t entries = predictor->entries;
    const struct dt_inputs *to = &request->inputs;
    for (request->count = 0; request->count < request->room; request->count++, request->rows++) {
        const size_t at = request->count;
        const bool list = request->form == DT__ROWS;
        dt_status status = DT_OK;
        if (list ? dt__json_peek(&request->left) == ']' : request->rows == request->total)
            return DT_OK;
        if (list && request->rows == (size_t)request->max_rows)
            status = rows_check(request->rows + list_count(request->left), request->max_rows);
        else if ((status = request_read_row(request)))
            dt_fail_prefix(status, "row %zu: ", request->rows);
        if (status) return dt_fail_prefix(status, "%s: ", request->key);
        dt__row_normalize(&predictor->file.schema, &request->row, to->x + at * numbers,
                          entries ? to->index + at * entries : NULL,
                          entries ? to->value + at * entries : NULL);
    }
    return DT_OK;
}

/* ---- answers -------------------------------------------------------------------------------- */

struct answers {
    const struct dt_predictor *predictor;
    size_t rows, width;
    const float *values;
    const int32_t *classes;
    struct dt_text *text;
};

/* Rows [first, end): one stands alone, those of `list` are a list. Of numbers a single one stands
 * alone, more are a list. */
static dt_status answers_add_part(const struct answers *a, enum part part, size_t first, size_t end,
                                  bool list)
{
    for (size_t r = first; r < end; r++) {
        const float *values = a->values + r * a->width;
        if (list) DT_TRY(dt_text_append(a->text, r > first ? "," : "[", 1));
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
    return list ? dt_text_append(a->text, "]", 1) : DT_OK;
}

/* Values alone, or an object of class, label and probabilities. */
static dt_status answers_add_prediction(const struct answers *a, size_t first, size_t end,
                                        bool list)
{
    static const char *const keys[] = {
        [CLASS] = "{\"class\":", [LABEL] = ",\"label\":", [NUMBERS] = ",\"probabilities\":"};
    static const enum part order[] = {CLASS, LABEL, NUMBERS};
    if (!has_part(a->predictor, CLASS)) return answers_add_part(a, NUMBERS, first, end, list);
    for (int i = 0; i < PARTS; i++) {
        if (!has_part(a->predictor, order[i])) continue;
        DT_TRY(dt_text_add(a->text, "%s", keys[order[i]]));
        DT_TRY(answers_add_part(a, order[i], first, end, list));
    }
    return dt_text_add(a->text, "}");
}

/* An output of v2, up to its data, in a list that has begun. */
static dt_status output_add(const struct dt_predictor *predictor, enum part part, long long rows,
                            struct dt_text *text)
{
    static const char *const types[] = {"FP32", "INT64", "BYTES"};
    const bool first = text->data[text->length - 1] == '[';
    DT_TRY(dt_text_add(text, "%s{\"name\":\"%s\",\"datatype\":\"%s\",\"shape\":[%lld",
                       first ? "" : ",", part_name(predictor, part), types[part], rows));
    if (part == NUMBERS) DT_TRY(dt_text_add(text, ",%d", (int)predictor->width));
    return dt_text_append(text, "]", 1);
}

/* v2: data are flat lists. asked: bits of parts; 0: all. */
static dt_status answers_add_outputs(const struct answers *a, unsigned asked)
{
    for (enum part part = 0; part < PARTS; part++) {
        if (!has_part(a->predictor, part) || (asked && !(asked >> part & 1))) continue;
        DT_TRY(output_add(a->predictor, part, (long long)a->rows, a->text));
        DT_TRY(dt_text_add(a->text, ",\"data\":"));
        DT_TRY(part == NUMBERS ? dt_json_add_floats(a->text, a->values, a->rows * a->width)
                               : answers_add_part(a, part, 0, a->rows, true));
        DT_TRY(dt_text_append(a->text, "}", 1));
    }
    return dt_text_add(a->text, "]}\n");
}

dt_status dt__answer_format(const struct dt__request *request, const struct dt__version *version,
                            const char *name, const float *answers, const int32_t *classes,
                            struct dt_text *text)
{
    const struct answers a = {.predictor = version->predictor,
                              .rows = request->rows,
                              .width = version->predictor->width,
                              .values = answers,
                              .classes = classes,
                              .text = text};
    if (request->protocol == DT__INFER) {
        DT_TRY(dt_text_add(text, "{\"model_name\":%s,\"model_version\":\"%llu\"", name,
                           (unsigned long long)version->number));
        if (request->id) DT_TRY(dt_text_add(text, ",\"id\":"));
        if (request->id) DT_TRY(dt_json_add_string(text, request->id));
        DT_TRY(dt_text_add(text, ",\"outputs\":["));
        return answers_add_outputs(&a, request->outputs);
    }
    if (request->protocol == DT__INPUTS) {
        DT_TRY(dt_text_add(text, "{\"outputs\":"));
        DT_TRY(answers_add_prediction(&a, 0, a.rows, true));
        return dt_text_add(text, "}\n");
    }
    DT_TRY(dt_text_add(text, "{\"predictions\":"));
    for (size_t r = 0; r < a.rows; r++) {
        DT_TRY(dt_text_append(text, r ? "," : "[", 1));
        DT_TRY(answers_add_prediction(&a, r, r + 1, false));
    }
    return dt_text_add(text, "]}\n");
}

dt_status dt__metadata_format(const struct dt__version *version, const char *name,
                              struct dt_text *text)
{
    const struct dt_predictor *predictor = version->predictor;
    const struct dt__columns *columns = &version->columns;
    const bool tensor = takes_tensor(columns);
    size_t numbers = 0;
    for (size_t c = 0; c < columns->count; c++)
        numbers += is_number(columns, c);
    DT_TRY(dt_text_add(text,
                       "{\"name\":%s,\"versions\":[\"%llu\"],\"platform\":\"dtrain\",\"inputs\":[",
                       name, (unsigned long long)version->number));
    for (size_t c = 0; c < (tensor ? 1 : columns->count); c++) {
        const bool number = tensor ? numbers == columns->count : is_number(columns, c);
        DT_TRY(dt_text_add(text, "%s{\"name\":", c ? "," : ""));
        DT_TRY(dt_json_add_string(text, tensor ? "input" : columns->items[c].name));
        DT_TRY(dt_text_add(text, ",\"datatype\":\"%s\",\"shape\":[-1", number ? "FP32" : "BYTES"));
        if (tensor) DT_TRY(dt_text_add(text, ",%zu", columns->count));
        DT_TRY(dt_text_add(text, "]}"));
    }
    DT_TRY(dt_text_add(text, "],\"outputs\":["));
    for (enum part part = 0; part < PARTS; part++) {
        if (!has_part(predictor, part)) continue;
        DT_TRY(output_add(predictor, part, -1, text));
        DT_TRY(dt_text_append(text, "}", 1));
    }
    return dt_text_add(text, "]}\n");
}
