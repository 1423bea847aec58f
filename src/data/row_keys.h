/* Groups and times of rows. A survey collects them in file order, and the split uses them. */
#ifndef DATA_ROW_KEYS_H
#define DATA_ROW_KEYS_H

#include "text/date.h"
#include "text/text.h"

struct dt__row_keys {
    bool grouped, timed; /* groups are collected; times are collected */
    enum { DT__TIMES_OPEN, DT__TIMES_NUMBERS, DT__TIMES_DATES } kind; /* the first time decides */
    struct dt__dates dates;                                           /* the format of dates */
    struct dt__dict groups; /* names of groups: texts, or numbers as the 8 bytes of a double */
    uint32_t *group;        /* (ngroups) number of each row's group */
    double *time;           /* (ntimes) seconds; dates are packed until dt__row_keys_finish */
    size_t ngroups, group_capacity, ntimes, time_capacity;
};
void dt__row_keys_free(struct dt__row_keys *keys);

/* Adds the group of the next row or, with `times`, the time of the next row. DT_EFORMAT: the value
 * is missing; or a time is neither a number nor a date, or has another format than the first time.
 * The message begins with the key (data.group or data.time). DT_EMEMORY. */
dt_status dt__row_keys_add(struct dt__row_keys *keys, bool times, const char *text, size_t length);
/* Adds the group or, with `times`, the time of the next row, given as a number. DT_EFORMAT: it is
 * not finite. DT_EMEMORY. */
dt_status dt__row_keys_add_number(struct dt__row_keys *keys, bool times, double value);

/* Adds the groups or, with `times`, the times of all `rows` rows of a data file. Reads them from
 * the text file `path`, one value per line. DT_EIO; DT_EFORMAT: "PATH:LINE: ..."; DT_EMISMATCH: the
 * number of lines is not `rows`. */
dt_status dt__row_keys_add_file(struct dt__row_keys *keys, bool times, const char *path,
                                uint64_t rows);

/* Converts dates to seconds, after the last row. DT_EFORMAT: no row shows whether the day or the
 * month comes first. */
dt_status dt__row_keys_finish(struct dt__row_keys *keys);

#endif
