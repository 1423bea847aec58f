/* What every rank of a training run knows of it, and what follows from that alone.
 *
 * A rank has its job, and what its role needs besides: struct dt_worker (worker.h), struct dt_bank
 * (bank.h), struct dt_evaluator (evaluator.c). A process alone is bank and worker. */
#ifndef DT_TRAIN_JOB_H
#define DT_TRAIN_JOB_H

#include "base/kept.h"
#include "comm/async.h"
#include "comm/comm.h"
#include "config/config.h"
#include "data/data.h"
#include "model/model.h"
#include "report/report.h"
#include "state/directory.h"
#include "state/state.h"
#include "train/train.h"

/* Replicas that step together, on the same weights: all, or, with local steps, those of a group. */
struct dt_group {
    struct dt_job *job;
    int index;
    int first, count;             /* its replicas */
    struct dt_exchange *exchange; /* its weights and its optimizer's state */
    uint64_t rows;                /* samples of this step, of a group that is not all */

    /* Local steps. */
    bool leads;         /* this worker speaks for it */
    const float *start; /* in a round's first step: the bank's weights; then NULL: its own */
    /* train.overlap, at the first of the ranks that share its weights: (P) each. */
    float *began;      /* the weights that its round began with */
    float *difference; /* what its last round did: began - weights; the exchange under way has it */
    double part;       /* of that round's samples */
};

/* What a worker has of a split layer: columns of the weight, and behind them the bias's. */
struct dt_layer_part {
    int number;
    size_t tensor;                      /* number of the weight; the bias is the next one */
    size_t columns, weights;            /* floats: of a row, and of the bias; of the weight */
    float *vector[DT_EXCHANGE_VECTORS]; /* weights, optimizer state */
    float *grad;                        /* where updates wait for the norm; else NULL */
    float *logits; /* (batch, columns) of a softmax, and the gradient by them; else NULL */
    struct dt_split_part *products;
};

/* The rules of the run's updates. update.c writes them. */
struct dt_rules {
    struct dt_optimizer optimizer;     /* nstate, state_name: of all vectors that the run keeps */
    struct dt_optimizer wide;          /* of the linear path, floats [wide_begin, wide_end) */
    size_t wide_begin, wide_end;       /* SIZE_MAX: the linear path has no rule of its own */
    const struct dt_tensor *undecayed; /* the output's bias if it started at the baseline */
    struct dt_optimizer outer;         /* of the update at the end of a round of local steps */
    struct dt_schedule schedule;
    bool whole; /* a rule measures whole tensors */
};

/* The rounding errors of a group's gradients or differences, as checkpoints name them: an error
 * continues only as part of the same. */
#define DT__GRADIENT_ERROR "gradient_error"
#define DT__DIFFERENCE_ERROR "difference_error"

/* The vectors that a checkpoint holds besides the weights. */
struct dt_saved_vectors {
    const struct dt_optimizer *optimizer; /* whose state the bank has */
    int groups;                           /* that have vectors of their own; 0: none */
    int states;                           /* of the optimizer of each group */
    bool differences;                     /* each group also has its last round's */
    const char *error; /* the rounding error that each group has, by name; NULL: none is rounded */
};

struct dt_worker; /* worker.h */

/* Brings a worker's gradients of a group's step into their slots. */
typedef void dt_gradients_fn(struct dt_group *group, struct dt_worker *worker, uint64_t step,
                             const struct dt_network_hooks *hooks);

/* What the stepper in use has opened. Only step.c and the steppers write it. */
struct dt_steps {
    const struct dt_stepper *stepper;
    struct dt_exchange *exchange; /* NULL: async */
    struct dt_async *async;       /* NULL: sync */
    struct dt_group *all;         /* sync: all replicas as one group */
    struct dt_local *local;       /* this rank's groups; NULL: every step is exchanged */
    struct dt_split_run *split;   /* this worker's parts of split layers; NULL: there are none */
    dt_gradients_fn *gradients;   /* sync: a replica after another, or past split layers together */
    struct dt_exchange *pulls; /* brings the rows of weights that a rank reads; NULL: it has all */
    struct dt_saved_vectors saved;
    struct dt_row_range *row_range; /* (row_ranges) tensors of whose gradients only touched rows
                                       are exchanged */
    int row_ranges;
    struct dt_factored *factored; /* (matrices) bf16: their gradients may stay factors */
    int matrices;
    void *copies; /* of these matrices, as bf16 products read them; NULL: workers pack their own */
};

/* Workers [first, end). */
struct dt_workers {
    int first, end;
};

/* Paths in run.dir. */
struct dt_dirs {
    struct dt__path ckpt_dir, latest_dir, best_dir; /* checkpoints and exports */
    struct dt__path records;                        /* metrics.jsonl */
};

