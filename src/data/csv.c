/* CSV: cells, what they say by their columns, rows and files. Separator and roles of columns:
 * header.c.
 * Source: RFC 4180, section 2; other separators, runs of blanks, byte order marks, blank lines and
 * blanks in front of a quote are taken as well. */
#include "data/csv.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/input.h"
#include "data/libsvm.h"
#include "data/survey.h"
#include "data/text.h"

/* ---- cells ---------------------------------------------------------------------------------- */

/* Whether a character ends a cell. The separator ' ' is a run of blanks and tabs. */
static bool is_separator(char c, char separator)
{
    return c == separator || (c == '\t' && separator == ' ');
}

static char *separator_find(char *cell, char *end, char separator)
{
    char *p = cell < end && separator != ' ' ? memchr(cell, separator, (size_t)(end - cell)) : NULL;
    if (separator != ' ') return p ? p : end;
    for (p = cell; p < end && !is_separator(*p, separator);)
        p++;
    return p;
}

/* Returns the cell after the separator at p, or NULL at the end of the record. */
static char *separator_pass(char *p, char *end, char separator)
{
    if (separator != ' ') return p < end ? p + 1 : NULL;
    while (p < end && is_separator(*p, separator))
        p++;
    return p < end ? p : NULL;
}

dt_status dt__csv_cell(char **text, char *end, char separator, struct dt__cell *out)
{
    char *cell = *text, *stop = cell, *quote = cell;
    const bool runs = separator == ' ';
    while (quote < end && (*quote == ' ' || *quote == '\t') && (runs || *quote != separator))
        quote++;
    if (runs) cell = quote;             /* a run at the start of the record has no cell before it */
    if (quote < end && *quote == '"') { /* a record is known to have an even number of quotes */
        char *to = quote + 1, *from = quote + 1;
        while (from < end && (*from != '"' || (from + 1 < end && from[1] == '"'))) {
            from += *from == '"';
            *to++ = *from++;
        }
        *out = (struct dt__cell){quote + 1, (size_t)(to - quote - 1)};
        stop = from < end ? from + 1 : end;
        if (stop < end && !is_separator(*stop, separator))
            return dt_fail(DT_EFORMAT, "text behind a closing quote");
    } else {
        stop = separator_find(cell, end, separator);
        *out = (struct dt__cell){cell, (size_t)(stop - cell)};
    }
    *text = separator_pass(stop, end, separator);
    return DT_OK;
}

dt_status dt__csv_split(const char *record, size_t length, char separator, struct dt__names *out)
{
    char *copy, *text;
    struct dt__cell cell;
    dt_status status = DT_OK;
    DT_TRY(dt__alloc(length + 1, 1, "row", &copy));
    memcpy(copy, record, length);
    for (text = copy; text;) {
        DT_GUARD(dt__csv_cell(&text, copy + length, separator, &cell));
        const char *name = cell.text;
        dt__text_trim(&name, &cell.length);
        DT_GUARD(dt__names_add(out, name, cell.length));
    }
done:
    dt_free(copy);
    return status;
}

/* ---- what a cell says ----------------------------------------------------------------------- */

/* The column's first value says what it is. */
static dt_status column_open(struct dt__columns *columns, struct dt__column *column,
                             const char *text, size_t length)
{
    uint32_t number;
    column->kind = DT_COLUMN_NUMBER;
    if (dt__text_is_number(text, length)) return DT_OK;
    const enum dt__text_kind kind = dt__text_kind(text, length);
    if (kind == DT__TEXT_DATE && columns->dates) column->kind = DT_COLUMN_DATE;
    if (column->kind == DT_COLUMN_DATE || !columns->texts) return DT_OK;
    if (kind == DT__TEXT_DATE)
        return dt_fail(DT_EFORMAT,
                       "'%.*s' is a date: leave the column out with data.ignore, or make numbers "
                       "of it with data.dates=auto",
                       dt__shown(length), text);
    if (kind) return DT_OK; /* a number that is refused */
    column->kind = DT_COLUMN_CATEGORY;
    for (uint64_t i = 0; i < column->missing && !columns->hash_bits; i++)
        DT_TRY(dt__dict_add(&column->dict, "", 0, &number));
    return DT_OK;
}

