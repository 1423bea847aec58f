/* ONNX: the network's layers as nodes of a graph.
 *
 * Nodes and constants are written as they are made, with the names of the values that nodes read
 * and give. The first failure stays in graph->status, and what is written behind it is not used, so
 * that a layer's translation reads as a list of nodes. Between layers a value is a matrix (rows,
 * numbers of a row), channels last.
 * Source: the operators of https://github.com/onnx/onnx/blob/v1.12.0/docs/Operators.md, and the
 * messages of https://github.com/onnx/onnx/blob/v1.12.0/onnx/onnx.proto */
#include "predict/onnx.h"

#include <math.h>
#include <string.h>

#include "data/columns.h"
#include "model/activation.h"
#include "model/convolution.h"
#include "report/internal.h"

enum { IR_VERSION = 8, OPSET = 17 };
enum type { FLOAT = 1, INT64 = 7 };

/* The fields' numbers. */
enum {
    MODEL_IR_VERSION = 1,
    MODEL_PRODUCER = 2,
    MODEL_PRODUCER_VERSION = 3,
    MODEL_GRAPH = 7,
    MODEL_OPSET = 8,
    MODEL_METADATA = 14
};
enum { GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_CONSTANT = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_OPERATOR = 4, NODE_ATTRIBUTE = 5 };
enum {
    ATTRIBUTE_NAME = 1,
    ATTRIBUTE_F = 2,
    ATTRIBUTE_I = 3,
    ATTRIBUTE_INTS = 8,
    ATTRIBUTE_TYPE = 20
};
enum attribute { ATTRIBUTE_FLOAT = 1, ATTRIBUTE_INT = 2, ATTRIBUTE_LIST = 7 };
enum { CONSTANT_DIMS = 1, CONSTANT_TYPE = 2, CONSTANT_NAME = 8, CONSTANT_BYTES = 9 };
enum {
    OPSET_DOMAIN = 1,
    OPSET_VERSION = 2,
    ENTRY_KEY = 1,
    ENTRY_VALUE = 2,
    VALUE_NAME = 1,
    VALUE_TYPE = 2
};
enum {
    TYPE_TENSOR = 1,
    TENSOR_TYPE = 1,
    TENSOR_SHAPE = 2,
    SHAPE_DIM = 1,
    DIM_SIZE = 1,
    DIM_NAME = 2
};

struct graph {
    dt_status status;
    const struct dt_predictor *predictor;
    const struct dt_model *model;
    const float *params;
    struct dt__message body; /* nodes and constants so far */
    struct dt__message node; /* the newest: attributes may follow */
    struct dt__names names;  /* of values */
    const char **before;     /* (layers) what goes into each */
    void *scratch;           /* numbers of the constant under way */
    size_t scratch_bytes;
};

static void keep(struct graph *graph, dt_status status)
{
    if (!graph->status) graph->status = status;
}

/* Memory until the next call; NULL if anything has failed. */
static void *scratch(struct graph *graph, size_t count, size_t size)
{
    if (!graph->status)
        keep(graph, dt__grow(&graph->scratch, &graph->scratch_bytes, count * size + 1, 1, "ONNX"));
    return graph->status ? NULL : graph->scratch;
}

/* ---- nodes and constants -------------------------------------------------------------------- */

/* A copy that stays; NULL for a new name. */
static const char *value_name(struct graph *graph, const char *name)
{
    char number[32];
    snprintf(number, sizeof number, "v%zu", graph->names.count);
    if (!name) name = number;
    keep(graph, dt__names_add(&graph->names, name, strlen(name)));
    return graph->status ? "" : graph->names.items[graph->names.count - 1];
}

static void end_node(struct graph *graph)
{
    if (graph->node.text.length || graph->node.text.status)
        dt__message_add(&graph->body, GRAPH_NODE, &graph->node);
}

/* A new node with one output, whose name is returned: `name`, or NULL for one of its own. NULL ends
 * the inputs. */
