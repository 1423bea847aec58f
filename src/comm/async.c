/* The async exchange as its users see it: which memory is taken (shared or window), a worker's
 * begin, read and send, the bank's serve, and the counts. The protocol itself, and why it is safe,
 * stands in async_slots.h. */
#include "dtrain/async.h"

#include <string.h>

#include "base/limits.h"
#include "comm/async_slots.h"
#include "comm/wire.h"
#include "comm/world.h"
#include "dtrain/config.h"

/* A rank's own counts. */
struct own_counts {
    uint64_t sent, wait_ms;
    double busy_secs;
};

_Static_assert(DT__ASYNC_BLOCK % (int)DT__WIRE_BLOCK == 0,
               "a gradient is read by whole blocks of q8");

struct dt_async {
    struct dt_world *world;
    struct dt_async_spec spec;
    struct dt_row_range *range; /* (spec.row_ranges) */
    struct dt__slots_shape shape;
    struct dt__onesided *remote; /* the bank's memory */
    bool shared;                 /* the window is memory that every rank reaches */
    bool *active;                /* (workers) in this span; behind it, spec.active */
    bool begins;                 /* this worker takes part in the span */
    struct dt__slots_worker worker;
    struct dt__slots_bank bank; /* where its memory is in reach */
    float *states[DT_ASYNC_STATES];
    struct dt_touched *touched; /* (workers, slots, ranges) lists; NULL: gradients are whole */
    size_t block;               /* floats of those below: DT__ASYNC_BLOCK, or the widest row */
    float *fresh;               /* new weights of a block, before the others see them */
    float *grad, *seen; /* a block of a gradient that has touched rows alone, or came rounded */
    uint64_t step;              /* updates that the bank has told of */
    struct dt_async_counts counts;
    struct own_counts *gathered; /* bank: (ranks) */
    double wait_secs, busy_secs; /* this rank's: waited, applied */
};

/* ---- combining ------------------------------------------------------------------------------ */

static void async_progress(struct dt_async *async)
{
    if (async->remote->ops->progress) async->remote->ops->progress(async->remote);
}

/* Gradients that are applied at once, in order, to the same weights. */
struct combined {
    int n;
    const struct dt_gradient *gradient; /* (n) */
    uint64_t step;                      /* updates before the first */
    const float *weights;               /* (P) */
    float *out;                         /* (P) another buffer */
};

/* Floats [from, to), which gradients have whole: all gradients on one block of floats, in this
 * core's cache; then its new weights go out in one run, for other cores hold copies of what was
 * there. */
static void apply_whole(struct dt_async *async, const struct combined *all, size_t from, size_t to)
{
    const struct dt_async_spec *spec = &async->spec;
    for (size_t at = from; at < to; at += DT__ASYNC_BLOCK) {
        const size_t floats = to - at < DT__ASYNC_BLOCK ? to - at : DT__ASYNC_BLOCK;
        for (int i = 0; i < all->n; i++) {
            struct dt_gradient part = all->gradient[i];
            if (part.parcel) {
                dt__parcel_read(&async->shape, part.parcel, at, floats, async->grad);
                part.grad = async->grad;
            } else {
                part.grad += at;
            }
            if (part.seen) part.seen += at;
            spec->update(spec->arg, &part, all->step + (uint64_t)i, at, floats,
                         i ? async->fresh : all->weights + at, async->fresh, async->states);
        }
        memcpy(all->out + at, async->fresh, floats * sizeof *all->out);
        if ((at - from) / DT__ASYNC_BLOCK % DT__ASYNC_PROGRESS_BLOCKS ==
            DT__ASYNC_PROGRESS_BLOCKS - 1)
            async_progress(async);
    }
}

/* Of a range whose other rows stay as they are: what the buffer lacks of the newest weights, then
 * the rows that each gradient touched, in place. */
static void apply_touched(struct dt_async *async, const struct combined *all, int index)
{
    const struct dt_async_spec *spec = &async->spec;
    const struct dt_row_range *range = &async->range[index];
    dt__slots_copy_rows(&async->bank, index);
    for (int i = 0; i < all->n; i++) {
        struct dt_gradient part = all->gradient[i];
        const struct dt_touched *touched = &part.touched[index];
        part.grad += range->offset;
        if (part.seen) part.seen += range->offset;
        if (*touched->count)
            spec->update_rows(spec->arg, &part, all->step + (uint64_t)i, range, touched->row,
                              *touched->count, all->out, async->states);
    }
    dt__slots_log_rows(&async->bank, index, all->n, all->gradient);
}

/* Rows [from, to) of those that a gradient has one behind the other, the first of which not below
 * `from` is at place *next: to `out` as they lie in the vector, with zeros for those that it
 * lacks. */
