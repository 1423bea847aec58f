/* export: the part that checkpoints and exported models have in common. */
#ifndef DT_STATE_EXPORT_H
#define DT_STATE_EXPORT_H

#include "dtrain/state.h"
#include "state/tree.h"

/* Writes step, config, best metric, /schema and /model. */
dt_status dt__export_put(hid_t file, const struct dt_model *model, const struct dt_export *from);
/* Reads and checks them; *out_model (may be NULL) is the network of its spec. */
dt_status dt__export_get(const struct dt__tree *tree, struct dt_export *out,
                         struct dt_model **out_model);

/* Takes an export out of a model's image, or a checkpoint's; `name` is for messages. */
dt_status dt__export_unpack(const char *name, const struct dt__image *image, struct dt_export *out);

#endif
