/* Rows of CSV.
 * Source: RFC 4180, section 2. */
#include "data/csv.h"

#include <string.h>

#include "data/number.h"
#include "data/source.h"

/* Undoes the quotes of the cell that begins at `text` with one; returns the place behind the
 * closing quote. The record is known to have an even number of quotes. */
static char *unquote(char *text, char *end, struct dt__cell *out)
{
    char *to = text + 1, *from = text + 1;
    out->text = to;
    while (from < end && (*from != '"' || (from + 1 < end && from[1] == '"'))) {
        from += *from == '"';
        *to++ = *from++;
    }
    out->length = (size_t)(to - out->text);
    return from < end ? from + 1 : end;
}

dt_status dt__csv_cell(char **text, char *end, struct dt__cell *out)
{
    char *cell = *text, *stop = cell;
    if (cell < end && *cell == '"') {
        stop = unquote(cell, end, out);
        if (stop < end && *stop != ',') return dt_fail(DT_EFORMAT, "text behind a closing quote");
    } else {
        char *comma = cell < end ? memchr(cell, ',', (size_t)(end - cell)) : NULL;
        stop = comma ? comma : end;
        *out = (struct dt__cell){cell, (size_t)(stop - cell)};
    }
    *text = stop < end ? stop + 1 : NULL;
    return DT_OK;
}

static dt_status fail_at(const struct dt__columns *columns, size_t column)
{
    int32_t role = columns->roles[column];
    if (role >= 0 && columns->names)
        return dt_fail_prefix(DT_EFORMAT, "column %zu (%s): ", column, columns->names[role]);
    return dt_fail_prefix(DT_EFORMAT, "column %zu: ", column);
}

/* A plain number that ends its cell: the common case. */
static bool take_number(char **text, char *end, float *out)
{
    double value;
    const char *p = *text;
    if (!dt__number_scan(&p, end, &value) || (p < end && *p != ',')) return false;
    *out = (float)value;
    *text = p < end ? *text + (p - *text) + 1 : NULL;
    return true;
}

static dt_status take_cell(char **text, char *end, int32_t role, float *x, struct dt__cell *label)
{
    struct dt__cell cell;
    if (role >= 0 && take_number(text, end, &x[role])) return DT_OK;
    DT_TRY(dt__csv_cell(text, end, &cell));
    if (role >= 0) return dt__number_read(cell.text, cell.length, &x[role]);
    if (role == DT__ROLE_LABEL && label) *label = cell;
    return DT_OK;
}

/* A row that lacks a cell often fails first at a cell that has slid to another column. */
static dt_status fail_row(const struct dt__columns *columns, size_t column, char *text, char *end)
{
    size_t cells = column + 1;
    struct dt__cell cell;
    fail_at(columns, column);
    char message[DT_ERROR_MAX];
    snprintf(message, sizeof message, "%s", dt_error_text());
    while (text && !dt__csv_cell(&text, end, &cell))
        cells++;
    if (!text && cells != columns->count)
        return dt_fail(DT_EFORMAT, "%zu columns, expected %zu", cells, columns->count);
    return dt_fail(DT_EFORMAT, "%s", message);
}

dt_status dt__csv_row(const struct dt__columns *columns, char *text, size_t length, float *x,
                      struct dt__cell *label)
{
    char *end = text + length;
    for (size_t column = 0; column < columns->count; column++) {
        if (!text) return dt_fail(DT_EFORMAT, "%zu columns, expected %zu", column, columns->count);
        if (take_cell(&text, end, columns->roles[column], x, label))
            return fail_row(columns, column, text, end);
    }
    if (text) return dt_fail(DT_EFORMAT, "more than %zu columns", columns->count);
    return DT_OK;
}
