/* checkpoint: the parts of saving and loading that the room's files share. */
#ifndef DT_STATE_CHECKPOINT_H
#define DT_STATE_CHECKPOINT_H

#include "dtrain/state.h"
#include "state/file.h"

/* Writes a checkpoint's file, whole or not at all. */
dt_status dt__checkpoint_write(const char *path, const struct dt_checkpoint *checkpoint);
/* dt_checkpoint_load from an open file. */
dt_status dt__checkpoint_get(struct dt__h5_file *file, struct dt_checkpoint *out);

#endif
