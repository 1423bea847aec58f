/* Normalisation: `batchnorm` (each channel over the rows and points of the replica's share of the
 * batch) and `layernorm` (each point over its channels). weight and bias: (channels).
 *
 * batchnorm keeps running statistics, state tensors that training moves by 0.1 of the way to those of
 * each share, averaged over the replicas by their samples; evaluation normalises with them. A share
 * of fewer than two values uses them in training too, and leaves them. The running variance takes
 * the unbiased one, as PyTorch has it. */
#include "model/activation.h"
#include "model/normalization.h"

static dt_status norm_tensors(struct dt_model *model, struct dt__layer *layer)
{
    const size_t channels = (size_t)layer->in.c;
    const struct dt_tensor weight = {
        .rank = 1, .shape = {channels}, .role = DT_TENSOR_WEIGHT, .init = DT_INIT_ONE};
    const struct dt_tensor bias = {.rank = 1, .shape = {channels}, .role = DT_TENSOR_BIAS};
    layer->out = layer->in;
    layer->macs = 2 * dt__shape_size(layer->in);
    layer->keep = dt__shape_size(layer->in);
    DT_TRY(dt__layer_tensor(model, layer, "weight", &weight));
    return dt__layer_tensor(model, layer, "bias", &bias);
}

static size_t call_points(const struct dt__layer_call *call)
{
    return (size_t)call->rows * (size_t)call->layer->in.h * (size_t)call->layer->in.w;
}

/* Behind the normalisation: y = f(y + bias), and the slope if there is a way back. */
static void norm_finish(const struct dt__layer_call *call)
{
    float *slope = dt__has_epilogue(call->layer) ? call->keep : NULL;
    dt__epilogue_forward(call, call_points(call), call->layer->out.c,
                         call->params + call->layer->out.c, call->y, slope);
}

static void norm_begin_backward(const struct dt__layer_call *call)
{
    const float *slope = dt__has_epilogue(call->layer) ? call->keep : NULL;
    dt__epilogue_backward(call_points(call), call->layer->out.c, slope, call->dy, call->accumulate,
                          call->grad + call->layer->out.c);
}

/* ---- over a batch --------------------------------------------------------------------------- */

struct batchnorm {
    float *mean, *variance; /* (channels) of the share at hand, or the running ones */
    bool frozen;            /* they are the running ones */
};

static dt_status batchnorm_infer(struct dt_model *model, struct dt__layer *layer)
{
    const size_t channels = (size_t)layer->in.c;
    const struct dt_tensor mean = {.rank = 1, .shape = {channels}, .role = DT_TENSOR_STATE};
    const struct dt_tensor variance = {
        .rank = 1, .shape = {channels}, .role = DT_TENSOR_STATE, .init = DT_INIT_ONE};
    DT_TRY(norm_tensors(model, layer));
    DT_TRY(dt__layer_tensor(model, layer, "running_mean", &mean));
    return dt__layer_tensor(model, layer, "running_var", &variance);
}

static void batchnorm_close(void *state)
{
    struct batchnorm *norm = state;
    if (!norm) return;
    dt_free(norm->mean);
    dt_free(norm->variance);
    dt_free(norm);
}

static dt_status batchnorm_open(const struct dt__layer *layer, int max_rows, void **out_state)
{
    dt_status status;
    struct batchnorm *norm = NULL;
    const size_t channels = (size_t)layer->in.c;
    (void)max_rows;
    DT_GUARD(dt_alloc(1, sizeof *norm, "batchnorm", &norm));
    DT_GUARD(dt_alloc(channels, sizeof *norm->mean, "batchnorm", &norm->mean));
    DT_GUARD(dt_alloc(channels, sizeof *norm->variance, "batchnorm", &norm->variance));
    *out_state = norm;
    return DT_OK;
done:
    batchnorm_close(norm);
    return status;
}

