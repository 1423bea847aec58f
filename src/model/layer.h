/* layer: the interface of a kind of layer. To add a kind, define its row in a file in layers/, and
 * add the row to the table in description.c.
 *
 * A model is made in three passes over its text. Each item is parsed by its kind. An activation or
 * dropout becomes the epilogue of the layer before it, if that layer's kind accepts one. Then
 * shapes are inferred from the first layer to the last. A layer's parameters are contiguous; its
 * tensors are in the order in which `infer` declares them. */
#ifndef MODEL_LAYER_H
#define MODEL_LAYER_H

#include "model/model.h"

#define DT__NORM_EPSILON 1e-5 /* of batchnorm and layernorm */

/* Shape of a row: height, width, channels; channels vary fastest. Plain features are 1 x 1 x n. */
struct dt__shape {
    int h, w, c;
};
static inline size_t dt__shape_size(struct dt__shape shape)
{
    return (size_t)shape.h * (size_t)shape.w * (size_t)shape.c;
}

/* The words of an item that follow the name of the kind. */
struct dt__layer_args {
    char *const *text;
    int count;
};

struct dt__activation; /* activation.h */
struct dt__emitter;    /* emitter.h */

struct dt__layer {
    const struct dt__layer_kind *kind;
    char *text; /* its item, and the items of its epilogue */
    struct dt__shape in, out;
    int index;         /* index among the layers with parameters; -1: it has none */
    size_t begin, end; /* range of its trained tensors in the flat vector */
    size_t macs;       /* multiply-adds of a row, forward */
    size_t keep;       /* floats per row, besides the output, that forward leaves for backward */
    size_t work;       /* floats per row of scratch memory for forward and backward */
    size_t states;     /* offset of its state tensors in the flat vector */
    int row_sparse;    /* index of its row-sparse tensor in the model; -1: none */
    bool last;         /* the output layer */
    bool split;        /* workers have parts of its columns; its tensors follow all others */
    int link;          /* residual and residual_end: index of the other layer of the pair; else
                        * -1 */

    /* The epilogue; or the whole layer, if it is only an activation or dropout. */
    const struct dt__activation *activation; /* NULL: none */
    double dropout;                          /* probability to drop a unit */
    uint64_t drop_number; /* drop number (activation.h) of the first unit of a draw's row 0 */

    int size[8]; /* integers of the kind, from its args or from infer: widths, strides */
    double rate; /* a real number of the kind */
};

/* Arguments of one call of forward or backward. Matrices are row-major, without padding; `params`
 * and `grad` point to the layer's range of the flat vector. */
struct dt__layer_call {
    const struct dt__layer *layer;
    void *state; /* made by the kind's open; NULL: the kind has no open */
    const struct dt_batch *batch;
    int rows;
    bool rowwise; /* forward: a row's bits must not depend on the other rows */
    const float *params;
    const void *copy; /* bf16 copy of the weights of its factored matrix, packed for the products;
                       * NULL: no copy */
    const float *x;   /* (rows, in) */
    float *y;         /* (rows, out) */
    float *keep;      /* (rows, keep); NULL: inference, without backward pass and dropout */
    float *work;      /* (rows, work) */
    const struct dt_rng *dropout; /* key of the draw's masks; NULL: no dropout */
    const float *states;          /* the current state tensors of the layer */
    float *state_grad;   /* written by forward: for the state tensors, rows * (new value - value in
                        * `states`); NULL: inference */
    const float *link_x; /* input of the linked layer */
    float *link_keep;    /* `keep` of the linked layer */

    /* Backward. */
    float *dy;       /* (rows, out) gradient by y; may be overwritten */
    float *dx;       /* (rows, in) out: gradient by x; NULL: not needed. It is the memory of dy if
                      * the kind has `same_gradient`, else other memory */
    float *grad;     /* out: gradient by params */
    bool accumulate; /* grad += gradient */
    const struct dt__entries
        *entries;  /* a sparse batch's entries, sorted by input; NULL: the batch is dense */
    void *factors; /* destination of the gradient's factors; NULL: the gradient goes to grad */
    const struct dt_touched *touched; /* out: list of the touched rows of the layer's row-sparse
                                       * tensor (entries.h), whose gradient has only these rows;
                                       * NULL: it has all rows */
};

