/* Rows to predict, from a stream: CSV, JSON lines or LIBSVM. */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "data/csv.h"
#include "data/csv_header.h"
#include "data/formats.h"
#include "data/json_rows.h"
#include "data/libsvm.h"
#include "table/normalize.h"
#include "table/values.h"
#include "text/csv_record.h"
#include "text/input.h"
#include "text/libsvm_record.h"

/* ---- the stream ----------------------------------------------------------------------------- */

struct dt_rows {
    const struct dt_config *config; /* NULL: none */
    const struct dt_schema *schema;
    struct dt__lines lines;
    const struct dt__grammar *grammar; /* NULL: rows are JSON */
    struct dt__columns columns;        /* those of the schema */
    struct dt__header header;          /* CSV */
    struct dt__parser parser;          /* its header is NULL until the first row has been read */
    struct dt__row_layout layout;
    struct dt__block row; /* the last row */
    struct dt__json_rows json;
    uint32_t *words; /* (columns) words of a row of JSON */
    /* JSON: the rest of the last line, from row `instance` on; at NULL: nothing is left */
    struct dt__json instances;
    size_t instance;
    /* dt__rows_keep: the names of the columns, and their values in the last row */
    struct dt__names keep, passthrough;
    /* (keep.count) CSV: the column of each name */
    size_t *keep_columns;
    uint64_t nread; /* number of rows, or of lines of JSON, so far */
    bool ended;
    bool warned_beyond; /* LIBSVM: has warned that a row has features that the model lacks */
    bool guessed;       /* a lone number decided for CSV, so rows may be LIBSVM */
};

/* ---- kept values ---------------------------------------------------------------------------- */

dt_status dt__rows_keep(struct dt_rows *rows, const char *names)
{
    DT_TRY(dt__names_split(names, &rows->keep));
    if (rows->keep.count && rows->grammar == &dt__libsvm_grammar)
        return dt_fail(DT_EMISMATCH, "predict.keep: rows of LIBSVM have no named columns");
    rows->lines.keeps = rows->keep.count && rows->grammar == &dt__csv_grammar;
    return dt__alloc(rows->keep.count, sizeof *rows->keep_columns, "columns to keep",
                     &rows->keep_columns);
}

char **dt__rows_take_passthrough(struct dt_rows *rows)
{
    char **passthrough = rows->passthrough.items;
    rows->passthrough = (struct dt__names){0};
    return passthrough;
}

static void passthrough_forget(struct dt_rows *rows)
{
    dt__names_free(rows->passthrough.items, rows->passthrough.count);
    rows->passthrough = (struct dt__names){0};
}

static dt_status csv_find_passthrough(struct dt_rows *rows)
{
    if (rows->keep.count && !rows->header.names)
        return dt_fail(DT_EMISMATCH, "predict.keep: the rows have no header that names columns");
    for (size_t k = 0; k < rows->keep.count; k++) {
        const char *name = rows->keep.items[k];
        const uint64_t cells = dt__header_has(&rows->header, name, &rows->keep_columns[k]);
        if (!cells) return dt_fail(DT_EMISMATCH, "predict.keep: there is no column '%s'", name);
        if (cells > 1)
            return dt_fail(DT_EMISMATCH, "predict.keep: several columns are named '%s'", name);
    }
    return DT_OK;
}

/* Keeps the values of the last record as they are in the input, with their decimal commas. */
static dt_status csv_keep(struct dt_rows *rows, size_t length)
{
    struct dt__names cells = {0};
    dt_status status = DT_OK;
    if (!rows->keep.count) return DT_OK;
    DT_GUARD(dt__csv_split(rows->lines.raw, length, rows->header.separator, &cells));
    for (size_t k = 0; k < rows->keep.count; k++) {
        const char *cell =
            rows->keep_columns[k] < cells.count ? cells.items[rows->keep_columns[k]] : "";
        DT_GUARD(dt__names_add(&rows->passthrough, cell, strlen(cell)));
    }
done:
    dt__names_free(cells.items, cells.count);
    return status;
}

/* Finds the first member of an object whose name, without the blanks around it, is `name`. */
static void member_find_blank(struct dt__json object, const char *name, struct dt__json *out)
{
    dt__json_next(&object);
    while (!out->at && dt__json_next(&object) == ':') {
        const char *text = object.token.text;
        size_t length = object.token.length;
        dt__text_trim(&text, &length);
        if (length == strlen(name) && !memcmp(text, name, length)) *out = object;
        dt__json_pass(&object, dt__json_next(&object));
    }
}

