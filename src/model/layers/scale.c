/* Scale: multiplies each unit by a trained factor. Factors start at 1. */
#include "model/emitter.h"

static dt_status scale_infer(struct dt_model *model, struct dt__layer *layer)
{
    const size_t width = dt__shape_size(layer->in);
    const struct dt_tensor factor = {
        .rank = 1, .shape = {width}, .role = DT_TENSOR_WEIGHT, .init = DT_INIT_ONE};
    layer->macs = width;
    return dt__layer_tensor(model, layer, "factor", &factor);
}

static dt_status scale_forward(const struct dt__layer_call *call)
{
    const size_t width = dt__shape_size(call->layer->out);
    const float *x = call->x, *factor = call->params;
    float *y = call->y;
    for (int r = 0; r < call->rows; r++, x += width, y += width)
        for (size_t i = 0; i < width; i++)
            y[i] = factor[i] * x[i];
    return DT_OK;
}

static dt_status scale_backward(const struct dt__layer_call *call)
{
    const size_t width = dt__shape_size(call->layer->out);
    const float *x = call->x, *dy = call->dy, *factor = call->params;
    float *dx = call->dx, *grad = call->grad;
    for (size_t i = 0; i < width && !call->accumulate; i++)
        grad[i] = 0.0f;
    for (int r = 0; r < call->rows; r++, x += width, dy += width) {
        for (size_t i = 0; i < width; i++)
            grad[i] += dy[i] * x[i];
        for (size_t i = 0; dx && i < width; i++)
            dx[i] = factor[i] * dy[i];
        if (dx) dx += width;
    }
    return DT_OK;
}

static const char *scale_emit(struct dt__emitter *e, const struct dt__layer *layer, const char *x)
{
    return DT__NODE(e, "Mul", x, dt__emit_tensor(e, layer, "factor"));
}

const struct dt__layer_kind dt__scale_layer = {.name = "scale",
                                               .usage = "scale",
                                               .infer = scale_infer,
                                               .forward = scale_forward,
                                               .backward = scale_backward,
                                               .emit = scale_emit};
