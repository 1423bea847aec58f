/* Random changes to training pictures: `data.augment = shift 2, flip, cutout 4, noise 0.01`.
 *
 * The changes are pure functions of seed, replica, epoch and the sample's position in its replica's
 * order, so they are the same at any number of ranks and after a resume. They are applied to scaled
 * and normalised rows, the inputs of the network. Points that a shift moves in from outside the
 * picture are 0. */
#ifndef DATA_AUGMENT_H
#define DATA_AUGMENT_H

#include "base/base.h"

struct dt__augment {
    int shift;    /* a picture moves by at most this many points in each direction */
    bool flip;    /* half of the pictures are mirrored, left to right */
    int cutout;   /* side of a square that is set to 0, clipped at the edges */
    double noise; /* standard deviation of the noise added to each value */
    /* The caller of dt__augment_parse sets the following members. */
    int shape[3];   /* height, width, channels */
    float *picture; /* (height, width, channels) scratch */
};

/* Parses data.augment, and sets `shape` and `picture` to zero. The text "" asks for no changes.
 * DT_EUSAGE: an item is not valid; the message shows it and lists the valid ones. */
dt_status dt__augment_parse(const char *text, struct dt__augment *out);
/* Returns true if any change is asked for. */
static inline bool dt__augment_any(const struct dt__augment *augment)
{
    return augment->shift || augment->flip || augment->cutout || augment->noise > 0;
}

/* Changes x (rows, height, width, channels) in place. Row i is sample first + i in the order of one
 * replica in one epoch; `key` is the random key of that replica and epoch (DT_STREAM_AUGMENT). */
void dt__augment_rows(const struct dt__augment *augment, const struct dt_rng *key, uint64_t first,
                      int rows, float *x);

#endif
