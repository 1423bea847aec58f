/* A network: the activations of one thread of execution, and the passes over a model's layers.
 *
 * One slab of memory holds the output of each layer, the floats that it keeps for the backward
 * pass, two gradient buffers that alternate, and scratch memory that layers share. */
#include <string.h>

#include "model/activation.h"
#include "model/blas.h"
#include "model/encoding.h"
#include "model/entries.h"
#include "model/layer.h"
#include "model/mean.h"
#include "model/task.h"

struct node {
    const struct dt__layer *layer;
    void *state;      /* made by the kind's open */
    const float *x;   /* (rows, in) of the last forward pass */
    float *y;         /* (max_rows, out) */
    float *keep;      /* (max_rows, keep) */
    const void *copy; /* the caller's copy of its factored matrix; NULL: none */
};

struct pass {
    const float *params;
    const struct dt_batch *batch;
    const struct dt_rng *dropout;
    bool accumulate, stops; /* stops: the pass stops at split layers */
    struct dt_slot slot;    /* all NULL: no backward pass */
    const struct dt_network_hooks *hooks;
};

/* Position of a pass between two stops at split layers. */
struct place {
    bool backward, stopped;
    size_t at;      /* index of the next layer; backward: 1 + that index */
    const float *x; /* the input of the next layer */
    float *dy;      /* backward: gradient by the output of the next layer */
    int turn;       /* index of the delta that dy is in */
    int split;      /* number of split layers passed forward, minus those passed backward */
};

struct dt_network {
    struct dt__mean *mean; /* model.layers=mean(...): only model and mean are set */
    const struct dt_model *model;
    size_t count, first; /* number of layers; index of the first with parameters */
    struct node *node;   /* (count) */
    float *memory;
    float *delta[2]; /* (max_rows, widest output except the last layer's) */
    float *work;     /* (max_rows, most work of a layer) */
    float *zeros;    /* (widest split output) zero bias, for outputs to which the caller has added
                      * the bias */
    float *x;        /* (max_rows, dense inputs) numbers and their encodings; unused if `folded` */
    bool folded;     /* ple before an unsplit dense f32 layer, which multiplies fractions */
    struct dt__fractions fractions;
    struct pass pass; /* the current pass */
    struct place place;
    struct dt_batch batch;           /* batch of the pass; inputs of its sparse part are indices
                                      * into the weights */
    struct dt__entries entries;      /* entries of the batch whose gradient is computed */
    bool rowwise;                    /* a row's outputs must not depend on the other rows */
    const struct dt_touched *inputs; /* the inputs that the weights have rows for; NULL: all */
    uint32_t *index;                 /* the batch's sparse inputs, renumbered */
    size_t index_capacity;
    struct dt_factored *factored; /* (matrices) the matrices whose gradients may be factors */
    struct node **factored_node;  /* (matrices) the node of each */
    int matrices;
};

enum { LINE = 16 }; /* floats in a cache line */

/* Reserves rows * width floats at the end of the slab, and adds them to its size, *total. Sets *out
 * to their address; NULL while `memory` is NULL. */
static dt_status slab_reserve(float *memory, size_t rows, size_t width, size_t *total, float **out)
{
    size_t floats;
    if (!dt__size_mul(rows, width, &floats) || !dt__size_add(floats, LINE - 1, &floats) ||
        !dt__size_add(*total, floats / LINE * LINE, total))
        return dt_fail(DT_EMEMORY, "out of memory for activations: %zu rows of %zu", rows, width);
    *out = memory ? memory + (*total - floats / LINE * LINE) : NULL;
    return DT_OK;
}

/* Returns true for a split output layer. In training no rank has all of its outputs, so they need
 * no buffer; in inference they go to the caller's memory. */
static bool splits_output(const struct dt__layer *layer)
{
    return layer->split && layer->last;
}

/* Places the buffers for encoded numbers. If `folded`, the first layer multiplies fractions, and
 * the encodings are never stored. */
