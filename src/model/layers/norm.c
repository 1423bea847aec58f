/* Normalisation: `batchnorm` normalises each channel over the rows and points of a replica's
 * samples of the batch; `layernorm` normalises each point over its channels. weight and bias:
 * (channels).
 *
 * A batch of pictures (rows, H, W, C) is a matrix (points, channels); a dense batch is (rows,
 * width). Both kinds compute gain * (x - mean) / sqrt(variance + epsilon), where gain is the
 * weight; the epilogue adds the bias. Sums are in double, in the order of the points.
 *
 * batchnorm keeps running statistics in state tensors. Each step moves them by 0.1 of their
 * difference from the statistics of each replica, averaged over the replicas by their samples.
 * Evaluation normalises with the running statistics. Training on fewer than two values also uses
 * them, and leaves them unchanged. The running variance is that of the unbiased estimate, as in
 * PyTorch.
 *
 * Source: Ioffe and Szegedy 2015; Ba, Kiros and Hinton 2016. Epsilon and momentum are PyTorch's. */
#include <math.h>
#include <string.h>

#include "base/clones.h"
#include "base/limits.h"
#include "model/activation.h"
#include "model/emitter.h"

#define MOMENTUM 0.1 /* weight of a step in the running statistics */

static dt_status norm_infer(struct dt_model *model, struct dt__layer *layer)
{
    const size_t channels = (size_t)layer->in.c;
    const struct dt_tensor weight = {
        .rank = 1, .shape = {channels}, .role = DT_TENSOR_WEIGHT, .init = DT_INIT_ONE};
    const struct dt_tensor bias = {.rank = 1, .shape = {channels}, .role = DT_TENSOR_BIAS};
    layer->macs = 2 * dt__shape_size(layer->in);
    layer->keep = dt__shape_size(layer->in);
    DT_TRY(dt__layer_tensor(model, layer, "weight", &weight));
    return dt__layer_tensor(model, layer, "bias", &bias);
}

/* State of a layer in a network. mean and scale are, for batchnorm, (channels) statistics of the
 * current samples, or the running ones if `frozen`; for layernorm, (points) statistics for the
 * backward pass. */
struct norm {
    float *mean;
    float *scale; /* batchnorm: the variance; layernorm: 1 / sqrt(variance + epsilon) */
    double *sums; /* (channels) scratch memory of layernorm's backward pass */
    bool frozen;
};

static void norm_close(void *state)
{
    struct norm *norm = state;
    if (!norm) return;
    dt_free(norm->mean);
    dt_free(norm->scale);
    dt_free(norm->sums);
    dt_free(norm);
}

static dt_status norm_open(const struct dt__layer *layer, int max_rows, bool bf16, void **out_state)
{
    dt_status status;
    struct norm *norm = NULL;
    (void)bf16;
    const size_t channels = (size_t)layer->in.c;
    const size_t points = (size_t)max_rows * (size_t)layer->in.h * (size_t)layer->in.w;
    const size_t count = layer->kind == &dt__batchnorm_layer ? channels : points;
    DT_GUARD(dt__alloc(1, sizeof *norm, layer->kind->name, &norm));
    DT_GUARD(dt__alloc(count, sizeof *norm->mean, layer->kind->name, &norm->mean));
    DT_GUARD(dt__alloc(count, sizeof *norm->scale, layer->kind->name, &norm->scale));
    DT_GUARD(dt__alloc(channels, sizeof *norm->sums, layer->kind->name, &norm->sums));
    *out_state = norm;
    return DT_OK;
done:
    norm_close(norm);
    return status;
}

static size_t norm_points(const struct dt__layer_call *call)
{
    return (size_t)call->rows * (size_t)call->layer->in.h * (size_t)call->layer->in.w;
}

static void sums_store(int channels, const double *sums, bool add, float *out)
{
    for (int c = 0; c < channels; c++)
        out[c] = add ? out[c] + (float)sums[c] : (float)sums[c];
}

static inline float variance_scale(float variance)
{
    return (float)(1.0 / sqrt((double)variance + DT__NORM_EPSILON));
}

/* ---- over a batch --------------------------------------------------------------------------- */

