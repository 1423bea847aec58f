/* Async from creation to destruction, except the protocol itself (async_slots.h): the choice of
 * memory, the owners of slices, the layout of an owner's memory, the transfers at the start and end
 * of a span, and the counts. */
#include "comm/async.h"

#include <string.h>

#include "base/limits.h"
#include "comm/async_slots.h"
#include "comm/rows.h"
#include "comm/shared.h"
#include "comm/wire.h"
#include "comm/world.h"
#include "config/config.h"

/* ---- layout --------------------------------------------------------------------------------- */

/* Takes `count` blocks of `bytes` each, rounded up to cache lines. Returns their offset. */
static size_t reserve(struct dt__shm *shm, size_t count, size_t bytes)
{
    const size_t at = shm->used;
    dt__shm_take(shm, count, dt__cache_lines(bytes));
    return at;
}

dt_status dt__slice_lay_out(struct dt__slice *slice)
{
    const struct dt_async *async = slice->async;
    const struct dt_async_spec *spec = &async->spec;
    const size_t workers = (size_t)async->workers;
    struct dt__places *at = &slice->at;
    struct dt__shm shm = {0};
    if (async->workers >= DT__MOST_BUFFERS - 2)
        return dt_fail(DT_EUSAGE, "async: %d workers are too many", async->workers);
    DT_TRY(dt__rows_check(spec->row_range, spec->row_ranges, spec->params));
    if (spec->params > SIZE_MAX / 64) /* so that the sizes of a slot's vectors and lists cannot
                                       * overflow */
        return dt_fail(DT_EMEMORY, "async: %zu parameters are beyond memory", spec->params);
    /* One buffer has the newest weights, and one is being written. In shared memory one buffer less
     * suffices, since the worker that acts for the owner points at none. */
    slice->buffers = async->workers + (async->shared ? 1 : 2);
    at->vector = slice->params * sizeof(float);
    at->weights_each = dt__cache_lines(sizeof(struct dt__weights) + at->vector);
    at->lists = dt__cache_lines(sizeof(struct dt__slot) + at->vector);
    at->slot_each = at->lists + dt__lists_bytes(slice);
    reserve(&shm, WORD_WORKERS + workers * WORDS_A_WORKER, DT__WORD_STRIDE);
    at->state =
        reserve(&shm, 1, sizeof(struct dt__slots_state) + workers * sizeof(struct dt__slots_peer));
    at->log = reserve(&shm, 1, slice->log_entries * sizeof(struct dt_applied));
    at->row_log = reserve(&shm, 1, dt__row_log_bytes(slice));
    at->states = reserve(&shm, (size_t)spec->states, at->vector);
    at->weights = reserve(&shm, (size_t)slice->buffers, at->weights_each);
    at->slots = reserve(&shm, workers * DT__SLOTS, at->slot_each);
    at->end = shm.used;
    if (at->end == SIZE_MAX)
        return dt_fail(DT_EMEMORY, "async: %d workers with %zu parameters are beyond memory",
                       async->workers, spec->params);
    return DT_OK;
}

/* Cuts the vector into slices; `owners` of them have floats. The first slice is the bank's, with
 * its tickets and update log. It has all floats if there is one owner, none if the workers suffice
 * as owners, and otherwise as many as each worker's slice. */
