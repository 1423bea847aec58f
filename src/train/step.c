/* Training, span by span, and the table of steppers.
 *
 *   dt__steps_run           span, synchronization point, span, ...
 *     span                  calls the stepper in use: begin once, step in a loop, settle once;
 *                           its step is one of these:
 *       plain_step          one step of sync training (sync_step.c)
 *       local_step          a round of local steps (local.c)
 *       async_step          one gradient of async training (async_train.c) */
#include "train/step.h"

static const struct dt_stepper *stepper_of(const struct dt_job *job)
{
    static const struct dt_stepper *const ALL[] = {&dt__async_stepper, &dt__local_stepper,
                                                   &dt__plain_stepper};
    int i = 0;
    while (ALL[i]->applies && !ALL[i]->applies(job))
        i++;
    return ALL[i];
}

dt_status dt__steps_open(struct dt_job *job, dt_fill_fn *fill)
{
    struct dt_steps *steps;
    struct dt_group *all;
    struct dt_exchange_times *times;
    const dt_status status = DT__ARENA_ALLOC(&job->arena, "steps", DT__TABLE(steps, 1),
                                             DT__TABLE(all, 1), DT__TABLE(times, 1));
    DT_TRY(dt__ranks_agree(job->world->trainers, status));
    if (job->steps) job->steps->stepper->close(job);
    *all = (struct dt_group){.job = job, .count = job->replicas};
    *steps = (struct dt_steps){.stepper = stepper_of(job), .all = all, .times = times};
    job->steps = steps;
    return steps->stepper->open(job, steps, fill);
}

/* Changes from the stepper in use to the one for the next step (train.local_after). The new
 * stepper's exchange starts with the weights and optimizer state of the old one. */
static dt_status stepper_change(struct dt_job *job)
{
    job->steps->stepper->gather(job);
    const dt_status status = job->bank ? dt__bank_set_aside(job->bank) : DT_OK;
    DT_TRY(dt__ranks_agree(job->world->trainers, status));
    return dt__steps_open(job, dt__bank_refill);
}

static int span(struct dt_job *job)
{
    const struct dt_stepper *stepper = job->steps->stepper;
    struct dt_span span = {.begin = job->step,
                           .end = dt__span_end(job),
                           .start = dt__clock_secs(),
                           .cpu = dt__clock_cpu_secs()};
    int asked = DT_ASK_NONE;
    if (job->bank) dt__trace_phase(job->trace, DT_PHASE_SERVE, job->step);
    if (stepper->begin) stepper->begin(job, &span);
    if (!job->worker) asked = stepper->serve(job, &span);
    while (job->worker && job->step < span.end && !asked)
        asked = stepper->step(job, &span);
    asked = stepper->settle(job, &span, asked);
    if (job->bank)
        dt__log_span(job->bank, job->step - span.begin, dt__clock_secs() - span.start,
                     dt__clock_cpu_secs() - span.cpu);
    return asked;
}

dt_status dt__steps_run(struct dt_job *job)
{
    for (bool end = false; !end;) {
        DT_TRY(dt__sync_point(job, span(job), &end));
        if (!end && job->steps->stepper != stepper_of(job)) DT_TRY(stepper_change(job));
    }
    return DT_OK;
}
