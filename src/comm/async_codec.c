/* What a gradient looks like in its slot (async_slots.h), and weights on their way to a worker.
 *
 *   whole     P floats
 *   rounded   floats [0, wire_params) as wire.h rounds them, the others behind them as they are
 *   rows      shared memory. Of each range of touched rows those that the batch touched, one behind
 *             the other from the range's place on, and their numbers in a list behind the vectors;
 *             pages that no batch reaches are never there. The rest as it is.
 *
 * The bank reads a gradient block by block, as it applies it.
 *
 * A rounded wire, of windows. Up: a worker adds the error that it kept to its gradient, rounds the
 * sum and keeps what is left. Down: the bank has a copy of the weights as each worker has them. A
 * worker asks (REQUEST); the bank rounds newest less copy into the worker's answer, adds what it
 * has rounded to the copy, and says so (ANSWER); the worker gets the answer and adds the same. What
 * was rounded away is in the next difference, so no error is kept. The first answer is the copy
 * itself. Bank and worker write to answer and copy by turns, as REQUEST and ANSWER say. The bank
 * alone reads versions of the weights while a span lasts, so two are enough, and none is pointed
 * at; between spans they rest, and workers get them whole.
 * Source: Seide et al. 2014 and Tang et al. 2019, as in wire.h. */
#include <string.h>

#include "base/limits.h"
#include "comm/async_slots.h"
#include "comm/wire.h"

enum { DIFFERENCE = DT__DIFFERENCE_BLOCKS * DT__WIRE_BLOCK }; /* floats at once, on the stack */

_Static_assert(sizeof(struct dt__slot) == sizeof(struct dt__weights),
               "a gradient fits where weights do");
_Static_assert(DT__ASYNC_BLOCK % (int)DT__WIRE_BLOCK == 0,
               "a gradient is read by whole blocks of q8");

/* ---- lists of touched rows ------------------------------------------------------------------ */

enum { LINE = 64 /* of the cache: before the row numbers their count has one */ };

static size_t list_bytes(const struct dt_row_range *range)
{
    return LINE + (range->rows * sizeof(uint32_t) + LINE - 1) / LINE * LINE;
}

size_t dt__lists_bytes(const struct dt_async *async)
{
    size_t bytes = 0;
    for (int i = 0; i < async->spec.row_ranges; i++)
        bytes += list_bytes(&async->spec.row_range[i]);
    return bytes;
}

void dt__lists_map(struct dt_async *async)
{
    struct dt_touched *out = async->touched;
    for (int s = 0; s < async->workers * DT__SLOTS; s++) {
        unsigned char *at = async->remote->memory + dt__slot_at(async, 0, s) + async->at.lists;
        for (int i = 0; i < async->spec.row_ranges; at += list_bytes(&async->spec.row_range[i++]))
            *out++ = (struct dt_touched){.row = (uint32_t *)(void *)(at + LINE),
                                         .count = (uint32_t *)(void *)at};
    }
}

void dt__seen_copy(const struct dt_async *async, const struct dt_touched *touched, float *to)
{
    const float *from = async->read->params;
    size_t at = 0;
    for (int i = 0; i < async->spec.row_ranges; i++) {
        const struct dt_row_range *range = &async->spec.row_range[i];
        memcpy(to + at, from + at, (range->offset - at) * sizeof *to);
        for (size_t k = 0; k < *touched[i].count; k++)
            memcpy(to + range->offset + k * range->width,
                   from + range->offset + touched[i].row[k] * range->width,
                   range->width * sizeof *to);
        at = range->offset + range->rows * range->width;
    }
    memcpy(to + at, from + at, async->at.vector - at * sizeof *to);
}

/* Rows of a range, from float `at` on, of those that lie one behind the other: to `out` (n) as they
 * lie in the vector, with zeros for those that were not touched. */
static float *expand_rows(const struct dt_row_range *range, const struct dt_touched *touched,
                          const float *vector, size_t at, size_t n, float *out)
{
    const size_t width = range->width, first = (at - range->offset) / width;
    uint32_t k = 0, behind = *touched->count;
    while (k < behind) { /* the first row not below */
        const uint32_t middle = k + (behind - k) / 2;
        if (touched->row[middle] < first)
            k = middle + 1;
        else
            behind = middle;
    }
    memset(out, 0, n * sizeof *out);
    for (; k < *touched->count && touched->row[k] < first + n / width; k++)
        memcpy(out + (touched->row[k] - first) * width, vector + range->offset + k * width,
               width * sizeof *out);
    return out;
}

/* ---- rounded -------------------------------------------------------------------------------- */

static size_t floats_behind(const struct dt_async *async)
{
    return async->spec.params - async->spec.wire_params;
}

size_t dt__codec_bytes(const struct dt_async *async)
{
    const size_t floats = sizeof(float);
    const size_t rounded = dt__wire_bytes(async->spec.wire, 0, async->spec.wire_params);
    return ((rounded + floats - 1) / floats + floats_behind(async)) * floats;
}

/* Of an encoded gradient or difference: the floats behind what is rounded. */
static float *encoded_floats(const struct dt_async *async, const void *encoded)
{
    return (float *)((uintptr_t)encoded + async->at.grad) - floats_behind(async);
}

