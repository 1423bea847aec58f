/* Async in an MPI window: gradients are sent by MPI_Rput. Workers send operations on control words
 * as messages to the owner, which executes them in order, and owners send weights as messages. Each
 * owner of weights is a target: a rank into whose memory in the window other ranks put.
 *
 * An owner may be a worker that computes, and MPI transfers nothing for a rank that is not inside
 * MPI (osc/pt2pt). So every wait is a loop in which the rank continues to serve its own memory, and
 * nothing here blocks: neither a flush, which waits for everything in flight, nor an
 * MPI_Accumulate, which needs a flush. For the same reason owners send the weights: once the
 * message is received, they are complete. With a get the worker would first have to ask, and wait
 * for, an owner that has other ranks to serve. */
#include <stdatomic.h>
#include <string.h>

#include "base/limits.h"
#include "comm/onesided.h"
#include "comm/requests.h"
#include "comm/world.h"

/* MOST_BEGUN: capacity for operations in flight. A gradient takes two operations on control words
 * at each owner, three at the bank, and three gets of an unused byte. */
enum { CACHE_LINE = 64, MOST_BEGUN = 8 };

/* Tags of messages. Messages between two ranks keep their order, so these suffice. */
enum { TAG_ANSWER, TAG_CONTROL, TAG_BEFORE };

/* An operation on a control word, as a message. */
struct control {
    uint64_t value;
    int word;
    enum dt__op op;
    bool fetch; /* the former value is sent back */
    int left;   /* messages of this operation in flight */
};

/* Sleep of the bank between looks: an operation of a worker may wait until the bank enters MPI
 * (osc/pt2pt). */
static const double NAP_SECS = 50e-6;

struct window;
struct target {
    struct dt__onesided remote; /* first, so that a pointer to it is a pointer to the struct */
    struct window *window;
    int owner;
    MPI_Aint pad;                       /* bytes before the first cache line */
    MPI_Aint unused;                    /* offset of an unused byte */
    struct control control[MOST_BEGUN]; /* used in turn */
    char byte[MOST_BEGUN];              /* used in turn, to receive the unused byte */
    unsigned next, next_byte;
};

struct window {
    struct dt_world *world;
    MPI_Win win;
    struct dt__requests requests; /* all pending requests of this rank */
    int rank;
    struct dt__onesided *own; /* this rank's target; NULL: this rank owns no weights */
    struct dt__wait wait;
    struct target target[];
};

static struct target *target_of(struct dt__onesided *remote)
{
    return (struct target *)remote;
}

/* ---- payload -------------------------------------------------------------------------------- */

/* Starts a put. Short puts do not leave this rank (osc/pt2pt) until a flush, or until an operation
 * needs an answer: here the get of an unused byte. */
static void window_put(struct dt__onesided *remote, int *left, size_t offset, const void *bytes,
                       size_t length)
{
    struct target *target = target_of(remote);
    struct window *window = target->window;
    char *byte = &target->byte[target->next_byte++ % MOST_BEGUN];
    for (size_t at = 0, n; at < length; at += n) {
        n = length - at < DT__MPI_CHUNK ? length - at : DT__MPI_CHUNK;
        DT_MPI(MPI_Rput((const char *)bytes + at, (int)n, MPI_BYTE, target->owner,
                        target->pad + (MPI_Aint)(offset + at), (int)n, MPI_BYTE, window->win,
                        dt__request_add(&window->requests, left)));
    }
    DT_MPI(MPI_Rget(byte, 1, MPI_BYTE, target->owner, target->unused, 1, MPI_BYTE, window->win,
                    dt__request_add(&window->requests, left)));
}

/* ---- control words -------------------------------------------------------------------------- */

/* Operates on a control word. Only an owner calls it, on its own words. */
static uint64_t window_fetch_op(struct dt__onesided *remote, int word, enum dt__op op,
                                uint64_t value)
{
    uint64_t *at = (uint64_t *)(void *)(remote->memory + (size_t)word * DT__WORD_STRIDE);
    const uint64_t before = *at;
    if (op != DT__NO_OP) *at = value + (op == DT__SUM ? before : 0);
    return before;
}

