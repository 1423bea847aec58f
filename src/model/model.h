/* model: networks over one flat parameter vector, tasks, optimizers, schedules, metrics. No MPI.
 *
 * A model is a list of layers and a list of named tensors, both made from a text (struct
 * dt_model_desc). Matrices are row-major f32. Kernels do not allocate; the memory of a call is in
 * a struct dt_network created once for the largest batch. */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include "base/base.h"
#include "base/batch.h"
#include "config/config.h"

enum { DT_MAX_WIDTH = 1048576, DT_EVAL_CHUNK = 256, DT_MAX_CONFUSION = 1024 };

/* ---- BLAS ----------------------------------------------------------------------------------- */

/* Chooses the kernel of matrix products: `kernel` is a value of run.kernel. Not collective. Call it
 * before the process's first product, since OpenBLAS is loaded here and reads its kernel once.
 * Without a call the kernel is "auto". DT_EUSAGE: this machine cannot run it. DT_EIO: no
 * OpenBLAS. */
dt_status dt__blas_select(const char *kernel);
/* Chooses the products of run.precision=bf16, with bf16 operands and f32 sums; call it before
 * dt__blas_select. They are the fastest that this CPU has, or the ones that `kernel` names after
 * "-bf16-": amx, avx512 or reference. *out_native false: the CPU has none, and operands are rounded
 * and multiplied in f32. NULL: products that follow are in f32, and so is dt__blas_kernel's name.
 * DT_EUSAGE: the CPU lacks the one asked for. */
dt_status dt__bf16_select(const char *kernel, bool *out_native);
/* Returns the kernel for this CPU, from a table by its vectors and its model: "oneDNN", or one of
 * OpenBLAS's ("Haswell", ...); NULL: not in the table, and OpenBLAS chooses. */
const char *dt__blas_kernel_for_cpu(void);
/* Multiplies with "oneDNN" from now on, if that is the kernel's name and the CPU supports it; else
 * with OpenBLAS, as before. Returns true if with oneDNN. */
bool dt__blas_choose(const char *kernel);
/* Returns the active kernel: "oneDNN", or OpenBLAS's, e.g. "Haswell"; "oneDNN-bf16-amx" and the
 * like. */
const char *dt__blas_kernel(void);
const char *dt__blas_version(void); /* OpenBLAS's text */
enum { DT_ONEDNN_VERSION = 32 };
/* Writes the version that this was built with, "2.6.3", to buffer, and returns it. */
const char *dt__onednn_version(char buffer[DT_ONEDNN_VERSION]);
void dt__blas_set_threads(int threads);

/* ---- model ---------------------------------------------------------------------------------- */

/* The definition of a network; kept in checkpoints and exports. */
struct dt_model_desc {
    char *layers; /* "dense 512 relu, dropout 0.2, dense 256 relu"; "linear": only the output
                   * layer */
    int shape[3]; /* height, width, channels of a row; n plain features are 1, 1, n */
    int nout;     /* logits: 1 for two classes, C for more; or outputs of a target times targets */
    int task;     /* enum dt_task */
    int loss;     /* enum dt_loss; auto: the task's usual one */
    double huber_delta; /* for DT_LOSS_HUBER; in standard deviations if targets have units */
    char *quantiles;    /* for DT_LOSS_QUANTILE: "0.1,0.9"; else may be NULL */
    /* with an embedding or an encoding: the leading features that are numbers; else 0 */
    int dense;
    int categories;      /* with an embedding or an encoding: entries of each row in the other
                         * features, one per column; else 0 */
    int encode;          /* enum dt_encode, for numbers; none: the members below are 0 */
    int encode_columns;  /* encoded numbers: a batch has a z for each */
    int encode_width;    /* inputs for each, besides z */
    int encode_count;    /* floats in the table */
    float *encode_table; /* column after column: frequencies, or edges of bins */
    /* Dense layers with at least this many weights become split ones, an output layer only if it
     * has many classes; 0: none. In a model it is 0, and the text names the split layers. */
    int64_t split;
    int parts; /* of split layers: layers with fewer outputs stay whole; 0: no limit */
};
void dt__model_desc_free(struct dt_model_desc *desc);
/* Computes the outputs of a target: the number of quantiles, or 1. DT_EUSAGE: the text is wrong. */
dt_status dt__model_desc_each(const struct dt_model_desc *desc, int *out);

