/* The model: a list of layers, parsed from a text, and a list of named tensors over the flat
 * vector.
 *
 * Shapes are inferred from the first layer to the last, and each layer declares its tensors: layer
 * after layer, weight before bias, without gaps. The state tensors come after these, and the
 * tensors of split layers last. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "model/encoding.h"
#include "model/layer.h"
#include "model/mean.h"
#include "model/task.h"

/* ---- shapes and tensors --------------------------------------------------------------------- */

static dt_status model_add_bucket(struct dt_model *model)
{
    DT_TRY(dt__grow(&model->bucket_end, &model->bucket_capacity, (size_t)model->buckets + 1,
                    sizeof *model->bucket_end, "layers"));
    model->bucket_end[model->buckets++] = model->params;
    return DT_OK;
}

/* Adds count floats to the flat vector. DT_EUSAGE: its size in bytes overflows. */
static dt_status model_add_floats(struct dt_model *model, size_t count, size_t *out_offset)
{
    size_t bytes;
    *out_offset = model->params;
    if (!dt__size_add(model->params, count, &model->params) ||
        !dt__size_mul(model->params, sizeof(float), &bytes))
        return dt_fail(DT_EUSAGE, "more parameters than memory can hold");
    return DT_OK;
}

dt_status dt__layer_tensor(struct dt_model *model, struct dt__layer *layer, const char *name,
                           const struct dt_tensor *declared)
{
    struct dt_tensor tensor = *declared;
    bool fits = true;
    if (layer->index < 0) {
        layer->index = model->buckets;
        DT_TRY(model_add_bucket(model));
    }
    DT_TRY(dt__grow(&model->tensor, &model->tensor_capacity, model->tensors + 1,
                    sizeof *model->tensor, "tensors"));
    tensor.layer = layer->index;
    tensor.count = 1;
    for (int i = 0; i < tensor.rank; i++)
        fits = fits && dt__size_mul(tensor.count, tensor.shape[i], &tensor.count);
    if (!fits) return dt_fail(DT_EUSAGE, "more parameters than memory can hold");
    (void)snprintf(tensor.name, sizeof tensor.name, "layers/%d/%s", layer->index, name);
    if (tensor.row_sparse) layer->row_sparse = (int)model->row_sparse++;
    if (tensor.role != DT_TENSOR_STATE && !layer->split) {
        DT_TRY(model_add_floats(model, tensor.count, &tensor.offset));
        layer->end = model->bucket_end[layer->index] = model->params;
    }
    model->tensor[model->tensors++] = tensor;
    return DT_OK;
}

/* Returns the layer that owns a tensor. */
static struct dt__layer *layer_of(struct dt_model *model, const struct dt_tensor *tensor)
{
    struct dt__layer *layer = model->layer;
    while (layer->index != tensor->layer)
        layer++;
    return layer;
}

/* Moves state tensors and the tensors of split layers to the end of the list, and assigns their
 * offsets. The order is then: trained tensors of whole layers; state tensors, in a bucket of their
 * own; tensors of split layers, in no bucket. */
static dt_status model_place_last(struct dt_model *model)
{
    size_t trained = 0, states = 0, splits = model->tensors, last;
    struct dt_tensor *later;
    model->trained = model->params;
    DT_TRY(dt__alloc(model->tensors, sizeof *later, "tensors", &later));
    for (size_t i = 0; i < model->tensors; i++) {
        if (model->tensor[i].role == DT_TENSOR_STATE)
            later[states++] = model->tensor[i];
        else if (layer_of(model, &model->tensor[i])->split)
            later[--splits] = model->tensor[i];
        else
            model->tensor[trained++] = model->tensor[i];
    }
    dt_status status = states ? model_add_bucket(model) : DT_OK;
    for (size_t i = 0; i < states && !status; i++) {
        status = model_add_floats(model, later[i].count, &later[i].offset);
        model->tensor[trained + i] = later[i];
        model->bucket_end[model->buckets - 1] = model->params;
    }
    for (size_t i = model->layers; i-- > 0;)
        for (size_t k = states; k-- > 0;)
            if (later[k].layer == model->layer[i].index) model->layer[i].states = later[k].offset;
    model->shared = model->params;
    last = model->tensors;
    for (size_t i = trained + states; i < model->tensors && !status; i++) {
        struct dt_tensor *tensor = &model->tensor[i];
        *tensor = later[--last];
        struct dt__layer *layer = layer_of(model, tensor);
        const bool first = tensor->role == DT_TENSOR_WEIGHT;
        status = model_add_floats(model, tensor->count, &tensor->offset);
        if (first) layer->begin = tensor->offset;
        layer->end = model->params;
        model->splits += first;
    }
    dt_free(later);
    return status;
}

