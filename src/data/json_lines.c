/* JSON lines: one object per line. The members of the first line's object name the columns. A
 * member that is null, or that a line lacks, is a missing value. */
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "data/file_columns.h"
#include "data/format.h"
#include "data/learned.h"
#include "data/text_rows.h"
#include "table/values.h"
#include "text/json_reader.h"

/* ---- rows ----------------------------------------------------------------------------------- */

/* Reads the next value as a cell of the record. Decodes a text with escapes in place; the decoded
 * text is never longer. */
static dt_status cell_read(struct dt__json *json, struct dt__cell *out)
{
    static char none[] = "";
    const char token = dt__json_next(json);
    *out = token == 'n' ? (struct dt__cell){none, 0} : json->token;
    if (token == '[' || token == '{')
        return dt_fail(DT_EFORMAT, "a list or an object; expected a number or a text");
    if (token != '"' || json->token.text != json->scratch->data) return DT_OK;
    out->text = (char *)(uintptr_t)json->at - 1 - out->length;
    memcpy(out->text, json->token.text, out->length);
    return DT_OK;
}

/* Reads the members of an object into the cells of their columns. If a member is missing, its cell
 * has the text NULL. */
static dt_status cells_read(const struct dt__parser *parser, struct dt__json *json)
{
    const struct dt__header *header = parser->header;
    memset(parser->cells, 0, header->cells.count * sizeof *parser->cells);
    if (dt__json_next(json) != '{')
        return dt_fail(DT_EFORMAT, "expected an object a line: {\"NAME\": VALUE, ...}");
    while (dt__json_next(json) == ':') {
        const struct dt__cell name = json->token;
        uint32_t number;
        if (!dt__dict_find(&header->index, name.text, name.length, &number))
            return dt_fail(DT_EFORMAT, "'%.*s' is not a column of the first row",
                           dt__shown(name.length), name.text);
        const size_t column = header->first[number];
        if (parser->cells[column].text)
            return dt_fail(DT_EFORMAT, "'%s' appears twice", header->cells.items[column]);
        const dt_status status = cell_read(json, &parser->cells[column]);
        if (status) return dt_fail_prefix(status, "column '%s': ", header->cells.items[column]);
    }
    return DT_OK;
}

/* Reads a record into cells; a missing member gives an empty cell. A record that is not JSON is
 * reported as such, before any other error. */
static dt_status record_read(const struct dt__parser *parser, char *record, size_t length)
{
    struct dt__json json, whole;
    dt__json_begin(&json, record, length, parser->scratch);
    whole = json;
    DT_TRY(dt__json_finish(&whole));
    DT_TRY(cells_read(parser, &json));
    for (size_t i = 0; i < parser->header->cells.count; i++)
        if (!parser->cells[i].text) parser->cells[i].text = record;
    return DT_OK;
}

static dt_status json_parse(struct dt__parser *parser, char *record, size_t length)
{
    const struct dt__header *header = parser->header;
    DT_TRY(record_read(parser, record, length));
    DT_TRY(dt__parser_begin(parser));
    if (header->time) parser->time = parser->cells[header->time - 1];
    for (size_t i = 0; i < header->cells.count; i++) {
        const dt_status status = dt__parser_take(parser, header->roles[i], parser->cells[i]);
        if (status) return dt_fail_prefix(status, "column '%s': ", header->cells.items[i]);
    }
    dt__parser_end(parser);
    return DT_OK;
}

static dt_status json_lacks_label(const struct dt__parser *parser, char *record, size_t length,
                                  bool *out)
{
    const struct dt__header *header = parser->header;
    DT_TRY(record_read(parser, record, length));
    for (size_t i = 0; i < header->cells.count; i++)
        *out |= header->roles[i] <= DT__ROLE_LABEL &&
                dt__text_is_missing(parser->cells[i].text, parser->cells[i].length);
    return DT_OK;
}

static bool json_is_empty(char *record, size_t length)
{
    return strspn(record, " \t") >= length;
}