/* Writes the network's text to model.layers: the given text, checked and in canonical form, or the
 * expansion of model.kind, hidden, activation and dropout.
 * DT_EUSAGE: the text or a short form is wrong, or both are given; or model.task has no such
 * train.loss. */
dt_status dt__model_resolve(struct dt_config *config);

/* A named array of parameters, row-major in the flat vector. Saving, printing, initialising and
 * updating go over the tensors. */
struct dt_tensor {
    char name[64]; /* "layers/0/weight" */
    int rank;
    size_t shape[4];
    size_t offset, count; /* offset and size in the flat vector, in floats */
    int layer;            /* index of its layer among the layers with parameters; a trained tensor's
                           * bucket */
    enum { DT_TENSOR_WEIGHT, DT_TENSOR_BIAS, DT_TENSOR_STATE } role;
    enum { DT_INIT_ZERO, DT_INIT_ONE, DT_INIT_HE, DT_INIT_GLOROT, DT_INIT_UNIT } init;
    double fan_in, fan_out; /* for the rules of initial values */
    bool wide;              /* of the linear path: updated by train.wide_optimizer */
    /* read by sparse inputs: a batch with sparse inputs touches few of its rows, shape[0] */
    bool row_sparse;
};

/* The targets of a task, as a loss sees them. */
struct dt_targets {
    bool classes; /* one class per row; else numbers */
    bool units;   /* may be learned as distances from their mean */
    /* numbers: their range, also in words; NULL: any number */
    double least, greatest;
    const char *expected;
};
const struct dt_targets *dt__targets_of(int task, int loss);

/* The function from an output to the predicted value. */
enum dt_link {
    DT_LINK_IDENTITY,
    DT_LINK_EXP,
    DT_LINK_SIGMOID,
    DT_LINK_RISING /* several outputs per target: each adds its softplus to the one before */
};
enum { DT_MAX_QUANTILES = 32 };

/* A loss defined by the program, for one row: returns the loss from the row's outputs and targets,
 * (n) each, and writes its gradient by the outputs unless that is NULL. The gradient may be in the
 * memory of the outputs: read an output before writing it. Must be deterministic; may be called by
 * any rank, for other rows of the same batch. */
struct dt_own_loss {
    double (*row)(void *arg, int n, const float *outputs, const float *targets, float *gradient);
    void *arg;
};

/* The outputs of a network, and the units of their values. */
struct dt_outputs {
    int count;
    int each, middle; /* outputs of a target; the index of the one that is used when one is
                       * needed */
    float quantile[DT_MAX_QUANTILES]; /* (each) for DT_LOSS_QUANTILE, ascending */
    int link;                         /* enum dt_link */
    float delta;                      /* of the loss */
    const struct dt_own_loss *own;    /* NULL: the loss is a row of the table */
    float *mean, *std;                /* (count / each), or NULL: a value is the unchanged output */
    /* Classes: a network's last outputs are multiplied by it, 1 over the temperature. Two classes:
     * the logit above which a row is of class 1; the class that metrics call positive. */
    float cool, cut;
    int positive;
    float *least, *greatest; /* (count / each) limits of values, or NULL: none */
};

/* Calibration of a model's answers by held-out rows (certainty.h). Zeros: nothing was fitted. */
struct dt_certainty {
    int known;          /* 0: the other members are 0 */
    int positive;       /* of two classes */
    double temperature; /* 1: none */
    double cut;         /* of divided logits */
    uint32_t rows_crc;  /* dt__source_crc of the rows used for temperature and cut; 0: none */
    double coverage;    /* default coverage of intervals; 0: none */
    int residuals;      /* total, the same number for each target, target after target */
    float *residual;    /* (residuals) ascending within a target */
};

