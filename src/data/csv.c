/* CSV: cells and rows, and how the columns of several files go together. Separator and roles of
 * one file: header.c.
 * Source: RFC 4180, section 2; other separators, byte order marks, blank lines and blanks in front
 * of a quote are taken as well. */
#include "data/csv.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "data/input.h"
#include "data/libsvm.h"
#include "data/reader.h"
#include "data/text.h"

/* ---- cells and rows ------------------------------------------------------------------------- */

dt_status dt__csv_cell(char **text, char *end, char separator, struct dt__cell *out)
{
    char *cell = *text, *stop = cell, *quote = cell;
    while (quote < end && (*quote == ' ' || *quote == '\t') && *quote != separator)
        quote++;
    if (quote < end && *quote == '"') { /* a record is known to have an even number of quotes */
        char *to = quote + 1, *from = quote + 1;
        while (from < end && (*from != '"' || (from + 1 < end && from[1] == '"'))) {
            from += *from == '"';
            *to++ = *from++;
        }
        *out = (struct dt__cell){quote + 1, (size_t)(to - quote - 1)};
        stop = from < end ? from + 1 : end;
        if (stop < end && *stop != separator)
            return dt_fail(DT_EFORMAT, "text behind a closing quote");
    } else {
        char *next = cell < end ? memchr(cell, separator, (size_t)(end - cell)) : NULL;
        stop = next ? next : end;
        *out = (struct dt__cell){cell, (size_t)(stop - cell)};
    }
    *text = stop < end ? stop + 1 : NULL;
    return DT_OK;
}

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
        (p == end || *p == separator)) {
        const float single = (float)value;
        if (columns->learning) dt__column_note(column, value);
        memcpy(&parser->words[role], &single, sizeof single);
        *text = p < end ? *text + (p - *text) + 1 : NULL;
        return DT_OK;
    }
    DT_TRY(dt__csv_cell(text, end, separator, &cell));
    if (column) {
        DT_TRY(
            dt__columns_cell(columns, (size_t)role, cell.text, cell.length, &parser->words[role]));
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
        return dt_fail(DT_EFORMAT, "%zu columns, expected %zu", cells, header->cells.count);
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
        if (!text) return dt_fail(DT_EFORMAT, "%zu columns, expected %zu", column, count);
        const dt_status status = cell_take(parser, &text, end, roles[column]);
        if (status == DT_EFORMAT) return row_fail(parser, column, text, end);
        DT_TRY(status);
    }
    if (text) {
        const char *why = text == end ? ": the row ends in a separator, the first one does not"
                          : memchr(record, '\n', length)
                              ? ": a quote joins it to the lines behind it; within a "
                                "text a quote is written twice"
                          : columns->learning && !columns->rows ? ": is line 1 a title, or without "
                                                                  "the name of R's row names?"
                                                                : "";
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

static dt_status csv_row(const struct dt__columns *columns, const uint32_t *words, size_t count,
                         struct dt__row *row)
{
    (void)count;
    DT_TRY(dt__columns_begin(columns, row));
    for (size_t c = 0; c < columns->count; c++)
        dt__columns_put_word(columns, c, words[c], row);
    return DT_OK;
}

static bool csv_is_empty(char *record, size_t length)
{
    (void)record;
    return !length;
}

const struct dt__grammar dt__csv_grammar = {true, csv_is_empty, csv_parse, csv_row};

/* ---- columns of several files --------------------------------------------------------------- */

/* The first file of the training data says what columns there are. */
static dt_status columns_make(struct dt__survey *survey, const struct dt__header *header)
{
    const struct dt_config *config = survey->config;
    struct dt__columns *columns = &survey->source->columns;
    bool *insisted;
    dt_status status = DT_OK;
    DT_TRY(dt__survey_features(survey, header->features));
    DT_TRY(dt__columns_init(columns, config, header->features));
    if (header->names && (status = dt__header_distinct(header)))
        return dt_fail(status, "%s: rename one; data.ignore leaves columns out by their numbers",
                       dt_error_text());
    DT_TRY(dt_alloc(header->cells.count, sizeof *insisted, "columns", &insisted));
    DT_GUARD(dt__header_mark_categories(header, config, true, insisted));
    for (size_t i = 0; i < header->cells.count; i++) {
        if (header->roles[i] < 0) continue;
        struct dt__column *column = &columns->items[header->roles[i]];
        column->place = i;
        column->insisted = insisted[i];
        if (insisted[i]) column->kind = DT_COLUMN_CATEGORY;
        if (header->names) DT_GUARD(dt_strdup(header->cells.items[i], &column->name));
    }
done:
    dt_free(insisted);
    return status;
}

/* The first header says what weight and labels are called, those in their order. */
static dt_status names_note(struct dt__survey *survey, const struct dt__header *header)
{
    struct dt_text labels = {0};
    dt_status status = DT_OK;
    for (size_t i = 0; i < header->nwants && header->names; i++) {
        const struct dt__want *want = &header->wants[i];
        const char *name = header->cells.items[want->column];
        if (want->role == DT__ROLE_WEIGHT && !survey->weight_column)
            DT_GUARD(dt_strdup(name, &survey->weight_column));
        if (want->role <= DT__ROLE_LABEL && !survey->label_column)
            DT_GUARD(dt_text_add(&labels, "%s%s", labels.length ? "," : "", name));
    }
    if (labels.data) survey->label_column = labels.data;
    return DT_OK;
done:
    dt_text_free(&labels);
    return status;
}

enum { MOST_NAMED = 8 };

/* Names the columns, once, that the data before has not and that no key lists. */
static dt_status extra_tell(struct dt__survey *survey, const char *path,
                            const struct dt__header *header)
{
    const struct dt_config *config = survey->config;
    const struct dt__names *cells = &header->cells;
    struct dt_text names = {0};
    size_t extra = 0;
    bool *listed;
    dt_status status;
    if (survey->said_extra) return DT_OK;
    DT_TRY(dt_alloc(cells->count, sizeof *listed, "columns", &listed));
    DT_GUARD(dt__header_mark(header, "data.ignore", config->data.ignore, false, listed));
    DT_GUARD(dt__header_mark(header, "data.weight", config->data.weight, false, listed));
    for (size_t i = 0; i < cells->count; i++) {
        if (header->roles[i] != DT__ROLE_IGNORE || listed[i] || extra++ >= MOST_NAMED) continue;
        DT_GUARD(dt_text_add(&names, "%s'%s'", extra > 1 ? ", " : "", cells->items[i]));
    }
    if (extra)
        dt_info("%s: columns that %s are ignored: %s%s", path,
                survey->known ? "training did not have" : "the files before do not have",
                names.data, extra > MOST_NAMED ? " and more" : "");
    survey->said_extra = extra > 0;
done:
    dt_free(listed);
    dt_text_free(&names);
    return status;
}

/* Roles by the names of the files before, or of the model, if this file has them; else by the
 * configuration. */
static dt_status columns_find(struct dt__survey *survey, const struct dt__lines *lines,
                              struct dt__header *header)
{
    const struct dt_config *config = survey->config;
    struct dt_source *source = survey->source;
    struct dt__columns *columns = &source->columns;
    const char *label = survey->known ? survey->known->label_column : survey->label_column;
    if (survey->known && !columns->count) DT_TRY(dt__columns_of_schema(columns, survey->known));
    if (!survey->known && source->schema.columns)
        return dt_fail(DT_EMISMATCH, "CSV cannot stand beside shards of a table");
    if (!columns->count && source->schema.feature_names) { /* by a file of another format */
        DT_TRY(dt__columns_init(columns, config, (size_t)survey->features));
        for (size_t c = 0; c < columns->count; c++)
            DT_TRY(dt_strdup(source->schema.feature_names[c], &columns->items[c].name));
    }
    if (columns->count && columns->items[0].name && config->data.header != DT_HEADER_NO) {
        if (survey->training)
            DT_TRY(dt__header_want(header, "data.weight", config->data.weight,
                                   survey->weight_column, false, DT__ROLE_WEIGHT));
        DT_TRY(dt__header_want(header, "data.label", config->data.label, label, survey->targets > 1,
                               DT__ROLE_LABEL));
        DT_TRY(dt__header_match(header, columns,
                                survey->known ? "the training data" : source->files[0].path,
                                config->data.header == DT_HEADER_YES));
        if (header->names) DT_TRY(extra_tell(survey, lines->name, header));
        if (header->names) return names_note(survey, header);
    }
    DT_TRY(dt__header_decide(header, config, lines));
    if (!columns->count) {
        DT_TRY(columns_make(survey, header));
        return names_note(survey, header);
    }
    if (header->features == columns->count) return DT_OK;
    return dt_fail(DT_EMISMATCH, "%zu features, %s %zu", header->features,
                   survey->known ? "the model has" : "the files before have", columns->count);
}

/* ---- files ---------------------------------------------------------------------------------- */

/* What column i's cell of the first row stands over, where that is strange: in a row of names over
 * what the name is itself; in one that has numbers, and so is none of names, a text over a number.
 * The row may be either. Else NULL. */
static const char *strange_over(const struct dt__header *first, size_t i, const char *below)
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

/* The lines stand behind the first row. */
static dt_status first_row_check(const struct dt__header *first, struct dt__lines *lines)
{
    struct dt__names second = {0};
    const uint64_t line = lines->line;
    char *record;
    size_t length;
    do
        DT_TRY(dt__lines_next(lines, true, &record, &length));
    while (record && !length);
    dt_status status = DT_OK;
    const bool whole = record && !dt__csv_split(record, length, first->separator, &second) &&
                       second.count == first->cells.count; /* else it is told of later */
    for (size_t i = 0; whole && !status && i < first->cells.count; i++) {
        const char *below = second.items[i], *over = strange_over(first, i, below);
        if (first->roles[i] != DT__ROLE_IGNORE && over)
            status = dt_fail(
                DT_EFORMAT,
                "column %zu: '%.40s' stands over the %s '%.40s'%s: data.header=yes or no says what "
                "the first row is",
                i, first->cells.items[i], over, below,
                first->names ? "" : ", but other cells of the first row are numbers");
    }
    dt__names_free(second.items, second.count);
    return status ? dt_fail_prefix(status, "%s:%" PRIu64 ": ", lines->name, line) : DT_OK;
}

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
    if (dt__path_is_pipe(file->path) && dt__libsvm_is_row(record, length))
        DT_GUARD(dt_fail(DT_EFORMAT, "%s: rows of LIBSVM come from a pipe with data.format=libsvm",
                         file->path));
    status = dt__header_parse(&header, config, &lines, record, length);
    if (!status) status = columns_find(survey, &lines, &header);
    if (status) DT_GUARD(dt_fail_prefix(status, "%s:%" PRIu64 ": ", file->path, lines.line));
    if (config->data.header == DT_HEADER_AUTO && !survey->known)
        DT_GUARD(first_row_check(&header, &lines));
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
