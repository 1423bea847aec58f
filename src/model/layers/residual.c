/* Residual: `residual(ITEM, ...)` adds its input to the output of its items. If the two shapes
 * differ, the input first goes through a 1 x 1 convolution (for plain features: a dense product)
 * without bias, whose stride follows from the shapes. weight (1, 1, channels, filters).
 *
 * Source: He et al., "Deep residual learning for image recognition", CVPR 2016, section 3.2.
 *
 * In the list of layers the items are between two layers that are linked: residual and its end.
 * Forward, the end adds the input of the residual layer to its own input. Backward, the end keeps
 * the gradient of the shortcut, and the residual layer adds it to the gradient that came through
 * the items. */
#include <string.h>

#include "model/convolution.h"

/* ---- the first end -------------------------------------------------------------------------- */

/* Rejects all args: description.c parses the items in the brackets. */
static bool residual_parse(struct dt__layer *layer, struct dt__layer_args args)
{
    (void)layer, (void)args;
    return false;
}

static dt_status residual_backward(const struct dt__layer_call *call)
{
    const size_t count = (size_t)call->rows * dt__shape_size(call->layer->in);
    for (size_t i = 0; i < count; i++)
        call->dy[i] += call->link_keep[i];
    return DT_OK;
}

const struct dt__layer_kind dt__residual_layer = {.name = "residual",
                                                  .usage = "residual(ITEM, ...)",
                                                  .same_gradient = true,
                                                  .parse = residual_parse,
                                                  .backward = residual_backward,
                                                  .emit = dt__emit_nothing};

/* ---- the second end ------------------------------------------------------------------------- */

/* indices in layer->size: the shape of the input of the residual layer, the stride of the shortcut,
 * and whether the shortcut is a convolution */
enum { FROM_H, FROM_W, FROM_C, STRIDE_H, STRIDE_W, PROJECTS };

/* Returns the stride that reduces `from` points to `to` points by taking the first of each
 * `stride`; 0: there is none. */
static int stride_between(int from, int to)
{
    const int stride = (from + to - 1) / to;
    return (from + stride - 1) / stride == to ? stride : 0;
}

static struct dt__convolution_shape residual_shape(const struct dt__layer *layer)
{
    const int *size = layer->size;
    return (struct dt__convolution_shape){.in = {size[FROM_H], size[FROM_W], size[FROM_C]},
                                          .out = layer->out,
                                          .kernel = {1, 1},
                                          .stride = {size[STRIDE_H], size[STRIDE_W]},
                                          .groups = 1};
}

static dt_status residual_end_infer(struct dt_model *model, struct dt__layer *layer)
{
    const struct dt__layer *begin = &model->layer[layer->link];
    const struct dt__shape from = begin->in, to = layer->in;
    int *size = layer->size;
    layer->keep = dt__shape_size(from);
    size[FROM_H] = from.h, size[FROM_W] = from.w, size[FROM_C] = from.c;
    if (from.h == to.h && from.w == to.w && from.c == to.c) return DT_OK;
    size[STRIDE_H] = stride_between(from.h, to.h);
    size[STRIDE_W] = stride_between(from.w, to.w);
    size[PROJECTS] = 1;
    if (!size[STRIDE_H] || !size[STRIDE_W])
        return dt_fail(DT_EUSAGE, "a residual from %d x %d to %d x %d points has no stride", from.h,
                       from.w, to.h, to.w);
    const struct dt_tensor weight = {.rank = 4,
                                     .shape = {1, 1, (size_t)from.c, (size_t)to.c},
                                     .role = DT_TENSOR_WEIGHT,
                                     .init = DT_INIT_GLOROT,
                                     .fan_in = (double)from.c,
                                     .fan_out = (double)to.c};
    layer->macs = dt__shape_size(to) * (size_t)from.c;
    layer->work = dt__shape_size(to);
    return dt__layer_tensor(model, layer, "weight", &weight);
}

static dt_status residual_end_open(const struct dt__layer *layer, int max_rows, bool bf16,
                                   void **out_state)
{
    const struct dt__convolution_shape shape = residual_shape(layer);
    struct dt__convolution *convolution;
    (void)max_rows, (void)bf16;
    *out_state = NULL;
    if (!layer->size[PROJECTS]) return DT_OK;
    DT_TRY(dt__convolution_create(&shape, true, false, &convolution));
    *out_state = convolution;
    return DT_OK;
}

static dt_status residual_end_forward(const struct dt__layer_call *call)
{
    const size_t count = (size_t)call->rows * dt__shape_size(call->layer->out);
    const float *x = call->x, *shortcut = call->link_x;
    if (call->state) {
        DT_TRY(dt__convolution_pack(call->state, call->params));
        DT_TRY(dt__convolution_forward(call->state, call->rows, shortcut, call->work));
        shortcut = call->work;
    }
    for (size_t i = 0; i < count; i++)
        call->y[i] = x[i] + shortcut[i];
    return DT_OK;
}

static dt_status residual_end_backward(const struct dt__layer_call *call)
{
    if (!call->state) {
        memcpy(call->keep, call->dy,
               (size_t)call->rows * dt__shape_size(call->layer->out) * sizeof *call->keep);
        return DT_OK;
    }
    DT_TRY(dt__convolution_weight_gradient(call->state, call->rows, call->link_x, call->dy,
                                           call->accumulate, call->grad));
    return dt__convolution_input_gradient(call->state, call->rows, call->dy, call->keep);
}

static const char *residual_end_emit(struct dt__emitter *e, const struct dt__layer *layer,
                                     const char *x)
{
    const char *shortcut = e->before[layer->link];
    if (dt__emit_find(e, layer, "weight")) {
        const struct dt__convolution_shape shape = residual_shape(layer);
        shortcut = dt__convolution_emit(e, layer, &shape, NULL, shortcut);
    }
    return DT__NODE(e, "Add", x, shortcut);
}

const struct dt__layer_kind dt__residual_end_layer = {.name = "residual's end",
                                                      .usage = "residual(ITEM, ...)",
                                                      .same_gradient = true,
                                                      .infer = residual_end_infer,
                                                      .open = residual_end_open,
                                                      .close = dt__convolution_destroy,
                                                      .forward = residual_end_forward,
                                                      .backward = residual_end_backward,
                                                      .emit = residual_end_emit};