struct dt__layer_kind {
    const char *name;
    const char *usage;  /* "dense N [activation]" */
    bool epilogue;      /* takes the activation and dropout items that follow it */
    bool same_gradient; /* dx is dy: backward changes it in place; backward NULL: not at all */
    bool sparse;        /* as the first layer, accepts batches with a sparse part */
    bool splits;        /* accepts `split` as its last word */
    /* Parses the args into size and rate. Returns false if they do not match `usage`. */
    bool (*parse)(struct dt__layer *layer, struct dt__layer_args args);
    /* Infers out, macs, keep and work, and declares the tensors. On entry `out` equals `in`. If
     * `infer` is NULL, they remain equal. DT_EUSAGE: the shape does not fit. */
    dt_status (*infer)(struct dt_model *model, struct dt__layer *layer);
    /* Creates what a network needs for the layer besides floats, e.g. primitives for up to max_rows
     * rows. bf16: gradients are computed with bf16 operands, if the kind supports it. *out_state
     * may be NULL; open NULL: nothing is needed. */
    dt_status (*open)(const struct dt__layer *layer, int max_rows, bool bf16, void **out_state);
    void (*close)(void *state);
    /* Describes the matrix whose gradient may be computed as factors in bf16; returns false if this
     * layer has none. NULL: no layer of the kind has one. */
    bool (*factored)(const struct dt__layer *layer, int max_rows, struct dt_factored *out);
    /* Computes a tile of that matrix's gradient from the factors that a backward call wrote. */
    dt_status (*tile)(void *state, const void *factors, struct dt_tile tile, float *out);
    dt_status (*forward)(const struct dt__layer_call *call); /* NULL: the output is the input */
    dt_status (*backward)(const struct dt__layer_call *call);
    /* Emits the nodes that compute the layer, without its activation, from the value x in
     * inference; returns the result. NULL: the layer has no equivalent in other runtimes. */
    const char *(*emit)(struct dt__emitter *e, const struct dt__layer *layer, const char *x);
};

/* Parses the layers of model->desc, including the output layer (description.c). DT_EUSAGE: an item
 * is wrong; the message names it. */
dt_status dt__layers_parse(struct dt_model *model);
/* Writes the text of all layers, from which dt__layers_parse makes the same layers. The caller
 * frees it. */
dt_status dt__layers_text(const struct dt_model *model, char **out);
void dt__layers_free(struct dt_model *model);

/* Declares the layer's next tensor; called by infer. The key of the random initial values of the
 * layer's tensor number k is (seed, layer, k). */
dt_status dt__layer_tensor(struct dt_model *model, struct dt__layer *layer, const char *name,
                           const struct dt_tensor *tensor);
/* Reads a whole number from `least` to DT_MAX_WIDTH. Returns false if the text is not such a
 * number. */
bool dt__arg_int(const char *text, int least, int *out);
bool dt__arg_real(const char *text, double *out);
/* Reads "3x5", or "3" for "3x3". */
bool dt__arg_pair(const char *text, int least, int *out_first, int *out_second);
/* Makes the layer a split one, and adds `split` to its text. */
dt_status dt__layer_split(struct dt__layer *layer);
/* Returns true if the layer may be split. An output layer may be split only if its loss is softmax
 * and the model has no linear path. */
bool dt__layer_splits(const struct dt_model *model, const struct dt__layer *layer);
/* Parses one whole number, at least 1, into size[0]; a `parse` for many kinds. */
bool dt__parse_width(struct dt__layer *layer, struct dt__layer_args args);

/* The rows of the table of kinds. */
extern const struct dt__layer_kind dt__dense_layer, dt__dropout_layer, dt__activation_layer,
    dt__conv_layer, dt__conv1d_layer, dt__maxpool_layer, dt__avgpool_layer, dt__globalpool_layer,
    dt__flatten_layer, dt__upsample_layer, dt__batchnorm_layer, dt__layernorm_layer,
    dt__residual_layer, dt__residual_end_layer, dt__scale_layer, dt__embedding_layer,
    dt__wide_layer;

#endif
