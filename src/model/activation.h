/* activation: what happens to a layer's values between two matrix products: bias, activation,
 * dropout. Dropout's masks are a pure function of a key and of each element's drop number, its
 * index in the key's random numbers. */
#ifndef MODEL_ACTIVATION_H
#define MODEL_ACTIVATION_H

#include "model/layer.h"

/* Processes one row. y (n): X W on entry, f(X W + bias) on return. slope (n) receives the
 * derivative of f there. */
typedef void dt__activation_fn(int n, const float *restrict bias, float *restrict y,
                               float *restrict slope);

struct dt__activation {
    const char *name;
    bool he; /* weights before it are initialised by He's rule, because half of its values are 0 */
    dt__activation_fn *train, *infer;                          /* infer ignores slope */
    const char *(*emit)(struct dt__emitter *e, const char *x); /* emits the activation's nodes
                                                                * (emitter.h) */
};

/* Finds an activation by name; NULL: unknown. */
const struct dt__activation *dt__activation_find(const char *name);
/* Returns the name of activation number `index`, counted from 0; NULL after the last. */
const char *dt__activation_name(int index);

/* Returns true if the layer has an activation or dropout. Such a layer keeps slopes (rows, out) for
 * the backward pass. */
static inline bool dt__has_epilogue(const struct dt__layer *layer)
{
    return layer->activation || layer->dropout > 0.0;
}

/* Applies bias, activation and dropout to the call's y: X W on entry, f(X W + bias) with dropout on
 * return. If the layer has an epilogue, its `keep` receives the derivative of y by X W, including
 * dropout; keep NULL: inference, no dropout. bias: (channels); NULL: the layer's own bias, its last
 * tensor. */
void dt__epilogue_forward(const struct dt__layer_call *call, const float *bias);
/* Replaces the call's dy, the gradient by y, by the gradient by X W. bias_grad (channels) receives
 * the sums of dy over rows, added if the call accumulates; NULL: the layer's own bias has the
 * gradient. */
void dt__epilogue_backward(const struct dt__layer_call *call, float *bias_grad);

/* ---- dropout -------------------------------------------------------------------------------- */

/* Dropout of one layer in one draw. */
struct dt__dropout {
    struct dt_rng key;
    uint64_t first; /* drop number of the element at row 0, column 0 */
    double rate;    /* probability to drop */
};

/* Describes the call's dropout. Returns false if nothing is dropped. */
bool dt__dropout_of(const struct dt__layer_call *call, struct dt__dropout *out);

/* Multiplies n elements of a and of b by 0 or by 1 / (1 - rate); they have the drop numbers from
 * `number` on. */
void dt__dropout_apply(const struct dt__dropout *dropout, uint64_t number, int n, float *restrict a,
                       float *restrict b);

/* ---- separate layers ------------------------------------------------------------------------- */

/* `infer` and `backward` for layers that keep only their slope. */
dt_status dt__slope_infer(struct dt_model *model, struct dt__layer *layer);
dt_status dt__slope_backward(const struct dt__layer_call *call);

#endif
