#include "comm/window.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/statvfs.h>

#include "comm/slots.h"
#include "comm/world.h"

enum { BANK = 0 /* of the crew */, CACHE_LINE = 64 };

static struct dt__window *window_of(struct dt__onesided *net)
{
    return (struct dt__window *)net;
}

/* ---- payload -------------------------------------------------------------------------------- */

static MPI_Aint place_of(struct dt__onesided *net, size_t offset)
{
    return window_of(net)->pad + (MPI_Aint)offset;
}

static void put(struct dt__onesided *net, size_t offset, const void *bytes, size_t length)
{
    const char *from = bytes;
    for (size_t at = 0; at < length; at += DT__MPI_CHUNK) {
        int n = (int)(length - at < DT__MPI_CHUNK ? length - at : DT__MPI_CHUNK);
        DT_MPI(MPI_Put(from + at, n, MPI_BYTE, BANK, place_of(net, offset + at), n, MPI_BYTE,
                       window_of(net)->win));
    }
}

static void get(struct dt__onesided *net, size_t offset, void *bytes, size_t length)
{
    char *to = bytes;
    for (size_t at = 0; at < length; at += DT__MPI_CHUNK) {
        int n = (int)(length - at < DT__MPI_CHUNK ? length - at : DT__MPI_CHUNK);
        DT_MPI(MPI_Get(to + at, n, MPI_BYTE, BANK, place_of(net, offset + at), n, MPI_BYTE,
                       window_of(net)->win));
    }
}

/* Blocks until the bank has answered. */
static void flush(struct dt__onesided *net)
{
    struct dt__window *window = window_of(net);
    dt__watch_ask(window->world);
    DT_MPI(MPI_Win_flush(BANK, window->win));
    dt__watch_answered(window->world);
}

/* ---- control words -------------------------------------------------------------------------- */

static uint64_t fetch_and(struct dt__onesided *net, int word, uint64_t value, MPI_Op op)
{
    uint64_t before = 0;
    MPI_Aint at = place_of(net, (size_t)word * DT__WORD_STRIDE);
    DT_MPI(MPI_Fetch_and_op(&value, &before, MPI_UINT64_T, BANK, at, op, window_of(net)->win));
    flush(net);
    return before;
}

static uint64_t fetch(struct dt__onesided *net, int word)
{
    return fetch_and(net, word, 0, MPI_NO_OP);
}

static void replace(struct dt__onesided *net, int word, uint64_t value)
{
    fetch_and(net, word, value, MPI_REPLACE);
}

static uint64_t add(struct dt__onesided *net, int word, uint64_t delta)
{
    return fetch_and(net, word, delta, MPI_SUM);
}

/* The same by the processor, where all ranks reach the word. */
static _Atomic uint64_t *shared_word(struct dt__onesided *net, int word)
{
    return (_Atomic uint64_t *)(void *)(net->memory + (size_t)word * DT__WORD_STRIDE);
}

static uint64_t shared_fetch(struct dt__onesided *net, int word)
{
    return atomic_load(shared_word(net, word));
}

static void shared_replace(struct dt__onesided *net, int word, uint64_t value)
{
    atomic_store(shared_word(net, word), value);
}

static uint64_t shared_add(struct dt__onesided *net, int word, uint64_t delta)
{
    return atomic_fetch_add(shared_word(net, word), delta);
}

/* MPI_Win_sync is no barrier in osc/rdma of Open MPI 4.1. */
static void sync_memory(struct dt__onesided *net)
{
    atomic_thread_fence(memory_order_seq_cst);
    DT_MPI(MPI_Win_sync(window_of(net)->win));
    atomic_thread_fence(memory_order_seq_cst);
}

/* ---- waits ---------------------------------------------------------------------------------- */

/* The bank of a window naps this long: each operation of a worker may wait for it to enter MPI
 * (osc/pt2pt). The bank of shared memory only looks for signals and clocks. */
static const double NAP_SECS = 50e-6, SLEEP_SECS = 0.02;

void dt__window_progress(struct dt__window *window)
{
    int there;
    if (!window->bank_gate)
        DT_MPI(MPI_Iprobe(MPI_ANY_SOURCE, 0, window->world->crew, &there, MPI_STATUS_IGNORE));
}

static void begin_wait(struct dt__window *window, const char *what)
{
    window->waiting = true;
    dt__wait_init(&window->wait, window->world, what);
    if (dt_world_is_bank(window->world)) window->wait.nap_secs = NAP_SECS;
    if (window->bank_gate) dt__watch_wait(window->world, what);
}

/* What was told after the last look ends the sleep at once. */
static void sleep_at_gate(struct dt__window *window, struct dt__gate *gate)
{
    dt__gate_wait_for(gate, window->seen + 1, SLEEP_SECS);
    window->seen = atomic_load(&gate->count);
}

static void pass_time(struct dt__onesided *net, const char *what)
{
    struct dt__window *window = window_of(net);
    bool bank = dt_world_is_bank(window->world);
    if (!window->waiting) begin_wait(window, what);
    if (window->bank_gate) {
        sleep_at_gate(window, bank ? window->bank_gate : window->worker_gate);
    } else {
        dt__wait_pause(&window->wait);
        dt__window_progress(window);
    }
}

