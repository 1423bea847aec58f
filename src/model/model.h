/* model: networks over one flat parameter vector, tasks, optimizers, schedules, metrics. No MPI.
 *
 * A model is a list of layers and a list of named tensors, both made from a text (struct
 * dt_model_desc). Matrices are row-major f32. Kernels do not allocate; what a call needs is in a
 * struct dt_network made once for a largest batch. */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include "base/base.h"
#include "base/batch.h"
#include "config/config.h"

enum { DT_MAX_WIDTH = 1048576, DT_EVAL_CHUNK = 256, DT_MAX_CONFUSION = 1024 };

/* ---- BLAS ----------------------------------------------------------------------------------- */

/* Settles the kernel of matrix products: `kernel` is what run.kernel may be. Not collective; before
 * the process's first product, for OpenBLAS, which is loaded now, reads its kernel once. Who does
 * not call it has "auto". DT_EUSAGE: this machine does not run it. DT_EIO: there is no OpenBLAS. */
dt_status dt__blas_settle(const char *kernel);
/* The same for run.precision=bf16, and before it: products with bf16 operands and f32 sums, by the
 * fastest way that this CPU has, or what `kernel` says behind "-bf16-": amx, avx512 or reference.
 * *out_native false: it has none, and operands are rounded and multiplied in f32. NULL: what
 * follows is in f32, and dt__blas_kernel's name too. DT_EUSAGE: it has not the one asked for. */
dt_status dt__bf16_settle(const char *kernel, bool *out_native);
/* The kernel for this CPU, from a table by its vectors and its model: "oneDNN", or one of
 * OpenBLAS's ("Haswell", ...); NULL: the table has none, and OpenBLAS chooses. */
const char *dt__blas_kernel_for_cpu(void);
/* Multiplies with "oneDNN" from now on, if that is the kernel's name and the CPU has what it takes;
 * else with OpenBLAS, as before. true: with oneDNN. */
bool dt__blas_choose(const char *kernel);
/* The kernel that runs: "oneDNN", or OpenBLAS's, e.g. "Haswell"; "oneDNN-bf16-amx" and the like. */
const char *dt__blas_kernel(void);
const char *dt__blas_version(void); /* OpenBLAS's text */
enum { DT_ONEDNN_VERSION = 32 };
/* The version that this was built with, "2.6.3", into buffer, which is returned. */
const char *dt__onednn_version(char buffer[DT_ONEDNN_VERSION]);
void dt__blas_set_threads(int threads);

/* ---- model ---------------------------------------------------------------------------------- */

/* All that defines a network; kept in checkpoints and exports. */
struct dt_model_desc {
    char *layers; /* "dense 512 relu, dropout 0.2, dense 256 relu"; "linear": none but the output */
    int shape[3]; /* of a row: height, width, channels; n plain features are 1, 1, n */
    int nout;     /* logits: 1 for two classes, C for more; outputs of a target times targets */
    int task;     /* enum dt_task */
    int loss;     /* enum dt_loss; auto: the task's usual one */
    double huber_delta; /* of DT_LOSS_HUBER; in deviations, where targets have units */
    char *quantiles;    /* of DT_LOSS_QUANTILE: "0.1,0.9"; else NULL is fine */
    /* with an embedding or an encoding: features that are numbers, the first ones; else 0 */
    int dense;
    int categories;     /* likewise: entries of each row among the others, one a column; else 0 */
    int encode;           /* enum dt_encode, of numbers; none: the others are 0 */
    int encode_columns;   /* numbers that are encoded: a batch has a z of each */
    int encode_width;     /* inputs of each, besides z */
    int encode_count;     /* floats in the table */
    float *encode_table;  /* of a column one behind the other: frequencies, or edges of bins */
    /* Dense layers of so many weights become split ones, an output layer if it has many classes; 0:
     * none do. A model says 0, and has them in its text. */
    int64_t split;
    int parts; /* of split layers: those of fewer outputs stay whole; 0: any */
};
void dt__model_desc_free(struct dt_model_desc *desc);
/* Outputs of a target: the quantiles, or 1. DT_EUSAGE: the text is wrong. */
dt_status dt__model_desc_each(const struct dt_model_desc *desc, int *out);

