/* Pooling and reshaping: `maxpool K [stride S]`, `avgpool K [stride S]`, `globalpool` (the mean of
 * each channel), `flatten` (a picture as one vector) and `upsample K`. K and S are a number or
 * HEIGHTxWIDTH. The stride is the window's size by default. Windows that would extend beyond the
 * edge are left out.
 *
 * Pictures have channels last, (rows, H, W, C). The inner loops run over the channels, in
 * vectors. */
#include <string.h>

#include "base/clones.h"
#include "model/emitter.h"

/* indices in layer->size */
enum { WINDOW_H, WINDOW_W, STRIDE_H, STRIDE_W, ONE_NUMBER };

static bool window_parse(struct dt__layer *layer, struct dt__layer_args args)
{
    int *size = layer->size;
    if (args.count != 1 && args.count != 3) return false;
    if (!dt__arg_pair(args.text[0], 1, &size[WINDOW_H], &size[WINDOW_W])) return false;
    size[STRIDE_H] = size[WINDOW_H];
    size[STRIDE_W] = size[WINDOW_W];
    size[ONE_NUMBER] = strchr(args.text[0], 'x') == NULL;
    return args.count == 1 || (!strcmp(args.text[1], "stride") &&
                               dt__arg_pair(args.text[2], 1, &size[STRIDE_H], &size[STRIDE_W]));
}

static const char *pool_emit(struct dt__emitter *e, const struct dt__layer *layer,
                             const char *operator, const char * x)
{
    const int *size = layer->size;
    x = dt__emit_pictures(e, x, layer->in);
    x = DT__NODE(e, operator, x);
    e->ints(e, "kernel_shape", 2, (const int[]){size[WINDOW_H], size[WINDOW_W]});
    e->ints(e, "strides", 2, (const int[]){size[STRIDE_H], size[STRIDE_W]});
    return dt__emit_rows(e, x, layer->out);
}

/* Applies a window given as one number: a square in a picture, a length in a row of points. */
static void window_resolve(struct dt__layer *layer)
{
    if (!layer->size[ONE_NUMBER]) return;
    if (layer->in.h == 1) layer->size[WINDOW_H] = layer->size[STRIDE_H] = 1;
    if (layer->in.w == 1 && layer->in.h > 1) layer->size[WINDOW_W] = layer->size[STRIDE_W] = 1;
}

static dt_status pool_infer(struct dt_model *model, struct dt__layer *layer)
{
    (void)model;
    window_resolve(layer);
    const int *size = layer->size;
    const struct dt__shape in = layer->in;
    if (in.h < size[WINDOW_H] || in.w < size[WINDOW_W])
        return dt_fail(DT_EUSAGE, "a window of %d x %d does not fit", size[WINDOW_H],
                       size[WINDOW_W]);
    layer->out = (struct dt__shape){(in.h - size[WINDOW_H]) / size[STRIDE_H] + 1,
                                    (in.w - size[WINDOW_W]) / size[STRIDE_W] + 1, in.c};
    return DT_OK;
}

/* Processes one point of a window. in: channels of the point in the larger picture; out: channels
 * of the window's point in the smaller picture; number: index of the point in the window; points:
 * number of points in a window; place: see maxpool. */
typedef void point_fn(int channels, int number, int points, float *in, float *out, int32_t *place);

/* Calls `visit` for each point of each window. x_side and y_side: x and y, or the gradients by
 * them. */
static inline void windows_visit(const struct dt__layer_call *call, float *x_side, float *y_side,
                                 int32_t *place, point_fn *visit)
{
    const bool enlarges = call->layer->kind == &dt__upsample_layer;
    float *in = enlarges ? y_side : x_side, *out = enlarges ? x_side : y_side;
    const struct dt__shape from = enlarges ? call->layer->out : call->layer->in;
    const struct dt__shape to = enlarges ? call->layer->in : call->layer->out;
    const int *size = call->layer->size, window_w = size[WINDOW_W];
    const int stride_h = size[STRIDE_H], stride_w = size[STRIDE_W];
    const int points = size[WINDOW_H] * window_w, rows = call->rows;
    for (int row = 0; row < rows; row++, in += dt__shape_size(from))
        for (int y = 0; y < to.h; y++)
            for (int x = 0; x < to.w; x++, out += from.c) {
                for (int p = 0; p < points; p++) {
                    const int at_y = y * stride_h + p / window_w;
                    const int at_x = x * stride_w + p % window_w;
                    visit(from.c, p, points,
                          in + ((size_t)at_y * (size_t)from.w + (size_t)at_x) * (size_t)from.c, out,
                          place);
                }
                if (place) place += from.c;
            }
}

