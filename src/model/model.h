/* model: networks over one flat parameter vector, tasks, optimizers, schedules, metrics. No MPI.
 *
 * A model is a list of layers and a list of named tensors, both derived from a description (struct
 * dt_model_desc). Matrices are row-major f32. Kernels do not allocate: a struct dt_network, created
 * once for the largest batch, holds the memory that a call needs. */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include "base/base.h"
#include "base/batch.h"
#include "config/config.h"

enum { DT_MAX_WIDTH = 1048576, DT_EVAL_CHUNK = 256, DT_MAX_CONFUSION = 1024 };

/* ---- BLAS ----------------------------------------------------------------------------------- */

/* Chooses the kernel of matrix products; `kernel` is a value of run.kernel. Not collective. Call it
 * before the process's first product: OpenBLAS chooses its kernel only once, when this call or the
 * first product loads it. Without this call the kernel is "auto". DT_EUSAGE: this machine cannot
 * run the kernel. DT_EIO: there is no OpenBLAS. */
dt_status dt__blas_select(const char *kernel);
/* Chooses the kernel of run.precision=bf16, whose products have operands in bf16 and sums in f32.
 * Call it before dt__blas_select. If `kernel` contains "-bf16-", chooses the one that follows it:
 * amx, avx512 or reference; otherwise the fastest that this CPU has. *out_native false: the CPU has
 * none, so operands are rounded to bf16 and multiplied in f32. kernel NULL: later products are in
 * f32, and dt__blas_kernel names an f32 kernel. DT_EUSAGE: the CPU lacks the kernel. */
dt_status dt__bf16_select(const char *kernel, bool *out_native);
/* Returns the kernel for this CPU, looked up in a table by vector instructions and CPU model:
 * "oneDNN", or one of OpenBLAS's ("Haswell", ...). NULL: the CPU is not in the table, and OpenBLAS
 * chooses. */
const char *dt__blas_kernel_for_cpu(void);
/* Makes all later products use oneDNN if `kernel` is "oneDNN" and the CPU supports it; otherwise
 * they use OpenBLAS, as before. Returns true for oneDNN. */
bool dt__blas_choose(const char *kernel);
/* Returns the active kernel: "oneDNN", or OpenBLAS's, e.g. "Haswell"; for bf16 with its suffix,
 * e.g. "oneDNN-bf16-amx". */
const char *dt__blas_kernel(void);
const char *dt__blas_version(void); /* OpenBLAS's description of itself */
enum { DT_ONEDNN_VERSION = 32 };
/* Writes the oneDNN version that this program was built with, e.g. "2.6.3", to buffer, and returns
 * buffer. */
const char *dt__onednn_version(char buffer[DT_ONEDNN_VERSION]);
void dt__blas_set_threads(int threads);

/* ---- model ---------------------------------------------------------------------------------- */

/* The definition of a network; kept in checkpoints and exports. */
struct dt_model_desc {
    char *layers; /* "dense 512 relu, dropout 0.2, dense 256 relu"; "linear": only the output
                   * layer */
    int shape[3]; /* height, width, channels of a row; 1, 1, n for n plain features */
    int nout;     /* logits: 1 for two classes, C for more; else (targets) * (outputs per target) */
    int task;     /* enum dt_task */
    int loss;     /* enum dt_loss; auto: the task's default loss */
    double huber_delta; /* for DT_LOSS_HUBER; in standard deviations if targets have units */
    char *quantiles;    /* for DT_LOSS_QUANTILE: "0.1,0.9"; else may be NULL */
    /* with an embedding or an encoding: the first `dense` features are numbers; else 0 */
    int dense;
    int categories;      /* with an embedding or an encoding: number of category columns; each row
                          * has one entry per column; else 0 */
    int encode;          /* enum dt_encode, for numbers; none: the other encode_ members are 0 */
    int encode_columns;  /* number of encoded columns; a batch has a z (encoding.h) for each */
    int encode_width;    /* number of inputs for each encoded column, not counting z */
    int encode_count;    /* floats in encode_table */
    float *encode_table; /* column after column: frequencies (cosine) or edges of bins (ple) */
    /* Dense layers with at least this many weights are split (the output layer only if it has many
     * classes); 0: none. In the description of a created model it is 0, because there `layers` says
     * which layers are split. */
    int64_t split;
    int parts; /* number of parts of a split layer; a layer with fewer outputs than this is not
                * split; 0: no such limit */
};
void dt__model_desc_free(struct dt_model_desc *desc);
/* Computes the number of outputs per target: the number of quantiles, or 1. DT_EUSAGE:
 * desc->quantiles is malformed. */
