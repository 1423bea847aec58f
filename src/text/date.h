/* Dates in text, as numbers: days since 1970-01-01 with the time as their fraction, year, month (1
 * to 12), weekday (Monday is 1), and the hour where times are not all 0:00. Times without a date
 * are the hour alone. Behind a date, times are rounded down to 5 minutes; a zone is not looked at.
 *
 * A year in front is followed by month and day. Of other dates one column must show which order it
 * has: until all of it has been seen, a date is a word of its groups of digits.
 *
 *     word    ((year * 31 + group - 1) * 31 + group - 1) * 288 + 5 minutes        below 2^32 - 1
 *             seconds                                                            of times alone */
#ifndef TEXT_DATE_H
#define TEXT_DATE_H

#include "base/base.h"

enum { DT__DATE_NUMBERS = 5, DT__DATE_FORM = 10 };

/* How a column writes its dates; zeros: none was seen. */
struct dt__dates {
    char between; /* day, month and year; 'Y': the year is in front; 'H': times alone; 0: nothing
                   * was seen */
    bool day_first, month_first; /* a date has shown it */
    bool times;
};

/* The name of a column's number. */
const char *dt__date_name(const struct dt__dates *dates, int number);
/* How many of them a column has. */
int dt__dates_numbers(const struct dt__dates *dates);

/* Reads a date. Learning: as those before it, and notes what it shows; else as the column writes
 * them, or with the year in front. DT_EFORMAT: no date; unlike the others. */
dt_status dt__dates_read(struct dt__dates *dates, bool learning, const char *text, size_t length,
                         uint32_t *out);
/* Whether the order of day and month is known; d.m.Y has it anyway. */
bool dt__dates_settle(struct dt__dates *dates);
/* Whether a word is a date of the column. */
bool dt__dates_has(const struct dt__dates *dates, uint32_t word);
/* The numbers of a word, or of a mean of the first number, days or the hour (NaN: all are NaN). */
void dt__dates_put(const struct dt__dates *dates, uint32_t word, float *out);
void dt__dates_put_mean(const struct dt__dates *dates, double mean, float *out);

/* The form as a text: Y-m-d, d.m.Y, m/d/Y H:M, H:M; and back. False: it is none. */
void dt__dates_form(const struct dt__dates *dates, char out[DT__DATE_FORM]);
bool dt__dates_parse_form(const char *form, struct dt__dates *out);

#endif
