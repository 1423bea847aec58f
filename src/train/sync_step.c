/* The plain step of sync training: sums the gradients of all replicas, and updates the weights with
 * their mean. Local steps use some of its functions.
 *
 *   plain_step              one step
 *     dt__step_gradients    each replica's gradient into its slot; buckets become ready meanwhile
 *     dt__exchange_end      sums gradients, updates and sends weights (comm/exchange.h)
 *     dt__split_update      split layers whose update waits for the norm
 *
 * Workers compute. The exchange decides which rank sums and updates: each worker its slice or, with
 * plain MPI_Reduce, the bank. */
#include "train/sync_step.h"

#include <string.h>

#include "train/advice.h"
#include "train/replicas.h"
#include "train/sets.h"
#include "train/split_layers.h"

/* ---- gradients ------------------------------------------------------------------------------ */

/* Computes the gradients of this worker's replicas one after the other. Only the last replica's
 * hooks mark buckets as ready. */
static void each_gradients(struct dt_group *group, struct dt_worker *worker, uint64_t step,
                           const struct dt_network_hooks *hooks)
{
    const int begin = group->first, end = group->first + group->count;
    const float *weights = group->start ? group->start : dt__exchange_weights(group->exchange);
    const struct dt_network_hooks forward_only = {hooks->before_forward, NULL, hooks->arg};
    for (int i = 0; i < worker->count; i++) {
        const int replica = worker->first + i;
        const bool last = i + 1 == worker->count || replica + 1 == end;
        if (replica < begin || replica >= end || worker->failed) continue;
        dt__replica_gradient(group->job, worker, replica, step, weights,
                             dt__exchange_slot(group->exchange, replica - begin),
                             last ? hooks : &forward_only);
    }
}

/* ---- the exchange ---------------------------------------------------------------------------- */

static dt_status gradient_tile(void *arg, int matrix, const void *factors, struct dt_tile tile,
                               float *out)
{
    const struct dt_job *job = ((const struct dt_group *)arg)->job;
    return dt__network_tile(job->worker->network, matrix, factors, tile, out);
}

/* Returns an upper bound on the number of inputs that a rank reads at once, in a step or for a
 * chunk of an evaluation. */
static size_t most_inputs(const struct dt_job *job)
{
    size_t most = 0;
    for (int w = 0; w < job->world->workers && job->steps->row_ranges; w++) {
        int first, count;
        dt__worker_replicas(job, w, &first, &count);
        const size_t inputs = (size_t)count * job->steps->row_range[0].most;
        if (inputs > most) most = inputs;
    }
    if (!dt__evaluates_in_place(job)) return most;
    const size_t inputs = (size_t)dt__sets_most_inputs(job);
    return inputs > most ? inputs : most;
}

dt_status dt__exchange_open(struct dt_job *job, struct dt_steps *steps,
                            struct dt_exchange_spec *spec, dt_status status)
{
    const bool rounded = dt__is_rounded(job);
    spec->wire.kind = rounded ? (int)job->config->train.wire : DT_WIRE_F32;
    spec->wire.groups = job->groups;
    spec->wire.params = job->model->trained;
    spec->vectors += rounded;
    spec->update_rows = dt__update_rows_sync;
    spec->tile = gradient_tile;
    spec->update_tile = dt__update_tile_sync;
    spec->tail = job->model->params - job->model->shared;
    spec->books = job->dirs->ckpt_dir.text;
    spec->row_range = steps->row_range;
    spec->row_ranges = steps->row_ranges;
    spec->most_inputs = most_inputs(job);
    /* If matrices are updated tile by tile, the rank that updates a tile also writes the copy that
     * bf16 products read; otherwise each worker packs its own copy. */
    spec->factored = steps->factored;
    spec->matrices = steps->matrices;
    for (int i = 0; i < steps->matrices; i++)
        spec->copies += steps->factored[i].copy_bytes;
    DT_TRY(dt__ranks_agree(job->world->trainers, status));
    DT_TRY(dt__exchange_create(job->world, spec, &steps->exchange));
    steps->all->exchange = steps->pulls = steps->exchange;
    steps->gradients = each_gradients;
    steps->copies = dt__exchange_copies(steps->exchange);
    return spec->row_ranges ? dt__check_touched(job, dt__exchange_slot(steps->exchange, 0).touched)
                            : DT_OK;
}

