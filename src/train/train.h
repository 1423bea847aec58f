/* train: the training run, from a config to a finished run directory, and how models are
 * measured. */
#ifndef TRAIN_TRAIN_H
#define TRAIN_TRAIN_H

#include "base/base.h"
#include "comm/comm.h"
#include "config/config.h"
#include "data/data.h"
#include "dtrain/train.h"
#include "model/model.h"

/* Options of a run that are not in its configuration; all zeros: no option is set. */
struct dt__train_options {
    const struct dt_arrays *train, *eval;
    const struct dt_own_loss *loss;
    void (*record)(void *arg, const char *json);
    bool (*stop)(void *arg);
    void *arg; /* passed to record and stop */
    /* Sources that dt__data_share has made on every rank, used in place of files. They are lent for
     * the call. held_out NULL: nothing is measured. */
    struct dt_source *rows, *held_out;
    bool test; /* skip quality reports and leave held-out rows unused; the same on every rank */
    bool no_first_save; /* rank 0: save no checkpoint of step 0 */
};

/* Trains like dt_train, but leaves the watchdog on and a stop request set: the caller clears both
 * with dt__world_rest. Several worlds of disjoint ranks may train at the same time, each in its own
 * run directory. Collective over the world. */
dt_status dt__train(struct dt_world *world, struct dt_config *config,
                    const struct dt__train_options *options);

/* Surveys the files of training and held-out rows on rank 0, and sends the survey to the other
 * ranks. The sources may be passed in dt__train_options. *out_held_out NULL: there are no held-out
 * rows. Collective over the world. known: the schema of the run that is continued, or NULL; only
 * rank 0's value is used. Errors as in dt__source_survey. */
dt_status dt__data_share(struct dt_world *world, const struct dt_config *config,
                         const struct dt_schema *known, struct dt_source **out_rows,
                         struct dt_source **out_held_out);

/* ---- a rate to start from ------------------------------------------------------------------- */

enum { DT_LR_TEST_STEPS = 200 };

/* The result of a range test: the mean loss of each step, and its smoothed curve. */
struct dt_lr_test {
    int points; /* steps done; fewer than DT_LR_TEST_STEPS if the loss diverged */
    double lr[DT_LR_TEST_STEPS], loss[DT_LR_TEST_STEPS], smooth[DT_LR_TEST_STEPS];
    int least; /* index of the least smoothed loss */
    /* the suggested rate: the geometric mean of the rate where the smoothed loss falls most and a
     * sixth of lr[least] */
    double suggest;
    bool rises;    /* the loss is least at the start, so no rate can be suggested */
    bool flat;     /* the loss hardly falls */
    bool diverged; /* the last smoothed loss exceeds the least by more than 3 times the least */
};

/* Trains DT_LR_TEST_STEPS steps at a rate that rises from 1e-7 to 10, in run directory `scratch`,
 * which must not hold a run. Collective like dt_train, with its errors; only the bank fills *out.
 * DT_ENUMERIC: the loss is not finite at any rate. Source: Smith, "Cyclical learning rates for
 * training neural networks", WACV 2017, section 3.3. */
dt_status dt__lr_test(struct dt_world *world, struct dt_config *config, const char *scratch,
                      struct dt_lr_test *out);
/* Fills the remaining members of test from points, lr and loss. Not collective. DT_ENUMERIC: no
 * loss is finite. */
dt_status dt__lr_test_judge(struct dt_lr_test *test);

/* ---- measuring ------------------------------------------------------------------------------ */

/* Returns a copy of config in which data.eval and data.eval_labels name the files of set. The copy
 * borrows the texts of both arguments. */
struct dt__named_set;
struct dt_config dt__set_config(const struct dt_config *config, const struct dt__named_set *set);

/* A network and the held-out rows that it measures, in chunks of DT_EVAL_CHUNK rows in file order.
 * Evaluation in place, the dedicated evaluator and `dtrain eval` all use it, so under the same
 * kernel and run.threads they give the same digits. Not collective. */
struct dt_measure;

/* Returns the number of chunks in an evaluation: eval.batches at most, or all. */
uint64_t dt__measure_chunks(const struct dt_config *config, const struct dt_source *source);
/* Returns the number of rows in these chunks. */
uint64_t dt__measure_rows(const struct dt_config *config, const struct dt_source *source);

/* Creates a measure of chunks [first, end); source and model must outlive it. DT_EIO,
 * DT_EFORMAT, DT_EMISMATCH: the rows cannot be read. DT_EMEMORY. */
dt_status dt__measure_create(const struct dt_config *config, const struct dt_source *source,
                             const struct dt_model *model, uint64_t first, uint64_t end,
                             struct dt_measure **out);
void dt__measure_destroy(struct dt_measure *measure);

/* Reads a chunk, and computes its outputs (rows, nout) with the weights params (P). Both results
 * are valid until the next call. DT_EIO, DT_EFORMAT: the rows cannot be read. */
dt_status dt__measure_outputs(struct dt_measure *measure, const float *params, uint64_t chunk,
                              struct dt_batch *out, const float **out_logits);
/* Fills sums with the metrics' sums over one chunk, with the weights params (P). confusion: as in
 * dt__metrics_chunk. DT_EIO, DT_EFORMAT: the rows cannot be read. */
dt_status dt__measure_chunk(struct dt_measure *measure, const float *params, uint64_t chunk,
                            double *sums, uint64_t *confusion);
/* Adds the sums of one chunk to metrics. Call it in the order of chunks. Errors as in
 * dt__measure_chunk. */
dt_status dt__measure_add(struct dt_measure *measure, const float *params, uint64_t chunk,
                          struct dt_metrics *metrics);

/* Computes for each metric the interval that holds the middle 95 % of its values over 200 samples
 * of the Poisson bootstrap. In a sample a row counts k times, where k is Poisson distributed with
 * mean 1, and a pure function of run.seed, the sample and the row. Keeps the logits of all chunks
 * in memory. DT_EMEMORY, and the errors of dt__measure_chunk. Source: Chamandy et al., "Estimating
 * uncertainty for massive data streams", Google, 2012. */
dt_status dt__measure_intervals(const struct dt_config *config, struct dt_measure *measure,
                                const float *params, uint64_t chunks, struct dt_metric_values *low,
                                struct dt_metric_values *high);

#endif
