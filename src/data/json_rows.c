/* Rows of JSON: the check of a whole text, a cursor in it, and rows by place and by name.
 * Source: RFC 8259. */
#include "data/json_rows.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "data/csv.h"

enum { DEEPEST = 1000, LONGEST_TEXT = 1 << 20 };

/* ---- text ----------------------------------------------------------------------------------- */

static void blanks_pass(struct dt__json *json)
{
    while (json->at < json->end &&
           (*json->at == ' ' || *json->at == '\n' || *json->at == '\t' || *json->at == '\r'))
        json->at++;
}

/* Passes the next character behind blanks, if it is this one. */
static bool char_pass(struct dt__json *json, char c)
{
    blanks_pass(json);
    const bool there = json->at < json->end && *json->at == c;
    json->at += there;
    return there;
}

/* What follows passes something over, and gives NULL, or what is wrong where it stands. */

/* Passes a string, from its quote. *escapes, *ascii: what is in it. */
static const char *string_pass(struct dt__json *json, bool *escapes, bool *ascii)
{
    const char *from = ++json->at, *p = from;
    *escapes = false;
    *ascii = true;
    for (; p < json->end && *p != '"'; p++) {
        *ascii &= (unsigned char)*p < 0x80;
        if ((unsigned char)*p < ' ') return "a control character in a text";
        if (*p != '\\' || p + 1 == json->end) continue;
        *escapes = true;
        p++;
    }
    if (p == json->end) return "a text that does not end";
    if (p - from > LONGEST_TEXT) return "a text of more than 1 MiB";
    json->at = p + 1;
    return NULL;
}

static size_t digits_pass(struct dt__json *json)
{
    const char *from = json->at;
    while (json->at < json->end && *json->at >= '0' && *json->at <= '9')
        json->at++;
    return (size_t)(json->at - from);
}

static const char *number_pass(struct dt__json *json)
{
    const char *const end = json->end;
    json->at += json->at < end && *json->at == '-';
    const bool zero = json->at < end && *json->at == '0';
    const size_t digits = digits_pass(json);
    if (!digits || (zero && digits > 1)) return "expected a value";
    if (json->at < end && *json->at == '.') {
        json->at++;
        if (!digits_pass(json)) return "expected a digit";
    }
    if (json->at < end && (*json->at == 'e' || *json->at == 'E')) {
        json->at++;
        json->at += json->at < end && (*json->at == '+' || *json->at == '-');
        if (!digits_pass(json)) return "expected a digit";
    }
    return NULL;
}

static const char *value_pass(struct dt__json *json, int depth, bool check);

/* A list or an object. With `check` texts are too: plain ASCII is good, what has escapes or other
 * bytes is jansson's to judge. */
static const char *items_pass(struct dt__json *json, char close, int depth, bool check)
{
    const char *wrong = NULL;
    json->at++;
    if (depth >= DEEPEST) return "lists too deep";
    if (char_pass(json, close)) return NULL;
    do {
        if (close == '}') {
            blanks_pass(json);
            if (json->at == json->end || *json->at != '"') return "expected a name";
            wrong = value_pass(json, depth, check);
            if (!wrong && !char_pass(json, ':')) return "expected ':'";
        }
        if (!wrong) wrong = value_pass(json, depth + 1, check);
        if (wrong) return wrong;
    } while (char_pass(json, ','));
    if (char_pass(json, close)) return NULL;
    return close == '}' ? "expected ',' or '}'" : "expected ',' or ']'";
}

static const char *value_pass(struct dt__json *json, int depth, bool check)
{
    static const char *const words[] = {"true", "false", "null"};
    blanks_pass(json);
    const char *const from = json->at;
    const size_t left = (size_t)(json->end - from);
    const char first = left ? *from : 0;
    if (first == '[') return items_pass(json, ']', depth, check);
    if (first == '{') return items_pass(json, '}', depth, check);
    if (first == '"') {
        bool escapes, ascii;
        const char *wrong = string_pass(json, &escapes, &ascii);
        if (wrong || !check || (ascii && !escapes)) return wrong;
        json_t *text = json_loadb(from, (size_t)(json->at - from), JSON_DECODE_ANY, NULL);
        json_decref(text);
        if (text) return NULL;
        json->at = from + 1;
        return "a text that is not UTF-8, or an escape that is none";
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t length = strlen(words[i]);
        if (left < length || memcmp(from, words[i], length)) continue;
        json->at += length;
        return NULL;
    }
    return number_pass(json);
}

dt_status dt__json_check(const char *text, size_t length)
{
    struct dt__json json = {text, text + length};
    const char *wrong = value_pass(&json, 0, true), *begin = text;
    int line = 1;
    if (!wrong) blanks_pass(&json);
    if (!wrong && json.at == json.end) return DT_OK;
    for (const char *p = text; p < json.at; p++)
        if (*p == '\n') line++, begin = p + 1;
    return dt_fail(DT_EFORMAT, "not JSON: line %d, column %lld: %s", line,
                   (long long)(json.at - begin) + 1, wrong ? wrong : "something behind the value");
}

