/* Blocks of raw rows in memory. */
#include "table/block.h"

#include <math.h>
#include <string.h>

bool dt__floats_are_bytes(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(x[i] >= 0 && x[i] <= 255) || signbit(x[i]) || x[i] != (float)(int)x[i]) return false;
    return true;
}

/* Makes the capacity for entries at least `count`. `values`: the entries have values. */
static dt_status block_reserve(struct dt__block *block, size_t count, bool values)
{
    size_t entries_capacity = block->entries_capacity;
    DT_TRY(
        dt__grow(&block->index, &entries_capacity, count, sizeof *block->index, "entries of data"));
    if (values)
        DT_TRY(dt__grow(&block->value, &block->entries_capacity, count, sizeof *block->value,
                        "entries of data"));
    block->entries_capacity = entries_capacity;
    return DT_OK;
}

dt_status dt__block_alloc(const struct dt__row_layout *layout, size_t rows, uint64_t entries,
                          struct dt__block *out)
{
    struct dt__block block = {.capacity = rows};
    dt_status status;
    DT_GUARD(dt__alloc(rows, dt__row_layout_x(layout), "rows of data", &block.x));
    DT_GUARD(dt__alloc(rows, dt__row_layout_y(layout), "labels of data", &block.y));
    if (layout->weights)
        DT_GUARD(dt__alloc(rows, sizeof *block.weight, "weights of data", &block.weight));
    if (dt__row_layout_is_sparse(layout)) {
        DT_GUARD(dt__alloc(rows + 1, sizeof *block.offsets, "rows of data", &block.offsets));
        DT_GUARD(block_reserve(&block, (size_t)entries + 1, layout->values));
    }
    *out = block;
    return DT_OK;
done:
    dt__block_free(&block);
    return status;
}

void dt__block_free(struct dt__block *block)
{
    dt_free(block->x);
    dt_free(block->y);
    dt_free(block->weight);
    dt_free(block->z);
    dt_free(block->offsets);
    dt_free(block->index);
    dt_free(block->value);
    *block = (struct dt__block){0};
}

void dt__block_add(const struct dt__row_layout *layout, struct dt__block *block, size_t count)
{
    for (size_t r = block->rows; r < block->rows + count; r++) {
        if (layout->weights) block->weight[r] = 1;
        if (block->offsets) block->offsets[r + 1] = block->offsets[r];
    }
    block->rows += count;
}

unsigned char *dt__block_add_zeros(const struct dt__row_layout *layout, struct dt__block *block)
{
    dt__block_add(layout, block, 1);
    return memset(dt__block_x(layout, block, block->rows - 1), 0, dt__row_layout_x(layout));
}

dt_status dt__block_add_entry(struct dt__block *block, uint32_t index, float value)
{
    if (!block->offsets) return dt_fail(DT_EBUG, "a row has no such feature as %u", index);
    const size_t at = (size_t)block->offsets[block->rows]++;
    if (at >= block->entries_capacity) DT_TRY(block_reserve(block, at + 1, block->value != NULL));
    block->index[at] = index;
    if (block->value) block->value[at] = value;
    return DT_OK;
}

dt_status dt__block_copy_entries(struct dt__block *block, const struct dt__block *from,
                                 uint64_t row)
{
    const size_t first = (size_t)from->offsets[row], count = (size_t)from->offsets[row + 1] - first;
    const size_t at = (size_t)block->offsets[block->rows];
    block->offsets[block->rows + 1] = at + count;
    if (!count) return DT_OK;
    DT_TRY(block_reserve(block, at + count, block->value != NULL));
    memcpy(block->index + at, from->index + first, count * sizeof *block->index);
    if (block->value) memcpy(block->value + at, from->value + first, count * sizeof *block->value);
    return DT_OK;
}

dt_status dt__block_add_copy(const struct dt__row_layout *layout, struct dt__block *block,
                             const struct dt__block *from, size_t row)
{
    memcpy(dt__block_x(layout, block, block->rows), dt__block_x(layout, from, row),
           dt__row_layout_x(layout));
    memcpy(dt__block_y(layout, block, block->rows), dt__block_y(layout, from, row),
           dt__row_layout_y(layout));
    if (layout->weights) block->weight[block->rows] = from->weight[row];
    if (block->offsets) DT_TRY(dt__block_copy_entries(block, from, row));
    block->rows++;
    return DT_OK;
}
