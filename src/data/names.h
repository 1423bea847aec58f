/* Lists of names: of columns, of classes, of files; dictionaries that number texts and count them;
 * and the files that a key of the configuration lists. */
#ifndef DATA_NAMES_H
#define DATA_NAMES_H

#include "dtrain/base.h"

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

/* Text without the blanks and tabs around it. */
void dt__text_trim(const char **text, size_t *length);

/* Sorts bytewise. */
void dt__names_sort(char **names, size_t count);

/* Splits a comma-separated list; blanks around the parts are cut, empty parts left out. */
dt_status dt__names_split(const char *text, struct dt__names *out);

/* Expands a comma-separated list: each glob into its files sorted bytewise, all else as it stands.
 * `key` names the option in messages. DT_EIO: a glob that matches nothing. */
dt_status dt__paths_expand(const char *key, const char *list, struct dt__names *out);

#endif
