/* pooling: what a pooling layer computes, for those who write it down for other programs. */
#ifndef MODEL_POOLING_H
#define MODEL_POOLING_H

#include "model/layer.h"

struct dt__pooling_shape {
    int height, width, channels, out_height, out_width;
    int window_height, window_width; /* at most 255 places together */
    int stride_height, stride_width;
};
struct dt__pooling_shape dt__pool_shape(const struct dt__layer *layer);

#endif