/* Puts the network's text into model.layers: what is there, checked and in canonical form, or what
 * model.kind, hidden, activation and dropout come to.
 * DT_EUSAGE: the text or a short form is wrong, or both are given; or model.task has no such
 * train.loss. */
dt_status dt__model_settle(struct dt_config *config);

/* A named array of parameters, row-major in the flat vector. All that is saved, shown, initialised
 * and updated goes over the tensors. */
struct dt_tensor {
    char name[48]; /* "layers/0/weight" */
    int rank;
    size_t shape[4];
    size_t offset, count; /* place in the flat vector, in floats */
    int layer;            /* that owns it, of the layers with parameters; a trained one's bucket */
    enum { DT_TENSOR_WEIGHT, DT_TENSOR_BIAS, DT_TENSOR_STATE } role;
    enum { DT_INIT_ZERO, DT_INIT_ONE, DT_INIT_HE, DT_INIT_GLOROT, DT_INIT_UNIT } init;
    double fan_in, fan_out; /* of the rules for initial values */
    bool wide;              /* of the linear path: train.wide_optimizer updates it */
    /* read by sparse inputs: a batch that has some touches few of its rows, shape[0] */
    bool row_sparse;
};

/* What targets of a task are, for a loss. */
struct dt_targets {
    bool classes; /* one class a row; else numbers */
    bool units;   /* learned may be how far they are from their mean */
    /* numbers: what they may be, in words too; NULL: any number */
    double least, greatest;
    const char *expected;
};
const struct dt_targets *dt__targets_of(int task, int loss);

/* From an output to what is predicted. */
enum dt_link {
    DT_LINK_IDENTITY,
    DT_LINK_EXP,
    DT_LINK_SIGMOID,
    DT_LINK_RISING /* several outputs a target: each is the one before and its own softplus */
};
enum { DT_MAX_QUANTILES = 32 };

/* A loss of a program's own, of one row: returns it, from the row's outputs and targets, (n) each,
 * and writes its gradient by the outputs unless that is NULL. The gradient may be in the outputs'
 * own memory: read an output before writing it. Must give the same for the same numbers; may be
 * called by any rank, for other rows of the same batch. */
struct dt_own_loss {
    double (*row)(void *arg, int n, const float *outputs, const float *targets, float *gradient);
    void *arg;
};

/* The outputs of a network, and the units of their values. */
struct dt_outputs {
    int count;
    int each, middle; /* outputs of a target; which of them counts where one is asked for */
    float quantile[DT_MAX_QUANTILES]; /* (each) of DT_LOSS_QUANTILE, rising */
    int link;                         /* enum dt_link */
    float delta;                      /* of the loss */
    const struct dt_own_loss *own;    /* NULL: the loss is one of the table */
    float *mean, *std; /* (count / each), or NULL: a value is the output as it stands */
    /* Classes: a network's last outputs are multiplied by it, 1 over the temperature. Two classes:
     * the logit above which a row is of class 1; the class that metrics call positive. */
    float cool, cut;
    int positive;
    float *least, *greatest; /* (count / each) of values, or NULL: they may be any */
};

/* What held-out rows say of a model's answers (certainty.h). Zeros: nothing was fitted. */
struct dt_certainty {
    int known;          /* 0: the rest is 0 */
    int positive;       /* of two classes */
    double temperature; /* 1: none */
    double cut;         /* of divided logits */
    uint32_t rows_crc;  /* dt__source_crc of the rows that fitted temperature and cut; 0: none did */
    double coverage;    /* of intervals, where no other is asked for; 0: none */
    int residuals;      /* in all: as many of each target, target after target */
    float *residual;    /* (residuals) ascending within a target */
};

