/* certainty: calibration of a trained model's answers by held-out rows, kept in the model file.
 *
 *   temperature   the outputs of a classifier are divided by it
 *   cut           for two classes: a row is of class 1 if its divided logit is above
 *   residuals     for numbers: distances of the targets of rows from the predictions, from which
 *                 intervals are computed for any coverage
 *
 * Sources: Guo et al., "On calibration of modern neural networks", ICML 2017 (temperature); Lei et
 * al., "Distribution-free predictive inference for regression", JASA 2018 (split conformal); Romano
 * et al., "Conformalized quantile regression", NeurIPS 2019. */
#ifndef MODEL_CERTAINTY_H
#define MODEL_CERTAINTY_H

#include "config/threshold.h"
#include "model/model.h"

/* Rows with labels or targets, and the outputs (rows, nout) of a network for them. */
struct dt_judged {
    struct dt_batch truth; /* rows, and label or target, and weight or NULL: owned */
    float *logits;
};
/* Allocates memory for rows of a model; weighs: with weights. DT_EMEMORY. */
dt_status dt__judged_alloc(const struct dt_model *model, size_t rows, bool weighs,
                           struct dt_judged *out);
/* Copies a batch and its outputs to row `at` of it. */
void dt__judged_set(const struct dt_model *model, struct dt_judged *judged, size_t at,
                    const struct dt_batch *batch, const float *logits);
void dt__judged_free(struct dt_judged *judged);

/* Fits the temperature of eval.calibrate, and then the cut of eval.threshold, and writes both to
 * `out`. model: with its original outputs (temperature 1). DT_EMISMATCH: all rows are of one class.
 * DT_EMEMORY. */
dt_status dt__certainty_fit(const struct dt_config *config, const struct dt_model *model,
                            const struct dt_judged *rows, struct dt_certainty *out);
/* Fails with DT_EMISMATCH if one of two classes has no held-out rows to choose a cut; positive: the
 * number of rows of the positive class. */
dt_status dt__certainty_classes(size_t negative, size_t positive);
/* Fails with DT_EMISMATCH if this number of rows is too small for intervals of a coverage. */
dt_status dt__certainty_suffices(size_t rows, double coverage);
/* Keeps the residuals of rows that were used neither to train nor to select the model.
 * DT_EMISMATCH: too few for a coverage of out->coverage. DT_EMEMORY. */
dt_status dt__certainty_keep(const struct dt_model *model, const struct dt_judged *rows,
                             struct dt_certainty *out);
/* Writes half the width of an interval of this coverage for each target; with quantiles, the
 * distance that is added on either side. DT_EUSAGE: there are no residuals, or too few. */
dt_status dt__certainty_margin(const struct dt_certainty *certainty, int targets, double coverage,
                               float *out);

#endif
