/* The bank's end of the slot protocol (async_slots.h): the bank's own words, what is done by
 * whoever acts for it under the lock, and the update. */
#include <string.h>

#include "base/limits.h"
#include "comm/async_slots.h"

static void bank_notify(struct dt_async *async, enum dt__end whom)
{
    async->remote->ops->notify(async->remote, whom);
}

/* Makes a buffer's contents the newest weights. */
static void bank_publish(struct dt_async *async, int buffer)
{
    struct dt__slots_state *state = async->state;
    state->publication++;
    dt__weights_in(async, buffer)->version = state->step;
    dt__weights_in(async, state->current)->retired = state->publication;
    dt__sync(async);
    dt__replace(async, WORD_PUBLISHED, state->publication * DT__MOST_BUFFERS + (uint64_t)buffer);
    state->current = buffer;
}

static uint64_t bank_lowest_clock(const struct dt_async *async)
{
    const struct dt__slots_peer *peer = async->state->peer;
    uint64_t lowest = DT__SPAN_OVER;
    for (int w = 0; w < async->workers; w++)
        if (peer[w].active && peer[w].applied < lowest) lowest = peer[w].applied;
    return lowest;
}

static void bank_raise_floor(struct dt_async *async, uint64_t floor)
{
    if (floor != async->state->floor) dt__replace(async, WORD_FLOOR, floor);
    async->state->floor = floor;
}

/* ---- who acts for the bank: take ------------------------------------------------------------ */

/* How many gradients may be applied now. */
static uint64_t bank_room(const struct dt_async *async)
{
    const uint64_t waiting = dt__fetch(async, WORD_STEP) - dt__fetch(async, WORD_SEEN);
    return dt__fetch(async, WORD_HOLD) ? 0 : async->log_entries - waiting;
}

static bool bank_has_waiting(const struct dt_async *async)
{
    for (int w = 0; w < async->workers; w++)
        if (dt__fetch(async, dt__word(WORD_DOORBELL, w)) / DT__SLOTS !=
            dt__fetch(async, dt__word(WORD_ACK, w)))
            return true;
    return false;
}

/* Takes a claim back; whether nobody is left who has one. */
static bool bank_unclaim(struct dt_async *async)
{
    return dt__add(async, WORD_LOCK, (uint64_t)-1) == 1;
}

/* Whether gradients wait, and this rank has the lock. */
static bool bank_lock(struct dt_async *async)
{
    while (bank_has_waiting(async) && bank_room(async)) {
        if (dt__add(async, WORD_LOCK, 1) == 0) {
            dt__sync(async);
            return true;
        }
        if (!bank_unclaim(async)) return false;
    }
    return false;
}

static void bank_unlock(struct dt_async *async)
{
    dt__sync(async);
    bank_unclaim(async);
}

/* The gradient `depth` places behind those that this worker has had served, as the nth of a
 * pass. */
static struct dt_gradient bank_gradient(struct dt_async *async, int worker, uint64_t depth, int n)
{
    struct dt__slots_state *state = async->state;
    const struct dt__slots_peer *peer = &state->peer[worker];
    const int place = peer->served + depth + 1 == peer->rung ? peer->slot : !peer->slot;
    struct dt__slot *slot =
        (struct dt__slot *)(async->remote->memory + dt__slot_at(async, worker, place));
    const int lists = (worker * DT__SLOTS + place) * async->spec.row_ranges;
    state->next = (worker + 1) % async->workers;
    return (struct dt_gradient){
        .worker = worker,
        .note = &slot->note,
        .grad = slot->grad,
        .seen = async->spec.keep_seen ? slot->grad + async->at.grad / sizeof(float) : NULL,
        .touched = async->touched ? async->touched + lists : NULL,
        .norm2 = slot->note.norm2,
        .staleness = state->step + (uint64_t)n - slot->note.version};
}

/* Gradients that wait to be applied, in fair order; returns how many. */
static int bank_take(struct dt_async *async, struct dt_gradient *out)
{
    struct dt__slots_peer *peer = async->state->peer;
    const uint64_t room = bank_room(async);
    const int first = async->state->next, workers = async->workers;
    const int limit = room < (uint64_t)async->at_once ? (int)room : async->at_once;
    int n = 0;
    for (int w = 0; w < workers; w++) {
        const uint64_t doorbell = dt__fetch(async, dt__word(WORD_DOORBELL, w));
        peer[w].rung = doorbell / DT__SLOTS;
        peer[w].slot = (int)(doorbell % DT__SLOTS);
    }
    dt__sync(async);
    for (uint64_t depth = 0; depth < DT__SLOTS; depth++)
        for (int i = 0; i < workers && n < limit; i++) {
            const int w = (first + i) % workers;
            if (peer[w].rung <= peer[w].served + depth) continue;
            out[n] = bank_gradient(async, w, depth, n);
            n++;
        }
    return n;
}

/* ---- who acts for the bank: apply ----------------------------------------------------------- */

/* The buffer to write the next weights to. What has been out of use longest gives readers their
 * slack; without any, what this worker has read last is still in its caches. */
