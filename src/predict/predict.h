/* predict: answers of a trained model. A predictor loads a model with everything that belongs to it
 * (how features are scaled and normalised, the names of features and classes), and turns rows into
 * probabilities or values. `dtrain predict` and `dtrain serve` use it.
 *
 * Nothing here is collective, and MPI need not be initialised. A predictor serves one thread at a
 * time; several predictors may work in parallel. The first to be opened chooses the kernel
 * (dt__blas_select), so open it before other threads open predictors, and not while a training
 * starts. A separate process, dtrain-hdf5, reads HDF5. Opening the first file forks it, and it
 * lives as long as the program. So wait() for any child does not return, and pages that the program
 * writes later exist twice: open a model before filling large memory. */
#ifndef PREDICT_PREDICT_H
#define PREDICT_PREDICT_H

#include "base/base.h"
#include "data/data.h"
#include "dtrain/predict.h"
#include "model/model.h"
#include "state/state.h"

/* An open model. Members are read-only for other files. */
struct dt_predictor {
    char *path;                /* path of the file that was loaded */
    struct dt_checkpoint file; /* step, schema, configuration, parameters */
    struct dt_model *model;
    int classes;            /* 0: its answers are values, not classes */
    const char *answer;     /* the name of its answers: "probabilities" or "values" */
    size_t features, width; /* numbers in a row, and in its answer: a probability per class, or a
                             * value per target (train.loss=quantile: per target and quantile) */
    size_t entries; /* in a row's sparse part, one per column of categories; 0: the network reads
                     * all features directly */
    size_t numbers; /* numbers in a row before those entries, or all features; then z of encoded
                     * features */
    size_t chunk;   /* rows that are worth predicting at once: DT_EVAL_CHUNK, or what fits in 64
                     * MiB */

    size_t targets; /* targets of a row if answers are values; else 0 */
    float *margin;  /* (targets) of intervals: dt__predictor_bound; NULL: answers have none */

    /* Private to src/predict: memory of the current chunk of rows. */
    struct dt_network *network; /* NULL: nothing was predicted so far */
    float *x;                   /* (chunk, features and z) normalised rows */
    float *dense, *value;       /* the dense part and the entries' values of a batch, if the model
                                 * takes sparse rows */
    uint64_t *offsets;
    uint32_t *index;
    float *logits; /* (DT_EVAL_CHUNK, nout) */
    size_t x_capacity, dense_capacity, value_capacity, offsets_capacity, index_capacity;
};

/* Opens a predictor like dt_predictor_open, but makes the network with the first answer: for
 * callers that choose the kernel by what the model says, or want no answers. */
dt_status dt__predictor_load(const char *path, struct dt_predictor **out);

/* Rows as the network takes them, scaled and normalised; all zero: no rows. */
struct dt_inputs {
    float *x;        /* (rows, numbers) */
    uint32_t *index; /* (rows, entries), as is value; NULL if the model has no entries */
    float *value;
    size_t x_capacity, index_capacity, value_capacity;
};
/* Grows the capacity to `rows` rows, and keeps the rows that are there. DT_EMEMORY. */
dt_status dt__inputs_reserve(struct dt_inputs *inputs, const struct dt_predictor *predictor,
                             size_t rows);
void dt__inputs_free(struct dt_inputs *inputs);
/* Reads the next row of a stream of the predictor's schema into row `at`; otherwise like
 * dt__rows_next. */
dt_status dt__inputs_read(struct dt_inputs *inputs, size_t at, const struct dt_predictor *predictor,
                          struct dt_rows *rows, uint64_t *out_line, bool *out_end);
/* Predicts any number of these rows; otherwise like dt_predictor_rows. */
dt_status dt__predictor_inputs(struct dt_predictor *predictor, const struct dt_inputs *inputs,
                               size_t rows, float *out, int32_t *out_class);

/* Predicts a batch of at most DT_EVAL_CHUNK rows as dt__table_read gives it: scaled and normalised,
 * with a sparse part or without. */
dt_status dt__predictor_batch(struct dt_predictor *predictor, const struct dt_batch *batch,
                              float *out, int32_t *out_class);

/* Computes the outputs (rows, nout) of the network for a batch, before they become answers. */
dt_status dt__predictor_logits(struct dt_predictor *predictor, const struct dt_batch *batch,
                               float *out);

/* Gives answers intervals of this coverage; 0: none. Opening a model has set the coverage that its
 * run asked for. DT_EUSAGE: the model predicts classes, or keeps too few residuals. DT_EMEMORY. */
dt_status dt__predictor_interval(struct dt_predictor *predictor, double coverage);
/* Returns the lower or upper end of a target's interval, from the row's answer (width). */
float dt__predictor_bound(const struct dt_predictor *predictor, const float *answer, size_t target,
                          bool upper);

/* Fails with DT_EFORMAT if an answer (width) has a number that is not finite: the row, or a weight,
 * is too large. */
dt_status dt__predictor_check(const struct dt_predictor *predictor, const float *answer);

#endif
