/* The bank: the files of a run, its records, and the decisions about both. Rank 0 only. */
#ifndef DT_TRAIN_BANK_H
#define DT_TRAIN_BANK_H

#include "report/report.h"
#include "train/baseline.h"
#include "train/evaluation.h"
#include "train/incumbent.h"
#include "train/worker.h"

#define DT__NOT_SAVED UINT64_MAX /* no step */

/* The bank's end of the link to a dedicated evaluator. */
struct dt_evaluator_link {
    bool waits;         /* `message` holds a result that the next synchronization point records */
    bool dismissed;     /* the evaluator was ordered to end; its last message may be in flight */
    uint64_t evaluated; /* 1 + step of the last result; 0: no result yet */
    struct dt_message message;
};

/* Async: staleness of the gradients applied since the last train record. */
struct dt_staleness {
    double sum;
    uint64_t max, count;
};

/* The state that the run starts from. resume.c fills it. */
struct dt_start {
    bool resumed;
    struct dt_checkpoint loaded; /* the checkpoint to resume from; owns its memory */
    struct dt_config before;     /* configuration of the resumed run */
};

/* The run directory's lock and saves. rundir.c fills it. */
struct dt_files {
    int lock;      /* file descriptor, -1: none */
    bool dir_made; /* this run made the directory, and has written no file in it */
    struct dt_writer *writer;
    uint64_t saved_step; /* step of the newest save, pending or complete; DT__NOT_SAVED: none */
    bool saved_pending;  /* whether that save has pending differences */
    double saved_at;     /* clock at the start of that save */
    double retry_at;     /* clock before which no save is started; 0: no save has failed */
    bool best_unsaved;   /* a better model was found after the newest save */
};

/* Accounts and records. records.c fills it. */
struct dt_log {
    struct dt_report *report;
    struct dt_json change; /* record of what this resume changes; empty: nothing changes */
    double run_start;      /* clock at the start of this process, minus the time of earlier
                            * starts */
    double step_secs;      /* sync: mean seconds of a step in the last span */
    double train_secs;     /* state.train_secs at the last train record, or at the start */
    double rows_before;    /* the part of state.loss_rows that was trained before this start */
    double last_loss;
    bool loss_reported;  /* warned that the loss is worse than a guess */
    bool metric_missing; /* eval.metric was not a number in some evaluation with a finite loss */
    double cpu_secs;     /* CPU time of the bank's process during spans */
    double *budgets;     /* (1 + workers, DT__BUDGET_PARTS) sync: each rank's seconds, gathered at
                          * the end */
    struct dt_staleness staleness; /* async */
    const struct dt_async_counts *counts;
    double viewed_at;             /* clock when `ranks` was filled; 0: never */
    struct dt_rank_status *ranks; /* (size) for the status file */
};

struct dt_bank {
    struct dt_job *job;
    const struct dt__train_options *options;
    bool stop; /* the program has asked for a stop */
    struct dt_start start;
    /* The state that the next save writes; its vectors, names and texts belong to others. Its
     * group_difference holds the last round's differences if job->pending; otherwise it is not
     * saved. */
    struct dt_checkpoint state;
    struct dt_files files;
    struct dt_log log;
    struct dt_baseline baseline;
    struct dt_incumbent incumbent;
    struct dt_metrics *metrics; /* used by evaluations in place */
    struct dt_evaluator_link link;
};

/* ---- rundir.c ------------------------------------------------------------------------------- */

/* Takes the run directory, and loads the checkpoint to resume from, which sets job->step and
 * job->replicas. DT_EIO: another process has the directory. DT_EMISMATCH: the configuration
 * differs. */
dt_status dt__bank_prepare(struct dt_bank *bank, struct dt_job *job);
/* Fills the vectors of an exchange (1 + nstate, P floats each): weights and optimizer state.
 * DT_EMISMATCH: the data is not that of the checkpoint. */
typedef dt_status dt_fill_fn(struct dt_bank *bank, float *const *vectors);
/* The dt_fill_fn for the start of a run; also opens the writer and the records. */
dt_status dt__bank_open(struct dt_bank *bank, float *const *vectors);
void dt__bank_close(struct dt_bank *bank);

/* Saves the state of job->step. A failed save is tried again later. last: waits for the save, and
 * fails if it fails. */
dt_status dt__save(struct dt_bank *bank, bool last);
bool dt__save_due(const struct dt_bank *bank);
bool dt__save_time_due(const struct dt_bank *bank); /* due by run.checkpoint_secs */
/* Records the saves that have ended. If one failed, warns about it or, if `last`, returns its
 * status. */