static void expand_rows(const struct dt_row_range *range, const struct dt_touched *touched,
                        size_t from, size_t to, const float *rows, uint32_t next, float *out)
{
    const size_t width = range->width;
    memset(out, 0, (to - from) * width * sizeof *out);
    for (; next < *touched->count && touched->row[next] < to; next++)
        memcpy(out + (touched->row[next] - from) * width, rows + next * width, width * sizeof *out);
}

/* Of a range all of whose rows change: those that a gradient lacks have one of 0. */
static void apply_to_all_rows(struct dt_async *async, const struct combined *all, int index)
{
    const struct dt_async_spec *spec = &async->spec;
    const struct dt_row_range *range = &async->range[index];
    const size_t most = async->block / range->width;
    uint32_t next[DT__ASYNC_AT_ONCE] = {0}; /* each one's first row that is still to come */
    for (size_t from = 0, to; from < range->rows; from = to) {
        to = range->rows - from < most ? range->rows : from + most;
        const size_t at = range->offset + from * range->width, floats = (to - from) * range->width;
        for (int i = 0; i < all->n; i++) {
            struct dt_gradient part = all->gradient[i];
            const struct dt_touched *touched = &part.touched[index];
            expand_rows(range, touched, from, to, part.grad + range->offset, next[i], async->grad);
            if (part.seen)
                expand_rows(range, touched, from, to, part.seen + range->offset, next[i],
                            async->seen);
            while (next[i] < *touched->count && touched->row[next[i]] < to)
                next[i]++;
            part.grad = async->grad;
            if (part.seen) part.seen = async->seen;
            spec->update(spec->arg, &part, all->step + (uint64_t)i, at, floats,
                         i ? async->fresh : all->weights + at, async->fresh, async->states);
        }
        memcpy(all->out + at, async->fresh, floats * sizeof *all->out);
    }
}

/* n gradients in order, in one pass over the vectors. */
static void async_apply(struct dt_async *async, int n, struct dt_gradient *gradients)
{
    const struct dt_async_spec *spec = &async->spec;
    double start = dt_clock_secs();
    size_t at = 0;
    dt_world_heartbeat(async->world, "update", async->bank.state->step);
    const struct combined all = {.n = n,
                                 .gradient = gradients,
                                 .step = async->bank.state->step,
                                 .weights = dt__slots_weights(&async->bank),
                                 .out = dt__slots_target(&async->bank)};
    if (spec->prepare) spec->prepare(spec->arg, &gradients[0], all.weights);
    for (int i = 0; i < async->shape.ranges; i++) {
        const struct dt_row_range *range = &async->range[i];
        apply_whole(async, &all, at, range->offset);
        if (range->touched_alone)
            apply_touched(async, &all, i);
        else
            apply_to_all_rows(async, &all, i);
        at = range->offset + range->rows * range->width;
    }
    apply_whole(async, &all, at, spec->params);
    dt__slots_publish(&async->bank, n, gradients);
    async->busy_secs += dt_clock_secs() - start;
}

/* Applies what waits, unless another is at it. */
static void async_combine(void *arg)
{
    struct dt_async *async = arg;
    struct dt_gradient gradients[DT__ASYNC_AT_ONCE];
    int most = async->spec.prepare ? 1 : DT__ASYNC_AT_ONCE;
    while (dt__slots_enter(&async->bank)) {
        int n = dt__slots_take(&async->bank, most, gradients);
        if (n > 0) async_apply(async, n, gradients);
        dt__slots_answer(&async->bank);
        dt__slots_leave(&async->bank);
    }
}

/* ---- create --------------------------------------------------------------------------------- */

static bool is_bank(const struct dt_async *async)
{
    return async->world->is_bank;
}

static dt_status async_open_memory(struct dt_async *async, bool shared)
{
    /* Slack: publications that a reader may miss between its two looks. In shared memory a second
     * try is cheap, over a network each look takes as long as the bank takes to apply a
     * gradient. */
    struct dt__slots_way way = {
        .shared = shared, .slack = shared ? 0 : 2, .log_entries = DT__ASYNC_LOG};
    dt_status status =
        dt__slots_shape_init(&async->shape, async->world->workers, way, &async->spec);
    DT_TRY(dt_ranks_agree(async->world->trainers, status));
    async->shared = shared;
    return (shared ? dt__async_shared_open : dt__async_window_open)(
        async->world, async->shape.bytes, async->shape.slots_at, &async->remote);
}

/* Shared memory where there is some, else windows, which round only what leaves a host. */
static dt_status async_choose_memory(struct dt_async *async)
{
    int memory = async->spec.memory;
    if (memory == DT_ASYNC_AUTO && async->world->hosts == 1) {
        async->spec.wire = DT_WIRE_F32;
        if (async_open_memory(async, true) == DT_OK) return DT_OK;
        memory = DT_ASYNC_WINDOW;
    }
    return async_open_memory(async, memory == DT_ASYNC_SHARED);
}

