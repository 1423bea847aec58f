/* Normalisation: mean and deviation of each feature. */
#ifndef DATA_STATS_H
#define DATA_STATS_H

#include "data/source.h"

/* Reads the rows of the part and sets schema.mean and schema.inv_std (of raw * scale, population
 * variance). In double, over blocks of rows in order, so that it never depends on anything else.
 * Source: Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample
 * variances", 1979, eq. 2.1. */
dt_status dt__stats_learn(struct dt_source *source);

#endif
