/* activation: what happens to a layer's values between two matrix products: bias, activation and
 * dropout, whose masks are a pure function of a key and an element's number. */
#ifndef MODEL_ACTIVATION_H
#define MODEL_ACTIVATION_H

#include "model/layer.h"

/* A row's pass: y (n), in: X W, and what comes out; slope (n), out: the derivative. */
typedef void dt__activation_fn(int n, const float *restrict bias, float *restrict y,
                               float *restrict slope);

struct dt__activation {
    const char *name;
    bool he; /* He's rule suits the weights before it: half of the values vanish */
    dt__activation_fn *train, *infer;                          /* infer: slope is not used */
    const char *(*emit)(struct dt__emitter *e, const char *x); /* its nodes (emitter.h) */
};

/* By name; NULL: there is none of it. */
const struct dt__activation *dt__activation_find(const char *name);
/* Of activation number `index`, from 0; NULL: there are no more. */
const char *dt__activation_name(int index);

/* Whether the layer has an activation or dropout: then it keeps slopes, (rows, out). */
static inline bool dt__has_epilogue(const struct dt__layer *layer)
{
    return layer->activation || layer->dropout > 0.0;
}

/* The call's y, in: X W; out: f(X W + bias), dropped out. Its keep, of a layer with an epilogue,
 * out: the derivative of y by X W, dropout included; NULL: inference, without dropout. bias
 * (channels): NULL: the layer's own, the last of its tensors. */
void dt__epilogue_forward(const struct dt__layer_call *call, const float *bias);
/* The call's dy, in: gradient by y; out: gradient by X W. bias_grad (channels): its sums, or += if
 * the call accumulates; NULL: the layer's own. */
void dt__epilogue_backward(const struct dt__layer_call *call, float *bias_grad);

/* ---- dropout -------------------------------------------------------------------------------- */

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

/* ---- layers of their own --------------------------------------------------------------------- */

/* infer and backward of layers that keep their slope and are nothing else. */
dt_status dt__slope_infer(struct dt_model *model, struct dt__layer *layer);
dt_status dt__slope_backward(const struct dt__layer_call *call);

#endif
