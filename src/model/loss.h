/* loss: a batch's loss and its gradient by the logits. */
#ifndef MODEL_LOSS_H
#define MODEL_LOSS_H

#include "dtrain/model.h"

/* logits (rows, nout), in: logits or values; out: the gradient of the batch's summed loss by them.
 * Returns the sum of the rows' losses. */
double dt__loss_gradient(const struct dt_model_spec *spec, const struct dt_batch *batch,
                         float *logits);
/* The sum alone. */
double dt__loss(const struct dt_model_spec *spec, const struct dt_batch *batch,
                const float *logits);

/* Pieces of softmax: subtracts a row's maximum; e^z of every element; a row's sum, in an order that
 * depends on n alone. */
void dt__softmax_shift(int n, float *row);
void dt__softmax_exp(size_t count, float *z);
float dt__row_sum(int n, const float *row);

#endif
