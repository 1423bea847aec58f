/* Convolution: y = f(x * W + b), channels last: `conv C KHxKW [stride S] [pad P|same] [groups G]`,
 * and `conv1d C K ...` along rows of (length, channels). Weight (KH, KW, channels / groups, C),
 * bias (C).
 *
 * Rows are computed in small blocks, product and epilogue in turn, so that a block's pictures are
 * still in the cache when bias and activation are applied. */
#include <limits.h>
#include <string.h>

#include "model/activation.h"
#include "model/bf16_products.h"
#include "model/convolution.h"

/* indices in layer->size */
enum { FILTERS, KERNEL_H, KERNEL_W, STRIDE_H, STRIDE_W, PAD_H, PAD_W, GROUPS };
enum { SAME = -1, BLOCK_ROWS = 8 };

/* ---- text ----------------------------------------------------------------------------------- */

/* Parses filters and kernel, then "stride 2", "pad same" and so on. */
static bool conv_parse(struct dt__layer *layer, struct dt__layer_args args)
{
    const bool is_1d = layer->kind == &dt__conv1d_layer;
    int *size = layer->size;
    if (args.count < 2 || !dt__arg_int(args.text[0], 1, &size[FILTERS]) ||
        !(is_1d ? dt__arg_int(args.text[1], 1, &size[KERNEL_W])
                : dt__arg_pair(args.text[1], 1, &size[KERNEL_H], &size[KERNEL_W])))
        return false;
    size[STRIDE_H] = size[STRIDE_W] = size[GROUPS] = 1;
    for (int i = 2; i < args.count; i += 2) {
        const char *name = args.text[i], *value = i + 1 < args.count ? args.text[i + 1] : "";
        bool good = false;
        if (!strcmp(name, "stride"))
            good = is_1d ? dt__arg_int(value, 1, &size[STRIDE_W])
                         : dt__arg_pair(value, 1, &size[STRIDE_H], &size[STRIDE_W]);
        else if (!strcmp(name, "pad") && !strcmp(value, "same"))
            good = true, size[PAD_H] = size[PAD_W] = SAME;
        else if (!strcmp(name, "pad"))
            good = is_1d ? dt__arg_int(value, 0, &size[PAD_W])
                         : dt__arg_pair(value, 0, &size[PAD_H], &size[PAD_W]);
        else if (!strcmp(name, "groups"))
            good = dt__arg_int(value, 1, &size[GROUPS]);
        if (!good) return false;
    }
    if (is_1d) size[KERNEL_H] = 1;
    return true;
}

/* ---- shape ---------------------------------------------------------------------------------- */

/* Infers, along one side (0: height, 1: width), the length of the output and the padding before and
 * after. `same` yields the length ceil(in / stride); if the padding is odd, one more is after, as
 * in TensorFlow and PyTorch. */
static bool side_infer(struct dt__convolution_shape *s, int side, int in, int pad, int *out)
{
    const int kernel = s->kernel[side], stride = s->stride[side];
    if (pad == SAME) {
        *out = (in - 1) / stride + 1;
        int all = kernel - 1 - (in - 1) % stride;
        if (all < 0) all = 0;
        s->before[side] = all / 2;
        s->after[side] = all - all / 2;
        return true;
    }
    const int64_t padded = (int64_t)in + 2 * (int64_t)pad;
    s->before[side] = s->after[side] = pad;
    if (pad >= kernel || padded < kernel || padded > INT_MAX) return false;
    *out = ((int)padded - kernel) / stride + 1;
    return true;
}

/* Returns the shape of the input as the kernel reads it. For conv1d, plain features are one channel
 * along the width. */
static struct dt__shape conv_input(const struct dt__layer *layer)
{
    const struct dt__shape in = layer->in;
    const bool is_1d = layer->kind == &dt__conv1d_layer;
    if (is_1d && in.h == 1 && in.w == 1) return (struct dt__shape){1, in.c, 1};
    if (is_1d && in.w == 1) return (struct dt__shape){1, in.h, in.c};
    return in;
}

