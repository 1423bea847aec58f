/* The owner's end of the slot protocol (async_slots.h): what the rank that acts for an owner does
 * while it holds the lock (take gradients, apply them, publish the weights); the answers in
 * windows; spans; and the bank's reading of what was applied. */
#include <string.h>

#include "base/limits.h"
#include "comm/async_slots.h"

static void owner_notify(struct dt__slice *slice, enum dt__end whom)
{
    slice->remote->ops->notify(slice->remote, whom);
}

/* Publishes a buffer's contents as the newest weights. */
static void owner_publish(struct dt__slice *slice, int buffer)
{
    struct dt__slots_state *state = slice->state;
    state->publication++;
    dt__weights_in(slice, buffer)->version = state->step;
    dt__weights_in(slice, state->current)->retired = state->publication;
    dt__sync(slice);
    dt__replace(slice, WORD_PUBLISHED, state->publication * DT__MOST_BUFFERS + (uint64_t)buffer);
    state->current = buffer;
}

/* Returns the lowest clock: the least number, over the active workers, of applied gradients of this
 * span. */
static uint64_t owner_lowest_clock(const struct dt__slice *slice)
{
    const struct dt__slots_peer *peer = slice->state->peer;
    uint64_t lowest = DT__SPAN_OVER;
    for (int w = 0; w < slice->async->workers; w++)
        if (peer[w].active && peer[w].applied < lowest) lowest = peer[w].applied;
    return lowest;
}

static void owner_raise_floor(struct dt__slice *slice, uint64_t floor)
{
    if (floor != slice->state->floor) dt__replace(slice, WORD_FLOOR, floor);
    slice->state->floor = floor;
}

/* ---- acting for the owner: take ------------------------------------------------------------- */

/* Returns how many gradients may be applied now. */
static uint64_t owner_capacity(const struct dt__slice *slice)
{
    const uint64_t unread = dt__fetch(slice, WORD_STEP) - dt__fetch(slice, WORD_SEEN);
    return slice->log_entries ? slice->log_entries - unread : UINT64_MAX;
}

static bool owner_has_waiting(const struct dt__slice *slice)
{
    for (int w = 0; w < slice->async->workers; w++)
        if (dt__fetch(slice, dt__word(WORD_DOORBELL, w)) / DT__SLOTS !=
            dt__fetch(slice, dt__word(WORD_ACK, w)))
            return true;
    return false;
}

/* Returns whether gradients wait and this rank has taken the lock. */
static bool owner_lock(struct dt__slice *slice)
{
    while (owner_has_waiting(slice) && owner_capacity(slice)) {
        if (dt__add(slice, WORD_LOCK, 1) == 0) {
            dt__sync(slice);
            return true;
        }
        if (dt__add(slice, WORD_LOCK, (uint64_t)-1) > 1) return false;
    }
    return false;
}

static void owner_unlock(struct dt__slice *slice)
{
    dt__sync(slice);
    dt__add(slice, WORD_LOCK, (uint64_t)-1);
}

/* Checks a gradient's number: a gap in the numbers would mean a lost gradient. */
static void expect_number(const struct dt__slice *slice, const struct dt_gradient_info *info,
                          int worker, uint64_t expected)
{
    if (info->number == expected) return;
    dt_fail(DT_EBUG, "slice %d: gradient %llu of worker %d came in the place of %llu", slice->index,
            (unsigned long long)info->number, worker, (unsigned long long)expected);
    dt__world_abort(slice->async->world, DT_EBUG);
}

/* Returns whether all of a gradient has arrived in its slot. In windows the doorbell may arrive
 * first. */
static bool slot_is_complete(const struct dt__slice *slice, const struct dt_gradient *gradient,
                             const struct dt__slot *slot, uint64_t number)
{
    return slice->async->shared ||
           (slot->head.info.number >= number &&
            slot->head.checksum == dt__slot_checksum(slice, gradient->info, gradient->grad));
}

/* Takes the worker's gradient number served + depth as the nth gradient of this pass. Returns false
 * if its doorbell has not rung, or the gradient has not arrived. */
