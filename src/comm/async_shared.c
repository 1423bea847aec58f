/* Async in memory that the ranks of one host share: operations on control words are the processor's
 * atomics, gradients and weights are written and read in place, and a waiting rank sleeps on an
 * event count. */
#include <stdatomic.h>
#include <string.h>

#include "comm/onesided.h"
#include "comm/shared.h"
#include "comm/world.h"

/* Interval at which a pausing rank wakes up to check signals and clocks. */
static const double SLEEP_SECS = 0.02;

struct shared {
    struct dt__onesided remote; /* first, so that a pointer to it is a pointer to the struct */
    struct dt_world *world;
    struct dt__shared mapping;
    struct dt__event_count *news; /* (2) one for each enum dt__end; after the protocol's memory */
    uint32_t seen;                /* news that this rank has seen */
    const char *what;             /* what this rank waited for last */
};

static uint64_t shared_fetch_op(struct dt__onesided *remote, int word, enum dt__op op,
                                uint64_t value)
{
    void *at = remote->memory + (size_t)word * DT__WORD_STRIDE;
    if (op == DT__NO_OP) return atomic_load((_Atomic uint64_t *)at);
    if (op == DT__SUM) return atomic_fetch_add((_Atomic uint64_t *)at, value);
    return atomic_exchange((_Atomic uint64_t *)at, value);
}

static void shared_sync(struct dt__onesided *remote)
{
    (void)remote;
    atomic_thread_fence(memory_order_seq_cst);
}

/* Sleeps until there is news. A notification since the last look ends the sleep at once. */
static void shared_pause(struct dt__onesided *remote, const char *what)
{
    struct shared *shared = (struct shared *)remote;
    struct dt__event_count *news = &shared->news[shared->world->is_bank ? DT__BANK : DT__WORKERS];
    if (what != shared->what || !dt__watchdog_waits(shared->world))
        dt__watchdog_wait(shared->world, what);
    shared->what = what;
    dt__event_wait_for(news, shared->seen + 1, SLEEP_SECS);
    shared->seen = atomic_load(&news->count);
}

static void shared_notify(struct dt__onesided *remote, enum dt__end whom)
{
    dt__event_post(&((struct shared *)remote)->news[whom], 1);
}

static void shared_progress(struct dt__onesided *remote)
{
    (void)remote; /* stores arrive by themselves */
}

static void shared_close(struct dt__onesided *remote)
{
    dt__shared_free(&((struct shared *)remote)->mapping);
}

static const struct dt__onesided_ops OPS = {
    .fetch_op = shared_fetch_op,
    .sync = shared_sync,
    .pause = shared_pause,
    .notify = shared_notify,
    .progress = shared_progress,
    .close = shared_close,
};

dt_status dt__onesided_shared(struct dt_world *world, struct dt__arena **arena, size_t bytes,
                              size_t zeroed, struct dt__onesided **out)
{
    struct shared *shared = NULL;
    size_t all;
    dt_status status = DT_OK;
    if (world->hosts > 1) status = dt_fail(DT_EUSAGE, "async: several hosts share no memory");
    if (!status && !dt__size_add(bytes, 2 * sizeof *shared->news, &all))
        status = dt_fail(DT_EMEMORY, "the async window is beyond memory");
    if (!status) status = dt__arena_alloc(arena, 1, sizeof *shared, "async memory", &shared);
    DT_TRY(dt__ranks_agree(world->trainers, status));
    DT_TRY(dt__shared_create(world->trainers->comm, &(struct dt__shm){.used = all}, "async window",
                             world->trainers, &shared->mapping));
    unsigned char *memory = shared->mapping.memory;
    shared->remote = (struct dt__onesided){.ops = &OPS, .memory = memory};
    shared->world = world;
    shared->news = (struct dt__event_count *)(void *)(memory + bytes);
    if (world->is_bank) {
        dt__shared_fill(&shared->mapping, memory, zeroed);
        memset(memory, 0, zeroed); /* allocates the pages */
        memset(shared->news, 0, all - bytes);
    }
    *out = &shared->remote;
    dt__ranks_barrier(world->trainers);
    return DT_OK;
}
