/* Sync training: every step, the replicas' gradients are summed, and the weights updated with their
 * mean.
 *
 * Workers compute; the exchange says who sums and updates: the workers themselves, each its slice,
 * or, with plain MPI_Reduce, the bank. */
#include <string.h>

#include "train/advice.h"
#include "train/local.h"
#include "train/split_layers.h"

/* ---- worker --------------------------------------------------------------------------------- */

/* Steps up to `end`: gradients, then the exchange. Returns what all ranks ask for. */
static int worker_span(struct dt_job *job, uint64_t end)
{
    struct dt_worker *worker = job->worker;
    struct dt_exchange *exchange = job->exchange;
    const double start = dt_clock_secs();
    struct dt_wire_look look = {0};
    const struct dt_touched *needs = job->local ? NULL : dt_exchange_needs(exchange);
    int asked = DT_ASK_NONE;
    if (needs && job->step < end) {
        dt__list_inputs(job, worker, job->step, needs);
        dt_exchange_pull(exchange);
    }
    while (job->step < end && !asked) {
        if (job->local) {
            asked = dt__local_round(job, dt__round_end(job, job->step));
            continue;
        }
        dt__step_gradients(&job->all, worker, job->step);
        if (needs) *needs->count = 0;
        if (needs && job->step + 1 < end) dt__list_inputs(job, worker, job->step + 1, needs);
        dt__slow_down(job);
        dt_trace_phase(job->trace, DT_PHASE_EXCHANGE, job->step);
        asked = dt_exchange_end(exchange, worker->failed ? DT_ASK_ERROR : dt__asks(job));
        if (asked & DT_ASK_VOID) break;
        dt__split_update(job);
        dt__advise_wire(job, worker, &look);
        job->step++;
    }
    dt_exchange_settle(exchange);
    dt__budget_add(job, worker, dt_clock_secs() - start);
    return asked;
}

/* ---- bank and workers ----------------------------------------------------------------------- */

/* Lets the workers step, and owns what they do not. */
static int bank_span(struct dt_job *job, uint64_t end)
{
    uint64_t rounds = 0, done; /* a round, which may be one step, is a step of the exchange */
    for (uint64_t step = job->step; step < end; step = dt__round_end(job, step))
        rounds++;
    if (!job->local && rounds) dt_exchange_pull(job->exchange); /* with the workers */
    const int asked =
        dt_exchange_serve(job->exchange, job->step, job->step + rounds, dt__asks, job, &done);
    for (done -= job->step; done > 0; done--)
        job->step = dt__round_end(job, job->step);
    return asked;
}

/* Steps up to `end`, behind the run's last one what is pending, and the bank's accounts of them. */
static int span(struct dt_job *job, uint64_t end)
{
    struct dt_bank *bank = job->bank;
    const uint64_t begin = job->step;
    const double start = dt_clock_secs(), cpu = dt_clock_cpu_secs();
    if (bank) dt_trace_phase(job->trace, DT_PHASE_SERVE, job->step);
    int asked = job->worker ? worker_span(job, end) : bank_span(job, end);
    if (!(asked & DT_ASK_VOID)) {
        job->pending |= job->local && dt__overlaps(job) && job->step > begin;
        if (job->pending && job->step == job->last_step) asked |= dt__local_catch_up(job);
    }
    if (!bank) return asked;
    const double secs = dt_clock_secs() - start;
    if (job->step > begin) bank->step_secs = secs / (double)(job->step - begin);
    bank->state.train_secs += secs;
    bank->cpu_secs += dt_clock_cpu_secs() - cpu;
    return asked;
}

/* ---- open ----------------------------------------------------------------------------------- */

static dt_status gradient_tile(void *arg, int matrix, const void *factors, struct dt_tile tile,
                               float *out)
{
    const struct dt_job *job = ((const struct dt_group *)arg)->job;
    return dt_network_tile(job->worker->network, matrix, factors, tile, out);
}

/* The exchange of every step; or, with local steps, that of the rounds, where a group is a replica
 * and gradients are whole. */