/* Immutable once made; shared by any number of networks. To be read alone. */
struct dt_model {
    struct dt_model_desc desc;
    struct dt_model **member; /* (members) of model.layers=mean(...), which has no layers itself */
    int members;
    size_t features; /* of a row */
    size_t inputs;   /* of the first layer: features and what encodes them */
    int classes;     /* 2 for one logit; 0: values are predicted */
    struct dt_outputs outputs;
    size_t params; /* floats in the flat vector, P */
    /* The first so many are trained; behind them are the state tensors, which no optimizer touches:
     * what a gradient has there is rows * (new value - value seen), and an update adds its mean
     * over rows. */
    size_t trained;
    /* Behind these stand the tensors of split layers, of which a worker has parts alone (split.h);
     * they are trained, too. */
    size_t shared;
    int splits; /* split layers */
    /* In the order of the flat vector, which they fill without gaps: params_crc32c covers it. */
    struct dt_tensor *tensor;
    size_t tensors;
    size_t row_sparse; /* tensors that are */
    /* A bucket is the range of the flat vector that one layer with parameters trains, in order; the
     * state tensors of all are one more bucket, the last. That of a split layer is empty. */
    size_t *bucket_end; /* (buckets) */
    int buckets;

    /* The room's own. */
    const struct dt__loss *loss;
    struct dt__layer *layer;
    size_t layers, layer_room, tensor_room, bucket_room;
};
/* DT_EUSAGE: the text is wrong, or shapes do not fit: names the layer. DT_EMEMORY. */
dt_status dt__model_create(const struct dt_model_desc *desc, struct dt_model **out);
void dt__model_destroy(struct dt_model *model);
/* Regression: gives the outputs the targets' units, value = output * std + mean (one each a
 * target; copied). Gradients are those of standardised targets; losses, metrics and predictions
 * are in the targets' own units. NULL: the outputs are the values. Right after the model was
 * made. DT_EMEMORY. */
dt_status dt__model_set_units(struct dt_model *model, const float *mean, const float *std);
/* Regression: no value is predicted outside least to greatest (one each a target; copied). Gradients
 * are those of the unlimited values. NULL: any value. Right after the model was made. DT_EMEMORY. */
dt_status dt__model_set_range(struct dt_model *model, const float *least, const float *greatest);
/* Classes: outputs of networks are divided by the temperature from now on, and the cut decides
 * between two classes. Not while a network of the model computes. */
void dt__model_set_certainty(struct dt_model *model, const struct dt_certainty *certainty);
/* Gradients and losses are of this one, borrowed, in place of the task's; right after the model was
 * made. The predictions are the outputs. DT_EUSAGE: the task is another than regress, or row is
 * NULL. */
dt_status dt__model_set_loss(struct dt_model *model, const struct dt_own_loss *loss);
/* Row-sparse tensor number `index`, in the order of the flat vector. */
const struct dt_tensor *dt__model_row_sparse_tensor(const struct dt_model *model, size_t index);
/* A table of layers: output shape, parameters and multiply-adds a sample. Caller frees. */
dt_status dt__model_table(const struct dt_model *model, char **out);

/* Initial weights: He normal (before activations, but not before tanh and sigmoid) or Glorot
 * uniform (other layers), embeddings normal with variance 1 / width, the linear path and bias 0; a
 * pure function of seed and layer.
 * Source: He et al. 2015, eq. 10; Glorot and Bengio 2010, eq. 16. */
void dt__model_init(const struct dt_model *model, uint64_t seed, float *params);

/* The bias of the output layer: one float for each output, or, where the outputs are a field, for
 * each of its channels. NULL: the output layer has none. */
const struct dt_tensor *dt__model_output_bias(const struct dt_model *model);
/* Writes the outputs (nout) that, the same for all rows, have the least loss over the labels or
 * targets of a batch (rows * nout below 2^31), weighted by its rows' weights: log-odds, logarithms
 * of frequencies, mean, median, quantiles, logarithm of the mean. A class without rows counts as
 * half a row. Of a field each channel has one value; of a program's own loss, the mean. DT_EMEMORY.
 * */
dt_status dt__model_constant(const struct dt_model *model, const struct dt_batch *batch,
                             float *out);

/* Predictions from a network's outputs (rows, nout): probabilities (rows, classes), of several
 * labels (rows, nout), or values in the targets' units (rows, nout) for regression. out may be
 * logits, if it has the room. */
