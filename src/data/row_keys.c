/* Groups and times of rows. Groups are numbered in order of appearance; times are doubles. */
#include "data/row_keys.h"

#include <inttypes.h>
#include <math.h>

#include "text/input.h"

void dt__row_keys_free(struct dt__row_keys *keys)
{
    dt__dict_free(&keys->groups);
    dt_free(keys->group);
    dt_free(keys->time);
    *keys = (struct dt__row_keys){0};
}

static dt_status group_add(struct dt__row_keys *keys, const void *bytes, size_t length)
{
    uint32_t number;
    DT_TRY(dt__dict_add(&keys->groups, bytes, length, &number));
    DT_TRY(
        dt__grow(&keys->group, &keys->group_capacity, keys->ngroups + 1, sizeof number, "groups"));
    keys->group[keys->ngroups++] = number;
    return DT_OK;
}

static dt_status time_add(struct dt__row_keys *keys, double value)
{
    DT_TRY(dt__grow(&keys->time, &keys->time_capacity, keys->ntimes + 1, sizeof value, "times"));
    keys->time[keys->ntimes++] = value;
    return DT_OK;
}

/* Adds a time given as text: a number of seconds, or a date, which is stored in packed form until
 * dt__row_keys_finish. */
static dt_status time_parse(struct dt__row_keys *keys, const char *text, size_t length)
{
    double value;
    uint32_t packed;
    const bool number = dt__number_parse(text, length, &value) == DT__NUMBER_GOOD;
    if (!keys->kind) keys->kind = number ? DT__TIMES_NUMBERS : DT__TIMES_DATES;
    if (number != (keys->kind == DT__TIMES_NUMBERS))
        return dt_fail(DT_EFORMAT, "data.time: '%.*s' is %s number, unlike the times before it",
                       dt__shown(length), text, number ? "a" : "not a");
    if (number) return time_add(keys, value);
    const dt_status status = dt__dates_read(&keys->dates, true, text, length, &packed);
    return status ? dt_fail_prefix(status, "data.time: ") : time_add(keys, packed);
}

dt_status dt__row_keys_add(struct dt__row_keys *keys, bool times, const char *text, size_t length)
{
    dt__text_trim(&text, &length);
    if (dt__text_is_missing(text, length))
        return dt_fail(DT_EFORMAT, "%s is missing ('%.*s')",
                       times ? "data.time: the time" : "data.group: the group", dt__shown(length),
                       text);
    return times ? time_parse(keys, text, length) : group_add(keys, text, length);
}

dt_status dt__row_keys_add_number(struct dt__row_keys *keys, bool times, double value)
{
    if (!isfinite(value))
        return dt_fail(DT_EFORMAT, "%s is missing (%g)",
                       times ? "data.time: the time" : "data.group: the group", value);
    value += 0; /* turns -0 into 0, so that both are one group */
    return times ? time_add(keys, value) : group_add(keys, &value, sizeof value);
}

dt_status dt__row_keys_add_file(struct dt__row_keys *keys, bool times, const char *path,
                                uint64_t rows)
{
    struct dt__lines lines = {0};
    char *text = NULL;
    size_t length;
    uint64_t count = 0;
    DT_TRY(dt__lines_open(&lines, path));
    dt__lines_release(&lines, false);
    dt_status status = dt__lines_next(&lines, false, &text, &length);
    for (; !status && text; count++) {
        status = dt__row_keys_add(keys, times, text, length);
        if (status) dt_fail_prefix(status, "%s:%" PRIu64 ": ", path, lines.line);
        if (!status) status = dt__lines_next(&lines, false, &text, &length);
    }
    dt__lines_close(&lines);
    if (status || count == rows) return status;
    return dt_fail(DT_EMISMATCH, "%s: %" PRIu64 " lines for %" PRIu64 " rows of data", path, count,
                   rows);
}

dt_status dt__row_keys_finish(struct dt__row_keys *keys)
{
    if (keys->kind != DT__TIMES_DATES) return DT_OK;
    if (!dt__dates_decide(&keys->dates))
        return dt_fail(DT_EFORMAT, "data.time: no row shows whether the day or the month comes "
                                   "first; expected dates such as 2021-03-04");
    for (size_t i = 0; i < keys->ntimes; i++)
        keys->time[i] = dt__dates_secs(&keys->dates, (uint32_t)keys->time[i]);
    keys->kind = DT__TIMES_NUMBERS;
    return DT_OK;
}
