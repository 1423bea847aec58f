/* Texts: cells of records, and the numbers in them (decimal, in any locale, never NaN or infinite);
 * lists of names of columns, classes and files; dictionaries that number texts and count them. */
#ifndef TEXT_TEXT_H
#define TEXT_TEXT_H

#include <string.h>

#include "base/base.h"

/* A range of a record. */
struct dt__cell {
    char *text;
    size_t length;
};
static inline bool dt__cell_is(struct dt__cell cell, const char *text)
{
    return cell.length == strlen(text) && !memcmp(cell.text, text, cell.length);
}

/* Bytes of a text that a message shows. */
enum { DT__SHOWN = 40 };
static inline int dt__shown(size_t length)
{
    return length < DT__SHOWN ? (int)length : DT__SHOWN;
}

/* Removes the blanks and tabs around a text. */
void dt__text_trim(const char **text, size_t *length);
/* Returns true if two texts are equal without the blanks and tabs around them. */
bool dt__text_same(const char *a, const char *b);

enum dt__number { DT__NUMBER_GOOD, DT__NUMBER_BAD, DT__NUMBER_NOT_FINITE };

/* Reads text[0..length), with blanks around it, as the nearest double. NOT_FINITE: nan, inf, or
 * beyond the range of a float. */
enum dt__number dt__number_parse(const char *text, size_t length, double *out);

/* Returns true if text is a number, finite or not. */
bool dt__text_is_number(const char *text, size_t length);

/* Returns true if text is empty or a word for a missing value: NA, NaN, null, ?; with blanks around
 * it. */
bool dt__text_is_missing(const char *text, size_t length);

/* Kinds of texts that are not numbers: a date (2021-03-04, 4/3/21 12:30); a number except for one
 * comma in place of the point (0,5), which may separate thousands (1,250); a number except for a
 * sign of percent or money at an end, or marks between its thousands (5%, $3, 1,250.5, 1.250,5, 1
 * 250). */
enum dt__text_kind {
    DT__TEXT_PLAIN,
    DT__TEXT_DATE,
    DT__TEXT_COMMA,
    DT__TEXT_COMMA_OR_UNIT,
    DT__TEXT_UNIT,
    DT__TEXT_KINDS
};
enum dt__text_kind dt__text_kind(const char *text, size_t length);

/* Reads the common short form at *text as the nearest double: sign, digits, '.', digits, at most 19
 * digits without leading zeros and 22 after the point. Moves *text past it and returns true; else
 * leaves everything unchanged. A few such numbers are also refused. */
bool dt__number_scan(const char **text, const char *end, double *out);

/* Like dt__number_parse, with a message: "'abc' is not a number", and for the kinds above how to
 * write it. */
dt_status dt__number_read(const char *text, size_t length, float *out);

/* ---- lists ---------------------------------------------------------------------------------- */

/* Frees names[0..count) and the list; NULL is allowed. */
void dt__names_free(char **names, size_t count);

/* A growing list; free with dt__names_free(list.items, list.count). */
struct dt__names {
    char **items;
    size_t count, capacity;
};
/* Adds a copy of text[0..length) at the end. */
dt_status dt__names_add(struct dt__names *list, const char *text, size_t length);

/* Distinct texts, numbered in order of first occurrence, with their counts. Zeroed: empty. */
struct dt__dict {
    char *bytes; /* the texts, each with a final NUL */
    size_t length, bytes_capacity;
    struct dt__dict_entry {
        size_t at; /* in bytes */
        size_t length;
        uint64_t count;
    } * entries;
    size_t count, entries_capacity;
    uint32_t *slots; /* entry number + 1, or 0; their count is a power of two */
    size_t nslots;
};
void dt__dict_free(struct dt__dict *dict);
/* Counts text[0..length) and returns its number in *out. DT_EMEMORY. */
dt_status dt__dict_add(struct dt__dict *dict, const char *text, size_t length, uint32_t *out);
dt_status dt__dict_add_names(struct dt__dict *dict, char *const *names, size_t count);
/* Finds the number of a text; returns false if it is not in the dictionary. */
bool dt__dict_find(const struct dt__dict *dict, const char *text, size_t length, uint32_t *out);
/* Like dt__dict_find; a text that is not found may be in the dictionary without the blanks around
 * it, or with one in front: files with "a, b" for "a,b" mean the plain names. */
bool dt__dict_find_blank(const struct dt__dict *dict, const char *text, size_t length,
                         uint32_t *out);
const char *dt__dict_text(const struct dt__dict *dict, size_t number);
/* Returns the same hash on every machine. */
uint64_t dt__text_hash(const char *text, size_t length, uint64_t seed);

/* Sorts bytewise. */
void dt__names_sort(char **names, size_t count);

/* Lists are comma-separated; \, is a comma within a name. Cuts off the next item, in place. NULL:
 * there is none. */
char *dt__list_next(char **rest);
/* Adds a name to a list, which keeps a failure. */
void dt__list_add(struct dt_text *list, const char *name);
/* Adds a name, after `number` others, to a list in a message, which keeps a failure. */
void dt__list_show(struct dt_text *list, size_t number, const char *name);
/* Splits a list; blanks around the items are removed, empty items left out. */
dt_status dt__names_split(const char *text, struct dt__names *out);

/* Expands a comma-separated list: each glob to its files sorted bytewise, other items unchanged.
 * `key` names the option in messages. DT_EIO: a glob that matches nothing. */
dt_status dt__paths_expand(const char *key, const char *list, struct dt__names *out);

#endif
