/* Activations, and the epilogue of a layer: bias, activation and dropout in one pass over a
 * product. The pass keeps the slope for the backward pass. Each activation is a row of a table;
 * where the layer before accepts no epilogue, the activation is a layer by itself. */
#include "base/clones.h"
#include "base/limits.h"
#include "model/activation.h"
#include "model/emitter.h"

#include "model/vmath.h"

#include <math.h>
#include <string.h>

/* Each writes f(z) to *y and f'(z) to *slope. The comparisons are such that NaN stays NaN. */
static inline void identity(float z, float *y, float *slope)
{
    *y = z;
    *slope = 1.0f;
}

static inline void relu(float z, float *y, float *slope)
{
    *y = z < 0.0f ? 0.0f : z;
    *slope = z > 0.0f ? 1.0f : 0.0f;
}

static inline void tanh_(float z, float *y, float *slope)
{
    float t = dt__tanhf(z);
    *y = t;
    *slope = 1.0f - t * t;
}

static inline void sigmoid(float z, float *y, float *slope)
{
    float s = dt__sigmoidf(z);
    *y = s;
    *slope = s * (1.0f - s);
}

/* z Phi(z), where Phi is the normal distribution. Source: Hendrycks and Gimpel 2016, section 2. */
static inline void gelu(float z, float *y, float *slope)
{
    float distribution = 0.5f + 0.5f * dt__erff(z * 0.707106781f);
    float density = 0.398942280f * dt__expf(-0.5f * z * z);
    *y = z * distribution;
    *slope = distribution + z * density;
}

/* z sigmoid(z). Source: Elfwing et al. 2018, eq. 5. */
static inline void silu(float z, float *y, float *slope)
{
    float s = dt__sigmoidf(z);
    *y = z * s;
    *slope = s * (1.0f + z * (1.0f - s));
}

static inline void leaky_relu(float z, float *y, float *slope)
{
    *y = z < 0.0f ? 0.01f * z : z;
    *slope = z > 0.0f ? 1.0f : 0.01f;
}

/* log(1 + e^z), without overflow. */
static inline void softplus(float z, float *y, float *slope)
{
    float positive = z < 0.0f ? 0.0f : z;
    *y = positive + dt__log1pf(dt__expf(z - 2.0f * positive)); /* z - 2 max(z, 0) = -|z| */
    *slope = dt__sigmoidf(z);
}

/* Defines the passes over a row, with and without slope. */
#define ROW(f)                                                                                     \
    DT__CLONES static void f##_row(int n, const float *restrict bias, float *restrict y,           \
                                   float *restrict slope)                                          \
    {                                                                                              \
        for (int i = 0; i < n; i++)                                                                \
            f(y[i] + bias[i], &y[i], &slope[i]);                                                   \
    }                                                                                              \
    DT__CLONES static void f##_row_infer(int n, const float *restrict bias, float *restrict y,     \
                                         float *restrict slope)                                    \
    {                                                                                              \
        (void)slope;                                                                               \
        for (int i = 0; i < n; i++) {                                                              \
            float unused;                                                                          \
            f(y[i] + bias[i], &y[i], &unused);                                                     \
        }                                                                                          \
    }
ROW(identity)
ROW(relu)
ROW(tanh_)
ROW(sigmoid)
ROW(gelu)
ROW(silu)
ROW(leaky_relu)
ROW(softplus)

/* ---- for other runtimes --------------------------------------------------------------------- */

/* x (1 + erf(x / sqrt 2)) / 2. ONNX has a node for this only from opset 20 on. */
static const char *gelu_emit(struct dt__emitter *e, const char *x)
{
    const char *root = dt__emit_scalar(e, sqrt(0.5)), *half = dt__emit_scalar(e, 0.5);
    const char *erf = DT__NODE(e, "Erf", DT__NODE(e, "Mul", x, root));
    return DT__NODE(e, "Mul", x, DT__NODE(e, "Add", DT__NODE(e, "Mul", erf, half), half));
}

static const char *silu_emit(struct dt__emitter *e, const char *x)
{
    return DT__NODE(e, "Mul", x, DT__NODE(e, "Sigmoid", x));
}

#define EMIT(f, operator)                                                                          \
    static const char *f##_emit(struct dt__emitter *e, const char *x)                              \
    {                                                                                              \
        return DT__NODE(e, operator, x);                                                           \
    }
EMIT(relu, "Relu")
EMIT(tanh, "Tanh")
EMIT(sigmoid, "Sigmoid")
EMIT(leaky_relu, "LeakyRelu") /* the default alpha of LeakyRelu is 0.01, as here */
EMIT(softplus, "Softplus")

static const struct dt__activation IDENTITY = {"", false, identity_row, identity_row_infer, NULL};
static const struct dt__activation ACTIVATIONS[] = {
    {"relu", true, relu_row, relu_row_infer, relu_emit},
    {"tanh", false, tanh__row, tanh__row_infer, tanh_emit},
    {"sigmoid", false, sigmoid_row, sigmoid_row_infer, sigmoid_emit},
    {"gelu", true, gelu_row, gelu_row_infer, gelu_emit},
    {"silu", true, silu_row, silu_row_infer, silu_emit},
    {"leaky_relu", true, leaky_relu_row, leaky_relu_row_infer, leaky_relu_emit},
    {"softplus", true, softplus_row, softplus_row_infer, softplus_emit},
};

enum { ACTIVATION_COUNT = sizeof ACTIVATIONS / sizeof *ACTIVATIONS };

