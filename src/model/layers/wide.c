/* Wide: the linear path. It follows the output layer and adds a linear function of all inputs to
 * the outputs: y = x + inputs W, weight (inputs, outputs). It needs no bias, because the output
 * layer has one. Of W it reads only the rows whose sparse inputs are present. W starts at 0, and
 * may have its own optimizer (train.wide_optimizer).
 *
 * Source: Cheng et al., "Wide & deep learning for recommender systems", DLRS 2016, section 3.3. */
#include <string.h>

#include "model/emitter.h"
#include "model/entries.h"

static dt_status wide_infer(struct dt_model *model, struct dt__layer *layer)
{
    const int *shape = model->desc.shape;
    const size_t nout = dt__shape_size(layer->in);
    if (shape[0] != 1 || shape[1] != 1)
        return dt_fail(DT_EUSAGE,
                       "a linear path besides the layers goes with rows of plain features, not "
                       "with rows of %d x %d x %d",
                       shape[0], shape[1], shape[2]);
    const struct dt_tensor weight = {.rank = 2,
                                     .shape = {model->inputs, nout},
                                     .role = DT_TENSOR_WEIGHT,
                                     .init = DT_INIT_ZERO,
                                     .row_sparse = true,
                                     .wide = true};
    layer->size[0] = (int)model->inputs;
    const int read = model->desc.categories ? model->desc.dense + model->desc.categories +
                                                  (int)(model->inputs - model->features)
                                            : layer->size[0];
    layer->macs = (size_t)read * nout; /* a row has one category per column */
    return dt__layer_tensor(model, layer, "weight", &weight);
}

static dt_status wide_forward(const struct dt__layer_call *call)
{
    const size_t nout = dt__shape_size(call->layer->out);
    memcpy(call->y, call->x, (size_t)call->rows * nout * sizeof *call->y);
    return dt__inputs_forward(call, call->params, nout, true, call->y);
}

static dt_status wide_backward(const struct dt__layer_call *call)
{
    return dt__inputs_backward(call, (size_t)call->layer->size[0],
                               dt__shape_size(call->layer->out));
}

static const char *wide_emit(struct dt__emitter *e, const struct dt__layer *layer, const char *x)
{
    return DT__NODE(e, "Add", x,
                    DT__NODE(e, "MatMul", e->before[0], dt__emit_tensor(e, layer, "weight")));
}

const struct dt__layer_kind dt__wide_layer = {.name = "wide",
                                              .usage = "wide",
                                              .same_gradient = true,
                                              .infer = wide_infer,
                                              .forward = wide_forward,
                                              .backward = wide_backward,
                                              .emit = wide_emit};
