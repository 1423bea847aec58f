/* Statistics of the training rows. */
#ifndef DATA_STATISTICS_H
#define DATA_STATISTICS_H

#include "data/learned.h"

/* Deviations from the mean beyond which a value is reported: some counts and prices are far out,
 * but rarely this far. */
enum { DT__FAR_DEVIATIONS = 20 };
/* data.clip with data.normalize=robust, if it is not set. */
enum { DT__ROBUST_CLIP = 5 };
/* Reads the rows of the part, if `config` asks for anything that follows from them. Without `known`
 * it learns the replacements of missing values, schema.mean and inv_std (of raw * scale, population
 * variance) and the targets' units. In any case it learns the scale of weights and weights of
 * classes, which no schema has: a resume learns them again. Checks targets that the loss bounds, of
 * evaluation data as well. DT_EFORMAT: a target that the loss does not take. Source: Chan, Golub
 * and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979,
 * eq. 2.1. */
dt_status dt__statistics_learn(const struct dt__survey *survey);

#endif
