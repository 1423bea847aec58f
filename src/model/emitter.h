/* emitter: writes layers and answers as nodes of a graph for other runtimes. Not collective.
 *
 * A layer's row defines the nodes of the layer; src/predict/onnx.c defines how nodes are stored. A
 * value is a name. Between layers a value is a matrix (rows, numbers per row), channels last.
 * Operators and attributes have the names of ONNX, opset 17. The first failure stays in `status`,
 * and nodes added after it are dropped, so that a layer's translation reads as a list of nodes.
 * Source: https://github.com/onnx/onnx/blob/v1.12.0/docs/Operators.md */
#ifndef MODEL_EMITTER_H
#define MODEL_EMITTER_H

#include "model/layer.h"

struct dt__emitter {
    dt_status status;
    const struct dt_model *model;
    const float *params;
    const char *const *before; /* (layers) the input of each layer, up to the one being emitted */

    /* Adds a node with one output and returns the output's name: `name`, or a new one if it is
     * NULL. NULL ends the inputs. */
    const char *(*node)(struct dt__emitter *e, const char *name, const char *operator,
                        const char * const * inputs);
    /* Add an attribute to the newest node. */
    void (*ints)(struct dt__emitter *e, const char *name, size_t n, const int *values);
    void (*integer)(struct dt__emitter *e, const char *name, int64_t value);
    void (*real)(struct dt__emitter *e, const char *name, double value);
    /* Add a constant and return its name. */
    const char *(*floats)(struct dt__emitter *e, const char *name, size_t rank, const int64_t *dims,
                          const float *data);
    const char *(*list)(struct dt__emitter *e, size_t n, const int64_t *values);
    /* Returns memory that is valid until the next call; NULL after a failure. */
    void *(*scratch)(struct dt__emitter *e, size_t count, size_t size);
    /* Finds the inputs of category column `index`, from 0: the first one, and their number. */
    void (*category)(const struct dt__emitter *e, int index, int *out_first, int *out_count);
};

#define DT__NODE(e, operator, ...) DT__NAMED(e, NULL, operator, __VA_ARGS__)
#define DT__NAMED(e, name, operator, ...)                                                          \
    (e)->node(e, name, operator,(const char *const[]){__VA_ARGS__, NULL})

/* Keeps the first failure. */
static inline void dt__emit_keep(struct dt__emitter *e, dt_status status)
{
    if (!e->status) e->status = status;
}

/* ---- emitter.c: nodes that several layers use ------------------------------------------------ */

/* Emits nothing: for layers that in inference do nothing besides their activation. */
const char *dt__emit_nothing(struct dt__emitter *e, const struct dt__layer *layer, const char *x);
/* Returns a tensor of the layer ("weight", "bias"); NULL: the layer has none of that name. */
const struct dt_tensor *dt__emit_find(const struct dt__emitter *e, const struct dt__layer *layer,
                                      const char *name);
/* Returns a tensor that the layer must have; NULL and DT_EBUG: it does not. */
const struct dt_tensor *dt__emit_need(struct dt__emitter *e, const struct dt__layer *layer,
                                      const char *name);
/* Adds a tensor of the layer as a constant. */
const char *dt__emit_tensor(struct dt__emitter *e, const struct dt__layer *layer, const char *name);
const char *dt__emit_vector(struct dt__emitter *e, const char *name, size_t n, const float *data);
const char *dt__emit_scalar(struct dt__emitter *e, double value);
const char *dt__emit_reshape(struct dt__emitter *e, const char *x, size_t n, const int64_t *shape);
/* Takes inputs [first, end) of the rows. */
const char *dt__emit_slice(struct dt__emitter *e, const char *x, int64_t first, int64_t end);
/* Turns rows into pictures with channels first, as in ONNX; and pictures into rows. */
const char *dt__emit_pictures(struct dt__emitter *e, const char *x, struct dt__shape shape);
const char *dt__emit_rows(struct dt__emitter *e, const char *x, struct dt__shape shape);

/* ---- emitter.c: a task's answers, from the network's outputs (task.h) ------------------------ */

void dt__emit_two(struct dt__emitter *e, const char *x);     /* "class", "probabilities" */
void dt__emit_softmax(struct dt__emitter *e, const char *x); /* "class", "probabilities" */
void dt__emit_numbers(struct dt__emitter *e, const char *x); /* the task's `answer` */

/* Emits the conversion of outputs to the space in which members' predictions are averaged, and
 * back. */
const char *dt__emit_two_to_mean(struct dt__emitter *e, const char *x);
const char *dt__emit_two_from_mean(struct dt__emitter *e, const char *x);
const char *dt__emit_softmax_to_mean(struct dt__emitter *e, const char *x);
const char *dt__emit_log(struct dt__emitter *e, const char *x);
const char *dt__emit_numbers_to_mean(struct dt__emitter *e, const char *x);
const char *dt__emit_numbers_from_mean(struct dt__emitter *e, const char *x);

#endif