static int bank_target(const struct dt_async *async)
{
    const uint64_t publication = async->state->publication + 1;
    const struct dt__weights *best = NULL; /* there are more buffers than hazard pointers */
    int target = -1;
    for (int w = 0; w < async->workers; w++) {
        const uint64_t hazard = dt__fetch(async, dt__word(WORD_HAZARD, w));
        if (hazard) dt__weights_in(async, (int)hazard - 1)->pinned = publication;
    }
    for (int i = 0; i < async->buffers; i++) {
        const struct dt__weights *buffer = dt__weights_in(async, i);
        if (i == async->state->current || buffer->pinned == publication) continue;
        if (best && (buffer->retired > best->retired) != async->shared) continue;
        best = buffer;
        target = i;
    }
    return target;
}

/* Floats [from, to), all of which change, of a range (NULL: of none): n gradients in order on one
 * block of floats, in this core's cache; then its new weights go out in one run, for other cores
 * hold copies of what was there. */
static void apply_floats(struct dt_async *async, int n, const struct dt_gradient *gradients,
                         const struct dt_row_range *range, size_t from, size_t to)
{
    const struct dt_async_spec *spec = &async->spec;
    const size_t block = range ? async->block / range->width * range->width : async->block;
    const float *weights = dt__newest(async);
    float *out = dt__weights_in(async, async->state->target)->params;
    int blocks = 0;
    for (size_t at = from, floats; at < to; at += floats) {
        floats = to - at < block ? to - at : block;
        for (int i = 0; i < n; i++) {
            const struct dt_gradient part =
                dt__gradient_block(async, &gradients[i], range, at, floats);
            spec->update(spec->arg, &part, async->state->step + (uint64_t)i, at, floats,
                         i ? async->fresh : weights + at, async->fresh, async->states);
        }
        memcpy(out + at, async->fresh, floats * sizeof *out);
        if (++blocks % DT__ASYNC_PROGRESS_BLOCKS == 0) async->remote->ops->progress(async->remote);
    }
}

/* Of a range whose other rows stay as they are: what the buffer lacks of the newest weights, then
 * the rows that each gradient touched, in place. */
static void apply_rows(struct dt_async *async, int n, const struct dt_gradient *gradients,
                       const struct dt_row_range *range)
{
    const struct dt_async_spec *spec = &async->spec;
    const int index = (int)(range - spec->row_range);
    float *out = dt__weights_in(async, async->state->target)->params;
    dt__rows_copy(async, index);
    for (int i = 0; i < n; i++) {
        struct dt_gradient part = gradients[i];
        const struct dt_touched *touched = &part.touched[index];
        part.grad += range->offset;
        if (part.seen) part.seen += range->offset;
        if (*touched->count)
            spec->update_rows(spec->arg, &part, async->state->step + (uint64_t)i, range,
                              touched->row, *touched->count, out, async->states);
    }
    dt__rows_log(async, index, n, gradients);
}

/* Accounts for n gradients that the target has, and makes it the newest weights. */
static void bank_publish_applied(struct dt_async *async, int n, const struct dt_gradient *gradients)
{
    struct dt__slots_state *state = async->state;
    const double now = dt_clock_secs();
    bool asks = false;
    for (int i = 0; i < n; i++) {
        const struct dt_gradient *gradient = &gradients[i];
        async->log[state->step++ % async->log_entries] =
            (struct dt_applied){*gradient->note, gradient->staleness, now, gradient->worker};
        state->peer[gradient->worker].served++;
        state->peer[gradient->worker].applied++;
        asks |= gradient->note->ask != 0;
    }
    /* The bank sleeps through most of it, up to the last gradients of a span. */
    const bool concerns_bank = asks || dt__fetch(async, WORD_TICKET) >= async->until ||
                               state->step - dt__fetch(async, WORD_SEEN) >= async->log_entries / 2;
    bank_publish(async, state->target);
    for (int i = 0; i < n; i++) {
        const int w = gradients[i].worker;
        dt__replace(async, dt__word(WORD_ACK, w), state->peer[w].served);
    }
    bank_raise_floor(async, bank_lowest_clock(async));
    dt__replace(async, WORD_STEP, state->step); /* last: the bank may end the span by it */
    bank_notify(async, DT__WORKERS);
    if (concerns_bank) bank_notify(async, DT__BANK);
}

/* n gradients in order, in one pass over the vectors. */
static void bank_apply(struct dt_async *async, int n, struct dt_gradient *gradients)
{
    const struct dt_async_spec *spec = &async->spec;
    const double start = dt_clock_secs();
    size_t at = 0;
    dt_world_heartbeat(async->world, "update", async->state->step);
    async->state->target = bank_target(async);
    if (spec->prepare) spec->prepare(spec->arg, &gradients[0], dt__newest(async));
    for (int i = 0; i < spec->row_ranges; i++) {
        const struct dt_row_range *range = &spec->row_range[i];
        const size_t end = range->offset + range->rows * range->width;
        apply_floats(async, n, gradients, NULL, at, range->offset);
        if (range->touched_alone)
            apply_rows(async, n, gradients, range);
        else
            apply_floats(async, n, gradients, range, range->offset, end);
        at = end;
    }
    apply_floats(async, n, gradients, NULL, at, spec->params);
    bank_publish_applied(async, n, gradients);
    async->busy_secs += dt_clock_secs() - start;
}