static dt_status cut_slices(struct dt_async *async, int owners)
{
    const struct dt_async_spec *spec = &async->spec;
    const int workers = async->workers, owning = owners > workers ? workers : owners;
    const int parts = owners > workers ? workers + 1 : owners, first = parts == owning;
    async->slices = owners == 1 ? 1 : 1 + owning;
    DT_TRY(
        DT__ARENA_ALLOC(&async->arena, "slices", DT__TABLE(async->slice, (size_t)async->slices)));
    size_t begin = 0;
    for (int i = 0; i < async->slices; i++) {
        struct dt__slice *slice = &async->slice[i];
        const int part = owners == 1 ? 1 : i + 1 - first; /* slices with floats up to and including
                                                           * this one */
        const size_t even = (size_t)((double)spec->params * part / parts);
        const size_t end = part == parts ? spec->params : even / DT__WIRE_BLOCK * DT__WIRE_BLOCK;
        const int worker = (i - 1) * workers / owning;
        *slice = (struct dt__slice){.async = async,
                                    .index = i,
                                    .owner = i ? async->world->worker_rank + worker : 0,
                                    .offset = begin,
                                    .params = end - begin,
                                    .log_entries = i ? 0 : DT__ASYNC_LOG};
        slice->mine = async->shared || (i ? async->worker == worker : async->worker < 0);
        begin = end;
        DT_TRY(dt__slice_lay_out(slice));
    }
    return DT_OK;
}

static dt_status async_open_memory(struct dt_async *async, bool shared)
{
    struct dt_world *world = async->world;
    const int workers = async->workers, all = workers + 1;
    int owners = async->spec.owners ? async->spec.owners : workers;
    const size_t most = 1 + async->spec.params / DT__LEAST_SLICE;
    if ((size_t)owners > most) owners = (int)most;
    if (owners > all) owners = all;
    async->shared = shared;
    if (shared) owners = 1;
    if (!shared) async->spec.row_ranges = 0;
    async->at_once = DT__ASYNC_AT_ONCE;
    DT_TRY(dt__ranks_agree(world->trainers, cut_slices(async, owners)));
    if (shared) {
        struct dt__slice *slice = &async->slice[0];
        return dt__onesided_shared(world, &async->arena, slice->at.end, slice->at.slots,
                                   &slice->remote);
    }
    struct dt__window_target *target = NULL;
    dt_status status =
        DT__ARENA_ALLOC(&async->arena, "slices", DT__TABLE(target, (size_t)async->slices));
    DT_TRY(dt__ranks_agree(world->trainers, status));
    for (int i = 0; i < async->slices; i++) {
        struct dt__slice *slice = &async->slice[i];
        target[i] = (struct dt__window_target){slice->owner, slice->at.end, slice->at.slots,
                                               &slice->remote};
    }
    return dt__onesided_window(world, &async->arena, async->slices, target);
}

/* Chooses shared memory if it is available, otherwise windows. */
static dt_status async_choose_memory(struct dt_async *async)
{
    int memory = async->spec.memory;
    if (memory == DT_ASYNC_AUTO && async->world->hosts == 1) {
        if (async_open_memory(async, true) == DT_OK) return DT_OK;
        if (async->world->is_bank)
            dt__warn("%s; async goes through MPI's windows, which is slower", dt_error_text());
        memory = DT_ASYNC_WINDOW;
    }
    return async_open_memory(async, memory == DT_ASYNC_SHARED);
}

/* ---- create --------------------------------------------------------------------------------- */

/* Finds and allocates what this rank needs in order to act for the owner of a slice. */
static dt_status slice_open_owner(struct dt__slice *slice)
{
    struct dt_async *async = slice->async;
    const size_t workers = (size_t)async->workers;
    unsigned char *memory = slice->remote->memory;
    slice->state = (struct dt__slots_state *)(memory + slice->at.state);
    slice->log = (struct dt_applied *)(memory + slice->at.log);
    for (int i = 0; i < async->spec.states; i++) {
        const size_t at = slice->at.states + (size_t)i * dt__cache_lines(slice->at.vector);
        slice->states[i] = (float *)((uintptr_t)(memory + at) - slice->offset * sizeof(float));
    }
    if (async->shared) return DT_OK;
    return DT__ARENA_ALLOC(&async->arena, "answers", DT__TABLE(slice->answers, workers));
}

