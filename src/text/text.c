/* Texts: the numbers in them, lists of names, and dictionaries. */
#include "text/text.h"

#include <ctype.h>
#include <float.h>
#include <fnmatch.h>
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/limits.h"

/* ---- numbers -------------------------------------------------------------------------------- */

enum { LONGEST = 400, SHORT_DIGITS = 19 };

/* Computes digits / 10^places, rounded once. Returns false if it cannot. Digits up to 2^53 are
 * exact doubles, and so are powers up to 1e22. Larger digits are divided as long doubles of 64
 * bits; a quotient half-way between two doubles is left to strtod.
 *
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

bool dt__number_scan(const char **text, const char *end, double *out)
{
    const bool negative = *text < end && **text == '-';
    const char *first = *text + negative, *p = first, *point = NULL;
    uint64_t digits = 0;
    double value;
    for (; p < end; p++) {
        if ((unsigned char)(*p - '0') < 10)
            digits = digits * 10 + (uint64_t)(*p - '0');
        else if (*p == '.' && !point)
            point = p + 1;
        else
            break;
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

void dt__text_trim(const char **text, size_t *length)
{
    for (; *length && (**text == ' ' || **text == '\t'); ++*text)
        --*length;
    while (*length && ((*text)[*length - 1] == ' ' || (*text)[*length - 1] == '\t'))
        --*length;
}

bool dt__text_same(const char *a, const char *b)
{
    size_t length_a = strlen(a), length_b = strlen(b);
    dt__text_trim(&a, &length_a);
    dt__text_trim(&b, &length_b);
    return length_a == length_b && !memcmp(a, b, length_a);
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
    char copy[LONGEST + 1], *stop;
    double value;
    dt__text_trim(&text, &length);
    const char *p = text;
    if (dt__number_scan(&p, text + length, &value) && p == text + length) {
        *out = value;
        return DT__NUMBER_GOOD;
    }
    const size_t sign = length && strchr("+-", *text);
    if (text_is_word(words, text + sign, length - sign)) return DT__NUMBER_NOT_FINITE;
    if (length >= LONGEST) return DT__NUMBER_BAD;
    memcpy(copy, text, length);
    copy[length] = 0;
    /* strtod accepts more than decimal numbers, so other characters are refused first. */
    if (strspn(copy, "0123456789+-.eE") != length || !strpbrk(copy, "0123456789"))
        return DT__NUMBER_BAD;
    value = dt__real_read(copy, &stop);
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

/* Cuts a sign of percent or money off either end, and returns it; NULL: there is none. */
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

enum { NO_MARK = 1 };

/* Returns true for a short number that has `mark` between its groups of three digits and `decimal`
 * for its point. With `bare`, the marks may be missing. */
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

/* Returns what a text has besides a plain number: the sign of 5% or $3; the marks of 1,250.5,
 * 1.250,5, 1 250,5 or 1'250.5. NULL: it is not such a text. */
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
    static const char *const blanks[] = {"\xc2\xa0", "\xe2\x80\xaf", NULL}; /* non-breaking */
    char plain[DT__SHOWN];
    size_t size = 0, digits = 0;
    if (length >= DT__SHOWN) return NULL;
    const char *sign = cut_signs(&text, &length);
    dt__text_trim(&text, &length);
    for (size_t i = 0; i < length; i++) {
        size_t blank = 0;
        digits += isdigit((unsigned char)text[i]) != 0;
        for (int b = 0; blanks[b] && !blank; b++)
            if (length - i >= strlen(blanks[b]) && !memcmp(text + i, blanks[b], strlen(blanks[b])))
                blank = strlen(blanks[b]);
        plain[size++] = blank ? ' ' : text[i];
        i += blank ? blank - 1 : 0;
    }
    for (size_t m = 0; digits && m < sizeof marks / sizeof *marks; m++)
        if (text_is_grouped(plain, size, marks[m].mark, marks[m].decimal, sign != NULL))
            return sign ? sign : marks[m].name;
    return NULL;
}

/* Returns true for a date, which starts with three groups of digits (2021-03-04, 4/3/2021, 04.03.21
 * 12:30), or for a time, which starts with an hour and two digits of minutes (13:25, 1:25 PM,
 * 13:25:59). */
static bool text_is_date(const char *text, size_t length)
{
    char copy[32] = "", one[2], other[2];
    int hour, read = 0;
    if (!length || !isdigit((unsigned char)*text)) return false;
    memcpy(copy, text, length < sizeof copy ? length : sizeof copy - 1);
    if (sscanf(copy, "%*4[0-9]%1[-/.]%*4[0-9]%1[-/.]%*4[0-9]%n", one, other, &read) == 2 && read)
        return *one == *other && strchr(" T", copy[read]);
    return sscanf(copy, "%2d:%1[0-5]%*1[0-9]%n", &hour, one, &read) == 2 && read && hour < 24 &&
           strchr(": ", copy[read]);
}

