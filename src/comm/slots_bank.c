/* The bank's end of the slot protocol (slots.h). */
#include <string.h>

#include "comm/plant.h"
#include "comm/slots.h"

dt_status dt__slots_bank_init(struct dt__slots_bank *bank, const struct dt__slots_shape *shape,
                              struct dt__onesided *net)
{
    *bank = (struct dt__slots_bank){.shape = shape, .net = net};
    DT_TRY(dt_alloc((size_t)shape->workers, sizeof *bank->peer, "slots", &bank->peer));
    DT_TRY(dt_alloc((size_t)shape->buffers, sizeof *bank->retired, "weights", &bank->retired));
    for (int i = 0; i < shape->buffers - 1; i++)
        bank->retired[i] = i + 1;
    return DT_OK;
}

void dt__slots_bank_free(struct dt__slots_bank *bank)
{
    dt_free(bank->peer);
    dt_free(bank->retired);
}

static struct dt__weights *buffer_of(const struct dt__slots_bank *bank, int buffer)
{
    return (struct dt__weights *)(bank->net->memory + dt__weights_at(bank->shape, buffer));
}

static void replace(struct dt__slots_bank *bank, int word, uint64_t value)
{
    bank->net->ops->replace(bank->net, word, value);
}

/* Makes a buffer's contents the newest weights. */
static void publish(struct dt__slots_bank *bank, int buffer)
{
    struct dt__published now = {.number = ++bank->publication, .buffer = buffer};
    buffer_of(bank, buffer)->version = bank->step;
    if (DT__PLANTED(EARLY_PUBLISH)) replace(bank, WORD_PUBLISHED, dt__published_pack(now));
    bank->net->ops->sync(bank->net);
    replace(bank, WORD_PUBLISHED, dt__published_pack(now));
    bank->current = buffer;
}

static uint64_t lowest_clock(const struct dt__slots_bank *bank)
{
    uint64_t lowest = DT__LEG_OVER;
    for (int w = 0; w < bank->shape->workers; w++)
        if (bank->peer[w].active && bank->peer[w].applied < lowest) lowest = bank->peer[w].applied;
    return lowest;
}

static void raise_floor(struct dt__slots_bank *bank, uint64_t floor)
{
    if (floor != bank->floor) replace(bank, WORD_FLOOR, floor);
    bank->floor = floor;
}

void dt__slots_bank_open(struct dt__slots_bank *bank, uint64_t from, uint64_t until,
                         const bool *active)
{
    for (int w = 0; w < bank->shape->workers; w++) {
        bank->peer[w].active = active[w];
        bank->peer[w].applied = 0;
    }
    bank->step = from;
    bank->last = until;
    bank->closed = false;
    replace(bank, WORD_TICKET, from);
    raise_floor(bank, lowest_clock(bank));
    publish(bank, bank->current);
}

static void give_back(struct dt__slots_bank *bank, int worker, uint64_t served)
{
    replace(bank, dt__slots_word(WORD_ACK, worker), served);
}

/* The gradient `depth` places behind those that this worker has had served. */
static void take_one(struct dt__slots_bank *bank, int worker, uint64_t depth, int n,
                     struct dt_gradient *out)
{
    const struct dt__slots_shape *shape = bank->shape;
    uint64_t number = bank->peer[worker].served + depth;
    struct dt__slot *slot =
        (struct dt__slot *)(bank->net->memory + dt__slot_at(shape, worker, number));
    out->worker = worker;
    out->note = &slot->note;
    out->grad = slot->grad;
    out->seen = shape->keep_seen ? slot->grad + shape->vector / sizeof(float) : NULL;
    out->staleness = bank->step + (uint64_t)n - slot->note.version;
    bank->next = (worker + 1) % shape->workers;
    if (DT__PLANTED(EARLY_ACK)) give_back(bank, worker, number + 1);
}

static void fetch_bells(struct dt__slots_bank *bank)
{
    struct dt__onesided *net = bank->net;
    for (int w = 0; w < bank->shape->workers; w++)
        bank->peer[w].rung = net->ops->fetch(net, dt__slots_word(WORD_BELL, w));
    net->ops->sync(net);
}

int dt__slots_take(struct dt__slots_bank *bank, int limit, struct dt_gradient *out)
{
    struct dt__onesided *net = bank->net;
    if (net->ops->fetch(net, WORD_HOLD)) return 0;
    fetch_bells(bank);
    int n = 0, first = bank->next, workers = bank->shape->workers;
    for (uint64_t depth = 0; depth < DT__SLOTS; depth++)
        for (int i = 0; i < workers && n < limit; i++) {
            int w = (first + i) % workers;
            if (bank->peer[w].rung <= bank->peer[w].served + depth) continue;
            take_one(bank, w, depth, n, &out[n]);
            n++;
        }
    return n;
}

float *dt__slots_weights(const struct dt__slots_bank *bank)
{
    return buffer_of(bank, bank->current)->params;
}

static bool is_pinned(const struct dt__slots_bank *bank, int buffer)
{
    for (int w = 0; w < bank->shape->workers; w++)
        if (bank->peer[w].pinned == buffer + 1) return true;
    return false;
}

float *dt__slots_target(struct dt__slots_bank *bank)
{
    struct dt__onesided *net = bank->net;
    for (int w = 0; w < bank->shape->workers; w++)
        bank->peer[w].pinned = (int)net->ops->fetch(net, dt__slots_word(WORD_PIN, w));
    int i = 0, last = bank->shape->buffers - 2;
    while (is_pinned(bank, bank->retired[i]))
        i++; /* there are more buffers than pins */
    bank->target = bank->retired[i];
    memmove(&bank->retired[i], &bank->retired[i + 1], (size_t)(last - i) * sizeof *bank->retired);
    bank->retired[last] = bank->current;
    return buffer_of(bank, bank->target)->params;
}

void dt__slots_publish(struct dt__slots_bank *bank, int n, const struct dt_gradient *gradients)
{
    for (int i = 0; i < n; i++) {
        bank->peer[gradients[i].worker].served++;
        bank->peer[gradients[i].worker].applied++;
    }
    bank->step += (uint64_t)n;
    if (DT__PLANTED(STALE_FLOOR)) raise_floor(bank, lowest_clock(bank));
    publish(bank, bank->target);
    for (int i = 0; i < n; i++) {
        int w = gradients[i].worker;
        struct dt__onesided *net = bank->net;
        if (DT__PLANTED(LOST_DOORBELL))
            bank->peer[w].served = net->ops->fetch(net, dt__slots_word(WORD_BELL, w));
        give_back(bank, w, bank->peer[w].served);
    }
    raise_floor(bank, lowest_clock(bank));
    bank->net->ops->tell(bank->net);
}

void dt__slots_close(struct dt__slots_bank *bank)
{
    const uint64_t beyond = UINT64_C(1) << 62; /* any leg's end */
    if (bank->closed) return;
    bank->closed = true;
    uint64_t begun = bank->net->ops->add(bank->net, WORD_TICKET, beyond);
    if (DT__PLANTED(DEAF_STOP)) begun = bank->step;
    if (begun < bank->last) bank->last = begun;
}

bool dt__slots_over(struct dt__slots_bank *bank)
{
    if (bank->step < bank->last) return false;
    raise_floor(bank, DT__LEG_OVER); /* lets go those who wait for their clock */
    bank->net->ops->tell(bank->net);
    return true;
}
