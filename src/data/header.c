/* The first row of a CSV, and how the columns of several files go together. */
#include "data/header.h"

#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/internal.h"
#include "data/csv.h"
#include "data/input.h"
#include "data/survey.h"
#include "data/text.h"

enum { MOST_NAMED = 8 };

/* ---- cells ---------------------------------------------------------------------------------- */

static const char SEPARATORS[] = ",;\t|"; /* those that are found by themselves */

/* A number, if only but for a decimal comma within it, a gap, or a text in quotes. */
static bool word_is_plain(const char *word, size_t length)
{
    const enum dt__text_kind kind = dt__text_kind(word, length);
    if (*word == ',' || word[length - 1] == ',') return false;
    return *word == '"' || kind == DT__TEXT_COMMA || kind == DT__TEXT_COMMA_OR_UNIT ||
           dt__text_is_number(word, length) || dt__text_is_missing(word, length);
}

/* Whether runs of blanks separate the cells of a record: it has no other separator, or all its
 * words are plain, more gaps between them are blanks than have a tab, and one has two blanks at
 * least. (Tables that are aligned may have one tab before a last text. Between tabs or commas a
 * cell may be 1 250 or a list of numbers, with one blank.) */
static bool blanks_separate(const char *record, size_t length, bool others)
{
    const char *const end = record + length, *word;
    size_t blanks = 0, tabs = 0;
    bool plain = true, wide = false, tab = false;
    for (const char *p = record, *gap; true; plain &= word_is_plain(word, (size_t)(p - word))) {
        for (gap = p, tab = false; p < end && (*p == ' ' || *p == '\t'); p++)
            tab |= *p == '\t';
        if (p == end) break;
        blanks += gap > record && !tab;
        tabs += gap > record && tab;
        wide |= gap > record && !tab && p > gap + 1;
        bool open = false;
        for (word = p; p < end && (open || (*p != ' ' && *p != '\t')); p++)
            open ^= *p == '"';
    }
    return blanks && (!others || (plain && blanks > tabs && wide));
}

/* The character that data.separator says; auto: the one of comma, semicolon, tab and bar that the
 * record has most often outside of quotes, or, if `blanks` may, these. Of commas that are decimal
 * ones it is another, if there is one: those that all stand between digits, one at most from one of
 * the other separators to the next (1,5;2,5). */
static dt_status separator_find(const struct dt_config *config, const char *record, size_t length,
                                bool blanks, char *out)
{
    const char *key = config ? config->data.separator : "auto";
    size_t counts[sizeof SEPARATORS] = {0}, best = 0;
    bool open = false, comma = false, decimal = true, returns = false;
    if (!strcmp(key, "tab") || !strcmp(key, "\\t")) key = "\t";
    if (!strcmp(key, "space")) key = " ";
    const bool given = strlen(key) == 1 && !strchr("\"\r\n.", *key);
    if (!given && strcmp(key, "auto"))
        return dt_fail(DT_EUSAGE,
                       "data.separator=%s: expected auto, tab, space or one character, not a quote "
                       "or a point",
                       key);
    for (size_t i = 0; i < length; i++) {
        const char before = i ? record[i - 1] : 0, after = i + 1 < length ? record[i + 1] : 0;
        const char *found = strchr(SEPARATORS, record[i]);
        open ^= record[i] == '"';
        returns |= record[i] == '\r' && !open && after && after != '\r';
        if (open || !found) continue;
        counts[found - SEPARATORS]++;
        if (record[i] == ',')
            decimal &= !comma && isdigit((unsigned char)before) && isdigit((unsigned char)after);
        comma = record[i] == ',';
    }
    if (returns)
        return dt_fail(DT_EFORMAT, "line ends are single carriage returns, as old Macs write them: "
                                   "tr '\\r' '\\n' <FILE >NEW makes lines of them");
    const bool commas = counts[0] && !(config && config->data.decimal == DT_DECIMAL_COMMA);
    if (decimal || !commas) counts[0] = 0;
    for (size_t i = 1; SEPARATORS[i]; i++)
        if (counts[i] > counts[best]) best = i;
    if (blanks) blanks = blanks_separate(record, length, commas || counts[best]);
    *out = given ? *key : blanks ? ' ' : SEPARATORS[best];
    return DT_OK;
}

