/* folder: the checkpoints of one directory, by name. */
#ifndef DT_STATE_FOLDER_H
#define DT_STATE_FOLDER_H

#include "dtrain/base.h"
#include "state/dir.h"
#include "state/image.h"

#define DT__LATEST "latest.h5"

/* Steps of the checkpoints in `dir`, whole or not, falling, but the one that latest.h5 names first.
 * A directory that is not there has none. */
dt_status dt__folder_list(const char *dir, struct dt__numbers *out);

/* Writes a packed image as `step`, verified, and moves latest.h5 to it; clears what a killed save
 * left. *out_file: base name, caller frees. */
dt_status dt__folder_write(const char *dir, const struct dt__image *image, uint64_t step,
                           char **out_file);
/* Removes the oldest beyond `keep`, as dt_checkpoint_save has it, and warns of what will not go. Not
 * between a new file's rename and the move of latest.h5: that file would count as abandoned. */
dt_status dt__folder_retain(const char *dir, int64_t keep, const char *spare);

#endif
