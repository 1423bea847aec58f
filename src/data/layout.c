/* Raw rows in memory. */
#include "data/layout.h"

#include <math.h>
#include <string.h>

dt_status dt__block_alloc(const struct dt__layout *layout, size_t rows, struct dt__block *out)
{
    struct dt__block block = {0};
    DT_TRY(dt_alloc(rows, dt__layout_x(layout), "rows of data", &block.x));
    dt_status status = dt_alloc(rows, dt__layout_y(layout), "labels of data", &block.y);
    if (status) {
        dt_free(block.x);
        return status;
    }
    *out = block;
    return DT_OK;
}

void dt__block_free(struct dt__block *block)
{
    dt_free(block->x);
    dt_free(block->y);
    *block = (struct dt__block){0};
}

void dt__layout_put_x(const struct dt__layout *layout, const float *x, unsigned char *out)
{
    size_t n = (size_t)layout->features;
    if (!layout->bytes) {
        memcpy(out, x, n * sizeof *x);
        return;
    }
    for (size_t i = 0; i < n; i++)
        out[i] = (unsigned char)x[i];
}

bool dt__floats_are_bytes(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(x[i] >= 0 && x[i] <= 255) || signbit(x[i]) || x[i] != (float)(int)x[i]) return false;
    return true;
}
