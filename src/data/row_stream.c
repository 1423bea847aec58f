/* Rows to predict, from a stream: CSV, JSON lines or LIBSVM. */
#include <ctype.h>
#include <float.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "data/csv.h"
#include "data/libsvm.h"
#include "data/number.h"
#include "data/packed.h"
#include "data/source.h"

/* ==== JSON ==================================================================================== */

static const char *json_skip_blanks(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    return p;
}

/* Reads a plain array of n short numbers, "[1, 2.5, -3]", without building it. False: it is
 * something else, which jansson must judge; x may be half written. */
static bool json_scan(const char *text, size_t length, size_t n, float *x)
{
    const char *end = text + length, *p = json_skip_blanks(text, end);
    double value;
    if (p == end || *p++ != '[') return false;
    for (size_t i = 0; i < n; i++) {
        /* A number as JSON has them: digits in front, none of them a needless 0, and behind a point. */
        p = json_skip_blanks(p, end);
        const char *digits = p + (p < end && *p == '-');
        if (digits == end || *digits == '.' || !dt__number_scan(&p, end, &value)) return false;
        if (p[-1] == '.' || (*digits == '0' && p > digits + 1 && digits[1] != '.')) return false;
        x[i] = (float)value;
        p = json_skip_blanks(p, end);
        if (p == end || *p++ != (i + 1 < n ? ',' : ']')) return false;
    }
    return n && json_skip_blanks(p, end) == end;
}

/* ---- the stream ----------------------------------------------------------------------------- */

struct dt_rows {
    const struct dt_config *config; /* or NULL */
    const struct dt_schema *schema;
    struct dt__lines lines;
    const struct dt__grammar *grammar; /* NULL: JSON */
    struct dt__columns columns;        /* of the schema */
    struct dt__file file; /* CSV: roles; no roles: the first row has not been seen yet */
    struct dt__parser parser;
    float *raw;        /* (features) */
    json_t *instances; /* JSON: what is left of the last line, from `instance` on */
    size_t instance;
    bool ended;
};

/* ---- JSON rows ------------------------------------------------------------------------------ */

/* A value of a column; NULL: the row has none. */
static dt_status json_read_value(struct dt_rows *rows, size_t column, const json_t *value)
{
    const struct dt__column *item = &rows->columns.items[column];
    char text[32];
    if (json_is_string(value) && item->kind == DT_COLUMN_NUMBER &&
        !dt__text_is_missing(json_string_value(value), json_string_length(value)))
        return dt_fail(DT_EFORMAT, "'%.40s' is not a number", json_string_value(value));
    if (json_is_string(value))
        return dt__columns_cell(&rows->columns, column, json_string_value(value),
                                json_string_length(value), &rows->parser.row);
    if (json_is_null(value))
        return dt__columns_cell(&rows->columns, column, "", 0, &rows->parser.row);
    if (!json_is_number(value)) return dt_fail(DT_EFORMAT, "not a number");
    double number = json_number_value(value);
    if (item->kind == DT_COLUMN_CATEGORY) {
        if (json_is_integer(value))
            (void)snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        else
            dt_real_text(number, text); /* 0.1 is the text 0.1 */
        return dt__columns_cell(&rows->columns, column, text, strlen(text), &rows->parser.row);
    }
    if (!(fabs(number) <= (double)FLT_MAX)) return dt_fail(DT_EFORMAT, "out of range");
    rows->parser.row.x[item->first] = (float)number;
    return DT_OK;
}

/* An array of the columns' values, or an object {"carat": 0.5, "cut": "Ideal"}: values by the names of the
 * columns; other names are left out. */
static dt_status json_read_row(struct dt_rows *rows, const json_t *value)
{
    const size_t count = rows->columns.count;
    DT_TRY(dt__columns_begin(&rows->columns, &rows->parser.row));
    if (!json_is_array(value) && !json_is_object(value))
        return dt_fail(DT_EFORMAT,
                       "a row is an array of %zu values, an object with the columns' names, or "
                       "{\"instances\": [rows]}",
                       count);
    if (json_is_array(value) && json_array_size(value) != count)
        return dt_fail(DT_EFORMAT, "%zu %s, the model has %zu features", json_array_size(value),
                       rows->schema->columns ? "values" : "numbers", count);
    for (size_t c = 0; c < count; c++) {
        const char *name = rows->columns.items[c].name;
        const json_t *item = json_array_get(value, c);
        if (json_is_object(value)) {
            if (!name)
                return dt_fail(DT_EFORMAT, "a row is an array: the model's columns have no names");
            item = json_object_get(value, name);
            if (!item) return dt_fail(DT_EFORMAT, "column '%s' is missing", name);
        }
        dt_status status = json_read_value(rows, c, item);
        if (status && json_is_object(value)) return dt_fail_prefix(status, "column '%s': ", name);
        if (status)
            return dt_fail_prefix(status, "item %zu%s%s%s: ", c, name ? " (" : "", name ? name : "",
                                  name ? ")" : "");
    }
    return DT_OK;
}

