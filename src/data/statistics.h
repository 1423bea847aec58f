/* Statistics of the training rows. */
#ifndef DATA_STATISTICS_H
#define DATA_STATISTICS_H

#include "data/learned.h"

/* A value more than this many deviations from the mean is reported. Some counts and prices lie far
 * out, but rarely this far. */
enum { DT__FAR_DEVIATIONS = 20 };
/* The value of data.clip with data.normalize=robust, if data.clip is not set. */
enum { DT__ROBUST_CLIP = 5 };
/* Reads the source's rows, if `config` asks for statistics, and stores the results in source and
 * schema. Without `known` it learns the replacements of missing values, schema.mean and inv_std (of
 * raw * scale; population variance), the targets' units and range, and the quantiles of
 * data.encode. With or without `known` it learns the scale of weights and the weights of classes,
 * which no schema holds: a resume learns them again. It also checks targets that the loss bounds,
 * those of evaluation data included. DT_EFORMAT: a target that the loss does not accept.
 *
 * Source: Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample
 * variances", 1979, eq. 2.1. */
dt_status dt__statistics_learn(const struct dt__survey *survey);

#endif