/* ---- the cursor ----------------------------------------------------------------------------- */

char dt__json_peek(struct dt__json *json)
{
    while (json->at < json->end && (*json->at <= ' ' || *json->at == ',' || *json->at == ':'))
        json->at++;
    return json->at < json->end ? *json->at : 0;
}

void dt__json_skip(struct dt__json *json)
{
    dt__json_peek(json);
    value_pass(json, 0, false);
}

dt_status dt__json_read_string(struct dt__json *json, struct dt_text *scratch, struct dt__cell *out)
{
    const char *from = json->at;
    bool escapes, ascii;
    string_pass(json, &escapes, &ascii);
    *out = (struct dt__cell){(char *)(uintptr_t)from + 1, (size_t)(json->at - from) - 2};
    if (!escapes) return DT_OK;
    json_t *text = json_loadb(from, (size_t)(json->at - from), JSON_DECODE_ANY, NULL);
    if (!text) return dt_fail(DT_EMEMORY, "out of memory for a text");
    dt_text_clear(scratch);
    dt_status status = dt_text_append(scratch, json_string_value(text), json_string_length(text));
    *out = (struct dt__cell){scratch->data, scratch->length};
    json_decref(text);
    return status;
}

dt_status dt__json_members(struct dt__json object, const char *const *names, size_t count,
                           struct dt__json *out)
{
    struct dt_text scratch = {0};
    struct dt__cell name;
    dt_status status = DT_OK;
    memset(out, 0, count * sizeof *out);
    if (dt__json_peek(&object) != '{') return dt_fail(DT_EFORMAT, "expected a JSON object");
    object.at++;
    while (dt__json_peek(&object) != '}') {
        size_t i = 0;
        DT_GUARD(dt__json_read_string(&object, &scratch, &name));
        while (i < count && !dt__cell_is(name, names[i]))
            i++;
        if (i < count && out[i].at)
            DT_GUARD(dt_fail(DT_EFORMAT, "not JSON: '%s' stands twice", names[i]));
        dt__json_peek(&object);
        const char *from = object.at;
        dt__json_skip(&object);
        if (i < count) out[i] = (struct dt__json){from, object.at};
    }
done:
    dt_text_free(&scratch);
    return status;
}

/* ---- values --------------------------------------------------------------------------------- */

dt_status dt__json_rows_init(struct dt__json_rows *rows, const struct dt__columns *columns,
                             bool exact)
{
    *rows = (struct dt__json_rows){.columns = columns, .exact = exact};
    DT_TRY(dt_alloc(columns->count, sizeof *rows->words, "columns", &rows->words));
    /* fewer names than columns: there are none, or two have one */
    if (!columns->count || columns->names.count < columns->count) return DT_OK;
    return dt_alloc(columns->count, 1, "columns", &rows->seen);
}

void dt__json_rows_free(struct dt__json_rows *rows)
{
    dt_free(rows->seen);
    dt_free(rows->words);
    dt_text_free(&rows->scratch);
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
    dt_real_text(value, real);
    struct dt__cell text = {real, strlen(real)};
    if (strpbrk(real, ".e") || text.length + 3 > DT_REAL_TEXT ||
        dt__dict_find_blank(&column->dict, real, text.length, &code))
        return text;
    memcpy(real + text.length, ".0", 3);
    text.length += 2;
    return text;
}

/* A value that is no list into a column. null is one that is missing. */
static dt_status value_read(struct dt__json_rows *rows, struct dt__json *json, size_t column)
{
    const struct dt__column *item = rows->columns->items ? &rows->columns->items[column] : NULL;
    const bool number = !item || item->kind == DT_COLUMN_NUMBER;
    const char first = dt__json_peek(json), *p = json->at;
    char real[DT_REAL_TEXT];
    struct dt__cell cell;
    double value;
    float single;
    if (number && dt__number_scan(&p, json->end, &value) &&
        (p == json->end || (*p != 'e' && *p != 'E'))) { /* the common case */
        single = (float)value;
        memcpy(&rows->words[column], &single, sizeof single);
        json->at = p;
        return DT_OK;
    }
    if (strchr("[{tf", first)) {
        dt__json_skip(json);
        return dt_fail(DT_EFORMAT, "not a number%s",
                       number ? ""
                              : " or a text: expected it in quotes, as the training data has it");
    }
    if (first == '"') {
        DT_TRY(dt__json_read_string(json, &rows->scratch, &cell));
        if (number && !dt__text_is_missing(cell.text, cell.length))
            return dt_fail(DT_EFORMAT, "'%.*s' is %s", dt__shown(cell.length), cell.text,
                           dt__number_parse(cell.text, cell.length, &value) == DT__NUMBER_GOOD
                               ? "a text: expected a number without quotes"
                               : "not a number");
    } else {
        const char *from = json->at;
        dt__json_skip(json);
        cell = (struct dt__cell){(char *)(uintptr_t)from, (size_t)(json->at - from)};
        if (first == 'n') cell.length = 0;
        if (!number && item->kind == DT_COLUMN_CATEGORY && !rows->columns->hash_bits)
            cell = number_text(item, cell, real);
    }
    if (item)
        return dt__cell_word((struct dt__columns *)(uintptr_t)rows->columns, column, cell.text,
                             cell.length, &rows->words[column]);
    DT_TRY(dt__number_read(cell.text, cell.length, &single));
    memcpy(&rows->words[column], &single, sizeof single);
    return DT_OK;
}

