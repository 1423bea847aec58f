/* Dense: y = f(x W + b), weight (nin, nout), bias (nout). A row of any shape is treated as one
 * vector. The first layer of a network also accepts batches with a sparse part; of W it then reads
 * only the rows whose inputs are present. */
#include "model/activation.h"
#include "model/bf16_products.h"
#include "model/blas.h"
#include "model/emitter.h"
#include "model/entries.h"

static dt_status dense_infer(struct dt_model *model, struct dt__layer *layer)
{
    const size_t nin = dt__shape_size(layer->in), nout = (size_t)layer->size[0];
    const bool he = !layer->last && layer->activation && layer->activation->he;
    const struct dt_tensor weight = {.rank = 2,
                                     .shape = {nin, nout},
                                     .role = DT_TENSOR_WEIGHT,
                                     .init = he ? DT_INIT_HE : DT_INIT_GLOROT,
                                     .fan_in = (double)nin,
                                     .fan_out = (double)nout,
                                     .row_sparse = layer == model->layer};
    const struct dt_tensor bias = {.rank = 1, .shape = {nout}, .role = DT_TENSOR_BIAS};
    layer->out = (struct dt__shape){1, 1, layer->size[0]};
    layer->macs = nin * nout;
    const bool many = layer->size[0] >= (layer->last ? DT_SPLIT_CLASSES : model->desc.parts);
    if (model->desc.split > 0 && layer->macs >= (size_t)model->desc.split && many &&
        dt__layer_splits(model, layer))
        DT_TRY(dt__layer_split(layer));
    if (layer->split && !dt__layer_splits(model, layer))
        return dt_fail(DT_EUSAGE, "a split output layer: expected three classes or more, and no "
                                  "'wide' next to it");
    layer->keep = dt__has_epilogue(layer) ? nout : 0;
    /* no gradient by the input of the first layer */
    layer->work = layer->split ? nout : layer == model->layer ? 0 : nin + nout;
    if (layer->split && layer->last) layer->work = 0;
    DT_TRY(dt__layer_tensor(model, layer, "weight", &weight));
    return dt__layer_tensor(model, layer, "bias", &bias);
}

/* ---- passes --------------------------------------------------------------------------------- */

/* Returns true if the layer reads a batch whose inputs are not all in the matrix x. */
static bool dense_reads_parts(const struct dt__layer_call *call)
{
    const struct dt_batch *batch = call->batch;
    return (batch->offsets || batch->fractions) && call->x == batch->x;
}

static dt_status dense_forward(const struct dt__layer_call *call)
{
    const int nin = (int)dt__shape_size(call->layer->in), nout = call->layer->out.c;
    const float *weight = call->params;
    if (dense_reads_parts(call))
        DT_TRY(dt__inputs_forward(call, weight, (size_t)nout, false, call->y));
    else if (call->state && call->keep)
        DT_TRY(dt__bf16_forward(call->state, call->rows, call->x, weight, call->copy, call->y));
    else if (call->rowwise)
        DT_TRY(dt__gemm_rowwise((struct dt__sizes){call->rows, nout, nin}, call->x, weight, false,
                                call->y));
    else
        DT_TRY(dt__gemm((struct dt__product){.m = call->rows, .n = nout, .k = nin}, call->x, weight,
                        call->y));
    dt__epilogue_forward(call, NULL);
    return DT_OK;
}

static dt_status dense_backward(const struct dt__layer_call *call)
{
    const int nin = (int)dt__shape_size(call->layer->in), nout = call->layer->out.c;
    const float *delta = call->dy;
    dt__epilogue_backward(call, NULL);
    if (dense_reads_parts(call)) return dt__inputs_backward(call, (size_t)nin, (size_t)nout);
    if (call->state)
        return dt__bf16_backward(call->state, call->rows, delta, call->accumulate, call->grad,
                                 call->factors, call->dx);
    const struct dt__product product = {
        .m = nin, .n = nout, .k = call->rows, .ta = true, .add = call->accumulate};
    DT_TRY(dt__gemm(product, call->x, delta, call->grad));
    if (!call->dx) return DT_OK;
    return dt__gemm_transposed((struct dt__sizes){call->rows, nin, nout}, delta, call->params,
                               call->work, call->dx);
}

/* Creates the products in bf16; those of the output layer stay f32. */
static dt_status dense_open(const struct dt__layer *layer, int max_rows, bool bf16,
                            void **out_state)
{
    const int nin = (int)dt__shape_size(layer->in), nout = layer->out.c;
    struct dt__bf16 *products = NULL;
    DT_TRY(dt__gemm_transposed_need(nin, nout));
    if (bf16 && !layer->last && !layer->split)
        DT_TRY(dt__bf16_create(nin, nout, max_rows, layer->index == 0, &products));
    *out_state = products;
    return DT_OK;
}

/* Describes the factored gradient. Returns false for the output layer, for split layers, and if the
 * factors of max_rows rows would be larger than half of the gradient. */
static bool dense_factored(const struct dt__layer *layer, int max_rows, struct dt_factored *out)
{
    const size_t nin = dt__shape_size(layer->in), nout = (size_t)layer->out.c;
    if (layer->last || layer->split || (nin + nout) * (size_t)max_rows > nin * nout) return false;
    *out = dt__bf16_factored((int)nin, (int)nout, max_rows, layer->index == 0);
    out->offset = layer->begin;
    return true;
}

static const char *dense_emit(struct dt__emitter *e, const struct dt__layer *layer, const char *x)
{
    return DT__NODE(e, "Gemm", x, dt__emit_tensor(e, layer, "weight"),
                    dt__emit_tensor(e, layer, "bias"));
}

const struct dt__layer_kind dt__dense_layer = {.name = "dense",
                                               .usage = "dense N [activation] [split]",
                                               .epilogue = true,
                                               .sparse = true,
                                               .splits = true,
                                               .parse = dt__parse_width,
                                               .infer = dense_infer,
                                               .open = dense_open,
                                               .close = dt__bf16_destroy,
                                               .factored = dense_factored,
                                               .tile = dt__bf16_tile,
                                               .forward = dense_forward,
                                               .backward = dense_backward,
                                               .emit = dense_emit};
