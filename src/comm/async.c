#include "dtrain/async.h"

#include <string.h>

#include "comm/slots.h"
#include "comm/window.h"
#include "comm/world.h"

/* Floats that are updated at once: with weights, gradients and optimizer state they stay in a
 * core's second-level cache. */
enum { BLOCK = 8192, BLOCKS_A_PROGRESS = 32 };

/* Gradients applied in one pass over the vectors, at most; entries of the journal. */
enum { MOST_AT_ONCE = 64, JOURNAL = 1024 };

struct dt_async {
    struct dt_world *world;
    struct dt_async_spec spec;
    struct dt__slots_shape shape;
    struct dt__window window;
    bool shared;  /* the window is memory that every rank reaches */
    bool *active; /* (workers) in this leg; behind it, spec.active */
    bool begins;  /* this worker takes part in the leg */
    struct dt__slots_worker worker;
    struct dt__slots_bank bank; /* where its memory is in reach */
    float *states[DT_ASYNC_STATES];
    float *fresh;  /* (BLOCK) new weights of a block, before the others see them */
    uint64_t step; /* updates that the bank has told of */
    struct dt_async_counts counts;
    double wait_secs, busy_secs; /* this rank's: waited, applied */
};

/* ---- turns ---------------------------------------------------------------------------------- */

/* All gradients on one block of floats, in this core's cache; then the new weights go out in one run,
 * for other cores hold copies of what was there. */
static void apply_block(struct dt_async *async, int n, const struct dt_gradient *gradients,
                        size_t offset, const float *weights, float *out)
{
    const struct dt_async_spec *spec = &async->spec;
    size_t left = spec->params - offset, floats = left < BLOCK ? left : BLOCK;
    for (int i = 0; i < n; i++)
        spec->update(spec->arg, &gradients[i], async->bank.state->step + (uint64_t)i, offset,
                     floats, i ? async->fresh : weights + offset, async->fresh, async->states);
    memcpy(out + offset, async->fresh, floats * sizeof *out);
}

/* n gradients in order, in one pass over the vectors. */
static void apply(struct dt_async *async, int n, const struct dt_gradient *gradients)
{
    double start = dt_clock_secs();
    dt_world_beat(async->world, "update", async->bank.state->step);
    const float *weights = dt__slots_weights(&async->bank);
    float *out = dt__slots_target(&async->bank);
    int block = 0;
    for (size_t at = 0; at < async->spec.params; at += BLOCK) {
        apply_block(async, n, gradients, at, weights, out);
        if (++block % BLOCKS_A_PROGRESS == 0) dt__window_progress(&async->window);
    }
    dt__slots_publish(&async->bank, n, gradients);
    async->busy_secs += dt_clock_secs() - start;
}

/* Applies what waits, unless another is at it. */
static void take_turns(void *arg)
{
    struct dt_async *async = arg;
    struct dt_gradient gradients[MOST_AT_ONCE];
    while (dt__slots_enter(&async->bank)) {
        int n = dt__slots_take(&async->bank, MOST_AT_ONCE, gradients);
        if (n > 0) apply(async, n, gradients);
        dt__slots_leave(&async->bank);
    }
}

/* ---- create --------------------------------------------------------------------------------- */

static bool is_bank(const struct dt_async *async)
{
    return dt_world_is_bank(async->world);
}

/* Publications that a reader may miss between its two looks: in shared memory a second try is cheap,
 * over a network each look takes as long as the bank takes to apply a gradient. */
static struct dt__slots_way way_of(bool shared)
{
    return (struct dt__slots_way){.shared = shared, .slack = shared ? 0 : 2, .journal = JOURNAL};
}

static dt_status open_window(struct dt_async *async, bool shared)
{
    dt_status status = dt__slots_shape_init(&async->shape, dt_world_workers(async->world),
                                            way_of(shared), &async->spec);
    DT_TRY(dt_world_agree_crew(async->world, status));
    async->shared = shared;
    return dt__window_open(&async->window, async->world, async->shape.bytes, shared);
}

