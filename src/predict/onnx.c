/* ONNX: the graph of the nodes that the model's layers and its task emit (model/emitter.h).
 *
 * Each node and constant is written as soon as it is made, with the names of its inputs and
 * outputs. Source: the messages of https://github.com/onnx/onnx/blob/v1.12.0/onnx/onnx.proto */
#include "predict/onnx.h"

#include <math.h>
#include <string.h>

#include "model/activation.h"
#include "model/emitter.h"
#include "model/encoding.h"
#include "model/task.h"
#include "report/internal.h"
#include "table/columns.h"

enum { IR_VERSION = 8, OPSET = 17 };
enum type { FLOAT = 1, INT64 = 7 };

/* Field numbers of the messages. */
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
    struct dt__emitter emitter; /* first member, so that a pointer to it is one to the graph */
    const struct dt_schema *schema;
    struct dt__message body; /* nodes and constants so far, without the newest node */
    struct dt__message node; /* the newest node, which may still get attributes */
    struct dt__names names;  /* names of all values so far */
    int member;              /* index of the ensemble's member whose layers are being added; value
                              * names get it as a prefix; -1: none */
    void *scratch;           /* memory that emitter.scratch returns */
    size_t scratch_bytes;
};

static struct graph *graph_of(struct dt__emitter *e)
{
    return (struct graph *)e;
}

static void *scratch(struct dt__emitter *e, size_t count, size_t size)
{
    struct graph *graph = graph_of(e);
    if (!e->status)
        dt__emit_keep(
            e, dt__grow(&graph->scratch, &graph->scratch_bytes, count * size + 1, 1, "ONNX"));
    return e->status ? NULL : graph->scratch;
}

/* ---- nodes and constants -------------------------------------------------------------------- */

/* Returns the name of a new value; it lives as long as the graph. NULL makes a name up. */
static const char *value_name(struct graph *graph, const char *name)
{
    char number[32];
    char prefixed[128];
    snprintf(number, sizeof number, "v%zu", graph->names.count);
    snprintf(prefixed, sizeof prefixed, "member%d/%s", graph->member, name ? name : "");
    if (name && graph->member >= 0) name = prefixed;
    if (!name) name = number;
    dt__emit_keep(&graph->emitter, dt__names_add(&graph->names, name, strlen(name)));
    return graph->emitter.status ? "" : graph->names.items[graph->names.count - 1];
}

static void end_node(struct graph *graph)
{
    if (graph->node.text.length || graph->node.text.status)
        dt__message_add(&graph->body, GRAPH_NODE, &graph->node);
}

static const char *add_node(struct dt__emitter *e, const char *name, const char *operator,
                            const char * const * inputs)
{
    struct graph *graph = graph_of(e);
    end_node(graph);
    for (; *inputs; inputs++)
        dt__message_text(&graph->node, NODE_INPUT, *inputs);
    name = value_name(graph, name);
    dt__message_text(&graph->node, NODE_OUTPUT, name);
    dt__message_text(&graph->node, NODE_OPERATOR, operator);
    return name;
}

/* Begins an attribute of the newest node; the caller adds its value. */
static struct dt__message attribute_begin(const char *name, enum attribute type)
{
    struct dt__message attribute = {0};
    dt__message_text(&attribute, ATTRIBUTE_NAME, name);
    dt__message_int(&attribute, ATTRIBUTE_TYPE, type);
    return attribute;
}

static void add_ints(struct dt__emitter *e, const char *name, size_t n, const int *values)
{
    struct dt__message attribute = attribute_begin(name, ATTRIBUTE_LIST);
    for (size_t i = 0; i < n; i++)
        dt__message_int(&attribute, ATTRIBUTE_INTS, values[i]);
    dt__message_add(&graph_of(e)->node, NODE_ATTRIBUTE, &attribute);
}

static void add_int(struct dt__emitter *e, const char *name, int64_t value)
{
    struct dt__message attribute = attribute_begin(name, ATTRIBUTE_INT);
    dt__message_int(&attribute, ATTRIBUTE_I, value);
    dt__message_add(&graph_of(e)->node, NODE_ATTRIBUTE, &attribute);
}

static void add_float(struct dt__emitter *e, const char *name, double value)
{
    struct dt__message attribute = attribute_begin(name, ATTRIBUTE_FLOAT);
    const float rounded = (float)value;
    dt__message_fixed(&attribute, ATTRIBUTE_F, &rounded, sizeof rounded);
    dt__message_add(&graph_of(e)->node, NODE_ATTRIBUTE, &attribute);
}