static const struct dt__grammar json_grammar = {.is_empty = json_is_empty,
                                                .parse = json_parse,
                                                .row = dt__table_row,
                                                .lacks_label = json_lacks_label};

/* ---- files ---------------------------------------------------------------------------------- */

/* Reads the names of the columns from the first object. Any text may be a name. */
static dt_status names_read(struct dt__header *header, struct dt__survey *survey,
                            const char *record, size_t length, struct dt_text *scratch)
{
    const struct dt_config *const given = survey->config;
    struct dt_config config = *given;
    struct dt__json json, whole;
    dt__json_begin(&json, record, length, scratch);
    whole = json;
    DT_TRY(dt__json_finish(&whole));
    if (dt__json_next(&json) != '{')
        return dt_fail(DT_EFORMAT, "expected an object a line: {\"NAME\": VALUE, ...}");
    while (dt__json_next(&json) == ':') {
        DT_TRY(dt__names_add(&header->cells, json.token.text, json.token.length));
        dt__json_pass(&json, dt__json_next(&json));
    }
    if (!header->cells.count) return dt_fail(DT_EFORMAT, "the object has no members");
    DT_TRY(dt__header_index(header));
    config.data.header = DT_HEADER_YES;
    survey->config = &config;
    const dt_status status = dt__header_survey(header, survey, &survey->lines);
    survey->config = given;
    return status;
}

static dt_status json_survey(struct dt__survey *survey, struct dt__file *file)
{
    struct dt__lines *const lines = &survey->lines;
    struct dt_text scratch = {0};
    struct dt__header header = {0};
    struct dt__parser parser = {.columns = &survey->source->columns,
                                .targets = survey->targets,
                                .header = &header,
                                .scratch = &scratch};
    char *record;
    size_t length;
    dt_status status;
    do
        DT_GUARD(dt__lines_next(lines, false, &record, &length));
    while (record && json_is_empty(record, length));
    if (!record) DT_GUARD(dt_fail(DT_EFORMAT, "%s: the file has no rows", file->path));
    status = names_read(&header, survey, record, length, &scratch);
    if (status) DT_GUARD(dt_fail_prefix(status, "%s:%" PRIu64 ": ", file->path, lines->line));
    dt__lines_release(lines, true);
    parser.further_targets = header.labels ? header.labels - 1 : 0;
    DT_GUARD(dt__alloc(header.cells.count, sizeof *parser.cells, "row", &parser.cells));
    DT_GUARD(dt__text_survey(survey, file, lines, &json_grammar, &parser));
done:
    dt__header_free(&header);
    dt__text_free(&scratch);
    dt_free(parser.cells);
    dt_free(parser.words);
    return status;
}

static dt_status json_open(const struct dt_source *source, const struct dt__file *file, void **out)
{
    return dt__typed_reader_open(source, file, &json_grammar, out);
}

/* Returns true if the file has a suffix of JSON lines, or if the first line is an object. Returns
 * false for the suffix .csv: the CSV reader then reports that the file is JSON. */
static bool json_is(const char *suffix, const unsigned char *head, size_t length)
{
    const unsigned char *end = memchr(head, '\n', length);
    size_t line = end ? (size_t)(end - head) : length;
    if (!strcasecmp(suffix, ".jsonl") || !strcasecmp(suffix, ".ndjson")) return true;
    while (line && (head[line - 1] == '\r' || head[line - 1] == ' '))
        line--;
    return strcasecmp(suffix, ".csv") != 0 && line > 1 && *head == '{' && head[line - 1] == '}';
}

const struct dt__format dt__format_json = {.name = "JSON lines",
                                           .sparsity = DT__CATEGORIES,
                                           .is = json_is,
                                           .grammar = &json_grammar,
                                           .survey = json_survey,
                                           .open = json_open,
                                           .read = dt__typed_reader_read,
                                           .close = dt__typed_reader_close};