/* Sends all workers the loss sums since the last train record; each worker keeps those of its
 * replicas. */
static void share_losses(struct dt_job *job)
{
    struct dt_worker *worker = job->worker;
    const size_t bytes = (size_t)job->replicas * sizeof(double);
    /* cppcheck-suppress nullPointerRedundantCheck ; a rank without a worker is the bank */
    double *losses = job->bank ? job->bank->state.loss_sums : worker->loss;
    dt__ranks_bcast(job->world->trainers, losses, bytes, 0);
    if (worker) memmove(worker->loss, losses, bytes);
    for (int r = 0; worker && r < job->replicas; r++)
        if (r < worker->first || r >= worker->first + worker->count) worker->loss[r] = 0;
}

dt_status dt__exchange_fill(struct dt_job *job, dt_fill_fn *fill)
{
    struct dt_worker *worker = job->worker;
    struct dt_bank *bank = job->bank;
    float *const *vectors = dt__exchange_vectors(job->steps->exchange);
    DT_TRY(dt__ranks_agree(job->world->trainers, bank ? fill(bank, vectors) : DT_OK));
    if (bank && job->steps->copies)
        dt__bf16_pack_all(job->steps->factored, job->steps->matrices, vectors[0],
                          job->steps->copies);
    if (worker) dt__network_set_copies(worker->network, job->steps->copies);
    if (worker) dt__network_set_inputs(worker->network, dt__exchange_inputs(job->steps->exchange));
    share_losses(job);
    dt__exchange_start(job->steps->exchange);
    return DT_OK;
}

int dt__exchange_serve(struct dt_job *job, const struct dt_span *span)
{
    uint64_t rounds = 0, done;
    for (uint64_t step = span->begin; step < span->end; step = dt__round_end(job, step))
        rounds++;
    const int asked = dt__exchange_serve_span(job->steps->exchange, span->begin,
                                              span->begin + rounds, dt__asks, job, &done);
    for (done -= span->begin; done > 0; done--)
        job->step = dt__round_end(job, job->step);
    return asked;
}

/* ---- a step --------------------------------------------------------------------------------- */

struct dt_exchange_spec dt__step_spec(struct dt_group *group)
{
    const struct dt_job *job = group->job;
    const size_t measures = dt__measures(job);
    return (struct dt_exchange_spec){.kind = job->config->train.exchange,
                                     .params = job->model->shared,
                                     .buckets = job->model->buckets,
                                     .bucket_end = job->model->bucket_end,
                                     .replicas = group->count,
                                     .vectors = 1 + job->rules->optimizer.nstate,
                                     .norm.needed = job->config->train.clip_norm > 0 || measures,
                                     .norm.params = job->model->trained,
                                     .norm.measure = measures ? dt__measure_sync : NULL,
                                     .norm.measures = measures,
                                     .norm.squares =
                                         (size_t)(job->model->splits * job->config->run.parts),
                                     .update = dt__update_sync,
                                     .arg = group,
                                     .times = job->steps->times};
}

/* The argument of the hooks of a step. */
struct step_hooks {
    const struct dt_group *group;
    uint64_t step;
    int unready; /* buckets [0, unready) are not ready yet */
};

static void bucket_need(void *arg, int bucket)
{
    const struct step_hooks *hooks = arg;
    dt__trace_phase(hooks->group->job->trace, DT_PHASE_WAIT, hooks->step);
    dt__exchange_need(hooks->group->exchange, bucket);
    dt__trace_phase(hooks->group->job->trace, DT_PHASE_COMPUTE, hooks->step);
}

static void bucket_ready(void *arg, int bucket)
{
    struct step_hooks *hooks = arg;
    dt__trace_phase(hooks->group->job->trace, DT_PHASE_REDUCE, hooks->step);
    dt__exchange_ready(hooks->group->exchange, bucket);
    dt__trace_phase(hooks->group->job->trace, DT_PHASE_COMPUTE, hooks->step);
    hooks->unready = bucket;
}

