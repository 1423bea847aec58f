/* train: a training run, from a configuration to a finished run directory; a custom
 * loss. */
#ifndef DTRAIN_TRAIN_H
#define DTRAIN_TRAIN_H

#include "dtrain/base.h"
#include "dtrain/config.h"
#include "dtrain/data.h"
#include "dtrain/world.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the loss of one row from its outputs and targets, (n) each, and writes the loss's
 * derivative by each output to gradient (n) unless that is NULL. `gradient` may be the memory of
 * `outputs`: read an output before writing its derivative. Must be a pure function, the same on all
 * ranks. */
typedef double dt_loss_fn(void *arg, int n, const float *outputs, const float *targets,
                          float *gradient);

/* A program's additions to a run. */
struct dt_train_options {
    size_t size; /* sizeof(struct dt_train_options) */
    /* Every rank: rows to train and to evaluate on, instead of files. They are the same on every
     * rank, and borrowed for the call; to continue a run, pass the same rows again. eval NULL:
     * data.eval_fraction of train is held out, by default none. */
    const struct dt_arrays *train, *eval;
    /* Every rank: the loss to train with and to report, in place of train.loss. Predictions are the
     * network's outputs. Needs model.task=regress. `dtrain eval`, which does not have it, reports
     * train.loss. NULL: none. */
    dt_loss_fn *loss;
    void *loss_arg;
    /* Rank 0: receives each record of metrics.jsonl as it is written: one JSON object without
     * newline. NULL: none. */
    void (*record)(void *arg, const char *json);
    /* Rank 0: called at least every 20 ms, by a process alone once a step. After it has returned
     * true, the run saves a checkpoint and stops. NULL: none. */
    bool (*stop)(void *arg);
    void *arg; /* of record and stop */
};
#define DT_TRAIN_OPTIONS_INIT                                                                      \
    {                                                                                              \
        sizeof(struct dt_train_options), NULL, NULL, NULL, NULL, NULL, NULL, NULL                  \
    }

/* Trains as the configuration says, or continues the run in run.dir.
 * Collective over the world: all ranks return the same status.
 * config: every rank passes one; rank 0's is sent to the others. It is changed to what the run has
 * decided (run.replicas, model.layers, keys of a preset): create another for another training.
 * options: NULL is fine.
 * Afterwards the watchdog is off, and a stop request is cleared unless dt_stop_install was called.
 * The caller's floating-point state is restored. OpenMP and OpenBLAS keep run.threads threads.
 * One training at a time in a process. Another thread may use a predictor meanwhile if both have
 * the same run.kernel and the training or the predictor has already computed when the other starts.
 * DT_OK: completed, now or before. DT_STOPPED: stopped on request with a checkpoint; train again to
 * continue. DT_EUSAGE: wrong configuration, or options that differ between ranks. Other statuses:
 * dt_error_text. */
dt_status dt_train(struct dt_world *world, struct dt_config *config,
                   const struct dt_train_options *options);

/* Trains on rows in memory: dt_train with a new configuration. settings: as in dt_config_read_text,
 * rank 0's counts. train, eval: as in struct dt_train_options.
 * Collective over the world. Statuses as dt_train. */
dt_status dt_train_arrays(struct dt_world *world, const char *settings,
                          const struct dt_arrays *train, const struct dt_arrays *eval);

/* Trains the trials of search.*, all over the world's ranks, and makes one model of the best, in
 * export/best of run.dir; or continues the search in run.dir. Rank 0 leads.
 * Collective over the world: all ranks return the same status. config: as in dt_train. Statuses as
 * dt_train; a trial whose own setting fails is its result and no failure of the search. */
dt_status dt_search(struct dt_world *world, struct dt_config *config);

#ifdef __cplusplus
}
#endif

#endif
