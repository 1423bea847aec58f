/* Dates in text, as numbers: days since 1970-01-01 with the time as their fraction, year, month (1
 * to 12), weekday (Monday is 1), and the hour if some time is not 0:00. Times without a date are
 * the hour alone. The time of a date is rounded down to 5 minutes; a time zone is ignored.
 *
 * If the year is first, month and day follow. For other dates some row must show the order of day
 * and month; until the whole column has been read, a date is a word that encodes its groups of
 * digits:
 *
 *     word    ((year * 31 + group - 1) * 31 + group - 1) * 288 + 5 minutes        below 2^32 - 1
 *             seconds                                                            of times alone */
#ifndef TEXT_DATE_H
#define TEXT_DATE_H

#include "base/base.h"

enum { DT__DATE_NUMBERS = 5, DT__DATE_FORM = 10 };

/* The form of a column's dates; zeros: no date has been seen. */
struct dt__dates {
    char between; /* day, month and year; 'Y': the year is first; 'H': times alone; 0: no date
                   * yet */
    bool day_first, month_first; /* a date has shown the order */
    bool times;
};

/* Returns the name of a column's number. */
const char *dt__date_name(const struct dt__dates *dates, int number);
/* Returns the count of numbers that a column has. */
int dt__dates_numbers(const struct dt__dates *dates);

/* Reads a date. If `learning`, the date must have the form of the earlier ones, and updates
 * `dates`; else it must have the form of the column, or the year first. DT_EFORMAT: not a date, or
 * another form. */
dt_status dt__dates_read(struct dt__dates *dates, bool learning, const char *text, size_t length,
                         uint32_t *out);
/* Returns true if the order of day and month is known; it always is for d.m.Y. */
bool dt__dates_decide(struct dt__dates *dates);
/* Returns true if `packed` is a date of the column. */
bool dt__dates_has(const struct dt__dates *dates, uint32_t packed);
/* Writes the numbers of a packed date; dt__dates_put_mean those of a mean of the first number, days
 * or the hour (NaN: all are NaN). */
void dt__dates_put(const struct dt__dates *dates, uint32_t packed, float *out);
void dt__dates_put_mean(const struct dt__dates *dates, double mean, float *out);

/* Returns the seconds of a packed date since 1970-01-01 or, for times alone, since 0:00. */
double dt__dates_secs(const struct dt__dates *dates, uint32_t packed);

/* Writes the form as a text: Y-m-d, d.m.Y, m/d/Y H:M, H:M; dt__dates_parse_form reads it back and
 * returns false if it is not a form. */
void dt__dates_form(const struct dt__dates *dates, char out[DT__DATE_FORM]);
bool dt__dates_parse_form(const char *form, struct dt__dates *out);

#endif
