/* Numbers in text. */
#include "data/number.h"

#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "data/names.h"

enum { LONGEST = 400, SHORT_DIGITS = 19 };

/* digits / 10^places, rounded once; false: not by this way. Digits below 2^53 are doubles, and
 * so are powers up to 1e22. More digits are divided with the 64 bits of a long double, and what
 * ends half-way between two doubles there is left to others.
 * Source: Clinger 1990, "How to read floating point numbers accurately", section 5. */
static bool digits_divide(uint64_t digits, size_t places, double *out)
{
    static const double power[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (places >= sizeof power / sizeof *power) return false;
    if (digits <= UINT64_C(1) << 53) {
        *out = (double)digits / power[places];
        return true;
    }
#if LDBL_MANT_DIG == 64
    long double quotient = (long double)digits / (long double)power[places];
    uint64_t bits;
    memcpy(&bits, &quotient, sizeof bits);
    *out = (double)quotient;
    return (bits & 0x7ff) != 0x400;
#else
    return false;
#endif
}

static const char *digits_scan(const char *p, const char *end, uint64_t *digits)
{
    for (; p < end && (unsigned char)(*p - '0') < 10; p++)
        *digits = *digits * 10 + (uint64_t)(*p - '0');
    return p;
}

bool dt__number_scan(const char **text, const char *end, double *out)
{
    bool negative = *text < end && **text == '-';
    const char *first = *text + negative, *point = NULL;
    uint64_t digits = 0;
    double value;
    const char *p = digits_scan(first, end, &digits);
    if (p < end && *p == '.') {
        point = p + 1;
        p = digits_scan(point, end, &digits);
    }
    ptrdiff_t count = p - first - (point != NULL);
    for (; count > SHORT_DIGITS && (*first == '0' || *first == '.'); first++)
        count -= *first == '0';
    if (count < 1 || count > SHORT_DIGITS) return false;
    if (!digits_divide(digits, point ? (size_t)(p - point) : 0, &value)) return false;
    *out = negative ? -value : value;
    *text = p;
    return true;
}

static bool text_is_word(const char *const *words, const char *text, size_t length)
{
    for (; *words; words++)
        if (strlen(*words) == length && !strncasecmp(text, *words, length)) return true;
    return false;
}

bool dt__text_is_missing(const char *text, size_t length)
{
    static const char *const words[] = {"",  "NA",   "N/A",  "NaN", "null",
                                        "?", "#N/A", "<NA>", "\\N", NULL};
    dt__text_trim(&text, &length);
    return length <= 4 && text_is_word(words, text, length);
}

enum dt__number dt__number_parse(const char *text, size_t length, double *out)
{
    static const char *const words[] = {"nan", "inf", "infinity", NULL};
    const char *end = text + length;
    char copy[LONGEST + 1], *stop;
    double value;
    while (text < end && (*text == ' ' || *text == '\t'))
        text++;
    while (text < end && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    const char *p = text;
    if (dt__number_scan(&p, end, &value) && p == end) {
        *out = value;
        return DT__NUMBER_GOOD;
    }
    /* strtod takes more than decimal numbers: only their characters get there. */
    length = (size_t)(end - text);
    size_t sign = length && strchr("+-", *text), digits = 0;
    if (text_is_word(words, text + sign, length - sign)) return DT__NUMBER_NOT_FINITE;
    for (size_t i = 0; i < length; i++) {
        if (isdigit((unsigned char)text[i]))
            digits++;
        else if (!text[i] || !strchr("+-.eE", text[i]))
            return DT__NUMBER_BAD;
    }
    if (!digits || length >= LONGEST) return DT__NUMBER_BAD;
    memcpy(copy, text, length);
    copy[length] = 0;
    value = dt_real_read(copy, &stop);
    if (*stop) return DT__NUMBER_BAD;
    if (!isfinite((float)value)) return DT__NUMBER_NOT_FINITE;
    *out = value;
    return DT__NUMBER_GOOD;
}

bool dt__text_is_number(const char *text, size_t length)
{
    double value;
    return dt__number_parse(text, length, &value) != DT__NUMBER_BAD;
}

static bool text_is_decimal_comma(const char *text, size_t length)
{
    char copy[DT__SHOWN];
    double value;
    const char *comma = memchr(text, ',', length);
    if (!comma || length >= DT__SHOWN) return false;
    memcpy(copy, text, length);
    copy[comma - text] = '.';
    return dt__number_parse(copy, length, &value) == DT__NUMBER_GOOD;
}

/* Cuts one sign off either end, and says which; NULL: there is none. */
static const char *cut_signs(const char **text, size_t *length)
{
    static const char *const signs[] = {"%", "$", "\xe2\x82\xac", "\xc2\xa3", NULL};
    const char *cut = NULL;
    for (int i = 0; signs[i]; i++) {
        const size_t size = strlen(signs[i]), before = *length;
        if (*length > size && !memcmp(*text, signs[i], size)) *text += size, *length -= size;
        if (*length > size && !memcmp(*text + *length - size, signs[i], size)) *length -= size;
        if (*length < before) cut = signs[i];
    }
    return cut;
}

/* Whether it is a number with groups of three digits behind a mark; or, `bare`, without them. */
static bool text_is_grouped(const char *text, size_t length, char mark, char decimal, bool bare)
{
    char copy[DT__SHOWN];
    double value;
    size_t size = 0, group = 0;
    bool point = false, marks = false;
    for (size_t i = 0; i <= length; i++) {
        const char c = i < length ? text[i] : 0;
        if (c == mark || c == decimal || !c) {
            if (marks && !point && group != 3) return false;
            if (c == mark && (point || group == 0 || group > 3)) return false;
            if (c == mark && !marks && text[i - group] == '0') return false; /* 0,125 */
            marks |= c == mark;
            point |= c == decimal;
            group = 0;
        } else {
            group += isdigit((unsigned char)c) != 0;
        }
        if (c && c != mark) copy[size++] = c == decimal ? '.' : c;
    }
    return (marks || bare) && dt__number_parse(copy, size, &value) == DT__NUMBER_GOOD;
}

/* What 5%, $3; 1,250.5, 1.250,5, 1 250,5 and 1'250.5 have more than a number; NULL: it is no such
 * text. */
static const char *text_unit(const char *text, size_t length)
{
    static const struct {
        char mark, decimal;
        const char *name;
    } marks[] = {{',', '.', "commas between thousands"},
                 {'.', ',', "points between thousands"},
                 {' ', '.', "blanks between thousands"},
                 {' ', ',', "blanks between thousands"},
                 {'\'', '.', "quotes between thousands"}};
    static const char *const blanks[] = {"\xc2\xa0", "\xe2\x80\xaf", NULL}; /* that do not break */
    char plain[DT__SHOWN];
    size_t size = 0;
    if (length >= DT__SHOWN) return NULL;
    const char *sign = cut_signs(&text, &length);
    dt__text_trim(&text, &length);
    for (size_t i = 0; i < length; i++) {
        size_t blank = 0;
        for (int b = 0; blanks[b] && !blank; b++)
            if (length - i >= strlen(blanks[b]) && !memcmp(text + i, blanks[b], strlen(blanks[b])))
                blank = strlen(blanks[b]);
        plain[size++] = blank ? ' ' : text[i];
        i += blank ? blank - 1 : 0;
    }
    for (size_t m = 0; m < sizeof marks / sizeof *marks; m++)
        if (text_is_grouped(plain, size, marks[m].mark, marks[m].decimal, sign != NULL))
            return sign ? sign : marks[m].name;
    return NULL;
}

/* 2021-03-04, 4/3/2021, 04.03.21 12:30: three groups of digits in front. */
static bool text_is_date(const char *text, size_t length)
{
    size_t i = 0, groups = 0;
    char between = 0;
    while (groups < 3) {
        size_t begin = i;
        while (i < length && isdigit((unsigned char)text[i]))
            i++;
        if (i == begin || i - begin > 4) return false;
        if (++groups == 3) break;
        if (i == length || !strchr("-/.", text[i]) || (between && text[i] != between)) return false;
        between = text[i++];
    }
    return i == length || text[i] == ' ' || text[i] == 'T';
}

/* 13:25, 1:25 PM, 13:25:59: an hour, and two digits of minutes. */
static bool text_is_time(const char *text, size_t length)
{
    const size_t colon = length > 1 && text[1] == ':' ? 1 : 2;
    if (length < colon + 3 || text[colon] != ':') return false;
    for (size_t i = 0; i < colon + 3; i++)
        if (i != colon && !isdigit((unsigned char)text[i])) return false;
    const bool hour = colon == 1 || text[0] < '2' || (text[0] == '2' && text[1] < '4');
    return hour && text[colon + 1] < '6' &&
           (length == colon + 3 || text[colon + 3] == ':' || text[colon + 3] == ' ');
}

enum dt__text_kind dt__text_kind(const char *text, size_t length)
{
    const bool unit = text_unit(text, length) != NULL;
    if (text_is_decimal_comma(text, length)) return unit ? DT__TEXT_COMMA_OR_UNIT : DT__TEXT_COMMA;
    if (unit) return DT__TEXT_UNIT;
    return text_is_date(text, length) || text_is_time(text, length) ? DT__TEXT_DATE
                                                                    : DT__TEXT_PLAIN;
}

dt_status dt__number_read(const char *text, size_t length, float *out)
{
    static const char *const messages[] = {
        [DT__TEXT_PLAIN] = "is not a number",
        [DT__TEXT_DATE] = "is not a number",
        [DT__TEXT_COMMA] = "is a number with a decimal comma: write a point, or set "
                           "data.decimal=,",
        [DT__TEXT_COMMA_OR_UNIT] = "is a number with a comma: remove it if it stands between "
                                   "thousands; if it is a decimal one, write a point, or set "
                                   "data.decimal=,",
        [DT__TEXT_UNIT] = "is no plain number: remove the ",
    };
    double value;
    const enum dt__number kind = dt__number_parse(text, length, &value);
    if (kind == DT__NUMBER_GOOD) {
        *out = (float)value;
        return DT_OK;
    }
    if (!length) return dt_fail(DT_EFORMAT, "empty where a number belongs");
    const bool finite = kind != DT__NUMBER_NOT_FINITE;
    const enum dt__text_kind is = dt__text_kind(text, length);
    return dt_fail(DT_EFORMAT, "'%.*s' %s%s", dt__shown(length), text,
                   finite ? messages[is] : "is not a finite number",
                   finite && is == DT__TEXT_UNIT ? text_unit(text, length) : "");
}
