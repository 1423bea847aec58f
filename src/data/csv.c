/* CSV: its rows and files. csv_record.c cuts records into cells, csv_header.c interprets the first
 * rows, and values.c converts the cells to values. */
#include "data/csv.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "data/csv_header.h"
#include "data/file_columns.h"
#include "data/format.h"
#include "data/learned.h"
#include "table/values.h"
#include "text/csv_record.h"
#include "text/libsvm_record.h"

/* ---- rows ----------------------------------------------------------------------------------- */

/* Stores the next cell of the record in the row, and moves *text past it. Has a short cut for the
 * common case, a plain number that fills its cell. */
static dt_status cell_take(struct dt__parser *parser, char **text, char *end, int32_t role)
{
    struct dt__columns *columns = parser->columns;
    const char separator = parser->header->separator;
    struct dt__cell cell;
    const char *p = *text;
    double value;
    struct dt__column *column = role >= 0 ? &columns->items[role] : NULL;
    if (column && column->kind == DT_COLUMN_NUMBER && dt__number_scan(&p, end, &value) &&
        (p == end || dt__csv_ends_cell(*p, separator))) {
        const float single = (float)value;
        if (columns->learning) {
            column->falls |= !(value > column->last) || value != rint(value);
            column->last = value;
        }
        memcpy(&parser->words[role], &single, sizeof single);
        *text = dt__csv_pass(*text + (p - *text), end, separator);
        return DT_OK;
    }
    DT_TRY(dt__csv_cell(text, end, separator, &cell));
    return dt__parser_take(parser, role, cell);
}

/* Returns a hint why a row has another number of cells than the first row, to append to the
 * message; "": no hint. */
static const char *cells_hint(const struct dt__parser *parser)
{
    if (parser->header->separator == '\t')
        return ": data.separator=space takes a run of tabs or blanks as one separator";
    const bool first = parser->columns->learning && !parser->columns->rows;
    return first ? ": is line 1 a title, or does it lack a name for R's row names?" : "";
}

/* Sets the message for a row whose cell in `column` cannot be read; `text` is the rest of the row.
 * If the row also has a wrong number of cells, reports that instead: the value is then probably in
 * the wrong column. */
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
    const int32_t *roles = parser->header->roles;
    const size_t count = parser->header->cells.count;
    char *text = record, *end = record + length;
    DT_TRY(dt__parser_begin(parser));
    for (size_t column = 0; column < count; column++) {
        if (!text)
            return dt_fail(DT_EFORMAT, "%zu columns, expected %zu%s", column, count,
                           cells_hint(parser));
        char *peek = text; /* the time as text, which cell_take does not return */
        if (column + 1 == parser->header->time)
            (void)dt__csv_cell(&peek, end, parser->header->separator, &parser->time);
        const dt_status status = cell_take(parser, &text, end, roles[column]);
        if (status == DT_EFORMAT) return row_fail(parser, column, text, end);
        DT_TRY(status);
    }
    if (text) {
        const char *why = text == end ? ": the row ends in a separator, unlike the first row"
                          : memchr(record, '\n', length)
                              ? ": a quote joins it to the lines after it; within a "
                                "text a quote is written twice"
                              : cells_hint(parser);
        size_t cells = count;
        for (struct dt__cell cell; text; cells++)
            DT_TRY(dt__csv_cell(&text, end, parser->header->separator, &cell));
        return dt_fail(DT_EFORMAT, "%zu columns, expected %zu%s", cells, count, why);
    }
    dt__parser_end(parser);
    return DT_OK;
}

static dt_status csv_lacks_label(const struct dt__parser *parser, char *record, size_t length,
                                 bool *out)
{
    const struct dt__header *header = parser->header;
    char *text = record;
    for (size_t i = 0; text && i < header->cells.count; i++) {
        struct dt__cell cell;
        DT_TRY(dt__csv_cell(&text, record + length, header->separator, &cell));
        *out |= header->roles[i] <= DT__ROLE_LABEL && dt__text_is_missing(cell.text, cell.length);
    }
    return DT_OK;
}

static dt_status csv_explain(const struct dt__parser *parser, const char *record, dt_status status)
{
    return dt__header_comment(parser->header, record, status);
}

const struct dt__grammar dt__csv_grammar = {.quotes = true,
                                            .parse = csv_parse,
                                            .row = dt__table_row,
                                            .lacks_label = csv_lacks_label,
                                            .explain = csv_explain};

/* ---- files ---------------------------------------------------------------------------------- */

static dt_status csv_survey(struct dt__survey *survey, struct dt__file *file)
{
    const struct dt_config *config = survey->config;
    struct dt__lines *const lines = &survey->lines;
    struct dt__parser parser = {.columns = &survey->source->columns, .targets = survey->targets};
    struct dt__header header = {0};
    char *record;
    size_t length;
    dt_status status;
    dt__lines_decimal(lines, config->data.decimal == DT_DECIMAL_COMMA, config->data.separator);
    do
        DT_GUARD(dt__lines_next(lines, true, &record, &length));
    while (record && !length);
    if (!record) DT_GUARD(dt_fail(DT_EFORMAT, "%s: the file has no rows", file->path));
    if (dt__path_is_pipe(file->path) &&
        dt__libsvm_is(lines->data + lines->start, lines->end - lines->start))
        DT_GUARD(dt_fail(DT_EFORMAT, "%s: a pipe with rows of LIBSVM; expected data.format=libsvm",
                         file->path));
    status = dt__header_parse(&header, config, lines, record, length, true);
    if (!status) status = dt__header_survey(&header, survey, lines);
    status = dt__header_comment(&header, record, status);
    if (status) DT_GUARD(dt_fail_prefix(status, "%s:%" PRIu64 ": ", file->path, lines->line));
    if (config->data.header == DT_HEADER_AUTO && !survey->known)
        DT_GUARD(dt__header_check(&header, lines));
    dt__lines_release(lines, true);
    for (length = 0; header.names && !length;)
        DT_GUARD(dt__lines_next(lines, true, &record, &length));
    parser.header = &header;
    parser.further_targets = header.labels ? header.labels - 1 : 0;
    DT_GUARD(dt__text_survey(survey, file, lines, &dt__csv_grammar, &parser));
    if (!file->rows && !header.names)
        status = dt_fail(DT_EFORMAT, "%s: the file has no rows", file->path);
done:
    dt__header_free(&header);
    dt_free(parser.words);
    return status;
}

static dt_status csv_open(const struct dt_source *source, const struct dt__file *file, void **out)
{
    return dt__typed_reader_open(source, file, &dt__csv_grammar, out);
}

const struct dt__format dt__format_csv = {.name = "CSV",
                                          .sparsity = DT__CATEGORIES,
                                          .grammar = &dt__csv_grammar,
                                          .survey = csv_survey,
                                          .open = csv_open,
                                          .read = dt__typed_reader_read,
                                          .close = dt__typed_reader_close};