dt_status dt__model_desc_each(const struct dt_model_desc *desc, int *out);

/* Writes the network's text to model.layers: the given text, checked and in canonical form, or the
 * expansion of the short form (model.kind, hidden, activation and dropout). DT_EUSAGE: the text or
 * the short form is wrong; both are given; or train.loss is not a loss of model.task. */
dt_status dt__model_resolve(struct dt_config *config);

/* A named array of parameters, row-major in the flat vector. Code that saves, prints, initialises
 * or updates parameters iterates over the tensors. */
struct dt_tensor {
    char name[64]; /* "layers/0/weight" */
    int rank;
    size_t shape[4];
    size_t offset, count; /* offset and size in the flat vector, in floats */
    int layer;            /* index of its layer among the layers with parameters; for a trained
                           * tensor also its bucket */
    enum { DT_TENSOR_WEIGHT, DT_TENSOR_BIAS, DT_TENSOR_STATE } role;
    enum { DT_INIT_ZERO, DT_INIT_ONE, DT_INIT_HE, DT_INIT_GLOROT, DT_INIT_UNIT } init;
    double fan_in, fan_out; /* for initial values (He, Glorot) */
    bool wide;              /* part of the linear path: updated by train.wide_optimizer */
    /* sparse inputs select its rows (shape[0]): a sparse batch touches only a few of them */
    bool row_sparse;
};

/* The targets that a loss accepts. */
struct dt_targets {
    bool classes; /* a target is a class; else numbers */
    bool units;   /* targets may be standardised for training: (value - mean) / std */
    /* if targets are numbers: the allowed range, and `expected`, a text for messages that says the
     * same; expected NULL: any number is allowed */
    double least, greatest;
    const char *expected;
};
const struct dt_targets *dt__targets_of(int task, int loss);

/* The function from an output to the predicted value. */
enum dt_link {
    DT_LINK_IDENTITY,
    DT_LINK_EXP,
    DT_LINK_SIGMOID,
    DT_LINK_RISING /* several outputs per target, ascending: each value is the one before plus
                    * softplus(output) */
};
enum { DT_MAX_QUANTILES = 32 };

/* A loss defined by the program, for one row. Returns the loss for the row's outputs and targets,
 * (n) each, and writes its gradient by the outputs unless `gradient` is NULL. `gradient` may be the
 * memory of `outputs`: read outputs[i] before writing gradient[i]. Must be deterministic; several
 * ranks may call it at the same time, for different rows of a batch. */
struct dt_own_loss {
    double (*row)(void *arg, int n, const float *outputs, const float *targets, float *gradient);
    void *arg;
};

/* The meaning of a network's outputs, and the units of their values. */
struct dt_outputs {
    int count;
    /* each: number of outputs per target; middle: which of these, counted from 0, is used where one
     * value per target is needed */
    int each, middle;
    float quantile[DT_MAX_QUANTILES]; /* (each) for DT_LOSS_QUANTILE, ascending */
    int link;                         /* enum dt_link */
    float delta;                      /* of DT_LOSS_HUBER, in the units of the outputs */
    const struct dt_own_loss *own;    /* NULL: the loss is a row of the table */
    float *mean, *std;                /* (count / each) units of the targets; NULL: an output is the
                                       * value itself */
    /* Classification: the network multiplies its outputs by `cool`, which is 1 / temperature. With
     * two classes, a row is of class 1 if its logit is above `cut`; `positive` is the class that
     * metrics call positive. */
    float cool, cut;
    int positive;
    float *least, *greatest; /* (count / each) limits of values, or NULL: none */
};

/* Calibration of a model's answers, fitted to held-out rows (certainty.h). All zeros: not
 * fitted. */
