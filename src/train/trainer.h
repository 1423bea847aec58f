/* Bank and workers train together: in spans of steps, with a synchronization point behind each. */
#ifndef DT_TRAIN_TRAINER_H
#define DT_TRAIN_TRAINER_H

#include "train/bank.h"
#include "train/worker.h"

/* All functions here are collective over bank and workers, but dt__asks. */

/* sync_train.c and async_train.c: the exchange of gradients, with the bank's weights and counts in
 * it ... */
dt_status dt__sync_open(struct dt_job *job);
dt_status dt__async_open(struct dt_job *job);
/* ... and the loops. DT_STOPPED: stopped on request, state saved. */
dt_status dt__sync_train(struct dt_job *job);
dt_status dt__async_train(struct dt_job *job);

/* sync_point.c: dt_ask_fn: what signals ask for, at the bank also the program, clocks and the
 * evaluator. job: struct dt_job. */
int dt__asks(void *job);
/* Records, evaluation, saves, and whether the run goes on. The weights are at rest.
 * asked: enum dt_ask that ended the span. *out_end: there is no other. */
dt_status dt__sync_point(struct dt_job *job, int asked, bool *out_end);

/* evaluate.c: evaluation in place. DT_STOPPED: a stop was requested before it was done. */
dt_status dt__evaluate(struct dt_job *job);

#endif