static dt_status batchnorm_infer(struct dt_model *model, struct dt__layer *layer)
{
    const size_t channels = (size_t)layer->in.c;
    const struct dt_tensor mean = {.rank = 1, .shape = {channels}, .role = DT_TENSOR_STATE};
    const struct dt_tensor variance = {
        .rank = 1, .shape = {channels}, .role = DT_TENSOR_STATE, .init = DT_INIT_ONE};
    DT_TRY(norm_infer(model, layer));
    DT_TRY(dt__layer_tensor(model, layer, "running_mean", &mean));
    return dt__layer_tensor(model, layer, "running_var", &variance);
}

/* Returns the number of channels from `first` on to sum at a time; their sums stay in registers and
 * the nearest cache. */
static int block_width(int channels, int first)
{
    return channels - first < DT__NORM_BLOCK ? channels - first : DT__NORM_BLOCK;
}

/* Computes mean and variance in one pass over the differences from the first point. In double the
 * two sums lose no accuracy. */
DT__CLONES
static void batchnorm_statistics(size_t points, int channels, const float *restrict x,
                                 float *restrict mean, float *restrict variance)
{
    for (int first = 0; first < channels; first += DT__NORM_BLOCK) {
        const int count = block_width(channels, first);
        double sums[DT__NORM_BLOCK] = {0}, squares[DT__NORM_BLOCK] = {0};
        for (size_t p = 0; p < points; p++) {
            const float *from = x + p * (size_t)channels + first;
            for (int c = 0; c < count; c++) {
                double distance = (double)from[c] - (double)x[first + c];
                sums[c] += distance;
                squares[c] += distance * distance;
            }
        }
        for (int c = 0; c < count; c++) {
            double shift = sums[c] / (double)points;
            mean[first + c] = (float)((double)x[first + c] + shift);
            variance[first + c] = (float)fmax(squares[c] / (double)points - shift * shift, 0);
        }
    }
}

DT__CLONES
static void batchnorm_normalize(size_t points, int channels, const float *x, const float *mean,
                                const float *variance, const float *gain, float *y)
{
    for (int first = 0; first < channels; first += DT__NORM_BLOCK) {
        float scale[DT__NORM_BLOCK], offset[DT__NORM_BLOCK];
        const int count = block_width(channels, first);
        for (int c = 0; c < count; c++) {
            scale[c] = gain[first + c] * variance_scale(variance[first + c]);
            offset[c] = mean[first + c];
        }
        for (size_t p = 0; p < points; p++) {
            const float *from = x + p * (size_t)channels + first;
            float *to = y + p * (size_t)channels + first;
            for (int c = 0; c < count; c++)
                to[c] = (from[c] - offset[c]) * scale[c];
        }
    }
}

/* Computes the gradients. With s = gain / sqrt(variance + epsilon) and x^ the normalised input,
 * over n points: dx = s (dy - mean(dy) - x^ mean(dy x^)), dgain = sum(dy x^). Frozen: dx = s dy. */
DT__CLONES
static void batchnorm_gradient(size_t points, int channels, const float *restrict x,
                               const float *restrict mean, const float *restrict variance,
                               const float *restrict gain, const float *restrict dy, bool frozen,
                               float *restrict dx, bool add, float *restrict gain_grad)
{
    const double per_point = frozen ? 0.0 : 1.0 / (double)points;
    for (int first = 0; first < channels; first += DT__NORM_BLOCK) {
        const int count = block_width(channels, first);
        double with_x[DT__NORM_BLOCK] = {0}, alone[DT__NORM_BLOCK] = {0};
        float centre[DT__NORM_BLOCK], scale[DT__NORM_BLOCK], slope[DT__NORM_BLOCK],
            offset[DT__NORM_BLOCK];
        memcpy(centre, mean + first, (size_t)count * sizeof *mean);
        for (size_t p = 0; p < points; p++) {
            const size_t at = p * (size_t)channels + (size_t)first;
            for (int c = 0; c < count; c++) {
                double d = (double)dy[at + (size_t)c];
                with_x[c] += d * (double)(x[at + (size_t)c] - centre[c]);
                alone[c] += d;
            }
        }
        for (int c = 0; c < count; c++) {
            const float deviations = variance_scale(variance[first + c]);
            with_x[c] *= (double)deviations;
            scale[c] = gain[first + c] * deviations;
            slope[c] = (float)(with_x[c] * per_point * (double)deviations);
            offset[c] = (float)(alone[c] * per_point);
        }
        sums_store(count, with_x, add, gain_grad + first);
        for (size_t p = 0; dx && p < points; p++) {
            const size_t at = p * (size_t)channels + (size_t)first;
            for (int c = 0; c < count; c++)
                dx[at + (size_t)c] = scale[c] * (dy[at + (size_t)c] - offset[c] -
                                                 (x[at + (size_t)c] - centre[c]) * slope[c]);
        }
    }
}