struct dt_certainty {
    int known;          /* 0: not fitted, and the other members are 0 */
    int positive;       /* two classes: the class that metrics call positive */
    double temperature; /* 1: outputs are unchanged */
    double cut;         /* compared with logits divided by the temperature */
    uint32_t rows_crc;  /* dt__source_crc of the rows used for temperature and cut; 0: none */
    double coverage;    /* default coverage of intervals; 0: none */
    int residuals;      /* total; each target has the same number, stored target after target */
    float *residual;    /* (residuals) ascending within a target */
};

/* Immutable once created, and shared by any number of networks. Callers only read it. */
struct dt_model {
    struct dt_model_desc desc;
    struct dt_model **member; /* (members) models of model.layers=mean(...); such a model has no
                               * layers */
    int members;
    /* the mean is over the members with the numbers fold, fold + folds, fold + 2 * folds, ...;
     * folds 0: over all members */
    int fold, folds;
    size_t features; /* number per row */
    size_t inputs;   /* inputs of the first layer: features and their encodings */
    int classes;     /* 2 for one logit; 0: the model predicts values */
    struct dt_outputs outputs;
    size_t params; /* floats in the flat vector, P */
    /* The first `trained` floats are trained; the state tensors follow. State tensors are not
     * updated by an optimizer. Their "gradient" is rows * (new value - old value), summed like the
     * others, and an update adds this sum divided by the number of rows. */
    size_t trained;
    /* The tensors of split layers follow the first `shared` floats. They are trained, too, but a
     * worker has only parts of them (split.h). */
    size_t shared;
    int splits; /* number of split layers */
    /* Tensors in the order of the flat vector. They fill it without gaps, and params_crc32c covers
     * it. */
    struct dt_tensor *tensor;
    size_t tensors;
    size_t row_sparse; /* number of row-sparse tensors */
    /* A bucket is the range of the flat vector that holds the trained parameters of one layer.
     * Buckets are in the order of layers; if there are state tensors, one more bucket at the end
     * holds those of all layers. The bucket of a split layer is empty. */
    size_t *bucket_end; /* (buckets) */
    int buckets;

    /* Private to src/model. */
    const struct dt__loss *loss;
    struct dt__layer *layer;
    size_t layers, layer_capacity, tensor_capacity, bucket_capacity;
};
/* Creates a model. DT_EUSAGE: the text is wrong, or shapes do not fit (the message names the
 * layer). DT_EMEMORY. */
dt_status dt__model_create(const struct dt_model_desc *desc, struct dt_model **out);
void dt__model_destroy(struct dt_model *model);
/* Sets the units of a regression's targets: value = output * std + mean (mean and std have one
 * float per target; copied). Gradients are those of standardised targets; losses, metrics and
 * predictions are in the targets' units. NULL: the outputs are the values. Call it right after
 * creating the model. DT_EMEMORY. */
dt_status dt__model_set_units(struct dt_model *model, const float *mean, const float *std);
/* Limits the predicted values of a regression to the range from `least` to `greatest` (one float
 * per target each; copied). Gradients ignore the limits. NULL: no limits. Call it right after
 * creating the model. DT_EMEMORY. */
dt_status dt__model_set_range(struct dt_model *model, const float *least, const float *greatest);
/* Applies the temperature and the cut to all networks of a classification model; no effect for
 * other tasks. Do not call it while a network of the model computes. */
void dt__model_set_certainty(struct dt_model *model, const struct dt_certainty *certainty);
/* Replaces the task's loss by `loss` (borrowed), whose predictions are the outputs. Call it right
 * after creating the model. DT_EUSAGE: the task is not regress, train.loss has several outputs per
 * target, or loss->row is NULL. */
dt_status dt__model_set_loss(struct dt_model *model, const struct dt_own_loss *loss);
/* Returns row-sparse tensor number `index`, in the order of the flat vector. */
const struct dt_tensor *dt__model_row_sparse_tensor(const struct dt_model *model, size_t index);
/* Writes a table of the layers: output shape, parameters and multiply-adds per sample. The caller
 * frees it. */
dt_status dt__model_table(const struct dt_model *model, char **out);

/* Computes the initial weights, which depend only on the seed and the layer: He normal for layers
 * before an activation other than tanh and sigmoid, Glorot uniform for other layers, normal with
 * variance 1 / width for embeddings, 0 for the linear path and for biases. Source: He et al. 2015,
 * eq. 10; Glorot and Bengio 2010, eq. 16. */