static bool owner_gradient(struct dt__slice *slice, int worker, uint64_t depth, int n,
                           struct dt_gradient *out)
{
    struct dt__slots_state *state = slice->state;
    struct dt__slots_peer *peer = &state->peer[worker];
    const uint64_t number = peer->served + depth;
    if (number >= peer->rung) return false;
    /* the last doorbell names its slot; the gradient before is in the other slot */
    const int place = number + 1 == peer->rung ? peer->slot : !peer->slot;
    struct dt__slot *slot =
        (struct dt__slot *)(slice->remote->memory + dt__slot_at(slice, worker, place));
    const int lists = (worker * DT__SLOTS + place) * slice->async->spec.row_ranges;
    *out = (struct dt_gradient){.worker = worker,
                                .info = &slot->head.info,
                                .grad = slot->grad,
                                .touched =
                                    slice->async->touched ? slice->async->touched + lists : NULL,
                                .norm2 = slot->head.info.norm2,
                                .staleness = state->step + (uint64_t)n - slot->head.info.version};
    if (!slot_is_complete(slice, out, slot, number)) {
        peer->rung = number; /* so that it and the next gradient are looked at again later */
        return false;
    }
    expect_number(slice, out->info, worker, number);
    state->next = (worker + 1) % slice->async->workers;
    return true;
}

/* Takes the waiting gradients, from each worker in turn. Returns their number. */
static int owner_take(struct dt__slice *slice, struct dt_gradient *out)
{
    struct dt__slots_peer *peer = slice->state->peer;
    const uint64_t capacity = owner_capacity(slice);
    const int first = slice->state->next, workers = slice->async->workers;
    const int limit =
        capacity < (uint64_t)slice->async->at_once ? (int)capacity : slice->async->at_once;
    int n = 0;
    for (int w = 0; w < workers; w++) {
        const uint64_t doorbell = dt__fetch(slice, dt__word(WORD_DOORBELL, w));
        peer[w].rung = doorbell / DT__SLOTS;
        peer[w].slot = (int)(doorbell % DT__SLOTS);
    }
    dt__sync(slice);
    for (uint64_t depth = 0; depth < DT__SLOTS; depth++)
        for (int i = 0; i < workers && n < limit; i++)
            if (owner_gradient(slice, (first + i) % workers, depth, n, &out[n])) n++;
    return n;
}

/* ---- acting for the owner: apply ------------------------------------------------------------ */

/* Returns the buffer for the next weights: of the free buffers the one that was retired last, which
 * is still in the caches. */
static int owner_target(const struct dt__slice *slice)
{
    const uint64_t publication = slice->state->publication + 1;
    const struct dt__weights *best = NULL; /* some buffer is free: there are more buffers than
                                            * hazard pointers */
    int target = -1;
    for (int w = 0; w < slice->async->workers; w++) {
        const uint64_t hazard = dt__fetch(slice, dt__word(WORD_HAZARD, w));
        if (hazard) dt__weights_in(slice, (int)hazard - 1)->pinned = publication;
    }
    for (int i = 0; i < slice->buffers; i++) {
        const struct dt__weights *buffer = dt__weights_in(slice, i);
        if (i == slice->state->current || buffer->pinned == publication) continue;
        if (best && buffer->retired < best->retired) continue;
        best = buffer;
        target = i;
    }
    return target;
}

/* Applies n gradients, in order, to floats [from, to). Each float changes. range: the range of rows
 * that has these floats, or NULL. Works block by block, in this core's cache. The new weights of a
 * block are copied out at once, because other cores' caches have the old ones. */
