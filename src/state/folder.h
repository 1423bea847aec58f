/* folder: the checkpoints of one directory, by name. */
#ifndef DT_STATE_FOLDER_H
#define DT_STATE_FOLDER_H

#include "dtrain/base.h"
#include "state/image.h"

#define DT__LATEST "latest.h5"

/* Base name of a step's file, "step-000001200.h5". */
dt_status dt__step_name(uint64_t step, char **out);

/* Steps of the checkpoints in `dir`, whole or not, falling, but the one that latest.h5 names first.
 * A directory that is not there has none. Free items with dt_free. */
struct dt__steps {
    uint64_t *items;
    size_t count, capacity;
};
dt_status dt__folder_list(const char *dir, struct dt__steps *out);

/* Writes a packed image as `step`, verified, and moves latest.h5 to it; clears what a killed save
 * left. *out_file: base name, caller frees. */
dt_status dt__folder_write(const char *dir, const struct dt__image *image, uint64_t step,
                           char **out_file);
/* Removes the oldest beyond `keep`, as dt_checkpoint_save has it. Warns of what cannot be removed. */
dt_status dt__folder_retain(const char *dir, int64_t keep, const char *spare);

#endif