void dt__model_init(const struct dt_model *model, uint64_t seed, float *params);

/* Returns the bias of the output layer: one float per output, or per channel if the outputs are a
 * field. NULL: the output layer has no bias. */
const struct dt_tensor *dt__model_output_bias(const struct dt_model *model);
/* Writes the baseline: the outputs (nout) that, used for every row, have the least loss over a
 * batch (rows * nout below 2^31). The loss uses the rows' weights. Depending on the loss, the
 * outputs are log-odds, logarithms of frequencies, mean, median, quantiles, or the logarithm of the
 * mean; for a loss defined by the program, the mean. A class without rows counts as half a row. All
 * positions of a field have the same values. DT_EMEMORY. */
dt_status dt__model_constant(const struct dt_model *model, const struct dt_batch *batch,
                             float *out);

/* Computes predictions from a network's outputs (rows, nout): probabilities (rows, classes);
 * probabilities (rows, nout) for several labels; or values in the targets' units (rows, nout) for
 * regression. `out` may be the same pointer as `logits`, if the memory there is large enough. */
void dt__model_predict(const struct dt_model *model, const float *logits, int rows, float *out);
/* Returns the name of the predictions: "probabilities" or "values". */
const char *dt__model_answer(const struct dt_model *model);
/* Returns the predicted class: the first of the largest logits; for a single logit, 1 if it is
 * above the cut, else 0. */
int dt__model_choose(const struct dt_model *model, const float *logits);

/* Convert outputs to the space in which predictions of several networks are averaged, and back;
 * (rows, nout) both ways. A point of this space is probabilities, or values before units are
 * applied. dt__model_from_mean returns outputs for which dt__model_predict gives the mean. out may
 * be the input. */
void dt__model_to_mean(const struct dt_model *model, const float *logits, int rows, float *out);
void dt__model_from_mean(const struct dt_model *model, const float *mean, int rows, float *out);
/* Returns the sum of the training loss over a batch's rows, given their outputs. */
double dt__model_loss(const struct dt_model *model, const struct dt_batch *batch,
                      const float *logits);

/* ---- network -------------------------------------------------------------------------------- */

struct dt_network; /* activations and scratch of one thread of execution */
/* Creates a network; max_rows >= 1. `precision` (enum dt_precision) is that of the operands of
 * matrix products in dt__network_gradient; the last layer's are always f32. The model must outlive
 * the network. DT_EMEMORY. */
dt_status dt__network_create(const struct dt_model *model, int max_rows, int precision,
                             struct dt_network **out);
/* Sets bf16 copies of the weights of all factored matrices, each at its dt_factored.copy. When a
 * gradient is computed, the copies must be those of its weights. NULL, the default: the network
 * makes copies itself. */
void dt__network_set_copies(struct dt_network *network, const void *copies);
/* dt__bf16_pack updates the copy of one tile of a factored matrix, which other cores may then read;
 * dt__bf16_pack_all updates the copies of `matrices` whole matrices. weights (P); copies: aligned
 * to a cache line. */
void dt__bf16_pack(const struct dt_factored *matrix, struct dt_tile tile, const float *weights,
                   void *copies);
void dt__bf16_pack_all(const struct dt_factored *matrix, int matrices, const float *weights,
                       void *copies);
/* Reserves memory for gradients of batches with at most `entries` sparse entries; without this call
 * the memory grows on demand. */
dt_status dt__network_reserve(struct dt_network *network, size_t entries);
/* Makes each row's outputs in later forward passes independent of the other rows of its batch. */
void dt__network_set_rowwise(struct dt_network *network);
/* Declares that the weights passed to this network have, of each row-sparse tensor, only the rows
 * of the inputs in the ascending list `inputs`. For a tensor whose row 0 belongs to input `first`,
 * the row of input j is stored at row (position of j in the list) - first. NULL, the default: the
 * tensors are whole. The list is borrowed and is read again with each batch; it must contain all
 * inputs of the batch. */
void dt__network_set_inputs(struct dt_network *network, const struct dt_touched *inputs);
/* Adds the batch's inputs to a list for dt__network_set_inputs. Dense inputs are always added.
 * DT_EMEMORY. */
dt_status dt__network_list_inputs(struct dt_network *network, const struct dt_batch *batch,
                                  const struct dt_touched *inout);
