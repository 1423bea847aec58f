/* ONNX: the network's layers as nodes of a graph.
 *
 * Everything that the messages point at lives in a pool that is freed at the end; the parameters
 * are lent. The first failure stays in graph->status, and what is built behind it is not used, so
 * that a layer's translation reads as a list of nodes. Between layers a value is a matrix (rows,
 * numbers of a row), channels last.
 * Source: the operators of https://github.com/onnx/onnx/blob/v1.12.0/docs/Operators.md */
#include "dtrain/onnx.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "model/activation.h"
#include "model/convolution.h"
#include "predict/onnx.pb-c.h"
#include "report/report.h"

enum { IR_VERSION = 8, OPSET = 17, MOST_ITEMS = 4096 };

struct graph {
    dt_status status;
    const struct dt_predictor *predictor;
    const struct dt_model *model;
    const float *params;
    void **pool;
    size_t pool_count, pool_capacity;
    Onnx__NodeProto *node[MOST_ITEMS];
    size_t nodes;
    Onnx__TensorProto *tensor[MOST_ITEMS];
    size_t tensors;
    const char **before; /* (layers) what goes into each */
    int names;           /* given so far */
};

/* ---- memory --------------------------------------------------------------------------------- */

static void keep(struct graph *graph, dt_status status)
{
    if (!graph->status) graph->status = status;
}

/* Memory of the pool; NULL if anything has failed. */
static void *pool_add(struct graph *graph, size_t size)
{
    void *memory = NULL;
    if (graph->status) return NULL;
    keep(graph, dt_grow(&graph->pool, &graph->pool_capacity, graph->pool_count + 1,
                        sizeof *graph->pool, "ONNX graph"));
    if (!graph->status) keep(graph, dt_alloc(1, size ? size : 1, "ONNX graph", &memory));
    if (memory) graph->pool[graph->pool_count++] = memory;
    return memory;
}

static char *pool_text(struct graph *graph, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = pool_add(graph, size);
    return copy ? memcpy(copy, text, size) : NULL;
}

/* ---- nodes and tensors ---------------------------------------------------------------------- */

/* A new node with one output, whose name is returned; NULL ends the inputs. */
static const char *add_node(struct graph *graph, const char *op, const char *const *inputs)
{
    char name[32];
    size_t count = 0;
    while (inputs[count])
        count++;
    snprintf(name, sizeof name, "v%d", ++graph->names);
    Onnx__NodeProto *node = pool_add(graph, sizeof *node);
    char **list = pool_add(graph, (count + 1) * sizeof *list);
    char *output = pool_text(graph, name), *op_type = pool_text(graph, op);
    if (!graph->status && graph->nodes == MOST_ITEMS)
        keep(graph, dt_fail(DT_EUSAGE, "ONNX: more than %d nodes", MOST_ITEMS));
    if (graph->status) return "";
    onnx__node_proto__init(node);
    for (size_t i = 0; i < count; i++)
        list[i] = pool_text(graph, inputs[i]);
    list[count] = output;
    node->input = list;
    node->n_input = count;
    node->output = &list[count];
    node->n_output = 1;
    node->op_type = op_type;
    graph->node[graph->nodes++] = node;
    return output;
}
#define NODE(op, ...) add_node(graph, op, (const char *const[]){__VA_ARGS__, NULL})

/* A new attribute of the newest node; NULL if anything has failed. */
static Onnx__AttributeProto *add_attribute(struct graph *graph, const char *name, int type)
{
    Onnx__AttributeProto *attribute = pool_add(graph, sizeof *attribute);
    char *copy = pool_text(graph, name);
    Onnx__NodeProto *node = graph->nodes ? graph->node[graph->nodes - 1] : NULL;
    Onnx__AttributeProto **list =
        pool_add(graph, ((node ? node->n_attribute : 0) + 1) * sizeof *list);
    if (graph->status || !node) return NULL;
    onnx__attribute_proto__init(attribute);
    attribute->name = copy;
    attribute->has_type = true;
    attribute->type = (Onnx__AttributeProto__AttributeType)type;
    if (node->n_attribute) memcpy(list, node->attribute, node->n_attribute * sizeof *list);
    list[node->n_attribute++] = attribute;
    node->attribute = list;
    return attribute;
}

