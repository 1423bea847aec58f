/* Numbers in text: decimal only, whatever the locale, never NaN or infinite. */
#ifndef DATA_NUMBER_H
#define DATA_NUMBER_H

#include "dtrain/base.h"

enum dt__number { DT__NUMBER_GOOD, DT__NUMBER_BAD, DT__NUMBER_NOT_FINITE };

/* Reads text[0..length), blanks around it allowed, as the nearest double. NOT_FINITE: nan, inf, or
 * beyond what a float holds. */
enum dt__number dt__number_parse(const char *text, size_t length, double *out);

/* Reads the common short form at *text: sign, digits, '.', digits, at most 15 digits in all. Moves
 * *text behind it and returns true, else leaves all as it is. Exact: 15 digits and a power of ten
 * up to 1e15 are doubles, and one division rounds once. */
bool dt__number_scan(const char **text, const char *end, double *out);

/* The same as dt__number_parse with a message: "'abc' is not a number". */
dt_status dt__number_read(const char *text, size_t length, float *out);

#endif
