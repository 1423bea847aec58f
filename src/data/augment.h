/* Changes to training pictures: `data.augment = shift 2, flip, cutout 4, noise 0.01`.
 *
 * Pure functions of seed, replica, epoch and the sample's number in its replica's order: no state,
 * the same at any number of ranks and after a resume. They work on rows as the network gets them,
 * scaled and normalised; what comes into a picture from outside is 0. */
#ifndef DATA_AUGMENT_H
#define DATA_AUGMENT_H

#include "base/base.h"

struct dt__augment {
    int shift;    /* up to so many points in each direction */
    bool flip;    /* left to right, every other one */
    int cutout;   /* side of a square that is 0; at the edge less of it */
    double noise; /* standard deviation of what is added to each value */
    /* what the pictures are like: the caller's */
    int shape[3];   /* h, w, c */
    float *picture; /* (h, w, c) scratch */
};

/* All but the pictures; "" is none of it. DT_EUSAGE: what is wrong, and what was expected. */
dt_status dt__augment_parse(const char *text, struct dt__augment *out);
static inline bool dt__augment_any(const struct dt__augment *augment)
{
    return augment->shift || augment->flip || augment->cutout || augment->noise > 0;
}

/* x (rows, h, w, c), in place: samples first, first + 1, ... of a replica's order of an epoch, of
 * which the key is (DT_STREAM_AUGMENT). */
void dt__augment_rows(const struct dt__augment *augment, const struct dt_rng *key, uint64_t first,
                      int rows, float *x);

#endif
