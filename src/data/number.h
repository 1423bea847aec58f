/* Numbers in text: decimal only, whatever the locale, never NaN or infinite. */
#ifndef DATA_NUMBER_H
#define DATA_NUMBER_H

#include "dtrain/base.h"

/* How much of a text a message shows. */
enum { DT__SHOWN = 40 };
static inline int dt__shown(size_t length)
{
    return length < DT__SHOWN ? (int)length : DT__SHOWN;
}

enum dt__number { DT__NUMBER_GOOD, DT__NUMBER_BAD, DT__NUMBER_NOT_FINITE };

/* Reads text[0..length), blanks around it allowed, as the nearest double. NOT_FINITE: nan, inf, or
 * beyond what a float holds. */
enum dt__number dt__number_parse(const char *text, size_t length, double *out);

/* Whether text is a number, a finite one or not. */
bool dt__text_is_number(const char *text, size_t length);

/* Whether text is empty or one of the words for a value that is not there: NA, NaN, null, ?; blanks
 * around it allowed. */
bool dt__text_is_missing(const char *text, size_t length);

/* What a text is that is no number: a date (2021-03-04, 4/3/21 12:30); a number but for one comma
 * in the place of a point (0,5), which may stand between thousands (1,250); one but for a sign of
 * percent or money at an end, or marks between its thousands (5%, $3, 1,250.5, 1.250,5, 1 250). */
enum dt__text_kind {
    DT__TEXT_PLAIN,
    DT__TEXT_DATE,
    DT__TEXT_COMMA,
    DT__TEXT_COMMA_OR_UNIT,
    DT__TEXT_UNIT,
    DT__TEXT_KINDS
};
enum dt__text_kind dt__text_kind(const char *text, size_t length);

/* Reads the common short form at *text as the nearest double: sign, digits, '.', digits, at most
 * 19 digits without leading zeros and 22 behind the point. Moves *text behind it and returns
 * true, else leaves all as it is; a few such numbers are refused too. */
bool dt__number_scan(const char **text, const char *end, double *out);

/* The same as dt__number_parse with a message: "'abc' is not a number", and of the kinds above how
 * to write it. */
dt_status dt__number_read(const char *text, size_t length, float *out);

#endif