/* Keeps the values of an object: texts without their quotes, other values as they are in the
 * input. */
static dt_status json_keep(struct dt_rows *rows, const struct dt__json *json)
{
    for (size_t k = 0; k < rows->keep.count; k++) {
        const char *const name = rows->keep.items[k];
        struct dt__json object = *json, value;
        DT_TRY(dt__json_members(&object, dt__json_next(&object), &name, 1, &value));
        if (!value.at) member_find_blank(*json, name, &value);
        if (!value.at) return dt_fail(DT_EFORMAT, "column '%s' of predict.keep is missing", name);
        const char token = dt__json_next(&value);
        struct dt__cell cell = value.token;
        if (token == '[' || token == '{') {
            cell.text = (char *)(uintptr_t)value.at - 1;
            dt__json_pass(&value, token);
            cell.length = (size_t)(value.at - cell.text);
        }
        DT_TRY(dt__names_add(&rows->passthrough, cell.text, cell.length));
    }
    return DT_OK;
}

/* ---- JSON rows ------------------------------------------------------------------------------ */

/* Reads a row and keeps its values, even if the row is not valid. */
static dt_status json_row(struct dt_rows *rows, struct dt__json *json)
{
    const dt_status added = json_keep(rows, json);
    const dt_status status = dt__json_row(&rows->json, json, dt__json_next(json), rows->words);
    if (added) passthrough_forget(rows);
    if (status || added) return status ? status : added;
    return dt__table_row(&rows->columns, rows->words, rows->columns.count, &rows->layout,
                         &rows->row);
}

static dt_status json_next_instance(struct dt_rows *rows)
{
    dt_status status = json_row(rows, &rows->instances);
    if (status) dt_fail_prefix(status, "instance %zu: ", rows->instance);
    rows->instance++;
    struct dt__json ahead = rows->instances;
    if (dt__json_next(&ahead) == ']') rows->instances.at = NULL;
    return status;
}

/* Parses a line: a row, a list of rows, or {"instances": [rows]}. Checks the whole line before it
 * returns the first row. */
static dt_status json_parse(struct dt_rows *rows, const char *record, size_t length)
{
    static const char *const names[] = {"instances"};
    struct dt__json json, list, ahead;
    dt__json_begin(&json, record, length, &rows->json.scratch);
    ahead = list = json;
    DT_TRY(dt__json_finish(&ahead));
    ahead = json;
    const bool object = dt__json_next(&ahead) == '{';
    if (object) DT_TRY(dt__json_members(&ahead, '{', names, 1, &list));
    if (list.at && dt__json_next(&list) == '[') {
        ahead = list;
        const char first = dt__json_next(&ahead);
        if (first == ']' && object) return dt_fail(DT_EFORMAT, "instances: no rows");
        if (first == '[' || first == '{' || object) {
            rows->instances = list;
            rows->instance = 0;
            return json_next_instance(rows);
        }
    }
    return json_row(rows, &json);
}

/* ---- CSV rows ------------------------------------------------------------------------------- */

/* Finds the columns, by the first record: by their names or, if it has none, by their positions.
 * Rows then have either the features alone or all columns of the training data. If `config` sets
 * data.header, it says whether the first record has names. */
static dt_status csv_begin(struct dt_rows *rows, const char *record, size_t length)
{
    struct dt__header *header = &rows->header;
    const struct dt__columns *columns = &rows->columns;
    const bool given = rows->config && dt__config_is_given(rows->config, "data.header");
    const int setting = given ? rows->config->data.header : DT_HEADER_AUTO;
    const bool named = columns->count && columns->items[0].name && setting != DT_HEADER_NO;
    dt__header_free(header);
    const bool one_text = columns->count == 1 && columns->items[0].kind != DT_COLUMN_NUMBER;
    dt_status status =
        dt__header_parse(header, rows->config, &rows->lines, record, length, !one_text);
    if (!status && named)
        status = dt__header_match(header, columns, "the training data", setting == DT_HEADER_YES);
    /* A wrong header ends the reading; otherwise the rows would be read by position. */
    if (status == DT_EFORMAT && named) status = dt_fail(DT_EMISMATCH, "%s", dt_error_text());
    DT_TRY(status);
    if (!header->names) {
        header->features = header->cells.count;
        for (size_t i = 0; i < header->features; i++)
            header->roles[i] = (int32_t)i;
        if (header->features != columns->count && rows->config) {
            header->features = 0;
            header->names = true; /* so that keys may name columns, although these cells are not
                                   * names */
            status = dt__header_roles(header, rows->config);
        }
        if (status || header->features != columns->count)
            return dt_fail(DT_EFORMAT, "%zu columns, the model has %zu %s", header->cells.count,
                           columns->count, rows->schema->columns ? "columns" : "features");
        header->names = setting == DT_HEADER_YES;
        if (setting == DT_HEADER_AUTO)
            header->names = dt__header_has_no_numbers(header) && !rows->schema->columns;
    }
    DT_TRY(csv_find_passthrough(rows));
    rows->parser.header = header;
    return DT_OK;
}

