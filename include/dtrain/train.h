/* train: a training run, from a configuration to a finished run directory; a loss of the
 * program's own. */
#ifndef DTRAIN_TRAIN_H
#define DTRAIN_TRAIN_H

#include "dtrain/base.h"
#include "dtrain/config.h"
#include "dtrain/data.h"
#include "dtrain/world.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the loss of one row from its outputs and targets, (n) each, and writes its gradient by
 * the outputs unless `gradient` is NULL. `gradient` may be the memory of `outputs`: read an output
 * before writing its gradient. Must return the same for the same numbers; any rank may call it. */
typedef double dt_loss_fn(void *arg, int n, const float *outputs, const float *targets,
                          float *gradient);

/* What a program adds to a run. */
struct dt_train_options {
    size_t size; /* sizeof(struct dt_train_options) */
    /* Every rank: rows to train and to evaluate on, instead of files; the same rows on every rank,
     * borrowed for the call. A resume needs the same rows. eval NULL: data.eval_fraction of train,
     * or none. */
    const struct dt_arrays *train, *eval;
    /* Every rank: the loss to train with and to report, in place of train.loss; the model predicts
     * its outputs. Needs model.task=regress. `dtrain eval` reports train.loss. NULL: none. */
    dt_loss_fn *loss;
    void *loss_arg;
    /* Rank 0: receives each record of metrics.jsonl as it is written: one JSON object without
     * newline. NULL: none. */
    void (*record)(void *arg, const char *json);
    /* Rank 0: asked at least every 20 ms, or once a step by a process alone; once it returns true
     * the run stops as after a signal. NULL: none. */
    bool (*stop)(void *arg);
    void *arg; /* of record and stop */
};
#define DT_TRAIN_OPTIONS_INIT                                                                      \
    {                                                                                              \
        sizeof(struct dt_train_options), NULL, NULL, NULL, NULL, NULL, NULL, NULL                  \
    }

/* Trains as the configuration says. Collective over the world: all ranks return the same status.
 * config: rank 0's counts and is sent to the others. Afterwards it holds what the run decided
 * (run.replicas, model.layers, keys of a preset): use another one for another training. options:
 * NULL is fine.
 * Afterwards the watchdog is off and any stop request is cleared.
 * The caller's floating-point state is restored. OpenMP and OpenBLAS keep run.threads threads. One
 * training at a time in a process, and no predictor at the same time in another thread unless both
 * have the same run.kernel and one of them has begun to compute.
 * DT_EUSAGE: the configuration, or options that differ between ranks. DT_OK: completed, or complete
 * already. DT_STOPPED: stopped on request, checkpoint saved; train again to continue. */
dt_status dt_train(struct dt_world *world, struct dt_config *config,
                   const struct dt_train_options *options);

/* Trains on rows in memory. settings: an INI text as in dt_config_read_text. eval: NULL is fine.
 * Collective over the world. Statuses as dt_train. */
dt_status dt_train_arrays(struct dt_world *world, const char *settings,
                          const struct dt_arrays *train, const struct dt_arrays *eval);

#ifdef __cplusplus
}
#endif

#endif