/* An object, a list of rows, or a row as a list; its bracket may be alone on the line. */
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
    const bool here = *record == '#' || *record == '%', above = *first == '#' || *first == '%';
    if (!status || (!here && !above)) return status;
    return dt_fail(
        status,
        "%s; %s begins with '%c': comments are not read: grep -v '^%c' <FILE >NEW leaves "
        "them out (of a line of names remove the '%c' alone)",
        dt_error_text(), here ? "the line" : "the first row", here ? *record : *first,
        here ? *record : *first, here ? *record : *first);
}

dt_status dt__header_parse(struct dt__header *header, const struct dt_config *config,
                           struct dt__lines *lines, const char *record, size_t length, bool blanks)
{
    const struct dt__names *cells = &header->cells;
    if (length == 5 && !strncasecmp(record, "sep=", 4))
        return dt_fail(DT_EFORMAT, "'sep=' is a line of Excel's own, and no row: leave it out");
    if (memchr(record, 0, length)) return dt_fail(DT_EFORMAT, "a byte of zero in the first row");
    if (record_is_json(record, length))
        return dt_fail(DT_EFORMAT,
                       "this is JSON, which dtrain predict reads, and training does not: "
                       "write it as CSV (jq -r '[.a, .b] | @csv' does so, a and b being "
                       "columns)");
    DT_TRY(separator_find(config, record, length, blanks, &header->separator));
    DT_TRY(dt__csv_split(record, length, header->separator, &header->cells));
    for (size_t i = 0; lines->commas && header->separator == ' ' && i < cells->count; i++)
        dt__lines_commas(lines, cells->items[i], strlen(cells->items[i])); /* it was not known */
    /* one cell has none */
    if (cells->count > 1) lines->separator = header->separator;
    if (cells->count > 1 && !strncmp(cells->items[1], "qid:", 4))
        return dt_fail(DT_EFORMAT, "LIBSVM rows with qid, which are for ranking: expected label "
                                   "index:value ... alone");
    DT_TRY(dt__alloc(cells->count, sizeof *header->first, "columns", &header->first));
    for (size_t i = 0; i < cells->count; i++) {
        uint32_t number;
        DT_TRY(dt__dict_add(&header->index, cells->items[i], strlen(cells->items[i]), &number));
        if (header->index.entries[number].count == 1) header->first[number] = i;
    }
    DT_TRY(dt__alloc(cells->count, sizeof *header->marks, "columns", &header->marks));
    return dt__alloc(cells->count, sizeof *header->roles, "columns", &header->roles);
}

static bool text_is_integer(const char *text, long long *out)
{
    char *end;
    *out = strtoll(text, &end, 10);
    return end > text && !*end && *out > LLONG_MIN / 2 && *out < LLONG_MAX / 2;
}

/* Its numbers rise by one from column to column, from *first on, as years do, and what pandas calls
 * columns that have no names; the last may be another. */
static bool cells_count_up(const struct dt__names *cells, long long *first)
{
    long long number, count = 0;
    for (size_t i = 0; i < cells->count; i++) {
        const char *text = cells->items[i];
        if (!dt__text_is_number(text, strlen(text))) continue;
        if (!text_is_integer(text, &number) || (count && number != *first + count))
            return count > 2 && i + 1 == cells->count;
        if (!count++) *first = number;
    }
    return count > 2;
}

bool dt__header_has_no_numbers(const struct dt__header *header)
{
    for (size_t i = 0; i < header->cells.count; i++)
        if (header->roles[i] >= 0 &&
            dt__text_is_number(header->cells.items[i], strlen(header->cells.items[i])))
            return false;
    return true;
}

uint64_t dt__header_has(const struct dt__header *header, const char *text, size_t *first)
{
    uint32_t number;
    if (!dt__dict_find(&header->index, text, strlen(text), &number)) return 0;
    *first = header->first[number];
    return header->index.entries[number].count;
}

