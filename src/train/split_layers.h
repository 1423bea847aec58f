/* Split layers in training: this worker's parts, and the pass of its replicas, which advance
 * through the network together from one split layer to the next. */
#ifndef DT_TRAIN_SPLIT_LAYERS_H
#define DT_TRAIN_SPLIT_LAYERS_H

#include "train/step.h"
#include "train/worker.h"

/* Checks that data, ranks and split layers fit together, and limits the workers that evaluate to
 * the bank's host. Not collective. DT_EUSAGE. */
dt_status dt__split_check(struct dt_job *job);

/* Open and close this rank's parts and their messages; no effect without split layers. Collective
 * over bank and workers. */
dt_status dt__split_open(struct dt_job *job, struct dt_steps *steps);
void dt__split_close(struct dt_job *job);
/* Scatter moves all vectors of parts from the bank to the owners; gather moves them back. all: all
 * vectors, to be called after dt__exchange_gather; otherwise only the weights. A gather moves
 * nothing twice in the same step. Collective over bank and workers. */
void dt__split_scatter(struct dt_job *job);
void dt__split_gather(struct dt_job *job, bool all);

/* Updates the parts whose update needs the norm of the gradient, after the exchange has computed
 * it. */
void dt__split_update(struct dt_job *job);

#endif
