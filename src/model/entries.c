/* The sparse part of a batch, sorted by input. Sorting lets each row of the gradient be computed in
 * one go, while it is in the cache, and yields the list of touched rows in ascending order. The
 * sort is stable, so a row's sum adds the batch's rows in order, and has the same bits as in a
 * whole gradient. */
#include "model/entries.h"

#include <string.h>

#include "base/clones.h"
#include "base/limits.h"
#include "model/blas.h"
#include "model/encoding.h"

dt_status dt__entries_reserve(struct dt__entries *entries, size_t count)
{
    DT_TRY(dt__grow(&entries->entry, &entries->capacity, count, sizeof *entries->entry, "entries"));
    return dt__grow(&entries->other, &entries->other_capacity, count, sizeof *entries->other,
                    "entries");
}

void dt__entries_free(struct dt__entries *entries)
{
    dt_free(entries->entry);
    dt_free(entries->other);
    *entries = (struct dt__entries){0};
}

/* Sorts the entries by `bits` bits of their inputs, from bit `shift` on: one pass of a radix
 * sort. */
static void entries_pass(struct dt__entries *entries, int shift, int bits)
{
    uint32_t place[1 << DT__SORT_BITS] = {0}, at = 0;
    const uint32_t mask = (UINT32_C(1) << bits) - 1;
    for (size_t i = 0; i < entries->count; i++)
        place[entries->entry[i].input >> shift & mask]++;
    for (uint32_t digit = 0; digit <= mask; digit++) {
        uint32_t count = place[digit];
        place[digit] = at;
        at += count;
    }
    for (size_t i = 0; i < entries->count; i++)
        entries->other[place[entries->entry[i].input >> shift & mask]++] = entries->entry[i];
    struct dt__entry *sorted = entries->other;
    size_t capacity = entries->other_capacity;
    entries->other = entries->entry, entries->other_capacity = entries->capacity;
    entries->entry = sorted, entries->capacity = capacity;
}

dt_status dt__entries_sort(struct dt__entries *entries, const struct dt_batch *batch, size_t inputs)
{
    const uint64_t first = batch->offsets[0];
    int width = 1, bits;
    entries->count = (size_t)(batch->offsets[batch->rows] - first);
    DT_TRY(dt__entries_reserve(entries, entries->count));
    struct dt__entry *entry = entries->entry;
    entries->value = batch->value ? batch->value + first : NULL;
    for (int r = 0; r < batch->rows; r++)
        for (uint64_t e = batch->offsets[r]; e < batch->offsets[r + 1]; e++)
            *entry++ = (struct dt__entry){batch->index[e], (uint32_t)r, (uint32_t)(e - first)};
    while (width < 32 && inputs > (size_t)1 << width)
        width++;
    const int passes = (width + DT__SORT_BITS - 1) / DT__SORT_BITS;
    bits = (width + passes - 1) / passes;
    for (int pass = 0; pass < passes; pass++)
        entries_pass(entries, pass * bits, bits);
    return DT_OK;
}

/* ---- gradients of rows ---------------------------------------------------------------------- */

/* Adds to `to` the deltas of entries [begin, end), each times the entry's value. */
static inline void row_add(const struct dt__entries *entries, size_t begin, size_t end,
                           const struct dt__input_rows *rows, float *restrict to)
{
    for (size_t e = begin; e < end; e++) {
        const struct dt__entry *entry = &entries->entry[e];
        const float *from = rows->delta + entry->row * rows->by_row + entry->place * rows->by_place;
        const float value = entries->value ? entries->value[entry->place] : 1;
        for (size_t i = 0; i < rows->width; i++)
            to[i] += value * from[i];
    }
}

/* Returns the index of the first entry with the same input as entry e - 1. */
static inline size_t input_begin(const struct dt__entries *entries, size_t e)
{
    const uint32_t input = entries->entry[e - 1].input;
    while (e > 0 && entries->entry[e - 1].input == input)
        e--;
    return e;
}

/* Counts the rows of the entries' inputs that are not in the list. */
static size_t rows_count_new(const struct dt__entries *entries, uint32_t first,
                             const uint32_t *listed, size_t count_listed)
{
    size_t count = 0, at = 0;
    for (size_t e = 0; e < entries->count; e++) {
        const uint32_t row = entries->entry[e].input - first;
        if (e && entries->entry[e].input == entries->entry[e - 1].input) continue;
        while (at < count_listed && listed[at] < row)
            at++;
        count += at == count_listed || listed[at] != row;
    }
    return count;
}

DT__CLONES
static void rows_whole(const struct dt__entries *entries, const struct dt__input_rows *rows,
                       float *grad)
{
    for (size_t e = entries->count, begin; e > 0; e = begin) {
        begin = input_begin(entries, e);
        row_add(entries, begin, e, rows,
                grad + (entries->entry[begin].input - rows->first) * rows->width);
    }
}