static dt_status missing_fail(bool learning, const char *text, size_t length)
{
    return dt_fail(DT_EFORMAT, "%s%.*s%s%s", length ? "'" : "a value is missing", dt__shown(length),
                   text, length ? "' is a missing value" : "",
                   learning ? "; data.missing=mean takes the column's mean (for texts, a category "
                              "for gaps)"
                            : ", and the model was trained with data.missing=error: "
                              "data.missing=mean or flag in training takes it");
}

/* A column of names may begin with numbers. */
static dt_status number_fail(const struct dt__columns *columns, const struct dt__column *column,
                             const char *text, size_t length, dt_status status)
{
    char place[DT__PLACE_SIZE];
    double number;
    if (!columns->learning || !columns->texts || !column->name ||
        dt__number_parse(text, length, &number) == DT__NUMBER_NOT_FINITE)
        return status;
    dt__column_listed(column, place);
    return dt_fail(status, "%s. Or, if the column holds names and no amounts: data.categories=%s",
                   dt_error_text(), place);
}

dt_status dt__cell_word(struct dt__columns *columns, size_t index, const char *text, size_t length,
                        uint32_t *out)
{
    struct dt__column *column = &columns->items[index];
    uint32_t known; /* a text of training, whatever it says */
    float value;
    dt_status status = DT_OK;
    const bool missing = dt__text_is_missing(text, length) &&
                         (columns->learning || column->kind != DT_COLUMN_CATEGORY || !length ||
                          !dt__dict_find(&column->dict, text, length, &known));
    if (columns->learning) column->falls |= column->kind != DT__COLUMN_OPEN;
    if (missing && columns->missing == DT_MISSING_ERROR)
        return missing_fail(columns->learning, text, length);
    if (column->kind == DT__COLUMN_OPEN && !missing)
        DT_TRY(column_open(columns, column, text, length));
    if (column->kind == DT_COLUMN_CATEGORY) {
        if (length && memchr(text, 0, length))
            return dt_fail(DT_EFORMAT, "a byte of zero in a text");
        if (columns->learning && !columns->hash_bits) {
            dt__text_trim(&text, &length);
            DT_TRY(dt__dict_add(&column->dict, text, missing ? 0 : length, out));
        } else if (!missing) {
            *out = dt__column_code(columns, index, text, length);
        }
    } else if (missing) {
        if (columns->learning) column->missing++;
    } else if (column->kind == DT_COLUMN_DATE) {
        status = dt__dates_read(&column->dates, columns->learning, text, length, out);
    } else if (!(status = dt__number_read(text, length, &value))) {
        memcpy(out, &value, sizeof value);
    }
    if (missing) *out = DT__MISSING;
    return status ? number_fail(columns, column, text, length, status) : DT_OK;
}

/* ---- rows ----------------------------------------------------------------------------------- */

/* Takes the next cell into the row. A plain number that ends its cell is the common case. */
static dt_status cell_take(struct dt__parser *parser, char **text, char *end, int32_t role)
{
    struct dt__columns *columns = parser->columns;
    const char separator = parser->header->separator;
    struct dt__cell cell;
    const char *p = *text;
    double value;
    struct dt__column *column = role >= 0 ? &columns->items[role] : NULL;
    if (column && column->kind == DT_COLUMN_NUMBER && dt__number_scan(&p, end, &value) &&
        (p == end || is_separator(*p, separator))) {
        const float single = (float)value;
        if (columns->learning) {
            column->falls |= !(value > column->last) || value != rint(value);
            column->last = value;
        }
        memcpy(&parser->words[role], &single, sizeof single);
        *text = separator_pass(*text + (p - *text), end, separator);
        return DT_OK;
    }
    DT_TRY(dt__csv_cell(text, end, separator, &cell));
    if (column) {
        DT_TRY(dt__cell_word(columns, (size_t)role, cell.text, cell.length, &parser->words[role]));
        column->unknown += column->kind == DT_COLUMN_CATEGORY && !columns->learning &&
                           !columns->hash_bits && parser->words[role] == column->dict.count;
        return DT_OK;
    }
    if (role == DT__ROLE_LABEL) parser->label = cell;
    if (role == DT__ROLE_WEIGHT) parser->weight = cell;
    const size_t further = role < DT__ROLE_LABEL ? (size_t)(DT__ROLE_LABEL - role) : 0;
    if (!further || further > parser->more) return DT_OK;
    float target;
    DT_TRY(dt__target_read(parser->of, &cell, &target));
    memcpy(&parser->words[columns->count + further - 1], &target, sizeof target);
    return DT_OK;
}

