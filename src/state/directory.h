/* directory: the directories of checkpoints and exports: names, lists, the newest, removal. */
#ifndef DT_STATE_DIRECTORY_H
#define DT_STATE_DIRECTORY_H

#include "state/saved_file.h"

/* A path, by value. One that is too long for the system becomes "", which names no file. */
struct dt__path {
    char text[4096];
};
struct dt__path dt__path(const char *format, ...) __attribute__((format(printf, 1, 2)));
struct dt__path dt__step_path(const char *dir,
                              uint64_t step); /* file name of a checkpoint in its directory */

/* Numbers found in the names of a directory. Free items with dt_free. */
struct dt__numbers {
    uint64_t *items;
    size_t count;
};
/* Returns true if a name matches, with its number. */
typedef bool dt__number_fn(const char *name, uint64_t *out);
/* Collects the numbers of the names in `dir`: first those up to `first`, descending, then those
 * above it, descending; a missing directory has none. */
dt_status dt__dir_numbers(const char *dir, dt__number_fn *parse, uint64_t first,
                          struct dt__numbers *out);

/* Removes all files and directories whose names `wanted` accepts (NULL: all). A failure to remove
 * is a warning. */
dt_status dt__dir_clear(const char *dir, bool (*wanted)(const char *name));
/* Removes one path; a failure is returned. */
dt_status dt__path_remove(const char *path);

/* Writes DIR/step-%09llu.h5 durably, reads it back to verify the checksum, and moves DIR/latest.h5
 * to it; removes leftovers of a killed save.
 *
 * DT_EIO: e.g. disk full; earlier files are intact. */
dt_status dt__checkpoint_save(const char *dir, const struct dt_checkpoint *checkpoint);
/* Like dt__checkpoint_load_newest, for the wanted part. */
dt_status dt__checkpoint_load_latest(const char *dir, enum dt__wanted wanted,
                                     struct dt_checkpoint *out, char **out_path, bool *out_found);
/* Removes all but the first `keep` checkpoints in the order of loading (0: keeps all; at least two
 * stay; `protected` is never removed, NULL: none), and warns of files that cannot be removed. Must
 * not run between a new file's rename and the move of latest.h5: that file would count as
 * abandoned. */
dt_status dt__checkpoint_retain(const char *dir, int64_t keep, const char *protected);

/* Removes the directory of a run that did not start, with its lock, which the caller holds; other
 * files in it stay. */
void dt__run_unmake(const char *run_dir);

#endif