static dt_status network_place_encoded(struct dt_network *network, size_t rows, size_t *total)
{
    const struct dt_model_desc *desc = &network->model->desc;
    const struct dt__layer *first = network->node[0].layer;
    struct dt__fractions *fractions = &network->fractions;
    const size_t columns = (size_t)desc->encode_columns, width = (size_t)desc->encode_width;
    const size_t dense = (size_t)desc->dense + columns * (1 + width);
    const size_t nout = dt__shape_size(first->out), last = (size_t)desc->nout;
    void *bins;
    if (!desc->encode || (desc->encode != DT_ENCODE_PLE || !network->folded))
        return slab_reserve(network->memory, rows, desc->encode ? dense : 0, total, &network->x);
    fractions->columns = columns;
    fractions->width = width;
    DT_TRY(slab_reserve(network->memory, rows, columns, total, &fractions->part));
    DT_TRY(slab_reserve(network->memory, columns * width, nout > last ? nout : last, total,
                        &fractions->sums));
    DT_TRY(slab_reserve(network->memory, rows, columns, total, (float **)&bins));
    fractions->bin = bins;
    return DT_OK;
}

/* Places all buffers. Called twice: with no memory, to compute the slab's size, and with the
 * memory. */
static dt_status network_place(struct dt_network *network, size_t rows, size_t *total)
{
    size_t widest = 0, work = 0, zeros = 0;
    *total = 0;
    for (size_t i = 0; i < network->count; i++) {
        struct node *node = &network->node[i];
        const size_t width = splits_output(node->layer) ? 0 : dt__shape_size(node->layer->out);
        if (node->layer->kind->forward)
            DT_TRY(slab_reserve(network->memory, rows, width, total, &node->y));
        DT_TRY(slab_reserve(network->memory, rows, node->layer->keep, total, &node->keep));
        if (i + 1 < network->count && width > widest) widest = width;
        if (node->layer->work > work) work = node->layer->work;
        if (node->layer->split && width > zeros) zeros = width;
    }
    DT_TRY(slab_reserve(network->memory, 1, zeros, total, &network->zeros));
    DT_TRY(network_place_encoded(network, rows, total));
    for (int i = 0; i < 2; i++)
        DT_TRY(slab_reserve(network->memory, rows, widest, total, &network->delta[i]));
    return slab_reserve(network->memory, rows, work, total, &network->work);
}

int dt__model_factored(const struct dt_model *model, int precision, int max_rows,
                       struct dt_factored *out)
{
    struct dt_factored matrix;
    size_t place = 0, copy = 0;
    int count = 0;
    for (size_t i = 0; i < model->layers && precision == DT_PRECISION_BF16; i++) {
        const struct dt__layer *layer = &model->layer[i];
        if (!layer->kind->factored || !layer->kind->factored(layer, max_rows, &matrix)) continue;
        matrix.place = place;
        matrix.copy = copy;
        place += matrix.bytes;
        copy += matrix.copy_bytes;
        if (out) out[count] = matrix;
        count++;
    }
    return count;
}

/* Finds the node of each factored matrix; both lists are in the order of the flat vector. */
static dt_status network_find_factored(struct dt_network *network, int max_rows, int precision)
{
    const int count = dt__model_factored(network->model, precision, max_rows, NULL);
    const size_t matrices = (size_t)count;
    DT_TRY(dt__alloc(matrices, sizeof *network->factored, "network", &network->factored));
    DT_TRY(dt__alloc(matrices, sizeof(struct node *), "network", &network->factored_node));
    network->matrices = dt__model_factored(network->model, precision, max_rows, network->factored);
    struct node *node = network->node;
    for (int i = 0; i < count; i++) {
        while (node->layer->index < 0 || node->layer->begin != network->factored[i].offset)
            node++;
        network->factored_node[i] = node;
    }
    return DT_OK;
}

dt_status dt__network_create(const struct dt_model *model, int max_rows, int precision,
                             struct dt_network **out)
{
    dt_status status;
    size_t floats;
    struct dt_network *network = NULL;
    DT_TRY(dt__blas_need());
    DT_GUARD(dt__alloc(1, sizeof *network, "network", &network));
    network->model = model;
    if (model->members) {
        DT_GUARD(dt__mean_create(model, max_rows, &network->mean));
        *out = network;
        return DT_OK;
    }
    const size_t count = model->layers;
    DT_GUARD(dt__alloc(count, sizeof *network->node, "network", &network->node));
    network->count = count;
    for (size_t i = 0; i < count; i++)
        network->node[i].layer = &model->layer[i];
    while (network->node[network->first].layer->index < 0)
        network->first++;
    network->folded = model->desc.encode == DT_ENCODE_PLE && precision == DT_PRECISION_F32 &&
                      model->layer[0].kind == &dt__dense_layer && !model->layer[0].split;
    DT_GUARD(network_place(network, (size_t)max_rows, &floats));
    DT_GUARD(dt__alloc(floats, sizeof *network->memory, "activations", &network->memory));
    DT_GUARD(network_place(network, (size_t)max_rows, &floats));
    for (size_t i = 0; i < count; i++) {
        struct node *node = &network->node[i];
        const bool bf16 = precision == DT_PRECISION_BF16;
        if (node->layer->kind->open)
            DT_GUARD(node->layer->kind->open(node->layer, max_rows, bf16, &node->state));
    }
    DT_GUARD(network_find_factored(network, max_rows, precision));
    *out = network;
    return DT_OK;
done:
    dt__network_destroy(network);
    return status;
}

