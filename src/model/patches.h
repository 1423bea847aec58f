/* patches: the products of a convolution for run.kernel=portable. The inputs that an output point
 * reads are its patch, a row of a matrix. Patches of 128 points at a time are multiplied with the
 * weights (portable.h). Shapes and layouts are those of convolution.h. */
#ifndef MODEL_PATCHES_H
#define MODEL_PATCHES_H

#include "model/convolution.h"

struct dt__patches;

/* Creates the products of a convolution. DT_EMEMORY. */
dt_status dt__patches_create(const struct dt__convolution_shape *shape, struct dt__patches **out);
void dt__patches_destroy(struct dt__patches *patches);

dt_status dt__patches_forward(struct dt__patches *patches, int rows, const float *x,
                              const float *weight, float *y);
dt_status dt__patches_input_gradient(struct dt__patches *patches, int rows, const float *dy,
                                     const float *weight, float *dx);
dt_status dt__patches_weight_gradient(struct dt__patches *patches, int rows, const float *x,
                                      const float *dy, bool add, float *dweight);

#endif
