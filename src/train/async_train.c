/* Async training: each worker takes the newest weights, computes a gradient of one replica and
 * hands it in; gradients are applied one by one as they come. In a span no rank waits for another:
 * the bank follows what is applied, and keeps records on the way. Evaluations and checkpoints are
 * made between spans, when all that was begun is applied. */
#include "base/limits.h"
#include "train/trainer.h"

/* ---- worker --------------------------------------------------------------------------------- */

/* A gradient that failed goes to the bank as well, which ends the span for all. */
static void worker_span(const struct dt_job *job, struct dt_worker *worker)
{
    struct dt_async *async = job->async;
    while (!worker->failed && dt_async_begin(async)) {
        dt_trace_phase(job->trace, DT_PHASE_WAIT, job->step);
        const float *weights = dt_async_read(async);
        int replica = dt__next_replica(job, worker);
        dt_world_heartbeat(job->world, "gradient", worker->draws[replica]);
        struct dt_note note = dt__async_gradient(job, worker, replica, weights,
                                                 dt_async_grad(async), dt_async_touched(async));
        dt_world_show(job->world, worker->samples, -1);
        dt__slow_down(job);
        if (dt_stop_requested()) note.ask |= DT_ASK_STOP;
        dt_trace_phase(job->trace, DT_PHASE_EXCHANGE, note.draw);
        dt_async_send(async, &note);
        dt_trace_phase(job->trace, DT_PHASE_WAIT, note.draw);
    }
}

/* ---- bank ----------------------------------------------------------------------------------- */

/* The workers are under way: what fails here ends the job. */
static void require(const struct dt_bank *bank, dt_status status)
{
    if (status) dt_world_abort(bank->job->world, status);
}

/* Accounts for the gradients that are applied, until the span is over, which has begun at this
 * clock. Returns what has been asked for, by their workers as well: what was begun is applied then,
 * so that the span can end. */
static int bank_span(struct dt_bank *bank, double clock)
{
    struct dt_applied applied[DT__ASYNC_RECORDS];
    struct dt_job *job = bank->job;
    struct dt_async *async = job->async;
    int asked = DT_ASK_NONE;
    double cpu = dt_clock_cpu_secs();
    dt_trace_phase(job->trace, DT_PHASE_SERVE, job->step);
    while (!dt_async_over(async)) {
        int n = dt_async_serve(async, DT__ASYNC_RECORDS, applied);
        for (int i = 0; i < n; i++) {
            dt__count_applied(&applied[i], &bank->state, &bank->staleness);
            job->step = bank->state.step;
            bank->state.train_secs += applied[i].clock - clock; /* up to this gradient */
            clock = applied[i].clock;
            asked |= applied[i].note.ask;
            if (!(asked & DT_ASK_ERROR) && dt__log_due(job)) require(bank, dt__record_train(bank));
        }
        dt__show_progress(bank);
        if (!(asked & DT_ASK_ERROR)) require(bank, dt__saves_collect(bank, false));
        require(bank, dt__link_collect(bank)); /* only an early stop needs the workers */
        if (dt__stop_asked(bank)) asked |= DT_ASK_STOP;
        if (job->best.stop || dt__save_time_due(bank)) asked |= DT_ASK_SYNC;
        if (asked) dt_async_close(async);
    }
    bank->cpu_secs += dt_clock_cpu_secs() - cpu;
    return asked;
}

/* ---- bank and workers ----------------------------------------------------------------------- */

/* Each span's end, and what ended it, go from the bank to all. */
dt_status dt__async_train(struct dt_job *job)
{
    struct dt_bank *bank = job->bank;
    const uint64_t warm = (uint64_t)job->config->train.warm_start_steps;
    for (bool over = false; !over;) {
        struct {
            uint64_t step;
            int asked;
        } end = {0};
        /* Workers may have applied gradients before the bank gets to see that the span is open. */
        const double clock = dt_clock_secs();
        dt_async_open(job->async, job->step, dt__span_end(job), job->step < warm);
        if (bank) {
            end.asked = bank_span(bank, clock);
            end.step = job->step;
        } else {
            worker_span(job, job->worker);
        }
        dt_async_end(job->async);
        if (bank) bank->state.params = dt_async_weights(job->async);
        dt_ranks_bcast(job->world->trainers, &end, sizeof end, 0);
        job->step = end.step;
        const struct dt_async_counts *counts = dt_async_count(job->async);
        if (bank) bank->counts = counts;
        DT_TRY(dt__sync_point(job, end.asked, &over));
    }
    return DT_OK;
}

/* ---- open ----------------------------------------------------------------------------------- */

dt_status dt__async_open(struct dt_job *job)
{
    struct dt_bank *bank = job->bank;
    bool *active = NULL; /* a worker whose replicas have no rows takes no part */
    dt_status status =
        dt__keep(&job->kept, (size_t)job->world->workers, sizeof *active, "workers", &active);
    if (!status) status = dt__list_row_ranges(job);
    for (int r = 0; r < job->replicas && !status; r++)
        active[job->worker_of[r]] |= dt_plan_replica_rows(job->plan, r) > 0;
    const struct dt_async_spec spec = {
        .params = job->model->params,
        .states = job->optimizer.nstate,
        .update = dt__update_async,
        .norm2 = job->config->train.clip_norm > 0 ? dt__gradient_norm2 : NULL,
        .row_range = job->row_range,
        .row_ranges = job->row_ranges,
        .update_rows = dt__update_rows_async,
        .arg = job,
        .staleness = job->config->train.staleness,
        .active = active,
        .owners = (int)job->config->train.owners};
    DT_TRY(dt_ranks_agree(job->world->trainers, status));
    DT_TRY(dt_async_create(job->world, &spec, &job->async));
    if (job->row_ranges) DT_TRY(dt__check_touched(job, dt_async_touched(job->async)));
    if (bank) {
        float *vectors[1 + DT_MAX_STATE] = {dt_async_weights(job->async)};
        for (int i = 0; i < job->optimizer.nstate; i++)
            vectors[1 + i] = dt_async_states(job->async)[i];
        status = dt__bank_open(bank, vectors);
    }
    DT_TRY(dt_ranks_agree(job->world->trainers, status));
    /* Replicas go on with the draw that the checkpoint has them at. */
    uint64_t *draws = bank ? bank->state.draws : job->worker->draws;
    dt_ranks_bcast(job->world->trainers, draws, (size_t)job->replicas * sizeof *draws, 0);
    return DT_OK;
}
