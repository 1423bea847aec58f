/* Async over an MPI window: puts and gets of payload, MPI_Fetch_and_op for control words. */
#include <stdatomic.h>
#include <string.h>

#include "comm/onesided.h"
#include "comm/world.h"

enum { BANK = 0 /* of the trainers */, CACHE_LINE = 64 };

/* The bank naps this long: each operation of a worker may wait for it to enter MPI (osc/pt2pt). */
static const double NAP_SECS = 50e-6;

struct window {
    struct dt__onesided remote; /* first: operations are given this */
    struct dt_world *world;
    MPI_Win win;
    MPI_Aint pad; /* bytes before the first cache line */
    struct dt__wait wait;
    bool waiting;
};

static struct window *window_of(struct dt__onesided *remote)
{
    return (struct window *)remote;
}

/* ---- payload -------------------------------------------------------------------------------- */

static MPI_Aint place_of(struct dt__onesided *remote, size_t offset)
{
    return window_of(remote)->pad + (MPI_Aint)offset;
}

/* Counts are int. */
static int chunk_at(size_t at, size_t length)
{
    return (int)(length - at < DT__MPI_CHUNK ? length - at : DT__MPI_CHUNK);
}

static void window_put(struct dt__onesided *remote, size_t offset, const void *bytes, size_t length)
{
    for (size_t at = 0, n; at < length; at += n) {
        n = (size_t)chunk_at(at, length);
        DT_MPI(MPI_Put((const char *)bytes + at, (int)n, MPI_BYTE, BANK,
                       place_of(remote, offset + at), (int)n, MPI_BYTE, window_of(remote)->win));
    }
}

static void window_get(struct dt__onesided *remote, size_t offset, void *bytes, size_t length)
{
    for (size_t at = 0, n; at < length; at += n) {
        n = (size_t)chunk_at(at, length);
        DT_MPI(MPI_Get((char *)bytes + at, (int)n, MPI_BYTE, BANK, place_of(remote, offset + at),
                       (int)n, MPI_BYTE, window_of(remote)->win));
    }
}

/* Blocks until the bank has answered. */
static void window_flush(struct dt__onesided *remote)
{
    struct window *window = window_of(remote);
    dt__watchdog_ask(window->world, true);
    DT_MPI(MPI_Win_flush(BANK, window->win));
    dt__watchdog_ask(window->world, false);
}

/* ---- control words -------------------------------------------------------------------------- */

static uint64_t window_fetch_and(struct dt__onesided *remote, int word, enum dt__op op,
                                 uint64_t value)
{
    const MPI_Op ops[] = {MPI_NO_OP, MPI_REPLACE, MPI_SUM};
    const MPI_Aint at = place_of(remote, (size_t)word * DT__WORD_STRIDE);
    uint64_t before = 0;
    DT_MPI(
        MPI_Fetch_and_op(&value, &before, MPI_UINT64_T, BANK, at, ops[op], window_of(remote)->win));
    window_flush(remote);
    return before;
}

/* MPI_Win_sync is no barrier in osc/rdma of Open MPI 4.1. */
static void window_sync(struct dt__onesided *remote)
{
    atomic_thread_fence(memory_order_seq_cst);
    DT_MPI(MPI_Win_sync(window_of(remote)->win));
    atomic_thread_fence(memory_order_seq_cst);
}

/* ---- waits ---------------------------------------------------------------------------------- */

static void window_progress(struct dt__onesided *remote)
{
    int there;
    DT_MPI(MPI_Iprobe(MPI_ANY_SOURCE, 0, window_of(remote)->world->trainers->comm, &there,
                      MPI_STATUS_IGNORE));
}

static void window_pause(struct dt__onesided *remote, const char *what)
{
    struct window *window = window_of(remote);
    if (!window->waiting) {
        window->wait = (struct dt__wait){.world = window->world, .what = what};
        if (window->world->is_bank) window->wait.nap_secs = NAP_SECS;
    }
    window->waiting = true;
    dt__wait_pause(&window->wait);
    window_progress(remote);
}

static void window_wake(struct dt__onesided *remote)
{
    struct window *window = window_of(remote);
    if (window->waiting) dt__wait_done(&window->wait);
    window->waiting = false;
}

static void window_notify(struct dt__onesided *remote, enum dt__end whom)
{
    (void)remote, (void)whom; /* who waits looks by itself */
}

/* ---- open ----------------------------------------------------------------------------------- */

static void window_close(struct dt__onesided *remote)
{
    struct window *window = window_of(remote);
    DT_MPI(MPI_Win_unlock_all(window->win));
    DT_MPI(MPI_Win_free(&window->win));
    dt_free(window);
}

static const struct dt__onesided_ops OPS = {
    .put = window_put,
    .get = window_get,
    .flush = window_flush,
    .fetch_and = window_fetch_and,
    .sync = window_sync,
    .pause = window_pause,
    .wake = window_wake,
    .notify = window_notify,
    .progress = window_progress,
    .close = window_close,
};

/* The trainers' communicator returns errors; an answer that differs by rank is made one. */
static dt_status allocate(struct window *window, MPI_Aint bytes, void **base)
{
    char text[MPI_MAX_ERROR_STRING];
    dt_status status = DT_OK;
    int code = MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, window->world->trainers->comm, base,
                                &window->win);
    if (code != MPI_SUCCESS)
        status = dt_fail(DT_ECOMM,
                         "MPI gives no one-sided memory between these ranks (%s): let Open MPI "
                         "choose its osc component: OMPI_MCA_osc=^ucx, or train.mode=sync",
                         dt__mpi_text(code, text));
    return dt_ranks_agree(window->world->trainers, status);
}

dt_status dt__onesided_window(struct dt_world *world, size_t bytes, size_t zeroed,
                              struct dt__onesided **out)
{
    bool bank = world->is_bank;
    struct window *window = NULL;
    void *base = NULL;
    size_t all = 0;
    dt_status status = DT_OK;
    if (bank && !dt_size_add(bytes, CACHE_LINE, &all))
        status = dt_fail(DT_EMEMORY, "the async window is beyond memory");
    if (!status && bank && world->hosts == 1) status = dt__shared_room(all, "async window");
    if (!status) status = dt_alloc(1, sizeof *window, "async window", &window);
    DT_GUARD(dt_ranks_agree(world->trainers, status));
    window->world = world;
    window->remote.ops = &OPS;
    DT_GUARD(allocate(window, (MPI_Aint)all, &base));
    DT_MPI(MPI_Win_set_errhandler(window->win, MPI_ERRORS_RETURN));
    window->pad = (MPI_Aint)(-(uintptr_t)base % CACHE_LINE);
    dt_ranks_bcast(world->trainers, &window->pad, sizeof window->pad, 0);
    if (bank) window->remote.memory = (unsigned char *)base + window->pad;
    if (bank) memset(window->remote.memory, 0, zeroed);
    DT_MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, window->win));
    window_sync(&window->remote);
    *out = &window->remote;
    dt_ranks_barrier(world->trainers);
    return DT_OK;
done:
    dt_free(window);
    return status;
}
