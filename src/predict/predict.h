/* predict: answers of a trained model. A predictor loads a model together with the scaling and
 * normalisation of its features and the names of its features and classes, and turns rows into
 * probabilities or values. `dtrain predict` and `dtrain serve` use it.
 *
 * Nothing here is collective, and MPI need not be initialised. A predictor serves one thread at a
 * time; several predictors may work in parallel. Opening the first one chooses the kernel
 * (dt__blas_select), so do this before other threads open predictors, and not while a training
 * starts.
 *
 * HDF5 files are read by a separate process, dtrain-hdf5, which is forked when the first file is
 * opened and lives as long as the program. Therefore a program that calls wait() until it has no
 * child left waits forever, and pages that the program writes after the fork are duplicated: open a
 * model before filling large memory. */
#ifndef PREDICT_PREDICT_H
#define PREDICT_PREDICT_H

#include "base/base.h"
#include "data/data.h"
#include "dtrain/predict.h"
#include "model/model.h"
#include "state/state.h"

/* An open model. Other rooms only read its members. */
struct dt_predictor {
    char *path;                /* path of the file that was loaded */
    struct dt_checkpoint file; /* step, schema, configuration, parameters */
    struct dt_model *model;
    int classes;            /* number of classes; 0: answers are values */
    const char *answer;     /* name of the answers: "probabilities" or "values" */
    size_t features, width; /* numbers in a row, and numbers in its answer: a probability per class,
                             * or a value per target (train.loss=quantile: per target and
                             * quantile) */
    size_t entries; /* entries in a row's sparse part, one per column of categories; 0: the network
                     * reads all features as a dense row */
    size_t numbers; /* numbers in a row's dense part; the last ones are z of encoded features
                     * (model/encoding.h) */
    size_t chunk;   /* rows to predict at once: DT_EVAL_CHUNK, or fewer so that they fit in 64
                     * MiB */

    size_t targets; /* targets per row; 0 for classes */
    float *margin;  /* (targets) distance from an answer to the ends of its interval, as in
                     * dt__predictor_bound; NULL: there are no intervals */

    /* Private to src/predict: the network, and memory for the current chunk of rows. */
    struct dt_network *network; /* NULL: created at the first prediction */
    float *x;                   /* (chunk, features and z) normalised rows */
    float *dense, *value;       /* a batch's dense part, and the values of its entries, for a model
                                 * that takes sparse rows */
    uint64_t *offsets;
    uint32_t *index;
    float *logits; /* (DT_EVAL_CHUNK, nout) */
    size_t x_capacity, dense_capacity, value_capacity, offsets_capacity, index_capacity;
};

/* Opens a predictor like dt_predictor_open, but creates the network only at the first prediction:
 * for callers that choose the kernel by the model's configuration, or do not predict. */
dt_status dt__predictor_load(const char *path, struct dt_predictor **out);

/* Rows as the network takes them, scaled and normalised. All members zero: no rows. */
struct dt_inputs {
    float *x;        /* (rows, numbers) */
    uint32_t *index; /* (rows, entries), like value; NULL if the model has no entries */
    float *value;
    size_t x_capacity, index_capacity, value_capacity;
};
/* Reserves capacity for `rows` rows and keeps the rows that are already there. DT_EMEMORY. */
dt_status dt__inputs_reserve(struct dt_inputs *inputs, const struct dt_predictor *predictor,
                             size_t rows);
void dt__inputs_free(struct dt_inputs *inputs);
/* Reads the next row of `rows`, a stream with the predictor's schema, into row `at` of `inputs`;
 * otherwise like dt__rows_next. */
dt_status dt__inputs_read(struct dt_inputs *inputs, size_t at, const struct dt_predictor *predictor,
                          struct dt_rows *rows, uint64_t *out_line, bool *out_end);
/* Predicts `rows` rows of `inputs`, any number; otherwise like dt_predictor_rows. */
dt_status dt__predictor_inputs(struct dt_predictor *predictor, const struct dt_inputs *inputs,
                               size_t rows, float *out, int32_t *out_class);

/* Predicts a batch of at most DT_EVAL_CHUNK rows as dt__table_read returns them: scaled and
 * normalised, with or without a sparse part. */
dt_status dt__predictor_batch(struct dt_predictor *predictor, const struct dt_batch *batch,
                              float *out, int32_t *out_class);

/* Computes the outputs of the network for a batch, (rows, nout), before the task turns them into
 * answers. */
dt_status dt__predictor_logits(struct dt_predictor *predictor, const struct dt_batch *batch,
                               float *out);

/* Sets the coverage of the answers' intervals; 0: no intervals. A predictor opens with the coverage
 * that its run was configured with. DT_EUSAGE: the model predicts classes, or has too few residuals
 * for this coverage. DT_EMEMORY. */
dt_status dt__predictor_interval(struct dt_predictor *predictor, double coverage);
/* Returns the lower or upper end of the interval of a target. `answer` (width) is the row's
 * answer. */
float dt__predictor_bound(const struct dt_predictor *predictor, const float *answer, size_t target,
                          bool upper);

/* Checks that all numbers of an answer (width) are finite. DT_EFORMAT: one is not, because the row
 * or a weight is too large. */
dt_status dt__predictor_check(const struct dt_predictor *predictor, const float *answer);

#endif
