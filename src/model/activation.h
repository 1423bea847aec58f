/* activation: what happens to a hidden layer's values between two matrix products. */
#ifndef MODEL_ACTIVATION_H
#define MODEL_ACTIVATION_H

#include "model/dropout.h"

/* y (rows, n), in: X W; out: f(X W + bias), dropped out if `dropout` is not NULL.
 * slope (rows, n), out: the derivative of y by X W, dropout included. With slope NULL (and dropout
 * NULL) y alone: inference.
 * kind: enum dt_activation. bias: (n). */
void dt__activation_forward(int kind, int rows, int n, const float *bias,
                            const struct dt__dropout *dropout, float *y, float *slope);

/* delta (rows, n), in: gradient by y; out: gradient by X W, which is delta * slope.
 * bias_grad (n): the sums of delta's columns, or += if `add`. */
void dt__activation_backward(int rows, int n, const float *slope, float *delta, bool add,
                             float *bias_grad);

/* The same for an output layer: no activation. */
void dt__bias_forward(int rows, int n, const float *bias, float *y);
void dt__bias_backward(int rows, int n, const float *delta, bool add, float *bias_grad);

#endif
