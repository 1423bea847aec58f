/* The worker's end of the slot protocol (async_slots.h). */
#include <string.h>

#include "comm/async_slots.h"

#ifndef DT_READ_TRIES
#define DT_READ_TRIES 8 /* before the bank is asked to hold */
#endif

dt_status dt__slots_worker_init(struct dt__slots_worker *worker,
                                const struct dt__slots_shape *shape, struct dt__onesided *remote,
                                int index)
{
    *worker = (struct dt__slots_worker){.shape = shape, .remote = remote, .index = index};
    if (remote->memory && !shape->wire) return DT_OK;
    DT_TRY(dt_alloc(2, shape->weights_stride, "weights and a gradient", &worker->copy));
    if (!shape->wire) return DT_OK;
    DT_TRY(dt_alloc(shape->params, sizeof(float), "rounding errors", &worker->error));
    return dt_alloc(1, shape->slot_stride, "a rounded gradient", &worker->parcel);
}

void dt__slots_worker_free(struct dt__slots_worker *worker)
{
    dt_free(worker->copy);
    dt_free(worker->error);
    dt_free(worker->parcel);
}

void dt__slots_worker_open(struct dt__slots_worker *worker, uint64_t until)
{
    worker->until = until;
    worker->started = 0;
}

static uint64_t worker_fetch(struct dt__slots_worker *worker, int word)
{
    return worker->remote->ops->fetch(worker->remote, dt__slots_word(word, worker->index));
}

static void worker_replace(struct dt__slots_worker *worker, int word, uint64_t value)
{
    worker->remote->ops->replace(worker->remote, dt__slots_word(word, worker->index), value);
}

/* Who waits can as well act for the bank. */
static void worker_pause(struct dt__slots_worker *worker, const char *what)
{
    if (worker->combine) worker->combine(worker->combine_arg);
    worker->remote->ops->pause(worker->remote, what);
}

/* Until at most `most` of its gradients wait to be applied; returns how many do. */
static uint64_t worker_await_applied(struct dt__slots_worker *worker, uint64_t most)
{
    uint64_t waiting;
    while ((waiting = worker->sent - worker_fetch(worker, WORD_ACK)) > most)
        worker_pause(worker, "free slot");
    worker->remote->ops->wake(worker->remote);
    return waiting;
}

static void worker_await_clock(struct dt__slots_worker *worker)
{
    struct dt__onesided *remote = worker->remote;
    for (;;) {
        uint64_t floor = remote->ops->fetch(remote, WORD_FLOOR);
        worker->gap = worker->started > floor ? worker->started - floor : 0;
        if (worker->shape->staleness < 0) break;
        if (worker->gap <= (uint64_t)worker->shape->staleness) break;
        worker_pause(worker, "slowest worker");
    }
    remote->ops->wake(remote);
}

/* Who may act for the bank keeps no buffer from it: a span of workers alone has one less. */
static void worker_clear_hazard(struct dt__slots_worker *worker)
{
    if (worker->combine) worker_replace(worker, WORD_HAZARD, 0);
}

void dt__slots_settle(struct dt__slots_worker *worker)
{
    if (worker->combine) worker_await_applied(worker, 0);
}

bool dt__slots_begin(struct dt__slots_worker *worker)
{
    worker_clear_hazard(worker);
    if (worker_await_applied(worker, 1) > 0) worker->slot = !worker->slot;
    worker_await_clock(worker);
    if (worker->remote->ops->add(worker->remote, WORD_TICKET, 1) < worker->until) {
        worker->started++;
        worker->under_way = true;
        return true;
    }
    dt__slots_settle(worker);
    return false;
}

static struct dt__published fetch_published(struct dt__onesided *remote)
{
    return dt__published_unpack(remote->ops->fetch(remote, WORD_PUBLISHED));
}

/* Points at the newest weights; false if the bank may have begun to overwrite them before it saw
 * that. */
static bool worker_try_protect(struct dt__slots_worker *worker, int *out_buffer)
{
    struct dt__published before = fetch_published(worker->remote);
    worker_replace(worker, WORD_HAZARD, (uint64_t)before.buffer + 1);
    uint64_t passed = fetch_published(worker->remote).number - before.number;
    *out_buffer = before.buffer;
    return passed <= (uint64_t)worker->shape->way.slack;
}

