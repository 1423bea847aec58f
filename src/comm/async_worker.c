/* The worker's end of the slot protocol (async_slots.h): functions for shared memory, functions for
 * windows, and the public functions, which choose between the two. */
#include "comm/async_slots.h"

/* Sets a control word of this worker at all owners. Only for windows. */
static void worker_post(struct dt_async *async, int word, uint64_t value)
{
    for (int i = 0; i < async->slices; i++) {
        struct dt__onesided *remote = async->slice[i].remote;
        remote->ops->begin(remote, dt__word(word, async->worker), DT__REPLACE, value, NULL, NULL);
    }
}

/* Rings the doorbells of the gradients that have left this rank, in order. Only for windows. */
static void worker_ring(struct dt_async *async)
{
    for (uint64_t slot; async->own.rung < async->own.sent; async->own.rung++) {
        slot = async->own.rung % DT__SLOTS;
        if (async->own.put[slot]) break;
        worker_post(async, WORD_DOORBELL, (async->own.rung + 1) * DT__SLOTS + slot);
    }
}

/* Acts for the owners that this rank may act for, and rings doorbells. */
static void worker_serve(struct dt_async *async)
{
    dt__async_serve_own(async);
    if (!async->shared) worker_ring(async);
}

/* Waits a little, and serves meanwhile. */
static void worker_pause(struct dt_async *async, const char *what)
{
    struct dt__onesided *remote = async->slice->remote;
    worker_serve(async);
    remote->ops->pause(remote, what);
}

/* ---- shared memory -------------------------------------------------------------------------- */

/* Waits until at most `most` of this worker's gradients are unapplied. Returns the number of
 * unapplied ones. */
static uint64_t shared_await_applied(struct dt_async *async, uint64_t most)
{
    const int ack = dt__word(WORD_ACK, async->worker);
    uint64_t waiting;
    while ((waiting = async->own.sent - dt__fetch(async->slice, ack)) > most)
        worker_pause(async, "free slot");
    return waiting;
}

/* Waits until the staleness bound allows this worker another gradient. */
static void shared_await_clock(struct dt_async *async)
{
    for (;;) {
        const uint64_t floor = dt__fetch(async->slice, WORD_FLOOR);
        async->own.gap = async->own.started > floor ? async->own.started - floor : 0;
        if (async->spec.staleness < 0 || async->own.gap <= (uint64_t)async->spec.staleness) break;
        worker_pause(async, "slowest worker");
    }
}

/* Clears the hazard word: a worker that may act for the owner points at no buffer, because there is
 * one buffer less than that would need. */
static void shared_clear_hazard(struct dt_async *async)
{
    dt__replace(async->slice, dt__word(WORD_HAZARD, async->worker), 0);
}

/* Protects the newest weights from being overwritten, and returns their buffer. If another rank
 * started to overwrite them before the hazard word became visible, there are newer weights, and it
 * tries again. */
static int shared_protect_newest(struct dt_async *async)
{
    struct dt__slice *slice = async->slice;
    for (;;) {
        const uint64_t newest = dt__fetch(slice, WORD_PUBLISHED);
        const int buffer = (int)(newest % DT__MOST_BUFFERS);
        dt__replace(slice, dt__word(WORD_HAZARD, async->worker), 1 + (uint64_t)buffer);
        if (dt__fetch(slice, WORD_PUBLISHED) == newest) return buffer;
    }
}

static bool shared_begin(struct dt_async *async)
{
    shared_clear_hazard(async);
    if (shared_await_applied(async, 1) > 0) async->own.slot = !async->own.slot;
    shared_await_clock(async);
    return dt__add(async->slice, WORD_TICKET, 1) < async->until;
}

/* ---- windows -------------------------------------------------------------------------------- */

/* Requests the weights for the next gradient from all owners. */
static void windows_ask(struct dt_async *async)
{
    async->own.asked++;
    async->own.awaits = true;
    for (int i = 0; i < async->slices; i++) {
        struct dt__slice *slice = &async->slice[i];
        slice->remote->ops->expect(slice->remote, &slice->answer, async->weights + slice->offset,
                                   slice->at.vector);
    }
    worker_post(async, WORD_REQUEST, 2 * async->own.asked);
}

/* Waits until all owners have answered. */
static void windows_await(struct dt_async *async)
{
    const uint64_t clock = async->own.started - async->own.pending;
    async->own.gap = 0;
    for (int i = 0; i < async->slices; i++) {
        struct dt__slice *slice = &async->slice[i];
        while (slice->answer.left)
            worker_pause(async, "weights");
        const uint64_t floor = slice->answer.head.floor;
        if (clock > floor && clock - floor > async->own.gap) async->own.gap = clock - floor;
    }
    async->own.awaits = false;
}

/* Waits until everything that this worker has put has left this rank. */
static void windows_await_put(struct dt_async *async)
{
    while (async->own.rung < async->own.sent)
        worker_pause(async, "slot");
}

