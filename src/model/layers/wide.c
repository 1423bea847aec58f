/* Wide: behind the output layer, adds a linear function of all inputs to the outputs, y = x + inputs W, weight
 * (inputs, outputs). It has no bias: the output layer has one. Of sparse inputs it reads the rows of those that
 * are there. W begins at 0, and may have an optimizer of its own.
 * Source: Cheng et al., "Wide & deep learning for recommender systems", DLRS 2016, section 3.3. */
#include <string.h>

#include "model/blas.h"
#include "model/entries.h"
#include "model/layer.h"

static size_t wide_inputs(const struct dt__layer *layer)
{
    return (size_t)layer->size[0];
}

static dt_status wide_infer(struct dt_model *model, struct dt__layer *layer)
{
    const int *shape = model->desc.shape;
    const size_t nout = dt__shape_size(layer->in);
    if (shape[0] != 1 || shape[1] != 1)
        return dt_fail(DT_EUSAGE, "a linear path beside the layers goes with rows of plain features, not "
                                  "with rows of %d x %d x %d", shape[0], shape[1], shape[2]);
    const struct dt_tensor weight = {.rank = 2,
                                     .shape = {(size_t)shape[2], nout},
                                     .role = DT_TENSOR_WEIGHT,
                                     .init = DT_INIT_ZERO,
                                     .row_sparse = true,
                                     .wide = true};
    layer->size[0] = shape[2];
    layer->out = layer->in;
    const int read = model->desc.categories ? model->desc.dense + model->desc.categories : shape[2];
    layer->macs = (size_t)read * nout; /* of categories one a column */
    return dt__layer_tensor(model, layer, "weight", &weight);
}

static dt_status wide_forward(const struct dt__layer_call *call)
{
    const struct dt_batch *batch = call->batch;
    const size_t nout = dt__shape_size(call->layer->out);
    memcpy(call->y, call->x, (size_t)call->rows * nout * sizeof *call->y);
    if (batch->ndense)
        DT_TRY(dt__gemm(false, false, call->rows, (int)nout, batch->ndense, batch->x, call->params,
                        true, call->y));
    if (batch->offsets) dt__rows_forward(batch, call->params, nout, call->y);
    return DT_OK;
}

static dt_status wide_backward(const struct dt__layer_call *call)
{
    const struct dt_batch *batch = call->batch;
    const size_t nout = dt__shape_size(call->layer->out);
    const struct dt__rows rows = {.delta = call->dy,
                                  .by_row = nout,
                                  .width = nout,
                                  .rows = wide_inputs(call->layer),
                                  .dense = (size_t)batch->ndense};
    if (batch->ndense)
        DT_TRY(dt__gemm(true, false, batch->ndense, (int)nout, call->rows, batch->x, call->dy,
                        call->accumulate, call->grad));
    if (call->entries)
        dt__rows_gradient(call->entries, &rows, call->accumulate, call->touched, call->grad);
    return DT_OK;
}

const struct dt__layer_kind dt__wide_layer = {.name = "wide",
                                              .usage = "wide",
                                              .same_gradient = true,
                                              .infer = wide_infer,
                                              .forward = wide_forward,
                                              .backward = wide_backward};