/* Why a row may have another number of cells than the first one. */
static const char *cells_hint(const struct dt__parser *parser)
{
    if (parser->header->separator == '\t')
        return ": data.separator=space takes a run of tabs or blanks as one separator";
    const bool first = parser->columns->learning && !parser->columns->rows;
    return first ? ": is line 1 a title, or without the name of R's row names?" : "";
}

/* A row that lacks a cell often fails first at a cell that has slid to another column. */
static dt_status row_fail(const struct dt__parser *parser, size_t column, char *text, char *end)
{
    const struct dt__header *header = parser->header;
    const int32_t role = header->roles[column];
    const char *name = role >= 0 ? parser->columns->items[role].name : NULL;
    char message[DT_ERROR_MAX];
    size_t cells = column + 1;
    struct dt__cell cell;
    snprintf(message, sizeof message, "%s", dt_error_text());
    while (text && !dt__csv_cell(&text, end, header->separator, &cell))
        cells++;
    if (!text && cells != header->cells.count)
        return dt_fail(DT_EFORMAT, "%zu columns, expected %zu%s", cells, header->cells.count,
                       cells_hint(parser));
    if (name && !*name)
        return dt_fail(DT_EFORMAT,
                       "column %zu, which has no name: %s; data.ignore=%zu leaves it out", column,
                       message, column);
    if (name) return dt_fail(DT_EFORMAT, "column '%s': %s", name, message);
    return dt_fail(DT_EFORMAT, "column %zu: %s", column, message);
}

static dt_status csv_parse(struct dt__parser *parser, char *record, size_t length)
{
    struct dt__columns *columns = parser->columns;
    const int32_t *roles = parser->header->roles;
    const size_t count = parser->header->cells.count;
    char *text = record, *end = record + length;
    while (parser->count < columns->count + parser->more)
        DT_TRY(dt__parser_add(parser, 0));
    for (size_t column = 0; column < count; column++) {
        if (!text)
            return dt_fail(DT_EFORMAT, "%zu columns, expected %zu%s", column, count,
                           cells_hint(parser));
        const dt_status status = cell_take(parser, &text, end, roles[column]);
        if (status == DT_EFORMAT) return row_fail(parser, column, text, end);
        DT_TRY(status);
    }
    if (text) {
        const char *why = text == end ? ": the row ends in a separator, the first one does not"
                          : memchr(record, '\n', length)
                              ? ": a quote joins it to the lines behind it; within a "
                                "text a quote is written twice"
                              : cells_hint(parser);
        size_t cells = count;
        for (struct dt__cell cell; text; cells++)
            DT_TRY(dt__csv_cell(&text, end, parser->header->separator, &cell));
        return dt_fail(DT_EFORMAT, "%zu columns, expected %zu%s", cells, count, why);
    }
    columns->rows += columns->learning;
    parser->entries = columns->entries;
    for (size_t c = 0; c < columns->count && !parser->floats; c++)
        parser->floats = columns->items[c].kind == DT_COLUMN_DATE ||
                         (columns->items[c].kind != DT_COLUMN_CATEGORY &&
                          columns->items[c].kind != DT__COLUMN_OPEN && /* gaps alone so far */
                          !dt__floats_are_bytes((const float *)&parser->words[c], 1));
    return DT_OK;
}

