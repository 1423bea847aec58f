/* Split layers in training: this worker's parts, and the steps of its replicas, which go through
 * the network together, from one split layer to the next. */
#ifndef DT_TRAIN_SPLIT_LAYERS_H
#define DT_TRAIN_SPLIT_LAYERS_H

#include "train/step.h"
#include "train/worker.h"

/* Checks that data, ranks and layers suit, and limits the workers that evaluate. Not collective.
 * DT_EUSAGE. */
dt_status dt__split_check(struct dt_job *job);

/* Beside the exchange; nothing without split layers. Collective over bank and workers. */
dt_status dt__split_open(struct dt_job *job, struct dt_steps *steps);
void dt__split_close(struct dt_job *job);
/* The bank's vectors, filled, to the parts' owners, or back; the weights alone, or, behind
 * dt__exchange_gather, all vectors. Nothing is moved twice at a step. Collective over bank and
 * workers. */
void dt__split_scatter(struct dt_job *job);
void dt__split_gather(struct dt_job *job, bool all);

/* The update of the parts that needs the norm, which is known behind the exchange's end of the
 * step. */
void dt__split_update(struct dt_job *job);

#endif
