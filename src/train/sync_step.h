/* Functions that the steppers of sync training share: the exchange, gradients, accounts. */
#ifndef DT_TRAIN_SYNC_STEP_H
#define DT_TRAIN_SYNC_STEP_H

#include "train/step.h"

/* Creates steps->exchange. spec: from dt__step_spec; this function adds the members that depend on
 * the run. status: this rank's status so far. Collective over bank and workers. */
dt_status dt__exchange_open(struct dt_job *job, struct dt_steps *steps,
                            struct dt_exchange_spec *spec, dt_status status);
/* Fills the exchange with the bank's vectors and with the loss sums since the last train record,
 * and starts it. Collective over bank and workers. */
dt_status dt__exchange_fill(struct dt_job *job, dt_fill_fn *fill);
/* Returns the weights between spans. Rows that this rank does not read may be out of date. */
const float *dt__exchange_at_rest(const struct dt_job *job);
/* Serves the rounds of a span on the bank. To the exchange each round is one step; without local
 * steps a round is one step of training. */
int dt__exchange_serve(struct dt_job *job, const struct dt_span *span);

/* Returns the spec of an exchange for the steps of the group. */
struct dt_exchange_spec dt__step_spec(struct dt_group *group);
/* Computes the gradients of this worker's replicas in a step of the group, and passes the buckets
 * to the exchange. A worker without a replica, or that has failed, passes all buckets too, since
 * other ranks wait for them. */
void dt__step_gradients(struct dt_group *group, struct dt_worker *worker, uint64_t step);
/* Adds the seconds of a span of sync training, and the times of its exchanges, to the worker's
 * budget. */
void dt__budget_add(const struct dt_job *job, double secs);

#endif
