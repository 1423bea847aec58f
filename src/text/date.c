/* Dates in text, as numbers. */
#include "text/date.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "text/text.h"

enum { GROUP = 31, SLOTS = 288, SLOT_SECS = 300, DAY_SECS = 86400 };

enum { HOUR = DT__DATE_NUMBERS - 1 }; /* the last number; of times alone, the only one */

static bool are_times_alone(const struct dt__dates *dates)
{
    return dates->between == 'H';
}

const char *dt__date_name(const struct dt__dates *dates, int number)
{
    static const char *const names[DT__DATE_NUMBERS] = {"days", "year", "month", "weekday", "hour"};
    return names[are_times_alone(dates) ? HOUR : number];
}

int dt__dates_numbers(const struct dt__dates *dates)
{
    return are_times_alone(dates) ? 1 : HOUR + dates->times;
}

/* ---- text ----------------------------------------------------------------------------------- */

/* Computes the days since 1970-01-01. Returns false if there is no such day. */
static bool days_of(int year, int month, int day, double *out)
{
    struct tm tm = {.tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day};
    *out = (double)timegm(&tm) / DAY_SECS;
    return tm.tm_mon == month - 1 && tm.tm_mday == day;
}

/* Reads "12:30", "12:30:59.5", "1:30 PM", "12:30Z", "12:30:59+01:00". Returns false for any other
 * text. */
static bool time_read(const char *text, int *secs)
{
    int hour, minute, second = 0, read;
    if (sscanf(text, "%2d:%2d%n:%2d%n%*1[.]%n%*[0-9]%n", &hour, &minute, &read, &second, &read,
               &read, &read) < 2)
        return false;
    text += read;
    text += *text == ' ';
    const char letter = (char)(*text | 32);
    const bool half = (letter == 'a' || letter == 'p') && (text[1] | 32) == 'm';
    if (half && (hour < 1 || hour > 12)) return false;
    if (half) hour = hour % 12 + 12 * (letter == 'p');
    text += 2 * half;
    const size_t zone = !strncmp(text, "UTC", 3) ? 3 : *text == 'Z';
    const bool offset = !zone && *text && strchr("+-", *text);
    if (text[zone] && !(offset && strspn(text + 1, ":0123456789") == strlen(text + 1)))
        return false;
    *secs = (hour * 60 + minute) * 60 + (second < 60 ? second : 59);
    return hour >= 0 && hour < 24 && minute >= 0 && minute < 60 && second >= 0 && second <= 60;
}

struct date {
    int year, group[2], secs; /* group: the two that are not the year, in the order of the text */
    char between;
    bool month_first, day_first; /* which orders are possible */
};

static bool date_read(const char *text, size_t length, struct date *out)
{
    char copy[DT__SHOWN + 1], mark[2], next_mark[2];
    int first, last, read;
    double days;
    struct date date = {0};
    int *const group = date.group;
    dt__text_trim(&text, &length);
    if (length > DT__SHOWN || memchr(text, 0, length)) return false;
    memcpy(copy, text, length);
    copy[length] = 0;
    *out = (struct date){.between = 'H', .month_first = true, .day_first = true};
    const size_t colon = strcspn(copy, ":");
    if (colon <= 2 && time_read(copy, &out->secs)) /* a time alone has two digits of minutes;
                                                    * seconds and a zone may follow */
        return strspn(copy + colon + 1, "0123456789") == 2;
    if (sscanf(copy, "%4d%1[-/.]%2d%1[-/.]%4d%n", &first, mark, &group[0], next_mark, &last,
               &read) < 5)
        return false;
    const bool year_first = first > 31;
    date.year = year_first ? first : last;
    group[1] = year_first ? last : group[0];
    if (!year_first) group[0] = first;
    date.between = year_first ? 'Y' : *mark;
    const bool timed = copy[read] == ' ' || copy[read] == 'T';
    date.month_first = days_of(date.year, group[0], group[1], &days);
    date.day_first = !year_first && days_of(date.year, group[1], group[0], &days);
    *out = date;
    return *mark == *next_mark && date.year >= 1000 && (date.month_first || date.day_first) &&
           (timed ? time_read(copy + read + 1, &out->secs) : !copy[read]);
}