/* ---- who acts for the bank: answers over a rounded wire -------------------------------------- */

static void bank_answer(struct dt_async *async)
{
    unsigned char *memory = async->remote->memory;
    for (int w = 0; w < async->workers && async->spec.wire; w++) {
        uint64_t *answered = &async->state->peer[w].answered;
        const uint64_t asked = dt__fetch(async, dt__word(WORD_REQUEST, w));
        if (asked == *answered) continue;
        struct dt__weights *copy = (struct dt__weights *)(memory + dt__copy_at(async, w));
        struct dt__slot *answer = (struct dt__slot *)(memory + dt__answer_at(async, w));
        if (*answered == 0)
            memcpy(copy->params, dt__newest(async), async->at.vector);
        else
            dt__difference_encode(async, copy->params, answer->grad);
        copy->version = answer->note.version = async->state->step;
        *answered = asked;
        dt__sync(async);
        dt__replace(async, dt__word(WORD_ANSWER, w), asked);
    }
}

void dt__async_combine(struct dt_async *async)
{
    struct dt_gradient gradients[DT__ASYNC_AT_ONCE];
    while (bank_lock(async)) {
        const int n = bank_take(async, gradients);
        if (n > 0) bank_apply(async, n, gradients);
        bank_answer(async);
        bank_unlock(async);
    }
}

/* ---- the bank itself ------------------------------------------------------------------------ */

void dt__async_open_span(struct dt_async *async, uint64_t from)
{
    struct dt__slots_state *state = async->state;
    for (int w = 0; w < async->workers; w++) {
        state->peer[w].active = async->active[w];
        state->peer[w].applied = 0;
    }
    if (state->publication == 0) dt__rows_fill(async);
    state->step = from;
    dt__replace(async, WORD_TICKET, from);
    dt__replace(async, WORD_STEP, from);
    dt__replace(async, WORD_SEEN, from);
    bank_raise_floor(async, bank_lowest_clock(async));
    bank_publish(async, state->current);
}

/* The next entries of the update log, at most `limit`, into out; returns how many. */
static int bank_read_log(struct dt_async *async, int limit, struct dt_applied *out)
{
    const uint64_t step = dt__fetch(async, WORD_STEP), seen = dt__fetch(async, WORD_SEEN);
    const int n = step - seen < (uint64_t)limit ? (int)(step - seen) : limit;
    if (n == 0) return 0;
    dt__sync(async);
    for (int i = 0; i < n; i++)
        out[i] = async->log[(seen + (uint64_t)i) % async->log_entries];
    dt__replace(async, WORD_SEEN, seen + (uint64_t)n);
    if (step - seen == async->log_entries) bank_notify(async, DT__WORKERS); /* it was full */
    return n;
}

static void bank_count_applied(struct dt_async *async, const struct dt_applied *applied)
{
    struct dt_async_counts *counts = &async->counts;
    const uint64_t bin = applied->staleness, last = DT_STALENESS_BINS - 1;
    const uint64_t expected = counts->worker_applied[applied->worker]++;
    if (applied->note.number != expected) { /* a gap would be a gradient lost */
        dt_fail(DT_EBUG, "gradient %llu of worker %d came in the place of %llu",
                (unsigned long long)applied->note.number, applied->worker,
                (unsigned long long)expected);
        dt_world_abort(async->world, DT_EBUG);
    }
    counts->applied++;
    counts->staleness_histogram[bin < last ? bin : last]++;
    if (applied->note.gap > counts->gap_max) counts->gap_max = applied->note.gap;
}

int dt_async_serve(struct dt_async *async, int limit, struct dt_applied *out)
{
    struct dt__onesided *remote = async->remote;
    remote->ops->progress(remote);
    if (!async->shared) dt__async_combine(async);
    bank_answer(async);
    const int n = bank_read_log(async, limit, out);
    if (n == 0) {
        remote->ops->pause(remote, "gradients");
        return 0;
    }
    remote->ops->wake(remote);
    for (int i = 0; i < n; i++)
        bank_count_applied(async, &out[i]);
    dt_world_heartbeat(async->world, "serving", dt__fetch(async, WORD_SEEN));
    return n;
}

void dt_async_close(struct dt_async *async)
{
    const uint64_t beyond = UINT64_C(1) << 62; /* any span's end */
    if (async->closed) return;
    async->closed = true;
    const uint64_t begun = dt__add(async, WORD_TICKET, beyond);
    if (begun < async->until) async->until = begun;
}

bool dt_async_over(struct dt_async *async)
{
    if (dt__fetch(async, WORD_SEEN) < async->until) return false;
    bank_raise_floor(async, DT__SPAN_OVER); /* lets go those who wait for their clock */
    bank_notify(async, DT__WORKERS);
    return true;
}

float *dt_async_weights(struct dt_async *async)
{
    return dt__newest(async);
}

float *const *dt_async_states(struct dt_async *async)
{
    return async->states;
}