static dt_status json_next_instance(struct dt_rows *rows)
{
    json_t *row = json_array_get(rows->instances, rows->instance);
    dt_status status = json_read_row(rows, row);
    if (status) dt_fail_prefix(status, "instance %zu: ", rows->instance);
    if (++rows->instance == json_array_size(rows->instances)) {
        json_decref(rows->instances);
        rows->instances = NULL;
    }
    return status;
}

static dt_status json_parse(struct dt_rows *rows, char *record, size_t length)
{
    json_error_t error;
    if (!rows->schema->columns) {
        DT_TRY(dt__columns_begin(&rows->columns, &rows->parser.row));
        if (json_scan(record, length, rows->columns.count, rows->parser.row.x)) return DT_OK;
    }
    json_t *value = json_loadb(record, length, JSON_REJECT_DUPLICATES, &error);
    if (!value) return dt_fail(DT_EFORMAT, "not JSON: column %d: %s", error.column, error.text);
    const json_t *first = json_array_get(value, 0);
    const bool of_rows = json_is_array(first) || json_is_object(first);
    json_t *instances = of_rows ? value : json_object_get(value, "instances");
    if (json_array_size(instances)) {
        rows->instances = json_incref(instances);
        rows->instance = 0;
        json_decref(value);
        return json_next_instance(rows);
    }
    dt_status status = json_is_array(instances) ? dt_fail(DT_EFORMAT, "instances: no rows")
                                                : json_read_row(rows, value);
    json_decref(value);
    return status;
}

/* ---- CSV rows ------------------------------------------------------------------------------- */

/* The first good row says what the columns are. */
static dt_status csv_begin(struct dt_rows *rows, const char *record, size_t length, bool *header)
{
    struct dt__names cells = {0};
    struct dt__file *file = &rows->file;
    int32_t *roles = NULL;
    dt_status status = DT_OK;
    *header = false;
    DT_GUARD(dt__csv_separator(rows->config, record, length, &file->separator));
    DT_GUARD(dt__csv_split(record, length, file->separator, &cells));
    DT_GUARD(dt_alloc(cells.count, sizeof *roles, "columns", &roles));
    if (rows->columns.count && rows->columns.items[0].name)
        DT_GUARD(dt__csv_roles_by_name(&rows->columns, NULL, NULL, &cells, roles, header));
    if (!*header) {
        /* Columns by their places: the features alone, or as the training data had them. */
        size_t features = cells.count, expected = rows->columns.count;
        for (size_t i = 0; i < cells.count; i++)
            roles[i] = (int32_t)i;
        if (features != expected && rows->config)
            status = dt__csv_roles(rows->config, &cells, true, roles, &features);
        if (status || features != expected)
            DT_GUARD(dt_fail(DT_EFORMAT, "%zu columns, the model has %zu features", cells.count,
                             expected));
        *header = dt__csv_is_header(&cells, roles) && !rows->schema->columns;
    }
    file->roles = roles;
    file->ncolumns = cells.count;
done:
    if (status) dt_free(roles);
    dt__names_free(cells.items, cells.count);
    return status;
}

/* ---- life ----------------------------------------------------------------------------------- */

static bool text_is_blank(const char *text, size_t length)
{
    size_t i = 0;
    while (i < length && isspace((unsigned char)text[i]))
        i++;
    return i == length;
}