/* Shared memory where there is some, else windows. */
static dt_status open_memory(struct dt_async *async)
{
    int memory = async->spec.memory;
    if (memory == DT_ASYNC_AUTO && dt_world_hosts(async->world) == 1) {
        if (open_window(async, true) == DT_OK) return DT_OK;
        memory = DT_ASYNC_WINDOW;
    }
    return open_window(async, memory == DT_ASYNC_SHARED);
}

static void reach_bank(struct dt_async *async)
{
    struct dt__onesided *net = &async->window.net;
    const struct dt__slots_shape *shape = &async->shape;
    if (!net->memory) return;
    dt__slots_bank_init(&async->bank, shape, net);
    for (int i = 0; i < async->spec.states; i++)
        async->states[i] =
            (float *)(net->memory + shape->states_at + (size_t)i * shape->states_stride);
}

static dt_status init_worker(struct dt_async *async)
{
    struct dt__slots_worker *worker = &async->worker;
    DT_TRY(dt__slots_worker_init(worker, &async->shape, &async->window.net,
                                 dt_world_worker_index(async->world)));
    if (!async->shared) return DT_OK;
    worker->turn = take_turns;
    worker->turn_arg = async;
    return DT_OK;
}

static dt_status init_end(struct dt_async *async)
{
    size_t workers = (size_t)async->shape.workers;
    DT_TRY(dt_alloc(2 * workers, sizeof *async->active, "workers", &async->active));
    async->spec.active = memcpy(async->active + workers, async->spec.active, workers);
    DT_TRY(dt_alloc(BLOCK, sizeof *async->fresh, "update scratch", &async->fresh));
    reach_bank(async);
    if (!is_bank(async)) return init_worker(async);
    DT_TRY(dt_alloc(3 * workers, sizeof(uint64_t), "counts", &async->counts.worker_sent));
    async->counts.worker_applied = async->counts.worker_sent + workers;
    async->counts.worker_wait_ms = async->counts.worker_applied + workers;
    return DT_OK;
}

dt_status dt_async_create(struct dt_world *world, const struct dt_async_spec *spec,
                          struct dt_async **out)
{
    struct dt_async *async = NULL;
    dt_status status = dt_alloc(1, sizeof *async, "async exchange", &async);
    DT_GUARD(dt_world_agree_crew(world, status));
    async->world = world;
    async->spec = *spec;
    async->window.win = MPI_WIN_NULL;
    DT_GUARD(open_memory(async));
    DT_GUARD(dt_world_agree_crew(world, init_end(async)));
    *out = async;
done:
    if (status) dt_async_destroy(async);
    return status;
}

void dt_async_destroy(struct dt_async *async)
{
    if (!async) return;
    dt__slots_worker_free(&async->worker);
    dt__window_close(&async->window);
    dt_free(async->counts.worker_sent);
    dt_free(async->active);
    dt_free(async->fresh);
    dt_free(async);
}

const char *dt_async_memory_name(const struct dt_async *async)
{
    return async->shared ? "shared" : "window";
}

/* Who takes part in the leg: alone, only the first that ever does. */
static void choose_active(struct dt_async *async, bool alone)
{
    int first = 0, workers = async->shape.workers;
    while (first < workers - 1 && !async->spec.active[first])
        first++;
    for (int w = 0; w < workers; w++)
        async->active[w] = async->spec.active[w] && (!alone || w == first);
}

dt_status dt_async_open(struct dt_async *async, uint64_t from, uint64_t until, bool alone)
{
    choose_active(async, alone);
    DT_TRY(dt_world_crew_barrier(async->world)); /* everybody has left the leg before */
    if (is_bank(async)) {
        dt__slots_open(&async->bank, from, until, async->active);
        async->step = from;
        dt_world_beat(async->world, "serving", from);
    } else {
        async->begins = async->active[dt_world_worker_index(async->world)];
        dt__slots_worker_open(&async->worker, until);
    }
    return dt_world_crew_barrier(async->world);
}