static const char *add_constant(struct dt__emitter *e, const char *name, enum type type,
                                size_t rank, const int64_t *dims, const void *data)
{
    struct dt__message constant = {0};
    size_t bytes = type == FLOAT ? sizeof(float) : sizeof(int64_t);
    if (e->status) return "";
    for (size_t i = 0; i < rank; i++) {
        dt__message_int(&constant, CONSTANT_DIMS, dims[i]);
        bytes *= (size_t)dims[i];
    }
    name = value_name(graph_of(e), name);
    dt__message_int(&constant, CONSTANT_TYPE, type);
    dt__message_text(&constant, CONSTANT_NAME, name);
    dt__message_bytes(&constant, CONSTANT_BYTES, data, bytes);
    dt__message_add(&graph_of(e)->body, GRAPH_CONSTANT, &constant);
    return name;
}

static const char *add_floats(struct dt__emitter *e, const char *name, size_t rank,
                              const int64_t *dims, const float *data)
{
    return add_constant(e, name, FLOAT, rank, dims, data);
}

static const char *add_list(struct dt__emitter *e, size_t n, const int64_t *values)
{
    return add_constant(e, NULL, INT64, 1, (const int64_t[]){(int64_t)n}, values);
}

/* ---- layers --------------------------------------------------------------------------------- */

static void find_category(const struct dt__emitter *e, int index, int *out_first, int *out_count)
{
    const struct dt_column *column = ((const struct graph *)e)->schema->columns;
    for (;; column++)
        if (column->kind == DT_COLUMN_CATEGORY && !index--) break;
    *out_first = column->first + (int)dt__encoding_inputs(&e->model->desc);
    *out_count = column->ncategories + 1;
}

static const char *add_layer(struct dt__emitter *e, const struct dt__layer *layer, const char *x)
{
    if (layer->kind->emit) x = layer->kind->emit(e, layer, x);
    if (!layer->kind->emit || (layer->activation && !layer->activation->emit))
        dt__emit_keep(e, dt_fail(DT_EUSAGE, "%s: no translation to ONNX", layer->text));
    else if (layer->activation)
        x = layer->activation->emit(e, x);
    return x;
}

/* ---- the ends of the graph ------------------------------------------------------------------ */

/* Features that the graph computes itself, since they are not in its input: the flags of gaps. They
 * follow the numbers. */
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

/* Adds nodes that replace gaps, which are NaN, by means, and insert the flags of gaps. */
static const char *add_gaps(struct dt__emitter *e, const struct dt_schema *schema, const char *x)
{
    const struct flags flags = flags_of(schema);
    const int inputs = schema->features - flags.count;
    float *fill = scratch(e, (size_t)inputs, sizeof *fill);
    for (int c = 0; fill && c < schema->ncolumns; c++)
        dt__column_numbers(&schema->columns[c], fill + schema->columns[c].first);
    const char *means = dt__emit_vector(e, "fill", (size_t)inputs, fill);
    const char *gaps = DT__NODE(e, "IsNaN", x);
    x = DT__NODE(e, "Where", gaps, means, x);
    if (!flags.count) return x;
    int64_t *flagged = scratch(e, (size_t)flags.count, sizeof *flagged);
    for (int c = 0; flagged && c < schema->ncolumns; c++)
        if (schema->columns[c].flag)
            flagged[schema->columns[c].flag - flags.first] = schema->columns[c].first;
    gaps = DT__NODE(e, "Gather", gaps, add_list(e, (size_t)flags.count, flagged));
    add_int(e, "axis", 1);
    gaps = DT__NODE(e, "Cast", gaps);
    add_int(e, "to", FLOAT);
    x = DT__NODE(e, "Concat", dt__emit_slice(e, x, 0, flags.first), gaps,
                 dt__emit_slice(e, x, flags.first, inputs));
    add_int(e, "axis", 1);
    return x;
}

/* Inserts z of the encoded numbers, and their encodings, after the dense inputs. */
static const char *add_encoding(struct dt__emitter *e, const struct dt_schema *schema,
                                const char *inputs, const char *z)
{
    const char *encoding = dt__emit_encoding(e, z);
    const char *parts[] = {inputs, z, encoding, NULL, NULL};
    if (schema->dense < schema->features) {
        parts[0] = dt__emit_slice(e, inputs, 0, schema->dense);
        parts[encoding ? 3 : 2] = dt__emit_slice(e, inputs, schema->dense, schema->features);
    }
    const char *x = add_node(e, NULL, "Concat", parts);
    add_int(e, "axis", 1);
    return x;
}

