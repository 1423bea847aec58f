/* model: networks over one flat parameter vector, losses, optimizers, schedules, metrics. No MPI.
 *
 * Matrices are row-major f32. `batch` is the number of rows in a call, `nin` and `nout` are widths.
 * Kernels do not allocate; what a call needs is in a struct dt_net made once for a largest batch. */
#ifndef DTRAIN_MODEL_H
#define DTRAIN_MODEL_H

#include "dtrain/base.h"
#include "dtrain/config.h"

enum { DT_MAX_LAYERS = 64, DT_MAX_WIDTH = 1048576, DT_EVAL_CHUNK = 256, DT_MAX_CONFUSION = 1024 };

/* ---- BLAS ----------------------------------------------------------------------------------- */

/* The kernel for this CPU, from a table of CPU models: "oneDNN", or one of OpenBLAS's ("Haswell", ...);
 * NULL leaves OpenBLAS its own choice. OpenBLAS reads OPENBLAS_CORETYPE as it loads, so main sets the
 * variable and executes itself again before anything else (see src/cli/kernel.c). */
const char *dt_blas_kernel_for_cpu(void);
/* Multiplies with "oneDNN" from now on, if that is the kernel's name and the CPU has what it takes;
 * else with OpenBLAS, as before. true: with oneDNN. */
bool dt_blas_choose(const char *kernel);
/* The kernel that runs: "oneDNN", or OpenBLAS's, e.g. "Haswell". */
const char *dt_blas_kernel(void);
const char *dt_blas_version(void); /* OpenBLAS's text */
enum { DT_ONEDNN_VERSION = 32 };
const char *dt_onednn_version(char buffer[DT_ONEDNN_VERSION]); /* returns buffer */
void dt_blas_set_threads(int threads);

/* ---- network -------------------------------------------------------------------------------- */

/* All that defines a network; kept in checkpoints and exports. */
struct dt_model_spec {
    int kind;       /* enum dt_kind */
    int activation; /* enum dt_activation */
    int task;       /* enum dt_task */
    double dropout; /* in [0, 1) */
    int nin;        /* features */
    int nout;       /* logits: 1 for two classes, C for more; targets for regression */
    int nhidden;    /* hidden layers, at most DT_MAX_LAYERS - 1 */
    int hidden[DT_MAX_LAYERS];
};

/* Fills kind, activation, task, dropout and hidden from model.* ("512,256"; nothing hidden and no
 * dropout if linear); nin and nout are the caller's, before or after. DT_EUSAGE: model.hidden is not a list of widths from 1 to 1048576. */
dt_status dt_model_spec_init(struct dt_model_spec *spec, const struct dt_config *config);

/* One dense layer: weight (nin, nout) at params + weight, bias (nout) at params + bias. The layer's
 * parameters are contiguous, weight before bias, and the layers stand one behind the other without
 * gaps: the flat vector is what params_crc32c covers. */
struct dt_layer {
    int nin, nout;
    size_t weight, bias; /* offsets into the flat vector, in floats */
    size_t begin, end;   /* the layer's range of the flat vector: its bucket */
};

struct dt_model; /* immutable once made; shared by any number of nets */
/* DT_EUSAGE: a field out of range. DT_EMEMORY. */
dt_status dt_model_create(const struct dt_model_spec *spec, struct dt_model **out);
void dt_model_destroy(struct dt_model *model);
const struct dt_model_spec *dt_model_get_spec(const struct dt_model *model);
size_t dt_model_params(const struct dt_model *model); /* floats in the flat vector */
int dt_model_layers(const struct dt_model *model);
const struct dt_layer *dt_model_layer(const struct dt_model *model, int index);
/* "784-512-256-10 relu" into buffer; returns it. */
const char *dt_model_describe(const struct dt_model *model, char *buffer, size_t size);

/* Initial weights: He normal (relu, gelu) or Glorot uniform (tanh, sigmoid, output layers, linear),
 * bias 0; a pure function of seed and layer.
 * Source: He et al. 2015, eq. 10; Glorot and Bengio 2010, eq. 16. */
void dt_model_init(const struct dt_model *model, uint64_t seed, float *params);

/* Rows with what is to be predicted. */
struct dt_batch {
    int rows;           /* 0 is fine */
    uint64_t first_row; /* the first row's number in its draw: dropout of a batch done in slices */
    const float *x;     /* (rows, nin) */
    const int32_t *label; /* classify: (rows), each in [0, classes) */
    const float *target;  /* regress: (rows, nout) */
};

struct dt_net; /* activations and scratch of one thread of execution */
/* max_rows >= 1. DT_EMEMORY. The model must outlive the net. */
dt_status dt_net_create(const struct dt_model *model, int max_rows, struct dt_net **out);
void dt_net_destroy(struct dt_net *net);

/* Called by dt_net_gradient before layer `layer` of the forward pass reads its weights, and in the
 * backward pass when the layer's gradient is written and its weights are no longer needed (from the
 * last layer to the first). Either may be NULL. */
struct dt_net_hooks {
    void (*before_forward)(void *arg, int layer);
    void (*after_backward)(void *arg, int layer);
    void *arg;
};

/* Forward and backward over a batch (rows <= max_rows; 0 rows zeroes the gradient and calls hooks).
 *   params   (P) weights, read in place
 *   dropout  key of this draw's masks; the element of row r (in the draw) and column c of
 *            layer l is drop number (l << 40) + r * nout + c; may be NULL if spec.dropout is 0.
 *            Kept units are scaled by 1 / (1 - dropout)
 *   grad     (P) written: the SUM over the rows of the gradient of the sample's loss
 *            (cross-entropy; squared error averaged over nout)
 *   out_loss sum of the samples' losses, in double; may be NaN: the caller checks
 *   accumulate  false: grad = gradient; true: grad += gradient, so that a batch larger than
 *            max_rows is done in slices */