dt_status dt__dates_read(struct dt__dates *dates, bool learning, const char *text, size_t length,
                         uint32_t *out)
{
    struct date date;
    if (!date_read(text, length, &date))
        return dt_fail(DT_EFORMAT,
                       "'%.*s' is not a date: expected 2021-03-04, 4.3.2021 or 3/4/2021, "
                       "with or without a time, or a time alone (13:25)",
                       dt__shown(length), text);
    const int slot = date.secs / SLOT_SECS;
    if (learning && !dates->between) dates->between = date.between;
    const bool same = date.between == dates->between;
    bool fits = same || (!learning && date.between == 'Y' && !are_times_alone(dates));
    if (learning) {
        dates->month_first |= !date.day_first;
        dates->day_first |= !date.month_first;
        dates->times |= slot > 0 || are_times_alone(dates);
        fits &= !dates->month_first || !dates->day_first;
    } else if (same) {
        fits = dates->day_first ? date.day_first : date.month_first;
    }
    if (!fits) {
        char form[DT__DATE_FORM] = "";
        if (!learning) dt__dates_form(dates, form);
        return dt_fail(DT_EFORMAT,
                       "the date '%.*s' has another format than the others of its column%s%s",
                       dt__shown(length), text, learning ? "" : ": expected ", form);
    }
    const bool turned = !learning && !same && dates->day_first;
    const int *group = date.group;
    *out =
        (uint32_t)(((date.year * GROUP + group[turned] - 1) * GROUP + group[!turned] - 1)) * SLOTS +
        (uint32_t)slot;
    if (are_times_alone(dates)) *out = (uint32_t)date.secs;
    return DT_OK;
}

bool dt__dates_decide(struct dt__dates *dates)
{
    if (dates->between == '.' && !dates->month_first) dates->day_first = true;
    const bool ordered = dates->between == 'Y' || are_times_alone(dates);
    return ordered || dates->day_first || dates->month_first;
}

/* ---- numbers -------------------------------------------------------------------------------- */

void dt__dates_put_mean(const struct dt__dates *dates, double mean, float *out)
{
    *out = (float)mean;
    if (are_times_alone(dates)) return;
    const double whole = floor(mean);
    const time_t secs = isnan(mean) ? 0 : (time_t)(whole * DAY_SECS);
    struct tm tm = {0};
    gmtime_r(&secs, &tm);
    const double numbers[DT__DATE_NUMBERS] = {mean, tm.tm_year + 1900, tm.tm_mon + 1,
                                              (tm.tm_wday + 6) % 7 + 1, (mean - whole) * 24};
    for (int i = 0; i < dt__dates_numbers(dates); i++)
        out[i] = (float)(isnan(mean) ? mean : numbers[i]);
}

/* Sets *out to the days of a packed date since 1970-01-01, with the time as their fraction. Returns
 * its year; 0: there is no such day. */
static int packed_days(const struct dt__dates *dates, uint32_t packed, double *out)
{
    const int groups = (int)(packed / SLOTS), first = groups / GROUP % GROUP + 1,
              second = groups % GROUP + 1, year = groups / GROUP / GROUP;
    const bool good =
        days_of(year, dates->day_first ? second : first, dates->day_first ? first : second, out);
    *out += (double)(packed % SLOTS) / SLOTS;
    return good ? year : 0;
}

bool dt__dates_has(const struct dt__dates *dates, uint32_t packed)
{
    double days;
    if (are_times_alone(dates)) return packed <= DAY_SECS;
    const int year = packed_days(dates, packed, &days);
    return year >= 1000 && year <= 9999;
}

double dt__dates_secs(const struct dt__dates *dates, uint32_t packed)
{
    double days;
    if (are_times_alone(dates)) return packed;
    (void)packed_days(dates, packed, &days);
    return rint(days * DAY_SECS);
}

void dt__dates_put(const struct dt__dates *dates, uint32_t packed, float *out)
{
    double days;
    if (are_times_alone(dates)) {
        *out = (float)(packed / 3600.0);
        return;
    }
    (void)packed_days(dates, packed, &days);
    dt__dates_put_mean(dates, days, out);
}

/* ---- the format ----------------------------------------------------------------------------- */

void dt__dates_form(const struct dt__dates *dates, char out[DT__DATE_FORM])
{
    if (are_times_alone(dates)) {
        snprintf(out, DT__DATE_FORM, "H:M");
        return;
    }
    const char c = dates->between == 'Y' ? '-' : dates->between;
    const char *order = dates->between == 'Y' ? "Ymd" : dates->day_first ? "dmY" : "mdY";
    snprintf(out, DT__DATE_FORM, "%c%c%c%c%c%s", order[0], c, order[1], c, order[2],
             dates->times ? " H:M" : "");
}

bool dt__dates_parse_form(const char *form, struct dt__dates *out)
{
    char again[DT__DATE_FORM];
    const bool place = *form && !strchr("YH", *form); /* index of `between`, unless the first
                                                       * character is Y or H */
    const struct dt__dates dates = {.between = !*form ? 'Y' : form[place],
                                    .day_first = *form == 'd',
                                    .month_first = *form == 'm',
                                    .times = strchr(form, 'H') != NULL};
    *out = dates;
    dt__dates_form(&dates, again);
    return dates.between && strchr("YH-/.", dates.between) && !strcmp(form, again);
}