/* The way of the running statistics, times the rows: what a state tensor has for a gradient. */
static void batchnorm_move(const struct dt__layer_call *call, const struct batchnorm *norm)
{
    const int channels = call->layer->in.c;
    const float *running = call->states;
    const double points = (double)call_points(call), unbiased = points / (points - 1);
    const float step = (float)(DT__NORM_MOMENTUM * call->rows);
    for (int c = 0; c < channels; c++) {
        float mean = norm->frozen ? 0.0f : step * (norm->mean[c] - running[c]);
        float variance =
            norm->frozen ? 0.0f
                         : step * ((float)(unbiased * norm->variance[c]) - running[channels + c]);
        call->state_grad[c] = call->accumulate ? call->state_grad[c] + mean : mean;
        call->state_grad[channels + c] =
            call->accumulate ? call->state_grad[channels + c] + variance : variance;
    }
}

static dt_status batchnorm_forward(const struct dt__layer_call *call)
{
    struct batchnorm *norm = call->state;
    const int channels = call->layer->in.c;
    const size_t points = call_points(call);
    norm->frozen = !call->keep || points < 2;
    if (norm->frozen)
        for (int c = 0; c < channels; c++) {
            norm->mean[c] = call->states[c];
            norm->variance[c] = call->states[channels + c];
        }
    else
        dt__batchnorm_statistics(points, channels, call->x, norm->mean, norm->variance);
    dt__batchnorm_forward(points, channels, call->x, norm->mean, norm->variance, call->params,
                          call->y);
    if (call->keep) batchnorm_move(call, norm);
    norm_finish(call);
    return DT_OK;
}

static dt_status batchnorm_backward(const struct dt__layer_call *call)
{
    const struct batchnorm *norm = call->state;
    norm_begin_backward(call);
    dt__batchnorm_backward(call_points(call), call->layer->in.c, call->x, norm->mean,
                           norm->variance, call->params, call->dy, norm->frozen, call->dx,
                           call->accumulate, call->grad);
    return DT_OK;
}

const struct dt__layer_kind dt__batchnorm_layer = {.name = "batchnorm",
                                                   .usage = "batchnorm [activation]",
                                                   .epilogue = true,
                                                   .infer = batchnorm_infer,
                                                   .open = batchnorm_open,
                                                   .close = batchnorm_close,
                                                   .forward = batchnorm_forward,
                                                   .backward = batchnorm_backward};

/* ---- over a layer --------------------------------------------------------------------------- */

struct layernorm {
    double *sums;        /* (channels) */
    float *mean, *scale; /* (max_rows * points) */
};

static void layernorm_close(void *state)
{
    struct layernorm *norm = state;
    if (!norm) return;
    dt_free(norm->sums);
    dt_free(norm->mean);
    dt_free(norm->scale);
    dt_free(norm);
}

static dt_status layernorm_open(const struct dt__layer *layer, int max_rows, void **out_state)
{
    dt_status status;
    struct layernorm *norm = NULL;
    const size_t points = (size_t)max_rows * (size_t)layer->in.h * (size_t)layer->in.w;
    DT_GUARD(dt_alloc(1, sizeof *norm, "layernorm", &norm));
    DT_GUARD(dt_alloc((size_t)layer->in.c, sizeof *norm->sums, "layernorm", &norm->sums));
    DT_GUARD(dt_alloc(points, sizeof *norm->mean, "layernorm", &norm->mean));
    DT_GUARD(dt_alloc(points, sizeof *norm->scale, "layernorm", &norm->scale));
    *out_state = norm;
    return DT_OK;
done:
    layernorm_close(norm);
    return status;
}

static dt_status layernorm_forward(const struct dt__layer_call *call)
{
    const struct layernorm *norm = call->state;
    dt__layernorm_forward(call_points(call), call->layer->in.c, call->x, call->params, call->y,
                          norm->mean, norm->scale);
    norm_finish(call);
    return DT_OK;
}

static dt_status layernorm_backward(const struct dt__layer_call *call)
{
    const struct layernorm *norm = call->state;
    norm_begin_backward(call);
    dt__layernorm_backward(call_points(call), call->layer->in.c, call->x, norm->mean, norm->scale,
                           call->params, call->dy, norm->sums, call->dx, call->accumulate,
                           call->grad);
    return DT_OK;
}

const struct dt__layer_kind dt__layernorm_layer = {.name = "layernorm",
                                                   .usage = "layernorm [activation]",
                                                   .epilogue = true,
                                                   .infer = norm_tensors,
                                                   .open = layernorm_open,
                                                   .close = layernorm_close,
                                                   .forward = layernorm_forward,
                                                   .backward = layernorm_backward};