static const char *add_ranks(struct dt__emitter *e, const struct dt_schema *schema, const char *raw)
{
    const struct dt_quantiles quantiles = dt__schema_quantiles(schema);
    raw = DT__NODE(e, "Gather", raw, add_list(e, quantiles.columns, schema->encoded_feature));
    add_int(e, "axis", 1);
    return dt__emit_quantile_normal(e, &quantiles, raw);
}

/* Adds nodes that compute the rows that a network reads, without encodings. *out_raw: the rows
 * before normalisation. */
static const char *add_inputs(struct dt__emitter *e, const struct dt_schema *schema,
                              const char **out_raw)
{
    const size_t n = (size_t)schema->features;
    const char *x = "input";
    /* with data.missing=error the fill of every column is NaN, else of none */
    if (schema->columns && !isnan(schema->columns->fill)) x = add_gaps(e, schema, x);
    const char *raw = x;
    /* x = (raw * scale - mean) * inv_std, clipped; without the steps that have no effect */
    if (schema->scale != 1) x = DT__NODE(e, "Mul", x, dt__emit_scalar(e, schema->scale));
    if (schema->mean) {
        x = DT__NODE(e, "Sub", x, dt__emit_vector(e, "mean", n, schema->mean));
        x = DT__NODE(e, "Mul", x, dt__emit_vector(e, "inv_std", n, schema->inv_std));
    }
    if (schema->clip > 0)
        x = DT__NODE(e, "Clip", x, dt__emit_scalar(e, -schema->clip),
                     dt__emit_scalar(e, schema->clip));
    *out_raw = raw;
    return x;
}

/* Declares "input" or an output, with its shape: (rows, width), or (rows) for width 0. */
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

/* Adds a list of names to the metadata as JSON, without the names of flags. Adds nothing if `names`
 * is NULL. */
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

/* Writes the model's fields, except the graph, which comes last. */
static void write_head(const struct dt_predictor *predictor, struct dt__message *model)
{
    const struct dt_checkpoint *file = &predictor->file;
    const struct dt_schema *schema = &file->schema;
    struct dt__message opset = {0};
    char step[24], task[24];
    dt__message_int(model, MODEL_IR_VERSION, IR_VERSION);
    dt__message_text(model, MODEL_PRODUCER, "dtrain");
    dt__message_text(model, MODEL_PRODUCER_VERSION, DT_VERSION);
    dt__message_text(&opset, OPSET_DOMAIN, "");
    dt__message_int(&opset, OPSET_VERSION, OPSET);
    dt__message_add(model, MODEL_OPSET, &opset);
    snprintf(step, sizeof step, "%llu", (unsigned long long)file->step);
    add_metadata(model, "task", dt__config_choice(DT_TASK_CHOICES, file->desc.task, task));
    add_metadata(model, "step", step);
    add_metadata(model, "layers", file->desc.layers);
    add_names(model, "feature_names", schema->feature_names, schema->features, flags_of(schema));
    add_names(model, "class_names", schema->label_names, predictor->classes, (struct flags){0});
}

static dt_status write_model(struct graph *graph, const struct dt_predictor *predictor,
                             const char *path)
{
    struct dt__message model = {0};
    DT_TRY(graph->emitter.status);
    write_head(predictor, &model);
    dt__message_add(&model, MODEL_GRAPH, &graph->body);
    dt_status status = model.text.status;
    if (!status && model.text.length > INT32_MAX)
        status = dt_fail(DT_EFORMAT, "%s: %zu MB; an ONNX file holds 2147 MB at most", path,
                         model.text.length / 1000000);
    if (!status) status = dt__file_write(path, model.text.data, model.text.length, NULL, NULL);
    dt__text_free(&model.text);
    return status;
}

/* Adds the layers of a network from its rows, x, to its outputs. z: values of the encoded numbers,
 * or NULL. */
static const char *add_network(struct graph *graph, const struct dt_model *model, const char *x,
                               const char *z)
{
    struct dt__emitter *e = &graph->emitter;
    const char **before = NULL;
    dt__emit_keep(e, dt__alloc(model->layers, sizeof *before, "ONNX", &before));
    e->model = model;
    e->before = before;
    if (model->desc.encode) x = add_encoding(e, graph->schema, x, z);
    for (size_t i = 0; i < model->layers && !e->status; i++) {
        before[i] = x;
        x = add_layer(e, &model->layer[i], x);
    }
    dt_free(before);
    e->before = NULL;
    return x;
}

