/* Pooling and enlarging of pictures, channels last: (rows, H, W, C) to (rows, OH, OW, C).
 *
 * The loops run along the channels, which vectors take whole. No result depends on more than one row. */
#ifndef MODEL_POOLING_H
#define MODEL_POOLING_H

#include <stdint.h>

struct dt__pooling_shape {
    int height, width, channels, out_height, out_width;
    int window_height, window_width; /* at most 255 places together */
    int stride_height, stride_width;
};

/* The greatest of each window, NaN if one is in it; place (rows, OH, OW, C): which, in row-major order
 * of the window, the first of equals. place may be NULL. */
void dt__maxpool_forward(const struct dt__pooling_shape *shape, int rows, const float *x, float *y,
                         uint8_t *place);
/* dx is written: what dy brings to the places that were greatest. */
void dt__maxpool_backward(const struct dt__pooling_shape *shape, int rows, const uint8_t *place,
                          const float *dy, float *dx);

/* The mean of each window. */
void dt__avgpool_forward(const struct dt__pooling_shape *shape, int rows, const float *x, float *y);
void dt__avgpool_backward(const struct dt__pooling_shape *shape, int rows, const float *dy,
                          float *dx);

/* Each picture point stands window_height x window_width times in y: OH = H * window_height. */
void dt__upsample_forward(const struct dt__pooling_shape *shape, int rows, const float *x,
                          float *y);
void dt__upsample_backward(const struct dt__pooling_shape *shape, int rows, const float *dy,
                           float *dx);

/* What a pooling layer computes. */
struct dt__layer;
struct dt__pooling_shape dt__pool_shape(const struct dt__layer *layer);

#endif
