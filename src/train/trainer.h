/* Bank and workers train together: in spans of steps, with a synchronization point behind each. */
#ifndef DT_TRAIN_TRAINER_H
#define DT_TRAIN_TRAINER_H

#include "train/bank.h"
#include "train/worker.h"

/* The roles of a rank that trains. All functions here are collective over bank and workers. */
struct dt_trainer {
    struct dt_job *job;
    struct dt_worker *worker; /* NULL at a bank that has workers */
    struct dt_bank *bank;     /* NULL at a worker that is not alone */
};

/* sync_train.c and async_train.c: the exchange of gradients, with the bank's weights and counts in
 * it ... */
dt_status dt__sync_open(const struct dt_trainer *trainer);
dt_status dt__async_open(const struct dt_trainer *trainer);
/* ... and the loops. DT_STOPPED: stopped on request, state saved. */
dt_status dt__sync_train(const struct dt_trainer *trainer);
dt_status dt__async_train(const struct dt_trainer *trainer);

/* sync_point.c: what this rank asks for: enum dt_ask. Not collective. */
int dt__asks(const struct dt_trainer *trainer);
/* Records, evaluation, saves, and whether the run goes on. The weights are at rest.
 * asked: enum dt_ask that ended the span. *out_end: there is no other. */
dt_status dt__sync_point(const struct dt_trainer *trainer, int asked, bool *out_end);

/* evaluate.c: evaluation in place. DT_STOPPED: a stop was requested before it was done. */
dt_status dt__evaluate(const struct dt_trainer *trainer);

#endif
