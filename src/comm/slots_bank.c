/* The bank's end of the slot protocol (slots.h). */
#include <string.h>

#include "comm/plant.h"
#include "comm/slots.h"

void dt__slots_bank_init(struct dt__slots_bank *bank, const struct dt__slots_shape *shape,
                         struct dt__onesided *net)
{
    *bank = (struct dt__slots_bank){
        .shape = shape,
        .net = net,
        .state = (struct dt__slots_state *)(net->memory + shape->bank_at),
        .journal = (struct dt_applied *)(net->memory + shape->journal_at),
    };
}

/* Of LOCK: the bank waits its turn with more than all workers together can claim. */
static const uint64_t BANKS_CLAIM = UINT64_C(1) << 32;

static struct dt__weights *buffer_of(const struct dt__slots_bank *bank, int buffer)
{
    return (struct dt__weights *)(bank->net->memory + dt__weights_at(bank->shape, buffer));
}

static uint64_t fetch(const struct dt__slots_bank *bank, int word)
{
    return bank->net->ops->fetch(bank->net, word);
}

static void replace(struct dt__slots_bank *bank, int word, uint64_t value)
{
    bank->net->ops->replace(bank->net, word, value);
}

/* Makes a buffer's contents the newest weights. */
static void publish(struct dt__slots_bank *bank, int buffer)
{
    struct dt__slots_state *state = bank->state;
    struct dt__published now = {.number = ++state->publication, .buffer = buffer};
    buffer_of(bank, buffer)->version = state->step;
    buffer_of(bank, state->current)->retired = state->publication;
    if (DT__PLANTED(EARLY_PUBLISH)) replace(bank, WORD_PUBLISHED, dt__published_pack(now));
    bank->net->ops->sync(bank->net);
    replace(bank, WORD_PUBLISHED, dt__published_pack(now));
    state->current = buffer;
}

static uint64_t lowest_clock(const struct dt__slots_bank *bank)
{
    const struct dt__slots_peer *peer = bank->state->peer;
    uint64_t lowest = DT__LEG_OVER;
    for (int w = 0; w < bank->shape->workers; w++)
        if (peer[w].active && peer[w].applied < lowest) lowest = peer[w].applied;
    return lowest;
}

static void raise_floor(struct dt__slots_bank *bank, uint64_t floor)
{
    if (floor != bank->state->floor) replace(bank, WORD_FLOOR, floor);
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
    state->step = from;
    bank->last = until;
    bank->closed = false;
    replace(bank, WORD_TICKET, from);
    replace(bank, WORD_STEP, from);
    replace(bank, WORD_SEEN, from);
    replace(bank, WORD_LIMIT, from);
    raise_floor(bank, lowest_clock(bank));
    publish(bank, state->current);
}

/* Whoever acts for the bank behind it has seen the words as they are now. */
static void pass_lock(struct dt__slots_bank *bank)
{
    struct dt__onesided *net = bank->net;
    if (!bank->shape->way.shared || DT__PLANTED(HASTY_REST)) return;
    net->ops->add(net, WORD_LOCK, BANKS_CLAIM);
    while (fetch(bank, WORD_LOCK) != BANKS_CLAIM)
        net->ops->pause(net, "update");
    net->ops->wake(net);
    net->ops->add(net, WORD_LOCK, -BANKS_CLAIM);
}

void dt__slots_allow(struct dt__slots_bank *bank, uint64_t until)
{
    uint64_t limit = until < bank->last ? until : bank->last;
    uint64_t before = fetch(bank, WORD_LIMIT);
    if (limit == before) return;
    replace(bank, WORD_LIMIT, limit);
    if (limit < before) pass_lock(bank);
    bank->net->ops->tell(bank->net, DT__WORKERS);
}

int dt__slots_journal(struct dt__slots_bank *bank, int limit, struct dt_applied *out)
{
    uint64_t step = fetch(bank, WORD_STEP), seen = fetch(bank, WORD_SEEN);
    uint64_t journal = (uint64_t)bank->shape->way.journal;
    int n = step - seen < (uint64_t)limit ? (int)(step - seen) : limit;
    if (n == 0) return 0;
    bank->net->ops->sync(bank->net);
    for (int i = 0; i < n; i++)
        out[i] = bank->journal[(seen + (uint64_t)i) % journal];
    replace(bank, WORD_SEEN, seen + (uint64_t)n);
    if (step - seen == journal) bank->net->ops->tell(bank->net, DT__WORKERS); /* it was full */
    return n;
}

