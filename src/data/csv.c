/* CSV: cells and rows, which column is what, and files.
 * Source: RFC 4180, section 2; other separators, byte order marks and blank lines are taken as
 * well. */
#include "data/csv.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "data/number.h"
#include "data/reader.h"

/* ---- cells and rows ------------------------------------------------------------------------- */

dt_status dt__csv_cell(char **text, char *end, char separator, struct dt__cell *out)
{
    char *cell = *text, *stop = cell;
    if (cell < end && *cell == '"') { /* a record is known to have an even number of quotes */
        char *to = cell + 1, *from = cell + 1;
        while (from < end && (*from != '"' || (from + 1 < end && from[1] == '"'))) {
            from += *from == '"';
            *to++ = *from++;
        }
        *out = (struct dt__cell){cell + 1, (size_t)(to - cell - 1)};
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
    char separator = parser->separator;
    struct dt__cell cell;
    const char *p = *text;
    double value;
    if (role >= 0 && columns->items[role].kind == DT_COLUMN_NUMBER &&
        dt__number_scan(&p, end, &value) && (p == end || *p == separator)) {
        const float single = (float)value;
        memcpy(&parser->words[role], &single, sizeof single);
        *text = p < end ? *text + (p - *text) + 1 : NULL;
        return DT_OK;
    }
    DT_TRY(dt__csv_cell(text, end, separator, &cell));
    if (role >= 0)
        return dt__columns_cell(columns, (size_t)role, cell.text, cell.length,
                                &parser->words[role]);
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
    int32_t role = parser->roles[column];
    const char *name = role >= 0 ? parser->columns->items[role].name : NULL;
    char message[DT_ERROR_MAX];
    size_t cells = column + 1;
    struct dt__cell cell;
    snprintf(message, sizeof message, "%s", dt_error_text());
    while (text && !dt__csv_cell(&text, end, parser->separator, &cell))
        cells++;
    if (!text && cells != parser->ncolumns)
        return dt_fail(DT_EFORMAT, "%zu columns, expected %zu", cells, parser->ncolumns);
    if (name && !*name)
        return dt_fail(DT_EFORMAT,
                       "column %zu, which has no name: %s; data.ignore=%zu leaves it out", column,
                       message, column);
    if (name) return dt_fail(DT_EFORMAT, "column %zu (%s): %s", column, name, message);
    return dt_fail(DT_EFORMAT, "column %zu: %s", column, message);
}

static dt_status csv_parse(struct dt__parser *parser, char *record, size_t length)
{
    struct dt__columns *columns = parser->columns;
    char *text = record, *end = record + length;
    while (parser->count < columns->count + parser->more)
        DT_TRY(dt__parser_add(parser, 0));
    for (size_t column = 0; column < parser->ncolumns; column++) {
        if (!text)
            return dt_fail(DT_EFORMAT, "%zu columns, expected %zu", column, parser->ncolumns);
        if (cell_take(parser, &text, end, parser->roles[column]))
            return row_fail(parser, column, text, end);
    }
    if (text)
        return dt_fail(DT_EFORMAT, "more than %zu columns%s", parser->ncolumns,
                       text == end ? ": the row ends in a separator, the first one does not" : "");
    columns->rows += columns->learning;
    parser->entries = columns->entries;
    for (size_t c = 0; c < columns->count && !parser->floats; c++)
        parser->floats = columns->items[c].kind != DT_COLUMN_CATEGORY &&
                         !dt__floats_are_bytes((const float *)&parser->words[c], 1);
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

const struct dt__grammar dt__csv_grammar = {true, csv_parse, csv_row};

/* ---- the first record ----------------------------------------------------------------------- */

dt_status dt__csv_separator(const struct dt_config *config, const char *record, size_t length,
                            char *out)
{
    static const char candidates[] = ",;\t|";
    const char *key = config ? config->data.separator : "auto";
    size_t counts[sizeof candidates] = {0};
    bool open = false;
    if (!strcmp(key, "tab") || !strcmp(key, "\\t")) key = "\t";
    if (strlen(key) == 1 && !strchr("\"\r\n.", *key)) {
        *out = *key;
        return DT_OK;
    }
    if (strcmp(key, "auto"))
        return dt_fail(DT_EUSAGE, "data.separator=%s: expected auto, tab or one character", key);
    for (size_t i = 0; i < length; i++) {
        const char *found = strchr(candidates, record[i]);
        open ^= record[i] == '"';
        if (!open && record[i] && found) counts[found - candidates]++;
    }
    size_t best = 0;
    for (size_t i = 1; candidates[i]; i++)
        if (counts[i] > counts[best]) best = i;
    *out = candidates[best];
    return DT_OK;
}

dt_status dt__csv_split(const char *record, size_t length, char separator, struct dt__names *out)
{
    char *copy, *text;
    struct dt__cell cell;
    dt_status status = DT_OK;
    bool open = false;
    for (size_t i = 0; i + 1 < length; i++) {
        open ^= record[i] == '"';
        if (record[i] == '\r' && !open && record[i + 1] != '\r')
            return dt_fail(DT_EFORMAT,
                           "line ends are single carriage returns, as old Macs write them: "
                           "tr '\\r' '\\n' <FILE >NEW makes lines of them");
    }
    DT_TRY(dt_alloc(length + 1, 1, "first row", &copy));
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

static bool text_is_integer(const char *text, long long *out)
{
    char *end;
    *out = strtoll(text, &end, 10);
    return end > text && !*end;
}

/* Index of a column by name, or by number from 0 or, negative, from the end. */
static dt_status column_find(const char *key, const char *text, const struct dt__names *cells,
                             bool header, size_t *out)
{
    long long number, count = (long long)cells->count;
    if (text_is_integer(text, &number)) {
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
    return dt_fail(DT_EMISMATCH,
                   "%s: no column is named '%s'; the first row begins '%.40s'%s%.40s%s", key, text,
                   cells->items[0], cells->count > 1 ? ", '" : "",
                   cells->count > 1 ? cells->items[1] : "", cells->count > 1 ? "'" : "");
}

/* Gives each column of a list a role; a weight is one column, and labels are numbered. */
static dt_status roles_of_list(const char *key, const char *text, const struct dt__names *cells,
                               bool header, int32_t role, int32_t *roles)
{
    struct dt__names list = {0};
    size_t column;
    dt_status status = dt__names_split(text, &list);
    if (!status && list.count > 1 && role == DT__ROLE_WEIGHT)
        status = dt_fail(DT_EMISMATCH, "%s=%s: expected one column", key, text);
    for (size_t i = 0; i < list.count && !status; i++, role -= role <= DT__ROLE_LABEL) {
        status = column_find(key, list.items[i], cells, header, &column);
        if (!status && roles[column] && roles[column] != role)
            status = dt_fail(DT_EMISMATCH, "%s=%s: the column is in %s too", key, text,
                             roles[column] == DT__ROLE_IGNORE   ? "data.ignore"
                             : roles[column] == DT__ROLE_WEIGHT ? "data.weight"
                                                                : "data.label");
        if (!status) roles[column] = role;
    }
    dt__names_free(list.items, list.count);
    return status;
}

/* The keys that give columns a role. */
struct role_key {
    const char *key, *text;
    int32_t role;
};
enum { ROLE_KEYS = 3 };
static void role_keys(const struct dt_config *config, struct role_key out[ROLE_KEYS])
{
    out[0] = (struct role_key){"data.ignore", config->data.ignore, DT__ROLE_IGNORE};
    out[1] = (struct role_key){"data.weight", config->data.weight, DT__ROLE_WEIGHT};
    out[2] = (struct role_key){"data.label", config->data.label, DT__ROLE_LABEL};
}

dt_status dt__csv_roles(const struct dt_config *config, const struct dt__names *cells, bool header,
                        int32_t *roles, size_t *features)
{
    struct role_key keys[ROLE_KEYS];
    role_keys(config, keys);
    memset(roles, 0, cells->count * sizeof *roles);
    for (int i = 0; i < ROLE_KEYS; i++)
        DT_TRY(roles_of_list(keys[i].key, keys[i].text, cells, header, keys[i].role, roles));
    *features = 0;
    for (size_t i = 0; i < cells->count; i++) {
        if (roles[i] < DT__ROLE_LABEL && config->model.task == DT_TASK_CLASSIFY)
            return dt_fail(DT_EMISMATCH,
                           "data.label=%s: expected one column; model.task=multilabel and regress "
                           "take several",
                           config->data.label);
        if (!roles[i]) roles[i] = (int32_t)(*features)++;
    }
    if (*features) return DT_OK;
    return dt_fail(DT_EFORMAT, "no column is left for the features%s",
                   cells->count == 1 ? ": there is only one (is data.separator another?)" : "");
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

/* 0, 1, 2, ..., with at most a name behind them: what pandas calls columns that have no names. */
static bool cells_count_up(const struct dt__names *cells)
{
    size_t i = 0;
    long long number;
    while (i < cells->count && text_is_integer(cells->items[i], &number) && number == (long long)i)
        i++;
    return i > 2 && i + 1 >= cells->count;
}

/* Whether a key has a name, which only a header can meet; with one its numbers are looked at, each
 * of which may be the place of one column and the name of another. */
static dt_status key_look(const struct role_key *key, const struct dt__names *cells, bool header,
                          bool *has_name)
{
    struct dt__names list = {0};
    const long long count = header ? (long long)cells->count : 0;
    long long number;
    dt_status status = dt__names_split(key->text, &list);
    for (size_t i = 0; i < list.count && !status; i++) {
        const bool is_number = text_is_integer(list.items[i], &number);
        *has_name |= !is_number;
        for (long long c = 0; is_number && number >= 0 && number < count && c < count; c++)
            if (c != number && !strcmp(cells->items[c], list.items[i]) && !status)
                status = dt_fail(DT_EMISMATCH,
                                 "%s=%s: is it column %lld, '%s', or column %lld, which has this "
                                 "name? expected %lld or %lld",
                                 key->key, list.items[i], number, cells->items[number], c,
                                 number - count, c - count);
    }
    dt__names_free(list.items, list.count);
    return status;
}

/* Two columns of one name could not be told apart, and one of them may be the label. */
static dt_status cells_index(const struct dt__names *cells, struct dt__dict *index)
{
    for (size_t i = 0; i < cells->count; i++) {
        uint32_t number;
        DT_TRY(dt__dict_add(index, cells->items[i], strlen(cells->items[i]), &number));
        if (number != i)
            return dt_fail(DT_EFORMAT, "columns %u and %zu are both named '%s'", number, i,
                           cells->items[i]);
    }
    return DT_OK;
}

/* ---- columns by the names of a header ------------------------------------------------------- */

/* A header of which some names are not known: it has others of them, or not a number at all. */
static bool cells_look_like_header(const struct dt__columns *columns, const struct dt__names *cells,
                                   const struct dt__dict *index)
{
    double value;
    uint32_t cell;
    bool numbers = false;
    for (size_t c = 0; c < columns->count; c++) {
        const char *name = columns->items[c].name;
        if (dt__number_parse(name, strlen(name), &value) == DT__NUMBER_BAD &&
            dt__dict_find(index, name, strlen(name), &cell))
            return true;
    }
    for (size_t i = 0; i < cells->count; i++)
        numbers |=
            dt__number_parse(cells->items[i], strlen(cells->items[i]), &value) != DT__NUMBER_BAD;
    return !numbers;
}

enum { MOST_NAMED = 8 };

/* Gives the column of that name its role, or puts the name on the list of what is missing. */
static dt_status role_by_name(const struct dt__dict *index, const char *name, int32_t role,
                              int32_t *roles, struct dt_text *missing, size_t *lacking)
{
    uint32_t cell;
    if (!name) return DT_OK;
    size_t length = strlen(name); /* of a model that was made when blanks were part of it */
    dt__text_trim(&name, &length);
    if (dt__dict_find(index, name, length, &cell)) {
        if (roles[cell] != DT__ROLE_IGNORE)
            return dt_fail(DT_EMISMATCH, "data.%s=%s: the column is %s too",
                           roles[cell] <= DT__ROLE_LABEL ? "label" : "weight", name,
                           role >= 0                 ? "a feature"
                           : role == DT__ROLE_WEIGHT ? "in data.weight"
                                                     : "in it twice");
        roles[cell] = role;
        return DT_OK;
    }
    if ((*lacking)++ == MOST_NAMED) return dt_text_add(missing, " and more");
    if (*lacking > MOST_NAMED) return DT_OK;
    return dt_text_add(missing, "%s'%s'", *lacking > 1 ? ", " : "", name);
}

dt_status dt__csv_roles_by_name(const struct dt__columns *columns, const struct dt__names *labels,
                                const char *weight, const struct dt__names *cells, int32_t *roles,
                                bool *out_header)
{
    struct dt_text missing = {0};
    struct dt__dict index = {0};
    size_t lacking = 0;
    dt_status status = DT_OK, distinct = cells_index(cells, &index);
    for (size_t i = 0; i < cells->count; i++)
        roles[i] = DT__ROLE_IGNORE;
    for (size_t i = 0; labels && i < labels->count; i++)
        DT_GUARD(role_by_name(&index, labels->items[i], DT__ROLE_LABEL - (int32_t)i, roles,
                              &missing, &lacking));
    DT_GUARD(role_by_name(&index, weight, DT__ROLE_WEIGHT, roles, &missing, &lacking));
    for (size_t c = 0; c < columns->count; c++)
        DT_GUARD(
            role_by_name(&index, columns->items[c].name, (int32_t)c, roles, &missing, &lacking));
    *out_header = !lacking || cells_look_like_header(columns, cells, &index);
    if (*out_header && distinct)
        status = distinct;
    else if (*out_header && lacking)
        status = dt_fail(DT_EMISMATCH,
                         "the header lacks %s; columns go by the names in the training data",
                         missing.data);
done:
    dt__dict_free(&index);
    dt_text_free(&missing);
    return status;
}

/* ---- survey --------------------------------------------------------------------------------- */

/* The names of the labels, in their order, as data.label has them. */
static dt_status label_names_join(const struct dt__names *cells, const int32_t *roles, char **out)
{
    struct dt_text text = {0};
    bool found = true;
    dt_status status = DT_OK;
    for (int32_t role = DT__ROLE_LABEL; found && !status; role--) {
        found = false;
        for (size_t i = 0; i < cells->count && !status; i++) {
            if (roles[i] != role) continue;
            found = true;
            status = dt_text_add(&text, "%s%s", text.length ? "," : "", cells->items[i]);
        }
    }
    if (status)
        dt_text_free(&text);
    else
        *out = text.data;
    return status;
}

/* The first file of the training data says what columns there are. */
static dt_status columns_make(struct dt__survey *survey, const struct dt__names *cells,
                              const int32_t *roles, size_t features, bool header)
{
    const struct dt_config *config = survey->config;
    struct dt__columns *columns = &survey->source->columns;
    struct dt__dict index = {0};
    int32_t *insisted;
    dt_status status = DT_OK;
    DT_TRY(dt__columns_init(columns, config, features));
    DT_TRY(dt_alloc(cells->count, sizeof *insisted, "columns", &insisted));
    if (strcmp(config->data.categories, "auto") && strcmp(config->data.categories, "none"))
        DT_GUARD(
            roles_of_list("data.categories", config->data.categories, cells, header, 1, insisted));
    if (header) DT_GUARD(cells_index(cells, &index));
    for (size_t i = 0; i < cells->count; i++) {
        struct dt__column *column = roles[i] >= 0 ? &columns->items[roles[i]] : NULL;
        if (column) column->place = i;
        if (column && header) DT_GUARD(dt_strdup(cells->items[i], &column->name));
        if (column && insisted[i]) {
            column->kind = DT_COLUMN_CATEGORY;
            column->insisted = true;
        }
        if (header && roles[i] == DT__ROLE_WEIGHT && !survey->weight_column)
            DT_GUARD(dt_strdup(cells->items[i], &survey->weight_column));
    }
    if (header && !survey->label_column)
        DT_GUARD(label_names_join(cells, roles, &survey->label_column));
done:
    dt_free(insisted);
    dt__dict_free(&index);
    return status;
}

/* The name of a key's column, NULL if only its place is known. */
static const char *key_column_name(const char *key, const char *learned)
{
    long long number;
    return !*key || text_is_integer(key, &number) ? learned : key;
}

/* The column of a key that has a place but no name yet. A resume does not know that of the
 * weights. */
static dt_status role_by_place(const char *key, const char *text, const struct dt__names *cells,
                               int32_t role, int32_t *roles, size_t *out)
{
    DT_TRY(column_find(key, text, cells, true, out));
    if (roles[*out] >= 0)
        return dt_fail(DT_EMISMATCH, "%s=%s is '%s', a feature of the model", key, text,
                       cells->items[*out]);
    if (roles[*out] != DT__ROLE_IGNORE)
        return dt_fail(DT_EMISMATCH, "data.label and data.weight are one column, '%s'",
                       cells->items[*out]);
    roles[*out] = role;
    return DT_OK;
}

/* Whether a list of columns has the one at `place`, by its name or its number. */
static bool list_has_column(const struct dt__names *list, const struct dt__names *cells,
                            size_t place)
{
    const long long count = (long long)cells->count, at = (long long)place;
    long long number;
    for (size_t i = 0; i < list->count; i++)
        if (!strcmp(list->items[i], cells->items[place]) ||
            (text_is_integer(list->items[i], &number) && (number == at || number + count == at)))
            return true;
    return false;
}

/* Names the columns that the data before has not and data.ignore does not list. */
static dt_status extra_tell(struct dt__survey *survey, const struct dt__file *file,
                            const struct dt__names *cells, const int32_t *roles)
{
    const struct dt_config *config = survey->config;
    struct dt__names list = {0};
    struct dt_text names = {0};
    size_t extra = 0;
    dt_status status;
    DT_GUARD(dt__names_split(config->data.ignore, &list));
    DT_GUARD(dt__names_split(config->data.weight, &list));
    for (size_t i = 0; i < cells->count; i++) {
        if (roles[i] != DT__ROLE_IGNORE || list_has_column(&list, cells, i)) continue;
        if (extra++ < MOST_NAMED)
            DT_GUARD(dt_text_add(&names, "%s'%s'", extra > 1 ? ", " : "", cells->items[i]));
    }
    if (extra)
        dt_info("%s: columns that %s are ignored: %s%s", file->path,
                survey->known ? "training did not have" : "the files before do not have",
                names.data, extra > MOST_NAMED ? " and more" : "");
    survey->said_extra = extra > 0;
done:
    dt__names_free(list.items, list.count);
    dt_text_free(&names);
    return status;
}

/* The names of the label columns, as data.label or the files before have them; none, if only their
 * places are known. */
static dt_status label_names_split(const struct dt__survey *survey, struct dt__names *out)
{
    const char *learned = survey->known ? survey->known->label_column : survey->label_column;
    const char *key = survey->config->data.label;
    long long number;
    DT_TRY(dt__names_split(key, out));
    bool named = out->count > 0;
    for (size_t i = 0; i < out->count; i++)
        named &= !text_is_integer(out->items[i], &number);
    if (named) return DT_OK;
    dt__names_free(out->items, out->count);
    *out = (struct dt__names){0};
    if (!learned) return DT_OK;
    if (survey->targets > 1) return dt__names_split(learned, out);
    return dt__names_add(out, learned, strlen(learned));
}

/* Roles by the names of the files before, or of the model. *header false: they are not named
 * here. */
static dt_status roles_by_known_names(struct dt__survey *survey, const struct dt__file *file,
                                      const struct dt__names *cells, int32_t *roles, bool *header)
{
    const struct dt_config *config = survey->config;
    const struct dt__columns *columns = &survey->source->columns;
    struct dt__names labels = {0};
    bool weighs = survey->training && *config->data.weight;
    const char *weight =
        weighs ? key_column_name(config->data.weight, survey->weight_column) : NULL;
    size_t column;
    dt_status status = label_names_split(survey, &labels);
    const bool named = labels.count > 0;
    if (!status) status = dt__csv_roles_by_name(columns, &labels, weight, cells, roles, header);
    dt__names_free(labels.items, labels.count);
    labels = (struct dt__names){0};
    if (status || !*header) return status;
    if (!named) status = dt__names_split(config->data.label, &labels);
    for (size_t i = 0; i < labels.count && !status; i++)
        status = role_by_place("data.label", labels.items[i], cells, DT__ROLE_LABEL - (int32_t)i,
                               roles, &column);
    dt__names_free(labels.items, labels.count);
    DT_TRY(status);
    if (weighs && !weight) {
        DT_TRY(role_by_place("data.weight", config->data.weight, cells, DT__ROLE_WEIGHT, roles,
                             &column));
        DT_TRY(dt_strdup(cells->items[column], &survey->weight_column));
    }
    return survey->said_extra ? DT_OK : extra_tell(survey, file, cells, roles);
}

static dt_status roles_make(struct dt__survey *survey, const struct dt__file *file,
                            struct dt__parser *parser, const struct dt__names *cells, bool *header)
{
    struct dt_source *source = survey->source;
    struct dt__columns *columns = &source->columns;
    struct role_key keys[ROLE_KEYS];
    size_t features;
    bool by_name = false;
    if (!survey->known && source->schema.columns)
        return dt_fail(DT_EMISMATCH, "CSV cannot stand beside shards of a table");
    if (!columns->count && source->schema.feature_names) { /* by a file of another format */
        DT_TRY(dt__columns_init(columns, survey->config, (size_t)survey->features));
        for (size_t c = 0; c < columns->count; c++)
            DT_TRY(dt_strdup(source->schema.feature_names[c], &columns->items[c].name));
    }
    DT_TRY(dt_alloc(cells->count, sizeof *parser->roles, "columns", &parser->roles));
    parser->ncolumns = cells->count;
    if (columns->count && columns->items[0].name && survey->config->data.header != DT_HEADER_NO) {
        DT_TRY(roles_by_known_names(survey, file, cells, parser->roles, &by_name));
        *header = by_name;
        if (by_name) return DT_OK;
    }
    /* Roles as the configuration has them. auto: a key that names a column needs a header; else the
     * cells tell. */
    role_keys(survey->config, keys);
    *header = survey->config->data.header == DT_HEADER_YES;
    for (int i = 0; i < ROLE_KEYS && survey->config->data.header == DT_HEADER_AUTO; i++)
        DT_TRY(key_look(&keys[i], cells, false, header));
    for (int i = ROLE_KEYS; i-- > 0 && *header;)
        DT_TRY(key_look(&keys[i], cells, true, header));
    DT_TRY(dt__csv_roles(survey->config, cells, *header, parser->roles, &features));
    if (survey->config->data.header == DT_HEADER_AUTO && !*header) {
        *header = dt__csv_is_header(cells, parser->roles);
        if (!*header && cells_count_up(cells))
            dt_warn("%s:1: 0, 1, 2 ... are taken for values; if they name the columns: "
                    "data.header=yes",
                    file->path);
    }
    if (!columns->count) DT_TRY(dt__survey_features(survey, features));
    if (!columns->count) return columns_make(survey, cells, parser->roles, features, *header);
    if (features == columns->count) return DT_OK;
    return dt_fail(DT_EMISMATCH, "%zu features, %s %zu", features,
                   survey->known ? "the model has" : "the files before have", columns->count);
}

/* A first row that has numbers, and so is none of names, but a text where the row behind it has a
 * number: it may be either. The lines stand behind it. */
static dt_status first_row_check(const struct dt__parser *parser, struct dt__lines *lines,
                                 const struct dt__names *first)
{
    struct dt__names second = {0};
    const uint64_t line = lines->line;
    char *record;
    size_t length;
    double value;
    DT_TRY(dt__lines_next(lines, true, &record, &length));
    dt_status status = DT_OK;
    const bool whole = record && !dt__csv_split(record, length, parser->separator, &second) &&
                       second.count == first->count; /* else it is told of where it is read */
    for (size_t i = 0; whole && !status && i < first->count; i++) {
        const char *text = first->items[i], *below = second.items[i];
        if (parser->roles[i] != DT__ROLE_IGNORE && !dt__text_is_missing(text, strlen(text)) &&
            dt__number_parse(text, strlen(text), &value) == DT__NUMBER_BAD &&
            dt__number_parse(below, strlen(below), &value) == DT__NUMBER_GOOD)
            status =
                dt_fail(DT_EFORMAT,
                        "column %zu: '%.40s' stands over the number '%.40s', but other cells of "
                        "the first row are numbers: data.header=yes or no says what it is",
                        i, text, below);
    }
    dt__names_free(second.items, second.count);
    return status ? dt_fail_prefix(status, "%s:%" PRIu64 ": ", lines->name, line) : DT_OK;
}

/* How many of the roles are labels behind the first. */
static size_t labels_further(const int32_t *roles, size_t count)
{
    size_t most = 0;
    for (size_t i = 0; i < count; i++)
        if (roles[i] < DT__ROLE_LABEL && (size_t)(DT__ROLE_LABEL - roles[i]) > most)
            most = (size_t)(DT__ROLE_LABEL - roles[i]);
    return most;
}

static dt_status csv_survey(struct dt__survey *survey, struct dt__file *file)
{
    struct dt__lines lines;
    struct dt__parser parser = {.columns = &survey->source->columns, .of = survey->of};
    struct dt__names cells = {0};
    char *record;
    size_t length;
    bool header = false, begun = false;
    dt_status status;
    DT_TRY(dt__lines_open(&lines, file->path));
    do
        DT_GUARD(dt__lines_next(&lines, true, &record, &length));
    while (record && !length);
    if (!record) DT_GUARD(dt_fail(DT_EFORMAT, "%s: the file has no rows", file->path));
    DT_GUARD(dt__csv_separator(survey->config, record, length, &parser.separator));
    DT_GUARD(dt__csv_split(record, length, parser.separator, &cells));
    DT_GUARD(roles_make(survey, file, &parser, &cells, &header));
    parser.more = labels_further(parser.roles, parser.ncolumns);
    begun = true;
    if (!header && survey->config->data.header == DT_HEADER_AUTO && !survey->known)
        DT_GUARD(first_row_check(&parser, &lines, &cells));
    if (header)
        dt__lines_go_on(&lines);
    else
        dt__lines_rewind(&lines);
    DT_GUARD(dt__text_survey(survey, file, &lines, &dt__csv_grammar, &parser));
    if (!file->rows && !header)
        status = dt_fail(DT_EFORMAT, "%s: the file has no rows", file->path);
done:
    if (status && record && !begun)
        dt_fail_prefix(status, "%s:%" PRIu64 ": ", file->path, lines.line);
    dt__names_free(cells.items, cells.count);
    dt__lines_close(&lines);
    dt_free(parser.words);
    dt_free(parser.roles);
    return status;
}

const struct dt__format dt__format_csv = {.name = "CSV",
                                          .sparsity = DT__CATEGORIES,
                                          .grammar = &dt__csv_grammar,
                                          .survey = csv_survey,
                                          .open = dt__typed_reader_open,
                                          .read = dt__typed_reader_read,
                                          .close = dt__typed_reader_close};
