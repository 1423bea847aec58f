/* Rows to predict, from a stream: CSV, JSON lines or LIBSVM. */
#include <ctype.h>
#include <jansson.h>
#include <string.h>

#include "data/csv.h"
#include "data/gather.h"
#include "data/json_row.h"
#include "data/libsvm.h"
#include "data/number.h"
#include "data/source.h"

/* Parses one record into rows->raw. DT_EFORMAT: the record is no row. */
typedef dt_status parse_fn(struct dt_rows *rows, char *record, size_t length);

struct dt_rows {
    const struct dt_config *config; /* or NULL */
    struct dt__lines lines;
    parse_fn *parse;
    struct dt__gather gather;
    size_t features;
    float *raw;     /* (features) */
    int32_t *roles; /* CSV: (columns); NULL: the first row has not been seen yet */
    size_t columns;
    char *const *names; /* of the features, or NULL; the schema's */
    json_t *instances;  /* JSON: what is left of the last line, from `instance` on */
    size_t instance;
    bool ended;
};

/* ---- CSV ------------------------------------------------------------------------------------ */

/* Columns by the names of the header. False unless every feature has one. */
static bool roles_by_name(const struct dt_rows *rows, const struct dt__names *cells, int32_t *roles)
{
    size_t found = 0;
    for (size_t i = 0; i < cells->count; i++)
        roles[i] = DT__ROLE_IGNORE;
    for (size_t f = 0; rows->names && f < rows->features; f++) {
        size_t i = 0;
        while (i < cells->count && (roles[i] >= 0 || strcmp(rows->names[f], cells->items[i])))
            i++;
        if (i == cells->count) return false;
        roles[i] = (int32_t)f;
        found++;
    }
    return found == rows->features;
}

/* Columns by their places: the features alone, or as the training data had them. */
static dt_status roles_by_place(const struct dt_rows *rows, const struct dt__names *cells,
                                int32_t *roles)
{
    int32_t features = (int32_t)cells->count;
    dt_status status = DT_OK;
    bool alone = cells->count == rows->features;
    for (int32_t i = 0; alone && i < features; i++)
        roles[i] = i;
    if (!alone && rows->config) status = dt__csv_roles(rows->config, cells, true, roles, &features);
    if (!status && (size_t)features == rows->features) return DT_OK;
    return dt_fail(DT_EFORMAT, "%zu columns, the model has %zu features", cells->count,
                   rows->features);
}

static dt_status choose_roles(const struct dt_rows *rows, const struct dt__names *cells,
                              int32_t *roles, bool *header)
{
    *header = roles_by_name(rows, cells, roles);
    if (*header) return DT_OK;
    DT_TRY(roles_by_place(rows, cells, roles));
    *header = dt__csv_is_header(cells, roles);
    return DT_OK;
}

/* The first good row says what the columns are. */
static dt_status begin_csv(struct dt_rows *rows, const char *record, size_t length, bool *header)
{
    struct dt__names cells = {0};
    int32_t *roles = NULL;
    dt_status status = DT_OK;
    DT_GUARD(dt__csv_split(record, length, &cells));
    DT_GUARD(dt_alloc(cells.count, sizeof *roles, "columns", &roles));
    DT_GUARD(choose_roles(rows, &cells, roles, header));
    rows->roles = roles;
    rows->columns = cells.count;
done:
    if (status) dt_free(roles);
    dt__names_free(cells.items, cells.count);
    return status;
}

static dt_status parse_csv(struct dt_rows *rows, char *record, size_t length)
{
    struct dt__columns columns = {rows->roles, rows->columns, rows->names};
    return dt__csv_row(&columns, record, length, rows->raw, NULL);
}

/* ---- LIBSVM --------------------------------------------------------------------------------- */