enum dt__text_kind dt__text_kind(const char *text, size_t length)
{
    const bool date = text_is_date(text, length); /* or a number: 1.250.500 */
    const bool unit = (!date || memchr(text, '.', length)) && text_unit(text, length);
    if (length < DT__SHOWN && memchr(text, ',', length) &&
        text_is_grouped(text, length, NO_MARK, ',', true))
        return unit ? DT__TEXT_COMMA_OR_UNIT : DT__TEXT_COMMA;
    return unit ? DT__TEXT_UNIT : date ? DT__TEXT_DATE : DT__TEXT_PLAIN;
}

dt_status dt__number_read(const char *text, size_t length, float *out)
{
    static const char *const messages[] = {
        [DT__TEXT_COMMA] = "is a number with a decimal comma: write a point, or set "
                           "data.decimal=,",
        [DT__TEXT_COMMA_OR_UNIT] = "is a number with a comma: remove it if it separates "
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
    if (!length) return dt_fail(DT_EFORMAT, "empty: expected a number");
    const enum dt__text_kind is = dt__text_kind(text, length);
    const char *message = messages[is] ? messages[is] : "is not a number";
    const bool finite = kind != DT__NUMBER_NOT_FINITE;
    return dt_fail(DT_EFORMAT, "'%.*s' %s%s", dt__shown(length), text,
                   finite ? message : "is not a finite number",
                   finite && is == DT__TEXT_UNIT ? text_unit(text, length) : "");
}

/* ---- lists ---------------------------------------------------------------------------------- */

void dt__names_free(char **names, size_t count)
{
    for (size_t i = 0; names && i < count; i++)
        dt_free(names[i]);
    dt_free(names);
}

dt_status dt__names_add(struct dt__names *list, const char *text, size_t length)
{
    char *copy;
    DT_TRY(dt__grow(&list->items, &list->capacity, list->count + 1, sizeof *list->items, "names"));
    DT_TRY(dt__alloc(length + 1, 1, "name", &copy));
    memcpy(copy, text, length);
    list->items[list->count++] = copy;
    return DT_OK;
}

static int order_by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void dt__names_sort(char **names, size_t count)
{
    if (count) qsort(names, count, sizeof *names, order_by_bytes);
}

char *dt__list_next(char **rest)
{
    char *const part = *rest, *from = part, *to = part;
    if (!part) return NULL;
    while (*from && *from != ',') {
        from += from[0] == '\\' && from[1] == ',';
        *to++ = *from++;
    }
    *rest = *from ? from + 1 : NULL;
    *to = '\0';
    return part;
}

void dt__list_add(struct dt_text *list, const char *name)
{
    if (list->length) dt__text_append(list, ",", 1);
    for (; *name; name++) {
        if (*name == ',') dt__text_append(list, "\\", 1);
        dt__text_append(list, name, 1);
    }
}

void dt__list_show(struct dt_text *list, size_t number, const char *name)
{
    enum { MOST_NAMED = 8 };
    if (number < MOST_NAMED) dt__text_add(list, "%s'%s'", number ? ", " : "", name);
    if (number == MOST_NAMED) dt__text_add(list, " and more");
}

dt_status dt__names_split(const char *text, struct dt__names *out)
{
    char *copy, *rest;
    dt_status status = DT_OK;
    DT_TRY(dt__strdup(text, &copy));
    rest = copy;
    for (const char *part; !status && (part = dt__list_next(&rest));) {
        size_t length = strlen(part);
        dt__text_trim(&part, &length);
        if (length) status = dt__names_add(out, part, length);
    }
    dt_free(copy);
    return status;
}

/* ---- dictionaries ---------------------------------------------------------------------------- */

void dt__dict_free(struct dt__dict *dict)
{
    dt_free(dict->bytes);
    dt_free(dict->entries);
    dt_free(dict->slots);
    *dict = (struct dt__dict){0};
}

/* FNV-1a, with a final mix of the bits. */
uint64_t dt__text_hash(const char *text, size_t length, uint64_t seed)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ seed * UINT64_C(0x9e3779b97f4a7c15);
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    hash ^= hash >> 32;
    hash *= UINT64_C(0xd6e8feb86659fd93);
    return hash ^ hash >> 32;
}

_Static_assert((DT__DICT_SLOTS & (DT__DICT_SLOTS - 1)) == 0 && DT__DICT_SLOTS > 1,
               "a hash is masked; a slot stays free");