/* Allocates the blocks that updates use, and finds the lists of touched rows. */
static dt_status async_open_blocks(struct dt_async *async)
{
    const struct dt_async_spec *spec = &async->spec;
    const size_t lists = (size_t)(async->workers * DT__SLOTS * spec->row_ranges);
    async->block = spec->params < DT__ASYNC_BLOCK ? spec->params : DT__ASYNC_BLOCK;
    for (int i = 0; i < spec->row_ranges; i++)
        if (spec->row_range[i].width > async->block) async->block = spec->row_range[i].width;
    DT_TRY(DT__ARENA_ALLOC(&async->arena, "update scratch",
                           DT__TABLE(async->fresh, 2 * async->block)));
    async->grad = async->fresh + async->block;
    if (!lists) return DT_OK;
    DT_TRY(
        DT__ARENA_ALLOC(&async->arena, "lists of touched rows", DT__TABLE(async->touched, lists)));
    dt__lists_map(&async->slice[0]);
    return DT_OK;
}

static dt_status async_open_counts(struct dt_async *async)
{
    const size_t workers = (size_t)async->workers;
    struct dt_async_counts *counts = &async->counts;
    DT_TRY(DT__ARENA_ALLOC(&async->arena, "counts", DT__TABLE(async->gathered, workers + 1),
                           DT__TABLE(counts->worker_sent, 3 * workers + (size_t)async->slices)));
    counts->worker_applied = counts->worker_sent + workers;
    counts->worker_wait_ms = counts->worker_applied + workers;
    counts->slice_applied = counts->worker_wait_ms + workers;
    counts->slices = (size_t)async->slices;
    return DT_OK;
}

dt_status dt__async_allocate(struct dt_async *async)
{
    struct dt__arena **arena = &async->arena;
    const size_t params = async->spec.params;
    const bool bank = async->worker < 0;
    DT_TRY(async_open_blocks(async));
    if (bank) DT_TRY(async_open_counts(async));
    for (int i = 0; i < async->slices; i++)
        if (async->slice[i].mine) DT_TRY(slice_open_owner(&async->slice[i]));
    if (async->shared) return DT_OK;
    DT_TRY(DT__ARENA_ALLOC(arena, "weights", DT__TABLE(async->weights, params)));
    for (int i = 0; i < async->spec.states && bank; i++)
        DT_TRY(
            DT__ARENA_ALLOC(arena, "the optimizer's state", DT__TABLE(async->states[i], params)));
    if (bank) return DT_OK;
    return DT__ARENA_ALLOC(arena, "gradients", DT__TABLE(async->own.gradient, DT__SLOTS * params));
}

dt_status dt__async_create(struct dt_world *world, const struct dt_async_spec *spec,
                           struct dt_async **out)
{
    const size_t workers = (size_t)world->workers;
    struct dt_async *async = NULL;
    dt_status status = DT_OK;
    if (spec->states < 0 || spec->states > DT_ASYNC_STATES)
        status = dt_fail(DT_EUSAGE, "async: %d states, expected at most %d", spec->states,
                         DT_ASYNC_STATES);
    if (!status) status = dt__alloc(1, sizeof *async, "async exchange", &async);
    if (!status) {
        async->world = world;
        async->workers = world->workers;
        async->worker = world->is_bank ? -1 : world->worker;
        async->spec = *spec;
        status = DT__ARENA_ALLOC(&async->arena, "workers", DT__TABLE(async->active, 2 * workers));
    }
    if (!status) async->spec.active = memcpy(async->active + workers, spec->active, workers);
    DT_GUARD(dt__ranks_agree(world->trainers, status));
    DT_GUARD(async_choose_memory(async));
    DT_GUARD(dt__ranks_agree(world->trainers, dt__async_allocate(async)));
    *out = async;
done:
    if (status) dt__async_destroy(async);
    return status;
}

void dt__async_destroy(struct dt_async *async)
{
    if (!async) return;
    struct dt__onesided *remote = async->slice ? async->slice[0].remote : NULL;
    if (remote) remote->ops->close(remote);
    dt__arena_free(&async->arena);
    dt_free(async);
}

const char *dt__async_memory_name(const struct dt_async *async)
{
    return async->shared ? "shared" : "window";
}

/* ---- windows: weights and state between the bank and the owners ----------------------------- */

