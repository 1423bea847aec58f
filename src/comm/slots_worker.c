/* The worker's end of the slot protocol (slots.h). */
#include <string.h>

#include "comm/plant.h"
#include "comm/slots.h"

#ifndef DT_READ_TRIES
#define DT_READ_TRIES 8 /* before the bank is asked to hold */
#endif

dt_status dt__slots_worker_init(struct dt__slots_worker *worker,
                                const struct dt__slots_shape *shape, struct dt__onesided *net,
                                int index)
{
    *worker = (struct dt__slots_worker){.shape = shape, .net = net, .index = index};
    if (net->memory) return DT_OK;
    return dt_alloc(shape->weights_stride + shape->slot_stride, 1, "weights and a gradient",
                    &worker->copy);
}

void dt__slots_worker_free(struct dt__slots_worker *worker)
{
    dt_free(worker->copy);
}

void dt__slots_worker_open(struct dt__slots_worker *worker, uint64_t until)
{
    worker->until = until;
    worker->started = 0;
}

static uint64_t fetch_own(struct dt__slots_worker *worker, int word)
{
    return worker->net->ops->fetch(worker->net, dt__slots_word(word, worker->index));
}

static void replace_own(struct dt__slots_worker *worker, int word, uint64_t value)
{
    worker->net->ops->replace(worker->net, dt__slots_word(word, worker->index), value);
}

/* Who waits can as well act for the bank. */
static void idle(struct dt__slots_worker *worker, const char *what)
{
    if (worker->turn) worker->turn(worker->turn_arg);
    worker->net->ops->pause(worker->net, what);
}

/* Until at most `most` of its gradients wait to be applied; returns how many do. */
static uint64_t wait_applied(struct dt__slots_worker *worker, uint64_t most)
{
    uint64_t waiting;
    while ((waiting = worker->sent - fetch_own(worker, WORD_ACK)) > most)
        idle(worker, "free slot");
    worker->net->ops->wake(worker->net);
    return waiting;
}

static void wait_clock(struct dt__slots_worker *worker)
{
    struct dt__onesided *net = worker->net;
    for (;;) {
        uint64_t floor = net->ops->fetch(net, WORD_FLOOR);
        worker->gap = worker->started > floor ? worker->started - floor : 0;
        if (worker->shape->staleness < 0) break;
        if (worker->gap <= (uint64_t)worker->shape->staleness) break;
        idle(worker, "slowest worker");
    }
    net->ops->wake(net);
}

/* Who may act for the bank keeps no buffer from it: a leg of workers alone has one less. */
static void let_go(struct dt__slots_worker *worker)
{
    if (worker->turn) replace_own(worker, WORD_PIN, 0);
}

bool dt__slots_begin(struct dt__slots_worker *worker)
{
    let_go(worker);
    if (wait_applied(worker, 1) > 0) worker->slot = !worker->slot;
    wait_clock(worker);
    if (worker->net->ops->add(worker->net, WORD_TICKET, 1) < worker->until) {
        worker->started++;
        return true;
    }
    if (worker->turn && !DT__PLANTED(EARLY_LEAVE)) wait_applied(worker, 0);
    return false;
}

static struct dt__published fetch_published(struct dt__onesided *net)
{
    return dt__published_unpack(net->ops->fetch(net, WORD_PUBLISHED));
}

/* Pins the newest weights; false if the bank may have begun to overwrite them before it saw the pin. */
static bool try_pin(struct dt__slots_worker *worker, int *out_buffer)
{
    struct dt__published before = fetch_published(worker->net);
    replace_own(worker, WORD_PIN, (uint64_t)before.buffer + 1);
    uint64_t passed = fetch_published(worker->net).number - before.number;
    if (DT__PLANTED(VERSION_WRAP)) passed %= 2;
    if (DT__PLANTED(LATE_PIN)) passed = 0;
    *out_buffer = before.buffer;
    return passed <= (uint64_t)worker->shape->way.slack;
}

static int pin_newest(struct dt__slots_worker *worker)
{
    struct dt__onesided *net = worker->net;
    int buffer;
    for (int tries = 0; tries < DT_READ_TRIES; tries++)
        if (try_pin(worker, &buffer)) return buffer;
    net->ops->add(net, WORD_HOLD, 1);
    while (!try_pin(worker, &buffer))
        continue; /* one more publication at most is on its way */
    if (!DT__PLANTED(HELD)) net->ops->add(net, WORD_HOLD, (uint64_t)-1);
    net->ops->tell(net, DT__WORKERS);
    return buffer;
}

const float *dt__slots_read(struct dt__slots_worker *worker)
{
    struct dt__onesided *net = worker->net;
    size_t at = dt__weights_at(worker->shape, pin_newest(worker));
    if (net->memory) {
        net->ops->sync(net);
        worker->read = (const struct dt__weights *)(net->memory + at);
    } else {
        net->ops->get(net, at, worker->copy, sizeof(struct dt__weights) + worker->shape->vector);
        net->ops->flush(net);
        worker->read = (const struct dt__weights *)worker->copy;
    }
    return worker->read->params;
}

/* The gradient under way: in its slot, or in a copy that will be put there. */
static struct dt__slot *own_slot(struct dt__slots_worker *worker)
{
    const struct dt__slots_shape *shape = worker->shape;
    if (worker->copy) return (struct dt__slot *)(worker->copy + shape->weights_stride);
    size_t at = dt__slot_at(shape, worker->index, worker->slot);
    return (struct dt__slot *)(worker->net->memory + at);
}

float *dt__slots_grad(struct dt__slots_worker *worker)
{
    return own_slot(worker)->grad;
}

static void put_slot(struct dt__slots_worker *worker, const struct dt__slot *slot)
{
    struct dt__onesided *net = worker->net;
    size_t vector = worker->shape->vector, head = sizeof *slot;
    size_t at = dt__slot_at(worker->shape, worker->index, worker->slot);
    net->ops->put(net, at, slot, head + vector);
    if (worker->shape->keep_seen)
        net->ops->put(net, at + head + vector, worker->read->params, vector);
    if (!DT__PLANTED(MISSING_FLUSH)) net->ops->flush(net);
}

static void fill_slot(struct dt__slots_worker *worker, struct dt__slot *slot)
{
    size_t vector = worker->shape->vector;
    if (worker->shape->keep_seen)
        memcpy((unsigned char *)slot->grad + vector, worker->read->params, vector);
    worker->net->ops->sync(worker->net);
}

void dt__slots_send(struct dt__slots_worker *worker, const struct dt_note *note)
{
    struct dt__slot *slot = own_slot(worker);
    slot->note = *note;
    slot->note.number = worker->sent;
    slot->note.version = worker->read->version;
    slot->note.gap = worker->gap;
    if (worker->copy)
        put_slot(worker, slot);
    else
        fill_slot(worker, slot);
    let_go(worker);
    struct dt__bell bell = {.count = ++worker->sent, .slot = worker->slot};
    replace_own(worker, WORD_BELL, dt__bell_pack(bell));
}
