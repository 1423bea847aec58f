/* The common functions of the steppers of sync training: the exchange, gradients, accounts. */
#ifndef DT_TRAIN_SYNC_STEP_H
#define DT_TRAIN_SYNC_STEP_H

#include "train/step.h"

/* Creates steps->exchange from the spec of dt__step_spec, completed with what depends on the
 * run. status: of this rank so far. Collective over bank and workers. */
dt_status dt__exchange_open(struct dt_job *job, struct dt_steps *steps,
                            struct dt_exchange_spec *spec, dt_status status);
/* Fills the exchange with the vectors of the bank and the loss sums of an open log window, and
 * starts it. Collective over bank and workers. */
dt_status dt__exchange_fill(struct dt_job *job, dt_fill_fn *fill);
/* Returns the weights between spans; rows of them that this rank does not read may be old. */
const float *dt__exchange_at_rest(const struct dt_job *job);
/* Serves the rounds of a span: one step of the exchange is a step, or a round of local steps. */
int dt__exchange_serve(struct dt_job *job, const struct dt_span *span);

/* Returns the spec of an exchange of the group's steps. */
struct dt_exchange_spec dt__step_spec(struct dt_group *group);
/* Computes the gradients of the replicas of this worker in a step of the group, and hands the
 * buckets to the exchange. A worker without a replica, or after a failure, hands over all
 * buckets too, since the others wait for them. */
void dt__step_gradients(struct dt_group *group, struct dt_worker *worker, uint64_t step);
/* Adds a span of sync training, and the times of its exchanges, to the worker's budget. */
void dt__budget_add(const struct dt_job *job, double secs);

#endif
