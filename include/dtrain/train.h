/* train: the training run, from a config to a finished run directory, and how models are measured. */
#ifndef DTRAIN_TRAIN_H
#define DTRAIN_TRAIN_H

#include "dtrain/base.h"
#include "dtrain/comm.h"
#include "dtrain/config.h"
#include "dtrain/data.h"
#include "dtrain/model.h"

/* Trains as the config says. Collective over the world; config is rank 0's on rank 0 and is sent to
 * the others, whose own is overwritten. All ranks return the same status.
 * DT_OK: completed, or was complete already. DT_STOPPED: stopped on request, checkpoint saved.
 * Else: the agreed error is the error text. */
dt_status dt_train(struct dt_world *world, struct dt_config *config);

/* ---- measuring ------------------------------------------------------------------------------ */

/* A network and held-out rows, which are measured in chunks of DT_EVAL_CHUNK rows of file order. All
 * evaluation goes this way (in place, by the evaluator, by `dtrain eval`), and so has the same digits
 * under the same kernel and run.threads. Not collective. */
struct dt_measure;

/* Chunks that an evaluation covers: the first eval.batches, or all. */
uint64_t dt_measure_chunks(const struct dt_config *config, const struct dt_source *source);

/* For chunks [first, end); source and model must outlive it.
 * DT_EIO, DT_EFORMAT, DT_EMISMATCH: the rows cannot be read. DT_EMEMORY. */
dt_status dt_measure_create(const struct dt_config *config, const struct dt_source *source,
                            const struct dt_model *model, uint64_t first, uint64_t end,
                            struct dt_measure **out);
void dt_measure_destroy(struct dt_measure *measure);

/* Sums of one chunk under the weights params (P). confusion as dt_metrics_chunk has it.
 * DT_EIO, DT_EFORMAT: its rows cannot be read. */
dt_status dt_measure_chunk(struct dt_measure *measure, const float *params, uint64_t chunk,
                           struct dt_chunk_sums *out, uint64_t *confusion);
/* The same, added to metrics of the model's spec; call in chunk order. */
dt_status dt_measure_add(struct dt_measure *measure, const float *params, uint64_t chunk,
                         struct dt_metrics *metrics);

#endif