void dt__model_predict(const struct dt_model *model, const float *logits, int rows, float *out);
/* What these are called: "probabilities" or "values". */
const char *dt__model_answer(const struct dt_model *model);
/* The class as accuracy counts it: the first of the largest logits; of one logit, whether it is
 * above the cut. */
int dt__model_choose(const struct dt_model *model, const float *logits);

/* The space in which predictions of several networks are averaged: probabilities, or values in
 * units of outputs; (rows, nout) both ways. The prediction of what from_mean returns is the mean.
 * out may be the other. */
void dt__model_to_mean(const struct dt_model *model, const float *logits, int rows, float *out);
void dt__model_from_mean(const struct dt_model *model, const float *mean, int rows, float *out);
/* The loss that is to be small, from outputs of a batch's rows: its sum over the rows. */
double dt__model_loss(const struct dt_model *model, const struct dt_batch *batch,
                      const float *logits);

/* ---- network -------------------------------------------------------------------------------- */

struct dt_network; /* activations and scratch of one thread of execution */
/* max_rows >= 1. `precision` (enum dt_precision) is that of the operands of a gradient's products,
 * but for the last layer's. DT_EMEMORY. The model must outlive the network. */
dt_status dt__network_create(const struct dt_model *model, int max_rows, int precision,
                             struct dt_network **out);
/* Copies of all factored matrices' weights, each at its place, which the caller keeps equal to the
 * weights of each gradient; NULL, as at first: the network makes its own. */
void dt__network_set_copies(struct dt_network *network, const void *copies);
/* Brings a tile of the copy of a factored matrix up to date, for other cores; or all copies of so
 * many matrices. weights (P); copies: at a whole cache line. */
void dt__bf16_pack(const struct dt_factored *matrix, struct dt_tile tile, const float *weights,
                   void *copies);
void dt__bf16_pack_all(const struct dt_factored *matrix, int matrices, const float *weights,
                       void *copies);
/* Makes room for gradients of batches with so many sparse entries; else it is made as they come. */
dt_status dt__network_reserve(struct dt_network *network, size_t entries);
/* In forward passes from now on a row's outputs do not depend on the other rows of the batch. */
void dt__network_keep_apart(struct dt_network *network);
/* Where weights of row-sparse tensors are not whole: of these inputs, rising, they stand one behind
 * the other from the tensor's offset on, its row r where input first + r is in the list, less
 * first. NULL, as at first: they are whole. Borrowed, and read anew with each batch, whose inputs
 * are all in it. */
void dt__network_set_inputs(struct dt_network *network, const struct dt_touched *inputs);
/* Adds the batch's inputs to such a list; dense inputs are always in it. DT_EMEMORY. */
dt_status dt__network_list_inputs(struct dt_network *network, const struct dt_batch *batch,
                                  const struct dt_touched *inout);
/* The matrices whose gradients can be given away as factors by networks of `precision` for max_rows
 * rows: returns how many, and writes them to out unless that is NULL. */
int dt__model_factored(const struct dt_model *model, int precision, int max_rows,
                       struct dt_factored *out);
/* The gradient of a tile of matrix number `matrix`, from factors that any network of the model,
 * precision and max_rows left: with the bits that the whole gradient has there. out (rows, columns)
 * of the tile. DT_EMEMORY. */
dt_status dt__network_tile(struct dt_network *network, int matrix, const void *factors,
                           struct dt_tile tile, float *out);
void dt__network_destroy(struct dt_network *network);

/* Called by dt__network_gradient before the forward pass reads the weights of a bucket, and in the
 * backward pass when the bucket's gradient is written and its weights are no longer needed (from
 * the last bucket to the first). Either may be NULL. */
struct dt_network_hooks {
    void (*before_forward)(void *arg, int bucket);
    void (*after_backward)(void *arg, int bucket);
    void *arg;
};