/* Returns the slot that holds a text, or the free slot where it belongs. */
static size_t dict_slot(const struct dt__dict *dict, const char *text, size_t length)
{
    size_t slot = dt__text_hash(text, length, 0) & (dict->nslots - 1);
    for (uint32_t number; (number = dict->slots[slot]); slot = (slot + 1) & (dict->nslots - 1)) {
        const struct dt__dict_entry *entry = &dict->entries[number - 1];
        if (entry->length == length && !memcmp(dict->bytes + entry->at, text, length)) break;
    }
    return slot;
}

dt_status dt__dict_add(struct dt__dict *dict, const char *text, size_t length, uint32_t *out)
{
    if (2 * (dict->count + 1) > dict->nslots) { /* at most half of the slots are used */
        const size_t nslots = dict->nslots ? 2 * dict->nslots : DT__DICT_SLOTS;
        uint32_t *slots;
        DT_TRY(dt__alloc(nslots, sizeof *slots, "dictionary", &slots));
        dt_free(dict->slots);
        dict->slots = slots;
        dict->nslots = nslots;
        for (size_t i = 0; i < dict->count; i++) {
            const struct dt__dict_entry *entry = &dict->entries[i];
            slots[dict_slot(dict, dict->bytes + entry->at, entry->length)] = (uint32_t)i + 1;
        }
    }
    size_t slot = dict_slot(dict, text, length);
    if (!dict->slots[slot]) {
        if (dict->count == UINT32_MAX - 1) return dt_fail(DT_EFORMAT, "too many distinct texts");
        DT_TRY(dt__grow(&dict->entries, &dict->entries_capacity, dict->count + 1,
                        sizeof *dict->entries, "dictionary"));
        DT_TRY(dt__grow(&dict->bytes, &dict->bytes_capacity, dict->length + length + 1, 1,
                        "dictionary"));
        memcpy(dict->bytes + dict->length, text, length);
        dict->bytes[dict->length + length] = 0;
        dict->entries[dict->count] = (struct dt__dict_entry){dict->length, length, 0};
        dict->length += length + 1;
        dict->slots[slot] = (uint32_t)++dict->count;
    }
    *out = dict->slots[slot] - 1;
    dict->entries[*out].count++;
    return DT_OK;
}

dt_status dt__dict_add_names(struct dt__dict *dict, char *const *names, size_t count)
{
    uint32_t number;
    for (size_t i = 0; names && i < count; i++)
        DT_TRY(dt__dict_add(dict, names[i], strlen(names[i]), &number));
    return DT_OK;
}

bool dt__dict_find(const struct dt__dict *dict, const char *text, size_t length, uint32_t *out)
{
    uint32_t number = dict->count ? dict->slots[dict_slot(dict, text, length)] : 0;
    if (number) *out = number - 1;
    return number != 0;
}

bool dt__dict_find_blank(const struct dt__dict *dict, const char *text, size_t length,
                         uint32_t *out)
{
    char led[256] = " ";
    if (dt__dict_find(dict, text, length, out)) return true;
    dt__text_trim(&text, &length);
    if (dt__dict_find(dict, text, length, out)) return true;
    if (length + 1 > sizeof led) return false;
    memcpy(led + 1, text, length);
    return dt__dict_find(dict, led, length + 1, out);
}

const char *dt__dict_text(const struct dt__dict *dict, size_t number)
{
    return dict->bytes + dict->entries[number].at;
}

/* ---- lists of files -------------------------------------------------------------------------- */

/* An existing file is taken as it is, even if its name looks like a glob. */
dt_status dt__paths_expand(const char *key, const char *list, struct dt__names *out)
{
    struct dt__names parts = {0};
    dt_status status = dt__names_split(list, &parts);
    for (size_t i = 0; i < parts.count && !status; i++) {
        const char *part = parts.items[i];
        glob_t matches;
        if (!strpbrk(part, "*?[") || dt__path_exists(part)) {
            status = dt__names_add(out, part, strlen(part));
            continue;
        }
        int code = glob(part, GLOB_NOSORT, NULL, &matches);
        if (code) {
            status = dt_fail(DT_EIO,
                             code == GLOB_NOMATCH ? "%s: no file matches '%s'"
                                                  : "%s: cannot expand '%s'",
                             key, part);
            break;
        }
        dt__names_sort(matches.gl_pathv, matches.gl_pathc);
        for (size_t m = 0; m < matches.gl_pathc && !status; m++)
            status = dt__names_add(out, matches.gl_pathv[m], strlen(matches.gl_pathv[m]));
        globfree(&matches);
    }
    dt__names_free(parts.items, parts.count);
    return status;
}
