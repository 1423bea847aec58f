/* train: the training run, from a config to a finished run directory. */
#ifndef DTRAIN_TRAIN_H
#define DTRAIN_TRAIN_H

#include "dtrain/base.h"
#include "dtrain/comm.h"
#include "dtrain/config.h"

/* Trains as the config says. Collective over the world; config is rank 0's on rank 0 and is sent to
 * the others, whose own is overwritten. All ranks return the same status.
 * DT_OK: completed, or was complete already. DT_STOPPED: stopped on request, checkpoint saved.
 * Else: the agreed error is the error text. */
dt_status dt_train(struct dt_world *world, struct dt_config *config);

#endif