static void apply_floats(struct dt__slice *slice, int n, const struct dt_gradient *gradients,
                         const struct dt_row_range *range, size_t from, size_t to)
{
    const struct dt_async_spec *spec = &slice->async->spec;
    const size_t most = slice->async->block;
    const size_t block = range ? most / range->width * range->width : most;
    const float *weights = dt__newest(slice);
    float *out = dt__weights_in(slice, slice->state->target)->params, *fresh = slice->async->fresh;
    int blocks = 0;
    for (size_t at = from, floats; at < to; at += floats) {
        floats = to - at < block ? to - at : block;
        for (int i = 0; i < n; i++) {
            struct dt_gradient part = gradients[i];
            part.grad =
                range ? dt__rows_expand(slice->async, range, &part, at, floats) : part.grad + at;
            spec->update(spec->arg, &part, slice->state->step + (uint64_t)i, slice->offset + at,
                         floats, i ? fresh : weights + at, fresh, slice->states);
        }
        memcpy(out + at, fresh, floats * sizeof *out);
        if (++blocks % DT__ASYNC_PROGRESS_BLOCKS == 0) slice->remote->ops->progress(slice->remote);
    }
}

/* Applies n gradients, in order, to the touched rows of a range whose other rows do not change.
 * First the target buffer gets the rows that it lacks; then it is updated in place. */
static void apply_rows(struct dt__slice *slice, int n, const struct dt_gradient *gradients,
                       const struct dt_row_range *range)
{
    const struct dt_async_spec *spec = &slice->async->spec;
    const int index = (int)(range - spec->row_range);
    float *out = dt__weights_in(slice, slice->state->target)->params;
    dt__row_log_copy(slice, index);
    for (int i = 0; i < n; i++) {
        struct dt_gradient part = gradients[i];
        const struct dt_touched *touched = &part.touched[index];
        part.grad += range->offset;
        if (*touched->count)
            spec->update_rows(spec->arg, &part, slice->state->step + (uint64_t)i, range,
                              touched->row, *touched->count, out, slice->states);
    }
    dt__row_log_append(slice, index, n, gradients);
}

/* Publishes the target buffer, to which n gradients were applied, acknowledges the gradients and
 * logs them. */
static void owner_publish_applied(struct dt__slice *slice, int n,
                                  const struct dt_gradient *gradients)
{
    struct dt__slots_state *state = slice->state;
    const double now = dt__clock_secs();
    bool asks = false;
    for (int i = 0; i < n; i++) {
        const struct dt_gradient *gradient = &gradients[i];
        if (slice->log_entries)
            slice->log[state->step % slice->log_entries] =
                (struct dt_applied){*gradient->info, gradient->staleness, now, gradient->worker};
        state->step++;
        state->applied++;
        state->peer[gradient->worker].served++;
        state->peer[gradient->worker].applied++;
        asks |= gradient->info->ask != 0;
    }
    owner_publish(slice, state->target);
    for (int i = 0; i < n; i++) {
        const int w = gradients[i].worker;
        dt__replace(slice, dt__word(WORD_ACK, w), state->peer[w].served);
    }
    owner_raise_floor(slice, owner_lowest_clock(slice));
    dt__replace(slice, WORD_STEP, state->step); /* after this the bank may end the span */
    owner_notify(slice, DT__WORKERS);
    /* Wakes the bank only if a gradient asks for something, the span is about to end, or half of
     * the log is unread. This is checked after the step is stored, so that a bank that closes the
     * span either sees the step or is woken. */
    if (asks || dt__fetch(slice, WORD_TICKET) >= slice->async->until ||
        state->step - dt__fetch(slice, WORD_SEEN) >= slice->log_entries / 2)
        owner_notify(slice, DT__BANK);
}

/* Applies n gradients, in order, in one pass over the vectors, and publishes the result. */
static void owner_apply(struct dt__slice *slice, int n, struct dt_gradient *gradients)
{
    const struct dt_async_spec *spec = &slice->async->spec;
    const double start = dt__clock_secs();
    size_t at = 0;
    dt__world_heartbeat(slice->async->world, "update", slice->state->step);
    slice->state->target = owner_target(slice);
    for (int i = 0; i < spec->row_ranges; i++) {
        const struct dt_row_range *range = &spec->row_range[i];
        const size_t end = range->offset + range->rows * range->width;
        apply_floats(slice, n, gradients, NULL, at, range->offset);
        if (range->touched_alone)
            apply_rows(slice, n, gradients, range);
        else
            apply_floats(slice, n, gradients, range, range->offset, end);
        at = end;
    }
    apply_floats(slice, n, gradients, NULL, at, slice->params);
    owner_publish_applied(slice, n, gradients);
    slice->async->busy_secs += dt__clock_secs() - start;
}

