/* A training run: all that the loops share. */
#ifndef DT_TRAIN_RUN_H
#define DT_TRAIN_RUN_H

#include "dtrain/async.h"
#include "dtrain/comm.h"
#include "dtrain/config.h"
#include "dtrain/data.h"
#include "dtrain/model.h"
#include "dtrain/report.h"
#include "dtrain/state.h"
#include "dtrain/train.h"

/* Rows that go through a network at once; a larger share of a batch is done in slices. */
enum { DT__SLICE_ROWS = 4096 };

/* Confusion matrices of so many classes at most go into records and messages. */
enum { DT__RECORD_CLASSES = 20 };

/* What an evaluation found. Plain, so that it travels as bytes. */
struct dt__verdict {
    uint64_t step;
    bool extra;  /* of the last step, out of turn: no step towards an early stop */
    double secs; /* that it took */
    struct dt_metric_values values;
    uint64_t
        confusion[DT__RECORD_CLASSES * DT__RECORD_CLASSES]; /* (classes, classes), true major */
};

/* Evaluator to bank. */
struct dt__message {
    enum { DT__CLAIM, DT__BUSY, DT__VERDICT } kind;
    struct dt__verdict verdict; /* of claim: its step alone */
};

/* Bank only: what the evaluator has said. */
struct dt__desk {
    bool waits;           /* `message` is a verdict that the next meeting takes */
    bool judged;          /* there was a verdict ... */
    uint64_t judged_step; /* ... the last one on this step */
    double heard_at;      /* clock of the last message */
    struct dt__message message;
};

/* What a worker's time in sync training goes into. */
enum dt__budget {
    DT__COMPUTE,
    DT__DATA,
    DT__WAIT,
    DT__REDUCE,
    DT__UPDATE,
    DT__NETWORK,
    DT__BUDGET_PARTS
};

#define DT__NOT_SAVED UINT64_MAX /* no step */

/* Bank only: the run directory and what it keeps. */
struct dt__keeper {
    char *ckpt_dir, *latest_dir, *best_dir;
    int lock; /* file descriptor, -1: none */
    bool resumed;
    struct dt_checkpoint loaded; /* what a resume starts from; owns its memory */
    struct dt_checkpoint state;  /* what the next save holds; borrows vectors, names and texts */
    struct dt_writer *writer;
    struct dt_report *report;
    struct dt_metrics *metrics;
    uint64_t saved_step;   /* of the newest save, under way or good */
    double saved_at;       /* clock of it */
    double retry_at;       /* clock before which no save is tried again; 0: none failed */
    bool save_wanted;      /* a better model has been found */
    double run_start;      /* clock at the start of this process */
    double leg_start;      /* clock when the workers were let go into the leg */
    double wall_before;    /* wall_secs of the runs before */
    double log_train_secs; /* train_secs at the last train record */
    double last_loss;
    double bank_cpu_secs;            /* CPU time of the bank's process during legs */
    double budget[DT__BUDGET_PARTS]; /* sums over the workers, as of the last meeting */
    struct dt__desk desk;
};

/* Async training only. */
struct dt__async {
    struct dt_async *exchange;
    uint64_t *draws; /* (R) worker: the next draw of each of its replicas */
    int turn;        /* worker: of its replicas */

    /* Bank. */
    double clocked;       /* clock up to which training time is counted */
    double staleness_sum; /* these three: since the last train record */
    uint64_t staleness_max, staleness_count;
    const struct dt_async_counts *counts; /* as of the last meeting */
};

struct dt__run {
    const struct dt_config *config;
    struct dt_world *world;
    int mode;                 /* enum dt_mode as run: sync for staleness 0 */
    int replicas;             /* R */
    int first, count;         /* this worker's replicas */
    uint64_t step, last_step; /* updates done; the run's end */

