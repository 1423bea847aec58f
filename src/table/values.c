/* Converts the text of a cell by the kind of its column, and the words of a row to features. */
#include "table/values.h"

#include <string.h>

/* Determines a column's kind from its first value. */
static dt_status column_open(struct dt__columns *columns, struct dt__column *column,
                             const char *text, size_t length)
{
    uint32_t number;
    column->kind = DT_COLUMN_NUMBER;
    if (dt__text_is_number(text, length)) return DT_OK;
    const enum dt__text_kind kind = dt__text_kind(text, length);
    if (kind == DT__TEXT_DATE && columns->take_dates) column->kind = DT_COLUMN_DATE;
    if (column->kind == DT_COLUMN_DATE || !columns->take_texts) return DT_OK;
    if (kind == DT__TEXT_DATE)
        return dt_fail(DT_EFORMAT,
                       "'%.*s' is a date: leave the column out with data.ignore, or make numbers "
                       "of it with data.dates=auto",
                       dt__shown(length), text);
    if (kind) return DT_OK; /* looks like a number: reading it will fail */
    column->kind = DT_COLUMN_CATEGORY;
    for (uint64_t i = 0; i < column->missing && !columns->hash_bits; i++)
        DT_TRY(dt__dict_add(&column->dict, "", 0, &number));
    return DT_OK;
}

static dt_status missing_fail(bool learning, const char *text, size_t length)
{
    return dt_fail(DT_EFORMAT, "%s%.*s%s%s", length ? "'" : "a value is missing", dt__shown(length),
                   text, length ? "' is a missing value" : "",
                   learning ? "; data.missing=mean takes the column's mean (for texts, a category "
                              "for gaps)"
                            : ", and the model was trained with data.missing=error: "
                              "data.missing=mean or flag in training takes it");
}

/* Extends the error for a malformed number: a column of names may begin with numbers. */
static dt_status number_fail(const struct dt__columns *columns, const struct dt__column *column,
                             const char *text, size_t length, dt_status status)
{
    char place[DT__PLACE_SIZE];
    double number;
    if (!columns->learning || !columns->take_texts || !column->name ||
        dt__number_parse(text, length, &number) == DT__NUMBER_NOT_FINITE)
        return status;
    dt__column_listed(column, place);
    return dt_fail(status, "%s. Or, if the column holds names and no amounts: data.categories=%s",
                   dt_error_text(), place);
}

dt_status dt__cell_word(struct dt__columns *columns, size_t index, const char *text, size_t length,
                        uint32_t *out)
{
    struct dt__column *column = &columns->items[index];
    uint32_t known; /* unused; a text that training has seen is no gap, whatever it looks like */
    float value;
    dt_status status = DT_OK;
    const bool missing = dt__text_is_missing(text, length) &&
                         (columns->learning || column->kind != DT_COLUMN_CATEGORY || !length ||
                          !dt__dict_find(&column->dict, text, length, &known));
    if (columns->learning) column->falls |= column->kind != DT__COLUMN_OPEN;
    if (missing && columns->missing == DT_MISSING_ERROR)
        return missing_fail(columns->learning, text, length);
    if (column->kind == DT__COLUMN_OPEN && !missing)
        DT_TRY(column_open(columns, column, text, length));
    if (column->kind == DT_COLUMN_CATEGORY) {
        if (length && memchr(text, 0, length)) return dt_fail(DT_EFORMAT, "a zero byte in a text");
        if (columns->learning && !columns->hash_bits) {
            dt__text_trim(&text, &length);
            DT_TRY(dt__dict_add(&column->dict, text, missing ? 0 : length, out));
        } else if (!missing) {
            *out = dt__column_code(columns, index, text, length);
        }
    } else if (missing) {
        if (columns->learning) column->missing++;
    } else if (column->kind == DT_COLUMN_DATE) {
        status = dt__dates_read(&column->dates, columns->learning, text, length, out);
    } else if (!(status = dt__number_read(text, length, &value))) {
        memcpy(out, &value, sizeof value);
    }
    if (missing) *out = DT__MISSING;
    return status ? number_fail(columns, column, text, length, status) : DT_OK;
}

dt_status dt__table_row(const struct dt__columns *columns, const uint32_t *words, size_t count,
                        const struct dt__row_layout *layout, struct dt__block *out)
{
    (void)count; /* the words after those of the columns belong to further targets */
    unsigned char *const x = dt__block_add_zeros(layout, out);
    const struct dt__column *const items = columns->items;
    /* A local n spares a load per column: the compiler must assume that a write to x may change
     * it. */
    for (size_t c = 0, n = columns->count; c < n; c++) {
        const struct dt__column *column = items ? &items[c] : NULL;
        const size_t feature = column ? (size_t)column->first : c;
        const bool missing = column && words[c] == DT__MISSING;
        float value;
        memcpy(&value, &words[c], sizeof value);
        if (missing) value = column->fill;
        if (missing && column->flag) DT_TRY(dt__block_put(layout, out, x, (size_t)column->flag, 1));
        if (column && column->kind == DT_COLUMN_CATEGORY) {
            const uint32_t code = dt__column_word_code(column, words[c]);
            DT_TRY(dt__block_put(layout, out, x, feature + code, 1));
        } else if (!column || column->kind != DT_COLUMN_DATE) {
            DT_TRY(dt__block_put(layout, out, x, feature, value));
        } else {
            float *const numbers = (float *)(void *)x + feature;
            if (missing)
                dt__dates_put_mean(&column->dates, (double)value, numbers);
            else
                dt__dates_put(&column->dates, words[c], numbers);
        }
    }
    return DT_OK;
}