/* Immutable once created; shared by any number of networks. Read-only for callers. */
struct dt_model {
    struct dt_model_desc desc;
    struct dt_model **member; /* (members) of model.layers=mean(...), which itself has no layers */
    int members;
    int fold, folds; /* the mean is that of the members fold, fold + folds ...; folds 0: of all */
    size_t features; /* of a row */
    size_t inputs;   /* of the first layer: features and their encodings */
    int classes;     /* 2 for one logit; 0: values are predicted */
    struct dt_outputs outputs;
    size_t params; /* floats in the flat vector, P */
    /* The first `trained` floats are trained; after them come the state tensors, which no optimizer
     * touches: their gradient is rows * (new value - value seen), and an update adds its mean over
     * rows. */
    size_t trained;
    /* The tensors of split layers follow the first `shared` floats. A worker has only parts of them
     * (split.h); they are trained, too. */
    size_t shared;
    int splits; /* number of split layers */
    /* Tensors in the order of the flat vector, which they fill without gaps: params_crc32c covers
     * it. */
    struct dt_tensor *tensor;
    size_t tensors;
    size_t row_sparse; /* number of row-sparse tensors */
    /* A bucket is the range of the flat vector that one layer with parameters trains, in order; the
     * state tensors of all layers form one more bucket, the last. The bucket of a split layer is
     * empty. */
    size_t *bucket_end; /* (buckets) */
    int buckets;

    /* Private to src/model. */
    const struct dt__loss *loss;
    struct dt__layer *layer;
    size_t layers, layer_capacity, tensor_capacity, bucket_capacity;
};
/* Creates a model. DT_EUSAGE: the text is wrong, or shapes do not fit: names the layer.
 * DT_EMEMORY. */
dt_status dt__model_create(const struct dt_model_desc *desc, struct dt_model **out);
void dt__model_destroy(struct dt_model *model);
/* Sets the targets' units of a regression, value = output * std + mean (one each per target;
 * copied). Gradients are those of standardised targets; losses, metrics and predictions are in the
 * targets' units. NULL: the outputs are the values. Call it right after creating the model.
 * DT_EMEMORY. */
dt_status dt__model_set_units(struct dt_model *model, const float *mean, const float *std);
/* Limits the predicted values of a regression to least to greatest (one each per target; copied).
 * Gradients are those of the unlimited values. NULL: any value. Call it right after creating the
 * model. DT_EMEMORY. */
dt_status dt__model_set_range(struct dt_model *model, const float *least, const float *greatest);
/* Classes: outputs of networks are divided by the temperature from now on, and the cut decides
 * between two classes. Not while a network of the model computes. */
void dt__model_set_certainty(struct dt_model *model, const struct dt_certainty *certainty);
/* Sets the loss, borrowed, in place of the task's; call it right after creating the model. The
 * predictions are the outputs. DT_EUSAGE: the task is not regress, or row is NULL. */
dt_status dt__model_set_loss(struct dt_model *model, const struct dt_own_loss *loss);
/* Returns row-sparse tensor number `index`, in the order of the flat vector. */
const struct dt_tensor *dt__model_row_sparse_tensor(const struct dt_model *model, size_t index);
/* Writes a table of layers: output shape, parameters and multiply-adds per sample. The caller frees
 * it. */
dt_status dt__model_table(const struct dt_model *model, char **out);

/* Computes initial weights: He normal (before activations, but not before tanh and sigmoid) or
 * Glorot uniform (other layers), embeddings normal with variance 1 / width, the linear path and
 * bias 0; a pure function of seed and layer.
 * Source: He et al. 2015, eq. 10; Glorot and Bengio 2010, eq. 16. */
void dt__model_init(const struct dt_model *model, uint64_t seed, float *params);

/* Returns the bias of the output layer: one float for each output, or, if the outputs are a field,
 * for each of its channels. NULL: the output layer has none. */