/* DT_EFORMAT: two columns, not both of them ignored, have one name. */
static dt_status header_distinct(const struct dt__header *header)
{
    for (size_t i = 0, first; i < header->cells.count; i++) {
        if (!dt__header_has(header, header->cells.items[i], &first) || first == i ||
            (header->roles[i] == DT__ROLE_IGNORE && header->roles[first] == DT__ROLE_IGNORE))
            continue;
        return dt_fail(DT_EFORMAT, "columns %zu and %zu are both named '%s'", first, i,
                       header->cells.items[i]);
    }
    return DT_OK;
}

/* ---- what is looked for --------------------------------------------------------------------- */

static dt_status want_add(struct dt__header *header, struct dt__want want)
{
    DT_TRY(
        dt__grow(&header->wants, &header->wants_room, header->nwants + 1, sizeof want, "columns"));
    header->wants[header->nwants++] = want;
    return DT_OK;
}

void dt__header_free(struct dt__header *header)
{
    dt_free(header->wants);
    dt__names_free(header->texts.items, header->texts.count);
    dt__names_free(header->cells.items, header->cells.count);
    dt__dict_free(&header->index);
    dt_free(header->first);
    dt_free(header->roles);
    dt_free(header->marks);
    *header = (struct dt__header){0};
}

/* Looks for the columns that a key lists. `learned`, or NULL, is the name (`several`: are the
 * names) that the data before had where the key has numbers. */
static dt_status header_want(struct dt__header *header, const char *key, const char *text,
                             const char *learned, bool several, int32_t role)
{
    struct dt__want want = {.key = key, .list = text, .role = role};
    struct dt__names *texts = &header->texts;
    size_t begin = texts->count;
    long long number;
    bool places = false;
    DT_TRY(dt__names_split(text, texts));
    if (texts->count > begin + 1 && role == DT__ROLE_WEIGHT)
        return dt_fail(DT_EMISMATCH, "%s=%s: expected one column", key, text);
    for (size_t i = begin; i < texts->count; i++)
        places |= text_is_integer(texts->items[i], &number);
    if (places && learned) {
        places = false;
        want.list = learned;
        begin = texts->count;
        DT_TRY(several ? dt__names_split(learned, texts)
                       : dt__names_add(texts, learned, strlen(learned)));
    }
    for (size_t i = begin; i < texts->count; i++, want.role -= role <= DT__ROLE_LABEL) {
        want.text = texts->items[i];
        want.by_place = places && text_is_integer(want.text, &number);
        DT_TRY(want_add(header, want));
    }
    return DT_OK;
}

static dt_status column_find(const struct dt__header *header, const char *key, const char *text,
                             bool by_place, size_t *out)
{
    const struct dt__names *cells = &header->cells;
    const long long count = (long long)cells->count;
    long long number = 0;
    if (by_place) {
        text_is_integer(text, &number);
        if (number >= count && dt__header_has(header, text, out))
            return dt_fail(DT_EMISMATCH,
                           "%s=%s: there are %lld columns; column %zu has this name: expected %zu",
                           key, text, count, *out, *out);
        if (number < -count || number >= count)
            return dt_fail(DT_EMISMATCH, "%s=%s: there are %lld columns", key, text, count);
        *out = (size_t)(number < 0 ? number + count : number);
        return DT_OK;
    }
    if (!header->names)
        return dt_fail(DT_EMISMATCH, "%s=%s is a name, but the file has no header", key, text);
    if (dt__header_has(header, text, out)) return DT_OK;
    const char *near = NULL; /* the column whose name is nearest, or was cut at its comma */
    size_t least = strlen(text) / 2 < 2 ? strlen(text) / 2 : 2;
    for (size_t i = cells->count; i-- > 0;) {
        const char *name = cells->items[i];
        const bool cut = !strncmp(name, text, strlen(text)) && name[strlen(text)] == ',';
        const size_t distance = cut ? 0 : dt__edit_distance(text, name);
        if (distance > least) continue;
        least = distance;
        near = name;
    }
    if (near)
        return dt_fail(DT_EMISMATCH, "%s: no column is named '%s'; did you mean '%.60s'?%s", key,
                       text, near, strchr(near, ',') ? " \\, stands for a comma of a name" : "");
    return dt_fail(DT_EMISMATCH,
                   "%s: no column is named '%s'; the first row begins '%.40s'%s%.40s%s", key, text,
                   cells->items[0], count > 1 ? ", '" : "", count > 1 ? cells->items[1] : "",
                   count > 1 ? "'" : "");
}