const struct dt__activation *dt__activation_find(const char *name)
{
    for (size_t i = 0; i < ACTIVATION_COUNT; i++)
        if (!strcmp(ACTIVATIONS[i].name, name)) return &ACTIVATIONS[i];
    return NULL;
}

const char *dt__activation_name(int index)
{
    return index < ACTIVATION_COUNT ? ACTIVATIONS[index].name : NULL;
}

/* ---- the epilogue --------------------------------------------------------------------------- */

DT__CLONES
static void bias_forward(size_t rows, int n, const float *bias, float *y)
{
    for (size_t r = 0; r < rows; r++, y += n)
        for (int i = 0; i < n; i++)
            y[i] += bias[i];
}

/* Returns the offset of the bias in the layer's parameters. */
static size_t bias_begin(const struct dt__layer *layer)
{
    return layer->end - layer->begin - (size_t)layer->out.c;
}

/* Returns the number of points: vectors with one number per channel. */
static size_t points_of(const struct dt__layer_call *call)
{
    return (size_t)call->rows * (size_t)call->layer->out.h * (size_t)call->layer->out.w;
}

void dt__epilogue_forward(const struct dt__layer_call *call, const float *bias)
{
    const struct dt__layer *layer = call->layer;
    const struct dt__activation *f = layer->activation ? layer->activation : &IDENTITY;
    const int n = layer->out.c;
    const size_t rows = points_of(call), width = (size_t)n;
    float *y = call->y, *slope = call->keep;
    if (!bias) bias = call->params + bias_begin(layer);
    if (!dt__has_epilogue(layer) || (!slope && f == &IDENTITY)) {
        bias_forward(rows, n, bias, y);
        return;
    }
    if (!slope) {
        for (size_t r = 0; r < rows; r++)
            f->infer(n, bias, y + r * width, NULL);
        return;
    }
    struct dt__dropout dropout;
    const bool drop = dt__dropout_of(call, &dropout);
    for (size_t r = 0; r < rows; r++) {
        float *row = y + r * width, *row_slope = slope + r * width;
        f->train(n, bias, row, row_slope);
        if (drop) dt__dropout_apply(&dropout, dropout.first + r * width, n, row, row_slope);
    }
}

/* Columns are summed in blocks that stay in registers. Each column adds its rows in order. */

static inline void block_backward(size_t rows, size_t stride, int columns,
                                  const float *restrict slope, float *restrict delta,
                                  float *restrict sum)
{
    for (size_t at = 0; at < rows * stride; at += stride) {
        for (int i = 0; i < columns; i++) {
            float d = delta[at + (size_t)i];
            if (slope) delta[at + (size_t)i] = d *= slope[at + (size_t)i];
            sum[i] += d;
        }
    }
}

DT__CLONES
static void bias_backward(size_t rows, size_t stride, int columns, const float *slope, float *delta,
                          bool add, float *bias_grad)
{
    float sum[DT__BIAS_BLOCK] = {0};
    if (!slope)
        block_backward(rows, stride, columns, NULL, delta, sum);
    else if (columns == DT__BIAS_BLOCK)
        block_backward(rows, stride, DT__BIAS_BLOCK, slope, delta, sum);
    else
        block_backward(rows, stride, columns, slope, delta, sum);
    for (int i = 0; i < columns; i++)
        bias_grad[i] = add ? bias_grad[i] + sum[i] : sum[i];
}

void dt__epilogue_backward(const struct dt__layer_call *call, float *bias_grad)
{
    const int n = call->layer->out.c;
    const float *slope = dt__has_epilogue(call->layer) ? call->keep : NULL;
    if (!bias_grad) bias_grad = call->grad + bias_begin(call->layer);
    for (int c = 0; c < n; c += DT__BIAS_BLOCK)
        bias_backward(points_of(call), (size_t)n, n - c < DT__BIAS_BLOCK ? n - c : DT__BIAS_BLOCK,
                      slope ? slope + c : NULL, call->dy + c, call->accumulate, bias_grad + c);
}

/* ---- as a separate layer ------------------------------------------------------------------- */

dt_status dt__slope_infer(struct dt_model *model, struct dt__layer *layer)
{
    (void)model;
    layer->keep = dt__shape_size(layer->in);
    return DT_OK;
}

static dt_status activation_forward(const struct dt__layer_call *call)
{
    static const float no_bias[DT__ACTIVATION_BLOCK];
    const struct dt__activation *f = call->layer->activation;
    const size_t count = (size_t)call->rows * dt__shape_size(call->layer->out);
    memcpy(call->y, call->x, count * sizeof *call->y);
    for (size_t at = 0; at < count; at += DT__ACTIVATION_BLOCK) {
        const int part =
            count - at < DT__ACTIVATION_BLOCK ? (int)(count - at) : DT__ACTIVATION_BLOCK;
        if (call->keep)
            f->train(part, no_bias, call->y + at, call->keep + at);
        else
            f->infer(part, no_bias, call->y + at, NULL);
    }
    return DT_OK;
}

dt_status dt__slope_backward(const struct dt__layer_call *call)
{
    const size_t count = (size_t)call->rows * dt__shape_size(call->layer->out);
    if (!call->dx) return DT_OK;
    for (size_t i = 0; i < count; i++)
        call->dx[i] = call->dy[i] * call->keep[i];
    return DT_OK;
}

const struct dt__layer_kind dt__activation_layer = {.name = "activation",
                                                    .usage = "an activation",
                                                    .infer = dt__slope_infer,
                                                    .forward = activation_forward,
                                                    .backward = dt__slope_backward,
                                                    .emit = dt__emit_nothing};
