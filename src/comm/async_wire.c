/* A rounded wire in the slot protocol (async_slots.h), of a window: what is put and got are
 * parcels, floats as wire.h rounds them and behind them those that stay whole.
 *
 * Up: a worker adds the error that it kept to its gradient, rounds the sum and keeps what is left.
 * The bank reads the floats of a parcel block by block, as it applies them.
 * Down: the bank has a copy of the weights as each worker has them. A worker asks (REQUEST); the
 * bank rounds newest less copy into the worker's answer, adds what it has rounded to the copy, and
 * says so (ANSWER); the worker gets the answer and adds the same. What was rounded away is in the
 * next difference, so no error is kept. The first answer is the copy itself. Bank and worker write
 * to answer and copy by turns, as REQUEST and ANSWER say.
 * Source: Seide et al. 2014 and Tang et al. 2019, as in wire.h. */
#include <string.h>

#include "base/limits.h"
#include "comm/async_slots.h"
#include "comm/wire.h"

enum {
    PIECE = DT__DIFFERENCE_BLOCKS * DT__WIRE_BLOCK
}; /* floats of a difference at once, on the stack */

_Static_assert(sizeof(struct dt__slot) == sizeof(struct dt__weights),
               "a gradient fits where weights do");

size_t dt__parcel_bytes(int wire, size_t rounded, size_t params)
{
    const size_t floats = sizeof(float);
    return (dt__wire_bytes(wire, 0, rounded) + floats - 1) / floats * floats +
           (params - rounded) * floats;
}

/* Behind what is rounded. */
static size_t parcel_whole_at(const struct dt__slots_shape *shape)
{
    return shape->sent - (shape->params - shape->rounded) * sizeof(float);
}

static size_t answer_at(const struct dt__slots_shape *shape, int worker)
{
    return shape->answers_at + (size_t)worker * shape->slot_stride;
}

static size_t copy_at(const struct dt__slots_shape *shape, int worker)
{
    return shape->copies_at + (size_t)worker * shape->weights_stride;
}

void dt__parcel_read(const struct dt__slots_shape *shape, const unsigned char *parcel, size_t at,
                     size_t n, float *out)
{
    const size_t left = at < shape->rounded ? shape->rounded - at : 0, first = left < n ? left : n;
    dt__wire_read(shape->wire, at, first, parcel + dt__wire_bytes(shape->wire, 0, at), out);
    if (first == n) return;
    memcpy(out + first,
           parcel + parcel_whole_at(shape) + (at + first - shape->rounded) * sizeof *out,
           (n - first) * sizeof *out);
}

/* ---- bank ----------------------------------------------------------------------------------- */

/* The newest weights' difference from the copy, to the parcel and to the copy. */
static void answer_round(const struct dt__slots_bank *bank, float *copy, unsigned char *parcel)
{
    const struct dt__slots_shape *shape = bank->shape;
    const float *newest = dt__slots_weights(bank);
    const size_t rounded = shape->rounded, whole = (shape->params - rounded) * sizeof *copy;
    float fresh[PIECE], error[PIECE];
    for (size_t at = 0, n; at < rounded; at += n) {
        n = rounded - at < PIECE ? rounded - at : PIECE;
        memcpy(fresh, newest + at, n * sizeof *fresh);
        memset(error, 0, n * sizeof *error);
        dt__wire_update(shape->wire, at, n, fresh, error, copy + at,
                        parcel + dt__wire_bytes(shape->wire, 0, at));
    }
    memcpy(copy + rounded, newest + rounded, whole);
    memcpy(parcel + parcel_whole_at(shape), newest + rounded, whole);
}

void dt__slots_answer(struct dt__slots_bank *bank)
{
    const struct dt__slots_shape *shape = bank->shape;
    struct dt__onesided *remote = bank->remote;
    for (int w = 0; w < shape->workers && shape->wire; w++) {
        uint64_t *answered = &bank->state->peer[w].answered;
        const uint64_t asked = remote->ops->fetch(remote, dt__slots_word(WORD_REQUEST, w));
        if (asked == *answered) continue;
        struct dt__weights *copy = (struct dt__weights *)(remote->memory + copy_at(shape, w));
        struct dt__slot *answer = (struct dt__slot *)(remote->memory + answer_at(shape, w));
        if (*answered == 0)
            memcpy(copy->params, dt__slots_weights(bank), shape->vector);
        else
            answer_round(bank, copy->params, (unsigned char *)answer->grad);
        copy->version = answer->note.version = bank->state->step;
        *answered = asked;
        remote->ops->sync(remote);
        remote->ops->replace(remote, dt__slots_word(WORD_ANSWER, w), asked);
    }
}

/* ---- worker --------------------------------------------------------------------------------- */

void dt__slots_round(struct dt__slots_worker *worker)
{
    const struct dt__slots_shape *shape = worker->shape;
    const size_t rounded = shape->rounded;
    if (!shape->wire) return;
    float *grad = dt__slots_grad(worker);
    unsigned char *parcel = (unsigned char *)worker->parcel->grad;
    dt__wire_round(shape->wire, 0, rounded, grad, worker->error, parcel);
    memcpy(parcel + parcel_whole_at(shape), grad + rounded,
           (shape->params - rounded) * sizeof *grad);
}

void dt__slots_read_difference(struct dt__slots_worker *worker)
{
    const struct dt__slots_shape *shape = worker->shape;
    struct dt__onesided *remote = worker->remote;
    struct dt__weights *weights = (struct dt__weights *)worker->copy;
    struct dt__slot *answer = worker->parcel;
    const unsigned char *parcel = (const unsigned char *)answer->grad;
    const size_t rounded = shape->rounded;
    remote->ops->replace(remote, dt__slots_word(WORD_REQUEST, worker->index), ++worker->asked);
    while (remote->ops->fetch(remote, dt__slots_word(WORD_ANSWER, worker->index)) != worker->asked)
        remote->ops->pause(remote, "weights");
    remote->ops->wake(remote);
    if (worker->asked == 1) {
        remote->ops->get(remote, copy_at(shape, worker->index), weights,
                         sizeof *weights + shape->vector);
        remote->ops->flush(remote);
        return;
    }
    remote->ops->get(remote, answer_at(shape, worker->index), answer, sizeof *answer + shape->sent);
    remote->ops->flush(remote);
    dt__wire_add(shape->wire, 0, rounded, parcel, weights->params);
    memcpy(weights->params + rounded, parcel + parcel_whole_at(shape),
           (shape->params - rounded) * sizeof(float));
    weights->version = answer->note.version;
}
