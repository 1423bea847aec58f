/* predict: predictions of a trained model. A predictor has loaded a model with its scaling,
 * normalisation, and names of features and classes. Not collective; needs no MPI.
 *
 * One thread at a time may use a predictor. Several threads may each use their own, once the first
 * one has been opened.
 *
 * A child process reads the HDF5 files. The first open forks it, and it lives as long as the
 * program: wait() for any child blocks until then, and memory that the program has filled before
 * may be copied. So open the first model early. */
#ifndef DTRAIN_PREDICT_H
#define DTRAIN_PREDICT_H

#include "dtrain/base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct dt_predictor;

/* Opens a model file, a checkpoint, a version's directory, or the best model of a run directory.
 * *out is NULL on failure. DT_EIO: there is none, or it cannot be read. DT_EFORMAT: not a model, or
 * damaged. DT_EMEMORY. */
dt_status dt_predictor_open(const char *path, struct dt_predictor **out);
void dt_predictor_close(struct dt_predictor *predictor); /* NULL is fine */

int dt_predictor_features(const struct dt_predictor *predictor); /* numbers in a row */
/* Numbers in an answer: a probability for each class, or a value for each target (with
 * train.loss=quantile for each target and quantile). */
int dt_predictor_width(const struct dt_predictor *predictor);
int dt_predictor_classes(const struct dt_predictor *predictor); /* 0: answers are values */
/* Return a name, valid until close; NULL if the training data had none, or beyond the last. */
const char *dt_predictor_feature_name(const struct dt_predictor *predictor, int feature);
const char *dt_predictor_class_name(const struct dt_predictor *predictor, int class_number);

/* Predicts rows of features in the units of the training data. A column of texts is one feature for
 * each of its texts ("colour=green"): 1 for the row's own text, 0 for the others.
 *   raw        (rows, features) row-major, before scaling and normalisation
 *   out        (rows, width) written: probabilities that add up to 1, or values
 *   out_class  (rows) written: the most probable class, the first of equals; may be NULL
 * A NaN in a row makes NaN in its own answer only.
 * DT_EMEMORY. DT_EMISMATCH, of models with an embedding: a column of texts has not exactly one
 * feature that is not 0; or the model hashes texts (data.hash_bits), which rows of numbers lack. */
dt_status dt_predictor_rows(struct dt_predictor *predictor, const float *raw, size_t rows,
                            float *out, int32_t *out_class);

#ifdef __cplusplus
}
#endif

#endif
