/* Parts that the steppers of sync training share: the job's exchange, gradients, accounts. */
#ifndef DT_TRAIN_SYNC_STEP_H
#define DT_TRAIN_SYNC_STEP_H

#include "train/step.h"

/* Creates the job's exchange from the spec of dt__step_spec, to which it adds what follows from the
 * run; `status` is this rank's so far. */
dt_status dt__exchange_open(struct dt_job *job, struct dt_steps *steps,
                            struct dt_exchange_spec *spec, dt_status status);
/* Fills it with the bank's vectors and the loss sums of an open log window, and starts it. */
dt_status dt__exchange_fill(struct dt_job *job, dt_fill_fn *fill);
/* Returns the weights between spans; rows of them that this rank does not read may be old. */
const float *dt__exchange_at_rest(const struct dt_job *job);
/* Serves the rounds of a span: a step, or a round of local steps, is a step of the exchange. */
int dt__exchange_serve(struct dt_job *job, const struct dt_span *span);

/* The exchange of a group's steps. */
struct dt_exchange_spec dt__step_spec(struct dt_group *group);
/* Begins a group's step in its exchange: the gradient of each of its replicas that this worker has
 * goes into its slot; buckets are ready as the last one's are. The others wait for each bucket of a
 * rank that has no replica, or failed, as well. */
void dt__step_gradients(struct dt_group *group, struct dt_worker *worker, uint64_t step);
/* Adds a span of sync training to the worker's budget; times: of other exchanges than the job's. */
void dt__budget_add(const struct dt_job *job, struct dt_exchange_times times, double secs);

#endif
