/* Warnings about data and settings that are probably mistakes, each printed once, with a suggested
 * fix. Only lack of memory is an error. */
#ifndef DT_TRAIN_ADVICE_H
#define DT_TRAIN_ADVICE_H

#include "train/step.h"
#include "train/worker.h"

/* Bank only: prints how labels map to classes, if the mapping may surprise. */
void dt__advise_labels(const struct dt_job *job);
/* Bank only: warns about features with values much larger than 1, batchnorm over single rows, and
 * layers that would send less if split. */
void dt__advise_start(const struct dt_job *job);
/* Bank only: warns if the loss in the last train record is more than 10 times the loss of a guess,
 * which happens in no training that works. Returns whether it warned. Does nothing in a
 * learning-rate test, which watches the losses itself. */
bool dt__advise_loss(const struct dt_bank *bank);

/* Checks, before weights are allocated, that this host has memory for them and for the optimizer
 * state. Not collective. DT_EMEMORY: the host has too little; the message says whether split layers
 * would help. */
dt_status dt__check_memory(const struct dt_job *job);

/* Measures, over some steps of a span, how long the exchange with other hosts takes. If it takes
 * long, the first worker prints how many local steps would reduce it to a tenth of a step. Call it
 * in each step. */
void dt__advise_wire(const struct dt_job *job, struct dt_worker *worker, struct dt_span *span);

#endif
