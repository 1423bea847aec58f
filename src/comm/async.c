/* The async exchange's memory (which is taken, where things lie in it, what each rank needs), spans
 * and counts. The protocol itself, and why it is safe, stands in async_slots.h. */
#include "dtrain/async.h"

#include <string.h>

#include "base/limits.h"
#include "comm/async_slots.h"
#include "comm/shared.h"
#include "comm/world.h"
#include "dtrain/config.h"

/* ---- layout --------------------------------------------------------------------------------- */

/* Ranges of touched rows lie one behind the other. With this their lists and logs are smaller than
 * the vectors are, and cannot overflow if those do not. */
static dt_status check_ranges(const struct dt_async_spec *spec)
{
    size_t behind = 0, floats;
    for (int i = 0; i < spec->row_ranges; i++) {
        const struct dt_row_range *range = &spec->row_range[i];
        if (range->offset < behind || range->rows > UINT32_MAX || !range->width ||
            !dt_size_mul(range->rows, range->width, &floats) ||
            !dt_size_add(range->offset, floats, &behind) || behind > spec->params)
            return dt_fail(DT_EUSAGE, "async: range %d of rows does not lie behind the one before",
                           i);
    }
    return DT_OK;
}

/* Where `count` blocks begin, of `bytes` in whole cache lines; *end is behind them, and stays at
 * SIZE_MAX once it is beyond memory. */
static size_t place(size_t *end, size_t count, size_t bytes)
{
    const size_t at = *end;
    size_t all;
    if (!dt_size_mul(count, dt__cache_lines(bytes), &all) || !dt_size_add(at, all, end))
        *end = SIZE_MAX;
    return at;
}

dt_status dt__async_lay_out(struct dt_async *async)
{
    const struct dt_async_spec *spec = &async->spec;
    const size_t workers = (size_t)async->workers, copies = spec->wire ? workers : 0;
    struct dt__places *at = &async->at;
    size_t end = 0;
    if (async->workers >= DT__MOST_BUFFERS - 2 - async->slack)
        return dt_fail(DT_EUSAGE, "async: %d workers are too many", async->workers);
    if (spec->wire && (spec->keep_seen || spec->prepare || spec->wire_params > spec->params))
        return dt_fail(DT_EUSAGE, "async: a rounded wire brings no weights that were seen");
    DT_TRY(check_ranges(spec));
    if (spec->params > SIZE_MAX / 64) /* a slot's vectors and lists are sizes */
        return dt_fail(DT_EMEMORY, "async: %zu parameters are beyond memory", spec->params);
    async->buffers = spec->wire ? 2 : async->workers + (async->shared ? 1 : 2) + async->slack;
    at->vector = spec->params * sizeof(float);
    at->weights_each = dt__cache_lines(sizeof(struct dt__weights) + at->vector);
    at->grad = dt__codec_bytes(async); /* no more than a vector, or so */
    at->seen = sizeof(struct dt__slot) + at->grad;
    at->lists = dt__cache_lines(at->seen + (spec->keep_seen ? at->vector : 0));
    at->slot_each = at->lists + dt__lists_bytes(async);
    place(&end, WORD_WORKERS + workers * WORDS_A_WORKER, DT__WORD_STRIDE);
    at->bank =
        place(&end, 1, sizeof(struct dt__slots_state) + workers * sizeof(struct dt__slots_peer));
    at->log = place(&end, 1, async->log_entries * sizeof(struct dt_applied));
    at->row_log = place(&end, 1, dt__row_log_bytes(async));
    at->states = place(&end, (size_t)spec->states, at->vector);
    at->weights = place(&end, (size_t)async->buffers, at->weights_each);
    at->copies = place(&end, copies, at->weights_each);
    at->answers = place(&end, copies, at->slot_each);
    at->slots = place(&end, workers * DT__SLOTS, at->slot_each);
    at->end = end;
    if (end == SIZE_MAX)
        return dt_fail(DT_EMEMORY, "async: %d workers with %zu parameters are beyond memory",
                       async->workers, spec->params);
    return DT_OK;
}

static dt_status async_open_memory(struct dt_async *async, bool shared)
{
    async->shared = shared;
    /* In shared memory a second try is cheap, over a network each look takes as long as the bank
     * takes to apply a gradient. */
    async->slack = shared ? 0 : 2;
    if (shared) async->spec.wire = DT_WIRE_F32;
    if (!shared) async->spec.row_ranges = 0;
    DT_TRY(dt_ranks_agree(async->world->trainers, dt__async_lay_out(async)));
    return (shared ? dt__onesided_shared : dt__onesided_window)(async->world, async->at.end,
                                                                async->at.slots, &async->remote);
}

/* Shared memory where there is some, else windows, which round only what leaves a host. */
static dt_status async_choose_memory(struct dt_async *async)
{
    int memory = async->spec.memory;
    if (memory == DT_ASYNC_AUTO && async->world->hosts == 1) {
        if (async_open_memory(async, true) == DT_OK) return DT_OK;
        memory = DT_ASYNC_WINDOW;
    }
    return async_open_memory(async, memory == DT_ASYNC_SHARED);
}

/* ---- create --------------------------------------------------------------------------------- */

