/* A stepper takes bank and workers through the steps of a span, from one synchronization point to
 * the next. Each kind of training has one stepper; other code calls it through this table. */
#ifndef DT_TRAIN_STEP_H
#define DT_TRAIN_STEP_H

#include "train/bank.h"
#include "train/worker.h"

/* The steps between two synchronization points. */
struct dt_span {
    uint64_t begin, end; /* steps [begin, end) */
    double start, cpu;   /* clock, and CPU seconds of this process, at the start of the span */
    const struct dt_touched
        *needs;     /* plain steps: receives the inputs whose rows of weights the next step pulls;
                     * NULL: nothing is pulled */
    int wire_steps; /* plain steps: used by dt__advise_wire to measure the exchange */
    double wire_start, wire_waited;
};

/* `open`, `begin`, `settle`, `gather` and `close` are collective over bank and workers. `step` runs
 * on the workers while `serve` runs on a bank without replicas. `applies` and `weights` are not
 * collective. The functions that return int return an enum dt_ask: an ask other than DT_ASK_NONE
 * ends the span. */
struct dt_stepper {
    /* Returns whether this stepper can do the next step; NULL: it always can. If several can, the
     * first of them in step.c's table does it. */
    bool (*applies)(const struct dt_job *job);
    /* Creates the exchange of gradients and weights, and sets the members of steps. steps is
     * job->steps, which is const elsewhere. fill: puts the bank's vectors into the exchange. */
    dt_status (*open)(struct dt_job *job, struct dt_steps *steps, dt_fill_fn *fill);
    void (*begin)(struct dt_job *job, struct dt_span *span); /* NULL: nothing to do */
    /* Does one step, or one round of local steps, and advances job->step. */
    int (*step)(struct dt_job *job, struct dt_span *span);
    /* Serves all steps of the span on the bank, and advances job->step. */
    int (*serve)(struct dt_job *job, const struct dt_span *span);
    /* Ends the span. Afterwards no exchange changes the weights, and all ranks have the same
     * job->step. */
    int (*settle)(struct dt_job *job, const struct dt_span *span, int asked);
    /* Returns the weights (P) between spans. Rows that this rank does not read may be out of
     * date. */
    const float *(*weights)(const struct dt_job *job);
    /* Gathers weights and optimizer state on the bank. */
    void (*gather)(struct dt_job *job);
    /* Frees what `open` created, even if `open` failed halfway. */
    void (*close)(struct dt_job *job);
};

extern const struct dt_stepper dt__plain_stepper; /* sync_step.c */
extern const struct dt_stepper dt__local_stepper; /* local.c */
extern const struct dt_stepper dt__async_stepper; /* async_train.c */

/* Closes the stepper in use, if any, and opens the one for the next step. fill: puts the bank's
 * vectors into the new exchange. */
dt_status dt__steps_open(struct dt_job *job, dt_fill_fn *fill);
/* Trains to the end of the run. DT_STOPPED: stopped on request, with the state saved. */
dt_status dt__steps_run(struct dt_job *job);

/* ---- sync_point.c and evaluate.c ------------------------------------------------------------- */

/* A dt_ask_fn: returns what signals ask for and, on the bank, also what the program, the clocks and
 * the evaluator ask for. job: struct dt_job. Not collective. */
int dt__asks(void *job);
/* Records, evaluates and saves where due, and decides whether the run continues. asked: the enum
 * dt_ask that ended the span. Sets *out_end if the run ends here. Collective over bank and
 * workers. */
dt_status dt__sync_point(struct dt_job *job, int asked, bool *out_end);
/* Evaluates in place. DT_STOPPED: a stop was requested before the evaluation was complete.
 * Collective over bank and workers. */
dt_status dt__evaluate(struct dt_job *job);

#endif