struct dt_job {
    struct dt_config *config;
    struct dt_world *world;
    struct dt_bank *bank;     /* NULL: this rank is none */
    struct dt_worker *worker; /* NULL: this rank is none */
    struct dt__kept *kept;    /* memory that lasts until the run's end */
    struct dt_trace *trace;   /* NULL: none */
    const struct dt_dirs *dirs;
    int mode;       /* enum dt_mode as run: sync for staleness 0 */
    int replicas;   /* R */
    int groups;     /* G, with local steps or a rounded wire */
    int *worker_of; /* (R) the worker that has each replica */

    struct dt_source *train, *eval; /* eval: NULL without held-out data */
    struct dt_set *set;             /* (sets) eval first; sets.c */
    int sets;                       /* 0 without held-out data */
    struct dt_plan *plan;
    struct dt_model *model;
    bool together;                /* split layers: replicas go through the network together */
    struct dt_workers evaluating; /* the workers that evaluate in place */
    const struct dt_rules *rules;
    struct dt_updates *updates;   /* update.c: constants of the update in progress */
    const struct dt_steps *steps; /* NULL: an evaluator, or not yet open */

    uint64_t step, last_step; /* updates done; the run's end */
    bool pending;             /* train.overlap: the weights do not include the last round yet */
    /* The best evaluation so far, at bank and evaluator. Workers have its state at the start, the
     * step that was evaluated last, and whether patience has run out. */
    struct dt_best best;
    struct dt_best incumbent; /* the old model on the same rows (run.init), at bank and evaluator */
};

/* Whether run.preset=table is for such data: CSV, or features that have names, as shards of CSV. */
bool dt__trains_on_table(const struct dt_job *job);
/* Updates in an epoch: T; async: R * T. */
uint64_t dt__epoch_steps(const struct dt_job *job);
/* Updates at the end of train.epochs, rounded up, or at train.max_steps if that is earlier. */
uint64_t dt__last_step(const struct dt_job *job);
/* Samples drawn in steps [0, step); async: about so many. */
uint64_t dt__samples_at(const struct dt_job *job, uint64_t step);
/* Until the run's end at this rate; 0 if the rate is not known, and when more samples were drawn
 * than dt__samples_at foresees, as async may. */
double dt__secs_left(const struct dt_job *job, uint64_t samples, double samples_per_sec);

/* ---- when ----------------------------------------------------------------------------------- */

/* Functions of rounds: rounds.c. */

/* Whether what groups exchange is rounded. */
bool dt__is_rounded(const struct dt_job *job);
/* Whether replicas fall into groups, from train.local_after on or from the start. */
bool dt__is_grouped(const struct dt_job *job);
/* Whether the next step is one of a round of local steps. */
bool dt__is_local(const struct dt_job *job);
/* Whether its groups exchange while the next round computes. */
bool dt__overlaps(const struct dt_job *job);
/* The end of the round that begins at `step`; without local steps each is a round. Rounds end at
 * multiples of train.local_steps behind train.local_after, and with the run. */
uint64_t dt__round_end(const struct dt_job *job, uint64_t step);
/* The begin of the round that ended at `step`, with the local steps of that configuration. */
uint64_t dt__round_begin(const struct dt_job *job, const struct dt_config *config, uint64_t step);
/* Whether a multiple of `every` lies in the round that ended at this step. 0: none does. */
bool dt__round_passed(const struct dt_job *job, int64_t every);
/* The end of the span that has to reach `due`: that of a round. */
uint64_t dt__round_reach(const struct dt_job *job, uint64_t due);
/* Whether a run of that configuration that ended at `step` cut its last round short, or exchanged
 * it at once; pending: it left the exchange of the last round pending. */
bool dt__round_was_cut(const struct dt_job *job, const struct dt_config *config, uint64_t step,
                       bool pending);
/* Whether a stop may not wait for the end of a round of such steps. */
bool dt__round_is_long(const struct dt_job *job, double step_secs);

bool dt__log_due(const struct dt_job *job); /* a train record, at this step */
/* The step at which the span that begins now ends. */
uint64_t dt__span_end(const struct dt_job *job);
bool dt__evaluates_in_place(const struct dt_job *job);
/* Whether this step is one of those that eval.steps names. */
bool dt__eval_regular(const struct dt_job *job);
/* Whether this step is still to be evaluated in place: a stop may have come before. */
bool dt__eval_due(const struct dt_job *job);

/* ---- this rank ------------------------------------------------------------------------------ */