/* Marks the columns that a key lists. `insist`: they must be there. */
static dt_status header_mark(struct dt__header *header, const char *key, const char *list,
                             bool insist)
{
    const size_t begin = header->texts.count;
    DT_TRY(dt__names_split(list, &header->texts));
    for (size_t i = begin, column; i < header->texts.count; i++) {
        const char *text = header->texts.items[i];
        long long number;
        const dt_status status =
            column_find(header, key, text, text_is_integer(text, &number), &column);
        if (status && insist) return status;
        if (!status) header->marks[column] = true;
    }
    return DT_OK;
}

dt_status dt__header_mark_categories(struct dt__header *header, const struct dt_config *config,
                                     bool insist)
{
    const char *list = config->data.categories;
    if (!strcmp(list, "auto") || !strcmp(list, "none")) return DT_OK;
    return header_mark(header, "data.categories", list, insist);
}

/* ---- roles ---------------------------------------------------------------------------------- */

/* Each wanted column gets its role, and no other one. */
static dt_status wants_meet(struct dt__header *header)
{
    for (size_t i = 0; i < header->cells.count; i++)
        header->roles[i] = DT__ROLE_OPEN;
    for (size_t i = 0; i < header->nwants; i++) {
        struct dt__want *want = &header->wants[i];
        DT_TRY(column_find(header, want->key, want->text, want->by_place, &want->column));
        const int32_t before = header->roles[want->column];
        const char *key = before == DT__ROLE_IGNORE   ? "data.ignore"
                          : before == DT__ROLE_WEIGHT ? "data.weight"
                                                      : "data.label";
        header->roles[want->column] = want->role;
        header->labels += want->role <= DT__ROLE_LABEL;
        if (before == DT__ROLE_OPEN || before == want->role) continue;
        if (before >= 0)
            return dt_fail(DT_EMISMATCH,
                           "two features of the model are named '%s': expected rows without a "
                           "header",
                           want->text);
        if (!want->key)
            return dt_fail(DT_EMISMATCH, "%s=%s: the column is a feature too", key, want->text);
        return dt_fail(DT_EMISMATCH, "%s=%s: the column is in %s too", want->key, want->list, key);
    }
    return DT_OK;
}

/* Puts a name, behind `number` others, on a list for a message, which keeps its failure. */
static void list_add(struct dt_text *list, size_t number, const char *name)
{
    if (number < MOST_NAMED) dt__text_add(list, "%s'%s'", number ? ", " : "", name);
    if (number == MOST_NAMED) dt__text_add(list, " and more");
}

/* A row is a header if data.header says so; if it has all names; or the name of a feature, which is
 * no number; or not a number at all. */
dt_status dt__header_match(struct dt__header *header, const struct dt__columns *columns,
                           const char *data, bool told)
{
    struct dt_text missing = {0};
    size_t lacking = 0;
    bool named = false, unlabelled = false;
    size_t cell;
    for (size_t c = 0; c < columns->count; c++) {
        const char *name = columns->items[c].name;
        size_t length = strlen(name); /* blanks were part of a name once, and are in old models */
        dt__text_trim(&name, &length);
        DT_TRY(dt__names_add(&header->texts, name, length));
        name = header->texts.items[header->texts.count - 1];
        DT_TRY(want_add(header, (struct dt__want){.text = name, .role = (int32_t)c}));
    }
    for (size_t i = 0; i < header->nwants; i++) {
        const struct dt__want *want = &header->wants[i];
        if (want->by_place) continue;
        const bool found = dt__header_has(header, want->text, &cell);
        named |= found && !want->key && !dt__text_is_number(want->text, strlen(want->text));
        if (!found) list_add(&missing, lacking++, want->text);
        unlabelled |= !found && want->role <= DT__ROLE_LABEL;
    }
    header->names = told || !lacking || named || dt__header_has_no_numbers(header);
    dt_status status = missing.status;
    if (!status && header->names && lacking)
        status = dt_fail(DT_EMISMATCH, "the header lacks %s; columns go by the names in %s%s",
                         missing.data, data,
                         unlabelled ? "; rows without a label are for dtrain predict, on its "
                                      "standard input"
                                    : "");
    dt__text_free(&missing);
    if (status || !header->names) return status;
    DT_TRY(wants_meet(header));
    for (size_t i = 0; i < header->cells.count; i++)
        if (header->roles[i] == DT__ROLE_OPEN) header->roles[i] = DT__ROLE_IGNORE;
    return header_distinct(header);
}