void dt__network_set_copies(struct dt_network *network, const void *copies)
{
    for (int i = 0; i < network->matrices; i++)
        network->factored_node[i]->copy =
            copies ? (const unsigned char *)copies + network->factored[i].copy : NULL;
}

static dt_status reserve_index(struct dt_network *network, size_t entries)
{
    return dt__grow(&network->index, &network->index_capacity, entries, sizeof *network->index,
                    "entries");
}

dt_status dt__network_reserve(struct dt_network *network, size_t entries)
{
    DT_TRY(reserve_index(network, entries));
    return dt__entries_reserve(&network->entries, entries);
}

void dt__network_set_inputs(struct dt_network *network, const struct dt_touched *inputs)
{
    network->inputs = inputs;
}

void dt__network_set_rowwise(struct dt_network *network)
{
    network->rowwise = true;
}

/* Sets *out to the batch with the encodings of its numbers inserted after its dense inputs. The
 * indices of its sparse inputs rise by the number of inserted inputs. */
static dt_status network_encode(struct dt_network *network, const struct dt_batch *batch,
                                struct dt_batch *out)
{
    const struct dt_model_desc *desc = &network->model->desc;
    const size_t features = (size_t)desc->dense, columns = (size_t)desc->encode_columns;
    const size_t in = features + columns, width = in + columns * (size_t)desc->encode_width;
    const uint32_t added = (uint32_t)(network->model->inputs - network->model->features);
    *out = *batch;
    if (!desc->encode) return DT_OK;
    if ((size_t)batch->ndense != in)
        return dt_fail(DT_EBUG, "rows of %d dense inputs, expected %zu", batch->ndense, in);
    if (network->folded) {
        dt__fractions_make(desc, batch->rows, batch->x + features, in, &network->fractions);
        out->fractions = &network->fractions;
    } else {
        for (size_t r = 0; r < (size_t)batch->rows; r++)
            memcpy(network->x + r * width, batch->x + r * in, in * sizeof *network->x);
        dt__encoding_expand(desc, batch->rows, batch->x + features, in, network->x + in, width);
        out->x = network->x;
        out->ndense = (int)width;
    }
    if (!batch->offsets) return DT_OK;
    DT_TRY(reserve_index(network, (size_t)batch->offsets[batch->rows]));
    for (uint64_t e = batch->offsets[0]; e < batch->offsets[batch->rows]; e++)
        network->index[e] = batch->index[e] + added;
    out->index = network->index;
    return DT_OK;
}

dt_status dt__network_list_inputs(struct dt_network *network, const struct dt_batch *batch,
                                  const struct dt_touched *inout)
{
    struct dt_batch encoded;
    if (!batch->rows || !batch->offsets) return DT_OK;
    DT_TRY(network_encode(network, batch, &encoded));
    DT_TRY(dt__entries_sort(&network->entries, &encoded, network->model->inputs));
    dt__entries_list(&network->entries, (uint32_t)dt__batch_dense(&encoded), inout);
    return DT_OK;
}

/* Sorts the batch's entries. Sets *out to the batch with its sparse inputs as indices into the
 * caller's weights. The sorted entries, from which the gradient is computed, keep the original
 * inputs. */
static dt_status network_sort(struct dt_network *network, const struct dt_batch *batch,
                              struct dt_batch *out)
{
    *out = *batch;
    DT_TRY(dt__entries_sort(&network->entries, batch, network->model->inputs));
    if (!network->inputs) return DT_OK;
    DT_TRY(reserve_index(network, (size_t)batch->offsets[batch->rows]));
    out->index = network->index;
    return dt__entries_find(&network->entries, network->inputs, network->index + batch->offsets[0]);
}

