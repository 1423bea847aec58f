/* Changes to training pictures: `data.augment = shift 2, flip, cutout 4, noise 0.01`.
 *
 * The changes are pure functions of seed, replica, epoch and the sample's position in its replica's
 * order, so they are the same at any number of ranks and after a resume. They work on scaled and
 * normalised rows, as the network gets them. Points that move into a picture from outside are 0. */
#ifndef DATA_AUGMENT_H
#define DATA_AUGMENT_H

#include "base/base.h"

struct dt__augment {
    int shift;    /* a picture moves by at most this many points in each direction */
    bool flip;    /* half of the pictures are mirrored, left to right */
    int cutout;   /* side of a square that is set to 0, clipped at the edges */
    double noise; /* standard deviation of the noise added to each value */
    /* set by the caller */
    int shape[3];   /* height, width, channels */
    float *picture; /* (h, w, c) scratch */
};

/* Parses data.augment, and leaves `shape` and `picture` zero; "" asks for no change. DT_EUSAGE: the
 * message says what is wrong, and what was expected. */
dt_status dt__augment_parse(const char *text, struct dt__augment *out);
static inline bool dt__augment_any(const struct dt__augment *augment)
{
    return augment->shift || augment->flip || augment->cutout || augment->noise > 0;
}

/* Changes x (rows, h, w, c) in place. The rows are samples first, first + 1, ... of a replica's
 * order of an epoch; `key` is the key for that replica and epoch (DT_STREAM_AUGMENT). */
void dt__augment_rows(const struct dt__augment *augment, const struct dt_rng *key, uint64_t first,
                      int rows, float *x);

#endif