const struct dt_tensor *dt__model_output_bias(const struct dt_model *model);
/* Writes the baseline: the outputs (nout), equal for all rows, with the least loss over the labels
 * or targets of a batch (rows * nout below 2^31), weighted by its rows' weights: log-odds,
 * logarithms of frequencies, mean, median, quantiles, logarithm of the mean. A class without rows
 * counts as half a row. In a field each channel has one value; for a loss defined by the program,
 * the mean. DT_EMEMORY. */
dt_status dt__model_constant(const struct dt_model *model, const struct dt_batch *batch,
                             float *out);

/* Computes predictions from a network's outputs (rows, nout): probabilities (rows, classes), for
 * several labels (rows, nout), or values in the targets' units (rows, nout) for regression. out may
 * be logits, if that is large enough. */
void dt__model_predict(const struct dt_model *model, const float *logits, int rows, float *out);
/* Returns the name of the predictions: "probabilities" or "values". */
const char *dt__model_answer(const struct dt_model *model);
/* Returns the class that accuracy counts: the first of the largest logits; for a single logit, 1 if
 * it is above the cut, else 0. */
int dt__model_choose(const struct dt_model *model, const float *logits);

/* Convert outputs to the space in which predictions of several networks are averaged, and back:
 * probabilities, or values in units of outputs; (rows, nout) both ways. The prediction from the
 * outputs of from_mean is the mean. out may be the input. */
void dt__model_to_mean(const struct dt_model *model, const float *logits, int rows, float *out);
void dt__model_from_mean(const struct dt_model *model, const float *mean, int rows, float *out);
/* Returns the sum over a batch's rows of the training loss, from their outputs. */
double dt__model_loss(const struct dt_model *model, const struct dt_batch *batch,
                      const float *logits);

/* ---- network -------------------------------------------------------------------------------- */

struct dt_network; /* activations and scratch of one thread of execution */
/* Creates a network. max_rows >= 1. `precision` (enum dt_precision): of the operands of a
 * gradient's products, except the last layer's. DT_EMEMORY. The model must outlive the network. */
dt_status dt__network_create(const struct dt_model *model, int max_rows, int precision,
                             struct dt_network **out);
/* Sets the copies of all factored matrices' weights, each at its place, which the caller keeps
 * equal to the weights of each gradient; NULL, the default: the network makes copies itself. */
void dt__network_set_copies(struct dt_network *network, const void *copies);
/* Update the copy of one tile of a factored matrix, to be read by other cores; or the copies of
 * `matrices` whole matrices. weights (P); copies: aligned to a cache line. */
void dt__bf16_pack(const struct dt_factored *matrix, struct dt_tile tile, const float *weights,
                   void *copies);
void dt__bf16_pack_all(const struct dt_factored *matrix, int matrices, const float *weights,
                       void *copies);
/* Reserves space for gradients of batches with this many sparse entries; otherwise it grows on
 * demand. */
dt_status dt__network_reserve(struct dt_network *network, size_t entries);
/* Makes a row's outputs in later forward passes independent of the other rows of the batch. */
void dt__network_keep_apart(struct dt_network *network);
/* Sets the inputs, ascending, for which the caller has weights of row-sparse tensors. Their rows
 * are contiguous from the tensor's offset on: row r of the tensor at the position of input first +
 * r in the list, less first. NULL, the default: the tensors are whole. Borrowed, and read again
 * with each batch, whose inputs must all be in it. */
void dt__network_set_inputs(struct dt_network *network, const struct dt_touched *inputs);
/* Adds the batch's inputs to such a list; dense inputs are always in it. DT_EMEMORY. */
dt_status dt__network_list_inputs(struct dt_network *network, const struct dt_batch *batch,
                                  const struct dt_touched *inout);
/* Returns the number of matrices whose gradients networks of `precision` for max_rows rows can give
 * away as factors, and writes them to out unless that is NULL. */
int dt__model_factored(const struct dt_model *model, int precision, int max_rows,
                       struct dt_factored *out);
/* Computes the gradient of a tile of matrix number `matrix`, from factors that any network of the
 * model, precision and max_rows left: with the bits of the whole gradient. out (rows, columns) of
 * the tile. DT_EMEMORY. */
