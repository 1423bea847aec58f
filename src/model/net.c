#include "dtrain/model.h"

#include "model/activation.h"
#include "model/blas.h"
#include "model/loss.h"

#include <string.h>

/* One slab of memory holds it all. `y` of the last layer are the logits, and then their gradient. */
struct dt_net {
    const struct dt_model *model;
    int layers;
    float *memory;
    float *y[DT_MAX_LAYERS];     /* (max_rows, nout) a layer's output */
    float *slope[DT_MAX_LAYERS]; /* (max_rows, nout) its derivative by X W; hidden layers */
    float *delta[2];             /* (max_rows, widest hidden layer) gradients, in turns */
    float *turned;               /* (max_rows, most nin + nout) for dt__gemm_turned */
};

enum { LINE = 16 }; /* floats in a cache line */

/* Adds room for rows * width floats to *total; *out: where it begins. */
static dt_status reserve(size_t rows, size_t width, size_t *total, size_t *out)
{
    size_t floats;
    if (!dt_size_mul(rows, width, &floats) || !dt_size_add(floats, LINE - 1, &floats) ||
        !dt_size_add(*total, floats / LINE * LINE, total))
        return dt_fail(DT_EMEMORY, "out of memory for activations: %zu rows of %zu", rows, width);
    *out = *total - floats / LINE * LINE;
    return DT_OK;
}

struct plan {
    size_t y[DT_MAX_LAYERS], slope[DT_MAX_LAYERS], delta[2], turned, total;
};

static dt_status plan_memory(const struct dt_model *model, size_t rows, struct plan *plan)
{
    const int layers = dt_model_layers(model);
    size_t widest = 0, turned = 0;
    for (int i = 0; i < layers; i++) {
        size_t width = (size_t)dt_model_layer(model, i)->nout;
        size_t both = width + (size_t)dt_model_layer(model, i)->nin;
        if (i && both > turned) turned = both;
        DT_TRY(reserve(rows, width, &plan->total, &plan->y[i]));
        if (i == layers - 1) break;
        DT_TRY(reserve(rows, width, &plan->total, &plan->slope[i]));
        if (width > widest) widest = width;
    }
    for (int i = 0; i < 2; i++)
        DT_TRY(reserve(rows, widest, &plan->total, &plan->delta[i]));
    DT_TRY(reserve(rows, turned, &plan->total, &plan->turned));
    return DT_OK;
}

dt_status dt_net_create(const struct dt_model *model, int max_rows, struct dt_net **out)
{
    dt_status status;
    struct plan plan = {0};
    struct dt_net *net = NULL;
    DT_TRY(plan_memory(model, (size_t)max_rows, &plan));
    DT_GUARD(dt_alloc(1, sizeof *net, "network", &net));
    DT_GUARD(dt_alloc(plan.total, sizeof *net->memory, "activations", &net->memory));
    net->model = model;
    net->layers = dt_model_layers(model);
    for (int i = 0; i < net->layers; i++) {
        net->y[i] = net->memory + plan.y[i];
        net->slope[i] = net->memory + plan.slope[i];
    }
    for (int i = 0; i < 2; i++)
        net->delta[i] = net->memory + plan.delta[i];
    net->turned = net->memory + plan.turned;
    *out = net;
    return DT_OK;
done:
    dt_net_destroy(net);
    return status;
}

void dt_net_destroy(struct dt_net *net)
{
    if (net) dt_free(net->memory);
    dt_free(net);
}

/* One call of dt_net_gradient. */
struct pass {
    struct dt_net *net;
    const struct dt_model_spec *spec;
    const float *params;
    const struct dt_batch *batch;
    const struct dt_rng *dropout;
    bool accumulate;
    float *grad;
    const struct dt_net_hooks *hooks;
};

static void before_forward(const struct pass *pass, int layer)
{
    const struct dt_net_hooks *hooks = pass->hooks;
    if (hooks && hooks->before_forward) hooks->before_forward(hooks->arg, layer);
}

static void after_backward(const struct pass *pass, int layer)
{
    const struct dt_net_hooks *hooks = pass->hooks;
    if (hooks && hooks->after_backward) hooks->after_backward(hooks->arg, layer);
}

/* y = x W */
static void multiply(const struct dt_layer *layer, const float *params, const float *x, int rows,
                     float *y)
{
    dt__gemm(false, false, rows, layer->nout, layer->nin, x, params + layer->weight, false, y);
}

