/* Rows of JSON, by position or by name. Values are read in the order of the text. */
#include "data/json_rows.h"

#include <string.h>

#include "table/values.h"

/* ---- values --------------------------------------------------------------------------------- */

dt_status dt__json_rows_init(struct dt__json_rows *rows, const struct dt__columns *columns,
                             bool exact)
{
    *rows = (struct dt__json_rows){.columns = columns, .exact = exact};
    /* without distinct names, objects cannot name columns */
    if (!columns->count || columns->names.count < columns->count) return DT_OK;
    return dt__alloc(columns->count, 1, "columns", &rows->seen);
}

void dt__json_rows_free(struct dt__json_rows *rows)
{
    dt_free(rows->seen);
    dt__text_free(&rows->scratch);
}

/* Returns the text by which to look up a JSON number in a column of categories: as it is written,
 * if the dictionary has that text; else its shortest form, 0.1 for 1e-1, if it has that or the
 * number is not whole; else the shortest form with ".0", which JavaScript leaves out. */
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

/* Reads the current token as a value of a column. null is a missing value. */
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
                       number ? "" : " or a text: expected it in quotes, as in the training data");
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

/* Reports a wrong number of values rather than a wrong value, because in a list with a wrong number
 * of values these are probably in the wrong places. */
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
        if (rows->seen[column]) DT_GUARD(dt_fail(DT_EFORMAT, "%s'%s' appears twice", word, known));
        rows->seen[column] = true;
        status = dt__json_values(rows, json, dt__json_next(json), column, 1, words + column);
        if (status) DT_GUARD(dt_fail_prefix(status, "%s'%s': ", word, known));
    }
    if (whole.at && keys == 1)
        return dt__json_values(rows, &whole, dt__json_next(&whole), 0, count, words);
    if (!rows->seen)
        return dt_fail(
            DT_EFORMAT,
            "the model's features have no names, or two have the same name; expected lists");
    for (size_t c = 0; c < count; c++)
        if (!rows->seen[c])
            return dt_fail(DT_EFORMAT, "%s'%s' is missing", word, rows->columns->items[c].name);
done:
    while (json->depth > depth && dt__json_next(json))
        ;
    return status;
}