dt_status dt__saves_collect(struct dt_bank *bank, bool last);
dt_status dt__saves_finish(struct dt_bank *bank); /* waits for a pending save, which must succeed */
/* Starts the export of the current weights as the best model. */
dt_status dt__best_found(struct dt_bank *bank);
/* Loads the best model from the first file that contains it. out->params NULL: no file does. */
void dt__best_load(const struct dt_job *job, const struct dt_best *best, struct dt_checkpoint *out);
/* Writes the exports that are missing for the loaded checkpoint. */
dt_status dt__exports_catch_up(struct dt_bank *bank);

/* ---- init.c --------------------------------------------------------------------------------- */

/* Fills params (P) with a new run's weights. DT_EMISMATCH: no tensor of run.init's model fits. */
dt_status dt__init_weights(struct dt_bank *bank, float *params);

/* ---- resume.c ------------------------------------------------------------------------------- */

/* Loads the checkpoint that run.resume names, and checks the configuration against it. */
dt_status dt__resume_load(struct dt_bank *bank);
/* Checks that the training data, with this content, is that of the loaded checkpoint.
 * DT_EMISMATCH. */
dt_status dt__resume_check_data(const struct dt_bank *bank, uint32_t content);
/* Forgets the best model of the loaded checkpoint if other rows are held out now, or eval.metric
 * changed. */
void dt__best_forget_if_other(struct dt_bank *bank);
/* Fills bank->state and the vectors from the loaded checkpoint, or with new weights. */
dt_status dt__bank_start(struct dt_bank *bank, float *const *vectors);
/* Two functions pass weights and state from one exchange to the next when the stepper changes:
 * set_aside copies them, and refill, a dt_fill_fn, fills the vectors of the next exchange with the
 * copy. */
dt_status dt__bank_set_aside(struct dt_bank *bank);
dt_status dt__bank_refill(struct dt_bank *bank, float *const *vectors);

/* ---- sync_point.c --------------------------------------------------------------------------- */

bool dt__stop_asked(struct dt_bank *bank); /* a signal or the program has asked for a stop */

/* ---- records.c ------------------------------------------------------------------------------ */

/* Starts this process's clock of the run. */
void dt__log_begin(struct dt_bank *bank);
/* Opens the records, once bank->state is filled. */
dt_status dt__log_open(struct dt_bank *bank);
void dt__log_close(struct dt_bank *bank);
/* Adds a span to the accounts. In async, training time is counted gradient by gradient
 * instead. */
void dt__log_span(struct dt_bank *bank, uint64_t steps, double secs, double cpu_secs);
/* Async: counts an applied gradient in bank->state, and its staleness in log.staleness. */
void dt__log_applied(struct dt_bank *bank, const struct dt_applied *applied);
void dt__log_counts(struct dt_bank *bank, const struct dt_async_counts *counts);
double dt__wall_secs(const struct dt_bank *bank); /* seconds of this run over all its starts */
void dt__show_progress(struct dt_bank *bank);
/* Adds a changed key to log.change, the record of what this start changes. step: for the record,
 * the step at which the changes begin; only that of the first call is used. */
void dt__record_change(struct dt_bank *bank, uint64_t step, const char *key, const char *text);
/* Prints and records the facts of the run, and what a resume changes. */
dt_status dt__record_start(struct dt_bank *bank);
dt_status dt__record_train(struct dt_bank *bank);
dt_status dt__record_saved(struct dt_bank *bank, const struct dt_saved *saved);
/* Judges an evaluation and records it. Sets *out_better if it is the best so far. */
dt_status dt__record_evaluation(struct dt_bank *bank, const struct dt_evaluation *evaluation,
                                bool *out_better);
/* Writes the final record and closes the file. DT_EIO: the records did not reach the disk. */
dt_status dt__record_final(struct dt_bank *bank, const char *status);

/* ---- evaluator.c: the link, unused without a dedicated evaluator ----------------------------- */

int dt__link_asks(struct dt_bank *bank);          /* enum dt_ask: what the evaluator asks for */
dt_status dt__link_collect(struct dt_bank *bank); /* records results that have arrived */
/* Waits at most most_secs for the result of the last checkpoint. Collective over bank and
 * workers. */
dt_status dt__link_await_last(struct dt_job *job, double most_secs);
void dt__link_dismiss(struct dt_bank *bank, dt_status status); /* orders the evaluator to end */
void dt__link_close(struct dt_bank *bank); /* waits for the last message of a dismissed evaluator */

#endif
