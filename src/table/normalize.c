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

/* Of raw values that are bytes, and of floats. */
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
        for (int c = 0; c < schema->encoded; c++)                                                  \
            x[n + (size_t)c] = (float)raw[schema->encoded_feature[c]];                             \
        if (schema->encoded) {                                                                     \
            const struct dt_quantiles quantiles = dt__schema_quantiles(schema);                    \
            dt__quantile_normal(&quantiles, x + n);                                                \
        }                                                                                          \
    }
KERNELS(unsigned char, bytes)
KERNELS(float, floats)

void dt__schema_normalize(const struct dt_schema *schema, const float *raw, size_t rows, float *x)
{
    const size_t n = (size_t)schema->features, inputs = n + (size_t)schema->encoded;
    for (size_t r = 0; r < rows; r++)
        dt__normalize_floats(schema, n, raw + r * n, x + r * inputs);
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
    dt__normalize_entries(schema, entries, row->index, row->value);
    if (!index) memset(x + dense, 0, rest * sizeof *x);
    for (size_t i = 0; i < entries; i++) {
        if (!index) x[row->index[i]] = row->value[i];
        if (index) index[i] = row->index[i], value[i] = row->value[i];
    }
}