/* What updates need: room for a block, and the places of the lists. */
static dt_status async_create_scratch(struct dt_async *async)
{
    const struct dt__slots_shape *shape = &async->shape;
    const size_t ranges = (size_t)shape->ranges;
    const size_t lists = (size_t)shape->workers * DT__SLOTS * ranges;
    async->block = DT__ASYNC_BLOCK;
    for (size_t i = 0; i < ranges; i++)
        if (async->range[i].width > async->block) async->block = async->range[i].width;
    DT_TRY(dt_alloc(async->block, sizeof *async->fresh, "update scratch", &async->fresh));
    if (ranges || shape->wire)
        DT_TRY(dt_alloc(async->block, sizeof *async->grad, "update scratch", &async->grad));
    if (!ranges) return DT_OK;
    DT_TRY(dt_alloc(async->block, sizeof *async->seen, "update scratch", &async->seen));
    DT_TRY(dt_alloc(lists, sizeof *async->touched, "lists of touched rows", &async->touched));
    dt__row_lists_map(shape, async->remote->memory, async->touched);
    return DT_OK;
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
    DT_TRY(async_create_scratch(async));
    if (remote->memory) dt__slots_bank_init(&async->bank, shape, remote);
    async->bank.touched = async->touched;
    for (int i = 0; i < async->spec.states && remote->memory; i++)
        async->states[i] =
            (float *)(remote->memory + shape->states_at + (size_t)i * shape->states_stride);
    if (!is_bank(async)) {
        DT_TRY(dt__slots_worker_init(worker, shape, remote, async->world->worker));
        worker->touched = async->touched;
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
    const struct dt_row_range *range = spec->row_range;
    const size_t ranges = (size_t)spec->row_ranges;
    struct dt_async *async = NULL;
    dt_status status = DT_OK;
    if (spec->states < 0 || spec->states > DT_ASYNC_STATES)
        status = dt_fail(DT_EUSAGE, "async: %d states, expected at most %d", spec->states,
                         DT_ASYNC_STATES);
    if (!status) status = dt_alloc(1, sizeof *async, "async exchange", &async);
    if (!status && ranges) status = dt_alloc(ranges, sizeof *range, "touched rows", &async->range);
    DT_GUARD(dt_ranks_agree(world->trainers, status));
    async->world = world;
    async->spec = *spec;
    async->spec.row_range = async->range;
    if (ranges) memcpy(async->range, range, ranges * sizeof *range);
    DT_GUARD(async_choose_memory(async));
    DT_GUARD(dt_ranks_agree(world->trainers, async_create_end(async)));
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
    dt_free(async->grad);
    dt_free(async->seen);
    dt_free(async->touched);
    dt_free(async->range);
    dt_free(async);
}

const char *dt_async_memory_name(const struct dt_async *async)
{
    return async->shared ? "shared" : "window";
}

int dt_async_wire(const struct dt_async *async)
{
    return async->shape.wire;
}

void dt_async_open(struct dt_async *async, uint64_t from, uint64_t until, bool alone, uint64_t may)
{
    int first = 0, workers = async->shape.workers; /* alone: the first that ever takes part */
    while (first < workers - 1 && !async->spec.active[first])
        first++;
    for (int w = 0; w < workers; w++)
        async->active[w] = async->spec.active[w] && (!alone || w == first);
    dt_ranks_barrier(async->world->trainers); /* everybody has left the span before */
    if (is_bank(async)) {
        dt__slots_open(&async->bank, from, until, async->active);
        dt__slots_allow(&async->bank, may);
        async->step = from;
        dt_world_heartbeat(async->world, "serving", from);
    } else {
        async->begins = async->active[async->world->worker];
        dt__slots_worker_open(&async->worker, until);
    }
    dt_ranks_barrier(async->world->trainers);
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

const struct dt_touched *dt_async_touched(const struct dt_async *async)
{
    return async->world->is_bank ? async->touched : dt__slots_touched(&async->worker);
}

void dt_async_send(struct dt_async *async, const struct dt_note *note)
{
    struct dt_note sent = *note;
    dt__slots_round(&async->worker);
    if (async->spec.norm2)
        sent.norm2 = async->spec.norm2(async->spec.arg, dt__slots_touched(&async->worker),
                                       dt__slots_grad(&async->worker));
    dt__slots_send(&async->worker, &sent);
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
    dt__slots_answer(&async->bank);
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
    dt_ranks_gather(async->world->trainers, &mine, sizeof mine, async->gathered);
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
