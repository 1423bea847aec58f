/* checkpoint: the parts of saving that the writer shares. */
#ifndef DT_STATE_CHECKPOINT_H
#define DT_STATE_CHECKPOINT_H

#include "dtrain/state.h"
#include "state/image.h"

/* dt_checkpoint_pack into an image whose buffer is reused. */
dt_status dt__checkpoint_pack(const struct dt_checkpoint *checkpoint, struct dt__image *image);
/* dt_checkpoint_load from an image in memory; `name` stands for the file in messages. */
dt_status dt__checkpoint_unpack(const char *name, const struct dt__image *image,
                                struct dt_checkpoint *out);

#endif