static void read_rounded(const struct dt_async *async, const unsigned char *encoded, size_t at,
                         size_t n, float *out)
{
    const size_t rounded = async->spec.wire_params, left = at < rounded ? rounded - at : 0;
    const size_t first = left < n ? left : n;
    dt__wire_read(async->spec.wire, at, first, encoded + dt__wire_bytes(async->spec.wire, 0, at),
                  out);
    if (first < n)
        memcpy(out + first, encoded_floats(async, encoded) + (at + first - rounded),
               (n - first) * sizeof *out);
}

void dt__gradient_encode(struct dt_async *async, float *grad)
{
    const size_t rounded = async->spec.wire_params;
    float *encoded = async->encoded->grad;
    dt__wire_round(async->spec.wire, 0, rounded, grad, async->error, (unsigned char *)encoded);
    memcpy(encoded_floats(async, encoded), grad + rounded, floats_behind(async) * sizeof *grad);
}

struct dt_gradient dt__gradient_block(struct dt_async *async, const struct dt_gradient *gradient,
                                      const struct dt_row_range *range, size_t at, size_t n)
{
    struct dt_gradient part = *gradient;
    if (async->spec.wire) {
        read_rounded(async, (const unsigned char *)part.grad, at, n, async->grad);
        part.grad = async->grad;
    } else if (range) {
        const struct dt_touched *touched = &part.touched[range - async->spec.row_range];
        part.grad = expand_rows(range, touched, part.grad, at, n, async->grad);
        if (part.seen) part.seen = expand_rows(range, touched, part.seen, at, n, async->seen);
    } else {
        part.grad += at;
        if (part.seen) part.seen += at;
    }
    return part;
}

/* ---- weights over a rounded wire ------------------------------------------------------------ */

static size_t answer_at(const struct dt_async *async, int worker)
{
    return async->at.answers + (size_t)worker * async->at.slot_each;
}

static size_t copy_at(const struct dt_async *async, int worker)
{
    return async->at.copies + (size_t)worker * async->at.weights_each;
}

/* The newest weights' difference from the copy, to the answer and to the copy. */
static void encode_difference(const struct dt_async *async, float *copy, float *answer)
{
    const float *newest = dt__weights_in(async, async->state->current)->params;
    const size_t rounded = async->spec.wire_params;
    const size_t behind = floats_behind(async) * sizeof *copy;
    float fresh[DIFFERENCE], error[DIFFERENCE];
    for (size_t at = 0, n; at < rounded; at += n) {
        n = rounded - at < DIFFERENCE ? rounded - at : DIFFERENCE;
        memcpy(fresh, newest + at, n * sizeof *fresh);
        memset(error, 0, n * sizeof *error);
        dt__wire_update(async->spec.wire, at, n, fresh, error, copy + at,
                        (unsigned char *)answer + dt__wire_bytes(async->spec.wire, 0, at));
    }
    memcpy(copy + rounded, newest + rounded, behind);
    memcpy(encoded_floats(async, answer), newest + rounded, behind);
}

void dt__weights_answer(struct dt_async *async)
{
    unsigned char *memory = async->remote->memory;
    for (int w = 0; w < async->workers && async->spec.wire; w++) {
        uint64_t *answered = &async->state->peer[w].answered;
        const uint64_t asked = dt__fetch(async, dt__word(WORD_REQUEST, w));
        if (asked == *answered) continue;
        struct dt__weights *copy = (struct dt__weights *)(memory + copy_at(async, w));
        struct dt__slot *answer = (struct dt__slot *)(memory + answer_at(async, w));
        if (*answered == 0)
            memcpy(copy->params, dt_async_weights(async), async->at.vector);
        else
            encode_difference(async, copy->params, answer->grad);
        copy->version = answer->note.version = async->state->step;
        *answered = asked;
        dt__sync(async);
        dt__replace(async, dt__word(WORD_ANSWER, w), asked);
    }
}

const struct dt__weights *dt__weights_ask(struct dt_async *async)
{
    struct dt__onesided *remote = async->remote;
    struct dt__weights *weights = (struct dt__weights *)async->copy;
    struct dt__slot *answer = async->encoded;
    const size_t rounded = async->spec.wire_params;
    dt__replace(async, dt__word(WORD_REQUEST, async->worker), ++async->asked);
    while (dt__fetch(async, dt__word(WORD_ANSWER, async->worker)) != async->asked)
        remote->ops->pause(remote, "weights");
    remote->ops->wake(remote);
    if (async->asked == 1) {
        remote->ops->get(remote, copy_at(async, async->worker), weights,
                         sizeof *weights + async->at.vector);
        remote->ops->flush(remote);
        return weights;
    }
    remote->ops->get(remote, answer_at(async, async->worker), answer,
                     sizeof *answer + async->at.grad);
    remote->ops->flush(remote);
    dt__wire_add(async->spec.wire, 0, rounded, (const unsigned char *)answer->grad,
                 weights->params);
    memcpy(weights->params + rounded, encoded_floats(async, answer->grad),
           floats_behind(async) * sizeof(float));
    weights->version = answer->note.version;
    return weights;
}
