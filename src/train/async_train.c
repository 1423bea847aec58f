/* Async training. Each worker reads the newest weights, computes the gradient of one replica and
 * sends it; gradients are applied one by one as they arrive. Within a span the ranks never
 * meet, and the bank counts the applied gradients and writes records. Evaluations and saves take
 * place between spans, when all gradients are applied. */
#include "base/limits.h"
#include "train/step.h"

/* ---- worker --------------------------------------------------------------------------------- */

/* Computes one gradient and sends it. A failed gradient is sent too: it makes the bank end the
 * span for all ranks. */
static int async_step(struct dt_job *job, struct dt_span *span)
{
    struct dt_worker *worker = job->worker;
    struct dt_async *async = job->steps->async;
    (void)span;
    if (worker->failed || !dt__async_begin(async)) return DT_ASK_SYNC;
    dt__trace_phase(job->trace, DT_PHASE_WAIT, job->step);
    const float *weights = dt__async_read(async);
    const int replica = dt__next_replica(job, worker);
    dt__world_heartbeat(job->world, "gradient", worker->draws[replica]);
    struct dt_gradient_info info = dt__async_gradient(
        job, worker, replica, weights, dt__async_grad(async), dt__async_touched(async));
    dt__world_show(job->world, worker->samples, -1);
    dt__slow_down(job);
    if (dt__stop_requested()) info.ask |= DT_ASK_STOP;
    dt__trace_phase(job->trace, DT_PHASE_EXCHANGE, info.draw);
    dt__async_send(async, &info);
    dt__trace_phase(job->trace, DT_PHASE_WAIT, info.draw);
    return DT_ASK_NONE;
}

/* ---- bank ----------------------------------------------------------------------------------- */

/* Aborts the job on a failure: within the span there is no agreement that could report it to the
 * workers. */
static void require(const struct dt_bank *bank, dt_status status)
{
    if (status) dt__world_abort(bank->job->world, status);
}

/* Counts the applied gradients until the span ends, that is, until all gradients that were started
 * are applied. Returns what the bank and the senders of the gradients ask for. Workers may have
 * applied gradients before the bank gets here, so times count from the start of the span. */
static int async_serve(struct dt_job *job, const struct dt_span *span)
{
    struct dt_applied applied[DT__ASYNC_RECORDS];
    struct dt_bank *bank = job->bank;
    struct dt_async *async = job->steps->async;
    double clock = span->start;
    int asked = DT_ASK_NONE;
    while (!dt__async_over(async)) {
        int n = dt__async_serve(async, DT__ASYNC_RECORDS, applied);
        for (int i = 0; i < n; i++) {
            dt__log_applied(bank, &applied[i]);
            job->step = bank->state.step;
            bank->state.train_secs += applied[i].clock - clock; /* up to this gradient */
            clock = applied[i].clock;
            asked |= applied[i].info.ask;
            if (!(asked & DT_ASK_ERROR) && dt__log_due(job)) require(bank, dt__record_train(bank));
        }
        dt__show_progress(bank);
        if (!(asked & DT_ASK_ERROR)) require(bank, dt__saves_collect(bank, false));
        require(bank, dt__link_collect(bank)); /* of all that a result can cause, only an early
                                                * stop needs the workers */
        if (dt__stop_asked(bank)) asked |= DT_ASK_STOP;
        if (job->best.stop || dt__save_time_due(bank)) asked |= DT_ASK_SYNC;
        if (asked) dt__async_close(async);
    }
    return asked;
}

/* ---- bank and workers ----------------------------------------------------------------------- */

static void async_begin(struct dt_job *job, struct dt_span *span)
{
    const uint64_t warm = (uint64_t)job->config->train.warm_start_steps;
    dt__async_start(job->steps->async, span->begin, span->end, span->begin < warm);
}

/* Sends the bank's step, and what ended the span, to all ranks. */
static int async_settle(struct dt_job *job, const struct dt_span *span, int asked)
{
    struct dt_bank *bank = job->bank;
    struct {
        uint64_t step;
        int asked;
    } end = {job->step, asked};
    (void)span;
    dt__async_end(job->steps->async);
    if (bank) bank->state.params = dt__async_weights(job->steps->async);
    dt__ranks_bcast(job->world->trainers, &end, sizeof end, 0);
    job->step = end.step;
    const struct dt_async_counts *counts = dt__async_count(job->steps->async);
    if (bank) dt__log_counts(bank, counts);
    return end.asked;
}

static const float *async_weights(const struct dt_job *job)
{
    return dt__async_read(job->steps->async);
}

static void async_gather(struct dt_job *job)
{
    dt__async_gather(job->steps->async);
}

static void async_close(struct dt_job *job)
{
    dt__async_destroy(job->steps->async);
}

/* ---- open ----------------------------------------------------------------------------------- */

static bool async_applies(const struct dt_job *job)
{
    return job->mode == DT_MODE_ASYNC;
}

static dt_status async_open(struct dt_job *job, struct dt_steps *steps, dt_fill_fn *fill)
{
    struct dt_bank *bank = job->bank;
    steps->saved = (struct dt_saved_vectors){.optimizer = &job->rules->optimizer};
    bool *active = NULL; /* (workers) false: none of its replicas has rows, so it takes no part */
    dt_status status =
        DT__ARENA_ALLOC(&job->arena, "workers", DT__TABLE(active, (size_t)job->world->workers));
    if (!status) status = dt__list_row_ranges(job, steps);
    for (int r = 0; r < job->replicas && !status; r++)
        active[job->worker_of[r]] |= dt__plan_replica_rows(job->plan, r) > 0;
    const struct dt_async_spec spec = {
        .params = job->model->params,
        .states = job->rules->optimizer.nstate,
        .update = dt__update_async,
        .norm2 = job->config->train.clip_norm > 0 ? dt__gradient_norm2 : NULL,
        .row_range = job->steps->row_range,
        .row_ranges = job->steps->row_ranges,
        .update_rows = dt__update_rows_async,
        .arg = job,
        .staleness = job->config->train.staleness,
        .active = active,
        .owners = (int)job->config->train.owners};
    DT_TRY(dt__ranks_agree(job->world->trainers, status));
    DT_TRY(dt__async_create(job->world, &spec, &steps->async));
    if (job->steps->row_ranges)
        DT_TRY(dt__check_touched(job, dt__async_touched(job->steps->async)));
    if (bank) {
        float *vectors[1 + DT_MAX_STATE] = {dt__async_weights(job->steps->async)};
        for (int i = 0; i < job->rules->optimizer.nstate; i++)
            vectors[1 + i] = dt__async_states(job->steps->async)[i];
        status = fill(bank, vectors);
    }
    DT_TRY(dt__ranks_agree(job->world->trainers, status));
    /* Each replica continues at its draw, which the checkpoint has. */
    uint64_t *draws = bank ? bank->state.draws : job->worker->draws;
    dt__ranks_bcast(job->world->trainers, draws, (size_t)job->replicas * sizeof *draws, 0);
    return DT_OK;
}

const struct dt_stepper dt__async_stepper = {
    .applies = async_applies,
    .open = async_open,
    .begin = async_begin,
    .step = async_step,
    .serve = async_serve,
    .settle = async_settle,
    .weights = async_weights,
    .gather = async_gather,
    .close = async_close,
};