bool dt__slots_rests(const struct dt__slots_bank *bank)
{
    uint64_t step = fetch(bank, WORD_STEP);
    return fetch(bank, WORD_LIMIT) <= step && fetch(bank, WORD_SEEN) == step;
}

void dt__slots_close(struct dt__slots_bank *bank)
{
    const uint64_t beyond = UINT64_C(1) << 62; /* any leg's end */
    if (bank->closed) return;
    bank->closed = true;
    uint64_t begun = bank->net->ops->add(bank->net, WORD_TICKET, beyond);
    if (DT__PLANTED(DEAF_STOP)) begun = fetch(bank, WORD_STEP);
    if (begun < bank->last) bank->last = begun;
}

bool dt__slots_over(struct dt__slots_bank *bank)
{
    if (fetch(bank, WORD_SEEN) < bank->last) return false;
    raise_floor(bank, DT__LEG_OVER); /* lets go those who wait for their clock */
    bank->net->ops->tell(bank->net, DT__WORKERS);
    return true;
}

/* ---- turns ---------------------------------------------------------------------------------- */

/* How many gradients may be applied now. */
static uint64_t room(const struct dt__slots_bank *bank)
{
    uint64_t step = fetch(bank, WORD_STEP), limit = fetch(bank, WORD_LIMIT);
    uint64_t entries = fetch(bank, WORD_SEEN) + (uint64_t)bank->shape->way.journal;
    uint64_t end = limit < entries ? limit : entries;
    return end <= step || fetch(bank, WORD_HOLD) ? 0 : end - step;
}

static struct dt__bell fetch_bell(const struct dt__slots_bank *bank, int worker)
{
    return dt__bell_unpack(fetch(bank, dt__slots_word(WORD_BELL, worker)));
}

static bool is_waiting(const struct dt__slots_bank *bank)
{
    for (int w = 0; w < bank->shape->workers; w++)
        if (fetch_bell(bank, w).count != fetch(bank, dt__slots_word(WORD_ACK, w))) return true;
    return false;
}

/* Takes back its claim; whether nobody is left who has one. */
static bool is_last(struct dt__slots_bank *bank)
{
    uint64_t claims = bank->net->ops->add(bank->net, WORD_LOCK, (uint64_t)-1);
    if (claims > BANKS_CLAIM) bank->net->ops->tell(bank->net, DT__BANK);
    return claims == 1;
}

bool dt__slots_enter(struct dt__slots_bank *bank)
{
    struct dt__onesided *net = bank->net;
    bool shared = bank->shape->way.shared && !DT__PLANTED(NO_LOCK);
    while (is_waiting(bank) && room(bank)) {
        if (!shared) return true;
        if (net->ops->add(net, WORD_LOCK, 1) == 0) {
            net->ops->sync(net);
            return true;
        }
        if (!is_last(bank)) return false;
    }
    return false;
}

void dt__slots_leave(struct dt__slots_bank *bank)
{
    if (!bank->shape->way.shared || DT__PLANTED(NO_LOCK)) return;
    bank->net->ops->sync(bank->net);
    is_last(bank);
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
    struct dt__slots_state *state = bank->state;
    const struct dt__slots_peer *peer = &state->peer[worker];
    uint64_t number = peer->served + depth;
    int place = number + 1 == peer->bell.count ? peer->bell.slot : !peer->bell.slot;
    struct dt__slot *slot =
        (struct dt__slot *)(bank->net->memory + dt__slot_at(shape, worker, place));
    out->worker = worker;
    out->note = &slot->note;
    out->grad = slot->grad;
    out->seen = shape->keep_seen ? slot->grad + shape->vector / sizeof(float) : NULL;
    out->staleness = state->step + (uint64_t)n - slot->note.version;
    state->next = (worker + 1) % shape->workers;
    if (DT__PLANTED(EARLY_ACK)) give_back(bank, worker, number + 1);
}