/* Defines forward and backward of a kind from what they do at a point. places: the kind needs
 * `place`, which is kept for the backward pass. */
#define PASSES(name, places, visit, visit_back)                                                    \
    DT__CLONES static dt_status name##_forward(const struct dt__layer_call *call)                  \
    {                                                                                              \
        float *x = (float *)(uintptr_t)call->x; /* not written */                                  \
        if ((places) && call->keep)                                                                \
            windows_visit(call, x, call->y, (int32_t *)call->keep, visit);                         \
        else                                                                                       \
            windows_visit(call, x, call->y, NULL, visit);                                          \
        return DT_OK;                                                                              \
    }                                                                                              \
    DT__CLONES static dt_status name##_backward(const struct dt__layer_call *call)                 \
    {                                                                                              \
        const size_t floats = (size_t)call->rows * dt__shape_size(call->layer->in);                \
        if (!call->dx) return DT_OK;                                                               \
        memset(call->dx, 0, floats * sizeof *call->dx);                                            \
        windows_visit(call, call->dx, call->dy, (places) ? (int32_t *)call->keep : NULL,           \
                      visit_back);                                                                 \
        return DT_OK;                                                                              \
    }

/* ---- maximum --------------------------------------------------------------------------------- */

/* maxpool: the maximum of each window; NaN if the window contains one. keep, as int32_t (rows, OH,
 * OW, C): the place, which is the index of the maximum in its window, row-major; the first of
 * equals. Places are as wide as floats, so that a vector of floats has one vector of places. With
 * bytes, gcc makes vectors of 64 for AVX-512, and processes 8 channels one by one, in three times
 * the time; from 32 channels on, bytes would save a little at most. */
static dt_status maxpool_infer(struct dt_model *model, struct dt__layer *layer)
{
    DT_TRY(pool_infer(model, layer));
    layer->keep = dt__shape_size(layer->out);
    return DT_OK;
}

static inline void greatest_at(int channels, int number, int points, float *restrict in,
                               float *restrict out, int32_t *restrict place)
{
    (void)points;
    if (number == 0) {
        memcpy(out, in, (size_t)channels * sizeof *out);
        if (place) memset(place, 0, (size_t)channels * sizeof *place);
        return;
    }
    for (int c = 0; c < channels; c++) {
        const int greater = !(in[c] <= out[c]) & (out[c] == out[c]);
        out[c] = greater ? in[c] : out[c];
        if (place) place[c] = greater ? number : place[c];
    }
}

static inline void greatest_back(int channels, int number, int points, float *restrict in,
                                 float *restrict out, int32_t *restrict place)
{
    (void)points;
    for (int c = 0; c < channels; c++)
        in[c] += place[c] == number ? out[c] : 0.0f;
}

PASSES(maxpool, true, greatest_at, greatest_back)

static const char *maxpool_emit(struct dt__emitter *e, const struct dt__layer *layer, const char *x)
{
    return pool_emit(e, layer, "MaxPool", x);
}

const struct dt__layer_kind dt__maxpool_layer = {.name = "maxpool",
                                                 .usage = "maxpool K [stride S]",
                                                 .parse = window_parse,
                                                 .infer = maxpool_infer,
                                                 .forward = maxpool_forward,
                                                 .backward = maxpool_backward,
                                                 .emit = maxpool_emit};

/* ---- mean ----------------------------------------------------------------------------------- */

static inline void mean_at(int channels, int number, int points, float *restrict in,
                           float *restrict out, int32_t *place)
{
    (void)place;
    const float per_point = 1.0f / (float)points;
    for (int c = 0; c < channels; c++)
        out[c] = (number ? out[c] : 0.0f) + per_point * in[c];
}