/* ---- worker --------------------------------------------------------------------------------- */

bool dt_async_begin(struct dt_async *async)
{
    double start = dt_clock_secs();
    bool begun = async->begins && dt__slots_begin(&async->worker);
    async->wait_secs += dt_clock_secs() - start;
    dt_world_beat(async->world, "gradient", async->worker.sent);
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
    if (async->shared) take_turns(async);
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

bool dt_async_rests(const struct dt_async *async)
{
    return dt__slots_rests(&async->bank);
}

void dt_async_close(struct dt_async *async)
{
    dt__slots_close(&async->bank);
}

bool dt_async_over(struct dt_async *async)
{
    return dt__slots_over(&async->bank);
}

/* A gap in a worker's numbers would be a gradient lost. */
static void check_number(struct dt_async *async, const struct dt_applied *applied,
                         uint64_t expected)
{
    if (applied->note.number == expected) return;
    dt_fail(DT_EBUG, "gradient %llu of worker %d came in the place of %llu",
            (unsigned long long)applied->note.number, applied->worker,
            (unsigned long long)expected);
    dt_world_abort(async->world, DT_EBUG);
}

static void count(struct dt_async *async, const struct dt_applied *applied)
{
    struct dt_async_counts *counts = &async->counts;
    uint64_t bin = applied->staleness, last = DT_STALENESS_BINS - 1;
    check_number(async, applied, counts->worker_applied[applied->worker]++);
    counts->staleness_histogram[bin < last ? bin : last]++;
    if (applied->note.gap > counts->gap_max) counts->gap_max = applied->note.gap;
}

int dt_async_serve(struct dt_async *async, uint64_t until, int limit, struct dt_applied *out)
{
    struct dt__onesided *net = &async->window.net;
    dt__window_progress(&async->window);
    dt__slots_allow(&async->bank, until);
    if (!async->shared) take_turns(async);
    int n = dt__slots_journal(&async->bank, limit, out);
    if (n == 0) {
        net->ops->pause(net, "gradients");
        return 0;
    }
    net->ops->wake(net);
    async->step += (uint64_t)n;
    dt_world_beat(async->world, "serving", async->step);
    for (int i = 0; i < n; i++)
        count(async, &out[i]);
    return n;
}

/* ---- counts --------------------------------------------------------------------------------- */

struct share { /* a rank's own counts */
    uint64_t sent, wait_ms;
    double busy_secs;
};

static void add_up(struct dt_async *async, const struct share *worker)
{
    struct dt_async_counts *counts = &async->counts;
    counts->sent = counts->applied = 0;
    counts->busy_secs = async->busy_secs;
    for (int w = 0; w < async->shape.workers; w++) {
        counts->worker_sent[w] = worker[w].sent;
        counts->worker_wait_ms[w] = worker[w].wait_ms;
        counts->sent += counts->worker_sent[w];
        counts->applied += counts->worker_applied[w];
        counts->busy_secs += worker[w].busy_secs;
    }
}

dt_status dt_async_count(struct dt_async *async, const struct dt_async_counts **out)
{
    struct share *all = NULL;
    struct share mine = {async->worker.sent, (uint64_t)(async->wait_secs * 1e3), async->busy_secs};
    size_t ranks = (size_t)async->shape.workers + 1;
    dt_status status = is_bank(async) ? dt_alloc(ranks, sizeof *all, "counts", &all) : DT_OK;
    DT_TRY(dt_world_agree_crew(async->world, status));
    DT_TRY(dt_world_crew_gather(async->world, &mine, sizeof mine, all));
    if (all) add_up(async, all + 1);
    dt_free(all);
    *out = is_bank(async) ? &async->counts : NULL;
    return DT_OK;
}