static void fetch_bells(struct dt__slots_bank *bank)
{
    for (int w = 0; w < bank->shape->workers; w++)
        bank->state->peer[w].bell = fetch_bell(bank, w);
    bank->net->ops->sync(bank->net);
}

int dt__slots_take(struct dt__slots_bank *bank, int limit, struct dt_gradient *out)
{
    const struct dt__slots_peer *peer = bank->state->peer;
    uint64_t most = room(bank);
    if (most < (uint64_t)limit) limit = (int)most;
    fetch_bells(bank);
    int n = 0, first = bank->state->next, workers = bank->shape->workers;
    for (uint64_t depth = 0; depth < DT__SLOTS; depth++)
        for (int i = 0; i < workers && n < limit; i++) {
            int w = (first + i) % workers;
            if (peer[w].bell.count <= peer[w].served + depth) continue;
            take_one(bank, w, depth, n, &out[n]);
            n++;
        }
    return n;
}

float *dt__slots_weights(const struct dt__slots_bank *bank)
{
    return buffer_of(bank, bank->state->current)->params;
}

static bool is_pinned(const struct dt__slots_bank *bank, int buffer)
{
    for (int w = 0; w < bank->shape->workers; w++)
        if (bank->state->peer[w].pinned == buffer + 1) return true;
    return false;
}

/* What has been out of use longest gives readers their slack; without any, what this worker has read
 * last is still in its caches. */
static bool is_better(const struct dt__slots_bank *bank, int one, int other)
{
    uint64_t a = buffer_of(bank, one)->retired, b = buffer_of(bank, other)->retired;
    return bank->shape->way.shared ? a > b : a < b;
}

float *dt__slots_target(struct dt__slots_bank *bank)
{
    struct dt__slots_state *state = bank->state;
    for (int w = 0; w < bank->shape->workers; w++)
        state->peer[w].pinned = (int)fetch(bank, dt__slots_word(WORD_PIN, w));
    int best = -1;
    for (int i = 0; i < bank->shape->buffers; i++)
        if (i != state->current && !is_pinned(bank, i) && (best < 0 || is_better(bank, i, best)))
            best = i;
    state->target = best; /* there are more buffers than pins */
    return buffer_of(bank, best)->params;
}

static void write_journal(struct dt__slots_bank *bank, int n, const struct dt_gradient *gradients)
{
    double now = dt_clock_secs();
    for (int i = 0; i < n; i++) {
        uint64_t entry = (bank->state->step + (uint64_t)i) % (uint64_t)bank->shape->way.journal;
        bank->journal[entry] = (struct dt_applied){*gradients[i].note, gradients[i].staleness, now,
                                                   gradients[i].worker};
    }
}

/* The bank sleeps through most of it. */
static bool concerns_bank(const struct dt__slots_bank *bank, int n,
                          const struct dt_gradient *gradients)
{
    uint64_t step = bank->state->step, half = (uint64_t)bank->shape->way.journal / 2;
    bool asks = false;
    for (int i = 0; i < n; i++)
        asks |= gradients[i].note->ask != 0;
    return asks || step >= fetch(bank, WORD_LIMIT) || step - fetch(bank, WORD_SEEN) >= half;
}

void dt__slots_publish(struct dt__slots_bank *bank, int n, const struct dt_gradient *gradients)
{
    struct dt__slots_state *state = bank->state;
    struct dt__onesided *net = bank->net;
    write_journal(bank, n, gradients);
    state->step += (uint64_t)n;
    bool concerned = concerns_bank(bank, n, gradients);
    for (int i = 0; i < n; i++) {
        state->peer[gradients[i].worker].served++;
        state->peer[gradients[i].worker].applied++;
    }
    if (DT__PLANTED(STALE_FLOOR)) raise_floor(bank, lowest_clock(bank));
    publish(bank, state->target);
    for (int i = 0; i < n; i++) {
        int w = gradients[i].worker;
        if (DT__PLANTED(LOST_DOORBELL)) state->peer[w].served = fetch_bell(bank, w).count;
        give_back(bank, w, state->peer[w].served);
    }
    raise_floor(bank, lowest_clock(bank));
    replace(bank, WORD_STEP, state->step); /* last: the bank may end the leg by it */
    net->ops->tell(net, DT__WORKERS);
    if (concerned) net->ops->tell(net, DT__BANK);
}