static const char *add_node(struct graph *graph, const char *name, const char *operator,
                            const char * const * inputs)
{
    end_node(graph);
    for (; *inputs; inputs++)
        dt__message_text(&graph->node, NODE_INPUT, *inputs);
    name = value_name(graph, name);
    dt__message_text(&graph->node, NODE_OUTPUT, name);
    dt__message_text(&graph->node, NODE_OPERATOR, operator);
    return name;
}
#define NODE(operator, ...) NAMED(NULL, operator, __VA_ARGS__)
#define NAMED(name, operator, ...)                                                                 \
    add_node(graph, name, operator,(const char *const[]){__VA_ARGS__, NULL})

/* An attribute of the newest node, but for its value. */
static struct dt__message attribute_begin(const char *name, enum attribute type)
{
    struct dt__message attribute = {0};
    dt__message_text(&attribute, ATTRIBUTE_NAME, name);
    dt__message_int(&attribute, ATTRIBUTE_TYPE, type);
    return attribute;
}

static void add_ints(struct graph *graph, const char *name, size_t n, const int *values)
{
    struct dt__message attribute = attribute_begin(name, ATTRIBUTE_LIST);
    for (size_t i = 0; i < n; i++)
        dt__message_int(&attribute, ATTRIBUTE_INTS, values[i]);
    dt__message_add(&graph->node, NODE_ATTRIBUTE, &attribute);
}

static void add_int(struct graph *graph, const char *name, int64_t value)
{
    struct dt__message attribute = attribute_begin(name, ATTRIBUTE_INT);
    dt__message_int(&attribute, ATTRIBUTE_I, value);
    dt__message_add(&graph->node, NODE_ATTRIBUTE, &attribute);
}

static void add_float(struct graph *graph, const char *name, double value)
{
    struct dt__message attribute = attribute_begin(name, ATTRIBUTE_FLOAT);
    const float rounded = (float)value;
    dt__message_fixed(&attribute, ATTRIBUTE_F, &rounded, sizeof rounded);
    dt__message_add(&graph->node, NODE_ATTRIBUTE, &attribute);
}

/* A constant, whose name is returned: `name`, or NULL for one of its own. */
static const char *add_constant(struct graph *graph, const char *name, enum type type, size_t rank,
                                const int64_t *dims, const void *data)
{
    struct dt__message constant = {0};
    size_t bytes = type == FLOAT ? sizeof(float) : sizeof(int64_t);
    if (graph->status) return "";
    for (size_t i = 0; i < rank; i++) {
        dt__message_int(&constant, CONSTANT_DIMS, dims[i]);
        bytes *= (size_t)dims[i];
    }
    name = value_name(graph, name);
    dt__message_int(&constant, CONSTANT_TYPE, type);
    dt__message_text(&constant, CONSTANT_NAME, name);
    dt__message_bytes(&constant, CONSTANT_BYTES, data, bytes);
    dt__message_add(&graph->body, GRAPH_CONSTANT, &constant);
    return name;
}

static const char *add_floats(struct graph *graph, const char *name, size_t n, const float *data)
{
    return add_constant(graph, name, FLOAT, 1, (const int64_t[]){(int64_t)n}, data);
}

static const char *add_scalar(struct graph *graph, double value)
{
    return add_constant(graph, NULL, FLOAT, 0, NULL, &(const float){(float)value});
}