/* What carries gradients and weights, as a word for the records. */
const char *dt__exchange_name(const struct dt_job *job, char word[16]);
double dt__weights_mb(const struct dt_job *job); /* what they take, in MB */
void dt__slow_down(const struct dt_job *job);    /* test.slow_rank */
/* Inputs that so many rows of the source read, at most. */
uint64_t dt__most_inputs(const struct dt_job *job, const struct dt_source *source, uint64_t rows);
/* Lists steps->row_range. DT_EMEMORY. */
dt_status dt__list_row_ranges(struct dt_job *job, struct dt_steps *steps);
/* Of an exchange of sparse rows; touched NULL: gradients are whole, and nobody knows which rows a
 * batch touched: that is said. Collective over bank and workers. DT_EUSAGE: train.lazy needs
 * them. */
dt_status dt__check_touched(const struct dt_job *job, const struct dt_touched *touched);

/* ---- update.c: the arithmetic of an update -------------------------------------------------- */

/* Makes job->rules of configuration and model: the linear path may have a rule of its own.
 * DT_EUSAGE: it has one, and there is no linear path. */
dt_status dt__rules_init(struct dt_job *job);
/* train.schedule=plateau: sets how often the rate has fallen. */
void dt__rate_drop(const struct dt_job *job, int64_t drops);
/* Sum of squares of n floats, in a fixed order. */
double dt__norm2(const float *values, size_t n);
/* dt_async_norm2_fn, of what is trained; the gradient has only the touched rows of the row ranges,
 * or is whole (touched: NULL): the same bits. */
double dt__gradient_norm2(void *job, const struct dt_touched *touched, const float *grad);

/* Doubles that dt__measure_sync fills; 0: no rule needs them. */
size_t dt__measures(const struct dt_job *job);
/* dt_measure_fn of rules over whole tensors: sums become directions. group: struct dt_group. */
void dt__measure_sync(void *group, const struct dt_update_info *info, size_t offset, size_t n,
                      float *sum, float *const *vectors, double *measures);
/* dt_update_fn of sync training. The gradient's sum over the group's rows of the step becomes their
 * mean, clipped by train.clip_norm, and goes to the optimizer with the rate of the step. */
void dt__update_sync(void *group, const struct dt_update_info *info, size_t offset, size_t n,
                     const float *grad, float *const *vectors, float *out);
/* The same of a part of a split layer: sum is of all its floats, grad of n, from `at` on, of its
 * weight or of its bias. */
void dt__measure_part(const struct dt_job *job, const struct dt_update_info *info,
                      const struct dt_layer_part *part, float *sum, double *measures);
void dt__update_part(const struct dt_job *job, const struct dt_update_info *info,
                     const struct dt_layer_part *part, size_t at, size_t n, const float *grad);
/* dt_update_tile_fn of sync training: also of the copies. */
void dt__update_tile_sync(void *group, const struct dt_update_info *info, int matrix,
                          struct dt_tile tile, const float *grad, float *const *vectors);
/* dt_update_rows_fn of sync training. */
void dt__update_rows_sync(void *group, const struct dt_update_info *info,
                          const struct dt_row_range *range, const uint32_t *row, size_t count,
                          const float *grad, float *const *vectors);
/* dt_update_fn of a round's end; grad: the groups' differences from the weights (weights -
 * group's), each times its part of the round's samples, summed: the gradient of the outer update.
 * States move by it. Source: Douillard et al., "DiLoCo: distributed low-communication training of
 * language models", 2023, algorithm 1. With train.overlap the weights are ahead by what the next
 * update takes from the momentum: dt__ahead_rate times that. */
void dt__update_outer(void *job, const struct dt_update_info *info, size_t offset, size_t n,
                      const float *grad, float *const *vectors, float *out);
float dt__ahead_rate(const struct dt_config *config);
/* Applies the mean of the last round's differences, (n), where no exchange takes it up; vectors:
 * weights and outer momentum. */
void dt__apply_differences(struct dt_job *job, uint64_t step, const float *mean,
                           float *const *vectors, size_t n);
/* train.overlap: how much of its own difference a group begins with: as much as the outer update
 * would take of it, if all groups had the same one, but at most all. With more, what sets groups
 * apart grows from round to round. */
double dt__own_rate(const struct dt_job *job);
/* dt_async_update_fn: the same with one replica's gradient over its share, compensated for its
 * delay, at a rate that falls with its staleness, as the configuration says. One that failed
 * changes nothing. */
void dt__update_async(void *job, const struct dt_gradient *part, uint64_t before, size_t offset,
                      size_t n, const float *weights, float *out, float *const *states);
/* dt_async_update_rows_fn of it. */
void dt__update_rows_async(void *job, const struct dt_gradient *part, uint64_t before,
                           const struct dt_row_range *range, const uint32_t *row, size_t count,
                           float *weights, float *const *states);

#endif
