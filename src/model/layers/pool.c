/* Pooling: `maxpool K [stride S]`, `avgpool K [stride S]`, `globalpool` (the mean of each channel),
 * `flatten` (a picture as one vector) and `upsample K`. K and S are a number or HEIGHTxWIDTH; the
 * stride is the window unless given; windows that would reach beyond the edge are left out. */
#include <string.h>

#include "model/layer.h"
#include "model/pooling.h"

/* layer->size */
enum { WINDOW_H, WINDOW_W, STRIDE_H, STRIDE_W, ONE_NUMBER };
enum { MAX_POINTS = 255 };

static bool window_parse(struct dt__layer *layer, struct dt__words words)
{
    int *size = layer->size;
    if (words.count != 1 && words.count != 3) return false;
    if (!dt__word_pair(words.word[0], 1, &size[WINDOW_H], &size[WINDOW_W])) return false;
    size[STRIDE_H] = size[WINDOW_H];
    size[STRIDE_W] = size[WINDOW_W];
    size[ONE_NUMBER] = strchr(words.word[0], 'x') == NULL;
    return words.count == 1 || (!strcmp(words.word[1], "stride") &&
                                dt__word_pair(words.word[2], 1, &size[STRIDE_H], &size[STRIDE_W]));
}

static bool factor_parse(struct dt__layer *layer, struct dt__words words)
{
    return words.count == 1 && window_parse(layer, words);
}

struct dt__pooling_shape dt__pool_shape(const struct dt__layer *layer)
{
    const int *size = layer->size;
    return (struct dt__pooling_shape){.height = layer->in.h,
                                      .width = layer->in.w,
                                      .channels = layer->in.c,
                                      .out_height = layer->out.h,
                                      .out_width = layer->out.w,
                                      .window_height = size[WINDOW_H],
                                      .window_width = size[WINDOW_W],
                                      .stride_height = size[STRIDE_H],
                                      .stride_width = size[STRIDE_W]};
}

/* One number is a square, but on a line it is a length. */
static void window_settle(struct dt__layer *layer)
{
    if (!layer->size[ONE_NUMBER]) return;
    if (layer->in.h == 1) layer->size[WINDOW_H] = layer->size[STRIDE_H] = 1;
    if (layer->in.w == 1 && layer->in.h > 1) layer->size[WINDOW_W] = layer->size[STRIDE_W] = 1;
}

static dt_status pool_infer(struct dt_model *model, struct dt__layer *layer)
{
    (void)model;
    window_settle(layer);
    const int *size = layer->size;
    const struct dt__shape in = layer->in;
    if (in.h < size[WINDOW_H] || in.w < size[WINDOW_W])
        return dt_fail(DT_EUSAGE, "a window of %d x %d does not fit", size[WINDOW_H],
                       size[WINDOW_W]);
    if (size[WINDOW_H] > MAX_POINTS / size[WINDOW_W])
        return dt_fail(DT_EUSAGE, "a window of %d x %d: expected at most %d places", size[WINDOW_H],
                       size[WINDOW_W], MAX_POINTS);
    layer->out = (struct dt__shape){(in.h - size[WINDOW_H]) / size[STRIDE_H] + 1,
                                    (in.w - size[WINDOW_W]) / size[STRIDE_W] + 1, in.c};
    return DT_OK;
}

/* ---- greatest ------------------------------------------------------------------------------- */

static dt_status maxpool_infer(struct dt_model *model, struct dt__layer *layer)
{
    DT_TRY(pool_infer(model, layer));
    layer->keep = (dt__shape_size(layer->out) + sizeof(float) - 1) / sizeof(float); /* bytes */
    return DT_OK;
}

static dt_status maxpool_forward(const struct dt__layer_call *call)
{
    const struct dt__pooling_shape shape = dt__pool_shape(call->layer);
    dt__maxpool_forward(&shape, call->rows, call->x, call->y, (uint8_t *)call->keep);
    return DT_OK;
}