/* Sends the newest weights of all slices to all ranks. */
static void windows_share(struct dt_async *async)
{
    for (int i = 0; i < async->slices; i++) {
        const struct dt__slice *slice = &async->slice[i];
        float *weights = async->weights + slice->offset;
        if (slice->mine) memcpy(weights, dt__newest(slice), slice->at.vector);
        dt__ranks_bcast(async->world->trainers, weights, slice->at.vector, slice->owner);
    }
}

/* Moves a slice's floats of the optimizer state from the owner to the bank, or back. */
static void windows_move_state(struct dt_async *async, const struct dt__slice *slice, bool to_bank)
{
    for (int i = 0; i < async->spec.states; i++)
        dt__ranks_move(async->world->trainers, slice->owner, to_bank,
                       slice->mine ? slice->states[i] + slice->offset : NULL,
                       async->worker < 0 ? async->states[i] + slice->offset : NULL, slice->params);
}

/* Sends the bank's weights and state to the owners, before the first span. */
static void windows_begin_with(struct dt_async *async)
{
    dt__ranks_bcast(async->world->trainers, async->weights, async->spec.params * sizeof(float), 0);
    for (int i = 0; i < async->slices; i++) {
        const struct dt__slice *slice = &async->slice[i];
        windows_move_state(async, slice, false);
        if (slice->mine)
            memcpy(dt__newest(slice), async->weights + slice->offset, slice->at.vector);
    }
}

void dt__async_gather(struct dt_async *async)
{
    for (int i = 0; i < async->slices && !async->shared; i++)
        windows_move_state(async, &async->slice[i], true);
}

/* ---- spans and counts ----------------------------------------------------------------------- */

void dt__async_start(struct dt_async *async, uint64_t from, uint64_t until, bool alone)
{
    int first = 0; /* alone: the first active worker only */
    while (first < async->workers - 1 && !async->spec.active[first])
        first++;
    for (int w = 0; w < async->workers; w++)
        async->active[w] = async->spec.active[w] && (!alone || w == first);
    async->until = until;
    async->closed = false;
    async->own.started = async->own.asked = 0;
    dt__ranks_barrier(async->world->trainers); /* all ranks have left the previous span */
    if (!async->begun && !async->shared) windows_begin_with(async);
    async->begun = true;
    if (!async->shared || async->worker < 0) dt__async_open_span(async, from);
    if (async->worker < 0) dt__world_heartbeat(async->world, "serving", from);
    dt__ranks_barrier(async->world->trainers);
}

void dt__async_end(struct dt_async *async)
{
    const double start = dt__clock_secs();
    if (async->worker >= 0) dt__async_leave(async);
    if (async->shared) dt__ranks_barrier(async->world->trainers);
    dt__async_drain(async);
    async->wait_secs += dt__clock_secs() - start;
    if (!async->shared) windows_share(async);
}

const struct dt_async_counts *dt__async_count(struct dt_async *async)
{
    struct dt__own_counts mine = {.sent = async->own.sent,
                                  .wait_ms = (uint64_t)(async->wait_secs * 1e3),
                                  .busy_secs = async->busy_secs};
    struct dt_async_counts *counts = &async->counts;
    const struct dt__slice *slice = NULL;
    for (int i = 0; i < async->slices; i++) {
        slice = &async->slice[i];
        if (slice->mine) mine.applied = slice->state->applied;
    }
    dt__ranks_gather(async->world->trainers, &mine, sizeof mine, async->gathered);
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
    for (int i = 0; i < async->slices; i++) {
        counts->slice_applied[i] = async->gathered[async->slice[i].owner].applied;
        if (counts->slice_applied[i] == counts->sent) continue;
        dt_fail(DT_EBUG, "slice %d: %llu gradients applied of %llu sent", i,
                (unsigned long long)counts->slice_applied[i], (unsigned long long)counts->sent);
        dt__world_abort(async->world, DT_EBUG);
    }
    return counts;
}