static void add_ints(struct graph *graph, const char *name, size_t n, const int *values)
{
    int64_t *ints = pool_add(graph, n * sizeof *ints);
    Onnx__AttributeProto *attribute =
        add_attribute(graph, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    if (!attribute) return;
    for (size_t i = 0; i < n; i++)
        ints[i] = values[i];
    attribute->ints = ints;
    attribute->n_ints = n;
}

static void add_int(struct graph *graph, const char *name, int64_t value)
{
    Onnx__AttributeProto *attribute =
        add_attribute(graph, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    if (!attribute) return;
    attribute->has_i = true;
    attribute->i = value;
}

static void add_float(struct graph *graph, const char *name, double value)
{
    Onnx__AttributeProto *attribute =
        add_attribute(graph, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    if (!attribute) return;
    attribute->has_f = true;
    attribute->f = (float)value;
}

/* A constant; `data` is lent until the file is written. Its name is returned. */
static const char *add_constant(struct graph *graph, const char *name, int type, size_t rank,
                                const int64_t *dims, const void *data, size_t bytes)
{
    Onnx__TensorProto *tensor = pool_add(graph, sizeof *tensor);
    int64_t *shape = pool_add(graph, rank * sizeof *shape);
    char *copy = pool_text(graph, name);
    if (!graph->status && graph->tensors == MOST_ITEMS)
        keep(graph, dt_fail(DT_EUSAGE, "ONNX: more than %d tensors", MOST_ITEMS));
    if (graph->status) return "";
    onnx__tensor_proto__init(tensor);
    for (size_t i = 0; i < rank; i++)
        shape[i] = dims[i];
    tensor->name = copy;
    tensor->n_dims = rank;
    tensor->dims = shape;
    tensor->has_data_type = tensor->has_raw_data = true;
    tensor->data_type = type;
    tensor->raw_data = (ProtobufCBinaryData){bytes, (uint8_t *)(uintptr_t)data};
    graph->tensor[graph->tensors++] = tensor;
    return copy;
}

static const char *add_floats(struct graph *graph, const char *name, size_t n, const float *data)
{
    const int64_t dims[] = {(int64_t)n};
    return add_constant(graph, name, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, 1, dims, data,
                        n * sizeof *data);
}

static const char *add_scalar(struct graph *graph, double value)
{
    char name[32];
    float *data = pool_add(graph, sizeof *data);
    snprintf(name, sizeof name, "c%d", ++graph->names);
    if (data) *data = (float)value;
    return add_constant(graph, name, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, 0, NULL, data,
                        sizeof *data);
}

/* A list of whole numbers. */
static const char *add_list(struct graph *graph, size_t n, const int64_t *values)
{
    const int64_t dims[] = {(int64_t)n};
    char name[32];
    int64_t *data = pool_add(graph, n * sizeof *data);
    snprintf(name, sizeof name, "c%d", ++graph->names);
    if (data) memcpy(data, values, n * sizeof *data);
    return add_constant(graph, name, ONNX__TENSOR_PROTO__DATA_TYPE__INT64, 1, dims, data,
                        n * sizeof *data);
}

/* A tensor of a layer: "weight", "bias"; NULL: it has none of that name. */
static const struct dt_tensor *find_parameter(const struct graph *graph,
                                              const struct dt__layer *layer, const char *name)
{
    for (size_t t = 0; t < graph->model->tensors; t++) {
        const struct dt_tensor *tensor = &graph->model->tensor[t];
        const char *last = strrchr(tensor->name, '/');
        if (tensor->layer == layer->index && last && !strcmp(last + 1, name)) return tensor;
    }
    return NULL;
}

static const struct dt_tensor *need_parameter(struct graph *graph, const struct dt__layer *layer,
                                              const char *name)
{
    const struct dt_tensor *tensor = find_parameter(graph, layer, name);
    if (!tensor) keep(graph, dt_fail(DT_EBUG, "%s has no %s", layer->text, name));
    return tensor;
}

/* The same as a constant of the graph. */
static const char *add_parameter(struct graph *graph, const struct dt__layer *layer,
                                 const char *name)
{
    const struct dt_tensor *tensor = need_parameter(graph, layer, name);
    int64_t dims[4];
    if (!tensor) return "";
    for (int i = 0; i < tensor->rank; i++)
        dims[i] = (int64_t)tensor->shape[i];
    return add_constant(graph, tensor->name, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT,
                        (size_t)tensor->rank, dims, graph->params + tensor->offset,
                        tensor->count * sizeof(float));
}

/* ---- layers --------------------------------------------------------------------------------- */

static const char *add_activation(struct graph *graph, const struct dt__layer *layer, const char *x)
{
    static const char *const plain[][2] = {
        {"relu", "Relu"},       {"tanh", "Tanh"},
        {"sigmoid", "Sigmoid"}, {"softplus", "Softplus"},
        {"leaky_relu", "LeakyRelu"}}; /* its alpha is 0.01, if nothing is said, as here */
    const struct dt__activation *activation = layer->activation;
    if (!activation) return x;
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (dt__activation_find(plain[i][0]) == activation) return NODE(plain[i][1], x);
    if (dt__activation_find("silu") == activation) return NODE("Mul", x, NODE("Sigmoid", x));
    if (dt__activation_find("gelu") == activation) {
        /* x (1 + erf(x / sqrt 2)) / 2: a node of its own came with opset 20. */
        const char *root = add_scalar(graph, sqrt(0.5)), *half = add_scalar(graph, 0.5);
        const char *erf = NODE("Erf", NODE("Mul", x, root));
        return NODE("Mul", x, NODE("Add", NODE("Mul", erf, half), half));
    }
    keep(graph, dt_fail(DT_EUSAGE, "%s: its activation has no translation to ONNX", layer->text));
    return x;
}

static const char *dense(struct graph *graph, const struct dt__layer *layer, const char *x)
{
    return NODE("Gemm", x, add_parameter(graph, layer, "weight"),
                add_parameter(graph, layer, "bias"));
}

/* Between layers rows are flat, and nothing is dropped. */
static const char *nothing(struct graph *graph, const struct dt__layer *layer, const char *x)
{
    (void)graph;
    (void)layer;
    return x;
}

/* ---- pictures ------------------------------------------------------------------------------- */

static const char *reshape(struct graph *graph, const char *x, size_t n, const int64_t *shape)
{
    return NODE("Reshape", x, add_list(graph, n, shape));
}

static const char *transpose(struct graph *graph, const char *x, const int perm[4])
{
    x = NODE("Transpose", x);
    add_ints(graph, "perm", 4, perm);
    return x;
}

/* Rows to pictures with channels first, as ONNX has them, and back. */
static const char *to_pictures(struct graph *graph, const char *x, int h, int w, int c)
{
    const int64_t shape[] = {-1, h, w, c};
    return transpose(graph, reshape(graph, x, 4, shape), (const int[]){0, 3, 1, 2});
}

static const char *to_rows(struct graph *graph, const char *x, const struct dt__layer *layer)
{
    const int64_t shape[] = {-1, (int64_t)dt__shape_size(layer->out)};
    return reshape(graph, transpose(graph, x, (const int[]){0, 2, 3, 1}), 2, shape);
}

/* A weight (KH, KW, C / groups, F) as (F, C / groups, KH, KW). */
static const char *add_filters(struct graph *graph, const struct dt__layer *layer)
{
    const struct dt_tensor *tensor = need_parameter(graph, layer, "weight");
    float *data = tensor ? pool_add(graph, tensor->count * sizeof *data) : NULL;
    if (!data) return "";
    const size_t points = tensor->shape[0] * tensor->shape[1], channels = tensor->shape[2],
                 filters = tensor->shape[3];
    const float *weight = graph->params + tensor->offset;
    for (size_t p = 0; p < points; p++)
        for (size_t c = 0; c < channels; c++)
            for (size_t f = 0; f < filters; f++)
                data[(f * channels + c) * points + p] = weight[(p * channels + c) * filters + f];
    const int64_t dims[] = {(int64_t)filters, (int64_t)channels, (int64_t)tensor->shape[0],
                            (int64_t)tensor->shape[1]};
    return add_constant(graph, tensor->name, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, 4, dims, data,
                        tensor->count * sizeof *data);
}

static const char *convolve(struct graph *graph, const struct dt__layer *layer,
                            const struct dt__convolution_shape *s, const char *bias, const char *x)
{
    x = to_pictures(graph, x, s->height, s->width, s->channels);
    x = NODE("Conv", x, add_filters(graph, layer), bias);
    add_ints(graph, "kernel_shape", 2, (const int[]){s->kernel_height, s->kernel_width});
    add_ints(graph, "strides", 2, (const int[]){s->stride_height, s->stride_width});
    add_ints(graph, "pads", 4, (const int[]){s->pad_top, s->pad_left, s->pad_bottom, s->pad_right});
    add_int(graph, "group", s->groups);
    return to_rows(graph, x, layer);
}

static const char *conv(struct graph *graph, const struct dt__layer *layer, const char *x)
{
    struct dt__convolution_shape shape;
    if (!dt__conv_shape(layer, &shape))
        keep(graph, dt_fail(DT_EBUG, "%s: its shape does not suit", layer->text));
    return convolve(graph, layer, &shape, add_parameter(graph, layer, "bias"), x);
}

static const char *pool(struct graph *graph, const struct dt__layer *layer, const char *x)
{
    const struct dt__convolution_shape s = dt__pool_shape(layer);
    const bool greatest = !strcmp(layer->kind->name, "maxpool");
    x = to_pictures(graph, x, s.height, s.width, s.channels);
    x = NODE(greatest ? "MaxPool" : "AveragePool", x);
    add_ints(graph, "kernel_shape", 2, (const int[]){s.kernel_height, s.kernel_width});
    add_ints(graph, "strides", 2, (const int[]){s.stride_height, s.stride_width});
    return to_rows(graph, x, layer);
}

/* Each point stands several times: rows of points with dimensions of one between, stretched. */
static const char *upsample(struct graph *graph, const struct dt__layer *layer, const char *x)
{
    const int64_t h = layer->in.h, w = layer->in.w, c = layer->in.c;
    const int64_t apart[] = {-1, h, 1, w, 1, c};
    const int64_t times[] = {1, 1, layer->out.h / h, 1, layer->out.w / w, 1};
    const int64_t flat[] = {-1, (int64_t)dt__shape_size(layer->out)};
    x = reshape(graph, x, 6, apart);
    x = NODE("Tile", x, add_list(graph, 6, times));
    return reshape(graph, x, 2, flat);
}

/* ---- normalisation, factors, residuals ------------------------------------------------------ */

/* Over each point's channels: the rows become points, and rows again. */
static const char *with_points(struct graph *graph, const struct dt__layer *layer, const char *x,
                               bool back)
{
    const int64_t points[] = {-1, back ? (int64_t)dt__shape_size(layer->out) : layer->in.c};
    return layer->in.h * layer->in.w == 1 ? x : reshape(graph, x, 2, points);
}

/* (x - running mean) * factor + bias; the factor is worked out here. */
static const char *batchnorm(struct graph *graph, const struct dt__layer *layer, const char *x)
{
    const struct dt_tensor *gain = need_parameter(graph, layer, "weight");
    const struct dt_tensor *variance = need_parameter(graph, layer, "running_var");
    float *factor = gain ? pool_add(graph, gain->count * sizeof *factor) : NULL;
    char name[64];
    if (!factor || !variance) return x;
    for (size_t c = 0; c < gain->count; c++)
        factor[c] = (float)(graph->params[gain->offset + c] /
                            sqrt(graph->params[variance->offset + c] + DT__NORM_EPSILON));
    snprintf(name, sizeof name, "%s/factor", gain->name);
    x = with_points(graph, layer, x, false);
    x = NODE("Sub", x, add_parameter(graph, layer, "running_mean"));
    x = NODE("Mul", x, add_floats(graph, name, gain->count, factor));
    x = NODE("Add", x, add_parameter(graph, layer, "bias"));
    return with_points(graph, layer, x, true);
}

static const char *layernorm(struct graph *graph, const struct dt__layer *layer, const char *x)
{
    x = with_points(graph, layer, x, false);
    x = NODE("LayerNormalization", x, add_parameter(graph, layer, "weight"),
             add_parameter(graph, layer, "bias"));
    add_int(graph, "axis", -1);
    add_float(graph, "epsilon", DT__NORM_EPSILON);
    return with_points(graph, layer, x, true);
}

static const char *scale(struct graph *graph, const struct dt__layer *layer, const char *x)
{
    return NODE("Mul", x, add_parameter(graph, layer, "factor"));
}

static const char *residual_end(struct graph *graph, const struct dt__layer *layer, const char *x)
{
    const char *shortcut = graph->before[layer->link];
    if (find_parameter(graph, layer, "weight")) {
        const struct dt__convolution_shape shape = dt__residual_shape(layer);
        shortcut = convolve(graph, layer, &shape, NULL, shortcut);
    }
    return NODE("Add", x, shortcut);
}

/* ---- categories ----------------------------------------------------------------------------- */

/* Inputs [first, end) of the rows. */
static const char *slice(struct graph *graph, const char *x, int64_t first, int64_t end)
{
    const int64_t axis = 1;
    return NODE("Slice", x, add_list(graph, 1, &first), add_list(graph, 1, &end),
                add_list(graph, 1, &axis));
}

/* A column's inputs are 0 but for a 1: their product with the column's part of the table is its
 * vector. */
static const char *embedding(struct graph *graph, const struct dt__layer *layer, const char *x)
{
    const struct dt_schema *schema = &dt_predictor_export(graph->predictor)->schema;
    const struct dt_tensor *table = need_parameter(graph, layer, "weight");
    const char *all = schema->dense ? slice(graph, x, 0, schema->dense) : NULL;
    if (schema->hash_bits)
        keep(graph, dt_fail(DT_EUSAGE,
                            "%s: hashed categories (data.hash_bits) have no translation to "
                            "ONNX, which has no such hash",
                            layer->text));
    for (int c = 0; c < schema->ncolumns && !graph->status; c++) {
        const struct dt_column *column = &schema->columns[c];
        if (column->kind != DT_COLUMN_CATEGORY) continue;
        char name[80];
        const int64_t dims[] = {column->ncategories + 1, (int64_t)table->shape[1]};
        const size_t at = (size_t)(column->first - schema->dense) * table->shape[1];
        snprintf(name, sizeof name, "%s/%d", table->name, column->first);
        const char *part = add_constant(graph, name, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, 2, dims,
                                        graph->params + table->offset + at,
                                        (size_t)dims[0] * table->shape[1] * sizeof(float));
        const char *vector =
            NODE("MatMul", slice(graph, x, column->first, column->first + dims[0]), part);
        if (all) {
            all = NODE("Concat", all, vector);
            add_int(graph, "axis", 1);
        } else {
            all = vector;
        }
    }
    return all ? all : x;
}

static const char *wide(struct graph *graph, const struct dt__layer *layer, const char *x)
{
    return NODE("Add", x, NODE("MatMul", graph->before[0], add_parameter(graph, layer, "weight")));
}

/* ---- the table ------------------------------------------------------------------------------ */

/* A row a kind of layer; the activation of any layer comes behind it. */
static const struct {
    const char *kind;
    const char *(*add)(struct graph *graph, const struct dt__layer *layer, const char *x);
} LAYERS[] = {{"dense", dense},         {"activation", nothing}, {"dropout", nothing},
              {"flatten", nothing},     {"residual", nothing},   {"conv", conv},
              {"conv1d", conv},         {"maxpool", pool},       {"avgpool", pool},
              {"globalpool", pool},     {"upsample", upsample},  {"batchnorm", batchnorm},
              {"layernorm", layernorm}, {"scale", scale},        {"residual's end", residual_end},
              {"embedding", embedding}, {"wide", wide}};

static const char *add_layer(struct graph *graph, const struct dt__layer *layer, const char *x)
{
    for (size_t i = 0; i < sizeof LAYERS / sizeof *LAYERS; i++)
        if (!strcmp(LAYERS[i].kind, layer->kind->name))
            return add_activation(graph, layer, LAYERS[i].add(graph, layer, x));
    keep(graph, dt_fail(DT_EUSAGE, "%s: this layer has no translation to ONNX", layer->text));
    return x;
}

/* ---- the ends of the graph ------------------------------------------------------------------ */

/* Features that the graph works out itself, the flags of gaps, stand behind the numbers: first and
 * count. */
struct flags {
    int first, count;
};

static struct flags flags_of(const struct dt_schema *schema)
{
    struct flags flags = {0};
    for (int c = 0; c < schema->ncolumns; c++) {
        flags.first += schema->columns[c].kind == DT_COLUMN_NUMBER;
        flags.count += schema->columns[c].flag > 0;
    }
    return flags;
}

/* Means in place of gaps, which are NaN, and the flags that say where. */
static const char *add_gaps(struct graph *graph, const struct dt_schema *schema, const char *x)
{
    const struct flags flags = flags_of(schema);
    const int inputs = schema->features - flags.count;
    float *fill = pool_add(graph, (size_t)inputs * sizeof *fill);
    int64_t *flagged = pool_add(graph, (size_t)flags.count * sizeof *flagged);
    for (int c = 0; c < schema->ncolumns && !graph->status; c++) {
        const struct dt_column *column = &schema->columns[c];
        if (column->kind == DT_COLUMN_NUMBER) fill[column->first] = column->fill;
        if (column->flag) flagged[column->flag - flags.first] = column->first;
    }
    const char *gaps = NODE("IsNaN", x);
    x = NODE("Where", gaps, add_floats(graph, "fill", (size_t)inputs, fill), x);
    if (!flags.count) return x;
    gaps = NODE("Gather", gaps, add_list(graph, (size_t)flags.count, flagged));
    add_int(graph, "axis", 1);
    gaps = NODE("Cast", gaps);
    add_int(graph, "to", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT);
    x = NODE("Concat", slice(graph, x, 0, flags.first), gaps, slice(graph, x, flags.first, inputs));
    add_int(graph, "axis", 1);
    return x;
}

/* Rows as the network gets them. */
static const char *add_inputs(struct graph *graph, const struct dt_schema *schema)
{
    const size_t n = (size_t)schema->features;
    const char *x = "input";
    if (schema->columns && !isnan(schema->columns->fill)) x = add_gaps(graph, schema, x);
    /* x = (raw * scale - mean) * inv_std, clipped, as far as that does anything. */
    if (schema->scale != 1) x = NODE("Mul", x, add_scalar(graph, schema->scale));
    if (schema->mean) {
        x = NODE("Sub", x, add_floats(graph, "mean", n, schema->mean));
        x = NODE("Mul", x, add_floats(graph, "inv_std", n, schema->inv_std));
    }
    if (schema->clip > 0)
        x = NODE("Clip", x, add_scalar(graph, -schema->clip), add_scalar(graph, schema->clip));
    return x;
}

/* Gives the newest node's output its public name. */
static void name_output(struct graph *graph, const char *name)
{
    char *copy = pool_text(graph, name);
    if (!graph->status) graph->node[graph->nodes - 1]->output[0] = copy;
}

static void add_answers(struct graph *graph, const char *x)
{
    if (!dt_predictor_classes(graph->predictor)) {
        /* value = output * std + mean, where the targets were standardised. */
        const struct dt_schema *schema = &dt_predictor_export(graph->predictor)->schema;
        const size_t n = (size_t)schema->targets;
        if (schema->target_mean) {
            x = NODE("Mul", x, add_floats(graph, "target_std", n, schema->target_std));
            x = NODE("Add", x, add_floats(graph, "target_mean", n, schema->target_mean));
        }
        NODE(graph->model->outputs.log ? "Exp" : "Identity", x);
        name_output(graph, "values");
        return;
    }
    if (graph->model->desc.nout > 1) {
        NODE("ArgMax", x);
        add_int(graph, "axis", 1);
        add_int(graph, "keepdims", 0);
        name_output(graph, "class");
        NODE("Softmax", x);
        add_int(graph, "axis", 1);
    } else {
        const int64_t all = -1;
        const char *yes = NODE("Sigmoid", x);
        const char *no = NODE("Sigmoid", NODE("Neg", x));
        const char *logits = reshape(graph, x, 1, &all);
        const char *positive = NODE("Greater", logits, add_scalar(graph, 0));
        NODE("Cast", positive);
        add_int(graph, "to", ONNX__TENSOR_PROTO__DATA_TYPE__INT64);
        name_output(graph, "class");
        NODE("Concat", no, yes);
        add_int(graph, "axis", 1);
    }
    name_output(graph, "probabilities");
}

/* "input" or an output: (rows, width), or (rows) for width 0. */
static Onnx__ValueInfoProto *make_value(struct graph *graph, const char *name, int type, int width)
{
    struct {
        Onnx__ValueInfoProto info;
        Onnx__TypeProto type;
        Onnx__TypeProto__Tensor tensor;
        Onnx__TensorShapeProto shape;
        Onnx__TensorShapeProto__Dimension dim[2], *dims[2];
    } *value = pool_add(graph, sizeof *value);
    char *copy = pool_text(graph, name), *rows = pool_text(graph, "rows");
    if (graph->status) return NULL;
    onnx__value_info_proto__init(&value->info);
    onnx__type_proto__init(&value->type);
    onnx__type_proto__tensor__init(&value->tensor);
    onnx__tensor_shape_proto__init(&value->shape);
    for (int i = 0; i < 2; i++) {
        onnx__tensor_shape_proto__dimension__init(&value->dim[i]);
        value->dims[i] = &value->dim[i];
    }
    value->dim[0].dim_param = rows;
    value->dim[1].has_dim_value = true;
    value->dim[1].dim_value = width;
    value->shape.dim = value->dims;
    value->shape.n_dim = width ? 2 : 1;
    value->tensor.has_elem_type = true;
    value->tensor.elem_type = type;
    value->tensor.shape = &value->shape;
    value->type.tensor_type = &value->tensor;
    value->info.name = copy;
    value->info.type = &value->type;
    return &value->info;
}

/* A list of names as JSON, in the pool, without those of flags. */
static char *names_json(struct graph *graph, char *const *names, int count, struct flags flags)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++)
        if (i < flags.first || i >= flags.first + flags.count)
            json_array_append_new(list, dt__json_string(names[i]));
    size_t size = json_dumpb(list, NULL, 0, JSON_COMPACT);
    char *copy = pool_add(graph, size + 1);
    if (copy) json_dumpb(list, copy, size, JSON_COMPACT);
    json_decref(list);
    return copy;
}

struct metadata {
    Onnx__StringStringEntryProto entry[8], *list[8];
    size_t count;
};

static void add_metadata(struct graph *graph, struct metadata *metadata, const char *key,
                         const char *value)
{
    Onnx__StringStringEntryProto *entry = &metadata->entry[metadata->count];
    onnx__string_string_entry_proto__init(entry);
    entry->key = pool_text(graph, key);
    entry->value = pool_text(graph, value);
    metadata->list[metadata->count++] = entry;
}

/* ---- the file ------------------------------------------------------------------------------- */

static dt_status pack_and_write(const Onnx__ModelProto *model, const char *path)
{
    uint8_t *bytes;
    size_t size = onnx__model_proto__get_packed_size(model);
    if (size > INT32_MAX)
        return dt_fail(DT_EFORMAT, "%s: %zu MB; an ONNX file holds 2147 MB at most", path,
                       size / 1000000);
    DT_TRY(dt_alloc(size, 1, "ONNX file", &bytes));
    onnx__model_proto__pack(model, bytes);
    dt_status status = dt_file_write(path, bytes, size, NULL, NULL);
    dt_free(bytes);
    return status;
}

static dt_status write_model(struct graph *graph, const char *path)
{
    const struct dt_export *file = dt_predictor_export(graph->predictor);
    const struct dt_schema *schema = &file->schema;
    const int classes = dt_predictor_classes(graph->predictor);
    const struct flags flags = flags_of(schema);
    const int real = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    struct metadata metadata = {.count = 0};
    char step[24];
    snprintf(step, sizeof step, "%llu", (unsigned long long)file->step);
    add_metadata(graph, &metadata, "task", classes ? "classify" : "regress");
    add_metadata(graph, &metadata, "step", step);
    add_metadata(graph, &metadata, "layers", graph->model->desc.layers);
    if (schema->feature_names) {
        const char *names = names_json(graph, schema->feature_names, schema->features, flags);
        if (names) add_metadata(graph, &metadata, "feature_names", names);
    }
    if (schema->label_names) {
        const char *names = names_json(graph, schema->label_names, classes, (struct flags){0});
        if (names) add_metadata(graph, &metadata, "class_names", names);
    }
    Onnx__ValueInfoProto *input = make_value(graph, "input", real, schema->features - flags.count);
    Onnx__ValueInfoProto *outputs[2] = {
        make_value(graph, classes ? "probabilities" : "values", real,
                   dt_predictor_width(graph->predictor)),
        classes ? make_value(graph, "class", ONNX__TENSOR_PROTO__DATA_TYPE__INT64, 0) : NULL};
    DT_TRY(graph->status);
    Onnx__GraphProto body = ONNX__GRAPH_PROTO__INIT;
    Onnx__OperatorSetIdProto opset = ONNX__OPERATOR_SET_ID_PROTO__INIT, *opsets = &opset;
    Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
    char graph_name[] = "dtrain", version[] = DT_VERSION, domain[] = "";
    body.name = graph_name;
    body.node = graph->node;
    body.n_node = graph->nodes;
    body.initializer = graph->tensor;
    body.n_initializer = graph->tensors;
    body.input = &input;
    body.n_input = 1;
    body.output = outputs;
    body.n_output = classes ? 2 : 1;
    opset.domain = domain;
    opset.has_version = true;
    opset.version = OPSET;
    model.has_ir_version = true;
    model.ir_version = IR_VERSION;
    model.producer_name = graph_name;
    model.producer_version = version;
    model.graph = &body;
    model.opset_import = &opsets;
    model.n_opset_import = 1;
    model.metadata_props = metadata.list;
    model.n_metadata_props = metadata.count;
    return pack_and_write(&model, path);
}

dt_status dt_onnx_write(const struct dt_predictor *predictor, const char *path)
{
    struct graph *graph;
    DT_TRY(dt_alloc(1, sizeof *graph, "ONNX graph", &graph));
    graph->predictor = predictor;
    graph->model = dt_predictor_model(predictor);
    graph->params = dt_predictor_export(predictor)->params;
    const char *x = add_inputs(graph, &dt_predictor_export(predictor)->schema);
    graph->before = pool_add(graph, graph->model->layers * sizeof *graph->before);
    for (size_t i = 0; i < graph->model->layers && !graph->status; i++) {
        graph->before[i] = x;
        x = add_layer(graph, &graph->model->layer[i], x);
    }
    add_answers(graph, x);
    dt_status status = graph->status;
    if (!status) status = write_model(graph, path);
    for (size_t i = 0; i < graph->pool_count; i++)
        dt_free(graph->pool[i]);
    dt_free(graph->pool);
    dt_free(graph);
    return status;
}
