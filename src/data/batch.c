/* Batches, assembled from blocks of raw rows. */
#include "data/batch.h"

#include <string.h>

#include "table/normalize.h"

dt_status dt__assembly_init(struct dt__assembly *assembly, const struct dt_source *source,
                            size_t rows, uint64_t memory)
{
    static const uint64_t modest = UINT64_C(1) << 30;
    const struct dt__row_layout *layout = &source->layout;
    const int encoded = source->schema.encoded;
    const size_t width = (size_t)(layout->dense + encoded) * sizeof(float);
    size_t bytes;
    *assembly = (struct dt__assembly){.source = source, .layout = source->layout};
    if (!dt__size_mul(rows, width, &bytes) || (bytes > memory && bytes > modest))
        return dt_fail(
            DT_EMEMORY,
            "a batch of %zu rows of %d dense features takes %.0f MiB, more than data.memory_mb",
            rows, layout->dense, (double)rows * (double)width / 1048576);
    assembly->layout.bytes = false;
    assembly->layout.dense += encoded;
    assembly->layout.features += encoded;
    assembly->layout.weights |= source->class_weight != NULL;
    return dt__block_alloc(&assembly->layout, rows, dt__source_most_entries(source, rows),
                           &assembly->rows);
}

void dt__assembly_free(struct dt__assembly *assembly)
{
    dt__block_free(&assembly->rows);
}

float dt__row_weight(const struct dt_source *source, const struct dt__block *from, uint64_t slot)
{
    float weight = from->weight ? from->weight[slot] * source->weight_scale : 1;
    int32_t label;
    if (!source->class_weight) return weight;
    memcpy(&label, dt__block_y(&source->layout, from, slot), sizeof label);
    return weight * source->class_weight[label];
}

/* A block's rows are read in random order, so each row's cache lines are prefetched AHEAD rows
 * before it is read (measured with 784 bytes a row; 2 to 8 do equally well). LINE: bytes of a cache
 * line. */
enum { AHEAD = 4, LINE = 64 };

dt_status dt__assembly_rows(struct dt__assembly *assembly, const struct dt__block *from,
                            const uint64_t *slots, size_t at, size_t count)
{
    const struct dt_source *source = assembly->source;
    const struct dt_schema *schema = &source->schema;
    const struct dt__row_layout *layout = &source->layout;
    const size_t width = dt__row_layout_x(layout), n = (size_t)layout->dense;
    const size_t encoded = (size_t)schema->encoded;
    struct dt__block *to = &assembly->rows;
    to->rows = at;
    for (size_t i = 0; i < count; i++, to->rows++) {
        const uint64_t slot = slots[i], later = slots[i + AHEAD < count ? i + AHEAD : i];
        const unsigned char *next = from->x + later * width;
        const unsigned char *raw = from->x + slot * width, *y = dt__block_y(layout, from, slot);
        float *x = (float *)(void *)dt__block_x(&assembly->layout, to, to->rows);
        for (size_t b = 0; b < width; b += LINE)
            __builtin_prefetch(next + b);
        for (size_t c = 0; c < encoded; c += LINE / sizeof *from->z)
            __builtin_prefetch(from->z + later * encoded + c);
        if (layout->bytes)
            dt__normalize_bytes(schema, n, raw, x);
        else
            dt__normalize_floats(schema, n, (const float *)(const void *)raw, x);
        for (size_t c = 0; c < encoded; c++)
            x[n + c] = from->z[slot * encoded + c];
        memcpy(dt__block_y(layout, to, to->rows), y, dt__row_layout_y(layout));
        if (to->weight) to->weight[to->rows] = dt__row_weight(source, from, slot);
        if (!to->offsets) continue;
        DT_TRY(dt__block_copy_entries(to, from, slot));
        const size_t first = (size_t)to->offsets[to->rows];
        if (to->value) /* without values, each entry is 1 and is not normalised */
            dt__normalize_entries(schema, (size_t)to->offsets[to->rows + 1] - first,
                                  to->index + first, to->value + first);
    }
    return DT_OK;
}

void dt__assembly_batch(const struct dt__assembly *assembly, int count, struct dt_batch *out)
{
    const struct dt__block *rows = &assembly->rows;
    const bool targets = assembly->layout.targets;
    *out = (struct dt_batch){.rows = count,
                             .ndense = assembly->layout.dense,
                             .x = (const float *)(const void *)rows->x,
                             .offsets = rows->offsets,
                             .index = rows->index,
                             .value = rows->value,
                             .weight = rows->weight,
                             .target = targets ? (const float *)(const void *)rows->y : NULL,
                             .label = targets ? NULL : (const int32_t *)(const void *)rows->y};
}