static dt_status batchnorm_forward(const struct dt__layer_call *call)
{
    struct norm *norm = call->state;
    const int channels = call->layer->in.c;
    const size_t points = norm_points(call);
    const float *running_mean = call->states, *running_variance = running_mean + channels;
    norm->frozen = !call->keep || points < 2;
    if (norm->frozen) {
        memcpy(norm->mean, running_mean, (size_t)channels * sizeof *norm->mean);
        memcpy(norm->scale, running_variance, (size_t)channels * sizeof *norm->scale);
    } else
        batchnorm_statistics(points, channels, call->x, norm->mean, norm->scale);
    batchnorm_normalize(points, channels, call->x, norm->mean, norm->scale, call->params, call->y);
    if (call->keep) {
        /* gradient of a state tensor: the change of the running statistics times the rows */
        const double unbiased = (double)points / ((double)points - 1);
        const float step = (float)(MOMENTUM * call->rows);
        float *grad_mean = call->state_grad, *grad_variance = grad_mean + channels;
        for (int c = 0; c < channels; c++) {
            float mean = 0.0f, variance = 0.0f;
            if (!norm->frozen) {
                mean = step * (norm->mean[c] - running_mean[c]);
                variance = step * ((float)(unbiased * norm->scale[c]) - running_variance[c]);
            }
            grad_mean[c] = call->accumulate ? grad_mean[c] + mean : mean;
            grad_variance[c] = call->accumulate ? grad_variance[c] + variance : variance;
        }
    }
    dt__epilogue_forward(call, NULL);
    return DT_OK;
}

static dt_status batchnorm_backward(const struct dt__layer_call *call)
{
    const struct norm *norm = call->state;
    dt__epilogue_backward(call, NULL);
    batchnorm_gradient(norm_points(call), call->layer->in.c, call->x, norm->mean, norm->scale,
                       call->params, call->dy, norm->frozen, call->dx, call->accumulate,
                       call->grad);
    return DT_OK;
}

/* Emits a reshape of rows to points, for nodes that process each point's channels; if `back`, of
 * points to rows. */
static const char *emit_points(struct dt__emitter *e, const struct dt__layer *layer, const char *x,
                               bool back)
{
    const int64_t points[] = {-1, back ? (int64_t)dt__shape_size(layer->out) : layer->in.c};
    return layer->in.h * layer->in.w == 1 ? x : dt__emit_reshape(e, x, 2, points);
}

/* Emits (x - running mean) * factor + bias. The factor is computed here. */
static const char *batchnorm_emit(struct dt__emitter *e, const struct dt__layer *layer,
                                  const char *x)
{
    const struct dt_tensor *gain = dt__emit_need(e, layer, "weight");
    const struct dt_tensor *variance = dt__emit_need(e, layer, "running_var");
    float *factor = gain ? e->scratch(e, gain->count, sizeof *factor) : NULL;
    char name[80];
    if (!factor || !variance) return x;
    for (size_t c = 0; c < gain->count; c++)
        factor[c] = (float)(e->params[gain->offset + c] /
                            sqrt(e->params[variance->offset + c] + DT__NORM_EPSILON));
    snprintf(name, sizeof name, "%s/factor", gain->name);
    x = emit_points(e, layer, x, false);
    x = DT__NODE(e, "Sub", x, dt__emit_tensor(e, layer, "running_mean"));
    x = DT__NODE(e, "Mul", x, dt__emit_vector(e, name, gain->count, factor));
    x = DT__NODE(e, "Add", x, dt__emit_tensor(e, layer, "bias"));
    return emit_points(e, layer, x, true);
}