dt_status dt__network_tile(struct dt_network *network, int matrix, const void *factors,
                           struct dt_tile tile, float *out)
{
    const struct node *node = network->factored_node[matrix];
    const unsigned char *matrix_factors =
        (const unsigned char *)factors + network->factored[matrix].place;
    return node->layer->kind->tile(node->state, matrix_factors, tile, out);
}

void dt__network_destroy(struct dt_network *network)
{
    if (!network) return;
    dt__mean_destroy(network->mean);
    dt__entries_free(&network->entries);
    for (size_t i = 0; i < network->count; i++)
        if (network->node[i].state) network->node[i].layer->kind->close(network->node[i].state);
    dt_free(network->index);
    dt_free(network->node);
    dt_free(network->factored);
    dt_free(network->factored_node);
    dt_free(network->memory);
    dt_free(network);
}

/* ---- a pass --------------------------------------------------------------------------------- */

/* Returns the arguments for a call of the node's layer, with the input node->x and the output y. */
static struct dt__layer_call layer_call(const struct dt_network *network, const struct pass *pass,
                                        const struct node *node, float *y)
{
    const struct dt__layer *layer = node->layer;
    const struct node *linked = layer->link >= 0 ? &network->node[layer->link] : NULL;
    return (struct dt__layer_call){.layer = layer,
                                   .state = node->state,
                                   .batch = pass->batch,
                                   .rows = pass->batch->rows,
                                   .rowwise = network->rowwise,
                                   .params = pass->params + layer->begin,
                                   .copy = node->copy,
                                   .x = node->x,
                                   .y = y,
                                   .keep = pass->slot.grad ? node->keep : NULL,
                                   .work = network->work,
                                   .dropout = pass->dropout,
                                   .states = pass->params + layer->states,
                                   .state_grad =
                                       pass->slot.grad ? pass->slot.grad + layer->states : NULL,
                                   .link_x = linked ? linked->x : NULL,
                                   .link_keep = linked ? linked->keep : NULL,
                                   .accumulate = pass->accumulate};
}

static void pass_before_forward(const struct pass *pass, int bucket)
{
    const struct dt_network_hooks *hooks = pass->hooks;
    if (bucket >= 0 && hooks && hooks->before_forward) hooks->before_forward(hooks->arg, bucket);
}

static void pass_after_backward(const struct pass *pass, int bucket)
{
    const struct dt_network_hooks *hooks = pass->hooks;
    if (bucket >= 0 && hooks && hooks->after_backward) hooks->after_backward(hooks->arg, bucket);
}

/* Returns the bucket of the state tensors, which is the last one; -1: there are no state
 * tensors. */
static int state_bucket(const struct dt_network *network)
{
    const struct dt_model *model = network->model;
    return model->shared > model->trained ? model->buckets - 1 : -1;
}

/* Starts a pass at the first layer. */
static dt_status pass_begin(struct dt_network *network, const struct pass *pass)
{
    const struct dt__layer_kind *first = network->node[0].layer->kind;
    network->pass = *pass; /* the struct is copied; what it points to must stay until the pass
                            * ends */
    network->place = (struct place){.x = pass->batch->x};
    if (pass->batch->offsets && !first->sparse)
        return dt_fail(DT_EMISMATCH,
                       "model.layers: %s as the first layer does not take sparse rows",
                       first->name);
    pass_before_forward(pass, state_bucket(network));
    return DT_OK;
}

/* Returns true when the pass reaches a split layer, and false when it continues from there. On
 * continuing, the pass calls the hooks of the layer's bucket, which is empty. */
static bool pass_stops(struct dt_network *network, const struct node *node)
{
    struct place *place = &network->place;
    if (!network->pass.stops || !node->layer->split) return false;
    return place->stopped = !place->stopped;
}

/* Runs the layers forward from the current position; the last layer's output goes to `out`. Sets
 * *out_stops if the pass stopped at a split layer. */
static dt_status network_forward(struct dt_network *network, float *out, bool *out_stops)
{
    const struct pass *pass = &network->pass;
    struct place *place = &network->place;
    *out_stops = false;
    for (; place->at < network->count; place->at++) {
        struct node *node = &network->node[place->at];
        node->x = place->x;
        if (!node->layer->kind->forward) continue;
        float *y = place->at + 1 < network->count ? node->y : out;
        const struct dt__layer_call call = layer_call(network, pass, node, y);
        *out_stops = pass_stops(network, node);
        if (*out_stops) return DT_OK;
        pass_before_forward(pass, node->layer->index);
        if (!pass->stops || !node->layer->split)
            DT_TRY(node->layer->kind->forward(&call));
        else if (!splits_output(node->layer)) /* else the caller computes outputs and loss */
            dt__epilogue_forward(&call, network->zeros);
        place->split += pass->stops && node->layer->split;
        place->x = y;
    }
    return DT_OK;
}