/* In a header the number of a column may be the name of another. */
static dt_status want_check_number(const struct dt__header *header, const struct dt__want *want)
{
    const long long count = (long long)header->cells.count;
    long long number;
    if (!want->by_place || !text_is_integer(want->text, &number) || number < 0 || number >= count)
        return DT_OK;
    for (long long c = 0; c < count; c++)
        if (c != number && !strcmp(header->cells.items[c], want->text))
            return dt_fail(DT_EMISMATCH,
                           "%s=%s: is it column %lld, '%s', or column %lld, which has this "
                           "name? expected %lld or %lld",
                           want->key, want->text, number, header->cells.items[number], c,
                           number - count, c - count);
    return DT_OK;
}

static dt_status wants_of_config(struct dt__header *header, const struct dt_config *config)
{
    header->nwants = 0;
    DT_TRY(header_want(header, "data.ignore", config->data.ignore, NULL, true, DT__ROLE_IGNORE));
    DT_TRY(header_want(header, "data.weight", config->data.weight, NULL, false, DT__ROLE_WEIGHT));
    return header_want(header, "data.label", config->data.label, NULL, true, DT__ROLE_LABEL);
}

static dt_status roles_give(struct dt__header *header, const struct dt_config *config)
{
    const size_t count = header->cells.count;
    DT_TRY(wants_meet(header));
    if (header->labels > 1 && config->model.task == DT_TASK_CLASSIFY)
        return dt_fail(DT_EMISMATCH,
                       "data.label=%s: expected one column; model.task=multilabel and regress "
                       "take several",
                       config->data.label);
    for (size_t i = 0; i < count; i++)
        if (header->roles[i] == DT__ROLE_OPEN) header->roles[i] = (int32_t)header->features++;
    if (header->features) return DT_OK;
    return dt_fail(DT_EFORMAT, "no column is left for the features%s",
                   count == 1
                       ? ": there is only one (is data.separator another? is line 1 a title?)"
                   : *config->data.ignore ? ": data.ignore names all others"
                                          : "");
}

dt_status dt__header_roles(struct dt__header *header, const struct dt_config *config)
{
    DT_TRY(wants_of_config(header, config));
    return roles_give(header, config);
}

/* A key that names a column needs a header; else the cells tell. */
dt_status dt__header_decide(struct dt__header *header, const struct dt_config *config,
                            const struct dt__lines *lines)
{
    const bool open = config->data.header == DT_HEADER_AUTO;
    DT_TRY(wants_of_config(header, config));
    header->names = config->data.header == DT_HEADER_YES;
    for (size_t i = 0; i < header->nwants; i++)
        header->names |= open && !header->wants[i].by_place;
    for (size_t i = header->nwants; i-- > 0 && header->names;)
        DT_TRY(want_check_number(header, &header->wants[i]));
    DT_TRY(roles_give(header, config));
    if (!open || header->names) return DT_OK;
    header->names = dt__header_has_no_numbers(header);
    long long first = 0;
    if (!header->names && cells_count_up(&header->cells, &first))
        dt__warn("%s:%" PRIu64 ": %lld, %lld, %lld ... are taken for values; if they name the "
                 "columns: data.header=yes",
                 lines->name, lines->line, first, first + 1, first + 2);
    return DT_OK;
}

/* ---- columns of several files --------------------------------------------------------------- */

