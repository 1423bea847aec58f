/* emitter: writes layers and answers as nodes of a graph for other runtimes. Not collective.
 *
 * The row of a layer's kind defines the layer's nodes; src/predict/onnx.c defines how nodes are
 * stored. A value is identified by its name. Between layers a value is a matrix (rows, numbers per
 * row), channels last. Operators and attributes have the names of ONNX, opset 17. `status` holds
 * the first failure, and later nodes are dropped, so that a layer's `emit` needs no error handling.
 * Source: https://github.com/onnx/onnx/blob/v1.12.0/docs/Operators.md */
#ifndef MODEL_EMITTER_H
#define MODEL_EMITTER_H

#include "model/layer.h"

struct dt__emitter {
    dt_status status;
    const struct dt_model *model;
    const float *params;
    const char *const *before; /* (layers) the input of each layer up to the current one */

    /* Adds a node with one output and returns the output's name: `name`, or a generated one if it
     * is NULL. NULL ends the list of inputs. */
    const char *(*node)(struct dt__emitter *e, const char *name, const char *operator,
                        const char * const * inputs);
    /* Add an attribute to the last node that was added. */
    void (*ints)(struct dt__emitter *e, const char *name, size_t n, const int *values);
    void (*integer)(struct dt__emitter *e, const char *name, int64_t value);
    void (*real)(struct dt__emitter *e, const char *name, double value);
    /* Add a constant and return its name. */
    const char *(*floats)(struct dt__emitter *e, const char *name, size_t rank, const int64_t *dims,
                          const float *data);
    const char *(*list)(struct dt__emitter *e, size_t n, const int64_t *values);
    /* Returns memory that is valid until the next call; NULL after a failure. */
    void *(*scratch)(struct dt__emitter *e, size_t count, size_t size);
    /* Finds the inputs of category column `index`, counted from 0: the first input, and their
     * number. */
    void (*category)(const struct dt__emitter *e, int index, int *out_first, int *out_count);
};

#define DT__NODE(e, operator, ...) DT__NAMED(e, NULL, operator, __VA_ARGS__)
#define DT__NAMED(e, name, operator, ...)                                                          \
    (e)->node(e, name, operator,(const char *const[]){__VA_ARGS__, NULL})

/* Records a failure, unless there is an earlier one. */
static inline void dt__emit_keep(struct dt__emitter *e, dt_status status)
{
    if (!e->status) e->status = status;
}

/* ---- emitter.c: nodes that several layers use ------------------------------------------------ */

/* Emits nothing: for layers that do nothing in inference except their activation. */
const char *dt__emit_nothing(struct dt__emitter *e, const struct dt__layer *layer, const char *x);
/* Returns the layer's tensor `name` ("weight", "bias"); NULL: the layer has none of that name. */
const struct dt_tensor *dt__emit_find(const struct dt__emitter *e, const struct dt__layer *layer,
                                      const char *name);
/* Returns the layer's tensor `name`; if there is none, returns NULL and records DT_EBUG. */
const struct dt_tensor *dt__emit_need(struct dt__emitter *e, const struct dt__layer *layer,
                                      const char *name);
/* Emits the layer's tensor `name` as a constant. */
const char *dt__emit_tensor(struct dt__emitter *e, const struct dt__layer *layer, const char *name);
const char *dt__emit_vector(struct dt__emitter *e, const char *name, size_t n, const float *data);
const char *dt__emit_scalar(struct dt__emitter *e, double value);
const char *dt__emit_reshape(struct dt__emitter *e, const char *x, size_t n, const int64_t *shape);
/* Emits inputs [first, end) of the rows of x. */
const char *dt__emit_slice(struct dt__emitter *e, const char *x, int64_t first, int64_t end);
/* dt__emit_pictures converts rows to pictures with channels first, as in ONNX; dt__emit_rows
 * converts them back. */
const char *dt__emit_pictures(struct dt__emitter *e, const char *x, struct dt__shape shape);
const char *dt__emit_rows(struct dt__emitter *e, const char *x, struct dt__shape shape);

/* ---- emitter.c: a task's answers, from the network's outputs (task.h) ------------------------ */

void dt__emit_two(struct dt__emitter *e, const char *x);     /* "class", "probabilities" */
void dt__emit_softmax(struct dt__emitter *e, const char *x); /* "class", "probabilities" */
void dt__emit_numbers(struct dt__emitter *e, const char *x); /* the task's `answer` */

/* Emit the conversion of outputs to the space in which members' predictions are averaged
 * (dt__model_to_mean), and back. */
const char *dt__emit_two_to_mean(struct dt__emitter *e, const char *x);
const char *dt__emit_two_from_mean(struct dt__emitter *e, const char *x);
const char *dt__emit_softmax_to_mean(struct dt__emitter *e, const char *x);
const char *dt__emit_log(struct dt__emitter *e, const char *x);
const char *dt__emit_numbers_to_mean(struct dt__emitter *e, const char *x);
const char *dt__emit_numbers_from_mean(struct dt__emitter *e, const char *x);

#endif