/* Infers shapes, and assigns numbers to the units that dropout may drop. For a dropout after layer
 * l the numbers start at l << 40. A second dropout after the same layer adds 1 << 56, and a dropout
 * before all layers has l = 0xffff. */
static dt_status model_infer_shapes(struct dt_model *model)
{
    const int *shape = model->desc.shape;
    const int encoded = (int)dt__encoding_inputs(&model->desc);
    struct dt__shape in = {shape[0], shape[1], shape[2] + encoded};
    int previous = -2, ordinal = 0;
    for (size_t i = 0; i < model->layers; i++) {
        struct dt__layer *layer = &model->layer[i];
        layer->in = layer->out = in;
        layer->row_sparse = -1;
        layer->begin = layer->end = model->params;
        dt_status status = layer->kind->infer ? layer->kind->infer(model, layer) : DT_OK;
        if (!status && dt__shape_size(layer->out) > INT_MAX)
            status = dt_fail(DT_EUSAGE, "an output beyond 2^31 values a row");
        if (!status && layer->last && dt__shape_size(layer->out) != (size_t)model->desc.nout)
            status = dt_fail(DT_EUSAGE, "the output is %d x %d x %d, expected %d values in all",
                             layer->out.h, layer->out.w, layer->out.c, model->desc.nout);
        if (status)
            return dt_fail_prefix(status, "'%.100s' of %d x %d x %d: ",
                                  layer->text ? layer->text : layer->kind->name, in.h, in.w, in.c);
        in = layer->out;
        if (layer->dropout <= 0.0) continue;
        /* index of the last layer with parameters so far; -1: there is none */
        const int last = model->buckets - 1;
        ordinal = last == previous ? ordinal + 1 : 0;
        previous = last;
        layer->drop_number =
            ((uint64_t)ordinal << 56) + ((uint64_t)(last < 0 ? 0xffff : last) << 40);
    }
    return DT_OK;
}

/* Returns the index of the quantile nearest to the median. */
static int middle_of(const struct dt_outputs *outputs)
{
    int middle = 0;
    for (int q = 1; q < outputs->each; q++)
        if (fabsf(outputs->quantile[q] - 0.5f) < fabsf(outputs->quantile[middle] - 0.5f))
            middle = q;
    return middle;
}

dt_status dt__model_desc_each(const struct dt_model_desc *desc, int *out)
{
    const struct dt__loss *loss = dt__loss_find(desc->task, desc->loss, 0);
    float quantile[DT_MAX_QUANTILES];
    *out = 1;
    if (!loss || loss->link != DT_LINK_RISING) return DT_OK;
    return dt__quantiles_parse(desc->quantiles, quantile, out);
}

static dt_status model_make_layers(struct dt_model *model)
{
    DT_TRY(dt__layers_parse(model));
    DT_TRY(model_infer_shapes(model));
    if (!model->tensors)
        return dt_fail(DT_EUSAGE, "no layer has weights: there is nothing to train");
    return model_place_last(model);
}

