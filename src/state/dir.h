/* dir: listing and clearing of the directories that hold our files. */
#ifndef DT_STATE_DIR_H
#define DT_STATE_DIR_H

#include "dtrain/base.h"

/* Numbers found in the names of a directory. Free items with dt_free. */
struct dt__numbers {
    uint64_t *items;
    size_t count, capacity;
};
/* Whether a name is one of those looked for, and its number. */
typedef bool dt__number_fn(const char *name, uint64_t *out);
/* Collects the numbers of the names in `dir`, falling; a directory that is not there has none. */
dt_status dt__dir_numbers(const char *dir, dt__number_fn *parse, struct dt__numbers *out);

/* Removes what is found under names that `wanted` accepts, files or directories of files. What
 * cannot be removed is warned of, no failure. */
dt_status dt__dir_clear(const char *dir, bool (*wanted)(const char *name));
/* The same for one path. */
dt_status dt__path_remove(const char *path);

#endif
