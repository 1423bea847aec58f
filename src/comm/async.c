/* The async exchange as its users see it: which memory is taken (shared or window), a worker's begin,
 * read and send, the bank's serve, and the counts. The protocol itself, and why it is safe, stands in
 * async_slots.h. */
#include "dtrain/async.h"

#include <string.h>

#include "comm/async_slots.h"
#include "comm/world.h"

/* Floats that are updated at once: with weights, gradients and optimizer state they stay in a
 * core's second-level cache. */
enum { BLOCK = 8192, BLOCKS_A_PROGRESS = 32 };

/* Gradients applied in one pass over the vectors, at most; entries of the update log. */
enum { MOST_AT_ONCE = 64, LOG_ENTRIES = 1024 };

/* A rank's own counts. */
struct own_counts {
    uint64_t sent, wait_ms;
    double busy_secs;
};

struct dt_async {
    struct dt_world *world;
    struct dt_async_spec spec;
    struct dt__slots_shape shape;
    struct dt__onesided *remote; /* the bank's memory */
    bool shared;                 /* the window is memory that every rank reaches */
    bool *active;                /* (workers) in this span; behind it, spec.active */
    bool begins;                 /* this worker takes part in the span */
    struct dt__slots_worker worker;
    struct dt__slots_bank bank; /* where its memory is in reach */
    float *states[DT_ASYNC_STATES];
    float *fresh;  /* (BLOCK) new weights of a block, before the others see them */
    uint64_t step; /* updates that the bank has told of */
    struct dt_async_counts counts;
    struct own_counts *gathered; /* bank: (ranks) */
    double wait_secs, busy_secs; /* this rank's: waited, applied */
};

/* ---- combining ------------------------------------------------------------------------------ */

static void async_progress(struct dt_async *async)
{
    if (async->remote->ops->progress) async->remote->ops->progress(async->remote);
}

/* n gradients in order, in one pass over the vectors: all of them on one block of floats, in this core's
 * cache; then its new weights go out in one run, for other cores hold copies of what was there. */
static void async_apply(struct dt_async *async, int n, struct dt_gradient *gradients)
{
    const struct dt_async_spec *spec = &async->spec;
    const uint64_t step = async->bank.state->step;
    double start = dt_clock_secs();
    dt_world_heartbeat(async->world, "update", step);
    const float *weights = dt__slots_weights(&async->bank);
    float *out = dt__slots_target(&async->bank);
    int block = 0;
    if (spec->prepare) spec->prepare(spec->arg, &gradients[0], weights);
    for (size_t at = 0; at < spec->params; at += BLOCK) {
        size_t floats = spec->params - at < BLOCK ? spec->params - at : BLOCK;
        for (int i = 0; i < n; i++)
            spec->update(spec->arg, &gradients[i], step + (uint64_t)i, at, floats,
                         i ? async->fresh : weights + at, async->fresh, async->states);
        memcpy(out + at, async->fresh, floats * sizeof *out);
        if (++block % BLOCKS_A_PROGRESS == 0) async_progress(async);
    }
    dt__slots_publish(&async->bank, n, gradients);
    async->busy_secs += dt_clock_secs() - start;
}

/* Applies what waits, unless another is at it. */
static void async_combine(void *arg)
{
    struct dt_async *async = arg;
    struct dt_gradient gradients[MOST_AT_ONCE];
    int most = async->spec.prepare ? 1 : MOST_AT_ONCE;
    while (dt__slots_enter(&async->bank)) {
        int n = dt__slots_take(&async->bank, most, gradients);
        if (n > 0) async_apply(async, n, gradients);
        dt__slots_leave(&async->bank);
    }
}

/* ---- create --------------------------------------------------------------------------------- */

static bool is_bank(const struct dt_async *async)
{
    return dt_world_is_bank(async->world);
}

static dt_status async_open_memory(struct dt_async *async, bool shared)
{
    /* Slack: publications that a reader may miss between its two looks. In shared memory a second try is
     * cheap, over a network each look takes as long as the bank takes to apply a gradient. */
    struct dt__slots_way way = {
        .shared = shared, .slack = shared ? 0 : 2, .log_entries = LOG_ENTRIES};
    dt_status status =
        dt__slots_shape_init(&async->shape, dt_world_workers(async->world), way, &async->spec);
    DT_TRY(dt_world_agree_trainers(async->world, status));
    async->shared = shared;
    return (shared ? dt__async_shared_open
                   : dt__async_window_open)(async->world, async->shape.bytes, &async->remote);
}

