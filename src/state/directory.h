/* directory: the directories of checkpoints and exports: names, lists, the newest, what is
 * removed. */
#ifndef DT_STATE_DIRECTORY_H
#define DT_STATE_DIRECTORY_H

#include "state/saved_file.h"

/* A path, by value. One that is too long for the system is "", which names no file. */
struct dt__path {
    char text[4096];
};
struct dt__path dt__path(const char *format, ...) __attribute__((format(printf, 1, 2)));
struct dt__path dt__step_path(const char *dir,
                              uint64_t step); /* of a checkpoint in its directory */

/* Numbers found in the names of a directory. Free items with dt_free. */
struct dt__numbers {
    uint64_t *items;
    size_t count;
};
/* Whether a name is one of those looked for, and its number. */
typedef bool dt__number_fn(const char *name, uint64_t *out);
/* Collects the numbers of the names in `dir`, falling from `first` on, and behind them those above
 * it, falling; a directory that is not there has none. */
dt_status dt__dir_numbers(const char *dir, dt__number_fn *parse, uint64_t first,
                          struct dt__numbers *out);

/* Removes what is found under names that `wanted` accepts (NULL: all), files or directories. What
 * cannot be removed is warned of, no failure. */
dt_status dt__dir_clear(const char *dir, bool (*wanted)(const char *name));
/* The same for one path. */
dt_status dt__path_remove(const char *path);

/* Writes DIR/step-%09llu.h5 durably, reads it back to verify the checksum, and moves DIR/latest.h5
 * to it; clears what a killed save left.
 * DT_EIO: disk full and the like; what was there before is intact. */
dt_status dt__checkpoint_save(const char *dir, const struct dt_checkpoint *checkpoint);
/* dt__checkpoint_load_newest, of what is wanted. */
dt_status dt__checkpoint_load_latest(const char *dir, enum dt__wanted wanted,
                                     struct dt_checkpoint *out, char **out_path, bool *out_found);
/* Removes all but the first `keep` in the order of loading (0: all stay; two at least stay;
 * `protected` is never removed, NULL: none), and warns of what will not go. Not between a new
 * file's rename and the move of latest.h5: that file would count as abandoned. */
dt_status dt__checkpoint_retain(const char *dir, int64_t keep, const char *protected);

/* Removes the directory of a run that did not begin, with its lock, which the caller holds; what
 * else lies there stays. */
void dt__run_unmake(const char *run_dir);

#endif