/* Forward and backward over a batch (rows <= max_rows; 0 rows zeroes the gradient and calls hooks).
 *   params      (P) weights, read in place
 *   dropout     key of this draw's masks; the element of row r (in the draw) and column c of the
 *               dropout behind layer l is drop number (l << 40) + r * nout + c; may be NULL if
 *               nothing drops. Kept units are scaled by 1 / (1 - rate)
 *   accumulate  false: the slot gets the gradient; true: it is added to what is there, so that a
 *               batch larger than max_rows is done in slices
 *   slot        written: the SUM over the rows of the gradient of the sample's loss (cross-entropy;
 *               squared error averaged over nout, of standardised targets where the model has
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

/* A gradient in stretches, for models with split layers: at each of these the network stops before
 * the product, forward and again backward, and its caller makes that, for all replicas' rows
 * together (split.h). Arguments are those of dt__network_gradient, and stay as they are until the
 * end; the slot needs the model's shared floats alone. A batch of no rows has no stretches. */
struct dt_network_stop {
    int split; /* the number of the split layer; -1: the gradient is done */
    bool backward;
    const float *x; /* forward: (rows, nin) */
    float *y;       /* forward, to be written: (rows, nout) x W + bias ... */
    float *delta;   /* backward: (rows, nout) gradient by that ... */
    float *dx;      /* backward, to be written: (rows, nin) gradient by x; NULL: not wanted */
    /* ... neither of an output layer, whose loss is the caller's to make. */
};
dt_status dt__network_begin(struct dt_network *network, const float *params,
                            const struct dt_batch *batch, const struct dt_rng *dropout,
                            struct dt_slot slot, const struct dt_network_hooks *hooks);
/* Up to the next stop. *out_loss is written on the way. DT_EMEMORY: a product failed. */
dt_status dt__network_continue(struct dt_network *network, double *out_loss,
                               struct dt_network_stop *out_stop);

/* Forward without dropout: logits, or values without units, (rows, nout) into out. rows <=
 * max_rows. DT_EMEMORY: a product failed. */
dt_status dt__network_forward(struct dt_network *network, const float *params,
                              const struct dt_batch *batch, float *out);

/* After a forward pass of a network of several members (model.layers=mean(...)): the deviation of
 * their predictions, (rows, width) as dt__model_predict; of one member: 0. */
void dt__network_spread(const struct dt_network *network, int rows, float *out);

/* ---- split layers --------------------------------------------------------------------------- */

/* Split layer number `index`, from the first; false: there are no more. */
bool dt__model_split(const struct dt_model *model, int index, struct dt_split_layer *out);
/* What splitting would do: of number `index` of those that are or could be; likewise. */
bool dt__model_dense(const struct dt_model *model, int index, struct dt_split_layer *out,
                     bool *out_split);

/* The products of a part of a split layer, which is some of its columns. Inputs and the gradient by
 * them stand in blocks (split.h): each is (rows, its inputs), and begins where max_rows * (inputs
 * before it) floats do. The part's weights are (nin, columns). */
struct dt_split_part;
/* precision: as for dt__network_create. first: a part of the same layer that goes through each pass
 * before this one, and so has rounded the inputs; NULL: this one does. DT_EMEMORY. */
dt_status dt__split_part_create(const struct dt_split_layer *layer, size_t columns, int max_rows,
                                int precision, const struct dt_split_part *first,
                                struct dt_split_part **out);
void dt__split_part_destroy(struct dt_split_part *part);
/* y (rows, columns) = x W + bias. DT_EMEMORY, DT_EBUG: the library failed. */
dt_status dt__split_part_forward(struct dt_split_part *part, int rows, const float *x,
                                 const float *weight, const float *bias, float *y);
/* Of one block of the inputs, block 0 first, behind a forward pass with the same: grad (its inputs,
 * columns) = x^T delta; dx (rows, its inputs) = delta W^T, unless that is NULL. `weight` and `grad`
 * are at the block's own first row. */
dt_status dt__split_part_backward(struct dt_split_part *part, size_t block, int rows,
                                  const float *x, const float *weight, const float *delta,
                                  float *grad, float *dx);
/* bias_grad (columns): sums of delta's columns. */
void dt__split_part_bias(const struct dt_split_part *part, int rows, const float *delta,
                         float *bias_grad);

/* Softmax and cross-entropy where workers have parts of the outputs. Sums over parts are made in
 * their order.
 * z: (rows, n) outputs from number `begin` on; they become e^(z - most). label: (rows). */