/* Shared memory where there is some, else windows. */
static dt_status async_choose_memory(struct dt_async *async)
{
    int memory = async->spec.memory;
    if (memory == DT_ASYNC_AUTO && dt_world_hosts(async->world) == 1) {
        if (async_open_memory(async, true) == DT_OK) return DT_OK;
        memory = DT_ASYNC_WINDOW;
    }
    return async_open_memory(async, memory == DT_ASYNC_SHARED);
}

/* This rank's end of it. */
static dt_status async_create_end(struct dt_async *async)
{
    const struct dt__slots_shape *shape = &async->shape;
    struct dt__onesided *remote = async->remote;
    struct dt__slots_worker *worker = &async->worker;
    size_t workers = (size_t)shape->workers;
    DT_TRY(dt_alloc(2 * workers, sizeof *async->active, "workers", &async->active));
    async->spec.active = memcpy(async->active + workers, async->spec.active, workers);
    DT_TRY(dt_alloc(BLOCK, sizeof *async->fresh, "update scratch", &async->fresh));
    if (remote->memory) dt__slots_bank_init(&async->bank, shape, remote);
    for (int i = 0; i < async->spec.states && remote->memory; i++)
        async->states[i] =
            (float *)(remote->memory + shape->states_at + (size_t)i * shape->states_stride);
    if (!is_bank(async)) {
        DT_TRY(dt__slots_worker_init(worker, shape, remote, dt_world_worker_index(async->world)));
        if (async->shared) {
            worker->combine = async_combine;
            worker->combine_arg = async;
        }
        return DT_OK;
    }
    DT_TRY(dt_alloc(workers + 1, sizeof *async->gathered, "counts", &async->gathered));
    DT_TRY(dt_alloc(3 * workers, sizeof(uint64_t), "counts", &async->counts.worker_sent));
    async->counts.worker_applied = async->counts.worker_sent + workers;
    async->counts.worker_wait_ms = async->counts.worker_applied + workers;
    return DT_OK;
}

dt_status dt_async_create(struct dt_world *world, const struct dt_async_spec *spec,
                          struct dt_async **out)
{
    struct dt_async *async = NULL;
    dt_status status = DT_OK;
    if (spec->states < 0 || spec->states > DT_ASYNC_STATES)
        status = dt_fail(DT_EUSAGE, "async: %d states, expected at most %d", spec->states,
                         DT_ASYNC_STATES);
    if (!status) status = dt_alloc(1, sizeof *async, "async exchange", &async);
    DT_GUARD(dt_world_agree_trainers(world, status));
    async->world = world;
    async->spec = *spec;
    DT_GUARD(async_choose_memory(async));
    DT_GUARD(dt_world_agree_trainers(world, async_create_end(async)));
    *out = async;
done:
    if (status) dt_async_destroy(async);
    return status;
}

void dt_async_destroy(struct dt_async *async)
{
    if (!async) return;
    dt__slots_worker_free(&async->worker);
    if (async->remote) async->remote->ops->close(async->remote);
    dt_free(async->counts.worker_sent);
    dt_free(async->gathered);
    dt_free(async->active);
    dt_free(async->fresh);
    dt_free(async);
}

const char *dt_async_memory_name(const struct dt_async *async)
{
    return async->shared ? "shared" : "window";
}

void dt_async_open(struct dt_async *async, uint64_t from, uint64_t until, bool alone)
{
    int first = 0, workers = async->shape.workers; /* alone: the first that ever takes part */
    while (first < workers - 1 && !async->spec.active[first])
        first++;
    for (int w = 0; w < workers; w++)
        async->active[w] = async->spec.active[w] && (!alone || w == first);
    dt_world_trainers_barrier(async->world); /* everybody has left the span before */
    if (is_bank(async)) {
        dt__slots_open(&async->bank, from, until, async->active);
        async->step = from;
        dt_world_heartbeat(async->world, "serving", from);
    } else {
        async->begins = async->active[dt_world_worker_index(async->world)];
        dt__slots_worker_open(&async->worker, until);
    }
    dt_world_trainers_barrier(async->world);
}