static bool conv_shape(const struct dt__layer *layer, struct dt__convolution_shape *out)
{
    const int *size = layer->size;
    *out = (struct dt__convolution_shape){.in = conv_input(layer),
                                          .out = {.c = size[FILTERS]},
                                          .kernel = {size[KERNEL_H], size[KERNEL_W]},
                                          .stride = {size[STRIDE_H], size[STRIDE_W]},
                                          .groups = size[GROUPS]};
    return side_infer(out, 0, out->in.h, size[PAD_H], &out->out.h) &&
           side_infer(out, 1, out->in.w, size[PAD_W], &out->out.w);
}

static dt_status conv_infer(struct dt_model *model, struct dt__layer *layer)
{
    struct dt__convolution_shape s;
    const struct dt__shape in = conv_input(layer);
    const bool is_1d = layer->kind == &dt__conv1d_layer;
    if (is_1d && in.h != 1)
        return dt_fail(DT_EUSAGE, "conv1d needs rows of 1 x length x channels (data.shape)");
    if (!is_1d && in.h == 1 && in.w == 1)
        return dt_fail(DT_EUSAGE, "a convolution needs rows of height x width x channels "
                                  "(data.shape, e.g. 28x28x1)");
    if (!conv_shape(layer, &s))
        return dt_fail(DT_EUSAGE,
                       "a kernel of %d x %d does not fit, or is not larger than its padding",
                       layer->size[KERNEL_H], layer->size[KERNEL_W]);
    if (s.in.c % s.groups || s.out.c % s.groups)
        return dt_fail(DT_EUSAGE, "%d groups do not divide %d channels and %d filters", s.groups,
                       s.in.c, s.out.c);
    layer->out = s.out;
    layer->keep = dt__has_epilogue(layer) ? dt__shape_size(layer->out) : 0;
    const bool he = layer->activation && layer->activation->he;
    const size_t kernel = (size_t)s.kernel[0] * (size_t)s.kernel[1];
    const size_t filters = (size_t)s.out.c, channels = (size_t)(s.in.c / s.groups);
    const struct dt_tensor weight = {
        .rank = 4,
        .shape = {(size_t)s.kernel[0], (size_t)s.kernel[1], channels, filters},
        .role = DT_TENSOR_WEIGHT,
        .init = he ? DT_INIT_HE : DT_INIT_GLOROT,
        .fan_in = (double)(kernel * channels),
        .fan_out = (double)kernel * (double)filters / s.groups};
    const struct dt_tensor bias = {.rank = 1, .shape = {filters}, .role = DT_TENSOR_BIAS};
    layer->macs = (size_t)s.out.h * (size_t)s.out.w * kernel * channels * filters;
    DT_TRY(dt__layer_tensor(model, layer, "weight", &weight));
    return dt__layer_tensor(model, layer, "bias", &bias);
}

/* ---- passes --------------------------------------------------------------------------------- */

/* Computes gradients in bf16 if `bf16` and the CPU supports it; else in f32. */
static dt_status conv_open(const struct dt__layer *layer, int max_rows, bool bf16, void **out_state)
{
    struct dt__convolution_shape s;
    struct dt__convolution *convolution;
    (void)max_rows;
    if (!conv_shape(layer, &s)) return dt_fail(DT_EBUG, "a convolution of no shape");
    DT_TRY(
        dt__convolution_create(&s, layer->index > 0, bf16 && dt__bf16_is_native(), &convolution));
    *out_state = convolution;
    return DT_OK;
}