void dt_net_gradient(struct dt_net *net, const float *params, const struct dt_batch *batch,
                     const struct dt_rng *dropout, bool accumulate, float *grad, double *out_loss,
                     const struct dt_net_hooks *hooks);

/* Forward without dropout: logits or values (rows, nout) into out. rows <= max_rows. */
void dt_net_forward(struct dt_net *net, const float *params, const float *x, int rows, float *out);

/* Probabilities from logits (rows, nout), in place for nout > 1 (softmax); for one logit, `out` is
 * (rows, 2). out: (rows, classes). */
void dt_softmax(const float *logits, int rows, int nout, float *out);

/* ---- optimizers ----------------------------------------------------------------------------- */

struct dt_optimizer {
    int kind; /* enum dt_optimizer_kind */
    double momentum, beta1, beta2, alpha, epsilon, weight_decay;
    int nstate;                /* vectors of P floats that the optimizer keeps, 0 to 2 */
    const char *state_name[2]; /* as in the checkpoint: "momentum", "square", ... */
};
enum { DT_MAX_STATE = 2 };
void dt_optimizer_init(struct dt_optimizer *optimizer, const struct dt_config *config);

/* One update of n parameters, element by element (any split of the vector gives the same bits).
 *   step     updates done before this one; 0 for the first (bias correction, first momentum)
 *   lr       learning rate; scale: factor on the gradient (1 / samples, times the clip factor)
 *   grad     (n) gradient sum
 *   params   (n) read; out (n) written; may be the same pointer, else disjoint
 *   state    nstate pointers to (n), read and written; zeros before the first update
 * Numbers are PyTorch 1.13's torch.optim. */
void dt_optimizer_apply(const struct dt_optimizer *optimizer, uint64_t step, double lr,
                        double scale, size_t n, const float *grad, const float *params, float *out,
                        float *const *state);

/* ---- schedules ------------------------------------------------------------------------------ */

struct dt_schedule {
    int kind; /* enum dt_schedule_kind */
    double lr, min_lr, decay_rate;
    uint64_t warmup_steps, decay_steps;
};
/* total_steps: the run's last step, for decay_steps = 0. */
void dt_schedule_init(struct dt_schedule *schedule, const struct dt_config *config,
                      uint64_t total_steps);
/* The rate of the update after `step` updates. Warm-up: lr * (step + 1) / warmup_steps. Behind it, with
 * t = step - warmup_steps and D = decay_steps (total_steps - warmup_steps if 0): linear and cosine fall
 * from lr at t = 0 to min_lr at t >= D; exponential is lr * decay_rate^(t / D), step takes t / D rounded
 * down, neither falls below min_lr. */
double dt_schedule_lr(const struct dt_schedule *schedule, uint64_t step);

/* ---- metrics -------------------------------------------------------------------------------- */

/* Sums over one chunk of at most DT_EVAL_CHUNK rows, always computed from one chunk, and merged in
 * chunk order in double: every way of evaluating gives the same digits. Plain doubles, so that they
 * travel as bytes. */
struct dt_chunk_sums {
    double rows, loss;
    double correct, top5;                   /* classify */
    double error2, error1, target, target2; /* regress: sums over elements */
    double score[DT_EVAL_CHUNK];            /* two classes: the logit of each row ... */
    double positive[DT_EVAL_CHUNK];         /* ... and its label, for the AUC */
};

struct dt_metrics; /* merged sums, confusion matrix, scores */
dt_status dt_metrics_create(const struct dt_model_spec *spec, struct dt_metrics **out);
void dt_metrics_destroy(struct dt_metrics *metrics);
void dt_metrics_reset(struct dt_metrics *metrics);

/* Sums of one chunk from its logits (rows, nout); confusion: (classes, classes) counts that are added
 * to, true class major, or NULL. */
void dt_metrics_chunk(const struct dt_model_spec *spec, const float *logits,
                      const struct dt_batch *batch, struct dt_chunk_sums *out, uint64_t *confusion);
int dt_metrics_classes(const struct dt_model_spec *spec); /* 2 for one logit; 0 for regression */
/* Adds a chunk's sums; call in chunk order. */
dt_status dt_metrics_add(struct dt_metrics *metrics, const struct dt_chunk_sums *sums);
void dt_metrics_add_confusion(struct dt_metrics *metrics, const uint64_t *confusion);

/* What the sums come to. Fields that do not apply are NaN. */
struct dt_metric_values {
    double rows, loss;
    double accuracy, top5, auc, precision,
        recall; /* precision, recall, auc: two classes, of class 1 */
    double rmse, mae, r2;
};
void dt_metrics_values(struct dt_metrics *metrics, struct dt_metric_values *out);
/* The counts (classes, classes), true class major, to read or to add to; NULL for regression and for
 * more than DT_MAX_CONFUSION classes. */
uint64_t *dt_metrics_confusion(struct dt_metrics *metrics);
/* The value of eval.metric (auto resolved by the task) and whether more is better.
 * DT_EUSAGE: the metric does not exist for this model. */
dt_status dt_metric_pick(const struct dt_model_spec *spec, int metric,
                         const struct dt_metric_values *values, double *out_value,
                         bool *out_more_is_better, const char **out_name);

#endif
