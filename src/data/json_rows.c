/* Rows of JSON: a reader that goes once through a text, checks what it passes, and hands out its
 * tokens; and rows by place and by name, as it comes to them.
 * Source: RFC 8259. */
#include "data/json_rows.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "data/values.h"

enum { LONGEST_TEXT = 1 << 20 };

/* ---- tokens --------------------------------------------------------------------------------- */

static char json_fail(struct dt__json *json, const char *at, const char *wrong)
{
    json->at = at;
    json->wrong = wrong;
    return 0;
}

/* The next character behind blanks; 0: there is none. */
static char blanks_pass(struct dt__json *json)
{
    while (json->at < json->end &&
           (*json->at == ' ' || *json->at == '\n' || *json->at == '\t' || *json->at == '\r'))
        json->at++;
    return json->at < json->end ? *json->at : 0;
}

/* Plain ASCII is good as it stands, what has escapes or other bytes is jansson's to judge. */
static char text_pass(struct dt__json *json)
{
    const char *const from = json->at + 1, *p = from;
    bool escapes = false, ascii = true;
    for (; p < json->end && *p != '"'; p++) {
        ascii &= (unsigned char)*p < 0x80;
        if ((unsigned char)*p < ' ') return json_fail(json, from, "a control character in a text");
        if (*p != '\\' || p + 1 == json->end) continue;
        escapes = true;
        p++;
    }
    if (p == json->end) return json_fail(json, from, "a text that does not end");
    if (p - from > LONGEST_TEXT) return json_fail(json, from, "a text of more than 1 MiB");
    json->at = p + 1;
    json->token = (struct dt__cell){(char *)(uintptr_t)from, (size_t)(p - from)};
    if (ascii && !escapes) return '"';
    json_t *text = json_loadb(from - 1, (size_t)(p - from) + 2, JSON_DECODE_ANY, NULL);
    dt__text_clear(json->scratch);
    const bool good =
        text && !dt__text_append(json->scratch, json_string_value(text), json_string_length(text));
    json_decref(text);
    if (!good) return json_fail(json, from, "a text that is not UTF-8, or an escape that is none");
    json->token = (struct dt__cell){json->scratch->data, json->scratch->length};
    return '"';
}

static size_t digits_pass(struct dt__json *json)
{
    const char *from = json->at;
    while (json->at < json->end && *json->at >= '0' && *json->at <= '9')
        json->at++;
    return (size_t)(json->at - from);
}

/* The common short form is read where it is checked; it takes 01, .5 and 1. as well. */
static char number_pass(struct dt__json *json)
{
    const char *const from = json->at, *const end = json->end, *p = from;
    json->at += from < end && *from == '-';
    const char *const first = json->at;
    const bool zero = first < end && *first == '0';
    json->scanned = dt__number_scan(&p, end, &json->value) && *first != '.' && p[-1] != '.' &&
                    (!zero || p == first + 1 || first[1] == '.') &&
                    (p == end || (*p != 'e' && *p != 'E'));
    if (json->scanned) {
        json->at = p;
    } else {
        const size_t digits = digits_pass(json);
        if (!digits || (zero && digits > 1)) return json_fail(json, json->at, "expected a value");
        if (json->at < end && *json->at == '.') {
            json->at++;
            if (!digits_pass(json)) return json_fail(json, json->at, "expected a digit");
        }
        if (json->at < end && (*json->at == 'e' || *json->at == 'E')) {
            json->at++;
            json->at += json->at < end && (*json->at == '+' || *json->at == '-');
            if (!digits_pass(json)) return json_fail(json, json->at, "expected a digit");
        }
    }
    json->token = (struct dt__cell){(char *)(uintptr_t)from, (size_t)(json->at - from)};
    return '0';
}

/* A list or an object begins or ends: what closes it is kept in a bit. */
static char bracket_pass(struct dt__json *json, char c)
{
    const bool opens = c == '[' || c == '{';
    json->at++;
    if (opens && json->depth == DT__JSON_DEEPEST)
        return json_fail(json, json->at, "lists too deep");
    json->depth += opens ? 1 : -1;
    const int bit = (json->depth - 1) & 7;
    unsigned char *const bits = &json->objects[json->depth ? (json->depth - 1) / 8 : 0];
    if (opens) *bits = (unsigned char)((*bits & ~(1 << bit)) | (c == '{') << bit);
    json->close = !json->depth ? 0 : *bits >> bit & 1 ? '}' : ']';
    json->place = opens ? DT__JSON_FIRST : DT__JSON_BEHIND;
    return c;
}

