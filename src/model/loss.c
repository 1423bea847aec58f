#include "model/loss.h"

#include "model/vmath.h"

#include <math.h>

/* Squared error: mean over the nout elements of a row. */
static double square_gradient(int rows, int n, const float *restrict target, float *restrict z)
{
    const size_t count = (size_t)rows * (size_t)n;
    const float factor = (float)(2.0 / n);
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        float error = z[i] - target[i];
        sum += (double)error * (double)error;
        z[i] = factor * error;
    }
    return sum / n;
}

static double square_loss(int rows, int n, const float *target, const float *z)
{
    const size_t count = (size_t)rows * (size_t)n;
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        float error = z[i] - target[i];
        sum += (double)error * (double)error;
    }
    return sum / n;
}

/* -log p(label) for one logit z: log(1 + e^-z) for label 1, log(1 + e^z) for label 0, written so that
 * no exponential overflows. */
static inline float binary_loss(float z, int32_t label)
{
    float size = fabsf(z);
    float wrong = label ? -z : z;
    return (wrong < 0.0f ? 0.0f : wrong) + dt__log1pf(dt__expf(-size));
}

static double binary_gradient(int rows, const int32_t *restrict label, float *restrict z)
{
    double sum = 0.0;
    for (int r = 0; r < rows; r++) {
        sum += (double)binary_loss(z[r], label[r]);
        z[r] = dt__sigmoidf(z[r]) - (float)label[r];
    }
    return sum;
}

static double binary_loss_sum(int rows, const int32_t *label, const float *z)
{
    double sum = 0.0;
    for (int r = 0; r < rows; r++)
        sum += (double)binary_loss(z[r], label[r]);
    return sum;
}

/* Rows are taken in groups that stay in the first cache through the passes over them. */
enum { GROUP = 4096 };

/* -log softmax(z)[label] = log(sum e^(z - max)) - (z[label] - max); its gradient is
 * softmax(z) - onehot(label). */
static double softmax_group(int rows, int n, const int32_t *restrict label, float *restrict z)
{
    double sum = 0.0;
    float *row = z;
    for (int r = 0; r < rows; r++, row += n) {
        dt__softmax_shift(n, row);
        sum -= (double)row[label[r]];
    }
    dt__softmax_exp((size_t)(row - z), z);
    for (int r = 0; r < rows; r++, z += n) {
        float total = dt__row_sum(n, z), factor = 1.0f / total;
        for (int i = 0; i < n; i++)
            z[i] *= factor;
        z[label[r]] -= 1.0f;
        sum += log((double)total);
    }
    return sum;
}

static double softmax_gradient(int rows, int n, const int32_t *label, float *z)
{
    const int group = n < GROUP ? GROUP / n : 1;
    double sum = 0.0;
    for (int r = 0; r < rows; r += group) {
        int part = rows - r < group ? rows - r : group;
        sum += softmax_group(part, n, label + r, z + (size_t)r * (size_t)n);
    }
    return sum;
}

static double softmax_row_loss(int n, int32_t label, const float *z)
{
    float most = z[0];
    for (int i = 1; i < n; i++)
        most = z[i] > most ? z[i] : most;
    double total = (double)dt__expf(z[0] - most);
    for (int i = 1; i < n; i++)
        total += (double)dt__expf(z[i] - most);
    return log(total) - ((double)z[label] - (double)most);
}

static double softmax_loss(int rows, int n, const int32_t *label, const float *z)
{
    double sum = 0.0;
    for (int r = 0; r < rows; r++, z += n)
        sum += softmax_row_loss(n, label[r], z);
    return sum;
}

double dt__loss_gradient(const struct dt_model_spec *spec, const struct dt_batch *batch,
                         float *logits)
{
    if (spec->task == DT_REGRESS)
        return square_gradient(batch->rows, spec->nout, batch->target, logits);
    if (spec->nout == 1) return binary_gradient(batch->rows, batch->label, logits);
    return softmax_gradient(batch->rows, spec->nout, batch->label, logits);
}

double dt__loss(const struct dt_model_spec *spec, const struct dt_batch *batch, const float *logits)
{
    if (spec->task == DT_REGRESS)
        return square_loss(batch->rows, spec->nout, batch->target, logits);
    if (spec->nout == 1) return binary_loss_sum(batch->rows, batch->label, logits);
    return softmax_loss(batch->rows, spec->nout, batch->label, logits);
}
