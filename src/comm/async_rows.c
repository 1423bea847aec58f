/* Touched rows (async_slots.h): their lists in a slot, and the row log, which shows the rows that
 * the next buffer lacks.
 *
 * In shared memory a gradient has only those rows of a row-sparse range that its batch touched:
 * contiguous from the range's offset on, with their numbers in a list after the gradient.
 *
 * A buffer lacks the rows that were written since it was last published. The row log has their
 * numbers; the rows are copied from the newest weights, and then the gradients are applied to the
 * buffer in place. So readers see whole versions, whose rows do not change while they are read, and
 * the cost of an update depends on the number of touched rows, not of all rows.
 *
 * A range's log is a ring of row numbers, in the order in which rows were written. For each buffer
 * it has the number of entries whose rows the buffer has. If a buffer lacks more entries than the
 * ring holds, the whole range is copied: from that size on one long copy is not slower than many
 * short ones. A range has a log only if its updates change just the touched rows; otherwise all
 * rows are written each time. */
#include <string.h>

#include "comm/async_slots.h"
#include "comm/rows.h"

/* ---- lists of touched rows ------------------------------------------------------------------ */

enum { LINE = 64 /* size of a cache line: each list's count has its own line */ };

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

float *dt__rows_expand(struct dt_async *async, const struct dt_row_range *range,
                       const struct dt_gradient *gradient, size_t at, size_t n)
{
    const struct dt_touched *touched = &gradient->touched[range - async->spec.row_range];
    const size_t width = range->width, first = (at - range->offset) / width;
    uint32_t k = dt__touched_below(touched, (uint32_t)first);
    memset(async->grad, 0, n * sizeof *async->grad);
    for (; k < *touched->count && touched->row[k] < first + n / width; k++)
        memcpy(async->grad + (touched->row[k] - first) * width,
               gradient->grad + range->offset + k * width, width * sizeof *async->grad);
    return async->grad;
}

/* ---- the row log ---------------------------------------------------------------------------- */

/* A range's row log. */
struct row_log {
    uint64_t *written; /* rows logged so far */
    uint64_t *has;     /* (buffers) log entries whose rows each buffer has */
    uint32_t *row;     /* (entries) ring */
    size_t entries;
};

/* Returns the number of entries in a range's ring. For more rows, copying all is as fast as copying
 * row by row. */
static size_t log_entries(const struct dt_row_range *range)
{
    return range->touched_alone ? range->rows / 8 + 1 : 0;
}

/* Returns the bytes of the counts of all ranges, which precede the rings. */
static size_t counts_bytes(const struct dt__slice *slice)
{
    return (size_t)slice->async->spec.row_ranges * (1 + (size_t)slice->buffers) * sizeof(uint64_t);
}

size_t dt__row_log_bytes(const struct dt__slice *slice)
{
    size_t bytes = counts_bytes(slice);
    for (int i = 0; i < slice->async->spec.row_ranges; i++)
        bytes += log_entries(&slice->async->spec.row_range[i]) * sizeof(uint32_t);
    return bytes;
}

static struct row_log row_log_of(const struct dt__slice *slice, int range)
{
    unsigned char *memory = slice->remote->memory + slice->at.row_log;
    uint64_t *counts = (uint64_t *)(void *)memory + range * (1 + slice->buffers);
    uint32_t *row = (uint32_t *)(void *)(memory + counts_bytes(slice));
    for (int i = 0; i < range; i++)
        row += log_entries(&slice->async->spec.row_range[i]);
    return (struct row_log){.written = counts,
                            .has = counts + 1,
                            .row = row,
                            .entries = log_entries(&slice->async->spec.row_range[range])};
}

/* Copies the rows of log entries [from, *log->written). The rows are scattered in memory, so the
 * next ones are prefetched. */
static void copy_logged(const struct row_log *log, uint64_t from, size_t width,
                        const float *restrict source, float *restrict to)
{
    enum { AHEAD = 8 };
    size_t at = (size_t)(from % log->entries), next = (size_t)((from + AHEAD) % log->entries);
    for (uint64_t n = *log->written - from; n > 0; n--) {
        const size_t row = log->row[at] * width;
        if (n > AHEAD) {
            const size_t soon = log->row[next] * width;
            __builtin_prefetch(source + soon);
            __builtin_prefetch(to + soon, 1);
        }
        memcpy(to + row, source + row, width * sizeof *to);
        if (++at == log->entries) at = 0;
        if (++next == log->entries) next = 0;
    }
}

void dt__row_log_fill(struct dt__slice *slice)
{
    for (int i = 0; i < slice->async->spec.row_ranges; i++) {
        const struct dt_row_range *range = &slice->async->spec.row_range[i];
        for (int b = 0; b < slice->buffers && range->touched_alone; b++)
            if (b != slice->state->current)
                memcpy(dt__weights_in(slice, b)->params + range->offset,
                       dt__newest(slice) + range->offset,
                       range->rows * range->width * sizeof(float));
    }
}

void dt__row_log_copy(struct dt__slice *slice, int range)
{
    const struct dt_row_range *of = &slice->async->spec.row_range[range];
    const struct row_log log = row_log_of(slice, range);
    const uint64_t has = log.has[slice->state->target];
    const float *from = dt__newest(slice) + of->offset;
    float *to = dt__weights_in(slice, slice->state->target)->params + of->offset;
    if (*log.written - has > log.entries)
        memcpy(to, from, of->rows * of->width * sizeof *to);
    else
        copy_logged(&log, has, of->width, from, to);
}

void dt__row_log_append(struct dt__slice *slice, int range, int n,
                        const struct dt_gradient *gradients)
{
    const struct row_log log = row_log_of(slice, range);
    for (int i = 0; i < n; i++) {
        const struct dt_touched *touched = &gradients[i].touched[range];
        size_t at = (size_t)(*log.written % log.entries);
        for (uint32_t k = 0; k < *touched->count; k++) {
            log.row[at] = touched->row[k];
            if (++at == log.entries) at = 0;
        }
        *log.written += *touched->count;
    }
    log.has[slice->state->target] = *log.written;
}
