#include "base/clones.h"
#include "model/normalization.h"

#include <math.h>
#include <string.h>

static void sums_store(int channels, const double *sums, int add, float *out)
{
    for (int c = 0; c < channels; c++)
        out[c] = add ? out[c] + (float)sums[c] : (float)sums[c];
}

static inline float variance_scale(float variance)
{
    return (float)(1.0 / sqrt((double)variance + DT__NORM_EPSILON));
}

/* ---- over a batch --------------------------------------------------------------------------- */

/* Channels at a time: what is summed of them stays in registers and the nearest cache. */
enum { STRIP = 64 };

static int strip_width(int channels, int first)
{
    return channels - first < STRIP ? channels - first : STRIP;
}

/* In one pass, over distances from the first point: in double the two sums lose nothing to it. */
DT__CLONES
void dt__batchnorm_statistics(size_t points, int channels, const float *restrict x,
                              float *restrict mean, float *restrict variance)
{
    for (int first = 0; first < channels; first += STRIP) {
        const int count = strip_width(channels, first);
        double sums[STRIP] = {0}, squares[STRIP] = {0};
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
void dt__batchnorm_forward(size_t points, int channels, const float *x, const float *mean,
                           const float *variance, const float *gain, float *y)
{
    for (int first = 0; first < channels; first += STRIP) {
        float scale[STRIP], offset[STRIP];
        const int count = strip_width(channels, first);
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

/* With s = gain / sqrt(variance + epsilon) and x^ the normalised input, over n points:
 * dx = s (dy - mean(dy) - x^ mean(dy x^)), dgain = sum(dy x^). Frozen: dx = s dy. */
DT__CLONES
void dt__batchnorm_backward(size_t points, int channels, const float *restrict x,
                            const float *restrict mean, const float *restrict variance,
                            const float *restrict gain, const float *restrict dy, int frozen,
                            float *restrict dx, int add, float *restrict gain_grad)
{
    const double share = frozen ? 0.0 : 1.0 / (double)points;
    for (int first = 0; first < channels; first += STRIP) {
        const int count = strip_width(channels, first);
        double with_x[STRIP] = {0}, alone[STRIP] = {0};
        float centre[STRIP], scale[STRIP], slope[STRIP], offset[STRIP];
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
            slope[c] = (float)(with_x[c] * share * (double)deviations);
            offset[c] = (float)(alone[c] * share);
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

/* ---- over a layer --------------------------------------------------------------------------- */

DT__CLONES
void dt__layernorm_forward(size_t points, int channels, const float *x, const float *gain, float *y,
                           float *mean, float *scale)
{
    const size_t width = (size_t)channels;
    for (size_t p = 0; p < points; p++, x += width, y += width) {
        double sum = 0, squares = 0;
        for (size_t c = 0; c < width; c++)
            sum += (double)x[c];
        const float centre = (float)(sum / (double)channels);
        for (size_t c = 0; c < width; c++) {
            double distance = (double)(x[c] - centre);
            squares += distance * distance;
        }
        const float factor = variance_scale((float)(squares / (double)channels));
        for (size_t c = 0; c < width; c++)
            y[c] = (x[c] - centre) * factor * gain[c];
        if (!mean) continue;
        mean[p] = centre;
        scale[p] = factor;
    }
}

DT__CLONES
void dt__layernorm_backward(size_t points, int channels, const float *restrict x,
                            const float *restrict mean, const float *restrict scale,
                            const float *restrict gain, const float *restrict dy,
                            double *restrict sums, float *restrict dx, int add,
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
