/* What a user is told of data and settings that may not mean what is thought, and what would help:
 * each once. It is no failure, but where memory is wanting, and changes nothing. */
#ifndef DT_TRAIN_ADVICE_H
#define DT_TRAIN_ADVICE_H

#include "train/step.h"
#include "train/worker.h"

/* Bank only: what the labels come to, where a user may take it for something else. */
void dt__advise_labels(const struct dt_job *job);
/* Bank only: what data, layers and hosts do not go well together with. */
void dt__advise_start(const struct dt_job *job);
/* Bank only: warns if the loss over a log window is 10 times that of a guess, which no training
 * that works has. Returns whether it did. A program that can stop the run watches the losses. */
bool dt__advise_loss(const struct dt_bank *bank);

/* Any rank, before there are weights. DT_EMEMORY: this host has no memory for the weights and the
 * optimizer's state; whether split layers would help. */
dt_status dt__check_memory(const struct dt_job *job);

/* What the exchange of a step with other hosts takes, over some steps of a span. */
/* At each step of a span: the first worker tells if it is much, and after how many local steps it
 * would be little: a tenth of what the rest of a step takes. */
void dt__advise_wire(const struct dt_job *job, struct dt_worker *worker, struct dt_span *span);

#endif
