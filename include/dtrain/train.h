/* train: trains from a configuration to a finished run directory, also with rows in memory or a
 * custom loss. */
#ifndef DTRAIN_TRAIN_H
#define DTRAIN_TRAIN_H

#include "dtrain/base.h"
#include "dtrain/config.h"
#include "dtrain/data.h"
#include "dtrain/world.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the loss of one row from its outputs and targets, (n) each. Unless `gradient` (n) is
 * NULL, writes the loss's derivative by each output there. `gradient` and `outputs` may be the same
 * memory: read an output before writing its derivative. Must be a pure function, the same on all
 * ranks. */
typedef double dt_loss_fn(void *arg, int n, const float *outputs, const float *targets,
                          float *gradient);

/* Options that a program adds to a training run. */
struct dt_train_options {
    size_t size; /* sizeof(struct dt_train_options) */
    /* Every rank: rows for training and evaluation, instead of files. Pass the same rows on every
     * rank, and again to continue a run; they are borrowed for the call. If eval is NULL,
     * data.eval_fraction of train is held out, by default none. */
    const struct dt_arrays *train, *eval;
    /* Every rank: the loss to train with and to report, instead of train.loss. It needs
     * model.task=regress; predictions are the network's outputs. `dtrain eval` does not have the
     * function and reports train.loss. NULL: none. */
    dt_loss_fn *loss;
    void *loss_arg;
    /* Rank 0: receives each record of metrics.jsonl when it is written, as one JSON object without
     * newline. NULL: none. */
    void (*record)(void *arg, const char *json);
    /* Rank 0: called at least every 20 ms, in a run of one process once per step. After it has
     * returned true, the run saves a checkpoint and stops. NULL: none. */
    bool (*stop)(void *arg);
    void *arg; /* passed to record and stop */
};
#define DT_TRAIN_OPTIONS_INIT                                                                      \
    {                                                                                              \
        sizeof(struct dt_train_options), NULL, NULL, NULL, NULL, NULL, NULL, NULL                  \
    }

/* Trains as the configuration says, or continues the run in run.dir.
 * Collective over the world: all ranks return the same status.
 * config: every rank passes one, and rank 0's is sent to the others. The call writes the run's
 * decisions into it (run.replicas, model.layers, keys of a preset): create a new one for another
 * training. options: NULL is fine.
 * Afterwards the watchdog is off, and a stop request is cleared unless dt_stop_install was called.
 * The caller's floating-point state is restored. OpenMP and OpenBLAS keep run.threads threads.
 * A process may run one training at a time. Another thread may use a predictor at the same time if
 * both use the same run.kernel and one of the two has computed something before the other starts.
 * DT_OK: the run is complete, now or from an earlier call. DT_STOPPED: stopped on request, with a
 * checkpoint; call again to continue. DT_EUSAGE: wrong configuration, or options that differ
 * between ranks. Other failures: see dt_error_text. */
dt_status dt_train(struct dt_world *world, struct dt_config *config,
                   const struct dt_train_options *options);

/* Trains on rows in memory: like dt_train with a new configuration and the options train and eval.
 * settings: the keys to set, a text for dt_config_read_text; rank 0's counts.
 * Collective over the world. Statuses are those of dt_train. */
dt_status dt_train_arrays(struct dt_world *world, const char *settings,
                          const struct dt_arrays *train, const struct dt_arrays *eval);

/* Runs a search as the keys search.* say, or continues the one in run.dir: distributes its trials
 * over the world's ranks and makes one model of the best trials, in export/best of run.dir.
 * Collective over the world: all ranks return the same status. config: as in dt_train. Statuses are
 * those of dt_train. A trial that fails because of its settings does not fail the search. */
dt_status dt_search(struct dt_world *world, struct dt_config *config);

#ifdef __cplusplus
}
#endif

#endif
