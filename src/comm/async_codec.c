/* What a gradient looks like in its slot (async_slots.h), and weights over a rounded wire.
 *
 *   whole     P floats
 *   rounded   floats [0, wire_params) as wire.h rounds them, the others behind them as they are
 *   rows      in shared memory. Of each range of touched rows, those that the batch touched, one
 *             behind the other from the range's place on, with their numbers in a list behind the
 *             vectors; pages that no batch reaches are never allocated. Other floats as they are.
 *
 * The owner reads a gradient block by block, as it applies it.
 *
 * A worker adds the error that it kept to its gradient, rounds the sum and keeps what is left.
 * Weights go down a rounded wire as their difference from what the worker has; what was rounded
 * away is in the next difference, so no error is kept.
 * Source: Seide et al. 2014 and Tang et al. 2019, as in wire.h. */
#include <string.h>

#include "base/limits.h"
#include "comm/async_slots.h"
#include "comm/rows.h"
#include "comm/wire.h"

enum { DIFFERENCE = DT__DIFFERENCE_BLOCKS * DT__WIRE_BLOCK }; /* floats at once, on the stack */

_Static_assert(DT__ASYNC_BLOCK % (int)DT__WIRE_BLOCK == 0,
               "a gradient is read by whole blocks of q8");

/* ---- lists of touched rows ------------------------------------------------------------------ */

enum { LINE = 64 /* of the cache: before the row numbers their count has one */ };

static size_t list_bytes(const struct dt_row_range *range)
{
    return LINE + (range->rows * sizeof(uint32_t) + LINE - 1) / LINE * LINE;
}

size_t dt__lists_bytes(const struct dt__slice *slice)
{
    size_t bytes = 0;
    for (int i = 0; i < slice->async->spec.row_ranges; i++)
        bytes += list_bytes(&slice->async->spec.row_range[i]);
    return bytes;
}

void dt__lists_map(struct dt__slice *slice)
{
    struct dt_touched *out = slice->async->touched;
    for (int s = 0; s < slice->async->workers * DT__SLOTS; s++) {
        unsigned char *at = slice->remote->memory + dt__slot_at(slice, 0, s) + slice->at.lists;
        for (int i = 0; i < slice->async->spec.row_ranges;
             at += list_bytes(&slice->async->spec.row_range[i++]))
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
    memcpy(to + at, from + at, (async->spec.params - at) * sizeof *to);
}

/* Spreads touched rows, which lie one behind the other, to their places: floats [at, at + n) of the
 * vector, which are whole rows of a range, to `out` (n), with zeros for rows that were not
 * touched. */
static float *expand_rows(const struct dt_row_range *range, const struct dt_touched *touched,
                          const float *vector, size_t at, size_t n, float *out)
{
    const size_t width = range->width, first = (at - range->offset) / width;
    uint32_t k = dt__touched_below(touched, (uint32_t)first);
    memset(out, 0, n * sizeof *out);
    for (; k < *touched->count && touched->row[k] < first + n / width; k++)
        memcpy(out + (touched->row[k] - first) * width, vector + range->offset + k * width,
               width * sizeof *out);
    return out;
}

/* ---- rounded -------------------------------------------------------------------------------- */

static size_t floats_behind(const struct dt__slice *slice)
{
    return slice->params - slice->rounded;
}

size_t dt__codec_bytes(const struct dt__slice *slice)
{
    const size_t floats = sizeof(float);
    const size_t rounded = dt__wire_bytes(slice->async->spec.wire, 0, slice->rounded);
    return ((rounded + floats - 1) / floats + floats_behind(slice)) * floats;
}

/* The floats that are not rounded: they stand behind the rounded ones. */
static float *encoded_floats(const struct dt__slice *slice, const void *encoded)
{
    return (float *)((uintptr_t)encoded + slice->at.grad) - floats_behind(slice);
}

static void read_rounded(const struct dt__slice *slice, const unsigned char *encoded, size_t at,
                         size_t n, float *out)
{
    const size_t rounded = slice->rounded, left = at < rounded ? rounded - at : 0;
    const size_t first = left < n ? left : n;
    dt__wire_read(slice->async->spec.wire, at, first,
                  encoded + dt__wire_bytes(slice->async->spec.wire, 0, at), out);
    if (first < n)
        memcpy(out + first, encoded_floats(slice, encoded) + (at + first - rounded),
               (n - first) * sizeof *out);
}

void dt__gradient_encode(struct dt__slice *slice, float *grad, float *encoded)
{
    const struct dt_async *async = slice->async;
    const size_t rounded = slice->rounded, bytes = floats_behind(slice) * sizeof *grad;
    grad += slice->offset;
    dt__wire_round(async->spec.wire, 0, rounded, grad, async->error + slice->offset,
                   (unsigned char *)encoded);
    memcpy(encoded_floats(slice, encoded), grad + rounded, bytes);
}

struct dt_gradient dt__gradient_block(struct dt__slice *slice, const struct dt_gradient *gradient,
                                      const struct dt_row_range *range, size_t at, size_t n)
{
    struct dt_gradient part = *gradient;
    if (slice->async->spec.wire) {
        read_rounded(slice, (const unsigned char *)part.grad, at, n, slice->async->grad);
        part.grad = slice->async->grad;
    } else if (range) {
        const struct dt_touched *touched = &part.touched[range - slice->async->spec.row_range];
        part.grad = expand_rows(range, touched, part.grad, at, n, slice->async->grad);
        if (part.seen)
            part.seen = expand_rows(range, touched, part.seen, at, n, slice->async->seen);
    } else {
        part.grad += at;
        if (part.seen) part.seen += at;
    }
    return part;
}

uint32_t dt__slot_checksum(const struct dt__slice *slice, const struct dt_note *note,
                           const float *gradient, const float *seen)
{
    uint32_t sum = dt_crc32c(0, note, sizeof *note);
    sum = dt_crc32c(sum, gradient, slice->at.grad);
    return seen ? dt_crc32c(sum, seen, slice->at.vector) : sum;
}

/* ---- weights over a rounded wire ------------------------------------------------------------ */

void dt__difference_encode(const struct dt__slice *slice, float *copy, float *difference)
{
    const float *newest = dt__newest(slice);
    const size_t rounded = slice->rounded;
    const size_t behind = floats_behind(slice) * sizeof *copy;
    float fresh[DIFFERENCE], error[DIFFERENCE];
    for (size_t at = 0, n; at < rounded; at += n) {
        n = rounded - at < DIFFERENCE ? rounded - at : DIFFERENCE;
        memcpy(fresh, newest + at, n * sizeof *fresh);
        memset(error, 0, n * sizeof *error);
        dt__wire_update(slice->async->spec.wire, at, n, fresh, error, copy + at,
                        (unsigned char *)difference +
                            dt__wire_bytes(slice->async->spec.wire, 0, at));
    }
    memcpy(copy + rounded, newest + rounded, behind);
    memcpy(encoded_floats(slice, difference), newest + rounded, behind);
}

void dt__difference_add(const struct dt__slice *slice, const float *difference, float *weights)
{
    const size_t rounded = slice->rounded;
    dt__wire_add(slice->async->spec.wire, 0, rounded, (const unsigned char *)difference, weights);
    memcpy(weights + rounded, encoded_floats(slice, difference),
           floats_behind(slice) * sizeof *weights);
}