/* The first file of the training data says what columns there are. */
static dt_status columns_make(struct dt__survey *survey, struct dt__header *header)
{
    const struct dt_config *config = survey->config;
    struct dt__columns *columns = &survey->source->columns;
    DT_TRY(dt__survey_features(survey, header->features));
    DT_TRY(dt__columns_init(columns, config, header->features));
    const dt_status status = header->names ? header_distinct(header) : DT_OK;
    if (status)
        return dt_fail(status, "%s: rename one, or leave out both: data.ignore takes their numbers",
                       dt_error_text());
    DT_TRY(dt__header_mark_categories(header, config, true));
    for (size_t i = 0; i < header->cells.count; i++) {
        if (header->roles[i] < 0) continue;
        struct dt__column *column = &columns->items[header->roles[i]];
        column->place = i;
        column->insisted = header->marks[i];
        if (column->insisted) column->kind = DT_COLUMN_CATEGORY;
        if (header->names) DT_TRY(dt__strdup(header->cells.items[i], &column->name));
    }
    return DT_OK;
}

/* The first header says what weight and labels are called, those in their order. Several of which
 * one has no name stay where they are: a list has no place for it. */
static dt_status names_note(struct dt__survey *survey, const struct dt__header *header)
{
    char **label = &survey->source->schema.label_column;
    const bool first = header->names && !survey->known && !*label;
    struct dt_text labels = {0};
    bool listed = true;
    for (size_t i = 0; i < header->nwants && header->names; i++) {
        const struct dt__want *want = &header->wants[i];
        const char *name = header->cells.items[want->column];
        if (want->role == DT__ROLE_WEIGHT && !survey->weight_column) /* in front of the labels */
            DT_TRY(dt__strdup(name, &survey->weight_column));
        if (want->role > DT__ROLE_LABEL || !first) continue;
        if (header->labels > 1)
            dt__list_add(&labels, name);
        else
            dt__text_add(&labels, "%s", name);
        listed &= *name || header->labels == 1;
    }
    if (first && listed) return dt__text_end(&labels, label);
    dt__text_free(&labels);
    return DT_OK;
}

/* Names the columns, once, that the data before has not and that no key lists. */
static dt_status extra_tell(struct dt__survey *survey, const char *path, struct dt__header *header)
{
    const struct dt_config *config = survey->config;
    struct dt_text names = {0};
    size_t extra = 0;
    char *list;
    if (survey->said_extra) return DT_OK;
    DT_TRY(header_mark(header, "data.ignore", config->data.ignore, false));
    DT_TRY(header_mark(header, "data.weight", config->data.weight, false));
    for (size_t i = 0; i < header->cells.count; i++)
        if (header->roles[i] == DT__ROLE_IGNORE && !header->marks[i])
            list_add(&names, extra++, header->cells.items[i]);
    DT_TRY(dt__text_end(&names, &list));
    if (extra)
        dt__info("%s: columns that %s are ignored: %s", path,
                 survey->known ? "training did not have" : "the files before do not have", list);
    survey->said_extra = extra > 0;
    dt_free(list);
    return DT_OK;
}

dt_status dt__header_survey(struct dt__header *header, struct dt__survey *survey,
                            const struct dt__lines *lines)
{
    const struct dt_config *config = survey->config;
    struct dt_source *source = survey->source;
    struct dt__columns *columns = &source->columns;
    const struct dt_schema *schema = &source->schema;
    if (survey->known && !columns->count) DT_TRY(dt__columns_of_schema(columns, schema));
    if (!survey->known && schema->columns)
        return dt_fail(DT_EMISMATCH, "CSV cannot stand beside shards of a table");
    if (!columns->count && schema->feature_names) { /* by a file of another format */
        DT_TRY(dt__columns_init(columns, config, (size_t)schema->features));
        for (size_t c = 0; c < columns->count; c++)
            DT_TRY(dt__strdup(schema->feature_names[c], &columns->items[c].name));
    }
    if (columns->count && columns->items[0].name && config->data.header != DT_HEADER_NO) {
        if (survey->training)
            DT_TRY(header_want(header, "data.weight", config->data.weight, survey->weight_column,
                               false, DT__ROLE_WEIGHT));
        DT_TRY(header_want(header, "data.label", config->data.label, schema->label_column,
                           schema->targets > 1, DT__ROLE_LABEL));
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
    return dt__survey_same(survey, "features", header->features, columns->count);
}

/* ---- the second row -------------------------------------------------------------------------- */

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