const struct dt__layer_kind dt__batchnorm_layer = {.name = "batchnorm",
                                                   .usage = "batchnorm [activation]",
                                                   .epilogue = true,
                                                   .infer = batchnorm_infer,
                                                   .open = norm_open,
                                                   .close = norm_close,
                                                   .forward = batchnorm_forward,
                                                   .backward = batchnorm_backward,
                                                   .emit = batchnorm_emit};

/* ---- over a layer --------------------------------------------------------------------------- */

/* Keeps the mean and scale of each point for the backward pass. */
DT__CLONES
static dt_status layernorm_forward(const struct dt__layer_call *call)
{
    struct norm *norm = call->state;
    const size_t points = norm_points(call), channels = (size_t)call->layer->in.c;
    const float *x = call->x, *gain = call->params;
    float *y = call->y;
    for (size_t p = 0; p < points; p++, x += channels, y += channels) {
        double sum = 0, squares = 0;
        for (size_t c = 0; c < channels; c++)
            sum += (double)x[c];
        const float mean = (float)(sum / (double)channels);
        for (size_t c = 0; c < channels; c++) {
            double distance = (double)(x[c] - mean);
            squares += distance * distance;
        }
        const float scale = variance_scale((float)(squares / (double)channels));
        for (size_t c = 0; c < channels; c++)
            y[c] = (x[c] - mean) * scale * gain[c];
        norm->mean[p] = mean;
        norm->scale[p] = scale;
    }
    dt__epilogue_forward(call, NULL);
    return DT_OK;
}

DT__CLONES
static void layernorm_gradient(size_t points, int channels, const float *restrict x,
                               const float *restrict mean, const float *restrict scale,
                               const float *restrict gain, const float *restrict dy,
                               double *restrict sums, float *restrict dx, bool add,
                               float *restrict gain_grad)
{
    const size_t width = (size_t)channels;
    memset(sums, 0, width * sizeof *sums);
    for (size_t p = 0; p < points; p++, x += width, dy += width) {
        double alone = 0, with_x = 0;
        for (size_t c = 0; c < width; c++) {
            const double normal = (double)((x[c] - mean[p]) * scale[p]);
            const double d = (double)dy[c];
            sums[c] += d * normal;
            alone += d * (double)gain[c];
            with_x += d * (double)gain[c] * normal;
        }
        if (!dx) continue;
        const float a = (float)(alone / (double)channels), b = (float)(with_x / (double)channels);
        for (size_t c = 0; c < width; c++)
            dx[c] = scale[p] * (dy[c] * gain[c] - a - (x[c] - mean[p]) * scale[p] * b);
        dx += width;
    }
    sums_store(channels, sums, add, gain_grad);
}

static dt_status layernorm_backward(const struct dt__layer_call *call)
{
    const struct norm *norm = call->state;
    dt__epilogue_backward(call, NULL);
    layernorm_gradient(norm_points(call), call->layer->in.c, call->x, norm->mean, norm->scale,
                       call->params, call->dy, norm->sums, call->dx, call->accumulate, call->grad);
    return DT_OK;
}

static const char *layernorm_emit(struct dt__emitter *e, const struct dt__layer *layer,
                                  const char *x)
{
    x = emit_points(e, layer, x, false);
    x = DT__NODE(e, "LayerNormalization", x, dt__emit_tensor(e, layer, "weight"),
                 dt__emit_tensor(e, layer, "bias"));
    e->integer(e, "axis", -1);
    e->real(e, "epsilon", DT__NORM_EPSILON);
    return emit_points(e, layer, x, true);
}

const struct dt__layer_kind dt__layernorm_layer = {.name = "layernorm",
                                                   .usage = "layernorm [activation]",
                                                   .epilogue = true,
                                                   .infer = norm_infer,
                                                   .open = norm_open,
                                                   .close = norm_close,
                                                   .forward = layernorm_forward,
                                                   .backward = layernorm_backward,
                                                   .emit = layernorm_emit};
