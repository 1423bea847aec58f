/* Texts: pieces of records, and the numbers that they say, which are decimal only, whatever the
 * locale, never NaN or infinite; lists of names: of columns, of classes, of files; dictionaries
 * that number texts and count them. */
#ifndef TEXT_TEXT_H
#define TEXT_TEXT_H

#include <string.h>

#include "base/base.h"

/* A piece of a record. */
struct dt__cell {
    char *text;
    size_t length;
};
static inline bool dt__cell_is(struct dt__cell cell, const char *text)
{
    return cell.length == strlen(text) && !memcmp(cell.text, text, cell.length);
}

/* How much of a text a message shows. */
enum { DT__SHOWN = 40 };
static inline int dt__shown(size_t length)
{
    return length < DT__SHOWN ? (int)length : DT__SHOWN;
}

/* Text without the blanks and tabs around it. */
void dt__text_trim(const char **text, size_t *length);
/* Whether two texts are the same without them. */
bool dt__text_same(const char *a, const char *b);

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

/* ---- lists ---------------------------------------------------------------------------------- */

/* Frees names[0..count) and the list; NULL is fine. */
void dt__names_free(char **names, size_t count);

/* A list that grows; free with dt__names_free(list.items, list.count). */
struct dt__names {
    char **items;
    size_t count, capacity;
};
/* Adds a copy of text[0..length) at the end. */
dt_status dt__names_add(struct dt__names *list, const char *text, size_t length);

/* Distinct texts, numbered as they come, and how often each came. Zeroed: an empty one. */
struct dt__dict {
    char *bytes; /* the texts, each with its NUL */
    size_t length, bytes_room;
    struct dt__dict_entry {
        size_t at; /* in bytes */
        size_t length;
        uint64_t count;
    } * entries;
    size_t count, entries_room;
    uint32_t *slots; /* number + 1 of an entry, or 0; a power of two of them */
    size_t nslots;
};
void dt__dict_free(struct dt__dict *dict);
/* Counts text[0..length), whose number is *out. DT_EMEMORY. */
dt_status dt__dict_add(struct dt__dict *dict, const char *text, size_t length, uint32_t *out);
dt_status dt__dict_add_names(struct dt__dict *dict, char *const *names, size_t count);
/* The number of a text. False: it is not there. */
bool dt__dict_find(const struct dt__dict *dict, const char *text, size_t length, uint32_t *out);
/* The same; a text that is not there may stand there without the blanks around it, or with one in
 * front: files that have "a, b" for "a,b" name what others ask for by its plain name. */
bool dt__dict_find_blank(const struct dt__dict *dict, const char *text, size_t length,
                         uint32_t *out);
const char *dt__dict_text(const struct dt__dict *dict, size_t number);
/* The same on every machine. */
uint64_t dt__text_hash(const char *text, size_t length, uint64_t seed);

/* Sorts bytewise. */
void dt__names_sort(char **names, size_t count);

/* Lists are comma-separated; \, is a comma of a name. Cuts off the next part of one, in place.
 * NULL: there is none. */
char *dt__list_next(char **rest);
/* Puts a name at the end of a list, which keeps its failure. */
void dt__list_add(struct dt_text *list, const char *name);
/* Puts a name, after `number` others, on a list for a message, which keeps its failure. */
void dt__list_show(struct dt_text *list, size_t number, const char *name);
/* Splits a list; blanks around the parts are cut, empty parts left out. */
dt_status dt__names_split(const char *text, struct dt__names *out);

/* Expands a comma-separated list: each glob into its files sorted bytewise, all else as it stands.
 * `key` names the option in messages. DT_EIO: a glob that matches nothing. */
dt_status dt__paths_expand(const char *key, const char *list, struct dt__names *out);

#endif
