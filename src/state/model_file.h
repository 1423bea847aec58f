/* model_file: what checkpoints and exports have in common: network, schema, named tensors, the best metric.
 *
 * Files of version 0.1 are read too (tests/data/checkpoint-0.1.h5 is one). They differ in two things:
 *   - /model has the short form of an MLP instead of `layers` (struct short_form in model_file.c); the config
 *     text in it has the short forms of the network alone, which dt_model_settle makes a list of layers;
 *   - the best metric has no `plateau`, `drops` and `loss` (BEST_LATER in model_file.c): they stay 0. */
#ifndef DT_STATE_MODEL_FILE_H
#define DT_STATE_MODEL_FILE_H

#include "dtrain/state.h"
#include "state/checked_file.h"

/* Lays out step, config, best metric, /schema and /model; the parameters are lent. */
void dt__export_put(struct dt__h5_layout *layout, const struct dt_model *model,
                    const struct dt_export *from);
/* Reads and checks them; *out_model (may be NULL) is the network of its text. */
dt_status dt__export_get(struct dt__h5_file *file, struct dt_export *out,
                         struct dt_model **out_model);

/* Which tensors of a flat vector are meant: an optimizer has nothing for the state tensors. */
enum dt__tensors { DT__ALL_TENSORS, DT__TRAINED_TENSORS };
/* A flat vector as GROUP/<name of a tensor>, e.g. GROUP/layers/0/weight; the group exists. */
void dt__flat_put(struct dt__h5_layout *layout, const char *group, const struct dt_model *model,
                  enum dt__tensors which, const float *flat);
/* Reads it into new memory (dt_free), which is made only if all those tensors are in the file; the others
 * are 0. */
dt_status dt__flat_load(struct dt__h5_file *file, const char *group, const struct dt_model *model,
                        enum dt__tensors which, float **out);

/* A vector of just this type and length, into new memory (dt_free). */
dt_status dt__vector_load(struct dt__h5_file *file, const char *path, enum dt__h5_type type,
                          uint64_t length, void *out_data);

#endif
