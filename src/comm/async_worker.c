/* The worker's end of the slot protocol (async_slots.h). */
#include "comm/async_slots.h"

#ifndef DT_READ_TRIES
#define DT_READ_TRIES 8 /* before the bank is asked to hold */
#endif

static uint64_t worker_fetch(struct dt_async *async, int word)
{
    return dt__fetch(async, dt__word(word, async->worker));
}

static void worker_replace(struct dt_async *async, int word, uint64_t value)
{
    dt__replace(async, dt__word(word, async->worker), value);
}

/* Who waits can as well act for the bank. */
static void worker_pause(struct dt_async *async, const char *what)
{
    if (async->shared) dt__async_combine(async);
    async->remote->ops->pause(async->remote, what);
}

/* ---- begin ---------------------------------------------------------------------------------- */

/* Until at most `most` of its gradients wait to be applied; returns how many do. */
static uint64_t worker_await_applied(struct dt_async *async, uint64_t most)
{
    uint64_t waiting;
    while ((waiting = async->sent - worker_fetch(async, WORD_ACK)) > most)
        worker_pause(async, "free slot");
    async->remote->ops->wake(async->remote);
    return waiting;
}

static void worker_await_clock(struct dt_async *async)
{
    for (;;) {
        const uint64_t floor = dt__fetch(async, WORD_FLOOR);
        async->gap = async->started > floor ? async->started - floor : 0;
        if (async->spec.staleness < 0 || async->gap <= (uint64_t)async->spec.staleness) break;
        worker_pause(async, "slowest worker");
    }
    async->remote->ops->wake(async->remote);
}

/* Who may act for the bank keeps no buffer from it: a span of workers alone has one less. */
static void worker_clear_hazard(struct dt_async *async)
{
    if (async->shared) worker_replace(async, WORD_HAZARD, 0);
}

bool dt_async_begin(struct dt_async *async)
{
    const double start = dt_clock_secs();
    if (async->active[async->worker]) {
        worker_clear_hazard(async);
        if (worker_await_applied(async, 1) > 0) async->slot = !async->slot;
        worker_await_clock(async);
        async->under_way = dt__add(async, WORD_TICKET, 1) < async->until;
        async->started += async->under_way;
        if (async->shared && !async->under_way) worker_await_applied(async, 0);
    }
    async->wait_secs += dt_clock_secs() - start;
    dt_world_heartbeat(async->world, "gradient", async->sent);
    return async->under_way;
}

void dt_async_leave(struct dt_async *async)
{
    const double start = dt_clock_secs();
    if (async->shared) worker_await_applied(async, 0);
    async->wait_secs += dt_clock_secs() - start;
}

/* ---- read ----------------------------------------------------------------------------------- */

/* Points at the newest weights; false if the bank may have begun to overwrite them before it saw
 * that. */
static bool worker_try_protect(struct dt_async *async, int *buffer)
{
    const uint64_t before = dt__fetch(async, WORD_PUBLISHED);
    *buffer = (int)(before % DT__MOST_BUFFERS);
    worker_replace(async, WORD_HAZARD, 1 + (uint64_t)*buffer);
    const uint64_t passed =
        dt__fetch(async, WORD_PUBLISHED) / DT__MOST_BUFFERS - before / DT__MOST_BUFFERS;
    return passed <= (uint64_t)async->slack;
}

static int worker_protect_newest(struct dt_async *async)
{
    int buffer;
    for (int tries = 0; tries < DT_READ_TRIES; tries++)
        if (worker_try_protect(async, &buffer)) return buffer;
    dt__add(async, WORD_HOLD, 1);
    while (!worker_try_protect(async, &buffer))
        continue; /* one more publication at most is on its way */
    dt__add(async, WORD_HOLD, (uint64_t)-1);
    async->remote->ops->notify(async->remote, DT__WORKERS);
    return buffer;
}

