/* directory: the directories of checkpoints and exports. Builds paths, lists and removes files, and
 * finds the newest checkpoint. */
#ifndef DT_STATE_DIRECTORY_H
#define DT_STATE_DIRECTORY_H

#include "state/saved_file.h"

/* A path, by value. A path that is too long for the system becomes "", which names no file. */
struct dt__path {
    char text[4096];
};
struct dt__path dt__path(const char *format, ...) __attribute__((format(printf, 1, 2)));
struct dt__path dt__step_path(const char *dir,
                              uint64_t step); /* path of a step's checkpoint in `dir` */

/* Numbers found in the names of a directory's entries. Free items with dt_free. */
struct dt__numbers {
    uint64_t *items;
    size_t count;
};
/* Parses a name; returns true and sets *out if it contains a number of the expected form. */
typedef bool dt__number_fn(const char *name, uint64_t *out);
/* Collects the numbers in the names of the entries of `dir`: first those up to `first`, descending,
 * then those above it, descending. A missing directory has none. */
dt_status dt__dir_numbers(const char *dir, dt__number_fn *parse, uint64_t first,
                          struct dt__numbers *out);

/* Removes all entries of `dir` whose names `wanted` accepts (NULL: all). If an entry cannot be
 * removed, it warns and goes on. */
dt_status dt__dir_clear(const char *dir, bool (*wanted)(const char *name));
/* Removes a file or a directory with its contents. If it cannot, it warns. */
void dt__path_remove(const char *path);

/* Writes DIR/step-%09llu.h5 durably, reads it back to verify the checksum, and points the link
 * DIR/latest.h5 to it. Also removes leftovers of saves that were killed.
 *
 * DT_EIO: for example, the disk is full; earlier files are intact. */
dt_status dt__checkpoint_save(const char *dir, const struct dt_checkpoint *checkpoint);
/* Like dt__checkpoint_load_newest, but loads only the wanted part. */
dt_status dt__checkpoint_load_latest(const char *dir, enum dt__wanted wanted,
                                     struct dt_checkpoint *out, char **out_path, bool *out_found);
/* Removes all but the first `keep` checkpoints in the order of loading, and warns about files that
 * cannot be removed. keep 0 keeps all; at least two are kept; `protected` (NULL: none) is never
 * removed. Must not run after a new file is renamed but before latest.h5 points to it: the new file
 * would count as abandoned. */
dt_status dt__checkpoint_retain(const char *dir, int64_t keep, const char *protected);

/* Removes the directory of a run that did not start, and its lock, which the caller holds. If the
 * directory has other files, they stay. */
void dt__run_unmake(const char *run_dir);

#endif
