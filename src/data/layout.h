/* How raw rows lie in memory: before scale and normalisation, 8-bit data as 8 bits. */
#ifndef DATA_LAYOUT_H
#define DATA_LAYOUT_H

#include "dtrain/data.h"

struct dt__layout {
    int features;
    int targets; /* regress: floats of y; 0: one int32 label */
    bool bytes;  /* x is uint8_t, else float */
};

/* Rows one behind the other: x (rows, features) and y (rows, targets or 1). */
struct dt__block {
    unsigned char *x, *y;
};

static inline size_t dt__layout_x(const struct dt__layout *layout)
{
    return (size_t)layout->features * (layout->bytes ? 1 : sizeof(float));
}

static inline size_t dt__layout_y(const struct dt__layout *layout)
{
    return (size_t)(layout->targets ? layout->targets : 1) * 4;
}

static inline size_t dt__layout_row(const struct dt__layout *layout)
{
    return dt__layout_x(layout) + dt__layout_y(layout);
}

static inline struct dt__block dt__block_at(const struct dt__layout *layout, struct dt__block block,
                                            size_t row)
{
    return (struct dt__block){block.x + row * dt__layout_x(layout),
                              block.y + row * dt__layout_y(layout)};
}

/* Allocates x and y for `rows` rows; free both with dt__block_free. */
dt_status dt__block_alloc(const struct dt__layout *layout, size_t rows, struct dt__block *out);
void dt__block_free(struct dt__block *block);

/* Writes one parsed row's floats as the layout has them. For bytes every value must be one. */
void dt__layout_put_x(const struct dt__layout *layout, const float *x, unsigned char *out);
/* Whether every value is an integer in 0..255 (and no negative zero). */
bool dt__floats_are_bytes(const float *x, size_t n);

#endif
