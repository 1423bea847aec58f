/* Sync training: every step, the replicas' gradients are summed, and the weights updated with their mean.
 *
 * Workers compute; the reducer says who sums and updates: on one host the workers themselves, while the
 * bank sleeps; on several each host its slice; with plain MPI_Reduce the bank. */
#include <string.h>

#include "train/local.h"

/* ---- worker --------------------------------------------------------------------------------- */

/* One step: gradients, then the exchange. Returns what all ranks ask for. */
static int worker_step(const struct dt_job *job, struct dt_worker *worker, struct dt_bank *bank)
{
    struct dt_reducer *reducer = job->reducer;
    struct dt_step step = {.job = job,
                           .reducer = reducer,
                           .step = job->step,
                           .first = worker->first,
                           .end = worker->first + worker->count,
                           .weights = dt_reducer_weights(reducer)};
    dt_reducer_begin(reducer, job->step);
    dt__step_gradients(&step, worker);
    dt__slow_down(job);
    dt_trace_phase(job->trace, DT_PHASE_EXCHANGE, job->step);
    int ask = dt_stop_requested() ? DT_ASK_STOP : DT_ASK_NONE;
    if (bank) ask |= dt__bank_asks(bank);
    return dt_reducer_end(reducer, worker->failed ? DT_ASK_ERROR : ask);
}

/* Steps of a span that are looked at: behind those in which connections are made. */
enum { LOOK_FROM = 5, LOOK_UNTIL = 25 };

/* What a step's exchange with other hosts takes. */
struct wire_look {
    int steps; /* of the span */
    double start, waited;
};

/* The first worker says it once, if it is much, and after how many steps it would be little: a tenth of what
 * the rest of a step takes. */
static void wire_look_step(const struct dt_job *job, struct dt_worker *worker,
                           struct wire_look *look)
{
    enum { MOST_STEPS = 512 };
    if (worker->wire_told || job->world->hosts == 1 ||
        job->world->worker > 0)
        return;
    double now = dt_clock_secs(), waited = dt_reducer_waited(job->reducer);
    if (++look->steps == LOOK_FROM) look->start = now, look->waited = waited;
    if (look->steps < LOOK_UNTIL) return;
    worker->wire_told = true;
    double step = now - look->start, wire = waited - look->waited;
    if (wire < 0.3 * step) return;
    int rarely = 2;
    while (rarely < MOST_STEPS && wire / rarely > 0.1 * (step - wire))
        rarely *= 2;
    double ms = 1e3 / (LOOK_UNTIL - LOOK_FROM);
    const struct dt_config *config = job->config;
    if (dt_reducer_touched(job->reducer, 0)) { /* rounds, and a rounded wire, take whole tables */
        dt_info("the exchange with other hosts takes %.3g ms of a %.3g ms step: try a larger "
                "train.batch",
                ms * wire, ms * step);
        return;
    }
    const bool rounds = config->train.exchange != DT_REDUCER_REDUCE && !config->train.lazy &&
                        config->train.optimizer != DT_OPT_FTRL && config->train.wire != DT_WIRE_Q8;
    dt_info("the exchange with other hosts takes %.3g ms of a %.3g ms step: try train.local_steps=%d%s%s",
            ms * wire, ms * step, rarely, rounds ? ", or train.wire=q8, which stays in step with " : "",
            !rounds                              ? ""
            : config->train.wire == DT_WIRE_BF16 ? "half of the bytes"
                                                 : "a quarter of the bytes");
}

/* bank: that of a process alone, else NULL. */
static int worker_span(struct dt_job *job, struct dt_worker *worker, struct dt_bank *bank,
                       uint64_t end)
{
    int asked = DT_ASK_NONE;
    double start = dt_clock_secs();
    struct wire_look look = {0};
    while (job->step < end && !asked) {
        if (job->local) {
            asked = dt__local_round(job, worker, bank, dt__round_end(job, job->step));
            continue;
        }
        asked = worker_step(job, worker, bank);
        wire_look_step(job, worker, &look);
        if (!(asked & DT_ASK_ERROR)) job->step++;
    }
    dt_reducer_settle(job->reducer);
    dt__budget_add(job, worker, dt_clock_secs() - start);
    return asked;
}