static void window_begin(struct dt__onesided *remote, int word, enum dt__op op, uint64_t value,
                         uint64_t *before, int *left)
{
    struct target *target = target_of(remote);
    struct dt__requests *requests = &target->window->requests;
    struct control *control = &target->control[target->next++ % MOST_BEGUN];
    while (control->left)
        dt__requests_advance(requests);
    *control = (struct control){value, word, op, before != NULL, 0};
    if (before)
        DT_MPI(MPI_Irecv(before, (int)sizeof *before, MPI_BYTE, target->owner, TAG_BEFORE,
                         requests->comm, dt__request_add(requests, left)));
    DT_MPI(MPI_Isend(control, (int)sizeof *control, MPI_BYTE, target->owner, TAG_CONTROL,
                     requests->comm, dt__request_add(requests, &control->left)));
}

/* Advances pending requests, and executes the operations that other ranks have started on this
 * rank's words. */
static void window_progress(struct dt__onesided *remote)
{
    struct window *window = target_of(remote)->window;
    MPI_Status status;
    struct control control;
    const MPI_Comm comm = window->requests.comm;
    int there;
    dt__requests_advance(&window->requests);
    for (;;) {
        DT_MPI(MPI_Iprobe(MPI_ANY_SOURCE, TAG_CONTROL, comm, &there, &status));
        if (!there) return;
        DT_MPI(MPI_Recv(&control, (int)sizeof control, MPI_BYTE, status.MPI_SOURCE, TAG_CONTROL,
                        comm, MPI_STATUS_IGNORE));
        const uint64_t before =
            window_fetch_op(window->own, control.word, control.op, control.value);
        if (control.fetch) /* the worker waits for it */
            DT_MPI(MPI_Send(&before, (int)sizeof before, MPI_BYTE, status.MPI_SOURCE, TAG_BEFORE,
                            comm));
    }
}

/* A full barrier: MPI_Win_sync is none in osc/rdma of Open MPI 4.1. */
static void window_sync(struct dt__onesided *remote)
{
    atomic_thread_fence(memory_order_seq_cst);
    DT_MPI(MPI_Win_sync(target_of(remote)->window->win));
    atomic_thread_fence(memory_order_seq_cst);
}

/* ---- answers -------------------------------------------------------------------------------- */

static void move_answer(struct dt__requests *requests, struct dt__answer *answer, const void *body,
                        size_t length, struct dt__envelope envelope)
{
    dt__message_begin(requests, &answer->left, &answer->head, sizeof answer->head, envelope);
    dt__message_begin(requests, &answer->left, body, length, envelope);
}

static void window_send(struct dt__onesided *remote, int worker, struct dt__answer *answer,
                        const void *body, size_t length)
{
    struct window *window = target_of(remote)->window;
    const int to = window->world->worker_rank + worker;
    move_answer(&window->requests, answer, body, length,
                (struct dt__envelope){true, to, TAG_ANSWER, DT__EAGER});
}

static void window_expect(struct dt__onesided *remote, struct dt__answer *answer, void *body,
                          size_t length)
{
    const struct target *target = target_of(remote);
    move_answer(&target->window->requests, answer, body, length,
                (struct dt__envelope){false, target->owner, TAG_ANSWER, DT__EAGER});
}

/* ---- waits ---------------------------------------------------------------------------------- */

static void window_pause(struct dt__onesided *remote, const char *what)
{
    struct window *window = target_of(remote)->window;
    if (what != window->wait.what)
        window->wait =
            (struct dt__wait){.world = window->world, .what = what, .nap_secs = NAP_SECS};
    dt__wait_pause(&window->wait);
}

static void window_notify(struct dt__onesided *remote, enum dt__end whom)
{
    (void)remote, (void)whom; /* a waiting rank polls */
}

/* ---- open ----------------------------------------------------------------------------------- */