/* Starts the backward pass; dy: gradient by the last layer's output. */
static void pass_turn(struct dt_network *network, float *dy)
{
    network->place.backward = true;
    network->place.at = network->count;
    network->place.dy = dy;
    pass_after_backward(&network->pass, state_bucket(network));
}

/* Runs the layers backward from the current position. Sets *out_stops if the pass stopped at a
 * split layer. */
static dt_status network_backward(struct dt_network *network, bool *out_stops)
{
    const struct pass *pass = &network->pass;
    const struct dt_slot *slot = &pass->slot;
    struct place *place = &network->place;
    *out_stops = false;
    for (; place->at > network->first; place->at--) {
        const struct node *node = &network->node[place->at - 1];
        const struct dt__layer_kind *kind = node->layer->kind;
        struct dt__layer_call call = layer_call(network, pass, node, node->y);
        call.dy = place->dy;
        if (kind->same_gradient)
            call.dx = call.dy;
        else
            call.dx = place->at - 1 > network->first ? network->delta[place->turn ^ 1] : NULL;
        call.grad = slot->grad + node->layer->begin;
        for (int m = 0; slot->factors && m < network->matrices; m++)
            if (network->factored_node[m] == node)
                call.factors = (unsigned char *)slot->factors + network->factored[m].place;
        if (pass->batch->offsets) call.entries = &network->entries;
        if (slot->touched && node->layer->row_sparse >= 0)
            call.touched = &slot->touched[node->layer->row_sparse];
        *out_stops = pass_stops(network, node);
        if (*out_stops) {
            place->split--;
            /* the bias's gradient goes to scratch memory, unused: the caller computes it */
            if (!splits_output(node->layer)) dt__epilogue_backward(&call, call.work);
            return DT_OK;
        }
        if (kind->backward && !(pass->stops && node->layer->split)) DT_TRY(kind->backward(&call));
        pass_after_backward(pass, node->layer->index);
        if (call.dx && !kind->same_gradient) place->turn ^= 1;
        place->dy = call.dx;
    }
    return DT_OK;
}

/* Computes the gradient of a batch without rows. Calls the hooks as usual, so that no thread waits
 * forever for a bucket. */
static void gradient_zero(const struct dt_network *network, const struct pass *pass)
{
    const struct dt_model *model = network->model;
    const struct dt_slot *slot = &pass->slot;
    for (int i = 0; i < model->buckets; i++)
        pass_before_forward(pass, i);
    for (size_t i = 0, sparse = 0; i < model->tensors && !pass->accumulate; i++) {
        const struct dt_tensor *tensor = &model->tensor[i];
        if (pass->stops && tensor->offset >= model->shared) break;
        if (slot->touched && tensor->row_sparse)
            *slot->touched[sparse++].count = 0;
        else
            memset(slot->grad + tensor->offset, 0, tensor->count * sizeof *slot->grad);
    }
    for (int i = 0; slot->factors && !pass->accumulate && i < network->matrices; i++)
        /* the factors begin with their number of rows: 0 */
        memset((unsigned char *)slot->factors + network->factored[i].place, 0, sizeof(int));
    for (int i = model->buckets - 1; i >= 0; i--)
        pass_after_backward(pass, i);
}

/* Prepares a gradient. For a batch without rows it also computes the gradient and sets
 * *out_done. */
static dt_status gradient_begin(struct dt_network *network, const struct pass *pass, bool *out_done)
{
    const struct dt_batch *batch = pass->batch;
    *out_done = !batch->rows;
    if (!batch->rows) {
        gradient_zero(network, pass);
        return DT_OK;
    }
    if (network->mean) return dt_fail(DT_EBUG, "a gradient of the mean of several networks");
    if (pass->slot.factors && (pass->accumulate || batch->offsets))
        return dt_fail(DT_EBUG, "factors of a gradient that is added up, or of sparse inputs");
    if (pass->slot.touched && !batch->offsets)
        return dt_fail(DT_EBUG, "gradients of touched rows, of a batch without a sparse part");
    struct pass started = *pass;
    started.batch = &network->batch;
    struct dt_batch encoded;
    DT_TRY(network_encode(network, batch, &encoded));
    network->batch = encoded;
    if (batch->offsets) DT_TRY(network_sort(network, &encoded, &network->batch));
    return pass_begin(network, &started);
}

