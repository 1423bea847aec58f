/* layer: the interface of a kind of layer. A new kind is a file below layers/ with its row, and the
 * row's name in the table of description.c.
 *
 * A model is made in three passes over its text: each item is parsed by its kind, activations and
 * dropout move into the layer before them if that accepts them (its `epilogue`), and shapes are
 * inferred from the first layer to the last. A layer's parameters are contiguous, its tensors in
 * the order in which `infer` declares them. */
#ifndef MODEL_LAYER_H
#define MODEL_LAYER_H

#include "model/model.h"

#define DT__NORM_EPSILON 1e-5 /* of batchnorm and layernorm */

/* Shape of a row: height, width, channels, channels last. Plain features are 1 x 1 x n. */
struct dt__shape {
    int h, w, c;
};
static inline size_t dt__shape_size(struct dt__shape shape)
{
    return (size_t)shape.h * (size_t)shape.w * (size_t)shape.c;
}

/* The words of an item after the kind's name. */
struct dt__layer_args {
    char *const *text;
    int count;
};

struct dt__activation; /* activation.h */
struct dt__emitter;    /* emitter.h */

struct dt__layer {
    const struct dt__layer_kind *kind;
    char *text; /* its item, and the items that moved into it */
    struct dt__shape in, out;
    int index;         /* index among the layers with parameters; -1: none */
    size_t begin, end; /* its trained tensors' range of the flat vector */
    size_t macs;       /* multiply-adds of a row, forward */
    size_t keep;       /* floats per row from forward to backward, besides the output */
    size_t work;       /* floats per row that forward and backward need temporarily */
    size_t states;     /* where its state tensors begin in the flat vector */
    int row_sparse;    /* index of its row-sparse tensor in the model; -1: none */
    bool last;         /* the output layer */
    bool split;        /* workers have parts of its columns: its tensors follow all others */
    int link;          /* for the two ends of a residual: index of the other end; else -1 */

    /* The epilogue, or all of a layer that is only an activation or dropout. */
    const struct dt__activation *activation; /* NULL: none */
    double dropout;                          /* probability to drop a unit */
    uint64_t drop_number;                    /* number of the first unit of a draw */

    int size[8]; /* the kind's numbers, from its args or from infer: widths, strides */
    double rate; /* a real number of the kind */
};

/* One call of forward or backward. Matrices are row-major, without padding; `params` and `grad` are
 * at the layer's range of the flat vector. */
struct dt__layer_call {
    const struct dt__layer *layer;
    void *state; /* made by the kind's open; NULL without one */
    const struct dt_batch *batch;
    int rows;
    bool apart; /* forward: a row's bits must not depend on the other rows */
    const float *params;
    const void *copy; /* of its factored matrix, in the layout of its products; NULL: not kept */
    const float *x;   /* (rows, in) */
    float *y;         /* (rows, out) */
    float *keep;      /* (rows, keep); NULL: no backward pass follows, and nothing is dropped */
    float *work;      /* (rows, work) */
    const struct dt_rng *dropout; /* key of the draw's masks; NULL: nothing is dropped */
    const float *states;          /* the current state tensors of the layer */
    float *state_grad; /* out, of the forward pass: rows * (new - seen) of the state tensors; NULL:
                        * inference */
    const float *link_x; /* of the linked layer: its input */
    float *link_keep;    /* and its kept floats */

    /* Backward. */
    float *dy;       /* (rows, out) gradient by y; may be overwritten */
    float *dx;       /* (rows, in), out: gradient by x; NULL: not needed. Never dy */
    float *grad;     /* out: gradient by params */
    bool accumulate; /* grad += gradient */
    const struct dt__entries
        *entries;  /* entries by input, for a batch with a sparse part; else NULL */
    void *factors; /* destination of the factors of its gradient; NULL: the gradient is whole */
    const struct dt_touched *touched; /* list of the touched rows of the layer's row-sparse tensor
                                       * (entries.h); NULL: its gradient is whole */
};

