/* certainty: how a trained model's answers are calibrated by held-out rows. The results are stored
 * in the model file.
 *
 *   temperature   divisor of a classifier's outputs
 *   cut           two classes: a row is of class 1 if its logit / temperature is above the cut
 *   residuals     numbers: distances of targets from predictions, from which intervals are
 *                 computed for any coverage
 *
 * Sources: Guo et al., "On calibration of modern neural networks", ICML 2017 (temperature); Lei et
 * al., "Distribution-free predictive inference for regression", JASA 2018 (split conformal); Romano
 * et al., "Conformalized quantile regression", NeurIPS 2019. */
#ifndef MODEL_CERTAINTY_H
#define MODEL_CERTAINTY_H

#include "config/threshold.h"
#include "model/model.h"

/* Rows with their labels or targets, and a network's outputs for them, (rows, nout). */
struct dt_judged {
    struct dt_batch truth; /* label or target; weight or NULL. Owned */
    float *logits;
};
/* Allocates memory for `rows` rows of a model's outputs; weighs: with row weights. DT_EMEMORY. */
dt_status dt__judged_alloc(const struct dt_model *model, size_t rows, bool weighs,
                           struct dt_judged *out);
/* Copies a batch and its outputs to rows at, at + 1, ... of judged. */
void dt__judged_set(const struct dt_model *model, struct dt_judged *judged, size_t at,
                    const struct dt_batch *batch, const float *logits);
void dt__judged_free(struct dt_judged *judged);

/* Fits the temperature (eval.calibrate), and then the cut (eval.threshold), and writes both to
 * `out`. The outputs in `rows` are those of the model at temperature 1. DT_EMISMATCH: all rows are
 * of one class. DT_EMEMORY. */
dt_status dt__certainty_fit(const struct dt_config *config, const struct dt_model *model,
                            const struct dt_judged *rows, struct dt_certainty *out);
/* Fails with DT_EMISMATCH if there are no held-out rows of one of the two classes, so that no cut
 * can be chosen. negative, positive: numbers of rows of each class. */
dt_status dt__certainty_classes(size_t negative, size_t positive);
/* Fails with DT_EMISMATCH if `rows` rows are too few for intervals of this coverage. */
dt_status dt__certainty_suffices(size_t rows, double coverage);
/* Computes the residuals for out->coverage. The rows must not have been used to train or select the
 * model. DT_EMISMATCH: too few rows for that coverage. DT_EMEMORY. */
dt_status dt__certainty_keep(const struct dt_model *model, const struct dt_judged *rows,
                             struct dt_certainty *out);
/* Writes, for each target, half the width of an interval of this coverage; for a model with
 * quantiles, the distance to add on either side. DT_EUSAGE: there are no residuals, or too few. */
dt_status dt__certainty_margin(const struct dt_certainty *certainty, int targets, double coverage,
                               float *out);

#endif