/* Runs the pass to the next stop, or to its end. */
static dt_status gradient_continue(struct dt_network *network, double *out_loss, bool *out_stops)
{
    const struct dt_model *model = network->model;
    const struct node *last = &network->node[network->count - 1];
    float *logits = last->y;
    if (splits_output(last->layer) && !network->pass.stops)
        return dt_fail(DT_EBUG, "a gradient at once, of a model with a split output layer");
    if (!network->place.backward) {
        DT_TRY(network_forward(network, logits, out_stops));
        if (*out_stops) return DT_OK;
        *out_loss = splits_output(last->layer)
                        ? 0.0
                        : model->loss->sum(&model->outputs, network->pass.batch, logits, logits);
        pass_turn(network, logits);
    }
    return network_backward(network, out_stops);
}

dt_status dt__network_gradient(struct dt_network *network, const float *params,
                               const struct dt_batch *batch, const struct dt_rng *dropout,
                               bool accumulate, struct dt_slot slot, double *out_loss,
                               const struct dt_network_hooks *hooks)
{
    const struct pass pass = {.params = params,
                              .batch = batch,
                              .dropout = dropout,
                              .accumulate = accumulate,
                              .slot = slot,
                              .hooks = hooks};
    bool done;
    *out_loss = 0.0;
    DT_TRY(gradient_begin(network, &pass, &done));
    return done ? DT_OK : gradient_continue(network, out_loss, &done);
}

dt_status dt__network_begin(struct dt_network *network, const float *params,
                            const struct dt_batch *batch, const struct dt_rng *dropout,
                            struct dt_slot slot, const struct dt_network_hooks *hooks)
{
    const struct pass pass = {.params = params,
                              .batch = batch,
                              .dropout = dropout,
                              .stops = true,
                              .slot = slot,
                              .hooks = hooks};
    bool done;
    return gradient_begin(network, &pass, &done);
}

dt_status dt__network_continue(struct dt_network *network, double *out_loss,
                               struct dt_network_stop *out_stop)
{
    const struct place *place = &network->place;
    bool stops;
    *out_stop = (struct dt_network_stop){.split = -1};
    DT_TRY(gradient_continue(network, out_loss, &stops));
    if (!stops) return DT_OK;
    const size_t at = place->backward ? place->at - 1 : place->at;
    out_stop->split = place->split;
    out_stop->backward = place->backward;
    out_stop->x = place->x;
    out_stop->y = network->node[at].y;
    out_stop->delta = place->dy;
    if (place->backward && at > network->first) out_stop->dx = network->delta[place->turn ^ 1];
    return DT_OK;
}

void dt__network_spread(const struct dt_network *network, int rows, float *out)
{
    const size_t width =
        (size_t)(network->model->classes ? network->model->classes : network->model->desc.nout);
    if (network->mean)
        dt__mean_spread(network->mean, rows, out);
    else
        memset(out, 0, (size_t)rows * width * sizeof *out);
}

static dt_status network_outputs(struct dt_network *network, const float *params,
                                 const struct dt_batch *batch, float *out)
{
    struct dt_batch encoded, sorted;
    const struct pass pass = {.params = params, .batch = &sorted};
    bool stops;
    if (network->mean) return dt__mean_forward(network->mean, params, batch, out);
    DT_TRY(network_encode(network, batch, &encoded));
    sorted = encoded;
    if (batch->offsets && network->inputs) DT_TRY(network_sort(network, &encoded, &sorted));
    DT_TRY(pass_begin(network, &pass));
    return network_forward(network, out, &stops);
}

dt_status dt__network_forward(struct dt_network *network, const float *params,
                              const struct dt_batch *batch, float *out)
{
    const struct dt_model *model = network->model;
    const size_t count = (size_t)batch->rows * (size_t)model->desc.nout;
    DT_TRY(network_outputs(network, params, batch, out));
    for (size_t i = 0; model->outputs.cool != 1 && i < count; i++)
        out[i] *= model->outputs.cool;
    return DT_OK;
}