dt_status dt__table_row(const struct dt__columns *columns, const uint32_t *words, size_t count,
                        const struct dt__layout *layout, struct dt__block *out)
{
    (void)count; /* further targets stand behind the columns */
    unsigned char *const x = dt__block_add_zeros(layout, out);
    const struct dt__column *const items = columns->items;
    for (size_t c = 0, n = columns->count; c < n; c++) { /* once: x may be anything */
        const struct dt__column *column = items ? &items[c] : NULL;
        const size_t feature = column ? (size_t)column->first : c;
        const bool missing = column && words[c] == DT__MISSING;
        float value;
        memcpy(&value, &words[c], sizeof value);
        if (missing) value = column->fill;
        if (missing && column->flag) DT_TRY(dt__block_put(layout, out, x, (size_t)column->flag, 1));
        if (column && column->kind == DT_COLUMN_CATEGORY) {
            const uint32_t code = dt__column_word_code(column, words[c]);
            DT_TRY(dt__block_put(layout, out, x, feature + code, 1));
        } else if (!column || column->kind != DT_COLUMN_DATE) {
            DT_TRY(dt__block_put(layout, out, x, feature, value));
        } else {
            float *const numbers = (float *)(void *)x + feature;
            if (missing)
                dt__dates_put_mean(&column->dates, (double)value, numbers);
            else
                dt__dates_put(&column->dates, words[c], numbers);
        }
    }
    return DT_OK;
}

const struct dt__grammar dt__csv_grammar = {true, NULL, csv_parse, dt__table_row};

/* ---- files ---------------------------------------------------------------------------------- */

static dt_status csv_survey(struct dt__survey *survey, struct dt__file *file)
{
    const struct dt_config *config = survey->config;
    struct dt__lines lines;
    struct dt__parser parser = {.columns = &survey->source->columns, .of = survey->of};
    struct dt__header header = {0};
    char *record;
    size_t length;
    dt_status status;
    DT_TRY(dt__lines_open(&lines, file->path));
    dt__lines_decimal(&lines, config);
    do
        DT_GUARD(dt__lines_next(&lines, true, &record, &length));
    while (record && !length);
    if (!record) DT_GUARD(dt_fail(DT_EFORMAT, "%s: the file has no rows", file->path));
    if (dt__path_is_pipe(file->path) &&
        dt__libsvm_is(lines.data + lines.start, lines.end - lines.start))
        DT_GUARD(dt_fail(DT_EFORMAT, "%s: rows of LIBSVM come from a pipe with data.format=libsvm",
                         file->path));
    status = dt__header_parse(&header, config, &lines, record, length, true);
    if (!status) status = dt__header_survey(&header, survey, &lines);
    status = dt__header_comment(&header, record, status);
    if (status) DT_GUARD(dt_fail_prefix(status, "%s:%" PRIu64 ": ", file->path, lines.line));
    if (config->data.header == DT_HEADER_AUTO && !survey->known)
        DT_GUARD(dt__header_check(&header, &lines));
    dt__lines_release(&lines, true);
    for (length = 0; header.names && !length;)
        DT_GUARD(dt__lines_next(&lines, true, &record, &length));
    parser.header = &header;
    parser.more = header.labels ? header.labels - 1 : 0;
    DT_GUARD(dt__text_survey(survey, file, &lines, &dt__csv_grammar, &parser));
    if (!file->rows && !header.names)
        status = dt_fail(DT_EFORMAT, "%s: the file has no rows", file->path);
done:
    dt__header_free(&header);
    dt__lines_close(&lines);
    dt_free(parser.words);
    return status;
}

const struct dt__format dt__format_csv = {.name = "CSV",
                                          .sparsity = DT__CATEGORIES,
                                          .grammar = &dt__csv_grammar,
                                          .survey = csv_survey,
                                          .open = dt__typed_reader_open,
                                          .read = dt__typed_reader_read,
                                          .close = dt__typed_reader_close};
