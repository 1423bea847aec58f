/* Warnings about data and settings that are probably mistakes, with a suggested fix, once each.
 * Only a lack of memory is an error. */
#ifndef DT_TRAIN_ADVICE_H
#define DT_TRAIN_ADVICE_H

#include "train/step.h"
#include "train/worker.h"

/* Bank only: prints how labels map to classes, if that may surprise. */
void dt__advise_labels(const struct dt_job *job);
/* Bank only: warns about data, layers and hosts that do not suit each other. */
void dt__advise_start(const struct dt_job *job);
/* Bank only: warns if the loss over a log window is 10 times that of a guess, which no training
 * that works has. Returns whether it did. A program that can stop the run watches the losses. */
bool dt__advise_loss(const struct dt_bank *bank);

/* Checks, before weights are allocated, that this host has memory for them and for the optimizer
 * state. Not collective. DT_EMEMORY: it has not; the message says whether split layers would
 * help. */
dt_status dt__check_memory(const struct dt_job *job);

/* Measures over some steps of a span how long the exchange with other hosts takes. If that is
 * long, the first worker prints how many local steps would reduce it to a tenth of a step. Call
 * at each step. */
void dt__advise_wire(const struct dt_job *job, struct dt_worker *worker, struct dt_span *span);

#endif
