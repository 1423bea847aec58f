/* From raw rows to what a network reads. */
#include "data/gather.h"

#include <string.h>

/* Rows lie scattered over memory: their lines are asked for so many rows ahead (measured with 784
 * bytes a row; 2 to 8 do equally well). */
enum { AHEAD = 4, LINE = 64 };

void dt__gather_init(struct dt__gather *gather, const struct dt__layout *layout,
                     const struct dt_schema *schema)
{
    *gather = (struct dt__gather){*layout, (float)schema->scale, schema->mean, schema->inv_std};
}

/* Kernel: the raw value's type is the only difference of the four. */
static void scale_bytes(size_t n, const unsigned char *restrict raw, float scale, float *restrict x)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)raw[i] * scale;
}

static void scale_floats(size_t n, const float *restrict raw, float scale, float *restrict x)
{
    for (size_t i = 0; i < n; i++)
        x[i] = raw[i] * scale;
}

static void normalise_bytes(size_t n, const unsigned char *restrict raw, float scale,
                            const float *restrict mean, const float *restrict inv_std,
                            float *restrict x)
{
    for (size_t i = 0; i < n; i++)
        x[i] = ((float)raw[i] * scale - mean[i]) * inv_std[i];
}

static void normalise_floats(size_t n, const float *restrict raw, float scale,
                             const float *restrict mean, const float *restrict inv_std,
                             float *restrict x)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (raw[i] * scale - mean[i]) * inv_std[i];
}

void dt__gather_floats(const struct dt__gather *gather, const float *raw, float *x)
{
    size_t n = (size_t)gather->layout.features;
    if (gather->mean)
        normalise_floats(n, raw, gather->scale, gather->mean, gather->inv_std, x);
    else
        scale_floats(n, raw, gather->scale, x);
}

static void gather_bytes(const struct dt__gather *gather, const unsigned char *raw, float *x)
{
    size_t n = (size_t)gather->layout.features;
    if (gather->mean)
        normalise_bytes(n, raw, gather->scale, gather->mean, gather->inv_std, x);
    else
        scale_bytes(n, raw, gather->scale, x);
}

void dt__gather_rows(const struct dt__gather *gather, struct dt__block from, const uint64_t *slots,
                     size_t count, float *x, unsigned char *y)
{
    size_t width = dt__layout_x(&gather->layout), y_width = dt__layout_y(&gather->layout);
    for (size_t i = 0; i < count; i++) {
        const unsigned char *raw = from.x + slots[i] * width;
        const unsigned char *next = from.x + slots[i + AHEAD < count ? i + AHEAD : i] * width;
        for (size_t b = 0; b < width; b += LINE)
            __builtin_prefetch(next + b);
        if (gather->layout.bytes)
            gather_bytes(gather, raw, x);
        else
            dt__gather_floats(gather, (const float *)(const void *)raw, x);
        memcpy(y, from.y + slots[i] * y_width, y_width);
        x += gather->layout.features;
        y += y_width;
    }
}
