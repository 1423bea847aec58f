/* entries: the sparse part of a batch, sorted by input. The sorted entries yield the rows of a
 * row-sparse tensor that the batch touches, and their gradients. */
#ifndef MODEL_ENTRIES_H
#define MODEL_ENTRIES_H

#include "model/layer.h"

struct dt__entry {
    uint32_t input, row; /* row: of the batch */
    uint32_t place;      /* index of the entry in the batch's order */
};

struct dt__entries {
    struct dt__entry *entry; /* (count) sorted by input; equal inputs by place */
    const float *value;      /* by place; NULL: all 1 */
    size_t count, capacity;
    struct dt__entry *other; /* scratch memory of the sort */
    size_t other_capacity;
};

/* Reserves memory for `count` entries; free it with dt__entries_free. DT_EMEMORY. */
dt_status dt__entries_reserve(struct dt__entries *entries, size_t count);
void dt__entries_free(struct dt__entries *entries);
/* Sorts the entries of a batch, whose inputs are all below `inputs`. DT_EMEMORY. */
dt_status dt__entries_sort(struct dt__entries *entries, const struct dt_batch *batch,
                           size_t inputs);
/* Adds the entries' inputs, and all inputs below `dense`, to an ascending list of inputs. */
void dt__entries_list(const struct dt__entries *entries, uint32_t dense,
                      const struct dt_touched *inout);
/* Writes, for each entry (by place), the position of its input in the list `inputs`. DT_EBUG: an
 * input is not in the list. */
dt_status dt__entries_find(const struct dt__entries *entries, const struct dt_touched *inputs,
                           uint32_t *index);

/* Computes y (rows, width) = X weight, or y += X weight if `add`; X: the inputs of the call's
 * batch, weight: (inputs, width). The sum of a row adds dense inputs first, then entries in
 * order. */
dt_status dt__inputs_forward(const struct dt__layer_call *call, const float *weight, size_t width,
                             bool add, float *y);
/* Computes the gradient by that weight, (inputs, width), into call->grad: X^T times call->dy (rows,
 * width). Rows of inputs that are not in the batch are 0. */
dt_status dt__inputs_backward(const struct dt__layer_call *call, size_t inputs, size_t width);

/* A tensor (rows, width) whose row i belongs to input first + i. An entry adds a vector to the
 * layer's output; the gradient by this vector is at delta + row * by_row + place * by_place. */
struct dt__input_rows {
    const float *delta;
    size_t by_row, by_place;
    size_t width, rows, first;
    size_t dense; /* rows [0, dense) belong to dense inputs; the caller computes their gradient */
};

/* Computes the tensor's gradient: each entry adds its value times its delta to its input's row. The
 * sums start at 0, or if `accumulate`, at what grad contains.
 *   touched  NULL: grad is (rows, width), whole
 *            else grad has only the touched rows, and their list is written there; with
 *            `accumulate` the rows already in the list stay */
void dt__entries_gradient(const struct dt__entries *entries, const struct dt__input_rows *rows,
                          bool accumulate, const struct dt_touched *touched, float *grad);

#endif