static void window_close(struct dt__onesided *remote)
{
    struct window *window = target_of(remote)->window;
    while (window->requests.count)
        dt__requests_advance(&window->requests);
    DT_MPI(MPI_Win_unlock_all(window->win));
    DT_MPI(MPI_Win_free(&window->win));
    DT_MPI(MPI_Comm_free(&window->requests.comm));
    dt__requests_free(&window->requests);
}

static const struct dt__onesided_ops OPS = {
    .fetch_op = window_fetch_op,
    .sync = window_sync,
    .pause = window_pause,
    .notify = window_notify,
    .progress = window_progress,
    .close = window_close,
    .put = window_put,
    .begin = window_begin,
    .send = window_send,
    .expect = window_expect,
};

/* Allocates the window. The trainers' communicator returns errors, which may differ by rank, so the
 * ranks agree on one. */
static dt_status window_allocate(struct window *window, size_t bytes, void **base)
{
    char text[MPI_MAX_ERROR_STRING];
    dt_status status = DT_OK;
    int code = MPI_Win_allocate((MPI_Aint)bytes, 1, MPI_INFO_NULL, window->world->trainers->comm,
                                base, &window->win);
    if (code != MPI_SUCCESS)
        status = dt_fail(DT_ECOMM,
                         "MPI gives no one-sided memory between these ranks (%s): let Open MPI "
                         "choose its osc component: OMPI_MCA_osc=^ucx, or train.mode=sync",
                         dt__mpi_text(code, text));
    return dt__ranks_agree(window->world->trainers, status);
}

/* Allocates what this rank needs. *own: bytes of the window for this rank's memory. */
static dt_status window_prepare(struct dt_world *world, struct dt__arena **arena, int targets,
                                const struct dt__window_target *of, struct window **out,
                                size_t *own)
{
    struct window *window;
    size_t all = 0;
    DT_TRY(dt__arena_alloc(arena, 1, sizeof *window + (size_t)targets * sizeof *window->target,
                           "async window", out));
    window = *out;
    window->world = window->requests.world = world;
    window->rank = world->is_bank ? 0 : world->worker_rank + world->worker;
    *own = 0;
    for (int i = 0; i < targets; i++) {
        struct target *target = &window->target[i];
        const size_t bytes = of[i].bytes + CACHE_LINE;
        *target = (struct target){.remote.ops = &OPS,
                                  .window = window,
                                  .owner = of[i].owner,
                                  .unused = (MPI_Aint)bytes - 1};
        if (bytes < CACHE_LINE || !dt__size_add(all, bytes, &all))
            return dt_fail(DT_EMEMORY, "the async window is beyond memory");
        if (target->owner == window->rank) *own = bytes;
    }
    return world->is_bank && world->hosts == 1 ? dt__shm_has_space(all, "async window") : DT_OK;
}

dt_status dt__onesided_window(struct dt_world *world, struct dt__arena **arena, int targets,
                              const struct dt__window_target *of)
{
    struct window *window = NULL;
    void *base = NULL;
    size_t own = 0;
    dt_status status = window_prepare(world, arena, targets, of, &window, &own);
    DT_TRY(dt__ranks_agree(world->trainers, status));
    DT_TRY(window_allocate(window, own, &base));
    DT_MPI(MPI_Win_set_errhandler(window->win, MPI_ERRORS_RETURN));
    DT_MPI(MPI_Comm_dup(world->trainers->comm, &window->requests.comm));
    for (int i = 0; i < targets; i++) {
        struct target *target = &window->target[i];
        target->pad = (MPI_Aint)(-(uintptr_t)base % CACHE_LINE);
        dt__ranks_bcast(world->trainers, &target->pad, sizeof target->pad, target->owner);
        *of[i].out = &target->remote;
        if (target->owner != window->rank) continue;
        window->own = &target->remote;
        target->remote.memory = (unsigned char *)base + target->pad;
        memset(target->remote.memory, 0, of[i].zeroed);
    }
    DT_MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, window->win));
    window_sync(&window->target[0].remote);
    dt__ranks_barrier(world->trainers);
    return DT_OK;
}