void dt__softmax_part(int rows, int n, int begin, const int32_t *label, float *z,
                      struct dt_softmax_part *out);
/* part: (parts, stride), of which the batch's rows become the answers. Returns the sum of their
 * losses. */
double dt__softmax_join(const struct dt_batch *batch, int parts, size_t stride,
                        struct dt_softmax_part *part);
/* What dt__softmax_part has left in z becomes the gradient of the loss by the outputs. */
void dt__softmax_part_gradient(int rows, int n, int begin, const int32_t *label, float *z,
                               const struct dt_softmax_part *part);

/* ---- optimizers ----------------------------------------------------------------------------- */

struct dt_optimizer {
    int kind; /* enum dt_optimizer_kind */
    double momentum, beta1, beta2, alpha, epsilon, weight_decay, l1;
    int nstate;                /* vectors of P floats that are kept, 0 to 2 */
    const char *state_name[2]; /* as in the checkpoint: "momentum", "square", ... */
    int states, vector[2];     /* this rule's own states, and which of the vectors each is */
    /* its rates fall by themselves: no schedule changes them, and a linear model starts at 0 */
    bool own_rates;
};
enum { DT_MAX_STATE = 2 };
/* The rule of train.optimizer, or of the linear path: its epsilon is its kind's own if
 * train.optimizer is of another kind. */
void dt__optimizer_init(struct dt_optimizer *optimizer, const struct dt_config *config, bool wide);
/* Two rules, each of tensors of its own, share vectors. A state of the second rule takes the vector
 * that has its name; else one more; else, where there are DT_MAX_STATE already, one of another
 * name, which is then called by its number:
 *
 *   train.optimizer       linear path       vectors             the linear path's states are in
 *   adagrad: square       ftrl: z, square   square, z           z: 1, square: 0
 *   heavy ball: momentum  adagrad: square   momentum, square    square: 1
 *   adam: mean, square    ftrl: z, square   state0, square      z: 0, square: 1 */
void dt__optimizer_share(struct dt_optimizer *optimizer, struct dt_optimizer *wide);

/* What a rule multiplies with in one update, rounded to f32 where PyTorch rounds. */
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
/* They are the same for all parameters: made once an update, whatever ranges it is cut into. (Made
 * anew for each block of 2,048 floats they cost a tenth of adam's update: two powers and a cosine.)
 *   step     updates done before this one; 0 for the first (bias correction)
 *   lr       learning rate; scale: factor on the gradient (1 / samples, times the clip factor) */
struct dt_factors dt__optimizer_factors(const struct dt_optimizer *optimizer, uint64_t step,
                                        double lr, double scale);

/* Rules over whole tensors (lamb) update in two passes. In the first, dt__optimizer_direct makes
 * directions of gradients, element by element, and updates the states; arguments are those of
 * dt__optimizer_apply, but out is disjoint from all. Then, with the squared norms of a tensor's
 * weights and directions, dt__optimizer_apply takes its directions for gradients, with
 * factors.rate times dt__optimizer_trust. */
bool dt__optimizer_is_whole(const struct dt_optimizer *optimizer);
void dt__optimizer_direct(const struct dt_optimizer *optimizer, const struct dt_factors *factors,
                          size_t n, const float *grad, const float *params, float *out,
                          float *const *state);
float dt__optimizer_trust(double weights2, double directions2);

/* One update of n parameters, element by element (any split of the vector gives the same bits).
 *   grad     (n) gradient sum
 *   params   (n) read; out (n) written; may be the same pointer, else disjoint
 *   state    nstate pointers to (n), read and written; zeros before the first update
 * Numbers are PyTorch 1.13's torch.optim; ftrl's those of McMahan et al. 2013, algorithm 1. */
void dt__optimizer_apply(const struct dt_optimizer *optimizer, const struct dt_factors *factors,
                         size_t n, const float *grad, const float *params, float *out,
                         float *const *state);

/* The same for `count` rows of params and state, which are (any, width): row row[i], in place, with
 * the gradient sum grad + i * width. */
void dt__optimizer_apply_rows(const struct dt_optimizer *optimizer,
                              const struct dt_factors *factors, size_t width, size_t count,
                              const uint32_t *row, const float *grad, float *params,
                              float *const *state);
