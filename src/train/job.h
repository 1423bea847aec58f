/* The facts of a training run that every rank has, and what follows from them alone.
 *
 * A rank has its job and the struct of its role: struct dt_worker (worker.h), struct dt_bank
 * (bank.h) or struct dt_evaluator (evaluator.c). A process alone is bank and worker. */
#ifndef DT_TRAIN_JOB_H
#define DT_TRAIN_JOB_H

#include "base/arena.h"
#include "comm/async.h"
#include "comm/comm.h"
#include "config/config.h"
#include "data/data.h"
#include "model/model.h"
#include "report/report.h"
#include "state/directory.h"
#include "state/state.h"
#include "train/train.h"

/* Replicas that step together on the same weights: all of them, or, with local steps, a group. */
struct dt_group {
    struct dt_job *job;
    int index;
    int first, count;             /* its replicas */
    struct dt_exchange *exchange; /* holds its weights and optimizer state */
    uint64_t rows;                /* samples of this step; set only for a group that is not all */

    /* Local steps. */
    bool leads;         /* this worker contributes its difference */
    const float *start; /* the bank's weights, in a round's first step; else NULL: its own */
    /* train.overlap, on the first of the ranks that share its weights: (P) each. */
    float *began;      /* weights at the start of its round */
    float *difference; /* began - weights of its last round, which the pending exchange carries */
    double part;       /* fraction of the samples of that round */
};

/* A part of a split layer: columns of the weight, followed by the same columns of the bias. */
struct dt_layer_part {
    int number;
    size_t tensor;                      /* index of the weight; the bias follows it */
    size_t columns, weights;            /* floats of a row and of the bias; floats of the weight */
    float *vector[DT_EXCHANGE_VECTORS]; /* weights, optimizer state */
    float *grad;                        /* gradient, if updates wait for the norm; else NULL */
    float *logits; /* (batch, columns) logits of a softmax, then their gradient; else NULL */
    struct dt_split_part *products;
};

/* The rules of the run's updates. update.c writes them. */
struct dt_rules {
    struct dt_optimizer optimizer;     /* nstate, state_name: all vectors that the run keeps */
    struct dt_optimizer wide;          /* rule of the linear path, floats [wide_begin, wide_end) */
    size_t wide_begin, wide_end;       /* SIZE_MAX: the linear path follows `optimizer` */
    const struct dt_tensor *undecayed; /* the output's bias if it started at the baseline */
    struct dt_optimizer outer;         /* rule of the update at the end of a round of local steps */
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

/* The resources of the stepper in use. step.c, the steppers and the functions that they call to
 * list rows, factors and parts write it. */
struct dt_steps {
    const struct dt_stepper *stepper;
    struct dt_exchange *exchange;    /* NULL: async */
    struct dt_async *async;          /* NULL: sync */
    struct dt_group *all;            /* sync: all replicas as one group */
    struct dt_local *local;          /* this rank's groups; NULL: every step is exchanged */
    struct dt_exchange_times *times; /* of this rank in the current span, in all exchanges */
    struct dt_split_run *split;      /* this worker's parts of split layers; NULL: there are none */
    dt_gradients_fn *gradients;      /* sync: replica by replica, or, with split layers, all
                                   * together */
    struct dt_exchange *pulls; /* pulls the rows of weights that a rank reads; NULL: nothing to
                                * pull */
    struct dt_saved_vectors saved;
    struct dt_row_range *row_range; /* (row_ranges) tensors that exchange only the touched rows
                                     * of their gradients */
    int row_ranges;
    struct dt_factored *factored; /* (matrices) bf16: their gradients may stay factors */
    int matrices;
    void *copies; /* of these matrices, as bf16 products read them; NULL: workers pack their own */
};

/* The sets of rows that a run measures: the held-out rows first. sets.c makes it. */
struct dt_sets {
    struct dt_set *at; /* (count) */
    int count;
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
    struct dt__arena *arena;  /* memory that lasts until the run's end */
    struct dt_trace *trace;   /* NULL: none */
    const struct dt_dirs *dirs;
    int mode;       /* enum dt_mode as run: sync for staleness 0 */
    int replicas;   /* R */
    int groups;     /* G, with local steps or a rounded wire */
    int *worker_of; /* (R) the worker that has each replica */