/* Returns the number of matrices whose gradients can be returned as factors by networks of
 * `precision` for max_rows rows, and writes them to out unless that is NULL. */
int dt__model_factored(const struct dt_model *model, int precision, int max_rows,
                       struct dt_factored *out);
/* Computes the gradient of a tile of matrix number `matrix` from factors that any network of the
 * same model, precision and max_rows has written; it has the same bits as in the whole gradient.
 * out: (rows, columns) of the tile. DT_EMEMORY. */
dt_status dt__network_tile(struct dt_network *network, int matrix, const void *factors,
                           struct dt_tile tile, float *out);
void dt__network_destroy(struct dt_network *network);

/* Functions that dt__network_gradient calls: before_forward before the forward pass reads the
 * weights of a bucket, and after_backward when the bucket's gradient is written and its weights are
 * no longer needed (from the last bucket to the first). Either may be NULL. */
struct dt_network_hooks {
    void (*before_forward)(void *arg, int bucket);
    void (*after_backward)(void *arg, int bucket);
    void *arg;
};

/* Computes the gradient of a batch of at most max_rows rows, by a forward and a backward pass. If
 * the batch has no rows, zeroes the gradient and calls the hooks.
 *   params      (P) weights, read in place
 *   dropout     key of the random numbers of this draw's masks. The dropout after layer l uses
 *               number (l << 40) + r * nout + c for row r of the draw and column c. Units that
 *               are not dropped are scaled by 1 / (1 - rate). NULL is allowed if no layer has
 *               dropout
 *   accumulate  false: the gradient overwrites the slot; true: the gradient is added to it, so
 *               that a batch larger than max_rows can be computed in ranges of rows
 *   slot        written: the SUM over the rows of the gradient of the sample's loss (cross-entropy;
 *               squared error averaged over nout, of standardised targets if the model has
 *               units). slot.touched set: row-sparse tensors, in their order, have only their
 *               touched rows; needs a batch with a sparse part; rows of dense inputs always count
 *               as touched. slot.factors set: needs a batch without a sparse part, and
 *               accumulate false
 *   out_loss    sum of the samples' losses, in double, in the targets' units; may be NaN: the
 *               caller checks
 * DT_EMEMORY: a product failed; the hooks of the remaining buckets have not been called. */
dt_status dt__network_gradient(struct dt_network *network, const float *params,
                               const struct dt_batch *batch, const struct dt_rng *dropout,
                               bool accumulate, struct dt_slot slot, double *out_loss,
                               const struct dt_network_hooks *hooks);

/* A place where the computation of a gradient stops, for models with split layers. The network
 * stops before the product of each split layer, once forward and once backward, and the caller
 * computes the product for the rows of all replicas together (split.h). */
struct dt_network_stop {
    int split; /* index of the split layer; -1: the gradient is complete */
    bool backward;
    const float *x; /* forward: (rows, nin) */
    /* y and delta are not used for an output layer, whose outputs and loss the caller computes */
    float *y;     /* forward, written by the caller: (rows, nout) x W + bias */
    float *delta; /* backward: (rows, nout) gradient by y */
    float *dx;    /* backward, written by the caller: (rows, nin) gradient by x; NULL: not
                     * needed */
};
/* Starts a gradient with stops. The arguments are those of dt__network_gradient, and must stay
 * unchanged until the end; the slot needs only the model's shared floats. A batch without rows has
 * no stops. */
dt_status dt__network_begin(struct dt_network *network, const float *params,
                            const struct dt_batch *batch, const struct dt_rng *dropout,
                            struct dt_slot slot, const struct dt_network_hooks *hooks);
/* Continues to the next stop, or to the end. *out_loss is set when the forward pass ends.
 * DT_EMEMORY: a product failed. */
dt_status dt__network_continue(struct dt_network *network, double *out_loss,
                               struct dt_network_stop *out_stop);

/* Computes outputs (rows, nout) without dropout: logits, or values before units are applied. rows
 * <= max_rows. DT_EMEMORY: a product failed. */
dt_status dt__network_forward(struct dt_network *network, const float *params,
                              const struct dt_batch *batch, float *out);

/* Computes the standard deviation of the members' predictions, (rows, width) as in
 * dt__model_predict, after a forward pass of a network of several members (model.layers=mean(...)).
 * Writes zeros for other networks. */
