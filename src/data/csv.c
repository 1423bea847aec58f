/* CSV files: which column is what, and the rows. */
#include "data/csv.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "data/number.h"
#include "data/reader.h"
#include "data/text.h"

static dt_status parse(const struct dt_source *source, char *record, size_t length,
                       struct dt__text_row *row)
{
    struct dt__columns columns = {source->roles, source->columns, source->schema.feature_names};
    return dt__csv_row(&columns, record, length, row->x, &row->label);
}

static const struct dt__grammar grammar = {true, parse};

/* ---- the first record ----------------------------------------------------------------------- */

dt_status dt__csv_split(const char *record, size_t length, struct dt__names *out)
{
    char *copy, *text;
    struct dt__cell cell;
    dt_status status = DT_OK;
    DT_TRY(dt_alloc(length + 1, 1, "first row", &copy));
    memcpy(copy, record, length);
    for (text = copy; text;) {
        DT_GUARD(dt__csv_cell(&text, copy + length, &cell));
        DT_GUARD(dt__names_add(out, cell.text, cell.length));
    }
done:
    dt_free(copy);
    return status;
}

static bool is_integer(const char *text, long long *out)
{
    char *end;
    *out = strtoll(text, &end, 10);
    return end > text && !*end;
}

/* Index of a column by name, or by number from 0 or, negative, from the end. */
static dt_status find_column(const char *key, const char *text, const struct dt__names *cells,
                             bool header, size_t *out)
{
    long long number, count = (long long)cells->count;
    if (is_integer(text, &number)) {
        if (number < -count || number >= count)
            return dt_fail(DT_EMISMATCH, "%s=%s: there are %lld columns", key, text, count);
        *out = (size_t)(number < 0 ? number + count : number);
        return DT_OK;
    }
    if (!header)
        return dt_fail(DT_EMISMATCH, "%s=%s is a name, but the file has no header", key, text);
    for (size_t i = 0; i < cells->count; i++)
        if (!strcmp(cells->items[i], text)) {
            *out = i;
            return DT_OK;
        }
    return dt_fail(DT_EMISMATCH, "%s: no column is named '%s'", key, text);
}

dt_status dt__csv_roles(const struct dt_config *config, const struct dt__names *cells, bool header,
                        int32_t *roles, int32_t *features)
{
    struct dt__names ignored = {0};
    dt_status status = DT_OK;
    size_t column;
    memset(roles, 0, cells->count * sizeof *roles);
    DT_GUARD(dt__names_split(config->data.ignore, &ignored));
    for (size_t i = 0; i < ignored.count; i++) {
        DT_GUARD(find_column("data.ignore", ignored.items[i], cells, header, &column));
        roles[column] = DT__ROLE_IGNORE;
    }
    DT_GUARD(find_column("data.label", config->data.label, cells, header, &column));
    roles[column] = DT__ROLE_LABEL;
    *features = 0;
    for (size_t i = 0; i < cells->count; i++)
        if (!roles[i]) roles[i] = (*features)++;
    if (!*features) status = dt_fail(DT_EFORMAT, "no column is left for the features");
done:
    dt__names_free(ignored.items, ignored.count);
    return status;
}

/* A first row without a single number among its features names the columns. */
bool dt__csv_is_header(const struct dt__names *cells, const int32_t *roles)
{
    double value;
    for (size_t i = 0; i < cells->count; i++) {
        const char *cell = cells->items[i];
        if (roles[i] >= 0 && dt__number_parse(cell, strlen(cell), &value) != DT__NUMBER_BAD)
            return false;
    }
    return true;
}

/* Whether a key can only be met by a header. */
static dt_status names_a_column(const struct dt_config *config, bool *out)
{
    struct dt__names list = {0};
    long long number;
    dt_status status = dt__names_split(config->data.ignore, &list);
    *out = !is_integer(config->data.label, &number);
    for (size_t i = 0; i < list.count; i++)
        *out |= !is_integer(list.items[i], &number);
    dt__names_free(list.items, list.count);
    return status;
}

