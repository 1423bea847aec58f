/* Texts: cells of records, and the numbers in them (decimal, in any locale, never NaN or infinite);
 * lists of names of columns, classes and files; dictionaries, which number texts and count them. */
#ifndef TEXT_TEXT_H
#define TEXT_TEXT_H

#include <string.h>

#include "base/base.h"

/* A range of a record; not terminated. */
struct dt__cell {
    char *text;
    size_t length;
};
static inline bool dt__cell_is(struct dt__cell cell, const char *text)
{
    return cell.length == strlen(text) && !memcmp(cell.text, text, cell.length);
}

/* The most bytes of a text that a message shows. */
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

/* Parses text[0..length), which may have blanks around it, as the nearest double. NOT_FINITE: nan,
 * inf, or a number beyond the range of a float. */
enum dt__number dt__number_parse(const char *text, size_t length, double *out);

/* Returns true if a text is a number, finite or not. */
bool dt__text_is_number(const char *text, size_t length);

/* Returns true if a text is missing: empty, or a word such as NA, NaN, null or ?, perhaps with
 * blanks around it. */
bool dt__text_is_missing(const char *text, size_t length);

/* Kinds of texts that are not numbers. */
enum dt__text_kind {
    DT__TEXT_PLAIN,         /* none of these */
    DT__TEXT_DATE,          /* 2021-03-04, 4/3/21 12:30 */
    DT__TEXT_COMMA,         /* a number, but with a decimal comma: 0,5 */
    DT__TEXT_COMMA_OR_UNIT, /* the comma may also separate thousands: 1,250 */
    DT__TEXT_UNIT,          /* a number, but with % or a sign of money, or with marks between
                             * thousands: 5%, $3, 1,250.5, 1.250,5, 1 250 */
    DT__TEXT_KINDS
};
enum dt__text_kind dt__text_kind(const char *text, size_t length);

/* Parses a number in the common short form at *text as the nearest double: an optional minus,
 * digits, '.', digits; at most 19 digits, leading zeros aside, and at most 22 after the point.
 * Returns true and moves *text past the number; or returns false and changes nothing. A few numbers
 * of this form are also refused. */
bool dt__number_scan(const char **text, const char *end, double *out);

/* Like dt__number_parse, for a float and with a message. DT_EFORMAT: "'abc' is not a number"; for
 * the kinds above, the message says how to write the number. */
dt_status dt__number_read(const char *text, size_t length, float *out);

/* ---- lists ---------------------------------------------------------------------------------- */

/* Frees names[0..count) and the list, which may be NULL. */
void dt__names_free(char **names, size_t count);

/* A growing list of names. Free it with dt__names_free(list.items, list.count). */
struct dt__names {
    char **items;
    size_t count, capacity;
};
/* Appends a copy of text[0..length). DT_EMEMORY. */
dt_status dt__names_add(struct dt__names *list, const char *text, size_t length);

/* A dictionary: distinct texts, numbered from 0 in order of first occurrence, with their counts.
 * Zeroed, it is empty. */
struct dt__dict {
    char *bytes; /* the texts, each with a final NUL */
    size_t length, bytes_capacity;
    struct dt__dict_entry {
        size_t at; /* in `bytes` */
        size_t length;
        uint64_t count;
    } * entries;
    size_t count, entries_capacity;
    uint32_t *slots; /* (nslots, a power of two) number of an entry + 1; 0: free */
    size_t nslots;
};
void dt__dict_free(struct dt__dict *dict);
/* Counts a text, and adds it if it is new. *out: its number. DT_EMEMORY; DT_EFORMAT: too many
 * texts. */
dt_status dt__dict_add(struct dt__dict *dict, const char *text, size_t length, uint32_t *out);
/* Counts each of names[0..count). */
dt_status dt__dict_add_names(struct dt__dict *dict, char *const *names, size_t count);
/* Finds a text. *out: its number. Returns false if the dictionary does not have it. */
bool dt__dict_find(const struct dt__dict *dict, const char *text, size_t length, uint32_t *out);
/* Like dt__dict_find. If the text is not found, also looks for it without the blanks around it, and
 * with one blank in front: files with "a, b" mean the same names as files with "a,b". */
bool dt__dict_find_blank(const struct dt__dict *dict, const char *text, size_t length,
                         uint32_t *out);
/* Returns the text with the number `number`. */
const char *dt__dict_text(const struct dt__dict *dict, size_t number);
/* Returns a hash of a text, which is the same on every machine. */
uint64_t dt__text_hash(const char *text, size_t length, uint64_t seed);

/* Sorts names bytewise. */
void dt__names_sort(char **names, size_t count);

/* Takes the next item of a comma-separated list: terminates it in place, and moves *rest past it.
 * \, is a comma within an item. NULL: no item is left. */
char *dt__list_next(char **rest);
/* Appends a name to a comma-separated list. dt__text_end reports a failure. */
void dt__list_add(struct dt_text *list, const char *name);
/* Appends a name to a list in a message, as number `number`, from 0. Of many names only the first
 * are shown. dt__text_end reports a failure. */
void dt__list_show(struct dt_text *list, size_t number, const char *name);
/* Splits a comma-separated list, and adds its items without the blanks around them; empty items are
 * left out. */
dt_status dt__names_split(const char *text, struct dt__names *out);

/* Expands a comma-separated list: a glob becomes its files, sorted bytewise; other items stay
 * unchanged. `key` names the option in messages. DT_EIO: a glob matches nothing. */
dt_status dt__paths_expand(const char *key, const char *list, struct dt__names *out);

#endif
