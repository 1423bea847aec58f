/* contents: spec, schema and flat vectors of a model in an HDF5 file. */
#ifndef DT_STATE_CONTENTS_H
#define DT_STATE_CONTENTS_H

#include "dtrain/data.h"
#include "dtrain/model.h"
#include "state/tree.h"

/* Makes groups /model and /schema. The widths of hidden layers are those of their weights. */
dt_status dt__spec_put(hid_t file, const struct dt_model_spec *spec);
dt_status dt__spec_get(const struct dt__tree *tree, struct dt_model_spec *out);
dt_status dt__schema_put(hid_t file, const struct dt_schema *schema);
/* DT_EFORMAT also for a schema that does not fit the spec. *out is freed by dt_schema_free. */
dt_status dt__schema_get(const struct dt__tree *tree, const struct dt_model_spec *spec,
                         struct dt_schema *out);

/* A flat vector as GROUP/layers/<i>/weight (nin, nout) and bias (nout); the group exists. */
dt_status dt__flat_put(hid_t file, const char *group, const struct dt_model *model,
                       const float *flat);
/* Reads it into new memory (dt_free), which is made only if the file is long enough to hold it. */
dt_status dt__flat_load(const struct dt__tree *tree, const char *group,
                        const struct dt_model *model, float **out);

#endif
