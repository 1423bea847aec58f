/* The first rows of a CSV: finds the separator and the cells of the first row, and checks it
 * against the second row. */
#include "data/csv_header.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "data/learned.h"
#include "text/csv_record.h"

/* ---- cells ---------------------------------------------------------------------------------- */

/* Returns true if a record looks like JSON: an object, a list of rows, a row as a list, or only the
 * opening bracket of one of these. */
static bool record_is_json(const char *record, size_t length)
{
    const char open = length ? *record : 0;
    if (open != '{' && open != '[') return false;
    for (record++, length--; length && (*record == ' ' || *record == '\t'); record++)
        length--;
    if (!length) return true;
    if (open == '{') return *record == '"';
    return *record == '{' || *record == '[' ||
           (record[length - 1] == ']' &&
            (strchr("-\"", *record) || isdigit((unsigned char)*record)));
}

dt_status dt__header_comment(const struct dt__header *header, const char *record, dt_status status)
{
    const char *first = header->cells.count ? header->cells.items[0] : "";
    const bool commented = *record == '#' || *record == '%',
               first_commented = *first == '#' || *first == '%';
    if (!status || (!commented && !first_commented)) return status;
    return dt_fail(
        status,
        "%s; %s begins with '%c': comments are not supported: grep -v '^%c' <FILE >NEW removes "
        "them (if it is a line of names, remove only the '%c')",
        dt_error_text(), commented ? "the line" : "the first row", commented ? *record : *first,
        commented ? *record : *first, commented ? *record : *first);
}

dt_status dt__header_parse(struct dt__header *header, const struct dt_config *config,
                           struct dt__lines *lines, const char *record, size_t length, bool blanks)
{
    const struct dt__names *cells = &header->cells;
    if (length == 5 && !strncasecmp(record, "sep=", 4))
        return dt_fail(DT_EFORMAT, "'sep=' is a line for Excel, not a row: remove it");
    if (memchr(record, 0, length)) return dt_fail(DT_EFORMAT, "a zero byte in the first row");
    if (record_is_json(record, length))
        return dt_fail(DT_EFORMAT, "this is JSON; expected one object a line ({\"a\": 1, "
                                   "\"b\": 2}) and data.format=json "
                                   "(jq -c '.[]' turns a list of objects into lines)");
    DT_TRY(dt__csv_separator(config ? config->data.separator : "auto",
                             config && config->data.decimal == DT_DECIMAL_COMMA, record, length,
                             blanks, &header->separator));
    DT_TRY(dt__csv_split(record, length, header->separator, &header->cells));
    /* until here the separator was unknown, and so which commas are decimal */
    for (size_t i = 0; lines->commas && header->separator == ' ' && i < cells->count; i++)
        dt__lines_commas(lines, cells->items[i], strlen(cells->items[i]));
    /* a single cell does not show the separator */
    if (cells->count > 1) lines->separator = header->separator;
    if (cells->count > 1 && !strncmp(cells->items[1], "qid:", 4))
        return dt_fail(DT_EFORMAT, "LIBSVM rows with qid, which are for ranking: expected label "
                                   "index:value ... alone");
    return dt__header_index(header);
}

/* ---- the second row -------------------------------------------------------------------------- */

/* Compares cell i of the first row with `below`, the cell below it. Returns the kind of `below` if
 * the two cells are suspicious; else NULL. They are, in a row of names, if both are numbers or both
 * are dates; in a row of values, if the cell is a text above a number. */
static const char *suspicious_below(const struct dt__header *first, size_t i, const char *below)
{
    const char *text = first->cells.items[i];
    const size_t size = strlen(text);
    const enum dt__text_kind kind = dt__text_kind(text, size);
    const bool is_number = dt__text_is_number(text, size);
    double value;
    if (first->names && kind == DT__TEXT_DATE && dt__text_kind(below, strlen(below)) == kind)
        return "date";
    if (dt__number_parse(below, strlen(below), &value) != DT__NUMBER_GOOD) return NULL;
    if (first->names) return is_number && first->roles[i] < 0 ? "number" : NULL;
    return is_number || dt__text_is_missing(text, size) ? NULL : "number";
}

dt_status dt__header_check(const struct dt__header *first, struct dt__lines *lines)
{
    struct dt__names second = {0};
    const uint64_t line = lines->line;
    char *record;
    size_t length;
    do
        DT_TRY(dt__lines_next(lines, true, &record, &length));
    while (record && !length);
    dt_status status = DT_OK;
    /* an error in the second row is reported when the row is read */
    const bool whole = record && !dt__csv_split(record, length, first->separator, &second) &&
                       second.count == first->cells.count;
    for (size_t i = 0; whole && !status && i < first->cells.count; i++) {
        const char *below = second.items[i], *over = suspicious_below(first, i, below);
        if (first->roles[i] != DT__ROLE_IGNORE && over)
            status = dt_fail(
                DT_EFORMAT,
                "column %zu: '%.40s' is above the %s '%.40s'%s: set data.header=yes if the first "
                "row has names, else no",
                i, first->cells.items[i], over, below,
                first->names ? "" : ", but other cells of the first row are numbers");
    }
    dt__names_free(second.items, second.count);
    return status ? dt_fail_prefix(status, "%s:%" PRIu64 ": ", lines->name, line) : DT_OK;
}