static bool windows_begin(struct dt_async *async)
{
    struct dt__onesided *bank = async->slice->remote;
    if (!async->own.awaits) windows_ask(async);
    bank->ops->begin(bank, WORD_TICKET, DT__SUM, 1, &async->own.ticket, &async->own.fetch);
    while (async->own.fetch)
        worker_pause(async, "ticket");
    async->own.slot = (int)(async->own.sent % DT__SLOTS);
    return async->own.ticket < async->until;
}

/* Leaves the span: notifies all owners, which from then on do not count this worker's clock. */
static void windows_leave(struct dt_async *async)
{
    windows_await_put(async);
    worker_post(async, WORD_REQUEST, 2 * async->own.asked + 1);
    if (async->own.awaits) windows_await(async);
}

/* Starts to put the gradient to all owners, and requests the next weights. */
static void windows_put(struct dt_async *async, const struct dt_gradient_info *info)
{
    const float *grad = dt__async_grad(async);
    int *left = &async->own.put[async->own.slot];
    for (int i = 0; i < async->slices; i++) {
        struct dt__slice *slice = &async->slice[i];
        slice->put_head[async->own.slot].info = *info;
        slice->put_head[async->own.slot].info.version = slice->answer.head.version;
    }
    /* The request comes before the puts: after them it would wait until they have left. */
    windows_ask(async);
    for (int i = 0; i < async->slices; i++) {
        struct dt__slice *slice = &async->slice[i];
        struct dt__onesided *remote = slice->remote;
        struct dt__slot_head *head = &slice->put_head[async->own.slot];
        const size_t to = dt__slot_at(slice, async->worker, async->own.slot);
        const float *from = grad + slice->offset;
        head->checksum = dt__slot_checksum(slice, &head->info, from);
        remote->ops->put(remote, left, to + sizeof(struct dt__slot), from, slice->at.vector);
        remote->ops->put(remote, left, to, head, sizeof *head);
    }
}

/* ---- shared memory or windows --------------------------------------------------------------- */

bool dt__async_begin(struct dt_async *async)
{
    const double start = dt__clock_secs();
    if (async->active[async->worker]) {
        async->own.pending = async->shared ? shared_begin(async) : windows_begin(async);
        async->own.started += async->own.pending;
    }
    async->wait_secs += dt__clock_secs() - start;
    return async->own.pending;
}

void dt__async_leave(struct dt_async *async)
{
    async->own.pending = false;
    if (async->shared)
        shared_await_applied(async, 0);
    else if (async->active[async->worker])
        windows_leave(async);
}

const float *dt__async_read(struct dt_async *async)
{
    const double start = dt__clock_secs();
    if (async->shared) {
        const int buffer = shared_protect_newest(async);
        dt__sync(async->slice);
        async->own.read = dt__weights_in(async->slice, buffer);
    } else if (async->own.awaits) {
        windows_await(async);
    }
    async->wait_secs += dt__clock_secs() - start;
    return async->shared ? async->own.read->params : async->weights;
}

void dt__async_progress(struct dt_async *async)
{
    if (!async->shared) worker_serve(async);
}

/* Returns the slot of the pending gradient. */
static struct dt__slot *shared_slot(struct dt_async *async)
{
    const struct dt__slice *slice = async->slice;
    return (struct dt__slot *)(slice->remote->memory +
                               dt__slot_at(slice, async->worker, async->own.slot));
}

float *dt__async_grad(struct dt_async *async)
{
    return async->shared ? shared_slot(async)->grad
                         : async->own.gradient + (size_t)async->own.slot * async->spec.params;
}

const struct dt_touched *dt__async_touched(const struct dt_async *async)
{
    const int slot = async->worker < 0 ? 0 : async->worker * DT__SLOTS + async->own.slot;
    return async->touched ? async->touched + slot * async->spec.row_ranges : NULL;
}

static void shared_fill_slot(struct dt_async *async, const struct dt_gradient_info *info)
{
    struct dt__slice *slice = async->slice;
    struct dt__slot *slot = shared_slot(async);
    slot->head.info = *info;
    slot->head.info.version = async->own.read->version;
    dt__sync(slice);
    shared_clear_hazard(async);
    dt__replace(slice, dt__word(WORD_DOORBELL, async->worker),
                (async->own.sent + 1) * DT__SLOTS + (uint64_t)async->own.slot);
}

void dt__async_send(struct dt_async *async, const struct dt_gradient_info *info)
{
    struct dt_gradient_info own = *info;
    own.number = async->own.sent;
    own.gap = async->own.gap;
    if (async->spec.norm2)
        own.norm2 =
            async->spec.norm2(async->spec.arg, dt__async_touched(async), dt__async_grad(async));
    if (async->shared)
        shared_fill_slot(async, &own);
    else
        windows_put(async, &own);
    async->own.pending = false;
    async->own.sent++;
    worker_serve(async);
}
