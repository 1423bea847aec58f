/* model_file: what checkpoints and exports have in common: network, schema, named tensors, the best
 * metric.
 *
 * Files of version 0.1 are read too (tests/data/checkpoint-0.1.h5 is one). They differ in two
 * things:
 *   - /model has the short form of an MLP instead of `layers` (struct short_form in model_file.c);
 *     the config
 *     text in it has the short forms of the network alone, which dt_model_settle makes a list of
 *     layers;
 *   - the best metric has no `plateau`, `drops` and `loss` (BEST_LATER in model_file.c): they stay
 *     0. */
#ifndef DT_STATE_MODEL_FILE_H
#define DT_STATE_MODEL_FILE_H

#include "dtrain/state.h"
#include "state/checked_file.h"

/* Of a row-sparse tensor the rows that are not all 0: after training with train.l1, or with more
 * hash buckets than categories, they are few. A model is exported with these alone where that
 * halves it: their numbers, rising, as NAME_rows (u32), and the rows as NAME_values (f32), in place
 * of NAME. */
struct dt__kept_rows {
    uint32_t *row; /* (count); NULL: the tensor is written whole */
    float *values; /* (count, width) */
    size_t count;  /* at least 1 */
};
/* One for each of the model's row-sparse tensors; in any case free them. DT_EMEMORY. */
dt_status dt__kept_rows_create(const struct dt_model *model, const float *params,
                               struct dt__kept_rows **out);
void dt__kept_rows_free(const struct dt_model *model, struct dt__kept_rows *kept);

/* Lays out step, config, best metric, /schema and /model; the parameters are lent. kept: NULL, all
 * are whole; lent too. */
void dt__export_put(struct dt__h5_layout *layout, const struct dt_model *model,
                    const struct dt_export *from, const struct dt__kept_rows *kept);
/* Reads and checks them; *out_model (may be NULL) is the network of its text. */
dt_status dt__export_get(struct dt__h5_file *file, struct dt_export *out,
                         struct dt_model **out_model);

/* Which tensors of a flat vector are meant: an optimizer has nothing for the state tensors. */
enum dt__tensors { DT__ALL_TENSORS, DT__TRAINED_TENSORS };
/* A flat vector as GROUP/<name of a tensor>, e.g. GROUP/layers/0/weight; the group exists. kept: as
 * above. */
void dt__flat_put(struct dt__h5_layout *layout, const char *group, const struct dt_model *model,
                  enum dt__tensors which, const float *flat, const struct dt__kept_rows *kept);
/* Reads it into new memory (dt_free), which is made only if all those tensors are in the file; the
 * others are 0. */
dt_status dt__flat_load(struct dt__h5_file *file, const char *group, const struct dt_model *model,
                        enum dt__tensors which, float **out);

/* A vector of just this type and length, into new memory (dt_free). */
dt_status dt__vector_load(struct dt__h5_file *file, const char *path, enum dt__h5_type type,
                          uint64_t length, void *out_data);

#endif
