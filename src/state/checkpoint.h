/* checkpoint: the parts of saving and loading that the room's files share. */
#ifndef DT_STATE_CHECKPOINT_H
#define DT_STATE_CHECKPOINT_H

#include "dtrain/state.h"
#include "state/checked_file.h"

/* Writes the file of a model or, with the `rest` that a resume needs (else NULL), of a checkpoint;
 * whole or not at all. */
dt_status dt__state_write(const char *path, const struct dt_export *from,
                          const struct dt_checkpoint *rest);
/* dt_checkpoint_load from an open file. */
dt_status dt__checkpoint_get(struct dt__h5_file *file, struct dt_checkpoint *out);

#endif
