/* Rows of JSON. */
#include "data/json_row.h"

#include <float.h>
#include <math.h>

#include "data/number.h"

static const char *skip_blanks(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    return p;
}

/* A number as JSON has them: digits in front, none of them a needless 0, and behind a point. */
static bool scan_number(const char **text, const char *end, float *out)
{
    const char *p = *text, *digits = p + (p < end && *p == '-');
    double value;
    if (digits == end || *digits == '.' || !dt__number_scan(&p, end, &value)) return false;
    if (p[-1] == '.' || (*digits == '0' && p > digits + 1 && digits[1] != '.')) return false;
    *out = (float)value;
    *text = p;
    return true;
}

bool dt__json_scan(const char *text, size_t length, size_t n, float *x)
{
    const char *end = text + length, *p = skip_blanks(text, end);
    if (p == end || *p++ != '[') return false;
    for (size_t i = 0; i < n; i++) {
        p = skip_blanks(p, end);
        if (!scan_number(&p, end, &x[i])) return false;
        p = skip_blanks(p, end);
        if (p == end || *p++ != (i + 1 < n ? ',' : ']')) return false;
    }
    return n && skip_blanks(p, end) == end;
}

dt_status dt__json_load(const char *text, size_t length, json_t **out)
{
    json_error_t error;
    json_t *value = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (!value) return dt_fail(DT_EFORMAT, "not JSON: column %d: %s", error.column, error.text);
    *out = value;
    return DT_OK;
}

dt_status dt__json_array(const json_t *value, size_t n, float *x)
{
    if (!json_is_array(value))
        return dt_fail(DT_EFORMAT, "a row is an array of %zu numbers, or {\"instances\": [rows]}",
                       n);
    if (json_array_size(value) != n)
        return dt_fail(DT_EFORMAT, "%zu numbers, the model has %zu features",
                       json_array_size(value), n);
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(value, i);
        double number = json_number_value(item);
        if (!json_is_number(item)) return dt_fail(DT_EFORMAT, "item %zu is not a number", i);
        if (!(fabs(number) <= (double)FLT_MAX))
            return dt_fail(DT_EFORMAT, "item %zu is out of range", i);
        x[i] = (float)number;
    }
    return DT_OK;
}