dt_status dt__network_tile(struct dt_network *network, int matrix, const void *factors,
                           struct dt_tile tile, float *out);
void dt__network_destroy(struct dt_network *network);

/* Functions that dt__network_gradient calls before the forward pass reads the weights of a bucket,
 * and in the backward pass when the bucket's gradient is written and its weights are no longer
 * needed (from the last bucket to the first). Either may be NULL. */
struct dt_network_hooks {
    void (*before_forward)(void *arg, int bucket);
    void (*after_backward)(void *arg, int bucket);
    void *arg;
};

/* Computes the gradient of a batch, forward and backward (rows <= max_rows; 0 rows zeroes the
 * gradient and calls hooks).
 *   params      (P) weights, read in place
 *   dropout     key of this draw's masks; the element of row r (in the draw) and column c of the
 *               dropout after layer l is drop number (l << 40) + r * nout + c; may be NULL if
 *               nothing drops. Kept units are scaled by 1 / (1 - rate)
 *   accumulate  false: the gradient overwrites the slot; true: it is added, so that a batch larger
 *               than max_rows can be computed in slices
 *   slot        written: the SUM over the rows of the gradient of the sample's loss (cross-entropy;
 *               squared error averaged over nout, of standardised targets if the model has
 *               units). Touched rows: of all row-sparse tensors, in their order, and of batches
 *               with a sparse part; rows of dense inputs always count as touched. Factors: of
 *               batches without a sparse part, and not accumulated
 *   out_loss    sum of the samples' losses, in double, in the targets' units; may be NaN: the
 *               caller checks
 * DT_EMEMORY: a product failed; hooks of the buckets that were not reached have not been called. */
dt_status dt__network_gradient(struct dt_network *network, const float *params,
                               const struct dt_batch *batch, const struct dt_rng *dropout,
                               bool accumulate, struct dt_slot slot, double *out_loss,
                               const struct dt_network_hooks *hooks);

/* A stop of a gradient that is computed in stretches, for models with split layers: the network
 * stops before the product of each split layer, forward and again backward, and the caller computes
 * it, for all replicas' rows together (split.h). Arguments are those of dt__network_gradient, and
 * must stay unchanged until the end; the slot needs only the model's shared floats. A batch without
 * rows has no stretches. */
struct dt_network_stop {
    int split; /* index of the split layer; -1: the gradient is complete */
    bool backward;
    const float *x; /* forward: (rows, nin) */
    float *y;       /* forward, to be written: (rows, nout) x W + bias ... */
    float *delta;   /* backward: (rows, nout) gradient by that ... */
    float *dx;      /* backward, to be written: (rows, nin) gradient by x; NULL: not needed */
    /* ... neither is set for an output layer, whose loss the caller computes. */
};
dt_status dt__network_begin(struct dt_network *network, const float *params,
                            const struct dt_batch *batch, const struct dt_rng *dropout,
                            struct dt_slot slot, const struct dt_network_hooks *hooks);
/* Continues to the next stop. *out_loss is set when the forward pass ends. DT_EMEMORY: a product
 * failed. */
dt_status dt__network_continue(struct dt_network *network, double *out_loss,
                               struct dt_network_stop *out_stop);

/* Computes outputs without dropout: logits, or values without units, (rows, nout) into out. rows <=
 * max_rows. DT_EMEMORY: a product failed. */
dt_status dt__network_forward(struct dt_network *network, const float *params,
                              const struct dt_batch *batch, float *out);

/* Computes the deviation of the members' predictions after a forward pass of a network of several
 * members (model.layers=mean(...)): (rows, width) as in dt__model_predict; 0 for a network without
 * members. */
void dt__network_spread(const struct dt_network *network, int rows, float *out);

/* ---- split layers --------------------------------------------------------------------------- */

/* Returns split layer number `index`, from the first; false: there are no more. */
bool dt__model_split(const struct dt_model *model, int index, struct dt_split_layer *out);
/* Returns number `index` of the layers that are or could be split; *out_split: it is. false: there
 * are no more. */
bool dt__model_dense(const struct dt_model *model, int index, struct dt_split_layer *out,
                     bool *out_split);