/* Applies the waiting gradients of a slice, unless another rank is doing so. */
static void slice_combine(struct dt__slice *slice)
{
    struct dt_gradient gradients[DT__ASYNC_AT_ONCE];
    while (owner_lock(slice)) {
        const int n = owner_take(slice, gradients);
        if (n > 0) owner_apply(slice, n, gradients);
        owner_unlock(slice);
        if (n == 0 && !slice->async->shared) break; /* a gradient has not arrived yet */
    }
}

/* ---- the owner: answers, in windows ---------------------------------------------------------- */

/* Retires a worker that leaves, once all its gradients are applied: from then on its clock does not
 * count. */
static void slice_retire(struct dt__slice *slice, int worker)
{
    struct dt__slots_peer *peer = &slice->state->peer[worker];
    if (!peer->active) return;
    const uint64_t rung = dt__fetch(slice, dt__word(WORD_DOORBELL, worker)) / DT__SLOTS;
    if (rung != peer->served) return;
    peer->active = false;
    owner_raise_floor(slice, owner_lowest_clock(slice));
}

/* Returns whether a worker's request for weights may be answered: its clock is within the staleness
 * bound, and a slot will be free for its next gradient. A worker that leaves gets its answer at
 * once, and does not use it. */
static bool answer_is_due(const struct dt__slice *slice, int worker, uint64_t request)
{
    const struct dt__slots_peer *peer = &slice->state->peer[worker];
    const int64_t staleness = slice->async->spec.staleness;
    const bool leaves = request % 2;
    if (request / 2 == peer->answers) return false;
    const bool in_time = staleness < 0 || peer->answers <= slice->state->floor ||
                         peer->answers - slice->state->floor <= (uint64_t)staleness;
    return leaves || (in_time && peer->answers <= peer->applied + 1);
}

/* Sends the newest weights to all workers whose answers are due. Their buffer stays pinned until
 * they are sent. */
static void slice_answer(struct dt__slice *slice)
{
    const struct dt__slots_state *state = slice->state;
    for (int w = 0; w < slice->async->workers; w++) {
        struct dt__slots_peer *peer = &slice->state->peer[w];
        struct dt__answer *answer = &slice->answers[w];
        if (answer->left) continue;
        dt__replace(slice, dt__word(WORD_HAZARD, w), 0);
        const uint64_t request = dt__fetch(slice, dt__word(WORD_REQUEST, w));
        if (request % 2) slice_retire(slice, w);
        if (!answer_is_due(slice, w, request)) continue;
        peer->answers++;
        answer->head = (struct dt__head){.version = state->step, .floor = state->floor};
        dt__replace(slice, dt__word(WORD_HAZARD, w), 1 + (uint64_t)state->current);
        slice->remote->ops->send(slice->remote, w, answer, dt__newest(slice), slice->at.vector);
    }
}

void dt__async_serve_own(struct dt_async *async)
{
    struct dt__onesided *first = async->slice[0].remote;
    first->ops->progress(first);
    for (int i = 0; i < async->slices; i++) {
        struct dt__slice *slice = &async->slice[i];
        if (slice->mine) slice_combine(slice);
        if (slice->mine && !async->shared) slice_answer(slice);
    }
}

/* ---- spans ---------------------------------------------------------------------------------- */

void dt__async_open_span(struct dt_async *async, uint64_t from)
{
    for (int i = 0; i < async->slices; i++) {
        struct dt__slice *slice = &async->slice[i];
        struct dt__slots_state *state = slice->state;
        if (!slice->mine) continue;
        for (int w = 0; w < async->workers; w++) {
            struct dt__slots_peer *peer = &state->peer[w];
            peer->active = async->active[w];
            peer->applied = peer->answers = 0;
            dt__replace(slice, dt__word(WORD_REQUEST, w), 0);
        }
        if (state->publication == 0) dt__row_log_fill(slice);
        state->step = from;
        dt__replace(slice, WORD_TICKET, from);
        dt__replace(slice, WORD_STEP, from);
        dt__replace(slice, WORD_SEEN, from);
        owner_raise_floor(slice, owner_lowest_clock(slice));
        owner_publish(slice, state->current);
    }
}