dt_status dt__entries_find(const struct dt__entries *entries, const struct dt_touched *inputs,
                           uint32_t *index)
{
    uint32_t at = 0;
    for (size_t e = 0; e < entries->count; e++) {
        const struct dt__entry *entry = &entries->entry[e];
        while (at < *inputs->count && inputs->row[at] < entry->input)
            at++;
        if (at == *inputs->count || inputs->row[at] != entry->input)
            return dt_fail(DT_EBUG, "the weights of input %u are missing", entry->input);
        index[entry->place] = at;
    }
    return DT_OK;
}

/* Inserts new rows into the list, and their gradients into grad, from the last row to the first, so
 * that moving a row only overwrites memory that is no longer needed. grad NULL: only the list
 * changes. */
DT__CLONES
static void rows_touched(const struct dt__entries *entries, const struct dt__input_rows *rows,
                         const struct dt_touched *touched, float *grad)
{
    const uint32_t first = (uint32_t)rows->first;
    const size_t width = rows->width;
    size_t old = *touched->count;
    size_t to = old + rows_count_new(entries, first, touched->row, old);
    *touched->count = (uint32_t)to;
    for (size_t e = entries->count; e > 0;) {
        const uint32_t number = entries->entry[e - 1].input - first;
        const bool moves = old > 0 && touched->row[old - 1] >= number;
        to--;
        float *row = grad ? grad + to * width : NULL;
        touched->row[to] = moves ? touched->row[--old] : number;
        if (row && moves && old != to) memcpy(row, grad + old * width, width * sizeof *row);
        if (row && !moves) memset(row, 0, width * sizeof *row);
        if (touched->row[to] != number) continue;
        const size_t begin = input_begin(entries, e);
        if (row) row_add(entries, begin, e, rows, row);
        e = begin;
    }
}

/* Starts the list with the dense inputs, which have the lowest numbers. */
static void rows_list_dense(size_t dense, const struct dt_touched *touched)
{
    for (size_t i = *touched->count; i < dense; i++)
        touched->row[i] = (uint32_t)i;
    if (*touched->count < dense) *touched->count = (uint32_t)dense;
}

void dt__entries_list(const struct dt__entries *entries, uint32_t dense,
                      const struct dt_touched *inout)
{
    rows_list_dense(dense, inout);
    rows_touched(entries, &(struct dt__input_rows){0}, inout, NULL);
}

void dt__entries_gradient(const struct dt__entries *entries, const struct dt__input_rows *rows,
                          bool accumulate, const struct dt_touched *touched, float *grad)
{
    const size_t dense = rows->dense, width = rows->width;
    if (!touched) {
        if (!accumulate)
            memset(grad + dense * width, 0, (rows->rows - dense) * width * sizeof *grad);
        rows_whole(entries, rows, grad);
        return;
    }
    if (!accumulate) {
        *touched->count = 0;
        rows_list_dense(dense, touched);
    }
    rows_touched(entries, rows, touched, grad);
}

/* ---- a product with a batch's inputs -------------------------------------------------------- */

DT__CLONES
static void entries_forward(const struct dt_batch *batch, const float *weight, size_t width,
                            float *restrict y)
{
    for (int r = 0; r < batch->rows; r++, y += width)
        for (uint64_t e = batch->offsets[r]; e < batch->offsets[r + 1]; e++) {
            const float value = batch->value ? batch->value[e] : 1;
            const float *from = weight + batch->index[e] * width;
            for (size_t i = 0; i < width; i++)
                y[i] += value * from[i];
        }
}

dt_status dt__inputs_forward(const struct dt__layer_call *call, const float *weight, size_t width,
                             bool add, float *y)
{
    const struct dt_batch *batch = call->batch;
    const int rows = batch->rows, nin = batch->ndense;
    const size_t floats = (size_t)rows * width;
    if (nin && call->rowwise)
        DT_TRY(
            dt__gemm_rowwise((struct dt__sizes){rows, (int)width, nin}, batch->x, weight, add, y));
    else if (nin)
        DT_TRY(dt__gemm((struct dt__product){.m = rows, .n = (int)width, .k = nin, .add = add},
                        batch->x, weight, y));
    else if (!add)
        memset(y, 0, floats * sizeof *y);
    if (batch->fractions)
        dt__fractions_forward(batch->fractions, batch->rows, weight + (size_t)batch->ndense * width,
                              width, y);
    if (batch->offsets) entries_forward(batch, weight, width, y);
    return DT_OK;
}

dt_status dt__inputs_backward(const struct dt__layer_call *call, size_t inputs, size_t width)
{
    const struct dt_batch *batch = call->batch;
    const struct dt__input_rows rows = {.delta = call->dy,
                                        .by_row = width,
                                        .width = width,
                                        .rows = inputs,
                                        .dense = dt__batch_dense(batch)};
    if (batch->ndense)
        DT_TRY(dt__gemm((struct dt__product){.m = batch->ndense,
                                             .n = (int)width,
                                             .k = batch->rows,
                                             .ta = true,
                                             .add = call->accumulate},
                        batch->x, call->dy, call->grad));
    if (batch->fractions)
        dt__fractions_backward(batch->fractions, batch->rows, call->dy, width, call->accumulate,
                               call->grad + (size_t)batch->ndense * width);
    if (call->entries)
        dt__entries_gradient(call->entries, &rows, call->accumulate, call->touched, call->grad);
    return DT_OK;
}
