/* Groups and times of rows, collected in a survey in file order: the keys of a split. */
#ifndef DATA_ROW_KEYS_H
#define DATA_ROW_KEYS_H

#include "text/date.h"
#include "text/text.h"

struct dt__row_keys {
    bool grouped, timed;                                              /* which keys are collected */
    enum { DT__TIMES_OPEN, DT__TIMES_NUMBERS, DT__TIMES_DATES } kind; /* by the first time */
    struct dt__dates dates;                                           /* how dates are written */
    struct dt__dict groups; /* by their texts, or the 8 bytes of a double */
    uint32_t *group;        /* (ngroups) the number of each row's group */
    double *time;           /* (ntimes) in seconds; dates are words until dt__row_keys_finish */
    size_t ngroups, group_capacity, ntimes, time_capacity;
};
void dt__row_keys_free(struct dt__row_keys *keys);

/* Adds the group, or with `times` the time, of the next row: as a text, or as a number. DT_EFORMAT:
 * it is missing; a time is not a number or date, or is written unlike the first. The message begins
 * with the key. DT_EMEMORY. */
dt_status dt__row_keys_add(struct dt__row_keys *keys, bool times, const char *text, size_t length);
dt_status dt__row_keys_add_number(struct dt__row_keys *keys, bool times, double value);

/* Adds the groups (or the times) of a file's `rows` rows from a text file with a value a line.
 * DT_EIO; DT_EFORMAT: "PATH:LINE: ...", or the number of lines differs. */
dt_status dt__row_keys_add_file(struct dt__row_keys *keys, bool times, const char *path,
                                uint64_t rows);

/* Finishes after the last row: dates become seconds. DT_EFORMAT: no row shows whether the day or
 * the month comes first. */
dt_status dt__row_keys_finish(struct dt__row_keys *keys);

#endif
