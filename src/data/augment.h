/* Changes to training pictures: `data.augment = shift 2, flip, cutout 4, noise 0.01`.
 *
 * Pure functions of seed, replica, epoch and the sample's number in its replica's order: no state,
 * the same at any number of ranks and after a resume. They work on scaled and normalised rows,
 * which is how the network gets them; points that come into a picture from outside are 0. */
#ifndef DATA_AUGMENT_H
#define DATA_AUGMENT_H

#include "base/base.h"

struct dt__augment {
    int shift;    /* at most this many points in each direction */
    bool flip;    /* left to right, every other picture */
    int cutout;   /* side of a square that is set to 0; cut off at the edge of the picture */
    double noise; /* standard deviation of the noise added to each value */
    /* the pictures; set by the caller */
    int shape[3];   /* h, w, c */
    float *picture; /* (h, w, c) scratch */
};

/* Parses everything except the pictures; "" asks for no change. DT_EUSAGE: the message says what is
 * wrong, and what was expected. */
dt_status dt__augment_parse(const char *text, struct dt__augment *out);
static inline bool dt__augment_any(const struct dt__augment *augment)
{
    return augment->shift || augment->flip || augment->cutout || augment->noise > 0;
}

/* Changes x (rows, h, w, c) in place: samples first, first + 1, ... of a replica's order of an
 * epoch. `key` is the key of that order (DT_STREAM_AUGMENT). */
void dt__augment_rows(const struct dt__augment *augment, const struct dt_rng *key, uint64_t first,
                      int rows, float *x);

#endif
