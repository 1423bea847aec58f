/* The slot protocol: where things lie in the bank's memory, and the bank's end (async_slots.h). */
#include <string.h>

#include "comm/async_slots.h"
#include "dtrain/config.h"

/* ---- layout --------------------------------------------------------------------------------- */

enum { MOST_BUFFERS = 1 << 16 };

/* A block of a head and `vectors` vectors, rounded up to whole cache lines. */
static bool vectors_bytes(size_t head, size_t vector, size_t vectors, size_t *out)
{
    size_t bytes;
    if (!dt_size_mul(vector, vectors, &bytes) || !dt_size_add(bytes, head + 63, &bytes))
        return false;
    *out = bytes & ~(size_t)63;
    return true;
}

static size_t cache_lines_bytes(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

/* Ranges of touched rows lie one behind the other. With this their lists and logs are smaller than
 * the vectors are, and cannot overflow if those do not. */
static dt_status shape_check_ranges(const struct dt__slots_shape *shape, size_t params)
{
    size_t behind = 0, floats;
    for (int i = 0; i < shape->ranges; i++) {
        const struct dt_row_range *range = &shape->range[i];
        if (range->offset < behind || range->rows > UINT32_MAX || !range->width ||
            !dt_size_mul(range->rows, range->width, &floats) ||
            !dt_size_add(range->offset, floats, &behind) || behind > params)
            return dt_fail(DT_EUSAGE, "async: range %d of rows does not lie behind the one before",
                           i);
    }
    return DT_OK;
}

dt_status dt__slots_shape_init(struct dt__slots_shape *shape, int workers, struct dt__slots_way way,
                               const struct dt_async_spec *spec)
{
    const int wire = way.shared ? DT_WIRE_F32 : spec->wire;
    const size_t rounded = spec->wire_params ? spec->wire_params : spec->params;
    if (workers >= MOST_BUFFERS - 2 - way.slack)
        return dt_fail(DT_EUSAGE, "async: %d workers are too many", workers);
    if (wire && (spec->keep_seen || spec->prepare || rounded > spec->params))
        return dt_fail(DT_EUSAGE, "async: a rounded wire brings no weights that were seen");
    *shape =
        (struct dt__slots_shape){.way = way,
                                 .workers = workers,
                                 .buffers = wire ? 2 : workers + (way.shared ? 1 : 2) + way.slack,
                                 .staleness = spec->staleness,
                                 .keep_seen = spec->keep_seen,
                                 .wire = wire,
                                 .params = spec->params,
                                 .rounded = rounded,
                                 .range = spec->row_range,
                                 .ranges = way.shared ? spec->row_ranges : 0};
    DT_TRY(shape_check_ranges(shape, spec->params));
    /* Words, state and log are of tens of thousands of workers at most; vectors may be of any
     * size. */
    size_t peers = (size_t)workers * sizeof(struct dt__slots_peer), states, weights, slots;
    size_t wired = wire ? (size_t)workers : 0, copies, answers;
    shape->bank_at = (size_t)dt__slots_words(shape) * DT__WORD_STRIDE;
    shape->log_at = shape->bank_at + cache_lines_bytes(sizeof(struct dt__slots_state) + peers);
    shape->row_log_at =
        shape->log_at + cache_lines_bytes((size_t)way.log_entries * sizeof(struct dt_applied));
    shape->sent = dt__parcel_bytes(wire, rounded, spec->params); /* no more than a vector, or so */
    bool fits =
        dt_size_add(shape->row_log_at, dt__row_log_bytes(shape), &shape->states_at) &&
        dt_size_mul(spec->params, sizeof(float), &shape->vector) &&
        vectors_bytes(0, shape->vector, 1, &shape->states_stride) &&
        dt_size_mul(shape->states_stride, (size_t)spec->states, &states) &&
        dt_size_add(shape->states_at, states, &shape->weights_at) &&
        vectors_bytes(sizeof(struct dt__weights), shape->vector, 1, &shape->weights_stride) &&
        vectors_bytes(sizeof(struct dt__slot), shape->sent, shape->keep_seen ? 2 : 1,
                      &shape->lists_at) &&
        dt_size_add(shape->lists_at, dt__row_lists_bytes(shape), &shape->slot_stride) &&
        dt_size_mul(shape->weights_stride, (size_t)shape->buffers, &weights) &&
        dt_size_mul(shape->slot_stride, (size_t)workers * DT__SLOTS, &slots) &&
        dt_size_mul(shape->weights_stride, wired, &copies) &&
        dt_size_mul(shape->slot_stride, wired, &answers) &&
        dt_size_add(shape->weights_at, weights, &shape->copies_at) &&
        dt_size_add(shape->copies_at, copies, &shape->answers_at) &&
        dt_size_add(shape->answers_at, answers, &shape->slots_at) &&
        dt_size_add(shape->slots_at, slots, &shape->bytes);
    if (!fits)
        return dt_fail(DT_EMEMORY, "async: %d workers with %zu parameters are beyond memory",
                       workers, spec->params);
    return DT_OK;
}

int dt__slots_words(const struct dt__slots_shape *shape)
{
    return WORD_WORKERS + shape->workers * WORDS_A_WORKER;
}

int dt__slots_word(int word, int worker)
{
    return WORD_WORKERS + worker * WORDS_A_WORKER + word;
}

size_t dt__weights_at(const struct dt__slots_shape *shape, int buffer)
{
    return shape->weights_at + (size_t)buffer * shape->weights_stride;
}

size_t dt__slot_at(const struct dt__slots_shape *shape, int worker, int slot)
{
    return shape->slots_at + (size_t)(worker * DT__SLOTS + slot) * shape->slot_stride;
}

uint64_t dt__doorbell_pack(struct dt__doorbell doorbell)
{
    return doorbell.count * DT__SLOTS + (uint64_t)doorbell.slot;
}

struct dt__doorbell dt__doorbell_unpack(uint64_t word)
{
    return (struct dt__doorbell){.count = word / DT__SLOTS, .slot = (int)(word % DT__SLOTS)};
}

uint64_t dt__published_pack(struct dt__published published)
{
    return published.number * MOST_BUFFERS + (uint64_t)published.buffer;
}

struct dt__published dt__published_unpack(uint64_t word)
{
    return (struct dt__published){.number = word / MOST_BUFFERS,
                                  .buffer = (int)(word % MOST_BUFFERS)};
}

/* ---- the bank's view ------------------------------------------------------------------------ */

void dt__slots_bank_init(struct dt__slots_bank *bank, const struct dt__slots_shape *shape,
                         struct dt__onesided *remote)
{
    *bank = (struct dt__slots_bank){
        .shape = shape,
        .remote = remote,
        .state = (struct dt__slots_state *)(remote->memory + shape->bank_at),
        .log = (struct dt_applied *)(remote->memory + shape->log_at),
    };
}

/* Of LOCK: the bank waits for it with more than all workers together can claim. */
static const uint64_t BANKS_CLAIM = UINT64_C(1) << 32;

static struct dt__weights *bank_buffer(const struct dt__slots_bank *bank, int buffer)
{
    return (struct dt__weights *)(bank->remote->memory + dt__weights_at(bank->shape, buffer));
}

static uint64_t bank_fetch(const struct dt__slots_bank *bank, int word)
{
    return bank->remote->ops->fetch(bank->remote, word);
}

static void bank_replace(struct dt__slots_bank *bank, int word, uint64_t value)
{
    bank->remote->ops->replace(bank->remote, word, value);
}

/* Makes a buffer's contents the newest weights. */
static void bank_publish(struct dt__slots_bank *bank, int buffer)
{
    struct dt__slots_state *state = bank->state;
    struct dt__published now = {.number = ++state->publication, .buffer = buffer};
    bank_buffer(bank, buffer)->version = state->step;
    bank_buffer(bank, state->current)->retired = state->publication;
    bank->remote->ops->sync(bank->remote);
    bank_replace(bank, WORD_PUBLISHED, dt__published_pack(now));
    state->current = buffer;
}

static uint64_t bank_lowest_clock(const struct dt__slots_bank *bank)
{
    const struct dt__slots_peer *peer = bank->state->peer;
    uint64_t lowest = DT__SPAN_OVER;
    for (int w = 0; w < bank->shape->workers; w++)
        if (peer[w].active && peer[w].applied < lowest) lowest = peer[w].applied;
    return lowest;
}

static void bank_raise_floor(struct dt__slots_bank *bank, uint64_t floor)
{
    if (floor != bank->state->floor) bank_replace(bank, WORD_FLOOR, floor);
    bank->state->floor = floor;
}

/* ---- the bank itself ------------------------------------------------------------------------ */

void dt__slots_open(struct dt__slots_bank *bank, uint64_t from, uint64_t until, const bool *active)
{
    struct dt__slots_state *state = bank->state;
    for (int w = 0; w < bank->shape->workers; w++) {
        state->peer[w].active = active[w];
        state->peer[w].applied = 0;
    }
    if (state->publication == 0) dt__slots_fill_rows(bank);
    state->step = from;
    bank->last = until;
    bank->closed = false;
    bank_replace(bank, WORD_TICKET, from);
    bank_replace(bank, WORD_STEP, from);
    bank_replace(bank, WORD_SEEN, from);
    bank_replace(bank, WORD_LIMIT, from);
    bank_raise_floor(bank, bank_lowest_clock(bank));
    bank_publish(bank, state->current);
}

void dt__slots_allow(struct dt__slots_bank *bank, uint64_t until)
{
    struct dt__onesided *remote = bank->remote;
    uint64_t limit = until < bank->last ? until : bank->last;
    uint64_t before = bank_fetch(bank, WORD_LIMIT);
    if (limit == before) return;
    bank_replace(bank, WORD_LIMIT, limit);
    if (limit < before && bank->shape->way.shared) {
        /* Whoever acts for the bank behind the lock has seen the words as they are now. */
        remote->ops->add(remote, WORD_LOCK, BANKS_CLAIM);
        while (bank_fetch(bank, WORD_LOCK) != BANKS_CLAIM)
            remote->ops->pause(remote, "update");
        remote->ops->wake(remote);
        remote->ops->add(remote, WORD_LOCK, -BANKS_CLAIM);
    }
    remote->ops->notify(remote, DT__WORKERS);
}

int dt__slots_read_log(struct dt__slots_bank *bank, int limit, struct dt_applied *out)
{
    uint64_t step = bank_fetch(bank, WORD_STEP), seen = bank_fetch(bank, WORD_SEEN);
    uint64_t log_entries = (uint64_t)bank->shape->way.log_entries;
    int n = step - seen < (uint64_t)limit ? (int)(step - seen) : limit;
    if (n == 0) return 0;
    bank->remote->ops->sync(bank->remote);
    for (int i = 0; i < n; i++)
        out[i] = bank->log[(seen + (uint64_t)i) % log_entries];
    bank_replace(bank, WORD_SEEN, seen + (uint64_t)n);
    if (step - seen == log_entries)
        bank->remote->ops->notify(bank->remote, DT__WORKERS); /* it was full */
    return n;
}

bool dt__slots_quiescent(const struct dt__slots_bank *bank)
{
    uint64_t step = bank_fetch(bank, WORD_STEP);
    return bank_fetch(bank, WORD_LIMIT) <= step && bank_fetch(bank, WORD_SEEN) == step;
}

void dt__slots_close(struct dt__slots_bank *bank)
{
    const uint64_t beyond = UINT64_C(1) << 62; /* any span's end */
    if (bank->closed) return;
    bank->closed = true;
    uint64_t begun = bank->remote->ops->add(bank->remote, WORD_TICKET, beyond);
    if (begun < bank->last) bank->last = begun;
}

bool dt__slots_over(struct dt__slots_bank *bank)
{
    if (bank_fetch(bank, WORD_SEEN) < bank->last) return false;
    bank_raise_floor(bank, DT__SPAN_OVER); /* lets go those who wait for their clock */
    bank->remote->ops->notify(bank->remote, DT__WORKERS);
    return true;
}

/* ---- combining ------------------------------------------------------------------------------ */

/* How many gradients may be applied now. */
static uint64_t bank_room(const struct dt__slots_bank *bank)
{
    uint64_t step = bank_fetch(bank, WORD_STEP), limit = bank_fetch(bank, WORD_LIMIT);
    uint64_t entries = bank_fetch(bank, WORD_SEEN) + (uint64_t)bank->shape->way.log_entries;
    uint64_t end = limit < entries ? limit : entries;
    return end <= step || bank_fetch(bank, WORD_HOLD) ? 0 : end - step;
}

static struct dt__doorbell bank_fetch_doorbell(const struct dt__slots_bank *bank, int worker)
{
    return dt__doorbell_unpack(bank_fetch(bank, dt__slots_word(WORD_DOORBELL, worker)));
}

static bool bank_has_waiting(const struct dt__slots_bank *bank)
{
    for (int w = 0; w < bank->shape->workers; w++)
        if (bank_fetch_doorbell(bank, w).count != bank_fetch(bank, dt__slots_word(WORD_ACK, w)))
            return true;
    return false;
}

/* Takes back its claim; whether nobody is left who has one. */
static bool bank_take_back_claim(struct dt__slots_bank *bank)
{
    uint64_t claims = bank->remote->ops->add(bank->remote, WORD_LOCK, (uint64_t)-1);
    if (claims > BANKS_CLAIM) bank->remote->ops->notify(bank->remote, DT__BANK);
    return claims == 1;
}

bool dt__slots_enter(struct dt__slots_bank *bank)
{
    struct dt__onesided *remote = bank->remote;
    bool shared = bank->shape->way.shared;
    while (bank_has_waiting(bank) && bank_room(bank)) {
        if (!shared) return true;
        if (remote->ops->add(remote, WORD_LOCK, 1) == 0) {
            remote->ops->sync(remote);
            return true;
        }
        if (!bank_take_back_claim(bank)) return false;
    }
    return false;
}

void dt__slots_leave(struct dt__slots_bank *bank)
{
    if (!bank->shape->way.shared) return;
    bank->remote->ops->sync(bank->remote);
    bank_take_back_claim(bank);
}

/* The gradient `depth` places behind those that this worker has had served. */
static void bank_take_gradient(struct dt__slots_bank *bank, int worker, uint64_t depth, int n,
                               struct dt_gradient *out)
{
    const struct dt__slots_shape *shape = bank->shape;
    struct dt__slots_state *state = bank->state;
    const struct dt__slots_peer *peer = &state->peer[worker];
    uint64_t number = peer->served + depth;
    int place = number + 1 == peer->doorbell.count ? peer->doorbell.slot : !peer->doorbell.slot;
    struct dt__slot *slot =
        (struct dt__slot *)(bank->remote->memory + dt__slot_at(shape, worker, place));
    out->worker = worker;
    out->note = &slot->note;
    out->grad = shape->wire ? NULL : slot->grad;
    out->parcel = shape->wire ? (const unsigned char *)slot->grad : NULL;
    out->seen = shape->keep_seen ? slot->grad + shape->vector / sizeof(float) : NULL;
    out->touched =
        bank->touched ? bank->touched + (worker * DT__SLOTS + place) * shape->ranges : NULL;
    out->norm2 = slot->note.norm2;
    out->staleness = state->step + (uint64_t)n - slot->note.version;
    state->next = (worker + 1) % shape->workers;
}

int dt__slots_take(struct dt__slots_bank *bank, int limit, struct dt_gradient *out)
{
    struct dt__slots_peer *peer = bank->state->peer;
    int n = 0, first = bank->state->next, workers = bank->shape->workers;
    uint64_t most = bank_room(bank);
    if (most < (uint64_t)limit) limit = (int)most;
    for (int w = 0; w < workers; w++)
        peer[w].doorbell = bank_fetch_doorbell(bank, w);
    bank->remote->ops->sync(bank->remote);
    for (uint64_t depth = 0; depth < DT__SLOTS; depth++)
        for (int i = 0; i < workers && n < limit; i++) {
            int w = (first + i) % workers;
            if (peer[w].doorbell.count <= peer[w].served + depth) continue;
            bank_take_gradient(bank, w, depth, n, &out[n]);
            n++;
        }
    return n;
}

float *dt__slots_weights(const struct dt__slots_bank *bank)
{
    return bank_buffer(bank, bank->state->current)->params;
}

/* What has been out of use longest gives readers their slack; without any, what this worker has
 * read last is still in its caches. */
float *dt__slots_target(struct dt__slots_bank *bank)
{
    struct dt__slots_state *state = bank->state;
    const int workers = bank->shape->workers;
    int best = -1;
    for (int w = 0; w < workers; w++)
        state->peer[w].hazard = (int)bank_fetch(bank, dt__slots_word(WORD_HAZARD, w));
    for (int i = 0; i < bank->shape->buffers; i++) {
        bool used = i == state->current;
        for (int w = 0; w < workers && !used; w++)
            used = state->peer[w].hazard == i + 1;
        if (used) continue;
        uint64_t retired = bank_buffer(bank, i)->retired;
        uint64_t other = best < 0 ? retired : bank_buffer(bank, best)->retired;
        if (best < 0 || (bank->shape->way.shared ? retired > other : retired < other)) best = i;
    }
    state->target = best; /* there are more buffers than hazard pointers */
    return bank_buffer(bank, best)->params;
}

void dt__slots_publish(struct dt__slots_bank *bank, int n, const struct dt_gradient *gradients)
{
    struct dt__slots_state *state = bank->state;
    struct dt__onesided *remote = bank->remote;
    const uint64_t entries = (uint64_t)bank->shape->way.log_entries;
    double now = dt_clock_secs();
    bool asks = false;
    for (int i = 0; i < n; i++) {
        const struct dt_gradient *gradient = &gradients[i];
        bank->log[state->step++ % entries] =
            (struct dt_applied){*gradient->note, gradient->staleness, now, gradient->worker};
        state->peer[gradient->worker].served++;
        state->peer[gradient->worker].applied++;
        asks |= gradient->note->ask != 0;
    }
    /* The bank sleeps through most of it. */
    bool concerns_bank = asks || state->step >= bank_fetch(bank, WORD_LIMIT) ||
                         state->step - bank_fetch(bank, WORD_SEEN) >= entries / 2;
    bank_publish(bank, state->target);
    for (int i = 0; i < n; i++) {
        int w = gradients[i].worker;
        bank_replace(bank, dt__slots_word(WORD_ACK, w), state->peer[w].served);
    }
    bank_raise_floor(bank, bank_lowest_clock(bank));
    bank_replace(bank, WORD_STEP, state->step); /* last: the bank may end the span by it */
    remote->ops->notify(remote, DT__WORKERS);
    if (concerns_bank) remote->ops->notify(remote, DT__BANK);
}