/* Computes the number of features in a row, without encodings. DT_EUSAGE: out of range. */
static dt_status features_count(const struct dt_model_desc *desc, int64_t *out)
{
    int64_t features = 1;
    for (int i = 0; i < 3; i++) {
        if (desc->shape[i] < 1) features = 0;
        features *= desc->shape[i];
        if (features < 1 || features > INT_MAX)
            return dt_fail(DT_EUSAGE, "model: a row of %d x %d x %d, expected 1 to 2^31 - 1 values",
                           desc->shape[0], desc->shape[1], desc->shape[2]);
    }
    *out = features;
    return DT_OK;
}

dt_status dt__model_create(const struct dt_model_desc *desc, struct dt_model **out)
{
    struct dt_model *model;
    int64_t features = 0;
    DT_TRY(features_count(desc, &features));
    DT_TRY(dt__encoding_check(desc, false));
    features += (int64_t)dt__encoding_inputs(desc);
    if (desc->encode && (desc->shape[0] != 1 || desc->shape[1] != 1 || features > INT_MAX))
        return dt_fail(DT_EUSAGE,
                       "data.encode goes with rows of plain features, not with rows of "
                       "%d x %d x %d",
                       desc->shape[0], desc->shape[1], desc->shape[2]);
    if (desc->nout < 1 || desc->nout > DT_MAX_WIDTH)
        return dt_fail(DT_EUSAGE, "model: %d outputs, expected 1 to %d", desc->nout, DT_MAX_WIDTH);
    const struct dt__loss *loss = dt__loss_find(desc->task, desc->loss, desc->nout);
    struct dt_outputs outputs = {.count = desc->nout,
                                 .each = 1,
                                 .delta = (float)desc->huber_delta,
                                 .cool = 1,
                                 .positive = 1};
    if (loss && loss->link == DT_LINK_RISING)
        DT_TRY(dt__quantiles_parse(desc->quantiles, outputs.quantile, &outputs.each));
    if (desc->nout % outputs.each)
        return dt_fail(DT_EUSAGE, "model: %d outputs for %d quantiles", desc->nout, outputs.each);
    outputs.middle = middle_of(&outputs);
    if (!loss)
        return dt_fail(DT_EUSAGE, "model: there is no loss %d of task %d", desc->loss, desc->task);
    DT_TRY(dt__alloc(1, sizeof *model, "model", &model));
    model->inputs = (size_t)features;
    model->features = model->inputs - dt__encoding_inputs(desc);
    model->loss = loss;
    model->classes = loss->task->classes == DT__OUTPUTS ? desc->nout : loss->task->classes;
    model->outputs = outputs;
    model->outputs.link = loss->link;
    model->desc = *desc;
    model->desc.layers = model->desc.quantiles = NULL;
    model->desc.encode_table = NULL;
    dt_status status = dt__strdup(desc->layers, &model->desc.layers);
    if (!status && desc->quantiles) status = dt__strdup(desc->quantiles, &model->desc.quantiles);
    if (!status && desc->encode_table) {
        const size_t count = (size_t)desc->encode_count;
        status = dt__alloc(count, sizeof(float), "encoding", &model->desc.encode_table);
        if (!status) memcpy(model->desc.encode_table, desc->encode_table, count * sizeof(float));
    }
    const bool mean = dt__is_mean(desc->layers);
    if (!status) status = mean ? dt__mean_members(model) : model_make_layers(model);
    if (!status && desc->split > 0 && !mean) {
        dt_free(model->desc.layers);
        model->desc.layers = NULL;
        status = dt__layers_text(model, &model->desc.layers);
        model->desc.split = 0;
    }
    if (status) {
        dt__model_destroy(model);
        return dt_fail_prefix(status, "model.layers: ");
    }
    *out = model;
    return DT_OK;
}