/* ---- bank and workers ----------------------------------------------------------------------- */

static int bank_span(struct dt_bank *bank, uint64_t end)
{
    struct dt_job *job = bank->job;
    if (job->local) {
        /* The exchange of a round is the reducer's step. */
        uint64_t rounds = 0, done;
        for (uint64_t step = job->step; step < end; step = dt__round_end(job, step))
            rounds++;
        int asked = dt_reducer_serve(job->reducer, 0, rounds, dt__bank_asks, bank, &done);
        for (; done > 0; done--)
            job->step = dt__round_end(job, job->step);
        return asked;
    }
    return dt_reducer_serve(job->reducer, job->step, end, dt__bank_asks, bank, &job->step);
}

/* Its steps, and behind the run's last one what is pending. */
static int span_steps(const struct dt_trainer *trainer, uint64_t end)
{
    struct dt_job *job = trainer->job;
    const uint64_t begin = job->step;
    int asked = trainer->worker ? worker_span(job, trainer->worker, trainer->bank, end)
                                : bank_span(trainer->bank, end);
    if (asked & DT_ASK_VOID) return asked;
    job->pending |= job->local && dt__overlaps(job) && job->step > begin;
    if (job->pending && job->step == job->last_step) asked |= dt__local_catch_up(trainer);
    return asked;
}

static int span(const struct dt_trainer *trainer, uint64_t end)
{
    struct dt_job *job = trainer->job;
    struct dt_bank *bank = trainer->bank;
    if (!bank) return span_steps(trainer, end);
    double cpu = dt_clock_cpu_secs(), steps = (double)job->step;
    dt_trace_phase(job->trace, DT_PHASE_SERVE, job->step);
    int asked = span_steps(trainer, end);
    double secs = dt_clock_secs() - bank->span_start;
    steps = (double)job->step - steps;
    if (steps > 0) bank->step_secs = secs / steps;
    bank->state.train_secs += secs;
    bank->cpu_secs += dt_clock_cpu_secs() - cpu;
    return asked;
}

/* ---- open ----------------------------------------------------------------------------------- */

/* Where gradients are whole nobody knows which rows a batch touched. */
static dt_status check_touched(const struct dt_job *job, bool are_touched)
{
    if (are_touched) return DT_OK;
    if (job->config->train.lazy && !dt_optimizer_is_sparse(&job->optimizer))
        return dt_fail(DT_EUSAGE,
                       "train.lazy=yes: expected train.exchange=auto or ordered, or all ranks "
                       "on one host and node: elsewhere gradients are whole");
    if (job->world->is_bank)
        dt_info("sparse rows: the gradient travels whole, and every step updates all weights; with "
                "train.exchange=auto or ordered, on one host node too, it is of the rows that a "
                "batch touches");
    return DT_OK;
}

/* Of the ends of rounds: each group is a replica, at its first worker; gradients inside groups are whole. */
static dt_status create_outer(struct dt_job *job, struct dt_reducer_spec *spec)
{
    int *leader_of = NULL;
    dt_status status = dt_alloc((size_t)job->groups, sizeof(int), "groups", &leader_of);
    DT_TRY(dt_ranks_agree(job->world->trainers, status));
    for (int g = 0, count; g < job->groups; g++)
        dt__group_workers(job, g, &leader_of[g], &count);
    spec->worker_of = leader_of;
    spec->replicas = job->groups;
    spec->vectors = 1 + job->outer.nstate + dt__is_rounded(job);
    spec->norm = false;
    spec->update = dt__update_outer;
    status = dt_reducer_create(job->world, spec, &job->reducer);
    dt_free(leader_of);
    return status;
}

