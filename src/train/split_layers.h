/* Split layers in training: this worker's parts, and the forward and backward passes of its
 * replicas, which wait for each other at each split layer. */
#ifndef DT_TRAIN_SPLIT_LAYERS_H
#define DT_TRAIN_SPLIT_LAYERS_H

#include "train/step.h"
#include "train/worker.h"

/* Checks that data, ranks and split layers fit together. With split layers only workers on the
 * bank's host evaluate; the others are removed from job->evaluating. Not collective. DT_EUSAGE. */
dt_status dt__split_check(struct dt_job *job);

/* Open and close this rank's parts, and what it needs to exchange messages about them; no effect
 * without split layers. Collective over bank and workers. */
dt_status dt__split_open(struct dt_job *job, struct dt_steps *steps);
void dt__split_close(struct dt_job *job);
/* Scatter copies the weights and optimizer state of all parts from the bank to their owners; gather
 * copies them back. If not `all`, gather copies only the weights, and calls dt__exchange_gather
 * first; if `all`, the caller must have called that. Gather skips what an earlier call in the same
 * step has copied. No effect without split layers. Collective over bank and workers. */
void dt__split_scatter(struct dt_job *job);
void dt__split_gather(struct dt_job *job, bool all);

/* Updates all parts if updates wait for the norm of the whole gradient, which the exchange has
 * computed by now; otherwise does nothing, since the parts are updated in the backward pass. */
void dt__split_update(struct dt_job *job);

#endif
