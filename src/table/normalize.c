/* Normalisation: kernels. */
#include "table/normalize.h"

#include <string.h>

#include "base/clones.h"

DT__CLONES
static void clip_floats(size_t n, float most, float *restrict x)
{
    for (size_t i = 0; i < n; i++) {
        const float low = x[i] < -most ? -most : x[i];
        x[i] = low > most ? most : low;
    }
}

/* Kernels for raw values that are bytes, and for raw values that are floats. */
#define KERNELS(type, values)                                                                      \
    DT__CLONES static void scale_##values(size_t n, const type *restrict raw, float scale,         \
                                          float *restrict x)                                       \
    {                                                                                              \
        for (size_t i = 0; i < n; i++)                                                             \
            x[i] = (float)raw[i] * scale;                                                          \
    }                                                                                              \
    DT__CLONES static void normalise_##values(size_t n, const type *restrict raw, float scale,     \
                                              const float *restrict mean,                          \
                                              const float *restrict inv_std, float *restrict x)    \
    {                                                                                              \
        for (size_t i = 0; i < n; i++)                                                             \
            x[i] = ((float)raw[i] * scale - mean[i]) * inv_std[i];                                 \
    }                                                                                              \
    void dt__normalize_##values(const struct dt_schema *schema, size_t n, const type *raw,         \
                                float *x)                                                          \
    {                                                                                              \
        const float scale = (float)schema->scale;                                                  \
        if (schema->mean)                                                                          \
            normalise_##values(n, raw, scale, schema->mean, schema->inv_std, x);                   \
        else                                                                                       \
            scale_##values(n, raw, scale, x);                                                      \
        if (schema->clip > 0) clip_floats(n, (float)schema->clip, x);                              \
    }
KERNELS(unsigned char, bytes)
KERNELS(float, floats)

/* Computes z of raw rows of n floats. The z of successive rows are `stride` floats apart. */
static void rows_to_normal(const struct dt_schema *schema, const float *raw, size_t n, size_t rows,
                           float *z, size_t stride)
{
    const struct dt_quantiles quantiles = dt__schema_quantiles(schema);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < quantiles.columns; c++)
            z[r * stride + c] = raw[r * n + (size_t)schema->encoded_feature[c]];
    dt__quantile_normal(&quantiles, rows, z, stride);
}

dt_status dt__block_encode(const struct dt_schema *schema, const struct dt__row_layout *layout,
                           struct dt__block *block)
{
    const struct dt_quantiles quantiles = dt__schema_quantiles(schema);
    const size_t n = quantiles.columns, width = dt__row_layout_x(layout);
    if (n && !block->z)
        DT_TRY(dt__alloc(block->capacity, n * sizeof *block->z, "rows of data", &block->z));
    for (size_t r = 0; r < block->rows; r++)
        for (size_t c = 0; c < n; c++) {
            const unsigned char *x = block->x + r * width;
            const size_t feature = (size_t)schema->encoded_feature[c];
            if (layout->bytes)
                block->z[r * n + c] = x[feature];
            else
                memcpy(&block->z[r * n + c], x + feature * sizeof(float), sizeof(float));
        }
    dt__quantile_normal(&quantiles, block->rows, block->z, n);
    return DT_OK;
}

void dt__schema_normalize(const struct dt_schema *schema, const float *raw, size_t rows, float *x)
{
    const size_t n = (size_t)schema->features, inputs = n + (size_t)schema->encoded;
    for (size_t r = 0; r < rows; r++)
        dt__normalize_floats(schema, n, raw + r * n, x + r * inputs);
    rows_to_normal(schema, raw, n, rows, x + n, inputs);
}

void dt__normalize_entries(const struct dt_schema *schema, size_t n, const uint32_t *index,
                           float *value)
{
    const float scale = (float)schema->scale;
    for (size_t i = 0; i < n; i++)
        value[i] *= scale;
    for (size_t i = 0; schema->inv_std && i < n; i++)
        value[i] *= schema->inv_std[index[i]];
    if (schema->clip > 0) clip_floats(n, (float)schema->clip, value);
}

void dt__row_normalize(const struct dt_schema *schema, struct dt__block *row, float *x,
                       uint32_t *index, float *value)
{
    const size_t dense = (size_t)schema->dense, rest = (size_t)schema->features - dense;
    const size_t entries = row->offsets ? (size_t)row->offsets[1] : 0;
    dt__normalize_floats(schema, dense, (const float *)(const void *)row->x, x);
    rows_to_normal(schema, (const float *)(const void *)row->x, dense, 1, x + dense, 0);
    dt__normalize_entries(schema, entries, row->index, row->value);
    if (!index) memset(x + dense, 0, rest * sizeof *x);
    for (size_t i = 0; i < entries; i++) {
        if (!index) x[row->index[i]] = row->value[i];
        if (index) index[i] = row->index[i], value[i] = row->value[i];
    }
}