/* The matrices whose gradients may stay factors until they are used: of dense rows that go through the network at
 * once. */
static dt_status list_factored(const struct dt_job *job, struct dt_factored **out, int *out_count)
{
    const struct dt_schema *schema = dt_source_schema(job->train);
    const uint64_t rows = dt_plan_max_share(job->plan);
    const int precision = (int)job->config->run.precision;
    if (schema->dense < schema->features || !rows || rows > DT__SLICE_ROWS) return DT_OK;
    const int count = dt_model_factored(job->model, precision, (int)rows, NULL);
    if (!count) return DT_OK;
    DT_TRY(dt_alloc((size_t)count, sizeof **out, "factored gradients", out));
    *out_count = dt_model_factored(job->model, precision, (int)rows, *out);
    return DT_OK;
}

static dt_status gradient_tile(void *arg, int matrix, const void *factors, struct dt_tile tile,
                               float *out)
{
    const struct dt_job *job = arg;
    return dt_network_tile(job->network, matrix, factors, tile, out);
}

/* A rounded wire: workers have whole groups, where they can, so that their hosts round the sums. Gradients of
 * sparse rows are whole. */
static dt_status create_wired(struct dt_job *job, struct dt_reducer_spec *spec)
{
    int *worker_of = NULL;
    dt_status status = dt_alloc((size_t)job->replicas, sizeof(int), "groups", &worker_of);
    DT_TRY(dt_ranks_agree(job->world->trainers, status));
    for (int w = 0, first, count; w < job->world->workers; w++) {
        dt__worker_replicas(job, w, &first, &count);
        for (int r = first; r < first + count; r++)
            worker_of[r] = w;
    }
    spec->worker_of = worker_of;
    status = dt_reducer_create(job->world, spec, &job->reducer);
    dt_free(worker_of);
    return status;
}

/* On one host the weights in bf16 stand beside those in f32, in one vector more, and who updates a range
 * writes both. Where weights come over a wire, or are rounded as if they did, each worker rounds them itself. */
static dt_status create_reducer(struct dt_job *job)
{
    const bool bf16 = job->config->run.precision == DT_PRECISION_BF16, local = dt__is_local(job);
    const bool rounded = dt__is_rounded(job);
    const bool keeps_rounded = bf16 && !local && !rounded && job->world->hosts == 1;
    struct dt_reducer_spec spec = {.kind = job->config->train.exchange,
                                   .reproducible = job->config->run.reproducible,
                                   .params = job->model->params,
                                   .buckets = job->model->buckets,
                                   .bucket_end = job->model->bucket_end,
                                   .replicas = job->replicas,
                                   .wire = rounded ? (int)job->config->train.wire : DT_WIRE_F32,
                                   .givers = job->groups,
                                   .wire_params = job->model->trained,
                                   .vectors = 1 + job->optimizer.nstate + keeps_rounded + rounded,
                                   .norm = job->config->train.clip_norm > 0,
                                   .norm_params = job->model->trained,
                                   .update = dt__update_sync,
                                   .update_rows = dt__update_rows_sync,
                                   .tile = gradient_tile,
                                   .arg = job};
    job->rounded = NULL;
    if (local) return create_outer(job, &spec);
    if (rounded) return create_wired(job, &spec);
    struct dt_row_range *ranges = NULL;
    struct dt_factored *factored = NULL;
    dt_status status = dt__list_row_ranges(job, &ranges, &spec.row_ranges);
    if (!status) status = list_factored(job, &factored, &spec.matrices);
    spec.row_range = ranges;
    spec.factored = factored;
    status = dt_ranks_agree(job->world->trainers, status);
    if (!status) status = dt_reducer_create(job->world, &spec, &job->reducer);
    dt_free(ranges);
    dt_free(factored);
    if (status) return status;
    if (spec.row_ranges) {
        bool touched = dt_reducer_touched(job->reducer, 0) != NULL;
        DT_TRY(dt_ranks_agree(job->world->trainers, check_touched(job, touched)));
    }
    if (keeps_rounded && !dt_reducer_is_spread(job->reducer)) {
        float *vector = dt_reducer_vectors(job->reducer)[spec.vectors - 1];
        job->rounded = (uint16_t *)(void *)vector; /* NULL: this rank shares no memory */
    }
    return DT_OK;
}