    struct dt_source *train, *eval; /* eval: NULL without held-out data */
    struct dt_plan *plan;
    struct dt_model *model;
    struct dt_optimizer optimizer;
    struct dt_schedule schedule;
    struct dt_exchange *exchange; /* sync */
    struct dt__async async;

    /* Workers. */
    struct dt_loader *loader;
    struct dt_net *net;
    double *loss;     /* (R) loss sums of its replicas since the last train record */
    dt_status failed; /* what went wrong in a step; its message is this thread's error text */
    double budget[DT__BUDGET_PARTS]; /* seconds in sync training, up to the last leg's end */
    double data_secs;                /* of this leg: waited for the loader */

    /* Workers, or the evaluator: this one's chunks of the evaluation data, of `chunks` in all. */
    struct dt_measure *measure; /* NULL if it has none */
    uint64_t chunk_first, chunk_end, chunks;

    struct dt__keeper keeper; /* bank */
};

/* setup.c: everything up to the first step. *out_done: the run was complete already.
 * Collective; fails on all ranks or on none. Close the run in either case. */
dt_status dt__run_open(struct dt__run *run, struct dt_world *world, struct dt_config *config,
                       bool *out_done);
void dt__run_close(struct dt__run *run);
uint64_t dt__epoch_steps(const struct dt__run *run);
/* Drawn in steps [0, step); async: about so many. */
uint64_t dt__samples_at(const struct dt__run *run, uint64_t step);
/* What carries gradients and weights, as a word for the records. */
const char *dt__exchange_name(const struct dt__run *run, char word[16]);
/* Worker: the weights, between legs. */
const float *dt__weights_at_rest(struct dt__run *run);

/* machine.c: warns of too few cores, and of hosts whose kernels differ, which is an error for
 * run.reproducible. Collective over all ranks. */
dt_status dt__machine_check(struct dt__run *run);

/* sync.c: the sync loops of bank and worker. */
dt_status dt__sync_train(struct dt__run *run);

/* async.c: the async run; async_bank.c and async_worker.c: its loops. The bank's returns what was asked
 * for. */
dt_status dt__async_open(struct dt__run *run); /* collective; fails on all ranks or on none */
void dt__async_close(struct dt__run *run);
dt_status dt__async_train(struct dt__run *run);
int dt__async_bank_leg(struct dt__run *run);
void dt__async_worker_leg(struct dt__run *run);
/* async_update.c. The exchange's dt_async_update_fn; arg is the run. */
void dt__async_update(void *run, const struct dt_gradient *gradient, uint64_t before, size_t offset,
                      size_t n, const float *weights, float *out, float *const *states);

/* gradient.c. A worker's part of a step: adds the replica's loss to run->loss; false, with
 * run->failed set, if the loss is not finite or data could not be read. */
bool dt__replica_gradient(struct dt__run *run, int replica, uint64_t step, const float *weights,
                          float *grad, const struct dt_net_hooks *hooks);
void dt__slow_down(const struct dt__run *run); /* test.slow_rank */
double dt__clip_factor(double clip_norm, double norm);
/* The exchange's dt_update_fn; arg is the run. */
void dt__update(void *run, const struct dt_update_info *info, size_t offset, size_t n,
                const float *grad, float *const *vectors, float *out);

/* budget.c: where the workers' time goes in sync training. */
void dt__budget_leg(struct dt__run *run, double secs); /* worker: a leg took so long */
dt_status dt__budget_share(struct dt__run *run);       /* collective over the crew */
void dt__budget_record(struct dt__run *run); /* bank: fields of a record, means a worker */

/* meeting.c: what happens between two legs. */
bool dt__log_due(const struct dt__run *run);
uint64_t dt__next_save(const struct dt__run *run); /* the step of the next run.checkpoint_steps */
uint64_t dt__next_meeting(const struct dt__run *run); /* the step at which the next leg ends */
/* Collective over the crew. asked: enum dt_ask that ended the leg. *out_end: no more legs.
 * DT_STOPPED: stopped on request, state saved. */