void dt__network_spread(const struct dt_network *network, int rows, float *out);

/* ---- split layers --------------------------------------------------------------------------- */

/* Describes split layer number `index`, counted from 0. Returns false if there are no more. */
bool dt__model_split(const struct dt_model *model, int index, struct dt_split_layer *out);
/* Describes layer number `index`, counted from 0, among those that are or could be split; sets
 * *out_split if it is split. Returns false if there are no more. */
bool dt__model_dense(const struct dt_model *model, int index, struct dt_split_layer *out,
                     bool *out_split);

/* The products of one part of a split layer, i.e. of some of its columns. The inputs, and the
 * gradient by them, are in blocks (split.h): a block is (rows, inputs of the block), at offset
 * max_rows * (inputs before the block). The part's weights are (nin, columns). */
struct dt_split_part;
/* Creates a part. precision: as for dt__network_create. first: another part of the same layer,
 * which is computed before this one in each pass. It has rounded the inputs already, and this part
 * uses its result; NULL: this part rounds them itself. DT_EMEMORY. */
dt_status dt__split_part_create(const struct dt_split_layer *layer, size_t columns, int max_rows,
                                int precision, const struct dt_split_part *first,
                                struct dt_split_part **out);
void dt__split_part_destroy(struct dt_split_part *part);
/* Computes y (rows, columns) = x W + bias. DT_EMEMORY, DT_EBUG: the library failed. */
dt_status dt__split_part_forward(struct dt_split_part *part, int rows, const float *x,
                                 const float *weight, const float *bias, float *y);
/* Computes the gradients of one block of the inputs, block 0 first, after a forward pass with the
 * same inputs: grad (inputs of the block, columns) = x^T delta; dx (rows, inputs of the block) =
 * delta W^T, unless dx is NULL. `weight` and `grad` point to the block's first row. */
dt_status dt__split_part_backward(struct dt_split_part *part, size_t block, int rows,
                                  const float *x, const float *weight, const float *delta,
                                  float *grad, float *dx);
/* Computes bias_grad (columns): sums of delta's columns. */
void dt__split_part_bias(const struct dt_split_part *part, int rows, const float *delta,
                         float *bias_grad);

/* Computes one part's contribution to softmax and cross-entropy, when each worker has only parts of
 * the outputs. dt__softmax_join adds the contributions in the order of the parts.
 *   z      (rows, n) outputs begin, begin + 1, ...; overwritten with e^(z - out->most)
 *   label  (rows) */
void dt__softmax_part(int rows, int n, int begin, const int32_t *label, float *z,
                      struct dt_softmax_part *out);
/* Combines the parts. part: (parts, stride) structs, of which the first batch->rows of each part
 * are used, and overwritten with the answers to that part (dt_softmax_part). Returns the sum of the
 * rows' losses. */
double dt__softmax_join(const struct dt_batch *batch, int parts, size_t stride,
                        struct dt_softmax_part *part);
/* Replaces the z that dt__softmax_part wrote by the gradient of the loss by the outputs. */
void dt__softmax_part_gradient(int rows, int n, int begin, const int32_t *label, float *z,
                               const struct dt_softmax_part *part);

/* ---- optimizers ----------------------------------------------------------------------------- */

struct dt_optimizer {
    int kind; /* enum dt_optimizer_kind */
    double momentum, beta1, beta2, alpha, epsilon, weight_decay, l1;
    int nstate;                /* state vectors of P floats, 0 to 2 */
    const char *state_name[2]; /* as in the checkpoint: "momentum", "square", ... */
    int states, vector[2];     /* number of states of this rule, and the index of each one's
                                * vector */
    /* the rule lowers its rates itself: no schedule changes them, and the weights of a linear model
     * start at 0 */
    bool own_rates;
};
enum { DT_MAX_STATE = 2 };
/* Sets the rule of train.optimizer, or if `wide` that of train.wide_optimizer, for the linear path.
 * If the two are of different kinds, the linear path's rule has the default epsilon of its kind. */
