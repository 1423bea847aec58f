/* A stepper takes bank and workers through the steps of a span, from one synchronization point
 * to the next. There is one stepper for each way of training; all other code uses the table. */
#ifndef DT_TRAIN_STEP_H
#define DT_TRAIN_STEP_H

#include "train/bank.h"
#include "train/worker.h"

/* The steps between two synchronization points. */
struct dt_span {
    uint64_t begin, end; /* steps [begin, end) */
    double start, cpu;   /* clock and CPU seconds of this process at its start */
    const struct dt_touched
        *needs;     /* plain steps: inputs whose rows the next step pulls; NULL: none */
    int wire_steps; /* plain steps: measurement of the wire, dt__advise_wire */
    double wire_start, wire_waited;
};

/* `open`, `begin`, `settle`, `gather` and `close` are collective over bank and workers; `step` runs
 * on the workers and `serve` on a bank without replicas, at the same time; `applies` and `weights`
 * are not collective. Those that return int return enum dt_ask: an ask that ends the span. */
struct dt_stepper {
    /* Returns true if this stepper can do the next step. NULL: it always can. The first row of the
     * table that can does it. */
    bool (*applies)(const struct dt_job *job);
    /* Creates the exchange of gradients and weights in steps, which is job->steps. fill: puts
     * the vectors of the bank into it. */
    dt_status (*open)(struct dt_job *job, struct dt_steps *steps, dt_fill_fn *fill);
    void (*begin)(struct dt_job *job, struct dt_span *span); /* NULL: nothing to do */
    /* Does one step, or one round of local steps, and advances job->step. */
    int (*step)(struct dt_job *job, struct dt_span *span);
    /* Serves all steps of the span on the bank, and advances job->step. */
    int (*serve)(struct dt_job *job, const struct dt_span *span);
    /* Ends the span. Afterwards no exchange changes the weights, and all ranks know the same
     * step. */
    int (*settle)(struct dt_job *job, const struct dt_span *span, int asked);
    /* Returns the weights (P) between spans; rows that this rank does not read may be old. */
    const float *(*weights)(const struct dt_job *job);
    /* Gathers weights and optimizer state at the bank. */
    void (*gather)(struct dt_job *job);
    /* Frees what `open` created, even if that failed half-way. */
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

/* dt_ask_fn: returns what signals ask for, and at the bank also the program, clocks and the
 * evaluator. job: struct dt_job. Not collective. */
int dt__asks(void *job);
/* Records, evaluates and saves where due, and decides whether the run continues. asked: enum
 * dt_ask that ended the span. *out_end: the run ends here. Collective over bank and workers. */
dt_status dt__sync_point(struct dt_job *job, int asked, bool *out_end);
/* Evaluates in place. DT_STOPPED: a stop was requested before it was done. */
dt_status dt__evaluate(struct dt_job *job);

#endif