/* ---- life ----------------------------------------------------------------------------------- */

static bool text_is_blank(const char *text, size_t length)
{
    size_t i = 0;
    while (i < length && isspace((unsigned char)text[i]))
        i++;
    return i == length;
}

/* Chooses the grammar by the first line that is not blank, not a comment (of LIBSVM) and not a lone
 * number. A comment may be the header of a CSV. If the model takes one column, a lone number may be
 * a row of CSV. The sender may then be waiting for its answer, so the function does not wait for
 * another line. */
static dt_status grammar_choose(struct dt_rows *rows)
{
    enum { MOST_NUMBERS = 1000 };
    const bool alone =
        rows->schema->columns ? rows->schema->ncolumns == 1 : rows->schema->features == 1;
    char *record;
    size_t length;
    for (int numbers = 0; numbers < MOST_NUMBERS;) {
        if (numbers && alone && !dt__lines_ready(&rows->lines)) return DT_OK;
        DT_TRY(dt__lines_next(&rows->lines, false, &record, &length));
        if (!record) return DT_OK;
        for (; length && isspace((unsigned char)*record); length--)
            record++;
        if (!length) continue;
        const enum dt__libsvm_line line = dt__libsvm_line(record, length);
        rows->grammar = line == DT__LIBSVM_ROW ? &dt__libsvm_grammar : &dt__csv_grammar;
        if (*record == '[' || *record == '{') rows->grammar = NULL;
        rows->guessed = line == DT__LIBSVM_NUMBER;
        if (line >= DT__LIBSVM_ROW) return DT_OK;
        numbers += line == DT__LIBSVM_NUMBER;
    }
    return DT_OK;
}

dt_status dt__rows_open(FILE *in, const char *name, const struct dt_schema *schema,
                        const struct dt_config *config, struct dt_rows **out)
{
    struct dt_rows *rows;
    struct dt__lines *lines;
    dt_status status;
    const bool given = config && dt__config_is_given(config, "data.format");
    const int format = given ? config->data.format : DT_FORMAT_AUTO;
    if (format != DT_FORMAT_AUTO && !dt__formats[format]->grammar)
        return dt_fail(DT_EUSAGE, "%s: expected rows of CSV, JSON or LIBSVM, not of %s", name,
                       dt__formats[format]->name);
    DT_TRY(dt__alloc(1, sizeof *rows, "rows", &rows));
    *rows =
        (struct dt_rows){.config = config, .schema = schema, .layout = dt__row_layout_of(schema)};
    rows->parser =
        (struct dt__parser){.columns = &rows->columns, .features = (uint32_t)schema->features};
    lines = &rows->lines;
    DT_GUARD(dt__block_alloc(&rows->layout, 1, 0, &rows->row));
    DT_GUARD(dt__lines_attach(lines, in, name));
    DT_GUARD(dt__stream_refuse(name, (const unsigned char *)lines->data, lines->end));
    if (format == DT_FORMAT_AUTO)
        DT_GUARD(grammar_choose(rows));
    else
        rows->grammar = format == DT_FORMAT_JSON ? NULL : dt__formats[format]->grammar;
    if (rows->grammar == &dt__libsvm_grammar && schema->columns && schema->dense < schema->features)
        DT_GUARD(dt_fail(DT_EMISMATCH,
                         "the model takes the categories of a table: expected CSV or JSON"));
    DT_GUARD(rows->grammar == &dt__csv_grammar ? dt__columns_of_schema(&rows->columns, schema)
                                               : dt__columns_of_json(&rows->columns, schema));
    if (!rows->grammar) {
        DT_GUARD(dt__json_rows_init(&rows->json, &rows->columns, false));
        DT_GUARD(dt__alloc(rows->columns.count, sizeof *rows->words, "columns", &rows->words));
    }
    if (rows->grammar == &dt__csv_grammar && config)
        dt__lines_decimal(lines, config->data.decimal == DT_DECIMAL_COMMA, config->data.separator);
    dt__lines_release(lines, true);
    *out = rows;
    return DT_OK;
done:
    dt__rows_close(rows);
    return status;
}