static void wake(struct dt__onesided *net)
{
    struct dt__window *window = window_of(net);
    if (!window->waiting) return;
    window->waiting = false;
    if (window->bank_gate)
        dt__watch_touch(window->world);
    else
        dt__wait_done(&window->wait);
}

static void tell(struct dt__onesided *net, enum dt__end whom)
{
    struct dt__window *window = window_of(net);
    if (window->bank_gate)
        dt__gate_post(whom == DT__BANK ? window->bank_gate : window->worker_gate, 1);
}

static const struct dt__onesided_ops OPS = {
    .put = put,
    .get = get,
    .flush = flush,
    .fetch = fetch,
    .replace = replace,
    .add = add,
    .sync = sync_memory,
    .pause = pass_time,
    .wake = wake,
    .tell = tell,
};

/* Payload needs none: it is written and read in place. */
static const struct dt__onesided_ops SHARED_OPS = {
    .fetch = shared_fetch,
    .replace = shared_replace,
    .add = shared_add,
    .sync = sync_memory,
    .pause = pass_time,
    .wake = wake,
    .tell = tell,
};

/* ---- open ----------------------------------------------------------------------------------- */

/* Asks before the allocation, for a shortage that shows later is a SIGBUS. */
static dt_status check_space(struct dt_world *world, size_t bytes)
{
    struct statvfs fs;
    bool bank = dt_world_is_bank(world);
    double have = bytes ? 0 : 1;
    if (bank && statvfs("/dev/shm", &fs) == 0) have = (double)fs.f_bavail * (double)fs.f_frsize;
    dt_status status = DT_OK;
    if (bank && have < 1.02 * (double)bytes)
        status = dt_fail(DT_EMEMORY, "/dev/shm has %.0f MB free, the async window needs %.0f MB",
                         have / 1e6, (double)bytes / 1e6);
    return dt_world_agree_crew(world, status);
}

/* The crew's communicator returns errors; an answer that differs by rank is made one. */
static dt_status check_created(struct dt_world *world, int code)
{
    char text[MPI_MAX_ERROR_STRING];
    dt_status status = DT_OK;
    if (code != MPI_SUCCESS)
        status = dt_fail(DT_ECOMM,
                         "MPI gives no one-sided memory between these ranks (%s): let Open MPI "
                         "choose its osc component: OMPI_MCA_osc=^ucx, or train.mode=sync",
                         dt__mpi_text(code, text));
    return dt_world_agree_crew(world, status);
}

static dt_status allocate(struct dt__window *window, MPI_Aint bytes, bool shared, void **base)
{
    MPI_Comm crew = window->world->crew;
    int code = shared ? MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, crew, base, &window->win)
                      : MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, crew, base, &window->win);
    if (code != MPI_SUCCESS) window->win = MPI_WIN_NULL;
    return check_created(window->world, code);
}

static void *bank_memory(struct dt__window *window)
{
    MPI_Aint size;
    int unit;
    void *base;
    DT_MPI(MPI_Win_shared_query(window->win, BANK, &size, &unit, &base));
    return base;
}

/* Where the protocol's memory begins, and behind it the gates. */
static dt_status map_memory(struct dt__window *window, unsigned char *base, size_t bytes,
                            bool shared)
{
    bool bank = dt_world_is_bank(window->world);
    size_t gates = 2 * sizeof(struct dt__gate);
    window->pad = (MPI_Aint)(-(uintptr_t)base % CACHE_LINE);
    DT_TRY(dt_world_crew_bcast(window->world, &window->pad, sizeof window->pad));
    if (bank || shared) window->net.memory = base + window->pad;
    if (bank) memset(window->net.memory, 0, bytes + gates);
    if (shared) window->bank_gate = (struct dt__gate *)(window->net.memory + bytes);
    if (shared) window->worker_gate = window->bank_gate + 1;
    return DT_OK;
}

dt_status dt__window_open(struct dt__window *window, struct dt_world *world, size_t bytes,
                          bool shared)
{
    *window = (struct dt__window){
        .net.ops = shared ? &SHARED_OPS : &OPS, .world = world, .win = MPI_WIN_NULL};
    size_t all = dt_world_is_bank(world) ? bytes + 2 * sizeof(struct dt__gate) + CACHE_LINE : 0;
    void *base = NULL;
    if (shared || world->hosts == 1) DT_TRY(check_space(world, all));
    DT_TRY(allocate(window, (MPI_Aint)all, shared, &base));
    DT_MPI(MPI_Win_set_errhandler(window->win, MPI_ERRORS_RETURN));
    if (shared) base = bank_memory(window);
    DT_TRY(map_memory(window, base, bytes, shared));
    DT_MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, window->win));
    sync_memory(&window->net);
    return dt_world_crew_barrier(world);
}

void dt__window_close(struct dt__window *window)
{
    if (window->win == MPI_WIN_NULL) return;
    DT_MPI(MPI_Win_unlock_all(window->win));
    DT_MPI(MPI_Win_free(&window->win));
}