static dt_status conv_forward(const struct dt__layer_call *call)
{
    const struct dt__layer *layer = call->layer;
    const size_t in = dt__shape_size(layer->in), out = dt__shape_size(layer->out);
    DT_TRY(dt__convolution_pack(call->state, call->params));
    for (int done = 0; done < call->rows; done += BLOCK_ROWS) {
        struct dt_batch batch = *call->batch;
        struct dt__layer_call block = *call;
        batch.first_row += (uint64_t)done;
        block.batch = &batch;
        block.rows = call->rows - done < BLOCK_ROWS ? call->rows - done : BLOCK_ROWS;
        block.y += (size_t)done * out;
        if (layer->keep && call->keep) block.keep += (size_t)done * out;
        DT_TRY(
            dt__convolution_forward(call->state, block.rows, call->x + (size_t)done * in, block.y));
        dt__epilogue_forward(&block, NULL);
    }
    return DT_OK;
}

static dt_status conv_backward(const struct dt__layer_call *call)
{
    dt__epilogue_backward(call, NULL);
    DT_TRY(dt__convolution_weight_gradient(call->state, call->rows, call->x, call->dy,
                                           call->accumulate, call->grad));
    if (!call->dx) return DT_OK;
    return dt__convolution_input_gradient(call->state, call->rows, call->dy, call->dx);
}

/* ---- for other runtimes --------------------------------------------------------------------- */

/* Emits the weight (KH, KW, C / groups, F) as a constant (F, C / groups, KH, KW). */
static const char *emit_filters(struct dt__emitter *e, const struct dt__layer *layer)
{
    const struct dt_tensor *tensor = dt__emit_need(e, layer, "weight");
    float *data = tensor ? e->scratch(e, tensor->count, sizeof *data) : NULL;
    if (!data) return "";
    const size_t points = tensor->shape[0] * tensor->shape[1], channels = tensor->shape[2],
                 filters = tensor->shape[3];
    const float *weight = e->params + tensor->offset;
    for (size_t p = 0; p < points; p++)
        for (size_t c = 0; c < channels; c++)
            for (size_t f = 0; f < filters; f++)
                data[(f * channels + c) * points + p] = weight[(p * channels + c) * filters + f];
    const int64_t dims[] = {(int64_t)filters, (int64_t)channels, (int64_t)tensor->shape[0],
                            (int64_t)tensor->shape[1]};
    return e->floats(e, tensor->name, 4, dims, data);
}

const char *dt__convolution_emit(struct dt__emitter *e, const struct dt__layer *layer,
                                 const struct dt__convolution_shape *s, const char *bias,
                                 const char *x)
{
    x = dt__emit_pictures(e, x, s->in);
    x = DT__NODE(e, "Conv", x, emit_filters(e, layer), bias);
    e->ints(e, "kernel_shape", 2, s->kernel);
    e->ints(e, "strides", 2, s->stride);
    e->ints(e, "pads", 4, (const int[]){s->before[0], s->before[1], s->after[0], s->after[1]});
    e->integer(e, "group", s->groups);
    return dt__emit_rows(e, x, layer->out);
}

static const char *conv_emit(struct dt__emitter *e, const struct dt__layer *layer, const char *x)
{
    struct dt__convolution_shape shape;
    if (!conv_shape(layer, &shape))
        dt__emit_keep(e, dt_fail(DT_EBUG, "%s: its shape does not suit", layer->text));
    return dt__convolution_emit(e, layer, &shape, dt__emit_tensor(e, layer, "bias"), x);
}

#define CONVOLUTION(own_name, sizes)                                                               \
    {                                                                                              \
        .name = (own_name),                                                                        \
        .usage = own_name " FILTERS " sizes " [stride S] [pad P|same] [groups G] [activation]",    \
        .epilogue = true, .parse = conv_parse, .infer = conv_infer, .open = conv_open,             \
        .close = dt__convolution_destroy, .forward = conv_forward, .backward = conv_backward,      \
        .emit = conv_emit                                                                          \
    }

const struct dt__layer_kind dt__conv_layer = CONVOLUTION("conv", "HEIGHTxWIDTH");
const struct dt__layer_kind dt__conv1d_layer = CONVOLUTION("conv1d", "LENGTH");