static inline void mean_back(int channels, int number, int points, float *restrict in,
                             float *restrict out, int32_t *place)
{
    (void)number, (void)place;
    const float per_point = 1.0f / (float)points;
    for (int c = 0; c < channels; c++)
        in[c] += per_point * out[c];
}

PASSES(avgpool, false, mean_at, mean_back)

static const char *avgpool_emit(struct dt__emitter *e, const struct dt__layer *layer, const char *x)
{
    return pool_emit(e, layer, "AveragePool", x);
}

const struct dt__layer_kind dt__avgpool_layer = {.name = "avgpool",
                                                 .usage = "avgpool K [stride S]",
                                                 .parse = window_parse,
                                                 .infer = pool_infer,
                                                 .forward = avgpool_forward,
                                                 .backward = avgpool_backward,
                                                 .emit = avgpool_emit};

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
                                                    .backward = avgpool_backward,
                                                    .emit = avgpool_emit};

/* ---- flatten --------------------------------------------------------------------------------- */

static dt_status flatten_infer(struct dt_model *model, struct dt__layer *layer)
{
    (void)model;
    layer->out = (struct dt__shape){1, 1, (int)dt__shape_size(layer->in)};
    return DT_OK;
}

const struct dt__layer_kind dt__flatten_layer = {.name = "flatten",
                                                 .usage = "flatten",
                                                 .same_gradient = true,
                                                 .infer = flatten_infer,
                                                 .emit = dt__emit_nothing};

/* ---- enlarging ------------------------------------------------------------------------------ */

/* upsample: each point of x appears WINDOW_H x WINDOW_W times in y. */
static bool upsample_parse(struct dt__layer *layer, struct dt__layer_args args)
{
    return args.count == 1 && window_parse(layer, args);
}

static dt_status upsample_infer(struct dt_model *model, struct dt__layer *layer)
{
    (void)model;
    window_resolve(layer);
    int64_t h = (int64_t)layer->in.h * layer->size[WINDOW_H];
    int64_t w = (int64_t)layer->in.w * layer->size[WINDOW_W];
    if (h > DT_MAX_WIDTH || w > DT_MAX_WIDTH)
        return dt_fail(DT_EUSAGE, "a picture beyond %d x %d", DT_MAX_WIDTH, DT_MAX_WIDTH);
    layer->out = (struct dt__shape){(int)h, (int)w, layer->in.c};
    return DT_OK;
}

static inline void copy_at(int channels, int number, int points, float *restrict in,
                           float *restrict out, int32_t *place)
{
    (void)number, (void)points, (void)place;
    memcpy(in, out, (size_t)channels * sizeof *in);
}

static inline void copy_back(int channels, int number, int points, float *restrict in,
                             float *restrict out, int32_t *place)
{
    (void)number, (void)points, (void)place;
    for (int c = 0; c < channels; c++)
        out[c] += in[c];
}

PASSES(upsample, false, copy_at, copy_back)

/* Emits the repetition of each point: inserts dimensions after height and width, and tiles along
 * these. */
static const char *upsample_emit(struct dt__emitter *e, const struct dt__layer *layer,
                                 const char *x)
{
    const int64_t h = layer->in.h, w = layer->in.w, c = layer->in.c;
    const int64_t inserted[] = {-1, h, 1, w, 1, c};
    const int64_t times[] = {1, 1, layer->out.h / h, 1, layer->out.w / w, 1};
    const int64_t flat[] = {-1, (int64_t)dt__shape_size(layer->out)};
    x = dt__emit_reshape(e, x, 6, inserted);
    x = DT__NODE(e, "Tile", x, e->list(e, 6, times));
    return dt__emit_reshape(e, x, 2, flat);
}

const struct dt__layer_kind dt__upsample_layer = {.name = "upsample",
                                                  .usage = "upsample K",
                                                  .parse = upsample_parse,
                                                  .infer = upsample_infer,
                                                  .forward = upsample_forward,
                                                  .backward = upsample_backward,
                                                  .emit = upsample_emit};
