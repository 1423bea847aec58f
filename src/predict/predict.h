/* predict: answers of a trained model. A predictor loads a model with all that belongs to it (how
 * features are scaled and normalised, the names of features and classes), and turns rows into
 * probabilities or values. `dtrain predict` and `dtrain serve` are made of it.
 *
 * Nothing here is collective, and MPI need not be initialised. A predictor serves one thread at a
 * time; several predictors may work side by side. The first that is opened settles the kernel
 * (dt__blas_settle): before others are opened in other threads, and not beside the start of a
 * training.
 * HDF5 is read by a process of its own, dtrain-hdf5. Opening the first file forks it, and it lives
 * as long as the program. So wait() for any child does not return, and pages that the program
 * writes later are there twice: open a model before large memory is filled. */
#ifndef PREDICT_PREDICT_H
#define PREDICT_PREDICT_H

#include "base/base.h"
#include "data/data.h"
#include "dtrain/predict.h"
#include "model/model.h"
#include "state/state.h"

/* A model that is open. To be read alone. */
struct dt_predictor {
    char *path;                /* of the file that was loaded */
    struct dt_checkpoint file; /* step, schema, configuration, parameters */
    struct dt_model *model;
    int classes;            /* 0: its answers are values, not of classes */
    const char *answer;     /* the name of its answers: "probabilities" or "values" */
    size_t features, width; /* numbers in a row, and in its answer: a probability a class, or a
                             * value a target (train.loss=quantile: and quantile) */
    size_t entries; /* of a row's sparse part, one a column of categories; 0: the network reads all
                     * features as they are */
    size_t numbers; /* of a row before those entries, or all features; and z of encoded ones */
    size_t chunk;   /* rows that are worth predicting at once: DT_EVAL_CHUNK, or what 64 MiB hold */

    size_t targets; /* numbers: of a row; else 0 */
    float *margin;  /* (targets) of intervals: dt__predictor_bound; NULL: answers have none */

    /* The room's own: memory of the chunk of rows under way. */
    struct dt_network *network; /* NULL: nothing was answered so far */
    float *x;                   /* (chunk, features and z) normalised rows */
    float *dense, *value;       /* a batch of dense rows, of a model of sparse ones */
    uint64_t *offsets;
    uint32_t *index;
    float *logits; /* (DT_EVAL_CHUNK, nout) */
    size_t x_room, dense_room, value_room, offsets_room, index_room;
};

/* The same, but its network is made with the first answer: for who reads in the model what kernel
 * to settle, or wants no answers. */
dt_status dt__predictor_load(const char *path, struct dt_predictor **out);

/* Rows as the network takes them, scaled and normalised; zeros: none. */
struct dt_inputs {
    float *x;        /* (rows, numbers) */
    uint32_t *index; /* (rows, entries) as is value; without any, if the model has none */
    float *value;
    size_t x_room, index_room, value_room;
};
/* Makes room for so many rows, with those that are there. DT_EMEMORY. */
dt_status dt__inputs_reserve(struct dt_inputs *inputs, const struct dt_predictor *predictor,
                             size_t rows);
void dt__inputs_free(struct dt_inputs *inputs);
/* The next row of a stream of the predictor's schema, as row `at`; else as dt__rows_next. */
dt_status dt__inputs_read(struct dt_inputs *inputs, size_t at, const struct dt_predictor *predictor,
                          struct dt_rows *rows, uint64_t *out_line, bool *out_end);
/* Answers any number of them, else as dt_predictor_rows. */
dt_status dt__predictor_inputs(struct dt_predictor *predictor, const struct dt_inputs *inputs,
                               size_t rows, float *out, int32_t *out_class);

/* The same for a batch of at most DT_EVAL_CHUNK rows as dt__table_read gives it: scaled and
 * normalised, with a sparse part or without. */
dt_status dt__predictor_batch(struct dt_predictor *predictor, const struct dt_batch *batch,
                              float *out, int32_t *out_class);

/* Outputs (rows, nout) of the network for such a batch, before they become answers. */
dt_status dt__predictor_logits(struct dt_predictor *predictor, const struct dt_batch *batch,
                               float *out);

/* Gives answers intervals of this coverage; 0: none. Opening a model has given it those that its
 * run asked for. DT_EUSAGE: it predicts classes, or keeps too few residuals. DT_EMEMORY. */
dt_status dt__predictor_interval(struct dt_predictor *predictor, double coverage);
/* The lower or upper end of a target's interval, from the row's answer (width). */
float dt__predictor_bound(const struct dt_predictor *predictor, const float *answer, size_t target,
                          bool upper);

/* DT_EFORMAT: an answer (width) is no finite number: the row, or a weight, is too large. */
dt_status dt__predictor_check(const struct dt_predictor *predictor, const float *answer);

#endif
