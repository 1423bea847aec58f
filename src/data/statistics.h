/* Statistics of the training rows. */
#ifndef DATA_STATISTICS_H
#define DATA_STATISTICS_H

#include "data/learned.h"

/* Deviations from the mean beyond which a value is told of: some are common in counts and prices,
 * so many hardly. */
enum { DT__FAR_DEVIATIONS = 20 };
/* data.clip with data.normalize=robust, where it is not given. */
enum { DT__ROBUST_CLIP = 5 };
/* Reads the rows of the part, if `config` asks for what follows from them: what
 * stands for missing values, schema.mean and inv_std (of raw * scale, population variance), the
 * targets' units, all unless `known` has them; the scale of weights and weights of classes, which
 * no schema has: a resume learns them anew. Checks targets that the loss bounds, of evaluation data
 * as well. DT_EFORMAT: one that the loss does not take.
 * Source: Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample
 * variances", 1979, eq. 2.1. */
dt_status dt__statistics_learn(const struct dt__survey *survey);

#endif