/* Returns whether a worker has not left, an answer is owed, or gradients wait. */
static bool slice_is_busy(const struct dt__slice *slice)
{
    bool busy = false;
    for (int w = 0; w < slice->async->workers && !slice->async->shared; w++) {
        const uint64_t left = 2 * slice->state->peer[w].answers + 1;
        busy |= slice->async->active[w] && dt__fetch(slice, dt__word(WORD_REQUEST, w)) != left;
        busy |= slice->answers[w].left;
    }
    return busy || owner_has_waiting(slice); /* a worker rings its last doorbells before it
                                              * leaves */
}

void dt__async_drain(struct dt_async *async)
{
    for (int i = 0; i < async->slices; i++) {
        struct dt__slice *slice = &async->slice[i];
        while (slice->mine && slice_is_busy(slice)) {
            dt__async_serve_own(async);
            slice->remote->ops->pause(slice->remote, "gradients");
        }
    }
}

/* ---- the bank: accounts --------------------------------------------------------------------- */

/* Reads the next entries of the update log, at most `limit`, into out. Returns their number. */
static int bank_read_log(struct dt__slice *slice, int limit, struct dt_applied *out)
{
    const uint64_t step = dt__fetch(slice, WORD_STEP), seen = dt__fetch(slice, WORD_SEEN);
    const int n = step - seen < (uint64_t)limit ? (int)(step - seen) : limit;
    if (n == 0) return 0;
    dt__sync(slice);
    for (int i = 0; i < n; i++)
        out[i] = slice->log[(seen + (uint64_t)i) % slice->log_entries];
    dt__replace(slice, WORD_SEEN, seen + (uint64_t)n);
    if (dt__fetch(slice, WORD_STEP) - seen >= slice->log_entries)
        owner_notify(slice, DT__WORKERS); /* the log may have been full until now */
    return n;
}

static void bank_count_applied(struct dt_async *async, const struct dt_applied *applied)
{
    struct dt_async_counts *counts = &async->counts;
    const uint64_t bin = applied->staleness, last = DT_STALENESS_BINS - 1;
    const uint64_t expected = counts->worker_applied[applied->worker]++;
    expect_number(&async->slice[0], &applied->info, applied->worker, expected);
    counts->applied++;
    counts->staleness_histogram[bin < last ? bin : last]++;
    if (applied->info.gap > counts->gap_max) counts->gap_max = applied->info.gap;
}

int dt__async_serve(struct dt_async *async, int limit, struct dt_applied *out)
{
    struct dt__slice *slice = &async->slice[0];
    struct dt__onesided *remote = slice->remote;
    if (!async->shared) dt__async_serve_own(async);
    const int n = bank_read_log(slice, limit, out);
    if (n == 0) {
        remote->ops->pause(remote, "gradients");
        return 0;
    }
    for (int i = 0; i < n; i++)
        bank_count_applied(async, &out[i]);
    dt__world_heartbeat(async->world, "serving", dt__fetch(slice, WORD_SEEN));
    return n;
}

void dt__async_close(struct dt_async *async)
{
    const uint64_t beyond = UINT64_C(1) << 62; /* more than the number of any span's last update */
    if (async->closed) return;
    async->closed = true;
    const uint64_t begun = dt__add(&async->slice[0], WORD_TICKET, beyond);
    if (begun < async->until) async->until = begun;
}

bool dt__async_over(struct dt_async *async)
{
    struct dt__slice *slice = &async->slice[0];
    if (dt__fetch(slice, WORD_SEEN) < async->until) return false;
    owner_raise_floor(slice, DT__SPAN_OVER); /* no worker waits for a clock from now on */
    owner_notify(slice, DT__WORKERS);
    return true;
}

float *dt__async_weights(struct dt_async *async)
{
    return async->shared ? dt__newest(&async->slice[0]) : async->weights;
}

float *const *dt__async_states(struct dt_async *async)
{
    return async->shared ? async->slice[0].states : async->states;
}