    struct dt_source *train, *eval; /* eval: NULL without held-out data */
    struct dt_sets sets;            /* none without held-out data */
    struct dt_plan *plan;
    struct dt_model *model;
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

/* Returns whether run.preset=table suits the data: CSV, or features with names (shards of CSV). */
bool dt__trains_on_table(const struct dt_job *job);
/* Returns the updates in an epoch: T; async: R * T. */
uint64_t dt__epoch_steps(const struct dt_job *job);
/* Returns the updates of the run: up to train.epochs, rounded up, or train.max_steps if less. */
uint64_t dt__last_step(const struct dt_job *job);
/* Returns the samples drawn in steps [0, step); async: an estimate. */
uint64_t dt__samples_at(const struct dt_job *job, uint64_t step);
/* Returns the seconds until the run's end at this rate. 0: the rate is not known, or more
 * samples were drawn than dt__samples_at estimates, as async may. */
double dt__secs_left(const struct dt_job *job, uint64_t samples, double samples_per_sec);

/* ---- when: rounds.c, and from dt__log_due on job.c ------------------------------------------- */

/* Returns whether groups round what they exchange. */
bool dt__is_rounded(const struct dt_job *job);
/* Returns whether replicas form groups, from the start or from train.local_after on. */
bool dt__is_grouped(const struct dt_job *job);
/* Returns whether the next step belongs to a round of local steps. */
bool dt__is_local(const struct dt_job *job);
/* Returns whether groups exchange a round while they compute the next one. */
bool dt__overlaps(const struct dt_job *job);
/* Returns the end of the round of step `step`; without local steps each step is a round. Rounds
 * end at multiples of train.local_steps after train.local_after, and with the run. */
uint64_t dt__round_end(const struct dt_job *job, uint64_t step);
/* Returns the start of the round that ended at `step`, with the local steps of that
 * configuration. */
uint64_t dt__round_begin(const struct dt_job *job, const struct dt_config *config, uint64_t step);
/* Returns whether the round that ended at this step contains a multiple of `every`; 0: never. */
bool dt__round_passed(const struct dt_job *job, int64_t every);
/* Returns the end of the span that must reach `due`: the end of a round. */
uint64_t dt__round_reach(const struct dt_job *job, uint64_t due);
/* Returns whether a run of that configuration that ended at `step` cut its last round short or
 * exchanged it at once. pending: it left that exchange pending. */
bool dt__round_was_cut(const struct dt_job *job, const struct dt_config *config, uint64_t step,
                       bool pending);
/* Returns whether a round of such steps is too long for a stop to wait for its end. */
bool dt__round_is_long(const struct dt_job *job, double step_secs);

bool dt__log_due(const struct dt_job *job); /* a train record is due at this step */
/* Returns the step at which the span that starts now ends. */
uint64_t dt__span_end(const struct dt_job *job);
bool dt__evaluates_in_place(const struct dt_job *job);
/* Returns whether eval.steps names this step. */
bool dt__eval_regular(const struct dt_job *job);
/* Returns whether this step must still be evaluated in place: a stop may have come first. */
bool dt__eval_due(const struct dt_job *job);

/* ---- this rank ------------------------------------------------------------------------------ */

/* Returns the word that records use for the exchange. */
const char *dt__exchange_name(const struct dt_job *job, char word[16]);
double dt__weights_mb(const struct dt_job *job); /* size of the weights in MB */
void dt__slow_down(const struct dt_job *job);    /* test.slow_rank */
/* Returns an upper bound of the inputs that this many rows of the source read. */
uint64_t dt__most_inputs(const struct dt_job *job, const struct dt_source *source, uint64_t rows);
/* Lists steps->row_range. DT_EMEMORY. */
dt_status dt__list_row_ranges(struct dt_job *job, struct dt_steps *steps);
/* Reports that an exchange of sparse rows sends whole gradients (touched NULL). Collective over
 * bank and workers. DT_EUSAGE: train.lazy needs touched rows. */
dt_status dt__check_touched(const struct dt_job *job, const struct dt_touched *touched);

/* ---- update.c: the arithmetic of an update -------------------------------------------------- */

/* Makes job->rules from configuration and model. DT_EUSAGE: a rule for the linear path of a
 * model that has none. */
dt_status dt__rules_init(struct dt_job *job);
/* train.schedule=plateau: sets how often the rate has fallen. */
void dt__rate_drop(const struct dt_job *job, int64_t drops);
/* Returns the sum of squares of n floats, added in a fixed order. */
double dt__norm2(const float *values, size_t n);
/* dt_async_norm2_fn over the trained floats. The gradient has only the touched rows of the row
 * ranges, or is whole (touched NULL); the bits are the same. */
double dt__gradient_norm2(void *job, const struct dt_touched *touched, const float *grad);

/* Returns the number of doubles that dt__measure_sync fills; 0: no rule needs them. */
size_t dt__measures(const struct dt_job *job);
/* dt_measure_fn for rules over whole tensors: turns sums into directions. group: struct
 * dt_group. */
void dt__measure_sync(void *group, const struct dt_update_info *info, size_t offset, size_t n,
                      float *sum, float *const *vectors, double *measures);
/* dt_update_fn of sync training: turns the sum over the rows of the step into their mean,
 * clipped by train.clip_norm, and applies the optimizer at the rate of the step. */
void dt__update_sync(void *group, const struct dt_update_info *info, size_t offset, size_t n,
                     const float *grad, float *const *vectors, float *out);
/* dt__measure_sync and dt__update_sync for a part of a split layer. sum: all floats of the part;
 * grad: n of them, from `at` on, all of its weight or all of its bias. */
void dt__measure_part(const struct dt_job *job, const struct dt_update_info *info,
                      const struct dt_layer_part *part, float *sum, double *measures);
void dt__update_part(const struct dt_job *job, const struct dt_update_info *info,
                     const struct dt_layer_part *part, size_t at, size_t n, const float *grad);
/* dt_update_tile_fn of sync training; updates the bf16 copies too. */
void dt__update_tile_sync(void *group, const struct dt_update_info *info, int matrix,
                          struct dt_tile tile, const float *grad, float *const *vectors);
/* dt_update_rows_fn of sync training. */
void dt__update_rows_sync(void *group, const struct dt_update_info *info,
                          const struct dt_row_range *range, const uint32_t *row, size_t count,
                          const float *grad, float *const *vectors);
/* dt_update_fn at the end of a round. grad: each group's difference (weights - group's), times
 * its fraction of the round's samples, summed over groups. It is the gradient of the outer
 * update; states move by it. With train.overlap the weights are ahead by what the next update
 * takes from the momentum, dt__ahead_rate times it. Source: Douillard et al., "DiLoCo:
 * distributed low-communication training of language models", 2023, algorithm 1. */
void dt__update_outer(void *job, const struct dt_update_info *info, size_t offset, size_t n,
                      const float *grad, float *const *vectors, float *out);
float dt__ahead_rate(const struct dt_config *config);
/* Applies the mean difference of the last round, (n), which no exchange will. vectors: weights
 * and outer momentum. */
void dt__apply_differences(struct dt_job *job, uint64_t step, const float *mean,
                           float *const *vectors, size_t n);
/* train.overlap: returns the fraction of its difference with which a group starts: what the
 * outer update would apply if all groups had the same one, and at most 1. With more, groups move
 * further apart from round to round. */
double dt__own_rate(const struct dt_job *job);
/* dt_async_update_fn: applies the gradient of one local batch, at a rate that falls with its
 * staleness if so configured. A gradient that failed changes nothing. */
void dt__update_async(void *job, const struct dt_gradient *part, uint64_t before, size_t offset,
                      size_t n, const float *weights, float *out, float *const *states);
/* dt_async_update_rows_fn of async training. */
void dt__update_rows_async(void *job, const struct dt_gradient *part, uint64_t before,
                           const struct dt_row_range *range, const uint32_t *row, size_t count,
                           float *weights, float *const *states);

#endif