/* The products of a part of a split layer: some of its columns. Inputs and the gradient by them are
 * in blocks (split.h): each is (rows, its inputs), at offset max_rows * (inputs before it). The
 * part's weights are (nin, columns). */
struct dt_split_part;
/* Creates a part. precision: as for dt__network_create. first: a part of the same layer that runs
 * before this one in each pass, and has rounded the inputs; NULL: this one rounds them.
 * DT_EMEMORY. */
dt_status dt__split_part_create(const struct dt_split_layer *layer, size_t columns, int max_rows,
                                int precision, const struct dt_split_part *first,
                                struct dt_split_part **out);
void dt__split_part_destroy(struct dt_split_part *part);
/* Computes y (rows, columns) = x W + bias. DT_EMEMORY, DT_EBUG: the library failed. */
dt_status dt__split_part_forward(struct dt_split_part *part, int rows, const float *x,
                                 const float *weight, const float *bias, float *y);
/* Computes the gradients of one block of the inputs, block 0 first, after a forward pass with the
 * same inputs: grad (its inputs, columns) = x^T delta; dx (rows, its inputs) = delta W^T, unless
 * that is NULL. `weight` and `grad` are at the block's first row. */
dt_status dt__split_part_backward(struct dt_split_part *part, size_t block, int rows,
                                  const float *x, const float *weight, const float *delta,
                                  float *grad, float *dx);
/* Computes bias_grad (columns): sums of delta's columns. */
void dt__split_part_bias(const struct dt_split_part *part, int rows, const float *delta,
                         float *bias_grad);

/* Computes softmax and cross-entropy of a part of the outputs, for outputs that workers have in
 * parts. Sums over parts are made in their order.
 * z: (rows, n) outputs from number `begin` on; they become e^(z - most). label: (rows). */
void dt__softmax_part(int rows, int n, int begin, const int32_t *label, float *z,
                      struct dt_softmax_part *out);
/* Combines the parts; part: (parts, stride), whose first `rows` become the answers. Returns the sum
 * of the rows' losses. */
double dt__softmax_join(const struct dt_batch *batch, int parts, size_t stride,
                        struct dt_softmax_part *part);
/* Replaces the z that dt__softmax_part wrote by the gradient of the loss by the outputs. */
void dt__softmax_part_gradient(int rows, int n, int begin, const int32_t *label, float *z,
                               const struct dt_softmax_part *part);

/* ---- optimizers ----------------------------------------------------------------------------- */

struct dt_optimizer {
    int kind; /* enum dt_optimizer_kind */
    double momentum, beta1, beta2, alpha, epsilon, weight_decay, l1;
    int nstate;                /* vectors of P floats that are kept, 0 to 2 */
    const char *state_name[2]; /* as in the checkpoint: "momentum", "square", ... */
    int states, vector[2];     /* states of this rule, and the vector of each */
    /* its rates fall by themselves: no schedule changes them, and a linear model starts at 0 */
    bool own_rates;
};
enum { DT_MAX_STATE = 2 };
/* Sets the rule of train.optimizer, or of the linear path: the latter has its kind's default
 * epsilon if train.optimizer is of another kind. */
void dt__optimizer_init(struct dt_optimizer *optimizer, const struct dt_config *config, bool wide);
/* Assigns vectors to the states of two rules, which update different tensors. A state of the second
 * rule gets the vector that has its name; else one more; else, if there are already DT_MAX_STATE,
 * one of another name, which is then called by its number:
 *
 *   train.optimizer       linear path       vectors             the linear path's states are in
 *   adagrad: square       ftrl: z, square   square, z           z: 1, square: 0
 *   heavy ball: momentum  adagrad: square   momentum, square    square: 1
 *   adam: mean, square    ftrl: z, square   state0, square      z: 0, square: 1 */
void dt__optimizer_share(struct dt_optimizer *optimizer, struct dt_optimizer *wide);