/* The loss sums of an open log window go on at the workers whose replicas they are of. */
static void share_losses(const struct dt_trainer *trainer)
{
    struct dt_worker *worker = trainer->worker;
    size_t bytes = (size_t)trainer->job->replicas * sizeof(double);
    /* cppcheck-suppress nullPointerRedundantCheck ; a rank without a worker is the bank */
    double *losses = trainer->bank ? trainer->bank->state.loss_sums : worker->loss;
    dt_ranks_bcast(trainer->job->world->trainers, losses, bytes, 0);
    if (!worker) return;
    memmove(worker->loss, losses, bytes);
    for (int r = 0; r < trainer->job->replicas; r++)
        if (r < worker->first || r >= worker->first + worker->count) worker->loss[r] = 0;
}

/* fill: the bank's vectors. */
static dt_status open_exchange(const struct dt_trainer *trainer, dt_fill_fn *fill)
{
    struct dt_job *job = trainer->job;
    DT_TRY(create_reducer(job));
    if (dt__is_local(job)) DT_TRY(dt__local_open(trainer));
    dt_status status = DT_OK;
    float *const *vectors = dt_reducer_vectors(job->reducer);
    if (trainer->bank) status = fill(trainer->bank, vectors);
    DT_TRY(dt_ranks_agree(job->world->trainers, status));
    if (trainer->bank && job->rounded)
        dt_bf16_round(job->model->params, vectors[0], job->rounded);
    job->network = trainer->worker ? trainer->worker->network : NULL;
    if (job->network) dt_network_set_rounded(job->network, job->rounded);
    share_losses(trainer);
    dt_reducer_start(job->reducer);
    if (job->local) dt__local_start(trainer);
    return DT_OK;
}

dt_status dt__sync_open(const struct dt_trainer *trainer)
{
    return open_exchange(trainer, dt__bank_open);
}

/* ---- the run --------------------------------------------------------------------------------- */

/* From here on with local steps: another exchange, in which the optimizer's state is the groups', and other
 * replicas may be a worker's. */
static dt_status enter_local(const struct dt_trainer *trainer)
{
    struct dt_job *job = trainer->job;
    struct dt_worker *worker = trainer->worker;
    dt_status status = trainer->bank ? dt__bank_set_aside(trainer->bank) : DT_OK;
    DT_TRY(dt_ranks_agree(job->world->trainers, status));
    dt_reducer_destroy(job->reducer);
    job->reducer = NULL;
    if (worker) {
        struct dt_worker before = *worker;
        dt__worker_close(worker);
        *worker = (struct dt_worker){.failed = DT_OK};
        memcpy(worker->budget, before.budget, sizeof worker->budget);
        status = dt__worker_open(job, worker);
    }
    DT_TRY(dt_ranks_agree(job->world->trainers, status));
    return open_exchange(trainer, dt__bank_refill);
}

dt_status dt__sync_train(const struct dt_trainer *trainer)
{
    if (trainer->bank) trainer->bank->span_start = dt_clock_secs();
    for (bool end = false; !end;) {
        int asked = span(trainer, dt__span_end(trainer->job));
        DT_TRY(dt__sync_point(trainer, asked, &end));
        if (!end && dt__is_local(trainer->job) && !trainer->job->local)
            DT_TRY(enter_local(trainer));
    }
    return DT_OK;
}