void dt__optimizer_init(struct dt_optimizer *optimizer, const struct dt_config *config, bool wide);
/* Assigns vectors to the states of two rules, which update different tensors. A state of the second
 * rule uses the vector of the same name. If there is none, it uses a new vector. If there are
 * already DT_MAX_STATE vectors, it uses one of another name, which is renamed to "state" and its
 * number:
 *
 *   train.optimizer       linear path       vectors             the linear path's states are in
 *   adagrad: square       ftrl: z, square   square, z           z: 1, square: 0
 *   heavy ball: momentum  adagrad: square   momentum, square    square: 1
 *   adam: mean, square    ftrl: z, square   state0, square      z: 0, square: 1 */
void dt__optimizer_share(struct dt_optimizer *optimizer, struct dt_optimizer *wide);

/* Factors of a rule in one update, rounded to f32 where PyTorch rounds. */
struct dt_factors {
    float scale; /* factor on the gradient */
    float decay; /* L2 penalty; adamw: 1 - lr * weight_decay */
    float rate;  /* learning rate; adam: divided by 1 - beta1^t */
    float epsilon;
    float keep1, add1; /* first state: momentum, beta1 or alpha, and 1 - that */
    float keep2, add2; /* second state: beta2, or rmsprop's momentum */
    float unbias;      /* adam: 1 / sqrt(1 - beta2^t) */
    float unbias1;     /* lamb: 1 / (1 - beta1^t) */
    float l1;          /* ftrl */
};
/* Computes the factors, which are the same for all parameters. Call it once per update, not once
 * per range. (They take two powers and a cosine: computing them for each block of 2,048 floats took
 * a tenth of the time of adam's update.)
 *   step     number of updates before this one; 0 for the first (bias correction)
 *   lr       learning rate
 *   scale    factor on the gradient (1 / samples, times the clip factor) */
struct dt_factors dt__optimizer_factors(const struct dt_optimizer *optimizer, uint64_t step,
                                        double lr, double scale);

/* Returns true for rules over whole tensors (lamb), which update in two passes: first
 * dt__optimizer_direct, then dt__optimizer_apply with the directions as gradients and with
 * factors.rate multiplied by dt__optimizer_trust. */
bool dt__optimizer_is_whole(const struct dt_optimizer *optimizer);
/* Turns gradients into directions, element by element, and updates the states. The arguments are
 * those of dt__optimizer_apply, but out must not overlap any of them. */
void dt__optimizer_direct(const struct dt_optimizer *optimizer, const struct dt_factors *factors,
                          size_t n, const float *grad, const float *params, float *out,
                          float *const *state);
/* Returns the factor on the rate, from the squared norms of a tensor's weights and directions. */
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

/* Updates `count` rows of params and state, which are (any, width), in place: row row[i] with the
 * gradient sum at grad + i * width. */
void dt__optimizer_apply_rows(const struct dt_optimizer *optimizer,
                              const struct dt_factors *factors, size_t width, size_t count,
                              const uint32_t *row, const float *grad, float *params,
                              float *const *state);
/* Returns true if an update with a zero gradient changes nothing, so that rows without a gradient
 * can be skipped. */
bool dt__optimizer_is_sparse(const struct dt_optimizer *optimizer);

/* ---- schedules ------------------------------------------------------------------------------ */

struct dt_schedule {
    int kind; /* enum dt_schedule_kind */
    double lr, min_lr, decay_rate;
    uint64_t warmup_steps, decay_steps;
    int64_t drops; /* plateau: number of times the rate has fallen; the caller counts */
};
/* Sets the schedule. total_steps: the run's last step, used if train.decay_steps is 0. */
void dt__schedule_init(struct dt_schedule *schedule, const struct dt_config *config,
                       uint64_t total_steps);
/* Returns the rate of the update after `step` updates. During warm-up it is lr * (step + 1) /
 * warmup_steps. After warm-up, with t = step - warmup_steps and D = decay_steps (total_steps -
 * warmup_steps if 0): linear and cosine fall from lr at t = 0 to min_lr at t >= D; exponential is
 * lr * decay_rate^(t / D), and step is the same with t / D rounded down; plateau is lr *
 * decay_rate^drops. None falls below min_lr. */
double dt__schedule_lr(const struct dt_schedule *schedule, uint64_t step);

/* ---- metrics -------------------------------------------------------------------------------- */

