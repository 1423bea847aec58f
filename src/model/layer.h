/* layer: what a kind of layer is. Adding one is a file below layers/ with its row, and the row's
 * name in the table of description.c.
 *
 * A model is made in three passes over its text: each item is parsed by its kind, activations and
 * dropout move into the layer before them if that takes them (its `epilogue`), and shapes are
 * inferred from the first layer to the last. A layer's parameters are contiguous, its tensors in
 * the order in which `infer` declares them. */
#ifndef MODEL_LAYER_H
#define MODEL_LAYER_H

#include "model/model.h"

#define DT__NORM_EPSILON 1e-5 /* of batchnorm and layernorm */

/* Of a row: height, width, channels, channels last. Plain features are 1 x 1 x n. */
struct dt__shape {
    int h, w, c;
};
static inline size_t dt__shape_size(struct dt__shape shape)
{
    return (size_t)shape.h * (size_t)shape.w * (size_t)shape.c;
}

/* The words of an item behind the kind's name. */
struct dt__words {
    char *const *word;
    int count;
};

struct dt__activation; /* activation.h */
struct dt__emitter;    /* emitter.h */

struct dt__layer {
    const struct dt__layer_kind *kind;
    char *text; /* its item, and those that moved into it */
    struct dt__shape in, out;
    int index;         /* among the layers with parameters; -1: has none */
    size_t begin, end; /* its trained tensors' range of the flat vector */
    size_t macs;       /* multiply-adds of a row, forward */
    size_t keep;       /* floats a row from forward to backward, beside its output */
    size_t work;       /* floats a row that forward and backward need meanwhile */
    size_t states;     /* where its state tensors begin in the flat vector */
    int row_sparse;    /* the number of its row-sparse tensor among the model's; -1: has none */
    bool last;         /* the output layer */
    bool split;        /* workers have parts of its columns: its tensors stand behind all others */
    int link;          /* of a residual's two ends: the number of the other one; else -1 */

    /* Of the epilogue, or of a layer that is nothing else. */
    const struct dt__activation *activation; /* NULL: none */
    double dropout;                          /* probability to drop a unit */
    uint64_t drop_number;                    /* of the first unit of a draw */

    int size[8]; /* the kind's own numbers, from its words or from infer: widths, strides */
    double rate; /* likewise */
};

/* One call of forward or backward. Matrices are row-major, without padding; `params` and `grad` are
 * at the layer's own range of the flat vector. */
struct dt__layer_call {
    const struct dt__layer *layer;
    void *state; /* that the kind's open made; NULL without one */
    const struct dt_batch *batch;
    int rows;
    bool apart; /* forward: a row's bits must not depend on the other rows */
    const float *params;
    const void *copy; /* of its factored matrix, as its products read it; NULL: not kept */
    const float *x;   /* (rows, in) */
    float *y;         /* (rows, out) */
    float *keep;      /* (rows, keep); NULL: no backward pass will come, nothing is dropped */
    float *work;      /* (rows, work) */
    const struct dt_rng *dropout; /* key of the draw's masks; NULL: nothing is dropped */
    const float *states;          /* the layer's state tensors, as they are */
    float *state_grad; /* out, of the forward pass: rows * (new - seen) of them; NULL: inference */
    const float *link_x; /* of the linked layer: its input */
    float *link_keep;    /* and what it keeps */

    /* Backward. */
    float *dy;       /* (rows, out) gradient by y; may be spoiled */
    float *dx;       /* (rows, in), out: gradient by x; NULL: not wanted. Never dy */
    float *grad;     /* out: gradient by params */
    bool accumulate; /* grad += gradient */
    const struct dt__entries
        *entries;  /* of a batch with a sparse part, by their inputs; else NULL */
    void *factors; /* where the factors of its gradient go instead of that; NULL: it is whole */
    const struct dt_touched *touched; /* where the touched rows of the layer's row-sparse tensor are
                                        * listed (entries.h); NULL: its gradient is whole */
};

struct dt__layer_kind {
    const char *name;
    const char *usage;  /* "dense N [activation]" */
    bool epilogue;      /* takes an activation and dropout that follow into itself */
    bool same_gradient; /* dx is dy: backward, if there is one, changes it in place */
    bool sparse;        /* as the first layer, takes batches with a sparse part */
    bool splits;        /* takes the word split behind all others */
    /* The words into size and rate. false: not as `usage` has it. */
    bool (*parse)(struct dt__layer *layer, struct dt__words words);
    /* From `in`: out, macs, keep, work, and the tensors; out is `in` before. NULL: it stays that.
     * DT_EUSAGE: the shape does not suit. */
    dt_status (*infer)(struct dt_model *model, struct dt__layer *layer);
    /* What a network needs beside floats, e.g. primitives for up to max_rows rows; bf16: gradients
     * are to be computed with operands in it, if the kind does that. *out_state NULL, or open NULL:
     * nothing. */
    dt_status (*open)(const struct dt__layer *layer, int max_rows, bool bf16, void **out_state);
    void (*close)(void *state);
    /* In bf16: the matrix whose gradient may be factors; false: this layer has none. NULL: the kind
     * has none. */
    bool (*factored)(const struct dt__layer *layer, int max_rows, struct dt_factored *out);
    /* A tile of that gradient, from the factors that a backward call left. */
    dt_status (*tile)(void *state, const void *factors, struct dt_tile tile, float *out);
    dt_status (*forward)(const struct dt__layer_call *call); /* NULL: the output is the input */
    dt_status (*backward)(const struct dt__layer_call *call);
    /* Emits the nodes that compute the layer in inference, but for its activation, from the value
     * x, and returns the value that they compute. NULL: no other runtime knows the layer. */
    const char *(*emit)(struct dt__emitter *e, const struct dt__layer *layer, const char *x);
};

/* description.c: the layers of model->desc, the output layer with them. DT_EUSAGE: the item that is
 * wrong. */
dt_status dt__layers_parse(struct dt_model *model);
/* The text of all layers, which comes to them; the caller frees it. */
dt_status dt__layers_text(const struct dt_model *model, char **out);
void dt__layers_free(struct dt_model *model);

/* For infer: declares the layer's next tensor. The k-th tensor's initial values have the key (seed,
 * layer, k). */
dt_status dt__layer_tensor(struct dt_model *model, struct dt__layer *layer, const char *name,
                           const struct dt_tensor *tensor);
/* A word as a whole number of at least `least`, at most DT_MAX_WIDTH. */
bool dt__word_int(const char *word, int least, int *out);
bool dt__word_real(const char *word, double *out);
/* "3" (both) or "3x5". */
bool dt__word_pair(const char *word, int least, int *out_first, int *out_second);
/* Makes the layer a split one, as its text then says. */
dt_status dt__layer_split(struct dt__layer *layer);
/* Whether it may be one: an output layer of a softmax, without a linear path beside it. */
bool dt__layer_splits(const struct dt_model *model, const struct dt__layer *layer);
/* For parse: one whole number of at least 1, into size[0]. */
bool dt__parse_width(struct dt__layer *layer, struct dt__words words);

/* The rows of the table. */
extern const struct dt__layer_kind dt__dense_layer, dt__dropout_layer, dt__activation_layer,
    dt__conv_layer, dt__conv1d_layer, dt__maxpool_layer, dt__avgpool_layer, dt__globalpool_layer,
    dt__flatten_layer, dt__upsample_layer, dt__batchnorm_layer, dt__layernorm_layer,
    dt__residual_layer, dt__residual_end_layer, dt__scale_layer, dt__embedding_layer,
    dt__wide_layer;

#endif