static dt_status maxpool_backward(const struct dt__layer_call *call)
{
    const struct dt__pooling_shape shape = dt__pool_shape(call->layer);
    if (call->dx)
        dt__maxpool_backward(&shape, call->rows, (uint8_t *)call->keep, call->dy, call->dx);
    return DT_OK;
}

const struct dt__layer_kind dt__maxpool_layer = {.name = "maxpool",
                                                 .usage = "maxpool K [stride S]",
                                                 .parse = window_parse,
                                                 .infer = maxpool_infer,
                                                 .forward = maxpool_forward,
                                                 .backward = maxpool_backward};

/* ---- mean ----------------------------------------------------------------------------------- */

static dt_status avgpool_forward(const struct dt__layer_call *call)
{
    const struct dt__pooling_shape shape = dt__pool_shape(call->layer);
    dt__avgpool_forward(&shape, call->rows, call->x, call->y);
    return DT_OK;
}

static dt_status avgpool_backward(const struct dt__layer_call *call)
{
    const struct dt__pooling_shape shape = dt__pool_shape(call->layer);
    if (call->dx) dt__avgpool_backward(&shape, call->rows, call->dy, call->dx);
    return DT_OK;
}

const struct dt__layer_kind dt__avgpool_layer = {.name = "avgpool",
                                                 .usage = "avgpool K [stride S]",
                                                 .parse = window_parse,
                                                 .infer = pool_infer,
                                                 .forward = avgpool_forward,
                                                 .backward = avgpool_backward};

static dt_status globalpool_infer(struct dt_model *model, struct dt__layer *layer)
{
    (void)model;
    layer->size[WINDOW_H] = layer->size[STRIDE_H] = layer->in.h;
    layer->size[WINDOW_W] = layer->size[STRIDE_W] = layer->in.w;
    layer->out = (struct dt__shape){1, 1, layer->in.c};
    return DT_OK;
}

const struct dt__layer_kind dt__globalpool_layer = {.name = "globalpool",
                                                    .usage = "globalpool",
                                                    .infer = globalpool_infer,
                                                    .forward = avgpool_forward,
                                                    .backward = avgpool_backward};

/* ---- as one vector -------------------------------------------------------------------------- */

static dt_status flatten_infer(struct dt_model *model, struct dt__layer *layer)
{
    (void)model;
    layer->out = (struct dt__shape){1, 1, (int)dt__shape_size(layer->in)};
    return DT_OK;
}

const struct dt__layer_kind dt__flatten_layer = {
    .name = "flatten", .usage = "flatten", .same_gradient = true, .infer = flatten_infer};

/* ---- enlarging ------------------------------------------------------------------------------ */

static dt_status upsample_infer(struct dt_model *model, struct dt__layer *layer)
{
    (void)model;
    window_settle(layer);
    int64_t h = (int64_t)layer->in.h * layer->size[WINDOW_H];
    int64_t w = (int64_t)layer->in.w * layer->size[WINDOW_W];
    if (h > DT_MAX_WIDTH || w > DT_MAX_WIDTH)
        return dt_fail(DT_EUSAGE, "a picture beyond %d x %d", DT_MAX_WIDTH, DT_MAX_WIDTH);
    layer->out = (struct dt__shape){(int)h, (int)w, layer->in.c};
    return DT_OK;
}

static dt_status upsample_forward(const struct dt__layer_call *call)
{
    const struct dt__pooling_shape shape = dt__pool_shape(call->layer);
    dt__upsample_forward(&shape, call->rows, call->x, call->y);
    return DT_OK;
}

static dt_status upsample_backward(const struct dt__layer_call *call)
{
    const struct dt__pooling_shape shape = dt__pool_shape(call->layer);
    if (call->dx) dt__upsample_backward(&shape, call->rows, call->dy, call->dx);
    return DT_OK;
}

const struct dt__layer_kind dt__upsample_layer = {.name = "upsample",
                                                  .usage = "upsample K",
                                                  .parse = factor_parse,
                                                  .infer = upsample_infer,
                                                  .forward = upsample_forward,
                                                  .backward = upsample_backward};