struct dt__layer_kind {
    const char *name;
    const char *usage;  /* "dense N [activation]" */
    bool epilogue;      /* takes a following activation and dropout into itself */
    bool same_gradient; /* dx is dy: backward, if the kind has one, changes it in place */
    bool sparse;        /* as the first layer, accepts batches with a sparse part */
    bool splits;        /* accepts the word split after all others */
    /* Parses the args into size and rate. false: not as in `usage`. */
    bool (*parse)(struct dt__layer *layer, struct dt__layer_args args);
    /* Infers out, macs, keep, work and the tensors from `in`; on entry out equals `in`. NULL: it
     * stays so. DT_EUSAGE: the shape does not fit. */
    dt_status (*infer)(struct dt_model *model, struct dt__layer *layer);
    /* Opens what a network needs besides floats, e.g. primitives for up to max_rows rows; bf16:
     * compute gradients with bf16 operands, if the kind supports it. *out_state NULL, or open NULL:
     * nothing. */
    dt_status (*open)(const struct dt__layer *layer, int max_rows, bool bf16, void **out_state);
    void (*close)(void *state);
    /* Describes, in bf16, the matrix whose gradient may be factors; false: this layer has none.
     * NULL: the kind has none. */
    bool (*factored)(const struct dt__layer *layer, int max_rows, struct dt_factored *out);
    /* Computes a tile of that gradient from the factors that a backward call left. */
    dt_status (*tile)(void *state, const void *factors, struct dt_tile tile, float *out);
    dt_status (*forward)(const struct dt__layer_call *call); /* NULL: the output is the input */
    dt_status (*backward)(const struct dt__layer_call *call);
    /* Emits the nodes that compute the layer in inference, without its activation, from the value
     * x, and returns the computed value. NULL: other runtimes do not know the layer. */
    const char *(*emit)(struct dt__emitter *e, const struct dt__layer *layer, const char *x);
};

/* description.c: parses the layers of model->desc, including the output layer. DT_EUSAGE: names the
 * wrong item. */
dt_status dt__layers_parse(struct dt_model *model);
/* Writes the text of all layers, from which the same layers follow; the caller frees it. */
dt_status dt__layers_text(const struct dt_model *model, char **out);
void dt__layers_free(struct dt_model *model);

/* For infer: declares the layer's next tensor. The k-th tensor's initial values have the key (seed,
 * layer, k). */
dt_status dt__layer_tensor(struct dt_model *model, struct dt__layer *layer, const char *name,
                           const struct dt_tensor *tensor);
/* Reads a text as a whole number of at least `least`, at most DT_MAX_WIDTH. */
bool dt__arg_int(const char *text, int least, int *out);
bool dt__arg_real(const char *text, double *out);
/* Reads "3" (both) or "3x5". */
bool dt__arg_pair(const char *text, int least, int *out_first, int *out_second);
/* Makes the layer a split one, as its text then says. */
dt_status dt__layer_split(struct dt__layer *layer);
/* Returns true if the layer may be split: an output layer of a softmax, without a linear path
 * besides. */
bool dt__layer_splits(const struct dt_model *model, const struct dt__layer *layer);
/* For parse: reads one whole number of at least 1 into size[0]. */
bool dt__parse_width(struct dt__layer *layer, struct dt__layer_args args);

/* The rows of the table. */
extern const struct dt__layer_kind dt__dense_layer, dt__dropout_layer, dt__activation_layer,
    dt__conv_layer, dt__conv1d_layer, dt__maxpool_layer, dt__avgpool_layer, dt__globalpool_layer,
    dt__flatten_layer, dt__upsample_layer, dt__batchnorm_layer, dt__layernorm_layer,
    dt__residual_layer, dt__residual_end_layer, dt__scale_layer, dt__embedding_layer,
    dt__wide_layer;

#endif