void dt__step_gradients(struct dt_group *group, struct dt_worker *worker, uint64_t step)
{
    const struct dt_job *job = group->job;
    const int end = group->first + group->count;
    struct step_hooks state = {group, step, job->model->buckets};
    const struct dt_network_hooks hooks = {bucket_need, bucket_ready, &state};
    group->rows = 0;
    for (int r = group->first; r < end && group->count < job->replicas; r++)
        group->rows += dt__plan_local_batch(job->plan, step, r).count;
    dt__exchange_begin(group->exchange, step);
    job->steps->gradients(group, worker, step, &hooks);
    while (state.unready > 0)
        bucket_ready(&state, state.unready - 1);
}

void dt__budget_add(const struct dt_job *job, double secs)
{
    struct dt_worker *worker = job->worker;
    double *spent = worker->budget;
    const struct dt_exchange_times times = *job->steps->times;
    spent[DT__WAIT] += times.wait;
    spent[DT__REDUCE] += times.reduce;
    spent[DT__UPDATE] += times.update;
    spent[DT__NETWORK] += times.network;
    spent[DT__DATA] += worker->data_secs;
    spent[DT__COMPUTE] +=
        secs - worker->data_secs - times.wait - times.reduce - times.update - times.network;
    worker->data_secs = 0;
    *job->steps->times = (struct dt_exchange_times){0};
    dt__world_show(job->world, worker->samples, secs > 0 ? times.wait / secs : 0);
}

/* ---- the plain step -------------------------------------------------------------------------- */

static dt_status plain_open(struct dt_job *job, struct dt_steps *steps, dt_fill_fn *fill)
{
    struct dt_exchange_spec spec = dt__step_spec(steps->all);
    dt_status status = dt__list_row_ranges(job, steps);
    if (!status) status = dt__list_factored(job, steps);
    spec.worker_of = job->worker_of;
    steps->saved = (struct dt_saved_vectors){.optimizer = &job->rules->optimizer};
    if (dt__is_rounded(job)) {
        steps->saved.groups = job->groups;
        steps->saved.error = DT__GRADIENT_ERROR;
    }
    DT_TRY(dt__exchange_open(job, steps, &spec, status));
    DT_TRY(dt__split_open(job, steps));
    DT_TRY(dt__exchange_fill(job, fill));
    dt__split_scatter(job);
    return DT_OK;
}

/* Pulls, on all ranks, the rows of weights that the first step reads. */
static void plain_begin(struct dt_job *job, struct dt_span *span)
{
    span->needs = job->worker ? dt__exchange_needs(job->steps->exchange) : NULL;
    if (span->begin == span->end) return;
    if (span->needs) dt__list_inputs(job, job->worker, job->step, span->needs);
    dt__exchange_pull(job->steps->exchange);
}

static int plain_step(struct dt_job *job, struct dt_span *span)
{
    struct dt_worker *worker = job->worker;
    const struct dt_touched *needs = span->needs;
    dt__step_gradients(job->steps->all, worker, job->step);
    if (needs) *needs->count = 0;
    if (needs && job->step + 1 < span->end) dt__list_inputs(job, worker, job->step + 1, needs);
    dt__slow_down(job);
    dt__trace_phase(job->trace, DT_PHASE_EXCHANGE, job->step);
    const int asked =
        dt__exchange_end(job->steps->exchange, worker->failed ? DT_ASK_ERROR : dt__asks(job));
    if (asked & DT_ASK_VOID) return asked;
    dt__split_update(job);
    dt__advise_wire(job, worker, span);
    job->step++;
    return asked;
}

static int plain_resolve(struct dt_job *job, const struct dt_span *span, int asked)
{
    if (job->worker) {
        dt__exchange_settle(job->steps->exchange);
        dt__budget_add(job, dt__clock_secs() - span->start);
    }
    return asked;
}

const float *dt__exchange_at_rest(const struct dt_job *job)
{
    return job->steps->pulls ? dt__exchange_weights(job->steps->exchange)
                             : dt__exchange_vectors(job->steps->exchange)[0];
}

static void plain_gather(struct dt_job *job)
{
    dt__exchange_gather(job->steps->exchange, true);
    dt__split_gather(job, true);
}

static void plain_close(struct dt_job *job)
{
    dt__split_close(job);
    dt__exchange_destroy(job->steps->exchange);
}

const struct dt_stepper dt__plain_stepper = {
    .open = plain_open,
    .begin = plain_begin,
    .step = plain_step,
    .serve = dt__exchange_serve,
    .settle = plain_resolve,
    .weights = dt__exchange_at_rest,
    .gather = plain_gather,
    .close = plain_close,
};