/* Whether an update with a gradient of 0 changes nothing, so that rows without one can be left
 * out. */
bool dt__optimizer_is_sparse(const struct dt_optimizer *optimizer);

/* ---- schedules ------------------------------------------------------------------------------ */

struct dt_schedule {
    int kind; /* enum dt_schedule_kind */
    double lr, min_lr, decay_rate;
    uint64_t warmup_steps, decay_steps;
    int64_t drops; /* plateau: how often the rate has fallen; the caller's to count */
};
/* total_steps: the run's last step, for decay_steps = 0. */
void dt__schedule_init(struct dt_schedule *schedule, const struct dt_config *config,
                       uint64_t total_steps);
/* The rate of the update after `step` updates. Warm-up: lr * (step + 1) / warmup_steps. Behind it,
 * with t = step - warmup_steps and D = decay_steps (total_steps - warmup_steps if 0): linear and
 * cosine fall from lr at t = 0 to min_lr at t >= D; exponential is lr * decay_rate^(t / D), step
 * takes t / D rounded down, neither falls below min_lr; plateau is
 * lr * decay_rate^drops, and no less than min_lr. */
double dt__schedule_lr(const struct dt_schedule *schedule, uint64_t step);

/* ---- metrics -------------------------------------------------------------------------------- */

/* Sums over one chunk of at most DT_EVAL_CHUNK rows, always computed from one chunk, and merged in
 * chunk order in double: every way of evaluating gives the same digits. A chunk's sums are so many
 * plain doubles, so that they travel as bytes. */
size_t dt__metrics_sums(const struct dt_model *model);

struct dt_metrics; /* merged sums, confusion matrix, scores; the model must outlive it */
/* config: eval.metric and eval.full decide which of the metrics on request are computed; NULL:
 * all. */
dt_status dt__metrics_create(const struct dt_model *model, const struct dt_config *config,
                             struct dt_metrics **out);
void dt__metrics_destroy(struct dt_metrics *metrics);
void dt__metrics_reset(struct dt_metrics *metrics);

/* Sums of one chunk from its logits (rows, nout) into `sums`; confusion: (classes, classes) counts
 * that are added to, true class major, or NULL. */
void dt__metrics_chunk(const struct dt_model *model, const float *logits,
                       const struct dt_batch *batch, double *sums, uint64_t *confusion);
/* Adds a chunk's sums; call in chunk order. */
dt_status dt__metrics_add(struct dt_metrics *metrics, const double *sums);
void dt__metrics_add_confusion(struct dt_metrics *metrics, const uint64_t *confusion);

/* What the sums come to. Fields that do not apply are NaN. */
struct dt_metric_values {
    double rows, unknown; /* unknown: rows of classes that training never saw; they are wrong */
    double loss;          /* mean over the other rows */
    /* precision, recall, auc, average_precision, f1: two classes, of class 1; multilabel: all
     * labels of all rows count. f1 of more classes: the mean of theirs */
    double accuracy, top5, auc, precision, recall, f1, average_precision;
    double balanced_accuracy; /* the mean recall */
    double brier, ece;        /* of probabilities */
    double rmse, mae, r2;     /* over all elements; r2: the mean of the targets' */
    double mape;              /* as a fraction, not in percent */
    double guess_rmse;        /* of a guess that says the targets' means */
};
void dt__metrics_values(struct dt_metrics *metrics, struct dt_metric_values *out);
/* Of target number `target`, from 0; false: there are no more, or the task predicts classes. */
struct dt_target_score {
    double rmse, guess_rmse, r2;
};
bool dt__metrics_target(const struct dt_metrics *metrics, int target, struct dt_target_score *out);
/* The counts (classes, classes), true class major, to read or to add to; NULL for regression and
 * for more than DT_MAX_CONFUSION classes. */
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
/* Metric number `index`, from 0, of those that are recorded, in order; false: there are no more.
 * NaN does not apply. */
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
/* Whether more is better of the metric of this name; of one that is unknown it is. */
bool dt__metric_rises(const char *name);

#endif