static dt_status find_roles(const struct dt_config *config, const struct dt__names *cells,
                            int32_t *roles, int32_t *features, bool *header)
{
    *header = config->data.header == DT_HEADER_YES;
    if (config->data.header == DT_HEADER_AUTO) DT_TRY(names_a_column(config, header));
    DT_TRY(dt__csv_roles(config, cells, *header, roles, features));
    if (config->data.header == DT_HEADER_AUTO) *header = dt__csv_is_header(cells, roles);
    return DT_OK;
}

/* ---- survey --------------------------------------------------------------------------------- */

static dt_status take_names(struct dt__survey *survey, const struct dt__names *cells,
                            const int32_t *roles)
{
    struct dt__names features = {0};
    dt_status status = DT_OK;
    for (size_t i = 0; i < cells->count; i++) {
        const char *cell = cells->items[i];
        if (roles[i] >= 0) DT_GUARD(dt__names_add(&features, cell, strlen(cell)));
        if (roles[i] == DT__ROLE_LABEL && !survey->label_column)
            DT_GUARD(dt_strdup(cell, &survey->label_column));
    }
    DT_GUARD(dt__survey_names(survey, &features));
done:
    dt__names_free(features.items, features.count);
    return status;
}

/* All CSV files of a source have the same columns in the same roles. Takes the roles over. */
static dt_status take_roles(struct dt__survey *survey, int32_t **roles, size_t columns,
                            int32_t features)
{
    struct dt_source *source = survey->source;
    DT_TRY(dt__survey_features(survey, (uint64_t)features));
    if (!source->roles) {
        source->roles = *roles;
        source->columns = columns;
        *roles = NULL;
        return DT_OK;
    }
    if (columns != source->columns)
        return dt_fail(DT_EMISMATCH, "%zu columns, the files before have %zu", columns,
                       source->columns);
    if (memcmp(*roles, source->roles, columns * sizeof **roles))
        return dt_fail(DT_EMISMATCH,
                       "label or ignored columns stand elsewhere than in the files before");
    return DT_OK;
}

static dt_status survey_first(struct dt__survey *survey, struct dt__lines *lines, bool *header)
{
    struct dt__names cells = {0};
    int32_t *roles = NULL, features;
    char *record;
    size_t length;
    dt_status status = DT_OK;
    do
        DT_GUARD(dt__lines_next(lines, true, &record, &length));
    while (record && !length);
    if (!record) return dt_fail(DT_EFORMAT, "the file has no rows");
    DT_GUARD(dt__csv_split(record, length, &cells));
    DT_GUARD(dt_alloc(cells.count, sizeof *roles, "columns", &roles));
    DT_GUARD(find_roles(survey->config, &cells, roles, &features, header));
    DT_GUARD(take_roles(survey, &roles, cells.count, features));
    if (*header) DT_GUARD(take_names(survey, &cells, survey->source->roles));
done:
    dt__names_free(cells.items, cells.count);
    dt_free(roles);
    return status;
}

static dt_status survey_lines(struct dt__survey *survey, struct dt__file *file,
                              struct dt__lines *lines)
{
    bool header = false;
    size_t widest;
    uint64_t start = dt__lines_offset(lines);
    dt_status status = survey_first(survey, lines, &header);
    if (status) return dt_fail_prefix(status, "%s:%" PRIu64 ": ", file->path, lines->line);
    if (!header) DT_TRY(dt__lines_seek(lines, start, 1));
    return dt__text_survey(survey, file, lines, &grammar, (size_t)survey->features, &widest);
}

static dt_status survey_file(struct dt__survey *survey, struct dt__file *file)
{
    struct dt__lines lines;
    DT_TRY(dt__lines_open(&lines, file->path));
    dt_status status = survey_lines(survey, file, &lines);
    dt__lines_close(&lines);
    return status;
}

static bool claims(const char *path, unsigned char *head, size_t length)
{
    (void)head;
    (void)length;
    const char *dot = strrchr(path, '.');
    return dot && !strcasecmp(dot, ".csv");
}

static dt_status open_file(const struct dt_source *source, const struct dt__file *file, bool random,
                           void **out)
{
    (void)random;
    return dt__text_open(source, file, &grammar, out);
}

const struct dt__format dt__format_csv = {"CSV",     claims,        survey_file,
                                          open_file, dt__text_read, dt__text_close};