static dt_status parse_libsvm(struct dt_rows *rows, char *record, size_t length)
{
    struct dt__text_row row = {.x = rows->raw, .capacity = rows->features};
    return dt__libsvm_row(record, length, &row);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static dt_status next_instance(struct dt_rows *rows)
{
    json_t *row = json_array_get(rows->instances, rows->instance);
    dt_status status = dt__json_array(row, rows->features, rows->raw);
    if (status) dt_fail_prefix(status, "instance %zu: ", rows->instance);
    if (++rows->instance == json_array_size(rows->instances)) {
        json_decref(rows->instances);
        rows->instances = NULL;
    }
    return status;
}

static dt_status parse_json(struct dt_rows *rows, char *record, size_t length)
{
    json_t *value;
    if (dt__json_scan(record, length, rows->features, rows->raw)) return DT_OK;
    DT_TRY(dt__json_load(record, length, &value));
    json_t *instances = json_object_get(value, "instances");
    if (json_array_size(instances)) {
        rows->instances = json_incref(instances);
        rows->instance = 0;
        json_decref(value);
        return next_instance(rows);
    }
    dt_status status = dt__json_array(value, rows->features, rows->raw);
    json_decref(value);
    return status;
}

/* ---- the stream ----------------------------------------------------------------------------- */

static bool is_blank(const char *text, size_t length)
{
    size_t i = 0;
    while (i < length && isspace((unsigned char)text[i]))
        i++;
    return i == length;
}

static parse_fn *choose_parse(char *text, size_t length)
{
    while (length && isspace((unsigned char)*text))
        text++, length--;
    if (*text == '[' || *text == '{') return parse_json;
    return dt__libsvm_is_row(text, length) ? parse_libsvm : parse_csv;
}

/* Looks at the first line that is not blank, and goes back to it. */
static dt_status detect(struct dt_rows *rows)
{
    uint64_t offset;
    char *record;
    size_t length;
    do {
        offset = dt__lines_offset(&rows->lines);
        DT_TRY(dt__lines_next(&rows->lines, false, &record, &length));
    } while (record && is_blank(record, length));
    rows->parse = record ? choose_parse(record, length) : parse_json;
    return record ? dt__lines_seek(&rows->lines, offset, rows->lines.line) : DT_OK;
}

dt_status dt_rows_open(FILE *in, const char *name, const struct dt_schema *schema,
                       const struct dt_config *config, struct dt_rows **out)
{
    struct dt_rows *rows;
    struct dt__layout layout = {.features = schema->features};
    size_t features = (size_t)schema->features;
    DT_TRY(dt_alloc(1, sizeof *rows, "rows", &rows));
    *rows =
        (struct dt_rows){.config = config, .features = features, .names = schema->feature_names};
    dt__gather_init(&rows->gather, &layout, schema);
    dt_status status = dt_alloc(features, sizeof *rows->raw, "row", &rows->raw);
    if (!status) status = dt__lines_attach(&rows->lines, in, name);
    if (!status) status = detect(rows);
    if (status)
        dt_rows_close(rows);
    else
        *out = rows;
    return status;
}

void dt_rows_close(struct dt_rows *rows)
{
    if (!rows) return;
    dt__lines_close(&rows->lines);
    json_decref(rows->instances);
    dt_free(rows->raw);
    dt_free(rows->roles);
    dt_free(rows);
}

/* Next record that is not blank. What cannot be cut into records ends the stream. */
static dt_status next_record(struct dt_rows *rows, char **out, size_t *length)
{
    bool quotes = rows->parse == parse_csv;
    *out = NULL;
    if (rows->ended) return DT_OK;
    dt_status status;
    do
        status = dt__lines_next(&rows->lines, quotes, out, length);
    while (!status && *out && is_blank(*out, *length));
    rows->ended = status || !*out;
    return status;
}

static dt_status next_row(struct dt_rows *rows, uint64_t *out_line, bool *out_end)
{
    char *record = NULL;
    size_t length = 0;
    bool header = false;
    if (rows->instances) return next_instance(rows);
    do {
        dt_status status = next_record(rows, &record, &length);
        *out_line = status ? rows->lines.next_line : rows->lines.line;
        if (status) return status;
        *out_end = !record;
        header = false;
        if (record && rows->parse == parse_csv && !rows->roles)
            DT_TRY(begin_csv(rows, record, length, &header));
    } while (header);
    return record ? rows->parse(rows, record, length) : DT_OK;
}

dt_status dt_rows_next(struct dt_rows *rows, float *x, uint64_t *out_line, bool *out_end)
{
    *out_end = false;
    *out_line = rows->lines.line;
    DT_TRY(next_row(rows, out_line, out_end));
    if (!*out_end) dt__gather_floats(&rows->gather, rows->raw, x);
    return DT_OK;
}

bool dt_rows_ready(const struct dt_rows *rows)
{
    return rows->instances || rows->ended || dt__lines_ready(&rows->lines);
}
