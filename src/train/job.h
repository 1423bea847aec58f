/* The facts of a training run that every rank has, and functions of these facts alone.
 *
 * A rank has its job and the struct of its role: struct dt_worker (worker.h), struct dt_bank
 * (bank.h) or struct dt_evaluator (evaluator.c). In a run with one process that process is both
 * bank and worker. */
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

/* Replicas that step together on the same weights: all of them or, with local steps, one group. */
struct dt_group {
    struct dt_job *job;
    int index;
    int first, count;             /* its replicas: the first, and how many */
    struct dt_exchange *exchange; /* holds its weights and optimizer state */
    uint64_t rows;                /* samples of the current step; set only if the group is not all
                                   * replicas */

    /* The following members are for local steps. */
    bool leads;         /* this worker contributes the group's difference */
    const float *start; /* weights that the next gradient is computed with: in the first step of a
                         * round the bank's; NULL: the group's own */
    /* Vectors (P) of train.overlap, on the first rank that has the group's weights. */
    float *began;      /* the group's weights at the start of its current round */
    float *difference; /* `began` of the last round minus the weights at its end; the pending
                        * exchange sends it */
    double part;       /* fraction of the last round's samples that the group drew */
};

/* A part of a split layer: some columns of the weight, followed by the same columns of the bias. */
struct dt_layer_part {
    int number;
    size_t tensor;                      /* index of the weight in the model's tensors; the bias
                                         * follows it */
    size_t columns, weights;            /* floats in a row of the weight, which are as many as in
                                         * the bias; floats in the whole weight */
    float *vector[DT_EXCHANGE_VECTORS]; /* weights, optimizer state */
    float *grad;                        /* the gradient, kept if updates wait for the norm; else
                                         * NULL */
    float *logits; /* (batch, columns) logits of a softmax, later their gradient; NULL: the
                    * layer has no softmax */
    struct dt_split_part *products;
};

/* The rules of the run's updates. update.c fills them. */
struct dt_rules {
    struct dt_optimizer optimizer;     /* its nstate and state_name count and name every state
                                        * vector that the run keeps */
    struct dt_optimizer wide;          /* rule for the linear path, floats [wide_begin, wide_end) */
    size_t wide_begin, wide_end;       /* SIZE_MAX: the linear path follows `optimizer` */
    const struct dt_tensor *undecayed; /* the output's bias, if it started at the baseline: weight
                                        * decay does not move it */
    struct dt_optimizer outer;         /* rule for the update at the end of a round of local
                                        * steps */
    struct dt_schedule schedule;
    bool whole; /* a rule needs the norms of whole tensors */
};

/* Names, in checkpoints, of the rounding errors of a group's gradients and of its differences. A
 * loaded error is used only under the same name. */
#define DT__GRADIENT_ERROR "gradient_error"
#define DT__DIFFERENCE_ERROR "difference_error"

/* The vectors that a checkpoint holds besides the weights. */
struct dt_saved_vectors {
    const struct dt_optimizer *optimizer; /* the optimizer whose state the bank has */
    int groups;                           /* groups with their own vectors; 0: none */
    int states;                           /* optimizer states of each group */
    bool differences;                     /* each group also has the difference of its last round */
    const char *error; /* name of each group's rounding error; NULL: nothing is rounded */
};

struct dt_worker; /* worker.h */

/* Computes the gradients of the worker's replicas in one step of the group, into their slots. */
typedef void dt_gradients_fn(struct dt_group *group, struct dt_worker *worker, uint64_t step,
                             const struct dt_network_hooks *hooks);

/* The resources of the stepper in use. step.c and the stepper fill it; some members are filled
 * by dt__list_row_ranges, dt__list_factored and dt__split_open, which the stepper calls. */
struct dt_steps {
    const struct dt_stepper *stepper;
    struct dt_exchange *exchange;    /* NULL: async */
    struct dt_async *async;          /* NULL: sync */
    struct dt_group *all;            /* sync: the group of all replicas */
    struct dt_local *local;          /* this rank's groups; NULL: groups exchange in every step */
    struct dt_exchange_times *times; /* this rank's times in the current span, summed over all
                                      * exchanges */
    struct dt_split_run *split;      /* this worker's parts of split layers; NULL: no layer is
                                      * split */
    dt_gradients_fn *gradients;      /* sync: one replica after the other or, with split layers, all
                                      * together */
    struct dt_exchange *pulls; /* the exchange that pulls the rows of weights that a rank reads;
                                * NULL: none are pulled */
    struct dt_saved_vectors saved;
    struct dt_row_range *row_range; /* (row_ranges) tensors that exchange only the touched rows of
                                     * their gradients */
    int row_ranges;
    struct dt_factored *factored; /* (matrices) bf16: matrices whose gradients may stay factors */
    int matrices;
    void *copies; /* copies of these matrices in the layout of bf16 products; NULL: workers pack
                   * their own */
};

