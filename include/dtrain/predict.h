/* predict: predictions of a trained model. A predictor is a loaded model, with its scaling and
 * normalisation and the names of its features and classes. Not collective; needs no MPI.
 *
 * Only one thread at a time may use a predictor. Threads may use separate predictors at the same
 * time, once the first predictor has been opened.
 *
 * A child process reads the HDF5 files. The first dt_predictor_open forks it, and it lives as long
 * as the program. So a wait() for any child does not return before, and memory that the program
 * filled before the fork may be copied: open the first model early. */
#ifndef DTRAIN_PREDICT_H
#define DTRAIN_PREDICT_H

#include "dtrain/base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct dt_predictor;

/* Opens a model file, a checkpoint, a version's directory, or the best model of a run directory.
 * *out is NULL on failure. DT_EIO: there is no such file, or it cannot be read. DT_EFORMAT: the
 * file is damaged or not a model. DT_EMEMORY. */
dt_status dt_predictor_open(const char *path, struct dt_predictor **out);
void dt_predictor_close(struct dt_predictor *predictor); /* NULL is fine */

int dt_predictor_features(const struct dt_predictor *predictor); /* numbers per row */
/* Returns the numbers per answer: a probability for each class, or a value for each target (with
 * train.loss=quantile, for each quantile of each target). */
int dt_predictor_width(const struct dt_predictor *predictor);
int dt_predictor_classes(const struct dt_predictor *predictor); /* 0: answers are values */
/* Return the name of a feature or class, from 0, valid until the predictor is closed; NULL if the
 * training data had no names or the number is out of range. */
const char *dt_predictor_feature_name(const struct dt_predictor *predictor, int feature);
const char *dt_predictor_class_name(const struct dt_predictor *predictor, int class_number);

/* Predicts rows of features in the units of the training data. A column of texts is one feature for
 * each of its texts ("colour=green"): 1 for the row's own text, 0 for the others.
 *   raw        (rows, features) row-major, before scaling and normalisation
 *   out        (rows, width) written: probabilities that add up to 1, or values
 *   out_class  (rows) written: the most probable class, the first of equals; may be NULL
 * A NaN in a row makes only this row's answer NaN.
 * DT_EMEMORY. DT_EMISMATCH, only for models with an embedding: a row does not have exactly one
 * nonzero feature for each column of texts, or the model hashes texts (data.hash_bits) and so
 * cannot take rows of numbers. */
dt_status dt_predictor_rows(struct dt_predictor *predictor, const float *raw, size_t rows,
                            float *out, int32_t *out_class);

#ifdef __cplusplus
}
#endif

#endif
