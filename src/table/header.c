/* The roles of a table's columns, from their names, their numbers and the cells of the first
 * row. */
#include "table/header.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/internal.h"
#include "text/input.h"

/* ---- cells ----------------------------------------------------------------------------------- */

dt_status dt__header_index(struct dt__header *header)
{
    const struct dt__names *cells = &header->cells;
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

/* Returns true if the cells that are numbers rise by one from each to the next, starting at *first,
 * and there are at least three: years, or the names that pandas gives to nameless columns. The last
 * cell may break the sequence. */
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

dt_status dt__header_distinct(const struct dt__header *header)
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

/* ---- what is looked for ---------------------------------------------------------------------- */

static dt_status want_add(struct dt__header *header, struct dt__want want)
{
    DT_TRY(dt__grow(&header->wants, &header->wants_capacity, header->nwants + 1, sizeof want,
                    "columns"));
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

dt_status dt__header_want(struct dt__header *header, const char *key, const char *text,
                          const char *learned, bool several, int32_t role)
{
    struct dt__want want = {.key = key, .list = text, .role = role};
    struct dt__names *texts = &header->texts;
    size_t begin = texts->count;
    long long number;
    bool places = false;
    DT_TRY(dt__names_split(text, texts));
    if (texts->count > begin + 1 && role < DT__ROLE_IGNORE && role > DT__ROLE_LABEL)
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
    const char *near = NULL; /* the nearest name; a name that starts with the text and a comma is
                              * nearest, since the key's list was split at that comma */
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

dt_status dt__header_mark(struct dt__header *header, const char *key, const char *list, bool insist)
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
    return dt__header_mark(header, "data.categories", list, insist);
}

/* ---- roles ----------------------------------------------------------------------------------- */

/* Gives each column in `wants` its role. A column may not have two roles, apart from the time. */
static dt_status wants_assign(struct dt__header *header)
{
    for (size_t i = 0; i < header->cells.count; i++)
        header->roles[i] = DT__ROLE_OPEN;
    for (size_t i = 0; i < header->nwants; i++) {
        struct dt__want *want = &header->wants[i];
        DT_TRY(column_find(header, want->key, want->text, want->by_place, &want->column));
        const int32_t before = header->roles[want->column];
        const char *key = before == DT__ROLE_IGNORE   ? "data.ignore"
                          : before == DT__ROLE_GROUP  ? "data.group"
                          : before == DT__ROLE_WEIGHT ? "data.weight"
                                                      : "data.label";
        if (want->role == DT__ROLE_TIME) header->time = want->column + 1;
        if (want->role == DT__ROLE_TIME) continue;
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

/* Decides that the row is a header if data.header says so, if it has all wanted names, if it has
 * the name of a feature and this name is not a number, or if no feature's cell is a number. */
dt_status dt__header_match(struct dt__header *header, const struct dt__columns *columns,
                           const char *data, bool named_by_key)
{
    struct dt_text missing = {0};
    size_t lacking = 0;
    bool named = false, unlabelled = false;
    size_t cell;
    for (size_t c = 0; c < columns->count; c++) {
        const char *name = columns->items[c].name;
        size_t length = strlen(name); /* names in old models may have blanks around them */
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
        if (!found) dt__list_show(&missing, lacking++, want->text);
        unlabelled |= !found && want->role <= DT__ROLE_LABEL;
    }
    header->names = named_by_key || !lacking || named || dt__header_has_no_numbers(header);
    dt_status status = missing.status;
    if (!status && header->names && lacking)
        status = dt_fail(DT_EMISMATCH, "the header lacks %s; columns go by the names in %s%s",
                         missing.data, data,
                         unlabelled ? "; rows without a label are for dtrain predict, on its "
                                      "standard input"
                                    : "");
    dt__text_free(&missing);
    if (status || !header->names) return status;
    DT_TRY(wants_assign(header));
    for (size_t i = 0; i < header->cells.count; i++)
        if (header->roles[i] == DT__ROLE_OPEN) header->roles[i] = DT__ROLE_IGNORE;
    return dt__header_distinct(header);
}

/* Rejects a column's number in a key if the header has this number as the name of another
 * column. */
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
    DT_TRY(
        dt__header_want(header, "data.ignore", config->data.ignore, NULL, true, DT__ROLE_IGNORE));
    DT_TRY(dt__header_want(header, "data.time", config->data.time, NULL, false, DT__ROLE_TIME));
    DT_TRY(dt__header_want(header, "data.group", config->data.group, NULL, false, DT__ROLE_GROUP));
    DT_TRY(
        dt__header_want(header, "data.weight", config->data.weight, NULL, false, DT__ROLE_WEIGHT));
    return dt__header_want(header, "data.label", config->data.label, NULL, true, DT__ROLE_LABEL);
}

static dt_status roles_assign(struct dt__header *header, const struct dt_config *config)
{
    const size_t count = header->cells.count;
    DT_TRY(wants_assign(header));
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
    return roles_assign(header, config);
}

/* Takes the row for a header if a key refers to a column by name; else the cells decide. */
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
    DT_TRY(roles_assign(header, config));
    if (!open || header->names) return DT_OK;
    header->names = dt__header_has_no_numbers(header);
    long long first = 0;
    if (!header->names && cells_count_up(&header->cells, &first))
        dt__warn("%s:%" PRIu64 ": %lld, %lld, %lld ... are taken for values; if they name the "
                 "columns: data.header=yes",
                 lines->name, lines->line, first, first + 1, first + 2);
    return DT_OK;
}