/* A buffer of weights, to memory of this rank. */
static const struct dt__weights *worker_get(struct dt_async *async, size_t offset, void *to)
{
    struct dt__onesided *remote = async->remote;
    remote->ops->get(remote, offset, to, sizeof(struct dt__weights) + async->at.vector);
    remote->ops->flush(remote);
    return to;
}

/* The newest weights over a rounded wire, to this rank's copy. */
static const struct dt__weights *worker_ask(struct dt_async *async)
{
    struct dt__onesided *remote = async->remote;
    struct dt__weights *weights = (struct dt__weights *)async->copy;
    struct dt__slot *answer = async->encoded;
    worker_replace(async, WORD_REQUEST, ++async->asked);
    while (worker_fetch(async, WORD_ANSWER) != async->asked)
        remote->ops->pause(remote, "weights");
    remote->ops->wake(remote);
    if (async->asked == 1) {
        worker_get(async, dt__copy_at(async, async->worker), weights);
        return weights;
    }
    remote->ops->get(remote, dt__answer_at(async, async->worker), answer,
                     sizeof *answer + async->at.grad);
    remote->ops->flush(remote);
    dt__difference_add(async, answer->grad, weights->params);
    weights->version = answer->note.version;
    return weights;
}

/* The gradient under way: in its slot, or in a copy that will be put there. */
static struct dt__slot *worker_slot(struct dt_async *async)
{
    if (async->copy) return (struct dt__slot *)(async->copy + async->at.weights_each);
    return (struct dt__slot *)(async->remote->memory +
                               dt__slot_at(async, async->worker, async->slot));
}

const float *dt_async_read(struct dt_async *async)
{
    const double start = dt_clock_secs();
    if (async->spec.wire && async->under_way) {
        async->read = worker_ask(async);
    } else if (async->spec.wire) { /* weights rest, and a gradient's room is free */
        const int buffer = (int)(dt__fetch(async, WORD_PUBLISHED) % DT__MOST_BUFFERS);
        async->read = worker_get(async, dt__weights_at(async, buffer), worker_slot(async));
    } else {
        const int buffer = worker_protect_newest(async);
        if (async->copy) {
            async->read = worker_get(async, dt__weights_at(async, buffer), async->copy);
        } else {
            dt__sync(async);
            async->read = dt__weights_in(async, buffer);
        }
    }
    async->wait_secs += dt_clock_secs() - start;
    return async->read->params;
}

/* ---- send ----------------------------------------------------------------------------------- */

float *dt_async_grad(struct dt_async *async)
{
    return worker_slot(async)->grad;
}

const struct dt_touched *dt_async_touched(const struct dt_async *async)
{
    const int slot = async->worker < 0 ? 0 : async->worker * DT__SLOTS + async->slot;
    return async->touched ? async->touched + slot * async->spec.row_ranges : NULL;
}

void dt_async_send(struct dt_async *async, const struct dt_note *note)
{
    struct dt__onesided *remote = async->remote;
    const struct dt__places *at = &async->at;
    struct dt__slot *slot = worker_slot(async), *from = async->encoded ? async->encoded : slot;
    from->note = *note;
    from->note.number = async->sent;
    from->note.version = async->read->version;
    from->note.gap = async->gap;
    if (async->encoded) dt__gradient_encode(async, slot->grad);
    if (async->spec.norm2)
        from->note.norm2 = async->spec.norm2(async->spec.arg, dt_async_touched(async), slot->grad);
    if (async->copy) {
        const size_t to = dt__slot_at(async, async->worker, async->slot);
        remote->ops->put(remote, to, from, at->seen);
        if (async->spec.keep_seen)
            remote->ops->put(remote, to + at->seen, async->read->params, at->vector);
        remote->ops->flush(remote);
    } else {
        if (async->spec.keep_seen)
            dt__seen_copy(async, dt_async_touched(async), (float *)((char *)slot + at->seen));
        dt__sync(async);
    }
    worker_clear_hazard(async);
    async->under_way = false;
    async->sent++;
    worker_replace(async, WORD_DOORBELL, async->sent * DT__SLOTS + (uint64_t)async->slot);
    if (async->shared) dt__async_combine(async);
}