/* What acting for the bank needs: its memory, and room for a block. */
static dt_status async_open_bank(struct dt_async *async)
{
    const struct dt_async_spec *spec = &async->spec;
    const size_t lists = (size_t)(async->workers * DT__SLOTS * spec->row_ranges);
    unsigned char *memory = async->remote->memory;
    async->state = (struct dt__slots_state *)(memory + async->at.bank);
    async->log = (struct dt_applied *)(memory + async->at.log);
    for (int i = 0; i < spec->states; i++)
        async->states[i] =
            (float *)(memory + async->at.states + (size_t)i * dt__cache_lines(async->at.vector));
    async->block = spec->params < DT__ASYNC_BLOCK ? spec->params : DT__ASYNC_BLOCK;
    for (int i = 0; i < spec->row_ranges; i++)
        if (spec->row_range[i].width > async->block) async->block = spec->row_range[i].width;
    DT_TRY(dt_alloc(3 * async->block, sizeof *async->fresh, "update scratch", &async->fresh));
    async->grad = async->fresh + async->block;
    async->seen = async->grad + async->block;
    if (!lists) return DT_OK;
    DT_TRY(dt_alloc(lists, sizeof *async->touched, "lists of touched rows", &async->touched));
    dt__lists_map(async);
    return DT_OK;
}

dt_status dt__async_open_end(struct dt_async *async)
{
    const size_t workers = (size_t)async->workers;
    if (async->remote->memory) DT_TRY(async_open_bank(async));
    if (async->worker < 0) {
        struct dt_async_counts *counts = &async->counts;
        DT_TRY(dt_alloc(workers + 1, sizeof *async->gathered, "counts", &async->gathered));
        DT_TRY(dt_alloc(3 * workers, sizeof(uint64_t), "counts", &counts->worker_sent));
        counts->worker_applied = counts->worker_sent + workers;
        counts->worker_wait_ms = counts->worker_applied + workers;
        return DT_OK;
    }
    if (async->remote->memory && !async->spec.wire) return DT_OK;
    DT_TRY(dt_alloc(2, async->at.weights_each, "weights and a gradient", &async->copy));
    if (!async->spec.wire) return DT_OK;
    DT_TRY(dt_alloc(async->spec.params, sizeof(float), "rounding errors", &async->error));
    return dt_alloc(1, async->at.slot_each, "a rounded gradient", &async->encoded);
}

void dt__async_close_end(struct dt_async *async)
{
    dt_free(async->copy);
    dt_free(async->error);
    dt_free(async->encoded);
    dt_free(async->counts.worker_sent);
    dt_free(async->gathered);
    dt_free(async->fresh);
    dt_free(async->touched);
}

dt_status dt_async_create(struct dt_world *world, const struct dt_async_spec *spec,
                          struct dt_async **out)
{
    const size_t workers = (size_t)world->workers;
    struct dt_async *async = NULL;
    dt_status status = DT_OK;
    if (spec->states < 0 || spec->states > DT_ASYNC_STATES)
        status = dt_fail(DT_EUSAGE, "async: %d states, expected at most %d", spec->states,
                         DT_ASYNC_STATES);
    if (!status) status = dt_alloc(1, sizeof *async, "async exchange", &async);
    if (!status) {
        async->world = world;
        async->workers = world->workers;
        async->worker = world->is_bank ? -1 : world->worker;
        async->log_entries = DT__ASYNC_LOG;
        async->at_once = spec->prepare ? 1 : DT__ASYNC_AT_ONCE;
        async->spec = *spec;
        if (spec->wire_params == 0) async->spec.wire_params = spec->params;
        status = dt_alloc(2 * workers, sizeof *async->active, "workers", &async->active);
    }
    if (!status) {
        async->spec.active = memcpy(async->active + workers, spec->active, workers);
    }
    DT_GUARD(dt_ranks_agree(world->trainers, status));
    DT_GUARD(async_choose_memory(async));
    DT_GUARD(dt_ranks_agree(world->trainers, dt__async_open_end(async)));
    *out = async;
done:
    if (status) dt_async_destroy(async);
    return status;
}

void dt_async_destroy(struct dt_async *async)
{
    if (!async) return;
    dt__async_close_end(async);
    if (async->remote) async->remote->ops->close(async->remote);
    dt_free(async->active);
    dt_free(async);
}

const char *dt_async_memory_name(const struct dt_async *async)
{
    return async->shared ? "shared" : "window";
}

int dt_async_wire(const struct dt_async *async)
{
    return async->spec.wire;
}

/* ---- spans and counts ----------------------------------------------------------------------- */

void dt_async_open(struct dt_async *async, uint64_t from, uint64_t until, bool alone)
{
    int first = 0; /* alone: the first that ever takes part */
    while (first < async->workers - 1 && !async->spec.active[first])
        first++;
    for (int w = 0; w < async->workers; w++)
        async->active[w] = async->spec.active[w] && (!alone || w == first);
    async->until = until;
    async->closed = false;
    async->started = 0;
    dt_ranks_barrier(async->world->trainers); /* everybody has left the span before */
    if (async->worker < 0) {
        dt__async_open_span(async, from);
        dt_world_heartbeat(async->world, "serving", from);
    }
    dt_ranks_barrier(async->world->trainers);
}

const struct dt_async_counts *dt_async_count(struct dt_async *async)
{
    const struct dt__own_counts mine = {async->sent, (uint64_t)(async->wait_secs * 1e3),
                                        async->busy_secs};
    struct dt_async_counts *counts = &async->counts;
    dt_ranks_gather(async->world->trainers, &mine, sizeof mine, async->gathered);
    if (async->worker >= 0) return NULL;
    counts->sent = 0;
    counts->busy_secs = async->busy_secs;
    for (int w = 0; w < async->workers; w++) {
        const struct dt__own_counts *worker = &async->gathered[1 + w];
        counts->worker_sent[w] = worker->sent;
        counts->worker_wait_ms[w] = worker->wait_ms;
        counts->sent += worker->sent;
        counts->busy_secs += worker->busy_secs;
    }
    return counts;
}