dt_status dt__model_set_units(struct dt_model *model, const float *mean, const float *std)
{
    struct dt_outputs *outputs = &model->outputs;
    const size_t n = (size_t)(outputs->count / outputs->each);
    if (!mean || !model->loss->targets.units) return DT_OK;
    DT_TRY(dt__alloc(n, sizeof *mean, "units of targets", &outputs->mean));
    DT_TRY(dt__alloc(n, sizeof *std, "units of targets", &outputs->std));
    memcpy(outputs->mean, mean, n * sizeof *mean);
    memcpy(outputs->std, std, n * sizeof *std);
    return DT_OK;
}

dt_status dt__model_set_range(struct dt_model *model, const float *least, const float *greatest)
{
    struct dt_outputs *outputs = &model->outputs;
    const size_t n = (size_t)(outputs->count / outputs->each);
    if (!least || model->desc.task != DT_TASK_REGRESS) return DT_OK;
    DT_TRY(dt__alloc(n, sizeof *least, "range of targets", &outputs->least));
    DT_TRY(dt__alloc(n, sizeof *greatest, "range of targets", &outputs->greatest));
    memcpy(outputs->least, least, n * sizeof *least);
    memcpy(outputs->greatest, greatest, n * sizeof *greatest);
    return DT_OK;
}

void dt__layers_free(struct dt_model *model)
{
    for (size_t i = 0; i < model->layers; i++)
        dt_free(model->layer[i].text);
    dt_free(model->layer);
}

void dt__model_desc_free(struct dt_model_desc *desc)
{
    dt_free(desc->layers);
    dt_free(desc->quantiles);
    dt_free(desc->encode_table);
    *desc = (struct dt_model_desc){0};
}

void dt__model_destroy(struct dt_model *model)
{
    if (!model) return;
    for (int m = 0; m < model->members; m++)
        dt__model_destroy(model->member[m]);
    dt_free(model->member);
    dt__layers_free(model);
    dt_free(model->tensor);
    dt_free(model->bucket_end);
    dt_free(model->outputs.mean);
    dt_free(model->outputs.std);
    dt_free(model->outputs.least);
    dt_free(model->outputs.greatest);
    dt__model_desc_free(&model->desc);
    dt_free(model);
}

/* ---- tensors and split layers --------------------------------------------------------------- */

const struct dt_tensor *dt__model_row_sparse_tensor(const struct dt_model *model, size_t index)
{
    for (size_t i = 0; i < model->tensors; i++)
        if (model->tensor[i].row_sparse && index-- == 0) return &model->tensor[i];
    return NULL;
}

const struct dt_tensor *dt__model_output_bias(const struct dt_model *model)
{
    const size_t outputs = (size_t)model->desc.nout, each = (size_t)model->outputs.each;
    const struct dt__layer *layer = &model->layer[model->layers - 1];
    if (!layer->last) layer--; /* skip the linear path, which has no bias */
    for (size_t i = 0; i < model->tensors; i++) {
        const struct dt_tensor *tensor = &model->tensor[i];
        const size_t count = tensor->count;
        const bool fits = model->classes ? count == outputs : outputs % count + count % each == 0;
        if (tensor->layer == layer->index && tensor->role == DT_TENSOR_BIAS && fits) return tensor;
    }
    return NULL;
}

bool dt__layer_splits(const struct dt_model *model, const struct dt__layer *layer)
{
    const bool wide = model->layer[model->layers - 1].kind == &dt__wide_layer;
    return layer->kind->splits && (!layer->last || (dt__loss_splits(model->loss) && !wide));
}

bool dt__model_dense(const struct dt_model *model, int index, struct dt_split_layer *out,
                     bool *out_split)
{
    bool inputs = false;
    for (size_t i = 0; i < model->layers; i++) {
        const struct dt__layer *layer = &model->layer[i];
        if (dt__layer_splits(model, layer) && index-- == 0) {
            size_t tensor = 0;
            while (model->tensor[tensor].layer != layer->index)
                tensor++;
            *out = (struct dt_split_layer){dt__shape_size(layer->in), dt__shape_size(layer->out),
                                           inputs, layer->last, tensor};
            *out_split = layer->split;
            return true;
        }
        inputs |= layer->index >= 0;
    }
    return false;
}

