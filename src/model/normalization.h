/* Normalisation over a batch (a channel's values at all points) and over a layer (a point's channels).
 *
 * A picture batch (rows, H, W, C) is a matrix (points, channels); a dense one is (rows, width). Both
 * give gain * (x - mean) / sqrt(variance + DT__NORM_EPSILON), without an offset: the caller's pass of
 * bias and activation adds it. Sums are in double, in order of the points.
 * Source: Ioffe and Szegedy 2015; Ba, Kiros and Hinton 2016. Epsilon and momentum are PyTorch's. */
#ifndef MODEL_NORMALIZATION_H
#define MODEL_NORMALIZATION_H

#include <stddef.h>

#define DT__NORM_EPSILON 1e-5
#define DT__NORM_MOMENTUM 0.1

/* mean and variance (channels) of x (points, channels); the variance is divided by the points.
 * points >= 1. */
void dt__batchnorm_statistics(size_t points, int channels, const float *x, float *mean,
                              float *variance);
/* y (points, channels); may be x. */
void dt__batchnorm_forward(size_t points, int channels, const float *x, const float *mean,
                           const float *variance, const float *gain, float *y);
/* dy (points, channels) becomes dx, written over x's statistics of these points; gain_grad (channels)
 * is written, or added to. frozen: mean and variance are not of these points (running ones).
 * dx may be NULL. */
void dt__batchnorm_backward(size_t points, int channels, const float *x, const float *mean,
                            const float *variance, const float *gain, const float *dy, int frozen,
                            float *dx, int add, float *gain_grad);

/* mean and scale = 1 / sqrt(variance + epsilon) (points) are kept for the way back; may be NULL. */
void dt__layernorm_forward(size_t points, int channels, const float *x, const float *gain, float *y,
                           float *mean, float *scale);
/* sums: (channels) scratch. dx may be NULL. */
void dt__layernorm_backward(size_t points, int channels, const float *x, const float *mean,
                            const float *scale, const float *gain, const float *dy, double *sums,
                            float *dx, int add, float *gain_grad);

#endif