/* The sets of rows that a run measures; the held-out rows are set 0. sets.c makes it. */
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
    struct dt_bank *bank;     /* NULL: this rank is not the bank */
    struct dt_worker *worker; /* NULL: this rank is not a worker */
    struct dt__arena *arena;  /* memory that lives until the run ends */
    struct dt_trace *trace;   /* NULL: no trace is kept */
    const struct dt_dirs *dirs;
    int mode;       /* the enum dt_mode that runs: sync also if staleness is 0 */
    int replicas;   /* R */
    int groups;     /* G; used with local steps or a rounded wire */
    int *worker_of; /* (R) the worker of each replica */

    struct dt_source *train, *eval; /* eval: NULL without held-out data */
    struct dt_sets sets;            /* empty without held-out data */
    struct dt_plan *plan;
    struct dt_model *model;
    struct dt_workers evaluating; /* workers that evaluate in place */
    const struct dt_rules *rules;
    struct dt_updates *updates;   /* update.c: constants of the current update */
    const struct dt_steps *steps; /* NULL: an evaluator, or no stepper is open yet */

    uint64_t step, last_step; /* updates done; updates at the end of the run */
    bool pending;             /* train.overlap: the weights do not include the last round yet */
    /* The best evaluation so far, on bank and evaluator. Workers keep the one that was the best at
     * the start; only its members seen and stop are kept current. */
    struct dt_best best;
    struct dt_best incumbent; /* bank and evaluator: the old model (run.init) measured on the same
                               * rows */
};

/* Returns whether run.preset=table suits the data: CSV files, or shards whose features have
 * names. */
bool dt__trains_on_table(const struct dt_job *job);
/* Returns the number of updates in an epoch: T, or in async R * T. */
uint64_t dt__epoch_steps(const struct dt_job *job);
/* Returns the number of updates in the run: train.epochs, rounded up to whole updates, or
 * train.max_steps if that is less. */
uint64_t dt__last_step(const struct dt_job *job);
/* Returns the samples drawn in steps [0, step); in async this is an estimate. */
uint64_t dt__samples_at(const struct dt_job *job, uint64_t step);
/* Returns the seconds until the end of the run at this rate. 0: the rate is unknown or, in async,
 * more samples were drawn than the run was estimated to need. */
double dt__secs_left(const struct dt_job *job, uint64_t samples, double samples_per_sec);

/* ---- when things are due: rounds.c, and from dt__log_due on job.c ---------------------------- */

/* Returns whether groups round what they exchange. */
bool dt__is_rounded(const struct dt_job *job);
/* Returns whether replicas form groups, now or from train.local_after on. */
bool dt__is_grouped(const struct dt_job *job);
/* Returns whether the next step belongs to a round of local steps. */
bool dt__is_local(const struct dt_job *job);
/* Returns whether groups exchange a round while they compute the next one. */
bool dt__overlaps(const struct dt_job *job);
/* Returns the end of the round that contains step `step`; without local steps each step is a round.
 * Rounds end at multiples of train.local_steps after train.local_after, and at the end of the
 * run. */
uint64_t dt__round_end(const struct dt_job *job, uint64_t step);
/* Returns the start of the round that ended at `step`. Takes train.local_steps from config, which
 * may be that of an earlier start. */
uint64_t dt__round_begin(const struct dt_job *job, const struct dt_config *config, uint64_t step);
/* Returns whether the round that ended at this step contains a multiple of `every`; false if
 * `every` is 0. */
bool dt__round_passed(const struct dt_job *job, int64_t every);
/* Returns where the span that starts now must end if something is due at step `due`: at the end of
 * the round that reaches `due`. */
uint64_t dt__round_reach(const struct dt_job *job, uint64_t due);
/* Returns whether a run with this config that ended at `step` cut its last round short, or
 * exchanged it at once in spite of train.overlap. pending: the exchange was left pending. */
bool dt__round_was_cut(const struct dt_job *job, const struct dt_config *config, uint64_t step,
                       bool pending);
/* Returns whether a round of steps of step_secs seconds is too long for a stop to wait for its
 * end. */
bool dt__round_is_long(const struct dt_job *job, double step_secs);

bool dt__log_due(const struct dt_job *job); /* a train record is due at this step */
/* Returns the step at which the span that starts now ends. */
uint64_t dt__span_end(const struct dt_job *job);
bool dt__evaluates_in_place(const struct dt_job *job);
/* Returns whether eval.steps names this step. */
bool dt__eval_regular(const struct dt_job *job);
/* Returns whether this step must still be evaluated in place. That may be so when a run is resumed,
 * if it was stopped before the evaluation. */
bool dt__eval_due(const struct dt_job *job);

/* ---- this rank ------------------------------------------------------------------------------ */