bool dt__model_split(const struct dt_model *model, int index, struct dt_split_layer *out)
{
    bool split;
    for (int i = 0; dt__model_dense(model, i, out, &split); i++)
        if (split && index-- == 0) return true;
    return false;
}

/* Counts the parameters of a layer that a checkpoint saves: trained ones and states. */
static size_t layer_params(const struct dt_model *model, const struct dt__layer *layer)
{
    size_t count = 0;
    for (size_t i = 0; i < model->tensors; i++)
        if (model->tensor[i].layer == layer->index) count += model->tensor[i].count;
    return count;
}

static void text_add_layer(struct dt_text *text, const char *name, struct dt__shape shape,
                           size_t params, size_t macs)
{
    char size[48];
    if (shape.h == 1 && shape.w == 1)
        (void)snprintf(size, sizeof size, "%d", shape.c);
    else
        (void)snprintf(size, sizeof size, "%d x %d x %d", shape.h, shape.w, shape.c);
    dt__text_add(text, "%-36s %16s %12zu %14zu\n", name, size, params, macs);
}

/* Adds a line for each layer. Returns the sum of multiply-adds. */
static size_t text_add_layers(struct dt_text *text, const struct dt_model *model)
{
    size_t macs = 0;
    for (size_t i = 0; i < model->layers; i++) {
        const struct dt__layer *layer = &model->layer[i];
        macs += layer->macs;
        if (layer->text)
            text_add_layer(text, layer->text, layer->out, layer_params(model, layer), layer->macs);
    }
    return macs;
}

dt_status dt__model_table(const struct dt_model *model, char **out)
{
    struct dt_text text = {0};
    const struct dt_model *first = model->members ? model->member[0] : model;
    dt__text_add(&text, "%-36s %16s %12s %14s\n", "layer", "output", "parameters", "multiply-adds");
    text_add_layer(&text, "input", first->layer[0].in, 0, 0);
    size_t macs = text_add_layers(&text, model);
    for (int m = 0; m < model->members; m++) {
        dt__text_add(&text, "member %d\n", m);
        macs += text_add_layers(&text, model->member[m]);
    }
    dt__text_add(&text, "%-36s %16s %12zu %14zu\n", "all", "", model->params, macs);
    return dt__text_end(&text, out);
}

/* ---- initial weights ------------------------------------------------------------------------ */

void dt__model_init(const struct dt_model *model, uint64_t seed, float *params)
{
    uint64_t number = 0; /* index of the tensor in its layer */
    for (size_t i = 0; i < model->tensors; i++) {
        const struct dt_tensor *tensor = &model->tensor[i];
        float *values = params + tensor->offset;
        number = i && tensor->layer == model->tensor[i - 1].layer ? number + 1 : 0;
        struct dt_rng rng = dt__rng_make(seed, DT_STREAM_INIT, (uint64_t)tensor->layer, number);
        /* Glorot and Bengio 2010, eq. 16: uniform on +-sqrt(6 / (fan_in + fan_out)). */
        const double bound = sqrt(6.0 / (tensor->fan_in + tensor->fan_out));
        /* He et al. 2015, eq. 10: variance 2 / fan_in. DT_INIT_UNIT: 1 / fan_out, so that rows have
         * a length of about 1. */
        const double deviation =
            sqrt(tensor->init == DT_INIT_HE ? 2.0 / tensor->fan_in : 1.0 / tensor->fan_out);
        for (size_t k = 0; k < tensor->count; k++) {
            if (tensor->init == DT_INIT_ZERO || tensor->init == DT_INIT_ONE)
                values[k] = tensor->init == DT_INIT_ONE ? 1.0f : 0.0f;
            else if (tensor->init == DT_INIT_GLOROT)
                values[k] = (float)(bound * (2.0 * dt__rng_uniform(&rng, k) - 1.0));
            else
                values[k] = (float)(deviation * dt__rng_normal(&rng, k));
        }
    }
}
