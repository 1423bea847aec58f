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

/* Saves a packed image as `step` by the protocol of dt_checkpoint_save. */
dt_status dt__folder_save(const char *dir, const struct dt__image *image, uint64_t step,
                          int64_t keep, const char *spare, char **out_file);

#endif
