/* train: the training run, from a config to a finished run directory, and how models are
 * measured. */
#ifndef DTRAIN_TRAIN_H
#define DTRAIN_TRAIN_H

#include "dtrain/base.h"
#include "dtrain/comm.h"
#include "dtrain/config.h"
#include "dtrain/data.h"
#include "dtrain/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a program that uses the library can have of a run. Zeros: nothing. */
struct dt_train_options {
    /* Every rank: rows in its memory to train and to evaluate on, instead of files; the same on
     * every rank, borrowed for the call. The configuration's data.train is then "(arrays)" (and
     * data.eval), and a resume has to bring the same rows again. eval NULL: none, or
     * data.eval_fraction of train. */
    const struct dt_arrays *train, *eval;
    /* Every rank: the loss to train with and to report, in place of train.loss, and the same at
     * every rank; targets are learned as they stand. `dtrain eval` of the model does not have it,
     * and reports train.loss. NULL: none. */
    const struct dt_own_loss *loss;
    /* Bank: each record of metrics.jsonl as it is written: one JSON object, without newline. */
    void (*record)(void *arg, const char *json);
    /* Bank: asked every 20 ms or more often, or once a step by a process alone: once true, the run
     * stops as a signal would make it. */
    bool (*stop)(void *arg);
    void *arg; /* of both */
    /* Every rank, the same: how good the model is does not matter: nothing is said of that, and rows
     * of data.eval_fraction rest. */
    bool test;
};

/* Trains as the config says. Collective over the world; config is rank 0's on rank 0 and is sent to
 * the others, whose own is overwritten. What the run settles is in it afterwards, at rank 0 too
 * (data.train of rows in memory, model.layers, run.replicas, what a preset sets): another training
 * begins with a config of its own. options: NULL is fine. All ranks return the same status.
 * Behind it the watchdog rests (dt_world_rest), and a request to stop is over.
 * The caller's floating-point state stays as it was. But OpenMP and OpenBLAS are the process's:
 * from here on they have run.threads threads, which flush denormals. One training at a time in a
 * process, and no predictor beside it in another thread unless all have the same run.kernel and
 * one of them has begun to compute. What the first one has computed with decides what oneDNN has
 * from then on: fast products in bf16 are those of a process that begins in bf16, and behind
 * convolutions with a kernel of OpenBLAS there is no run.kernel=oneDNN.
 * A dedicated evaluator computes with niceness 10, which only a privileged process, or RLIMIT_NICE,
 * lets it take back behind the training.
 * Where all ranks are on one host, the workers sum and update, in the bank's shared memory, and
 * rank 0 sleeps: it needs no core of its own.
 * DT_EUSAGE: the configuration; or train, eval, loss or test is given at some ranks alone.
 * DT_OK: completed, or was complete already. DT_STOPPED: stopped on request, checkpoint saved.
 * Else: the agreed error is the error text. */
dt_status dt_train(struct dt_world *world, struct dt_config *config,
                   const struct dt_train_options *options);

/* The same on rows in memory, for languages that have not the library's other structs: settings is
 * an INI text, of which a line may be "section.key=value". eval may be NULL. DT_EUSAGE: a setting
 * is wrong. */
dt_status dt_train_arrays(struct dt_world *world, const char *settings,
                          const struct dt_arrays *train, const struct dt_arrays *eval);

/* ---- a rate to start from ------------------------------------------------------------------- */

enum { DT_LR_TEST_STEPS = 200 };

/* What a range test found: the mean loss of each step, and its smoothed curve. */
struct dt_lr_test {
    int points; /* steps that were done: it ends when the loss has diverged */
    double lr[DT_LR_TEST_STEPS], loss[DT_LR_TEST_STEPS], smooth[DT_LR_TEST_STEPS];
    int least; /* the point of the least smoothed loss */
    /* between the rate at which the loss falls fastest and a sixth of that of `least` */
    double suggest;
    bool rises;    /* the least loss stands at the begin: there is nothing to suggest */
    bool flat;     /* the loss falls by next to nothing */
    bool diverged; /* the last loss lies above the least by a multiple of it */
};

/* Trains some steps at a rate that rises from 1e-7 to 10, in a run directory `scratch` of its own,
 * which must not hold a run. Collective as dt_train is, and the same errors; `out` is the bank's.
 * DT_ENUMERIC: the loss is never finite.
 * Source: Smith, "Cyclical learning rates for training neural networks", WACV 2017, section 3.3. */
dt_status dt_lr_test(struct dt_world *world, struct dt_config *config, const char *scratch,
                     struct dt_lr_test *out);
/* From points, lr and loss: the other members. Not collective. DT_ENUMERIC. */
dt_status dt_lr_test_judge(struct dt_lr_test *test);

/* ---- measuring ------------------------------------------------------------------------------ */

/* A network and held-out rows, which are measured in chunks of DT_EVAL_CHUNK rows of file order.
 * All evaluation goes this way (in place, by the evaluator, by `dtrain eval`), and so has the same
 * digits under the same kernel and run.threads. Not collective. */
struct dt_measure;

/* Chunks that an evaluation covers: the first eval.batches, or all. */
uint64_t dt_measure_chunks(const struct dt_config *config, const struct dt_source *source);

/* For chunks [first, end); source and model must outlive it.
 * DT_EIO, DT_EFORMAT, DT_EMISMATCH: the rows cannot be read. DT_EMEMORY. */
dt_status dt_measure_create(const struct dt_config *config, const struct dt_source *source,
                            const struct dt_model *model, uint64_t first, uint64_t end,
                            struct dt_measure **out);
void dt_measure_destroy(struct dt_measure *measure);

/* Sums of one chunk under the weights params (P). confusion as dt_metrics_chunk has it.
 * DT_EIO, DT_EFORMAT: its rows cannot be read. */
dt_status dt_measure_chunk(struct dt_measure *measure, const float *params, uint64_t chunk,
                           double *sums, uint64_t *confusion);
/* The same, added to metrics of the model; call in chunk order. */
dt_status dt_measure_add(struct dt_measure *measure, const float *params, uint64_t chunk,
                         struct dt_metrics *metrics);

#ifdef __cplusplus
}
#endif

#endif