char dt__json_next(struct dt__json *json)
{
    static const char *const words[] = {"true", "false", "null"};
    if (json->wrong) return 0;
    char c = blanks_pass(json);
    if (json->place == DT__JSON_BEHIND && !json->depth)
        return json->at < json->end ? json_fail(json, json->at, "something behind the value") : 0;
    if (json->place != DT__JSON_VALUE && c == json->close) return bracket_pass(json, c);
    if (json->place == DT__JSON_BEHIND) {
        if (c != ',')
            return json_fail(json, json->at,
                             json->close == '}' ? "expected ',' or '}'" : "expected ',' or ']'");
        json->at++;
        c = blanks_pass(json);
    }
    if (json->close == '}' && json->place != DT__JSON_VALUE) {
        if (c != '"') return json_fail(json, json->at, "expected a name");
        if (!text_pass(json)) return 0;
        if (blanks_pass(json) != ':') return json_fail(json, json->at, "expected ':'");
        json->at++;
        json->place = DT__JSON_VALUE;
        return ':';
    }
    if (c == '[' || c == '{') return bracket_pass(json, c);
    json->place = DT__JSON_BEHIND;
    if (c == '"') return text_pass(json);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t length = strlen(words[i]);
        if (c != *words[i] || (size_t)(json->end - json->at) < length ||
            memcmp(json->at, words[i], length) != 0)
            continue;
        json->token = (struct dt__cell){(char *)(uintptr_t)json->at, length};
        json->at += length;
        return c;
    }
    return number_pass(json);
}

void dt__json_begin(struct dt__json *json, const char *text, size_t length, struct dt_text *scratch)
{
    *json = (struct dt__json){.begin = text, .at = text, .end = text + length, .scratch = scratch};
}

size_t dt__json_pass(struct dt__json *json, char token)
{
    const int outer = json->depth - (token == '[' || token == '{');
    int object = 0; /* how deep the one is that is passed */
    size_t values = 0;
    for (; token; token = dt__json_next(json)) {
        values += !object && token != '[' && token != ']';
        if (!object && token == '{') object = json->depth;
        if (json->depth < object) object = 0;
        if (json->depth == outer) break;
    }
    return values;
}

dt_status dt__json_finish(struct dt__json *json)
{
    const char *begin = json->begin;
    int line = 1;
    while (dt__json_next(json))
        ;
    if (!json->wrong) return DT_OK;
    for (const char *p = begin; p < json->at; p++)
        if (*p == '\n') line++, begin = p + 1;
    return dt_fail(DT_EFORMAT, "not JSON: line %d, column %lld: %s", line,
                   (long long)(json->at - begin) + 1, json->wrong);
}

dt_status dt__json_members(struct dt__json *json, char token, const char *const *names,
                           size_t count, struct dt__json *out)
{
    memset(out, 0, count * sizeof *out);
    if (token != '{') return dt_fail(DT_EFORMAT, "expected a JSON object");
    while (dt__json_next(json) == ':') {
        size_t i = 0;
        while (i < count && !dt__cell_is(json->token, names[i]))
            i++;
        if (i < count && out[i].at)
            return dt_fail(DT_EFORMAT, "not JSON: '%s' stands twice", names[i]);
        if (i < count) out[i] = *json;
        dt__json_pass(json, dt__json_next(json));
    }
    return DT_OK;
}

/* ---- values --------------------------------------------------------------------------------- */

dt_status dt__json_rows_init(struct dt__json_rows *rows, const struct dt__columns *columns,
                             bool exact)
{
    *rows = (struct dt__json_rows){.columns = columns, .exact = exact};
    /* fewer names than columns: there are none, or two have one */
    if (!columns->count || columns->names.count < columns->count) return DT_OK;
    return dt__alloc(columns->count, 1, "columns", &rows->seen);
}

void dt__json_rows_free(struct dt__json_rows *rows)
{
    dt_free(rows->seen);
    dt__text_free(&rows->scratch);
}

/* A number of JSON as the text that a category has for it: as it stands; its shortest, 0.1 for
 * 1e-1; or with what JavaScript leaves out, 1.0 for 1. */
static struct dt__cell number_text(const struct dt__column *column, struct dt__cell word,
                                   char real[DT_REAL_TEXT])
{
    double value;
    uint32_t code;
    if (dt__dict_find_blank(&column->dict, word.text, word.length, &code) ||
        dt__number_parse(word.text, word.length, &value) != DT__NUMBER_GOOD)
        return word;
    dt__real_text(value, real);
    struct dt__cell text = {real, strlen(real)};
    if (strpbrk(real, ".e") || text.length + 3 > DT_REAL_TEXT ||
        dt__dict_find_blank(&column->dict, real, text.length, &code))
        return text;
    memcpy(real + text.length, ".0", 3);
    text.length += 2;
    return text;
}

