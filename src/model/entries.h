/* entries: the sparse part of a batch in the order of its inputs, and what follows from that: which
 * rows of a row-sparse tensor the batch touches, and their gradients. */
#ifndef MODEL_ENTRIES_H
#define MODEL_ENTRIES_H

#include "model/layer.h"

struct dt__entry {
    uint32_t input, row; /* row of the batch */
    uint32_t place;      /* among the batch's entries as they come */
};

struct dt__entries {
    struct dt__entry *entry; /* (count) by input; of one input, by place */
    const float *value;      /* by place; NULL: all 1 */
    size_t count, room;
    struct dt__entry *other; /* where a pass of the sort goes */
    size_t other_room;
};

/* Room for so many; free with dt__entries_free. DT_EMEMORY. */
dt_status dt__entries_reserve(struct dt__entries *entries, size_t count);
void dt__entries_free(struct dt__entries *entries);
/* The entries of a batch, whose inputs are below `inputs`. DT_EMEMORY: there was no room for
 * them. */
dt_status dt__entries_sort(struct dt__entries *entries, const struct dt_batch *batch,
                           size_t inputs);
/* Adds the entries' inputs, and those below `dense`, to a list of inputs, rising. */
void dt__entries_list(const struct dt__entries *entries, uint32_t dense,
                      const struct dt_touched *inout);
/* The place of each entry's input in such a list, to index: by place. DT_EBUG: it is not there. */
dt_status dt__entries_find(const struct dt__entries *entries, const struct dt_touched *inputs,
                           uint32_t *index);

/* y (rows of the batch, width) = the call's batch's inputs times weight (inputs, width), or += if `add`:
 * the dense inputs first, then entry after entry. */
dt_status dt__inputs_forward(const struct dt__layer_call *call, const float *weight, size_t width,
                             bool add, float *y);
/* The gradient by that weight, of `inputs` rows, into call->grad: the product of the batch's inputs
 * and call->dy (rows, width). Rows of inputs that are nowhere in the batch are 0. */
dt_status dt__inputs_backward(const struct dt__layer_call *call, size_t inputs, size_t width);

/* A tensor (rows, width) of which row i belongs to input first + i, and where the gradient by what
 * an entry adds to the layer's output stands: at delta + row * by_row + place * by_place. */
struct dt__input_rows {
    const float *delta;
    size_t by_row, by_place;
    size_t width, rows, first;
    size_t dense; /* rows [0, dense) are of dense inputs: the caller writes them */
};

/* The tensor's gradient: each entry adds its value times its delta to its input's row, which begins
 * at 0 unless `accumulate`.
 *   touched  NULL: grad is (rows, width), whole
 *            else grad has the touched rows alone, which are listed there; with `accumulate` those
 *            that it lists already are among them */
void dt__entries_gradient(const struct dt__entries *entries, const struct dt__input_rows *rows,
                          bool accumulate, const struct dt_touched *touched, float *grad);

#endif