void dt__rows_close(struct dt_rows *rows)
{
    if (!rows) return;
    dt__lines_close(&rows->lines);
    dt__json_rows_free(&rows->json);
    dt_free(rows->words);
    dt__columns_free(&rows->columns);
    dt__block_free(&rows->row);
    dt_free(rows->parser.words);
    dt__header_free(&rows->header);
    passthrough_forget(rows);
    dt__names_free(rows->keep.items, rows->keep.count);
    dt_free(rows->keep_columns);
    dt_free(rows);
}

/* ---- reading -------------------------------------------------------------------------------- */

/* Returns true if a record is blank. A CSV record with a separator is a row, not blank, even if all
 * of its values are missing. */
static bool record_is_blank(const struct dt_rows *rows, char *record, size_t length)
{
    const char separator = rows->parser.header ? rows->header.separator : '\t';
    if (rows->grammar == &dt__csv_grammar && memchr(record, separator, length)) return false;
    if (text_is_blank(record, length)) return true;
    return rows->grammar && rows->grammar->is_empty && rows->grammar->is_empty(record, length);
}

/* Reads the next record that is neither blank nor a header. If the stream cannot be cut into
 * records, fails, and the reading ends. */
static dt_status rows_next_row(struct dt_rows *rows, uint64_t *out_line, bool *out_end)
{
    const bool quotes = rows->grammar && rows->grammar->quotes;
    char *record = NULL;
    size_t length = 0;
    passthrough_forget(rows);
    rows->row.rows = 0;
    if (rows->instances.at) return json_next_instance(rows);
    for (bool header = true; header;) {
        dt_status status = DT_OK;
        record = NULL;
        do
            if (!rows->ended) status = dt__lines_next(&rows->lines, quotes, &record, &length);
        while (!status && record && record_is_blank(rows, record, length));
        rows->ended |= status || !record;
        *out_line = status ? rows->lines.next_line : rows->lines.line;
        DT_TRY(status);
        *out_end = !record;
        header = false;
        if (record && rows->grammar == &dt__csv_grammar && !rows->parser.header) {
            status = csv_begin(rows, record, length);
            header = !status && rows->header.names;
            /* the record was read before its separator was known */
            if (rows->lines.commas) dt__lines_commas(&rows->lines, record, length);
        }
        rows->ended |= status == DT_EMISMATCH;
        DT_TRY(status);
    }
    if (!record) {
        dt__columns_report_unknown(&rows->columns, rows->lines.name, rows->nread);
        return DT_OK;
    }
    rows->nread++;
    if (!rows->grammar) return json_parse(rows, record, length);
    if (rows->grammar == &dt__csv_grammar) DT_TRY(csv_keep(rows, length));
    const dt_status status = rows->grammar->parse(&rows->parser, record, length);
    if (status == DT_EFORMAT && rows->guessed && dt__libsvm_line(record, length) == DT__LIBSVM_ROW)
        return dt_fail(status, "%s (rows of LIBSVM: data.format=libsvm)", dt_error_text());
    DT_TRY(status);
    if (rows->parser.widest > rows->parser.features && !rows->warned_beyond) {
        dt__warn("%s:%" PRIu64 ": features beyond %u, here %" PRIu64 ", are ignored",
                 rows->lines.name, rows->lines.line, rows->parser.features, rows->parser.widest);
        rows->warned_beyond = true;
    }
    return rows->grammar->row(&rows->columns, rows->parser.words, rows->parser.count, &rows->layout,
                              &rows->row);
}

dt_status dt__rows_next_sparse(struct dt_rows *rows, float *x, uint32_t *index, float *value,
                               uint64_t *out_line, bool *out_end)
{
    *out_end = false;
    *out_line = rows->lines.line;
    DT_TRY(rows_next_row(rows, out_line, out_end));
    if (!*out_end) dt__row_normalize(rows->schema, &rows->row, x, index, value);
    return DT_OK;
}

dt_status dt__rows_next(struct dt_rows *rows, float *x, uint64_t *out_line, bool *out_end)
{
    return dt__rows_next_sparse(rows, x, NULL, NULL, out_line, out_end);
}

bool dt__rows_ready(const struct dt_rows *rows)
{
    return rows->instances.at || rows->ended || dt__lines_ready(&rows->lines);
}
