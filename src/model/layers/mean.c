/* Mean: `mean(MEMBER | MEMBER ...)`, a network whose predictions are the mean of its members'. A
 * member is the text of a network; all read the same rows, and each has an output layer of its own.
 *
 * In the list of layers the members follow each other: "mean(", the layers of one, "|", the layers
 * of the next one, which begin at the rows again (layer->from), ... ")". Each "|" and the ")" take
 * the outputs of the member before into a running mean, in the space where predictions are averaged
 * (dt__model_to_mean); the ")" turns the mean into outputs, whose prediction it is. The first layer
 * keeps the running mean and the sum of squared differences from it, (rows, nout) each.
 * Such networks are made of trained ones (src/search); there is no backward pass.
 * Source: Welford, "Note on a method for calculating corrected sums of squares and products",
 * Technometrics 1962. */
#include <math.h>
#include <string.h>

#include "model/task.h"

enum { MEMBER }; /* layer->size: the number of the member that ends here */

/* Its members are not words: description.c reads the brackets. */
static bool mean_parse(struct dt__layer *layer, struct dt__words words)
{
    (void)layer, (void)words;
    return false;
}

static dt_status mean_infer(struct dt_model *model, struct dt__layer *layer)
{
    layer->keep = 2 * (size_t)model->desc.nout;
    return DT_OK;
}

/* The numbers of the first member are the mean so far. */
static dt_status mean_next_infer(struct dt_model *model, struct dt__layer *layer)
{
    layer->work = dt__shape_size(layer->in);
    for (const struct dt__layer *at = model->layer; at < layer; at++)
        layer->size[MEMBER] += at->kind == &dt__mean_next_layer;
    return DT_OK;
}

static dt_status mean_next_forward(const struct dt__layer_call *call)
{
    const size_t count = (size_t)call->rows * dt__shape_size(call->layer->in);
    const float share = 1.0f / (float)(call->layer->size[MEMBER] + 1);
    float *mean = call->link_keep, *squares = mean + count;
    dt__model_to_mean(call->model, call->x, call->rows, call->work);
    if (call->layer->size[MEMBER] == 0) memset(mean, 0, 2 * count * sizeof *mean);
    for (size_t i = 0; i < count; i++) {
        const float apart = call->work[i] - mean[i];
        mean[i] += apart * share;
        squares[i] += apart * (call->work[i] - mean[i]);
    }
    return DT_OK;
}

static dt_status mean_end_forward(const struct dt__layer_call *call)
{
    DT_TRY(mean_next_forward(call));
    dt__model_from_mean(call->model, call->link_keep, call->rows, call->y);
    return DT_OK;
}

void dt__mean_spread(const struct dt_model *model, const float *keep, int rows, float *out)
{
    const struct dt_outputs *outputs = &model->outputs;
    const size_t nout = (size_t)outputs->count, count = (size_t)rows * nout;
    const struct dt__layer *last = &model->layer[model->layers - 1];
    const int members = last->kind == &dt__mean_end_layer ? last->size[MEMBER] + 1 : 1;
    const size_t each = model->classes == 2 && nout == 1 ? 2 : 1; /* both classes the same */
    for (size_t i = 0; i < count; i++) {
        const float unit = outputs->mean ? outputs->std[i % nout / (size_t)outputs->each] : 1.0f;
        const float squares = members > 1 ? keep[count + i] / (float)(members - 1) : 0.0f;
        for (size_t k = 0; k < each; k++)
            out[i * each + k] = unit * sqrtf(squares);
    }
}

/* ---- as nodes ------------------------------------------------------------------------------- */

static const char *mean_next_emit(struct dt__emitter *e, const struct dt__layer *layer,
                                  const char *x)
{
    const char *member = e->model->loss->task->emit_to_mean(e, x);
    e->sum = layer->size[MEMBER] ? DT__NODE(e, "Add", e->sum, member) : member;
    return x;
}

static const char *mean_end_emit(struct dt__emitter *e, const struct dt__layer *layer,
                                 const char *x)
{
    (void)mean_next_emit(e, layer, x);
    const char *count = dt__emit_scalar(e, layer->size[MEMBER] + 1);
    return e->model->loss->task->emit_from_mean(e, DT__NODE(e, "Div", e->sum, count));
}

const struct dt__layer_kind dt__mean_layer = {.name = "mean",
                                              .usage = "mean(MEMBER | MEMBER ...)",
                                              .sparse = true,
                                              .parse = mean_parse,
                                              .infer = mean_infer,
                                              .emit = dt__emit_nothing};
const struct dt__layer_kind dt__mean_next_layer = {.name = "mean's next member",
                                                   .usage = "mean(MEMBER | MEMBER ...)",
                                                   .infer = mean_next_infer,
                                                   .forward = mean_next_forward,
                                                   .emit = mean_next_emit};
const struct dt__layer_kind dt__mean_end_layer = {.name = "mean's end",
                                                  .usage = "mean(MEMBER | MEMBER ...)",
                                                  .infer = mean_next_infer,
                                                  .forward = mean_end_forward,
                                                  .emit = mean_end_emit};