/* Adds the members of an ensemble and the mean of their outputs. Each member has separate tensors,
 * whose names begin with the member's number. */
static const char *add_members(struct graph *graph, const struct dt_model *model, const char *x,
                               const char *z)
{
    struct dt__emitter *e = &graph->emitter;
    const float *params = e->params;
    const char *sum = NULL;
    for (int m = 0; m < model->members; m++) {
        graph->member = m;
        const char *output = add_network(graph, model->member[m], x, z);
        e->params += model->member[m]->params;
        e->model = model;
        output = model->loss->task->emit_to_mean(e, output);
        sum = sum ? DT__NODE(e, "Add", sum, output) : output;
    }
    graph->member = -1;
    e->params = params;
    sum = DT__NODE(e, "Div", sum, dt__emit_scalar(e, model->members));
    return model->loss->task->emit_from_mean(e, sum);
}

/* Adds the ends of intervals: the lowest value of each target in the answer minus the margin, and
 * the highest value plus the margin. */
static void add_interval(struct dt__emitter *e, const struct dt_predictor *predictor)
{
    const int64_t each = predictor->model->outputs.each;
    const int64_t by_target[] = {-1, each}, by_row[] = {-1, (int64_t)predictor->targets};
    const char *values = dt__emit_reshape(e, predictor->answer, 2, by_target);
    const char *low = dt__emit_reshape(e, dt__emit_slice(e, values, 0, 1), 2, by_row);
    const char *high = dt__emit_reshape(e, dt__emit_slice(e, values, each - 1, each), 2, by_row);
    const char *margin = dt__emit_vector(e, "margin", predictor->targets, predictor->margin);
    DT__NAMED(e, "low", "Sub", low, margin);
    DT__NAMED(e, "high", "Add", high, margin);
}

/* Adds all nodes, from the input to the answers. */
static void fill_graph(struct graph *graph, const struct dt_predictor *predictor)
{
    struct dt__emitter *e = &graph->emitter;
    const struct dt_model *model = e->model;
    const char *raw, *x = add_inputs(e, graph->schema, &raw);
    const char *z = graph->schema->encoded ? add_ranks(e, graph->schema, raw) : NULL;
    x = model->members ? add_members(graph, model, x, z) : add_network(graph, model, x, z);
    e->model = model;
    const float cool = model->outputs.cool;
    if (cool != 1) x = DT__NODE(e, "Mul", x, dt__emit_scalar(e, (double)cool));
    model->loss->task->emit(e, x);
    if (predictor->margin) add_interval(e, predictor);
    end_node(graph);
}

dt_status dt__onnx_write(const struct dt_predictor *predictor, const char *path)
{
    const struct dt_checkpoint *file = &predictor->file;
    const struct dt_model *model = predictor->model;
    struct graph graph = {.member = -1,
                          .emitter = {.model = model,
                                      .params = file->params,
                                      .node = add_node,
                                      .ints = add_ints,
                                      .integer = add_int,
                                      .real = add_float,
                                      .floats = add_floats,
                                      .list = add_list,
                                      .scratch = scratch,
                                      .category = find_category},
                          .schema = &file->schema};
    if (file->schema.hash_bits && dt__schema_categories(&file->schema))
        return dt_fail(DT_EUSAGE, "hashed categories (data.hash_bits) have no translation to ONNX, "
                                  "which has no such hash");
    dt__message_text(&graph.body, GRAPH_NAME, "dtrain");
    fill_graph(&graph, predictor);
    add_value(&graph, GRAPH_INPUT, "input", FLOAT,
              file->schema.features - flags_of(&file->schema).count);
    add_value(&graph, GRAPH_OUTPUT, predictor->answer, FLOAT, (int)predictor->width);
    if (predictor->classes) add_value(&graph, GRAPH_OUTPUT, "class", INT64, 0);
    if (predictor->margin) add_value(&graph, GRAPH_OUTPUT, "low", FLOAT, (int)predictor->targets);
    if (predictor->margin) add_value(&graph, GRAPH_OUTPUT, "high", FLOAT, (int)predictor->targets);
    dt_status status = write_model(&graph, predictor, path);
    dt__names_free(graph.names.items, graph.names.count);
    dt__text_free(&graph.node.text);
    dt__text_free(&graph.body.text);
    dt_free(graph.scratch);
    return status;
}