/* In a list of too many or too few, a value that does not suit its column has only slid there. */
dt_status dt__json_values(struct dt__json_rows *rows, struct dt__json *json, size_t column,
                          size_t count)
{
    const struct dt__column *items = rows->columns->items;
    dt_status status = DT_OK;
    size_t values = 0, depth = 0;
    do {
        const char c = dt__json_peek(json);
        if (c == '[' || c == ']') {
            depth += c == '[' ? 1 : (size_t)-1;
            json->at++;
            continue;
        }
        const size_t i = values++;
        if (status || i >= count) {
            dt__json_skip(json);
        } else if ((status = value_read(rows, json, column + i)) && count > 1) {
            const char *name = items ? items[column + i].name : NULL;
            dt_fail_prefix(status, "item %zu%s%s%s: ", i, name ? " (" : "", name ? name : "",
                           name ? ")" : "");
        }
    } while (depth);
    if (values != count && count != rows->columns->count)
        return dt_fail(DT_EFORMAT, "%zu values, expected %zu", values, count);
    if (values != count)
        return dt_fail(DT_EFORMAT, "%zu %s, the model has %zu %s", values,
                       items ? "values" : "numbers", count, items ? "columns" : "features");
    return status;
}

/* ---- rows ----------------------------------------------------------------------------------- */

static dt_status object_read(struct dt__json_rows *rows, struct dt__json *json)
{
    const char *word = rows->exact ? "" : "column ";
    const size_t count = rows->columns->count;
    struct dt__json whole = {0};
    struct dt__cell name;
    uint32_t column;
    size_t keys = 0;
    if (rows->seen) memset(rows->seen, 0, count * sizeof *rows->seen);
    for (json->at++; dt__json_peek(json) != '}'; keys++) {
        DT_TRY(dt__json_read_string(json, &rows->scratch, &name));
        if (!rows->seen || !dt__dict_find(&rows->columns->names, name.text, name.length, &column)) {
            if (dt__cell_is(name, "input")) whole = *json;
            dt__json_skip(json);
            continue;
        }
        const char *known = rows->columns->items[column].name;
        if (rows->seen[column]) return dt_fail(DT_EFORMAT, "%s'%s' stands twice", word, known);
        rows->seen[column] = true;
        dt_status status = dt__json_values(rows, json, column, 1);
        if (status) return dt_fail_prefix(status, "%s'%s': ", word, known);
    }
    json->at++;
    if (whole.at && keys == 1) return dt__json_values(rows, &whole, 0, count);
    if (!rows->seen)
        return dt_fail(DT_EFORMAT,
                       "the model's features have no names, or two have one: expected lists");
    for (size_t c = 0; c < count; c++)
        if (!rows->seen[c])
            return dt_fail(DT_EFORMAT, "%s'%s' is missing", word, rows->columns->items[c].name);
    return DT_OK;
}

dt_status dt__json_row(struct dt__json_rows *rows, struct dt__json *json, struct dt__row *out)
{
    const char first = dt__json_peek(json), *from = json->at;
    const size_t count = rows->columns->count;
    const dt_status status =
        first == '{' ? object_read(rows, json) : dt__json_values(rows, json, 0, count);
    if (!status) return dt__table_row(rows->columns, rows->words, count, out);
    json->at = from;
    dt__json_skip(json);
    return status;
}

dt_status dt__json_flat_row(struct dt__json_rows *rows, struct dt__json *json, struct dt__row *out)
{
    const size_t count = rows->columns->count;
    for (size_t c = 0; c < count; c++) {
        while (dt__json_peek(json) == '[' || *json->at == ']')
            json->at++;
        dt_status status = value_read(rows, json, c);
        if (status) return dt_fail_prefix(status, "item %zu: ", c);
    }
    return dt__table_row(rows->columns, rows->words, count, out);
}