dt_status dt__meet(struct dt__run *run, int asked, bool *out_end);
int dt__bank_asks(void *run); /* dt_ask_fn: signals and clocks */

/* keeper.c. Bank only. */
dt_status dt__keeper_prepare(struct dt__run *run); /* run directory, lock, state to resume from */
/* Fills the exchange's vectors; opens writer and records. */
dt_status dt__keeper_open(struct dt__run *run, float *const *vectors);
/* What fails is tried again later, but the last save must be good: it is waited for. */
dt_status dt__keeper_save(struct dt__run *run, bool last);
bool dt__keeper_save_due(const struct dt__run *run);
dt_status dt__keeper_collect(struct dt__run *run); /* records saves that have ended */
void dt__keeper_close(struct dt__run *run);

/* records.c. Bank only. */
dt_status dt__record_start(struct dt__run *run);
dt_status dt__record_train(struct dt__run *run);
dt_status dt__record_eval(struct dt__run *run, const struct dt__verdict *verdict);
dt_status dt__record_saved(struct dt__run *run, const struct dt_saved *saved);
dt_status dt__record_final(struct dt__run *run, const char *status);
void dt__show_progress(struct dt__run *run);
void dt__print_start(struct dt__run *run);

/* verdict.c: what an evaluation means, in place or at the evaluator. */
size_t dt__confusion_cells(const struct dt__run *run); /* classes^2, or 0 if the verdict has none */
/* start: clock at the evaluation's start. */
void dt__verdict_make(const struct dt__run *run, uint64_t step, struct dt_metrics *metrics,
                      double start, struct dt__verdict *out);
/* Updates the best so far and the state of early stopping. */
dt_status dt__verdict_judge(const struct dt__run *run, const struct dt__verdict *verdict,
                            struct dt_best *best, bool *out_better);
/* Whether a is better than b, both by eval.metric; the unknown, and what was measured otherwise, is
 * worse than all. */
bool dt__best_beats(const struct dt__run *run, const struct dt_best *a, const struct dt_best *b);
/* Whether eval.patience is at its end. */
bool dt__stops_early(const struct dt__run *run, const struct dt_best *best);
/* Bank: judges and records. */
dt_status dt__verdict_take(struct dt__run *run, const struct dt__verdict *verdict,
                           bool *out_better);

/* evaluate.c: evaluation in place, by bank and workers. Collective over the crew. */
dt_status
dt__eval_open(struct dt__run *run); /* not collective; for a dedicated evaluator as well */
void dt__eval_close(struct dt__run *run);
int64_t dt__eval_interval(const struct dt__run *run); /* steps; 0: none but at the end */
/* Whether this step is still to be evaluated: a stop may have come before. */
bool dt__eval_due(const struct dt__run *run);
/* DT_STOPPED: a stop was requested before it was done. */
dt_status dt__evaluate(struct dt__run *run);

/* evaluator.c: the evaluator rank, until the bank dismisses it. Returns the job's status. */
dt_status dt__evaluator_run(struct dt__run *run);
enum { DT__TAG_MESSAGE = 1, DT__TAG_ORDER = 2 };
/* Bank to evaluator. */
struct dt__order {
    enum { DT__NOTHING, DT__FINISH, DT__DISMISS } kind;
    uint64_t step; /* finish: the last checkpoint, which is saved */
    int status;    /* dismiss: the job's */
};

/* desk.c: the bank's side of it. Nothing happens there without a dedicated evaluator. */
int dt__desk_asks(struct dt__run *run);          /* enum dt_ask, on the evaluator's behalf. Bank */
dt_status dt__desk_collect(struct dt__run *run); /* takes verdicts that have come. Bank */
/* Waits for the verdict on the last checkpoint, at most so long. Collective over the crew. */
dt_status dt__desk_await(struct dt__run *run, double most_secs);
void dt__desk_dismiss(struct dt__run *run, dt_status status); /* the job is over. Bank */

#endif