/* Factors of a rule in one update, rounded to f32 where PyTorch rounds. */
struct dt_factors {
    float scale; /* of the gradient */
    float decay; /* L2 penalty; adamw: 1 - lr * weight_decay */
    float rate;  /* learning rate; adam: over 1 - beta1^t */
    float epsilon;
    float keep1, add1; /* first state: momentum, beta1 or alpha, and 1 - that */
    float keep2, add2; /* second state: beta2, or rmsprop's momentum */
    float unbias;      /* adam: 1 / sqrt(1 - beta2^t) */
    float unbias1;     /* lamb: 1 / (1 - beta1^t) */
    float l1;          /* ftrl */
};
/* Computes the factors, which are the same for all parameters: once per update, whatever ranges it
 * is cut into. (Computing them for each block of 2,048 floats cost a tenth of adam's update: two
 * powers and a cosine.)
 *   step     updates done before this one; 0 for the first (bias correction)
 *   lr       learning rate; scale: factor on the gradient (1 / samples, times the clip factor) */
struct dt_factors dt__optimizer_factors(const struct dt_optimizer *optimizer, uint64_t step,
                                        double lr, double scale);

/* Returns true for rules over whole tensors (lamb), which update in two passes. In the first,
 * dt__optimizer_direct turns gradients into directions, element by element, and updates the states;
 * its arguments are those of dt__optimizer_apply, but out is disjoint from all. Then, with the
 * squared norms of a tensor's weights and directions, dt__optimizer_apply receives the directions
 * as gradients, with factors.rate times dt__optimizer_trust. */
bool dt__optimizer_is_whole(const struct dt_optimizer *optimizer);
void dt__optimizer_direct(const struct dt_optimizer *optimizer, const struct dt_factors *factors,
                          size_t n, const float *grad, const float *params, float *out,
                          float *const *state);
float dt__optimizer_trust(double weights2, double directions2);

/* Updates n parameters, element by element (any split of the vector gives the same bits).
 *   grad     (n) gradient sum
 *   params   (n) read; out (n) written; may be the same pointer, else disjoint
 *   state    nstate pointers to (n), read and written; zeros before the first update
 * Numbers are those of PyTorch 1.13's torch.optim; ftrl's are those of McMahan et al. 2013,
 * algorithm 1. */
void dt__optimizer_apply(const struct dt_optimizer *optimizer, const struct dt_factors *factors,
                         size_t n, const float *grad, const float *params, float *out,
                         float *const *state);

/* Updates `count` rows of params and state, which are (any, width): row row[i], in place, with the
 * gradient sum grad + i * width. */
void dt__optimizer_apply_rows(const struct dt_optimizer *optimizer,
                              const struct dt_factors *factors, size_t width, size_t count,
                              const uint32_t *row, const float *grad, float *params,
                              float *const *state);
/* Returns true if an update with a gradient of 0 changes nothing, so that rows without one can be
 * left out. */
bool dt__optimizer_is_sparse(const struct dt_optimizer *optimizer);

/* ---- schedules ------------------------------------------------------------------------------ */

struct dt_schedule {
    int kind; /* enum dt_schedule_kind */
    double lr, min_lr, decay_rate;
    uint64_t warmup_steps, decay_steps;
    int64_t drops; /* plateau: how often the rate has fallen; counted by the caller */
};
/* Sets the schedule. total_steps: the run's last step, for decay_steps = 0. */
void dt__schedule_init(struct dt_schedule *schedule, const struct dt_config *config,
                       uint64_t total_steps);
/* Returns the rate of the update after `step` updates. Warm-up: lr * (step + 1) / warmup_steps.
 * After it, with t = step - warmup_steps and D = decay_steps (total_steps - warmup_steps if 0):
 * linear and cosine fall from lr at t = 0 to min_lr at t >= D; exponential is lr * decay_rate^(t /
 * D), step takes t / D rounded down, neither falls below min_lr; plateau is lr * decay_rate^drops,
 * and no less than min_lr. */
double dt__schedule_lr(const struct dt_schedule *schedule, uint64_t step);

/* ---- metrics -------------------------------------------------------------------------------- */