/* The last token into a column. null is a value that is missing. */
static dt_status value_read(const struct dt__json_rows *rows, const struct dt__json *json,
                            char token, size_t column, uint32_t *word)
{
    const struct dt__column *item = rows->columns->items ? &rows->columns->items[column] : NULL;
    const bool number = !item || item->kind == DT_COLUMN_NUMBER;
    struct dt__cell cell = json->token;
    char real[DT_REAL_TEXT];
    double value;
    float single;
    if (number && token == '0' && json->scanned) { /* the common case */
        single = (float)json->value;
        memcpy(word, &single, sizeof single);
        return DT_OK;
    }
    if (token == '{' || token == 't' || token == 'f')
        return dt_fail(DT_EFORMAT, "not a number%s",
                       number ? ""
                              : " or a text: expected it in quotes, as the training data has it");
    if (token == 'n') cell.length = 0;
    if (token == '"' && number && !dt__text_is_missing(cell.text, cell.length))
        return dt_fail(DT_EFORMAT, "'%.*s' is %s", dt__shown(cell.length), cell.text,
                       dt__number_parse(cell.text, cell.length, &value) == DT__NUMBER_GOOD
                           ? "a text: expected a number without quotes"
                           : "not a number");
    if (token != '"' && !number && item->kind == DT_COLUMN_CATEGORY && !rows->columns->hash_bits)
        cell = number_text(item, cell, real);
    if (item)
        return dt__cell_word((struct dt__columns *)(uintptr_t)rows->columns, column, cell.text,
                             cell.length, word);
    DT_TRY(dt__number_read(cell.text, cell.length, &single));
    memcpy(word, &single, sizeof single);
    return DT_OK;
}

/* In a list of too many or too few, a value that does not suit its column has only slid there. */
dt_status dt__json_values(const struct dt__json_rows *rows, struct dt__json *json, char token,
                          size_t column, size_t count, uint32_t *words)
{
    const struct dt__column *items = rows->columns->items;
    const int outer = json->depth - (token == '[' || token == '{');
    dt_status status = DT_OK;
    size_t values = 0;
    for (; token; token = dt__json_next(json)) {
        if (token != '[' && token != ']') {
            const size_t i = values++;
            if (!status && i < count &&
                (status = value_read(rows, json, token, column + i, words + i)) && count > 1) {
                const char *name = items ? items[column + i].name : NULL;
                dt_fail_prefix(status, "item %zu%s%s%s: ", i, name ? " (" : "", name ? name : "",
                               name ? ")" : "");
            }
            if (token == '{') dt__json_pass(json, token);
        }
        if (json->depth == outer) break;
    }
    if (values != count && count != rows->columns->count)
        return dt_fail(DT_EFORMAT, "%zu values, expected %zu", values, count);
    if (values != count)
        return dt_fail(DT_EFORMAT, "%zu %s, the model has %zu %s", values,
                       items ? "values" : "numbers", count, items ? "columns" : "features");
    return status;
}

/* ---- rows ----------------------------------------------------------------------------------- */

dt_status dt__json_row(const struct dt__json_rows *rows, struct dt__json *json, char token,
                       uint32_t *words)
{
    const char *word = rows->exact ? "" : "column ";
    const size_t count = rows->columns->count;
    const int depth = json->depth - 1;
    struct dt__json whole = {0};
    uint32_t column;
    size_t keys = 0;
    dt_status status = DT_OK;
    if (token != '{') return dt__json_values(rows, json, token, 0, count, words);
    if (rows->seen) memset(rows->seen, 0, count * sizeof *rows->seen);
    for (; dt__json_next(json) == ':'; keys++) {
        const struct dt__cell name = json->token;
        if (!rows->seen ||
            !dt__dict_find_blank(&rows->columns->names, name.text, name.length, &column)) {
            if (dt__cell_is(name, "input")) whole = *json;
            dt__json_pass(json, dt__json_next(json));
            continue;
        }
        const char *known = rows->columns->items[column].name;
        if (rows->seen[column]) DT_GUARD(dt_fail(DT_EFORMAT, "%s'%s' stands twice", word, known));
        rows->seen[column] = true;
        status = dt__json_values(rows, json, dt__json_next(json), column, 1, words + column);
        if (status) DT_GUARD(dt_fail_prefix(status, "%s'%s': ", word, known));
    }
    if (whole.at && keys == 1)
        return dt__json_values(rows, &whole, dt__json_next(&whole), 0, count, words);
    if (!rows->seen)
        return dt_fail(DT_EFORMAT,
                       "the model's features have no names, or two have one: expected lists");
    for (size_t c = 0; c < count; c++)
        if (!rows->seen[c])
            return dt_fail(DT_EFORMAT, "%s'%s' is missing", word, rows->columns->items[c].name);
done:
    while (json->depth > depth && dt__json_next(json))
        ;
    return status;
}
