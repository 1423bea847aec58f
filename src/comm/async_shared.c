/* Async over memory that the ranks of one host share: control words are the processor's atomics,
 * payload is written and read in place, and who waits sleeps at an event count. */
#include <stdatomic.h>
#include <string.h>

#include "comm/async_slots.h"
#include "comm/shared.h"
#include "comm/world.h"

/* The bank only looks for signals and clocks. */
static const double SLEEP_SECS = 0.02;

struct shared {
    struct dt__onesided remote; /* first: operations are given this */
    struct dt_world *world;
    struct dt__shared shared;
    struct dt__event_count *bank_news, *worker_news;
    uint32_t seen; /* news that this rank has looked into */
    bool waiting;
};

static _Atomic uint64_t *word_at(struct dt__onesided *remote, int word)
{
    return (_Atomic uint64_t *)(void *)(remote->memory + (size_t)word * DT__WORD_STRIDE);
}

static uint64_t shared_fetch(struct dt__onesided *remote, int word)
{
    return atomic_load(word_at(remote, word));
}

static void shared_replace(struct dt__onesided *remote, int word, uint64_t value)
{
    atomic_store(word_at(remote, word), value);
}

static uint64_t shared_add(struct dt__onesided *remote, int word, uint64_t delta)
{
    return atomic_fetch_add(word_at(remote, word), delta);
}

static void shared_sync(struct dt__onesided *remote)
{
    (void)remote;
    atomic_thread_fence(memory_order_seq_cst);
}

/* What was told after the last look ends the sleep at once. */
static void shared_pause(struct dt__onesided *remote, const char *what)
{
    struct shared *shared = (struct shared *)remote;
    struct dt__event_count *news =
        shared->world->is_bank ? shared->bank_news : shared->worker_news;
    if (!shared->waiting) dt__watchdog_wait(shared->world, what);
    shared->waiting = true;
    dt__event_wait_for(news, shared->seen + 1, SLEEP_SECS);
    shared->seen = atomic_load(&news->count);
}

static void shared_wake(struct dt__onesided *remote)
{
    struct shared *shared = (struct shared *)remote;
    if (shared->waiting) dt__watchdog_progress(shared->world);
    shared->waiting = false;
}

static void shared_notify(struct dt__onesided *remote, enum dt__end whom)
{
    struct shared *shared = (struct shared *)remote;
    dt__event_post(whom == DT__BANK ? shared->bank_news : shared->worker_news, 1);
}

static void shared_close(struct dt__onesided *remote)
{
    struct shared *shared = (struct shared *)remote;
    dt__shared_free(&shared->shared);
    dt_free(shared);
}

static const struct dt__onesided_ops OPS = {
    .fetch = shared_fetch,
    .replace = shared_replace,
    .add = shared_add,
    .sync = shared_sync,
    .pause = shared_pause,
    .wake = shared_wake,
    .notify = shared_notify,
    .close = shared_close,
};

/* The protocol's memory, and behind it the event counts. */
dt_status dt__async_shared_open(struct dt_world *world, size_t bytes, size_t zeroed,
                                struct dt__onesided **out)
{
    struct shared *shared = NULL;
    size_t all;
    dt_status status = DT_OK;
    if (world->hosts > 1) status = dt_fail(DT_EUSAGE, "async: several hosts share no memory");
    if (!status && !dt_size_add(bytes, 2 * sizeof(struct dt__event_count), &all))
        status = dt_fail(DT_EMEMORY, "the async window is beyond memory");
    if (!status) status = dt_alloc(1, sizeof *shared, "async memory", &shared);
    DT_GUARD(dt_ranks_agree(world->trainers, status));
    DT_GUARD(dt__shared_create(world->trainers->comm, all, "async window", world->trainers,
                               &shared->shared));
    shared->remote = (struct dt__onesided){.ops = &OPS, .memory = shared->shared.memory};
    shared->world = world;
    shared->bank_news = (struct dt__event_count *)(void *)(shared->remote.memory + bytes);
    shared->worker_news = shared->bank_news + 1;
    if (world->is_bank) {
        dt__shared_fill(&shared->shared, shared->remote.memory, zeroed);
        memset(shared->remote.memory, 0, zeroed);
        memset(shared->bank_news, 0, all - bytes);
    }
    *out = &shared->remote;
    dt_ranks_barrier(world->trainers);
    return DT_OK;
done:
    dt_free(shared);
    return status;
}
