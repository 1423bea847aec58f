/* activation: the work on a layer's values between two matrix products: bias, activation and
 * dropout, whose masks are a pure function of a key and an element's number. */
#ifndef MODEL_ACTIVATION_H
#define MODEL_ACTIVATION_H

#include "model/layer.h"

/* A pass over one row: y (n), in: X W, out: f(X W + bias); slope (n), out: the derivative. */
typedef void dt__activation_fn(int n, const float *restrict bias, float *restrict y,
                               float *restrict slope);

struct dt__activation {
    const char *name;
    bool he; /* initialise the weights before it by He's rule: half of the values vanish */
    dt__activation_fn *train, *infer;                          /* infer ignores slope */
    const char *(*emit)(struct dt__emitter *e, const char *x); /* emits its nodes (emitter.h) */
};

/* Finds an activation by name; NULL: unknown. */
const struct dt__activation *dt__activation_find(const char *name);
/* Returns the name of activation number `index`, from 0; NULL after the last. */
const char *dt__activation_name(int index);

/* Returns true if the layer has an activation or dropout: it then keeps slopes, (rows, out). */
static inline bool dt__has_epilogue(const struct dt__layer *layer)
{
    return layer->activation || layer->dropout > 0.0;
}

/* Computes the call's y, in: X W; out: f(X W + bias), dropped out. If the layer has an epilogue,
 * its keep receives the derivative of y by X W, dropout included; keep NULL: inference, without
 * dropout. bias (channels): NULL: the layer's bias, the last of its tensors. */
void dt__epilogue_forward(const struct dt__layer_call *call, const float *bias);
/* Computes the call's dy, in: gradient by y; out: gradient by X W. bias_grad (channels): its sums,
 * or += if the call accumulates; NULL: the layer's bias. */
void dt__epilogue_backward(const struct dt__layer_call *call, float *bias_grad);

/* ---- dropout -------------------------------------------------------------------------------- */

/* Dropout of one layer in one draw. */
struct dt__dropout {
    struct dt_rng key;
    uint64_t first; /* drop number of the element at row 0, column 0 */
    double rate;    /* probability to drop */
};

/* Describes the dropout of the call; false: nothing is dropped. */
bool dt__dropout_of(const struct dt__layer_call *call, struct dt__dropout *out);

/* Multiplies n elements of a and b by 0 or 1 / (1 - rate), starting at drop number `number`. */
void dt__dropout_apply(const struct dt__dropout *dropout, uint64_t number, int n, float *restrict a,
                       float *restrict b);

/* ---- separate layers ------------------------------------------------------------------------- */

/* infer and backward of layers that only keep their slope. */
dt_status dt__slope_infer(struct dt_model *model, struct dt__layer *layer);
dt_status dt__slope_backward(const struct dt__layer_call *call);

#endif
