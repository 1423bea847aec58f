/* Statistics of the training rows: normalisation, replacements of missing values, and weights. */
#ifndef DATA_STATISTICS_H
#define DATA_STATISTICS_H

#include "data/learned.h"

/* A warning reports values that are more than this number of standard deviations from the mean.
 * Some counts and prices lie far from the mean, but rarely this far. */
enum { DT__FAR_DEVIATIONS = 20 };
/* The value of data.clip with data.normalize=robust, if data.clip is not set. */
enum { DT__ROBUST_CLIP = 5 };

/* Reads the rows of the survey's source, if survey->config asks for statistics, and stores the
 * results in the source and its schema.
 *
 * If the survey learns the schema (not `known`), this function learns the replacements of missing
 * values, schema.mean and inv_std (of raw * scale; population variance), the targets' mean,
 * deviation and range, and the quantiles of data.encode. In any case it learns the scale of weights
 * and the weights of classes; no schema stores these, so a resume learns them again. If the loss
 * bounds the targets, it also checks them, those of evaluation data included. DT_EFORMAT: a target
 * that the loss does not accept.
 *
 * Source: Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample
 * variances", 1979, eq. 2.1. */
dt_status dt__statistics_learn(const struct dt__survey *survey);

#endif
