/* Dates in text, as numbers: the days since 1970-01-01, with the time as their fraction; year;
 * month (1 to 12); weekday (Monday is 1); and, if some time of the column is not 0:00, the hour.
 * Times without a date give only the hour. The time of a date is rounded down to 5 minutes; a time
 * zone is ignored.
 *
 * If a date starts with the year, month and day follow. For other dates, some row must show the
 * order of day and month. Until the whole column has been read, a date is packed, with day and
 * month as two groups in the order of the text:
 *
 *     date    ((year * 31 + group - 1) * 31 + group - 1) * 288 + time / 5 minutes    < 2^32 - 1
 *     time    seconds */
#ifndef TEXT_DATE_H
#define TEXT_DATE_H

#include "base/base.h"

enum { DT__DATE_NUMBERS = 5, DT__DATE_FORM = 10 };

/* The format of a column's dates; zeros: no date was seen. */
struct dt__dates {
    char between;                /* the character between day, month and year; 'Y': the year is
                                  * first; 'H': times alone; 0: no date was seen */
    bool day_first, month_first; /* some date shows that the day (the month) is first */
    /* some time is not 0:00 */
    bool times;
};

/* Returns the name of number `number` of a column. */
const char *dt__date_name(const struct dt__dates *dates, int number);
/* Returns how many numbers a date of the column gives. */
int dt__dates_numbers(const struct dt__dates *dates);

/* Reads a date into its packed form. If `learning`, the date must have the same format as the dates
 * before it, and `dates` learns from it. Else it must have the format of the column, or start with
 * the year. DT_EFORMAT: not a date, or another format. */
dt_status dt__dates_read(struct dt__dates *dates, bool learning, const char *text, size_t length,
                         uint32_t *out);
/* Decides the order of day and month, after the last date. In d.m.Y the day is first, unless a date
 * shows the contrary. Returns false if the order is not known. */
bool dt__dates_decide(struct dt__dates *dates);
/* Returns true if `packed` is a date of the column. */
bool dt__dates_has(const struct dt__dates *dates, uint32_t packed);
/* Writes the numbers of a packed date. */
void dt__dates_put(const struct dt__dates *dates, uint32_t packed, float *out);
/* Writes the numbers of a column's mean: of the mean days or, for times alone, hour. NaN: all
 * numbers are NaN. */
void dt__dates_put_mean(const struct dt__dates *dates, double mean, float *out);

/* Returns the seconds of a packed date since 1970-01-01 or, for times alone, since 0:00. */
double dt__dates_secs(const struct dt__dates *dates, uint32_t packed);

/* Writes the format as a text: Y-m-d, d.m.Y, m/d/Y H:M, H:M. */
void dt__dates_form(const struct dt__dates *dates, char out[DT__DATE_FORM]);
/* Reads the format back. Returns false if the text is not a format. */
bool dt__dates_parse_form(const char *form, struct dt__dates *out);

#endif