static dt_status create_exchange(struct dt_job *job)
{
    const bool local = dt__is_local(job), rounded = dt__is_rounded(job);
    int *leaders = NULL; /* (groups) */
    struct dt_exchange_spec spec = dt__step_spec(&job->all);
    spec.wire = rounded ? (int)job->config->train.wire : DT_WIRE_F32;
    spec.groups = job->groups;
    spec.wire_params = job->model->trained;
    spec.vectors += rounded;
    spec.update_rows = dt__update_rows_sync;
    spec.tile = gradient_tile;
    spec.update_tile = dt__update_tile_sync;
    spec.worker_of = job->worker_of;
    spec.behind = job->model->params - job->model->shared;
    spec.books = job->ckpt_dir.text;
    dt_status status = DT_OK;
    if (local) {
        status = dt__keep(&job->kept, (size_t)job->groups, sizeof(int), "groups", &leaders);
        for (int g = 0; g < job->groups && !status; g++)
            leaders[g] = job->worker_of[dt__group_begin(job, g)];
        spec.worker_of = leaders;
        spec.replicas = job->groups;
        spec.vectors = 1 + job->outer.nstate + rounded;
        spec.norm = false;
        spec.measure = NULL;
        spec.update = dt__update_outer;
        spec.arg = job;
    }
    if (!status) status = dt__list_row_ranges(job);
    if (!status) status = dt__list_factored(job);
    spec.row_range = job->row_range;
    spec.row_ranges = job->row_ranges;
    for (int w = 0; w < job->world->workers; w++) {
        int first, count;
        dt__worker_replicas(job, w, &first, &count);
        const size_t most = (size_t)count * (job->row_ranges ? job->row_range[0].most : 0);
        if (most > spec.most_inputs) spec.most_inputs = most;
    }
    if (dt__evaluates_in_place(job)) {
        const size_t most = (size_t)dt__most_inputs(job, job->eval, DT_EVAL_CHUNK);
        if (most > spec.most_inputs) spec.most_inputs = most;
    }
    /* Where matrices are updated tile by tile, who updates a tile also writes the copy that bf16
     * products read; else each worker makes its own. */
    spec.factored = job->factored;
    spec.matrices = job->matrices;
    for (int i = 0; i < job->matrices; i++)
        spec.copies += job->factored[i].copy_bytes;
    DT_TRY(dt_ranks_agree(job->world->trainers, status));
    DT_TRY(dt_exchange_create(job->world, &spec, &job->exchange));
    job->all.exchange = job->exchange;
    job->copies = dt_exchange_copies(job->exchange);
    return spec.row_ranges ? dt__check_touched(job, dt_exchange_slot(job->exchange, 0).touched)
                           : DT_OK;
}

/* fill: the bank's vectors. */
static dt_status open_exchange(struct dt_job *job, dt_fill_fn *fill)
{
    struct dt_worker *worker = job->worker;
    struct dt_bank *bank = job->bank;
    DT_TRY(create_exchange(job));
    if (dt__is_local(job)) DT_TRY(dt__local_open(job));
    DT_TRY(dt__split_open(job));
    float *const *vectors = dt_exchange_vectors(job->exchange);
    DT_TRY(dt_ranks_agree(job->world->trainers, bank ? fill(bank, vectors) : DT_OK));
    if (bank && job->copies)
        dt_bf16_pack_all(job->factored, job->matrices, vectors[0], job->copies);
    if (worker) dt_network_set_copies(worker->network, job->copies);
    if (worker) dt_network_set_inputs(worker->network, dt_exchange_inputs(job->exchange));
    /* The loss sums of an open log window go on at the workers whose replicas they are of. */
    const size_t bytes = (size_t)job->replicas * sizeof(double);
    /* cppcheck-suppress nullPointerRedundantCheck ; a rank without a worker is the bank */
    double *losses = bank ? bank->state.loss_sums : worker->loss;
    dt_ranks_bcast(job->world->trainers, losses, bytes, 0);
    if (worker) memmove(worker->loss, losses, bytes);
    for (int r = 0; worker && r < job->replicas; r++)
        if (r < worker->first || r >= worker->first + worker->count) worker->loss[r] = 0;
    dt_exchange_start(job->exchange);
    dt__split_scatter(job);
    if (job->local) dt__local_start(job);
    return DT_OK;
}

dt_status dt__sync_open(struct dt_job *job)
{
    return open_exchange(job, dt__bank_open);
}

/* ---- the run --------------------------------------------------------------------------------- */

/* From here on with local steps: another exchange, with the groups' state in it. */
static dt_status begin_local_steps(struct dt_job *job)
{
    dt_exchange_gather(job->exchange); /* others may own the optimizer's state */
    const dt_status status = job->bank ? dt__bank_set_aside(job->bank) : DT_OK;
    DT_TRY(dt_ranks_agree(job->world->trainers, status));
    dt_exchange_destroy(job->exchange);
    job->exchange = NULL;
    return open_exchange(job, dt__bank_refill);
}

dt_status dt__sync_train(struct dt_job *job)
{
    for (bool end = false; !end;) {
        int asked = span(job, dt__span_end(job));
        DT_TRY(dt__sync_point(job, asked, &end));
        if (!end && dt__is_local(job) && !job->local) DT_TRY(begin_local_steps(job));
    }
    return DT_OK;
}