dt_status dt_rows_open(FILE *in, const char *name, const struct dt_schema *schema,
                       const struct dt_config *config, struct dt_rows **out)
{
    struct dt_rows *rows;
    struct dt__lines *lines;
    uint64_t offset;
    char *record;
    size_t length;
    dt_status status;
    DT_TRY(dt_alloc(1, sizeof *rows, "rows", &rows));
    *rows = (struct dt_rows){.config = config, .schema = schema};
    rows->parser = (struct dt__parser){
        .file = &rows->file, .columns = &rows->columns, .features = (uint32_t)schema->features};
    lines = &rows->lines;
    DT_GUARD(dt_alloc((size_t)schema->features, sizeof *rows->raw, "row", &rows->raw));
    DT_GUARD(dt__columns_of_schema(&rows->columns, schema));
    DT_GUARD(dt__lines_attach(lines, in, name));
    DT_GUARD(dt__packed_refuse(name, (const unsigned char *)lines->data, lines->end));
    do { /* the first line that is not blank tells; then back to it */
        offset = dt__lines_offset(lines);
        DT_GUARD(dt__lines_next(lines, false, &record, &length));
    } while (record && text_is_blank(record, length));
    while (record && length && isspace((unsigned char)*record))
        record++, length--;
    if (record && *record != '[' && *record != '{')
        rows->grammar = dt__libsvm_is_row(record, length) ? &dt__libsvm_grammar : &dt__csv_grammar;
    if (rows->grammar == &dt__libsvm_grammar && schema->columns && schema->dense < schema->features)
        DT_GUARD(dt_fail(DT_EMISMATCH, "the model takes the categories of a table: expected CSV or JSON"));
    if (record) DT_GUARD(dt__lines_seek(lines, offset, lines->line));
    *out = rows;
    return DT_OK;
done:
    dt_rows_close(rows);
    return status;
}

void dt_rows_close(struct dt_rows *rows)
{
    if (!rows) return;
    dt__lines_close(&rows->lines);
    json_decref(rows->instances);
    dt__columns_free(&rows->columns);
    dt__row_free(&rows->parser.row);
    dt_free(rows->raw);
    dt_free(rows->file.roles);
    dt_free(rows);
}

/* ---- reading -------------------------------------------------------------------------------- */

/* The next record that is neither blank nor a header. What cannot be cut into records ends the stream. */
static dt_status rows_next_row(struct dt_rows *rows, uint64_t *out_line, bool *out_end)
{
    const bool quotes = rows->grammar && rows->grammar->quotes;
    char *record = NULL;
    size_t length = 0;
    if (rows->instances) return json_next_instance(rows);
    for (bool header = true; header;) {
        dt_status status = DT_OK;
        record = NULL;
        do
            if (!rows->ended) status = dt__lines_next(&rows->lines, quotes, &record, &length);
        while (!status && record && text_is_blank(record, length));
        rows->ended |= status || !record;
        *out_line = status ? rows->lines.next_line : rows->lines.line;
        DT_TRY(status);
        *out_end = !record;
        header = false;
        if (record && rows->grammar == &dt__csv_grammar && !rows->file.roles)
            status = csv_begin(rows, record, length, &header);
        rows->ended |= status == DT_EMISMATCH;
        DT_TRY(status);
    }
    if (!record) return DT_OK;
    if (!rows->grammar) return json_parse(rows, record, length);
    return rows->grammar->parse(&rows->parser, record, length);
}

dt_status dt_rows_next(struct dt_rows *rows, float *x, uint64_t *out_line, bool *out_end)
{
    const struct dt__row *row = &rows->parser.row;
    size_t features = (size_t)rows->schema->features, known;
    *out_end = false;
    *out_line = rows->lines.line;
    DT_TRY(rows_next_row(rows, out_line, out_end));
    if (*out_end) return DT_OK;
    known = row->capacity < features ? row->capacity : features;
    memset(rows->raw + known, 0, (features - known) * sizeof *rows->raw);
    if (known) memcpy(rows->raw, row->x, known * sizeof *rows->raw);
    for (size_t i = 0; i < row->entries; i++)
        rows->raw[row->index[i]] = row->value[i];
    dt__schema_normalize_row(rows->schema, features, rows->raw, x);
    return DT_OK;
}

/* Entries are scaled and never moved, as in training. */
dt_status dt_rows_next_sparse(struct dt_rows *rows, float *x, uint32_t *index, float *value,
                              uint64_t *out_line, bool *out_end)
{
    const struct dt_schema *schema = rows->schema;
    const struct dt__row *row = &rows->parser.row;
    *out_end = false;
    *out_line = rows->lines.line;
    DT_TRY(rows_next_row(rows, out_line, out_end));
    if (*out_end) return DT_OK;
    dt__schema_normalize_row(schema, (size_t)schema->dense, row->x, x);
    for (size_t i = 0; i < row->entries; i++) {
        const float inv_std = schema->inv_std ? schema->inv_std[row->index[i]] : 1;
        index[i] = row->index[i];
        value[i] = row->value[i] * (float)schema->scale * inv_std;
    }
    dt__schema_clip(schema, row->entries, value);
    return DT_OK;
}

bool dt_rows_ready(const struct dt_rows *rows)
{
    return rows->instances || rows->ended || dt__lines_ready(&rows->lines);
}
