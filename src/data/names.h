/* Lists of names: of columns, of classes, of files. */
#ifndef DATA_NAMES_H
#define DATA_NAMES_H

#include "dtrain/base.h"

/* Frees names[0..count) and the list; NULL is fine. */
void dt__names_free(char **names, size_t count);
/* A copy; NULL for NULL. */
dt_status dt__names_copy(char *const *names, size_t count, char ***out);
bool dt__names_equal(char *const *a, char *const *b, size_t count);

/* A list that grows; free with dt__names_free(list.items, list.count). */
struct dt__names {
    char **items;
    size_t count, capacity;
};
/* Adds a copy of text[0..length) at the end, or before index `at`. */
dt_status dt__names_add(struct dt__names *list, const char *text, size_t length);
dt_status dt__names_insert(struct dt__names *list, size_t at, const char *text, size_t length);

/* Index of text[0..length) in names sorted bytewise, or where it belongs; *found says which. */
size_t dt__names_search(char *const *names, size_t count, const char *text, size_t length,
                        bool *found);
/* Sorts bytewise. */
void dt__names_sort(char **names, size_t count);

/* Splits a comma-separated list; blanks around the parts are cut, empty parts left out. */
dt_status dt__names_split(const char *text, struct dt__names *out);

#endif
