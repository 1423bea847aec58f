#include "model/activation.h"

#include "dtrain/config.h"
#include "model/vmath.h"

/* f(z) into *y and f'(z) into *slope. The comparisons are written so that NaN stays NaN. */
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

/* z Phi(z), Phi the normal distribution. Source: Hendrycks and Gimpel 2016, section 2. */
static inline void gelu(float z, float *y, float *slope)
{
    float distribution = 0.5f + 0.5f * dt__erff(z * 0.707106781f);
    float density = 0.398942280f * dt__expf(-0.5f * z * z);
    *y = z * distribution;
    *slope = distribution + z * density;
}

/* A row's pass, with and without slope. */
typedef void row_fn(int n, const float *restrict bias, float *restrict y, float *restrict slope);

#define ROW(f)                                                                                     \
    static void f##_row(int n, const float *restrict bias, float *restrict y,                      \
                        float *restrict slope)                                                     \
    {                                                                                              \
        for (int i = 0; i < n; i++)                                                                \
            f(y[i] + bias[i], &y[i], &slope[i]);                                                   \
    }                                                                                              \
    static void f##_row_infer(int n, const float *restrict bias, float *restrict y,                \
                              float *restrict slope)                                               \
    {                                                                                              \
        (void)slope;                                                                               \
        for (int i = 0; i < n; i++) {                                                              \
            float unused;                                                                          \
            f(y[i] + bias[i], &y[i], &unused);                                                     \
        }                                                                                          \
    }
ROW(relu)
ROW(tanh_)
ROW(sigmoid)
ROW(gelu)

static const struct {
    row_fn *train, *infer;
} ACTIVATIONS[] = {
    [DT_RELU] = {relu_row, relu_row_infer},
    [DT_TANH] = {tanh__row, tanh__row_infer},
    [DT_SIGMOID] = {sigmoid_row, sigmoid_row_infer},
    [DT_GELU] = {gelu_row, gelu_row_infer},
};

void dt__activation_forward(int kind, int rows, int n, const float *bias,
                            const struct dt__dropout *dropout, float *y, float *slope)
{
    const size_t width = (size_t)n;
    if (!slope) {
        for (size_t r = 0; r < (size_t)rows; r++)
            ACTIVATIONS[kind].infer(n, bias, y + r * width, NULL);
        return;
    }
    for (size_t r = 0; r < (size_t)rows; r++) {
        float *row = y + r * width, *row_slope = slope + r * width;
        ACTIVATIONS[kind].train(n, bias, row, row_slope);
        if (dropout) dt__dropout_apply(dropout, dropout->first + r * width, n, row, row_slope);
    }
}

/* Columns are summed in strips that stay in registers; each column adds its rows in order. */
enum { STRIP = 64 };

static inline void strip_backward(size_t rows, size_t stride, int columns,
                                  const float *restrict slope, float *restrict delta,
                                  float *restrict sum)
{
    for (size_t at = 0; at < rows * stride; at += stride) {
        for (int i = 0; i < columns; i++) {
            float d = delta[at + (size_t)i] * slope[at + (size_t)i];
            delta[at + (size_t)i] = d;
            sum[i] += d;
        }
    }
}

static inline void strip_sum(size_t rows, size_t stride, int columns, const float *restrict delta,
                             float *restrict sum)
{
    for (size_t at = 0; at < rows * stride; at += stride)
        for (int i = 0; i < columns; i++)
            sum[i] += delta[at + (size_t)i];
}

static void store_sums(int columns, const float *sum, bool add, float *bias_grad)
{
    for (int i = 0; i < columns; i++)
        bias_grad[i] = add ? bias_grad[i] + sum[i] : sum[i];
}

void dt__activation_backward(int rows, int n, const float *slope, float *delta, bool add,
                             float *bias_grad)
{
    const size_t height = (size_t)rows, width = (size_t)n;
    for (int c = 0; c < n; c += STRIP) {
        float sum[STRIP] = {0};
        int columns = n - c < STRIP ? n - c : STRIP;
        if (columns == STRIP)
            strip_backward(height, width, STRIP, slope + c, delta + c, sum);
        else
            strip_backward(height, width, columns, slope + c, delta + c, sum);
        store_sums(columns, sum, add, bias_grad + c);
    }
}

void dt__bias_backward(int rows, int n, const float *delta, bool add, float *bias_grad)
{
    const size_t height = (size_t)rows, width = (size_t)n;
    for (int c = 0; c < n; c += STRIP) {
        float sum[STRIP] = {0};
        int columns = n - c < STRIP ? n - c : STRIP;
        strip_sum(height, width, columns, delta + c, sum);
        store_sums(columns, sum, add, bias_grad + c);
    }
}

void dt__bias_forward(int rows, int n, const float *bias, float *y)
{
    for (int r = 0; r < rows; r++, y += n)
        for (int i = 0; i < n; i++)
            y[i] += bias[i];
}
