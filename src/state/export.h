/* export: the part that checkpoints and exported models have in common. */
#ifndef DT_STATE_EXPORT_H
#define DT_STATE_EXPORT_H

#include <hdf5.h>

#include "dtrain/state.h"

/* Writes step, config, best metric, /schema and /model. */
dt_status dt__export_put(hid_t file, const struct dt_model *model, const struct dt_export *from);
/* Reads and checks them; *out_model (may be NULL) is the network of its spec. */
dt_status dt__export_get(hid_t file, struct dt_export *out, struct dt_model **out_model);

#endif
