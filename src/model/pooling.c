#include "base/clones.h"
#include "model/pooling.h"

#include <stddef.h>
#include <string.h>

/* Floats of a picture, and where a point of it begins. */
static size_t picture_floats(int height, int width, int channels)
{
    return (size_t)height * (size_t)width * (size_t)channels;
}

static size_t point_offset(int width, int channels, int y, int x)
{
    return ((size_t)y * (size_t)width + (size_t)x) * (size_t)channels;
}

/* What is done with one point of a window: `in` of the larger picture's channels, `out` of the smaller
 * one's; number: of the point in the window. Each of the six passes is one of these. */
typedef void point_fn(int channels, int number, int points, float *in, float *out, uint8_t *place);

static inline void windows_visit(const struct dt__pooling_shape *s, int rows, float *in, float *out,
                                 uint8_t *place, point_fn *visit)
{
    const size_t in_floats = picture_floats(s->height, s->width, s->channels);
    const int points = s->window_height * s->window_width;
    for (int row = 0; row < rows; row++, in += in_floats)
        for (int y = 0; y < s->out_height; y++)
            for (int x = 0; x < s->out_width; x++, out += s->channels) {
                for (int p = 0; p < points; p++)
                    visit(s->channels, p, points,
                          in + point_offset(s->width, s->channels,
                                            y * s->stride_height + p / s->window_width,
                                            x * s->stride_width + p % s->window_width),
                          out, place);
                if (place) place += s->channels;
            }
}

/* ---- greatest ------------------------------------------------------------------------------- */

static inline void greatest_at(int channels, int number, int points, float *restrict in,
                               float *restrict out, uint8_t *restrict place)
{
    (void)points;
    if (number == 0) {
        memcpy(out, in, (size_t)channels * sizeof *out);
        memset(place, 0, (size_t)channels);
        return;
    }
    for (int c = 0; c < channels; c++) {
        const int greater = !(in[c] <= out[c]) & (out[c] == out[c]);
        out[c] = greater ? in[c] : out[c];
        place[c] = greater ? (uint8_t)number : place[c];
    }
}

static inline void greatest_alone(int channels, int number, int points, float *restrict in,
                                  float *restrict out, uint8_t *place)
{
    (void)points, (void)place;
    if (number == 0) {
        memcpy(out, in, (size_t)channels * sizeof *out);
        return;
    }
    for (int c = 0; c < channels; c++)
        out[c] = (!(in[c] <= out[c]) & (out[c] == out[c])) ? in[c] : out[c];
}

static inline void greatest_back(int channels, int number, int points, float *restrict in,
                                 float *restrict out, uint8_t *restrict place)
{
    (void)points;
    for (int c = 0; c < channels; c++)
        in[c] += place[c] == number ? out[c] : 0.0f;
}

DT__CLONES
void dt__maxpool_forward(const struct dt__pooling_shape *shape, int rows, const float *x, float *y,
                         uint8_t *place)
{
    float *in = (float *)(uintptr_t)x; /* read only */
    if (place)
        windows_visit(shape, rows, in, y, place, greatest_at);
    else
        windows_visit(shape, rows, in, y, NULL, greatest_alone);
}

DT__CLONES
void dt__maxpool_backward(const struct dt__pooling_shape *shape, int rows, const uint8_t *place,
                          const float *dy, float *dx)
{
    const size_t floats = picture_floats(shape->height, shape->width, shape->channels);
    memset(dx, 0, (size_t)rows * floats * sizeof *dx);
    windows_visit(shape, rows, dx, (float *)(uintptr_t)dy, (uint8_t *)(uintptr_t)place,
                  greatest_back);
}

/* ---- mean ----------------------------------------------------------------------------------- */

static inline void mean_at(int channels, int number, int points, float *restrict in,
                           float *restrict out, uint8_t *place)
{
    (void)place;
    const float share = 1.0f / (float)points;
    for (int c = 0; c < channels; c++)
        out[c] = (number ? out[c] : 0.0f) + share * in[c];
}

static inline void mean_back(int channels, int number, int points, float *restrict in,
                             float *restrict out, uint8_t *place)
{
    (void)number, (void)place;
    const float share = 1.0f / (float)points;
    for (int c = 0; c < channels; c++)
        in[c] += share * out[c];
}

DT__CLONES
void dt__avgpool_forward(const struct dt__pooling_shape *shape, int rows, const float *x, float *y)
{
    windows_visit(shape, rows, (float *)(uintptr_t)x, y, NULL, mean_at);
}

DT__CLONES
void dt__avgpool_backward(const struct dt__pooling_shape *shape, int rows, const float *dy,
                          float *dx)
{
    const size_t floats = picture_floats(shape->height, shape->width, shape->channels);
    memset(dx, 0, (size_t)rows * floats * sizeof *dx);
    windows_visit(shape, rows, dx, (float *)(uintptr_t)dy, NULL, mean_back);
}

/* ---- enlarging ------------------------------------------------------------------------------ */

DT__CLONES
void dt__upsample_forward(const struct dt__pooling_shape *s, int rows, const float *x, float *y)
{
    const size_t floats = picture_floats(s->height, s->width, s->channels);
    for (int row = 0; row < rows; row++, x += floats)
        for (int oy = 0; oy < s->out_height; oy++)
            for (int ox = 0; ox < s->out_width; ox++, y += s->channels)
                memcpy(y,
                       x + point_offset(s->width, s->channels, oy / s->window_height,
                                        ox / s->window_width),
                       (size_t)s->channels * sizeof *y);
}

DT__CLONES
void dt__upsample_backward(const struct dt__pooling_shape *s, int rows, const float *dy, float *dx)
{
    const size_t floats = picture_floats(s->height, s->width, s->channels);
    memset(dx, 0, (size_t)rows * floats * sizeof *dx);
    for (int row = 0; row < rows; row++, dx += floats)
        for (int oy = 0; oy < s->out_height; oy++)
            for (int ox = 0; ox < s->out_width; ox++, dy += s->channels) {
                float *to = dx + point_offset(s->width, s->channels, oy / s->window_height,
                                              ox / s->window_width);
                for (int c = 0; c < s->channels; c++)
                    to[c] += dy[c];
            }
}
