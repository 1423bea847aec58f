/* dropout: masks that are a pure function of a key and an element's number. */
#ifndef MODEL_DROPOUT_H
#define MODEL_DROPOUT_H

#include "model/layer.h"

/* One layer's dropout in one draw. */
struct dt__dropout {
    struct dt_rng key;
    uint64_t first; /* drop number of the element at row 0, column 0 */
    double rate;    /* probability to drop */
};

/* The call's; false: nothing is dropped. */
bool dt__dropout_of(const struct dt__layer_call *call, struct dt__dropout *out);

/* Multiplies the n elements from drop number `number` on by 0 or 1 / (1 - rate), in a and in b. */
void dt__dropout_apply(const struct dt__dropout *dropout, uint64_t number, int n, float *restrict a,
                       float *restrict b);

#endif