static int worker_protect_newest(struct dt__slots_worker *worker)
{
    struct dt__onesided *remote = worker->remote;
    int buffer;
    for (int tries = 0; tries < DT_READ_TRIES; tries++)
        if (worker_try_protect(worker, &buffer)) return buffer;
    remote->ops->add(remote, WORD_HOLD, 1);
    while (!worker_try_protect(worker, &buffer))
        continue; /* one more publication at most is on its way */
    remote->ops->add(remote, WORD_HOLD, (uint64_t)-1);
    remote->ops->notify(remote, DT__WORKERS);
    return buffer;
}

/* Between spans the weights rest, and the room for a gradient is free. */
static const float *worker_read_resting(struct dt__slots_worker *worker)
{
    struct dt__onesided *remote = worker->remote;
    float *out = dt__slots_grad(worker);
    remote->ops->get(remote,
                     dt__weights_at(worker->shape, fetch_published(remote).buffer) +
                         sizeof(struct dt__weights),
                     out, worker->shape->vector);
    remote->ops->flush(remote);
    return out;
}

const float *dt__slots_read(struct dt__slots_worker *worker)
{
    struct dt__onesided *remote = worker->remote;
    if (worker->shape->wire && !worker->under_way) return worker_read_resting(worker);
    if (worker->shape->wire) {
        dt__slots_read_difference(worker);
        worker->read = (const struct dt__weights *)worker->copy;
        return worker->read->params;
    }
    size_t at = dt__weights_at(worker->shape, worker_protect_newest(worker));
    if (remote->memory) {
        remote->ops->sync(remote);
        worker->read = (const struct dt__weights *)(remote->memory + at);
    } else {
        remote->ops->get(remote, at, worker->copy,
                         sizeof(struct dt__weights) + worker->shape->vector);
        remote->ops->flush(remote);
        worker->read = (const struct dt__weights *)worker->copy;
    }
    return worker->read->params;
}

/* The gradient under way: in its slot, or in a copy that will be put there. */
static struct dt__slot *worker_slot(struct dt__slots_worker *worker)
{
    const struct dt__slots_shape *shape = worker->shape;
    if (worker->copy) return (struct dt__slot *)(worker->copy + shape->weights_stride);
    size_t at = dt__slot_at(shape, worker->index, worker->slot);
    return (struct dt__slot *)(worker->remote->memory + at);
}

float *dt__slots_grad(struct dt__slots_worker *worker)
{
    return worker_slot(worker)->grad;
}

const struct dt_touched *dt__slots_touched(const struct dt__slots_worker *worker)
{
    const int slot = worker->index * DT__SLOTS + worker->slot;
    return worker->touched ? worker->touched + slot * worker->shape->ranges : NULL;
}

/* What the gradient saw: of rows those that it touched, one behind the other as well. */
static void worker_copy_seen(const struct dt__slots_worker *worker, float *to)
{
    const struct dt_touched *touched = dt__slots_touched(worker);
    const float *from = worker->read->params;
    size_t at = 0;
    for (int i = 0; touched && i < worker->shape->ranges; i++) {
        const struct dt_row_range *range = &worker->shape->range[i];
        memcpy(to + at, from + at, (range->offset - at) * sizeof *to);
        for (size_t k = 0; k < *touched[i].count; k++)
            memcpy(to + range->offset + k * range->width,
                   from + range->offset + touched[i].row[k] * range->width,
                   range->width * sizeof *to);
        at = range->offset + range->rows * range->width;
    }
    memcpy(to + at, from + at, worker->shape->vector - at * sizeof *to);
}

void dt__slots_send(struct dt__slots_worker *worker, const struct dt_note *note)
{
    struct dt__onesided *remote = worker->remote;
    struct dt__slot *slot = worker->parcel ? worker->parcel : worker_slot(worker);
    size_t vector = worker->shape->vector, head = sizeof *slot;
    slot->note = *note;
    slot->note.number = worker->sent;
    slot->note.version = worker->read->version;
    slot->note.gap = worker->gap;
    if (worker->copy) {
        size_t at = dt__slot_at(worker->shape, worker->index, worker->slot);
        remote->ops->put(remote, at, slot, head + worker->shape->sent);
        if (worker->shape->keep_seen)
            remote->ops->put(remote, at + head + vector, worker->read->params, vector);
        remote->ops->flush(remote);
    } else {
        if (worker->shape->keep_seen) worker_copy_seen(worker, slot->grad + vector / sizeof(float));
        remote->ops->sync(remote);
    }
    worker_clear_hazard(worker);
    worker->under_way = false;
    struct dt__doorbell doorbell = {.count = ++worker->sent, .slot = worker->slot};
    worker_replace(worker, WORD_DOORBELL, dt__doorbell_pack(doorbell));
}