/* A list of whole numbers. */
static const char *add_list(struct graph *graph, size_t n, const int64_t *values)
{
    return add_constant(graph, NULL, INT64, 1, (const int64_t[]){(int64_t)n}, values);
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

/* A tensor of a layer as a constant of the graph. */
static const char *add_parameter(struct graph *graph, const struct dt__layer *layer,
                                 const char *name)
{
    const struct dt_tensor *tensor = need_parameter(graph, layer, name);
    int64_t dims[4];
    if (!tensor) return "";
    for (int i = 0; i < tensor->rank; i++)
        dims[i] = (int64_t)tensor->shape[i];
    return add_constant(graph, tensor->name, FLOAT, (size_t)tensor->rank, dims,
                        graph->params + tensor->offset);
}

/* ---- layers --------------------------------------------------------------------------------- */

static const char *add_activation(struct graph *graph, const struct dt__layer *layer, const char *x)
{
    static const char *const plain[][2] = {
        {"relu", "Relu"},
        {"tanh", "Tanh"},
        {"sigmoid", "Sigmoid"},
        {"softplus", "Softplus"},
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
    float *data = tensor ? scratch(graph, tensor->count, sizeof *data) : NULL;
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
    return add_constant(graph, tensor->name, FLOAT, 4, dims, data);
}

static const char *convolve(struct graph *graph, const struct dt__layer *layer,
                            const struct dt__convolution_shape *s, const char *bias, const char *x)
{
    x = to_pictures(graph, x, s->in.h, s->in.w, s->in.c);
    x = NODE("Conv", x, add_filters(graph, layer), bias);
    add_ints(graph, "kernel_shape", 2, s->kernel);
    add_ints(graph, "strides", 2, s->stride);
    add_ints(graph, "pads", 4,
             (const int[]){s->before[0], s->before[1], s->behind[0], s->behind[1]});
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
    x = to_pictures(graph, x, s.in.h, s.in.w, s.in.c);
    x = NODE(greatest ? "MaxPool" : "AveragePool", x);
    add_ints(graph, "kernel_shape", 2, s.kernel);
    add_ints(graph, "strides", 2, s.stride);
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
    float *factor = gain ? scratch(graph, gain->count, sizeof *factor) : NULL;
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
    const struct dt_schema *schema = &graph->predictor->file.schema;
    const struct dt_tensor *table = need_parameter(graph, layer, "weight");
    const char *all = schema->dense ? slice(graph, x, 0, schema->dense) : NULL;
    for (int c = 0; c < schema->ncolumns && !graph->status; c++) {
        const struct dt_column *column = &schema->columns[c];
        if (column->kind != DT_COLUMN_CATEGORY) continue;
        char name[80];
        const int64_t dims[] = {column->ncategories + 1, (int64_t)table->shape[1]};
        const size_t at = (size_t)(column->first - schema->dense) * table->shape[1];
        snprintf(name, sizeof name, "%s/%d", table->name, column->first);
        const char *part =
            add_constant(graph, name, FLOAT, 2, dims, graph->params + table->offset + at);
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
        flags.first += dt__column_numbers(&schema->columns[c], NULL);
        flags.count += schema->columns[c].flag > 0;
    }
    return flags;
}

/* Means in place of gaps, which are NaN, and the flags that say where. */
static const char *add_gaps(struct graph *graph, const struct dt_schema *schema, const char *x)
{
    const struct flags flags = flags_of(schema);
    const int inputs = schema->features - flags.count;
    float *fill = scratch(graph, (size_t)inputs, sizeof *fill);
    for (int c = 0; fill && c < schema->ncolumns; c++)
        dt__column_numbers(&schema->columns[c], fill + schema->columns[c].first);
    const char *means = add_floats(graph, "fill", (size_t)inputs, fill);
    const char *gaps = NODE("IsNaN", x);
    x = NODE("Where", gaps, means, x);
    if (!flags.count) return x;
    int64_t *flagged = scratch(graph, (size_t)flags.count, sizeof *flagged);
    for (int c = 0; flagged && c < schema->ncolumns; c++)
        if (schema->columns[c].flag)
            flagged[schema->columns[c].flag - flags.first] = schema->columns[c].first;
    gaps = NODE("Gather", gaps, add_list(graph, (size_t)flags.count, flagged));
    add_int(graph, "axis", 1);
    gaps = NODE("Cast", gaps);
    add_int(graph, "to", FLOAT);
    x = NODE("Concat", slice(graph, x, 0, flags.first), gaps, slice(graph, x, flags.first, inputs));
    add_int(graph, "axis", 1);
    return x;
}

/* Rows as the network gets them. */
static const char *add_inputs(struct graph *graph, const struct dt_schema *schema)
{
    const size_t n = (size_t)schema->features;
    const char *x = "input";
    /* with data.missing=error each column's fill is NaN, else none is */
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

/* (rows, targets, each): the first output of a target, and what the others add to the one before. A
 * matrix adds them up. */
static const char *rising(struct graph *graph, const char *x, int64_t targets, int64_t each)
{
    float first[DT_MAX_QUANTILES] = {1}, others[DT_MAX_QUANTILES] = {0};
    float sums[DT_MAX_QUANTILES * DT_MAX_QUANTILES] = {0};
    const int64_t shape[] = {-1, targets, each}, square[] = {each, each};
    for (int64_t q = 0; q < each; q++) {
        others[q] = 1 - first[q];
        for (int64_t to = q; to < each; to++)
            sums[q * each + to] = 1;
    }
    x = reshape(graph, x, 3, shape);
    const char *steps =
        NODE("Mul", NODE("Softplus", x), add_floats(graph, NULL, (size_t)each, others));
    x = NODE("Mul", x, add_floats(graph, NULL, (size_t)each, first));
    return NODE("MatMul", NODE("Add", x, steps), add_constant(graph, NULL, FLOAT, 2, square, sums));
}

static void add_answers(struct graph *graph, const char *x)
{
    if (!graph->predictor->classes) {
        /* value = output * std + mean, where the targets were standardised. */
        const struct dt_schema *schema = &graph->predictor->file.schema;
        const struct dt_outputs *outputs = &graph->model->outputs;
        const int64_t n[] = {schema->targets, 1}, flat[] = {-1, outputs->count};
        const bool rises = outputs->link == DT_LINK_RISING;
        if (rises) x = rising(graph, x, outputs->count / outputs->each, outputs->each);
        const size_t dims = rises ? 2 : 1;
        if (schema->target_mean) {
            x = NODE("Mul", x,
                     add_constant(graph, "target_std", FLOAT, dims, n, schema->target_std));
            x = NODE("Add", x,
                     add_constant(graph, "target_mean", FLOAT, dims, n, schema->target_mean));
        }
        if (rises) x = reshape(graph, x, 2, flat);
        static const char *const links[] = {"Identity", "Exp", "Sigmoid", "Identity"};
        NAMED(graph->predictor->answer, links[outputs->link], x);
    } else if (graph->model->desc.nout > 1) {
        NAMED("class", "ArgMax", x);
        add_int(graph, "axis", 1);
        add_int(graph, "keepdims", 0);
        NAMED("probabilities", "Softmax", x);
        add_int(graph, "axis", 1);
    } else {
        const char *yes = NODE("Sigmoid", x);
        const char *no = NODE("Sigmoid", NODE("Neg", x));
        const char *logits = reshape(graph, x, 1, (const int64_t[]){-1});
        const char *positive = NODE("Greater", logits, add_scalar(graph, 0));
        NAMED("class", "Cast", positive);
        add_int(graph, "to", INT64);
        NAMED("probabilities", "Concat", no, yes);
        add_int(graph, "axis", 1);
    }
    end_node(graph);
}

/* Says what "input" or an output is: (rows, width), or (rows) for width 0. */
static void add_value(struct graph *graph, int field, const char *name, enum type type, int width)
{
    struct dt__message dim = {0}, shape = {0}, tensor = {0}, kind = {0}, value = {0};
    dt__message_text(&dim, DIM_NAME, "rows");
    dt__message_add(&shape, SHAPE_DIM, &dim);
    if (width) {
        dt__message_int(&dim, DIM_SIZE, width);
        dt__message_add(&shape, SHAPE_DIM, &dim);
    }
    dt__message_int(&tensor, TENSOR_TYPE, type);
    dt__message_add(&tensor, TENSOR_SHAPE, &shape);
    dt__message_add(&kind, TYPE_TENSOR, &tensor);
    dt__message_text(&value, VALUE_NAME, name);
    dt__message_add(&value, VALUE_TYPE, &kind);
    dt__message_add(&graph->body, field, &value);
}

/* ---- the file ------------------------------------------------------------------------------- */

static void add_metadata(struct dt__message *model, const char *key, const char *value)
{
    struct dt__message entry = {0};
    dt__message_text(&entry, ENTRY_KEY, key);
    dt__message_text(&entry, ENTRY_VALUE, value);
    dt__message_add(model, MODEL_METADATA, &entry);
}

/* A list of names as JSON, without those of flags; NULL: there are no names. */
static void add_names(struct dt__message *model, const char *key, char *const *names, int count,
                      struct flags flags)
{
    json_t *list = json_array();
    for (int i = 0; names && i < count; i++)
        if (i < flags.first || i >= flags.first + flags.count)
            json_array_append_new(list, dt__json_string(names[i]));
    struct dt_text text = {0};
    if (names && dt__json_add(&text, list, JSON_COMPACT)) add_metadata(model, key, text.data);
    dt__text_free(&text);
    json_decref(list);
}

/* The model, but for the graph, which is its last field. */
static void write_head(const struct graph *graph, struct dt__message *model)
{
    const struct dt_checkpoint *file = &graph->predictor->file;
    const struct dt_schema *schema = &file->schema;
    const int classes = graph->predictor->classes;
    struct dt__message opset = {0};
    char step[24], task[24];
    dt__message_int(model, MODEL_IR_VERSION, IR_VERSION);
    dt__message_text(model, MODEL_PRODUCER, "dtrain");
    dt__message_text(model, MODEL_PRODUCER_VERSION, DT_VERSION);
    dt__message_text(&opset, OPSET_DOMAIN, "");
    dt__message_int(&opset, OPSET_VERSION, OPSET);
    dt__message_add(model, MODEL_OPSET, &opset);
    snprintf(step, sizeof step, "%llu", (unsigned long long)file->step);
    add_metadata(model, "task", dt__config_word(DT_TASK_WORDS, graph->model->desc.task, task));
    add_metadata(model, "step", step);
    add_metadata(model, "layers", graph->model->desc.layers);
    add_names(model, "feature_names", schema->feature_names, schema->features, flags_of(schema));
    add_names(model, "class_names", schema->label_names, classes, (struct flags){0});
}

static dt_status write_model(struct graph *graph, const char *path)
{
    struct dt__message model = {0};
    DT_TRY(graph->status);
    write_head(graph, &model);
    dt__message_add(&model, MODEL_GRAPH, &graph->body);
    dt_status status = model.text.status;
    if (!status && model.text.length > INT32_MAX)
        status = dt_fail(DT_EFORMAT, "%s: %zu MB; an ONNX file holds 2147 MB at most", path,
                         model.text.length / 1000000);
    if (!status) status = dt__file_write(path, model.text.data, model.text.length, NULL, NULL);
    dt__text_free(&model.text);
    return status;
}

dt_status dt__onnx_write(const struct dt_predictor *predictor, const char *path)
{
    const struct dt_checkpoint *file = &predictor->file;
    const int classes = predictor->classes;
    struct graph graph = {
        .predictor = predictor, .model = predictor->model, .params = file->params};
    const struct dt_model *model = graph.model;
    if (file->schema.hash_bits && dt__schema_categories(&file->schema))
        return dt_fail(DT_EUSAGE, "hashed categories (data.hash_bits) have no translation to ONNX, "
                                  "which has no such hash");
    dt__message_text(&graph.body, GRAPH_NAME, "dtrain");
    keep(&graph, dt__alloc(model->layers, sizeof *graph.before, "ONNX", &graph.before));
    const char *x = add_inputs(&graph, &file->schema);
    for (size_t i = 0; i < model->layers && !graph.status; i++) {
        graph.before[i] = x;
        x = add_layer(&graph, &model->layer[i], x);
    }
    add_answers(&graph, x);
    add_value(&graph, GRAPH_INPUT, "input", FLOAT,
              file->schema.features - flags_of(&file->schema).count);
    add_value(&graph, GRAPH_OUTPUT, predictor->answer, FLOAT, (int)predictor->width);
    if (classes) add_value(&graph, GRAPH_OUTPUT, "class", INT64, 0);
    dt_status status = write_model(&graph, path);
    dt__names_free(graph.names.items, graph.names.count);
    dt__text_free(&graph.node.text);
    dt__text_free(&graph.body.text);
    dt_free(graph.scratch);
    dt_free(graph.before);
    return status;
}