/* ---- worker --------------------------------------------------------------------------------- */

bool dt_async_begin(struct dt_async *async)
{
    double start = dt_clock_secs();
    bool begun = async->begins && dt__slots_begin(&async->worker);
    async->wait_secs += dt_clock_secs() - start;
    dt_world_heartbeat(async->world, "gradient", async->worker.sent);
    return begun;
}

const float *dt_async_read(struct dt_async *async)
{
    double start = dt_clock_secs();
    const float *weights = dt__slots_read(&async->worker);
    async->wait_secs += dt_clock_secs() - start;
    return weights;
}

float *dt_async_grad(struct dt_async *async)
{
    return dt__slots_grad(&async->worker);
}

void dt_async_send(struct dt_async *async, const struct dt_note *note)
{
    dt__slots_send(&async->worker, note);
    if (async->shared) async_combine(async);
}

void dt_async_leave(struct dt_async *async)
{
    double start = dt_clock_secs();
    dt__slots_settle(&async->worker);
    async->wait_secs += dt_clock_secs() - start;
}

/* ---- bank ----------------------------------------------------------------------------------- */

float *dt_async_weights(struct dt_async *async)
{
    return dt__slots_weights(&async->bank);
}

float *const *dt_async_states(struct dt_async *async)
{
    return async->states;
}

bool dt_async_quiescent(const struct dt_async *async)
{
    return dt__slots_quiescent(&async->bank);
}

void dt_async_close(struct dt_async *async)
{
    dt__slots_close(&async->bank);
}

bool dt_async_over(struct dt_async *async)
{
    return dt__slots_over(&async->bank);
}

static void async_count_applied(struct dt_async *async, const struct dt_applied *applied)
{
    struct dt_async_counts *counts = &async->counts;
    uint64_t bin = applied->staleness, last = DT_STALENESS_BINS - 1;
    uint64_t expected = counts->worker_applied[applied->worker]++;
    if (applied->note.number != expected) { /* a gap would be a gradient lost */
        dt_fail(DT_EBUG, "gradient %llu of worker %d came in the place of %llu",
                (unsigned long long)applied->note.number, applied->worker,
                (unsigned long long)expected);
        dt_world_abort(async->world, DT_EBUG);
    }
    counts->staleness_histogram[bin < last ? bin : last]++;
    if (applied->note.gap > counts->gap_max) counts->gap_max = applied->note.gap;
}

int dt_async_serve(struct dt_async *async, uint64_t until, int limit, struct dt_applied *out)
{
    struct dt__onesided *remote = async->remote;
    async_progress(async);
    dt__slots_allow(&async->bank, until);
    if (!async->shared) async_combine(async);
    int n = dt__slots_read_log(&async->bank, limit, out);
    if (n == 0) {
        remote->ops->pause(remote, "gradients");
        return 0;
    }
    remote->ops->wake(remote);
    async->step += (uint64_t)n;
    dt_world_heartbeat(async->world, "serving", async->step);
    for (int i = 0; i < n; i++)
        async_count_applied(async, &out[i]);
    return n;
}

/* ---- counts --------------------------------------------------------------------------------- */

const struct dt_async_counts *dt_async_count(struct dt_async *async)
{
    const struct own_counts mine = {async->worker.sent, (uint64_t)(async->wait_secs * 1e3),
                                    async->busy_secs};
    struct dt_async_counts *counts = &async->counts;
    dt_world_trainers_gather(async->world, &mine, sizeof mine, async->gathered);
    if (!is_bank(async)) return NULL;
    counts->sent = counts->applied = 0;
    counts->busy_secs = async->busy_secs;
    for (int w = 0; w < async->shape.workers; w++) {
        const struct own_counts *worker = &async->gathered[1 + w];
        counts->worker_sent[w] = worker->sent;
        counts->worker_wait_ms[w] = worker->wait_ms;
        counts->sent += worker->sent;
        counts->applied += counts->worker_applied[w];
        counts->busy_secs += worker->busy_secs;
    }
    return counts;
}