static const float *layer_input(const struct pass *pass, int index)
{
    return index ? pass->net->y[index - 1] : pass->batch->x;
}

static void activate(const struct pass *pass, int index, const struct dt_layer *layer)
{
    const struct dt_net *net = pass->net;
    const uint64_t first = pass->batch->first_row * (uint64_t)layer->nout;
    struct dt__dropout dropout = {.first = ((uint64_t)index << 40) + first,
                                  .rate = pass->spec->dropout};
    const bool drop = dropout.rate > 0.0;
    if (drop) dropout.key = *pass->dropout;
    dt__activation_forward(pass->spec->activation, pass->batch->rows, layer->nout,
                           pass->params + layer->bias, drop ? &dropout : NULL, net->y[index],
                           net->slope[index]);
}

static void forward(const struct pass *pass)
{
    const struct dt_net *net = pass->net;
    const int rows = pass->batch->rows;
    for (int i = 0; i < net->layers; i++) {
        const struct dt_layer *layer = dt_model_layer(net->model, i);
        before_forward(pass, i);
        multiply(layer, pass->params, layer_input(pass, i), rows, net->y[i]);
        if (i < net->layers - 1)
            activate(pass, i, layer);
        else
            dt__bias_forward(rows, layer->nout, pass->params + layer->bias, net->y[i]);
    }
}

/* delta (rows, nout): gradient by x W of layer `index`; returns the same of the layer below. */
static float *backward_layer(const struct pass *pass, int index, const float *delta)
{
    const struct dt_layer *layer = dt_model_layer(pass->net->model, index);
    const int rows = pass->batch->rows, nin = layer->nin, nout = layer->nout;
    float *below = pass->net->delta[index % 2];
    dt__gemm(true, false, nin, nout, rows, layer_input(pass, index), delta, pass->accumulate,
             pass->grad + layer->weight);
    if (index)
        dt__gemm_turned(rows, nin, nout, delta, pass->params + layer->weight, pass->net->turned,
                        below);
    after_backward(pass, index);
    if (index)
        dt__activation_backward(rows, nin, pass->net->slope[index - 1], below, pass->accumulate,
                                pass->grad + layer->begin - nin);
    return below;
}

static double backward(const struct pass *pass)
{
    const int last = pass->net->layers - 1;
    const struct dt_layer *layer = dt_model_layer(pass->net->model, last);
    const float *delta = pass->net->y[last];
    double loss = dt__loss_gradient(pass->spec, pass->batch, pass->net->y[last]);
    dt__bias_backward(pass->batch->rows, layer->nout, delta, pass->accumulate,
                      pass->grad + layer->bias);
    for (int i = last; i >= 0; i--)
        delta = backward_layer(pass, i, delta);
    return loss;
}

static void no_rows(const struct pass *pass)
{
    const struct dt_net *net = pass->net;
    for (int i = 0; i < net->layers; i++)
        before_forward(pass, i);
    if (!pass->accumulate) memset(pass->grad, 0, dt_model_params(net->model) * sizeof *pass->grad);
    for (int i = net->layers - 1; i >= 0; i--)
        after_backward(pass, i);
}

void dt_net_gradient(struct dt_net *net, const float *params, const struct dt_batch *batch,
                     const struct dt_rng *dropout, bool accumulate, float *grad, double *out_loss,
                     const struct dt_net_hooks *hooks)
{
    const struct pass pass = {.net = net,
                              .spec = dt_model_get_spec(net->model),
                              .params = params,
                              .batch = batch,
                              .dropout = dropout,
                              .accumulate = accumulate,
                              .grad = grad,
                              .hooks = hooks};
    *out_loss = 0.0;
    if (!batch->rows) {
        no_rows(&pass);
        return;
    }
    forward(&pass);
    *out_loss = backward(&pass);
}

void dt_net_forward(struct dt_net *net, const float *params, const float *x, int rows, float *out)
{
    const int last = net->layers - 1, activation = dt_model_get_spec(net->model)->activation;
    const struct dt_layer *layer = dt_model_layer(net->model, 0);
    for (int i = 0; i < last; i++, layer++) {
        multiply(layer, params, x, rows, net->y[i]);
        dt__activation_forward(activation, rows, layer->nout, params + layer->bias, NULL, net->y[i],
                               NULL);
        x = net->y[i];
    }
    multiply(layer, params, x, rows, out);
    dt__bias_forward(rows, layer->nout, params + layer->bias, out);
}