/* Returns the name of the exchange in records. word: buffer for it. */
const char *dt__exchange_name(const struct dt_job *job, char word[16]);
double dt__weights_mb(const struct dt_job *job); /* size of the weights in MB */
void dt__slow_down(const struct dt_job *job);    /* sleeps if test.slow_rank names this rank */
/* Returns an upper bound of the inputs that `rows` rows of the source read. */
uint64_t dt__most_inputs(const struct dt_job *job, const struct dt_source *source, uint64_t rows);
/* Fills steps->row_range. DT_EMEMORY. */
dt_status dt__list_row_ranges(struct dt_job *job, struct dt_steps *steps);
/* Prints, if touched is NULL, that whole gradients are sent although rows are sparse.
 * Collective over bank and workers. DT_EUSAGE: train.lazy needs touched rows. */
dt_status dt__check_touched(const struct dt_job *job, const struct dt_touched *touched);

/* ---- update.c: the arithmetic of an update -------------------------------------------------- */

/* Fills job->rules from configuration and model. DT_EUSAGE: the configuration has a rule for a
 * linear path that the model does not have. */
dt_status dt__rules_init(struct dt_job *job);
/* Sets how often the rate has fallen. Only for train.schedule=plateau. */
void dt__rate_drop(const struct dt_job *job, int64_t drops);
/* Returns the sum of squares of n floats, added in a fixed order. */
double dt__norm2(const float *values, size_t n);
/* dt_async_norm2_fn over the trained floats. Within the row ranges, grad holds only the touched
 * rows or, if touched is NULL, all rows. The result has the same bits in both cases. */
double dt__gradient_norm2(void *job, const struct dt_touched *touched, const float *grad);

/* Returns the number of doubles that dt__measure_sync fills; 0: no rule needs them. */
size_t dt__measures(const struct dt_job *job);
/* dt_measure_fn for rules over whole tensors: turns sums of gradients into directions. group:
 * struct dt_group. */
void dt__measure_sync(void *group, const struct dt_update_info *info, size_t offset, size_t n,
                      float *sum, float *const *vectors, double *measures);
/* dt_update_fn of sync training: turns the sum over the rows of the step into their mean, clips it
 * by train.clip_norm, and applies the optimizer at the rate of the step. */
void dt__update_sync(void *group, const struct dt_update_info *info, size_t offset, size_t n,
                     const float *grad, float *const *vectors, float *out);
/* dt__measure_sync and dt__update_sync for a part of a split layer. sum: the gradient of the whole
 * part. grad: the gradient of its floats [at, at + n), which are all in its weight or all in its
 * bias. */
void dt__measure_part(const struct dt_job *job, const struct dt_update_info *info,
                      const struct dt_layer_part *part, float *sum, double *measures);
void dt__update_part(const struct dt_job *job, const struct dt_update_info *info,
                     const struct dt_layer_part *part, size_t at, size_t n, const float *grad);
/* dt_update_tile_fn of sync training; also updates the bf16 copies. */
void dt__update_tile_sync(void *group, const struct dt_update_info *info, int matrix,
                          struct dt_tile tile, const float *grad, float *const *vectors);
/* dt_update_rows_fn of sync training. */
void dt__update_rows_sync(void *group, const struct dt_update_info *info,
                          const struct dt_row_range *range, const uint32_t *row, size_t count,
                          const float *grad, float *const *vectors);
/* dt_update_fn at the end of a round. grad is the gradient of the outer update: each group's
 * difference (weights - group's weights), times its fraction of the round's samples, summed over
 * groups. grad is subtracted unscaled from state tensors, such as running means. With train.overlap
 * the new weights run ahead: what the next update would subtract because of the momentum,
 * dt__ahead_rate times the momentum, is subtracted already. Source: Douillard et al., "DiLoCo:
 * distributed low-communication training of language models", 2023, algorithm 1. */
void dt__update_outer(void *job, const struct dt_update_info *info, size_t offset, size_t n,
                      const float *grad, float *const *vectors, float *out);
float dt__ahead_rate(const struct dt_config *config);
/* Applies the mean difference (n) of the last round, which is pending although no exchange is left
 * to apply it. vectors: weights and outer momentum. */
void dt__apply_differences(struct dt_job *job, uint64_t step, const float *mean,
                           float *const *vectors, size_t n);
/* Returns the fraction of a group's difference that the group applies at the start of a round of
 * train.overlap: what the outer update would apply if all groups had the same difference, and at
 * most 1. With more than 1, groups move further apart from round to round. */
double dt__own_rate(const struct dt_job *job);
/* dt_async_update_fn: applies the gradient of one local batch, with train.staleness_lr at a rate
 * that falls with its staleness. A failed gradient changes nothing. */
void dt__update_async(void *job, const struct dt_gradient *part, uint64_t before, size_t offset,
                      size_t n, const float *weights, float *out, float *const *states);
/* dt_async_update_rows_fn of async training. */
void dt__update_rows_async(void *job, const struct dt_gradient *part, uint64_t before,
                           const struct dt_row_range *range, const uint32_t *row, size_t count,
                           float *weights, float *const *states);

#endif
