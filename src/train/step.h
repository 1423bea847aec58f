/* A stepper takes bank and workers through the steps of a span, from one synchronization point to
 * the next. There is one for each way of training; all other code asks the job's stepper and knows
 * none of them. */
#ifndef DT_TRAIN_STEP_H
#define DT_TRAIN_STEP_H

#include "train/bank.h"
#include "train/worker.h"

/* The steps between two synchronization points. */
struct dt_span {
    uint64_t begin, end; /* steps [begin, end) */
    double start, cpu;   /* clock and CPU seconds of this process at its start */
    const struct dt_touched
        *needs;     /* plain steps: inputs whose rows the next step pulls, or NULL */
    int wire_steps; /* plain steps: a look at the wire, dt__advise_wire */
    double wire_start, wire_waited;
};

/* Every function is collective over bank and workers, except that `step` runs on the workers and
 * `serve` on a bank without replicas. What they return is enum dt_ask: what ranks ask for, which
 * ends the span. */
struct dt_stepper {
    /* Whether it does the step that comes next. */
    bool (*applies)(const struct dt_job *job);
    /* Makes the exchange of gradients and weights, to steps, which is job->steps; fill: puts the
     * bank's vectors into it. */
    dt_status (*open)(struct dt_job *job, struct dt_steps *steps, dt_fill_fn *fill);
    void (*begin)(struct dt_job *job, struct dt_span *span); /* NULL: nothing to do */
    /* Does one step, or one round of local steps, and advances job->step. */
    int (*step)(struct dt_job *job, struct dt_span *span);
    /* Does the bank's part of all steps of the span, and advances job->step. */
    int (*serve)(struct dt_job *job, const struct dt_span *span);
    /* Ends the span: afterwards the weights are at rest, and all ranks know the same step. */
    int (*settle)(struct dt_job *job, const struct dt_span *span, int asked);
    /* Returns the weights at rest: (P), those of inputs that this rank does not read may be old. */
    const float *(*weights)(const struct dt_job *job);
    /* Brings weights and the optimizer's state to the bank. */
    void (*gather)(struct dt_job *job);
    /* Frees what `open` made; it may have failed half-way. */
    void (*close)(struct dt_job *job);
};

extern const struct dt_stepper dt__plain_stepper; /* sync_step.c */
extern const struct dt_stepper dt__local_stepper; /* local.c */
extern const struct dt_stepper dt__async_stepper; /* async_train.c */

/* Opens the stepper of the step that comes next, in place of the one in use; fill: puts the bank's
 * vectors into its exchange. */
dt_status dt__steps_open(struct dt_job *job, dt_fill_fn *fill);
/* Trains to the end. DT_STOPPED: stopped on request, state saved. */
dt_status dt__steps_run(struct dt_job *job);

/* ---- sync_point.c and evaluate.c ------------------------------------------------------------- */

/* dt_ask_fn: what signals ask for, at the bank also the program, clocks and the evaluator. job:
 * struct dt_job. Not collective. */
int dt__asks(void *job);
/* Records, evaluation, saves, and whether the run goes on. The weights are at rest. asked: enum
 * dt_ask that ended the span. *out_end: there is no other span. */
dt_status dt__sync_point(struct dt_job *job, int asked, bool *out_end);
/* Evaluates in place. DT_STOPPED: a stop was requested before it was done. */
dt_status dt__evaluate(struct dt_job *job);

#endif
