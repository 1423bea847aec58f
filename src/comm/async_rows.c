/* Touched rows in the slot protocol (async_slots.h): the lists in the slots, and the row log, by
 * which a buffer that was out of use gets the rows that it lacks.
 *
 * A range's row log is a ring of row numbers, in the order in which rows were written. Each buffer
 * knows up to which entry it has them all. A buffer that lacks more than the ring holds gets the
 * whole range: from there on one long copy is not slower than many short ones. Only ranges of which
 * updates touch rows alone have one; in the others all rows are written each time. */
#include <string.h>

#include "comm/async_slots.h"

enum { LINE = 64 };

/* ---- lists ---------------------------------------------------------------------------------- */

static size_t list_bytes(const struct dt_row_range *range)
{
    return LINE + ((range->rows * sizeof(uint32_t) + LINE - 1) & ~(size_t)(LINE - 1));
}

size_t dt__row_lists_bytes(const struct dt__slots_shape *shape)
{
    size_t bytes = 0;
    for (int i = 0; i < shape->ranges; i++)
        bytes += list_bytes(&shape->range[i]);
    return bytes;
}

void dt__row_lists_map(const struct dt__slots_shape *shape, unsigned char *memory,
                       struct dt_touched *out)
{
    for (int s = 0; s < shape->workers * DT__SLOTS; s++) {
        unsigned char *at =
            memory + dt__slot_at(shape, s / DT__SLOTS, s % DT__SLOTS) + shape->lists_at;
        for (int i = 0; i < shape->ranges; at += list_bytes(&shape->range[i++]))
            *out++ = (struct dt_touched){.row = (uint32_t *)(void *)(at + LINE),
                                         .count = (uint32_t *)(void *)at};
    }
}

/* ---- the row log ---------------------------------------------------------------------------- */

/* At this many rows one copy of all takes as long as copies row by row. */
static size_t log_entries(const struct dt_row_range *range)
{
    return range->touched_alone ? range->rows / 8 + 1 : 0;
}

/* Counts of the first range, those of the others, and behind them the rings. */
static size_t counts_bytes(const struct dt__slots_shape *shape)
{
    return (size_t)shape->ranges * (1 + (size_t)shape->buffers) * sizeof(uint64_t);
}

size_t dt__row_log_bytes(const struct dt__slots_shape *shape)
{
    size_t bytes = counts_bytes(shape);
    for (int i = 0; i < shape->ranges; i++)
        bytes += log_entries(&shape->range[i]) * sizeof(uint32_t);
    return (bytes + LINE - 1) & ~(size_t)(LINE - 1);
}

/* A range's row log. */
struct row_log {
    uint64_t *written; /* rows so far */
    uint64_t *has;     /* (buffers) those of them that a buffer has */
    uint32_t *row;     /* (entries) ring */
    size_t entries;
};

static struct row_log bank_row_log(const struct dt__slots_bank *bank, int range)
{
    const struct dt__slots_shape *shape = bank->shape;
    unsigned char *memory = bank->remote->memory + shape->row_log_at;
    uint64_t *counts = (uint64_t *)(void *)memory + range * (1 + shape->buffers);
    uint32_t *row = (uint32_t *)(void *)(memory + counts_bytes(shape));
    for (int i = 0; i < range; i++)
        row += log_entries(&shape->range[i]);
    return (struct row_log){.written = counts,
                            .has = counts + 1,
                            .row = row,
                            .entries = log_entries(&shape->range[range])};
}

/* Rows lie anywhere in memory: those that come soon are asked for ahead. */
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

static float *buffer_rows(const struct dt__slots_bank *bank, int buffer, int range)
{
    const size_t at = dt__weights_at(bank->shape, buffer);
    return ((struct dt__weights *)(bank->remote->memory + at))->params +
           bank->shape->range[range].offset;
}

void dt__slots_fill_rows(struct dt__slots_bank *bank)
{
    const int current = bank->state->current;
    for (int i = 0; i < bank->shape->ranges; i++) {
        const struct dt_row_range *range = &bank->shape->range[i];
        for (int b = 0; b < bank->shape->buffers && range->touched_alone; b++)
            if (b != current)
                memcpy(buffer_rows(bank, b, i), buffer_rows(bank, current, i),
                       range->rows * range->width * sizeof(float));
    }
}

void dt__slots_copy_rows(struct dt__slots_bank *bank, int range)
{
    const struct dt_row_range *of = &bank->shape->range[range];
    const struct row_log log = bank_row_log(bank, range);
    const uint64_t from_entry = log.has[bank->state->target];
    const float *from = buffer_rows(bank, bank->state->current, range);
    float *to = buffer_rows(bank, bank->state->target, range);
    if (*log.written - from_entry > log.entries)
        memcpy(to, from, of->rows * of->width * sizeof *to);
    else
        copy_logged(&log, from_entry, of->width, from, to);
}

void dt__slots_log_rows(struct dt__slots_bank *bank, int range, int n,
                        const struct dt_gradient *gradients)
{
    const struct row_log log = bank_row_log(bank, range);
    for (int i = 0; i < n; i++) {
        const struct dt_touched *touched = &gradients[i].touched[range];
        size_t at = (size_t)(*log.written % log.entries);
        for (uint32_t k = 0; k < *touched->count; k++) {
            log.row[at] = touched->row[k];
            if (++at == log.entries) at = 0;
        }
        *log.written += *touched->count;
    }
    log.has[bank->state->target] = *log.written;
}