/* Returns the number of doubles in the sums over one chunk of at most DT_EVAL_CHUNK rows. Sums are
 * always computed from one chunk, and merged in chunk order in double: every way of evaluating
 * gives the same digits. They are plain doubles, so that they can be sent as bytes. */
size_t dt__metrics_sums(const struct dt_model *model);

struct dt_metrics; /* merged sums, confusion matrix, scores; the model must outlive it */
/* Creates empty metrics. config: eval.metric and eval.full select the metrics on request that are
 * computed; NULL: all. */
dt_status dt__metrics_create(const struct dt_model *model, const struct dt_config *config,
                             struct dt_metrics **out);
void dt__metrics_destroy(struct dt_metrics *metrics);
void dt__metrics_reset(struct dt_metrics *metrics);
/* Leaves out auc and average_precision, which sort all rows, unless eval.metric is one of them. */
void dt__metrics_limit(struct dt_metrics *metrics);

/* Computes the sums of one chunk from its logits (rows, nout) into `sums`; confusion: (classes,
 * classes) counts that are added to, true class major, or NULL. */
void dt__metrics_chunk(const struct dt_model *model, const float *logits,
                       const struct dt_batch *batch, double *sums, uint64_t *confusion);
/* Adds a chunk's sums; call it in chunk order. */
dt_status dt__metrics_add(struct dt_metrics *metrics, const double *sums);
void dt__metrics_add_confusion(struct dt_metrics *metrics, const uint64_t *confusion);

/* The metrics. Fields that do not apply are NaN. */
struct dt_metric_values {
    double rows, unknown; /* unknown: rows of classes that training never saw; they are wrong */
    double loss;          /* mean over the other rows */
    /* precision, recall, auc, average_precision, f1: for two classes, of class 1; multilabel: all
     * labels of all rows count. f1 of more classes: the mean over the classes */
    double accuracy, top5, auc, precision, recall, f1, average_precision;
    double balanced_accuracy; /* the mean recall */
    double brier, ece;        /* of probabilities */
    double rmse, mae, r2;     /* over all elements; r2: the mean over the targets */
    double mape;              /* as a fraction, not in percent */
    double guess_rmse;        /* of a guess that is always the targets' means */
};
void dt__metrics_values(struct dt_metrics *metrics, struct dt_metric_values *out);
/* Scores of target number `target`, from 0; false: there are no more, or the task predicts
 * classes. */
struct dt_target_score {
    double rmse, guess_rmse, r2;
};
bool dt__metrics_target(const struct dt_metrics *metrics, int target, struct dt_target_score *out);
/* Returns the counts (classes, classes), true class major, to read or to add to; NULL for
 * regression and for more than DT_MAX_CONFUSION classes. */
uint64_t *dt__metrics_confusion(struct dt_metrics *metrics);
/* Precision, recall and F1 of each class, and its rows, from such counts. NaN: the class was never
 * predicted, or is not in the data. Free `precision` with dt_free: all are in its memory.
 * DT_EMEMORY. */
struct dt_class_scores {
    size_t classes;
    double *precision, *recall, *f1, *rows; /* (classes) each */
};
dt_status dt__class_scores_make(const uint64_t *confusion, size_t classes,
                                struct dt_class_scores *out);
/* Returns metric number `index`, from 0, of the recorded ones, in order; false: there are no more.
 * NaN: the metric does not apply. */
bool dt__metric_at(int index, const struct dt_metric_values *values, const char **out_name,
                   double *out_value);
/* Sets the value of metric number `index`. */
void dt__metric_set(int index, struct dt_metric_values *values, double value);
/* The metric that eval.metric names (auto resolved by the task); values NULL: its value is NaN.
 * DT_EUSAGE: the metric does not exist for this model. */
struct dt_metric_score {
    const char *name;
    double value;
    bool more_is_better;
};
dt_status dt__metric_pick(const struct dt_model *model, int metric,
                          const struct dt_metric_values *values, struct dt_metric_score *out);
/* Returns true if more is better for the metric of this name; also if the name is unknown. */
bool dt__metric_rises(const char *name);

#endif
