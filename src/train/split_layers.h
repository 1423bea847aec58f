/* Split layers in training: the parts of this worker, and the pass of its replicas, which go
 * through the network together from one split layer to the next. */
#ifndef DT_TRAIN_SPLIT_LAYERS_H
#define DT_TRAIN_SPLIT_LAYERS_H

#include "train/step.h"
#include "train/worker.h"

/* Checks that data, ranks and layers suit, and limits the workers that evaluate. Not collective.
 * DT_EUSAGE. */
dt_status dt__split_check(struct dt_job *job);

/* Open or close the parts, besides the exchange; no effect without split layers. Collective over
 * bank and workers. */
dt_status dt__split_open(struct dt_job *job, struct dt_steps *steps);
void dt__split_close(struct dt_job *job);
/* Moves the vectors of the bank to the owners of parts (scatter) or back (gather). all: all
 * vectors, after dt__exchange_gather; else the weights. A gather moves nothing twice at a step.
 * Collective over bank and workers. */
void dt__split_scatter(struct dt_job *job);
void dt__split_gather(struct dt_job *job, bool all);

/* Updates the parts whose update needs the norm, which is known at the end of the exchange. */
void dt__split_update(struct dt_job *job);

#endif