/* Returns the number of doubles in the sums over one chunk of at most DT_EVAL_CHUNK rows. Sums are
 * always computed for one chunk, and merged in double in the order of chunks, so every way of
 * evaluating gives the same digits. They are plain doubles, so they can be sent as bytes. */
size_t dt__metrics_sums(const struct dt_model *model);

struct dt_metrics; /* merged sums, confusion matrix, scores; the model must outlive it */
/* Creates empty metrics. config: eval.metric and eval.full select the optional metrics to compute;
 * NULL: all. */
dt_status dt__metrics_create(const struct dt_model *model, const struct dt_config *config,
                             struct dt_metrics **out);
void dt__metrics_destroy(struct dt_metrics *metrics);
void dt__metrics_reset(struct dt_metrics *metrics);
/* Makes later evaluations leave out auc and average_precision, which sort all rows, unless
 * eval.metric is one of them. */
void dt__metrics_limit(struct dt_metrics *metrics);

/* Computes the sums of one chunk from its logits (rows, nout) into `sums`. confusion: (classes,
 * classes) counts, to which the chunk's are added, one row per true class; or NULL. */
void dt__metrics_chunk(const struct dt_model *model, const float *logits,
                       const struct dt_batch *batch, double *sums, uint64_t *confusion);
/* Adds a chunk's sums. Call it in the order of chunks. */
dt_status dt__metrics_add(struct dt_metrics *metrics, const double *sums);
void dt__metrics_add_confusion(struct dt_metrics *metrics, const uint64_t *confusion);

/* The metrics. One that does not apply is NaN. */
struct dt_metric_values {
    double rows, unknown; /* unknown: rows whose class training never saw; they count as wrong */
    double loss;          /* mean over the rows whose class training saw */
    /* precision, recall, auc, average_precision, f1: with two classes, of the positive class;
     * multilabel: over all labels of all rows. f1 of more classes: the mean over the classes */
    double accuracy, top5, auc, precision, recall, f1, average_precision;
    double balanced_accuracy; /* mean recall over the classes */
    double brier, ece;        /* of probabilities */
    double rmse, mae, r2;     /* rmse, mae: over all elements; r2: mean over the targets */
    double mape;              /* as a fraction, not in percent */
    double guess_rmse;        /* rmse of always predicting the targets' means */
};
void dt__metrics_values(struct dt_metrics *metrics, struct dt_metric_values *out);
/* Scores of one target. */
struct dt_target_score {
    double rmse, guess_rmse, r2;
};
/* Computes the scores of target number `target`, counted from 0. Returns false if there are no more
 * targets, or the task predicts classes. */
bool dt__metrics_target(const struct dt_metrics *metrics, int target, struct dt_target_score *out);
/* Returns the counts (classes, classes), one row per true class, for reading or adding; NULL for
 * regression and for more than DT_MAX_CONFUSION classes. */
uint64_t *dt__metrics_confusion(struct dt_metrics *metrics);
/* Scores of each class; NaN: the class was never predicted, or is not in the data. */
struct dt_class_scores {
    size_t classes;
    double *precision, *recall, *f1, *rows; /* (classes) each */
};
/* Computes the scores from counts (classes, classes), one row per true class. Free `precision` with
 * dt_free: the other arrays are in the same allocation. DT_EMEMORY. */
dt_status dt__class_scores_make(const uint64_t *confusion, size_t classes,
                                struct dt_class_scores *out);
/* Returns the name and the value of recorded metric number `index`, counted from 0; false if there
 * are no more. NaN: the metric does not apply. */
bool dt__metric_at(int index, const struct dt_metric_values *values, const char **out_name,
                   double *out_value);
/* Sets the value of metric number `index`. */
void dt__metric_set(int index, struct dt_metric_values *values, double value);
/* The metric that eval.metric selects. */
struct dt_metric_score {
    const char *name;
    double value;
    bool more_is_better;
};
/* Selects a metric by `metric`, a value of eval.metric; for auto the task determines it. values
 * NULL: `value` is NaN. DT_EUSAGE: the metric does not exist for this model. */
dt_status dt__metric_pick(const struct dt_model *model, int metric,
                          const struct dt_metric_values *values, struct dt_metric_score *out);
/* Returns true if larger values of the metric `name` are better, or if the name is unknown. */
bool dt__metric_rises(const char *name);

#endif
