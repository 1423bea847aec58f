#include "model/patches.h"

#include <string.h>

#include "model/portable.h"

/* Points per product. The weight gradient is summed over these points first, so its bits depend on
 * this number. */
enum { POINTS = 128 };

struct dt__patches {
    struct dt__convolution_shape s;
    size_t x_row;          /* floats in a row of x */
    int points;            /* points in a row of y */
    int channels, filters; /* of one group */
    int depth;             /* floats in a patch: KH * KW * channels */
    float *patch;          /* (POINTS, depth) */
};

dt_status dt__patches_create(const struct dt__convolution_shape *shape, struct dt__patches **out)
{
    struct dt__patches *p = NULL;
    dt_status status;
    DT_GUARD(dt__alloc(1, sizeof *p, "convolution", &p));
    p->s = *shape;
    p->x_row = dt__shape_size(shape->in);
    p->points = shape->out.h * shape->out.w;
    p->channels = shape->in.c / shape->groups;
    p->filters = shape->out.c / shape->groups;
    p->depth = shape->kernel[0] * shape->kernel[1] * p->channels;
    DT_GUARD(dt__alloc(POINTS, (size_t)p->depth * sizeof *p->patch, "a convolution's patches",
                       &p->patch));
    *out = p;
    return DT_OK;
done:
    dt__patches_destroy(p);
    return status;
}

void dt__patches_destroy(struct dt__patches *p)
{
    if (!p) return;
    dt_free(p->patch);
    dt_free(p);
}

/* ---- patches -------------------------------------------------------------------------------- */

/* Inputs that are contiguous in a patch and in x: those of one line of a kernel. */
struct stretch {
    size_t at;         /* offset in x */
    int before, count; /* columns of padding before; columns that x has */
};

/* Finds line ky of the patch of a point; points are numbered over all rows. Returns false if the
 * line is all padding. */
static bool stretch_of(const struct dt__patches *p, int point, int ky, struct stretch *out)
{
    const struct dt__convolution_shape *s = &p->s;
    const int in_row = point % p->points;
    const int y = in_row / s->out.w * s->stride[0] + ky - s->before[0];
    const int x = in_row % s->out.w * s->stride[1] - s->before[1];
    const int begin = x < 0 ? 0 : x;
    const int end = x + s->kernel[1] < s->in.w ? x + s->kernel[1] : s->in.w;
    if (y < 0 || y >= s->in.h || begin >= end) return false;
    out->at =
        (size_t)(point / p->points) * p->x_row + (size_t)(y * s->in.w + begin) * (size_t)s->in.c;
    out->before = begin - x;
    out->count = end - begin;
    return true;
}

/* Reads the patches of points [first, first + count) of a group; x points to the group's first
 * channel. */
static void patches_read(struct dt__patches *p, int first, int count, const float *x)
{
    const int kernel = p->s.kernel[1], stride = p->s.in.c;
    const size_t channels = (size_t)p->channels, line = (size_t)kernel * channels;
    float *to = p->patch;
    for (int point = first; point < first + count; point++)
        for (int ky = 0; ky < p->s.kernel[0]; ky++, to += line) {
            struct stretch s = {0};
            const bool inside = stretch_of(p, point, ky, &s);
            if (s.count < kernel) memset(to, 0, line * sizeof *to);
            if (!inside) continue;
            float *at = to + (size_t)s.before * channels;
            const float *from = x + s.at;
            if (p->s.groups == 1)
                memcpy(at, from, (size_t)s.count * channels * sizeof *at);
            else
                for (int i = 0; i < s.count; i++, at += channels, from += stride)
                    memcpy(at, from, channels * sizeof *at);
        }
}

/* Adds the patches, point after point, to the inputs that they correspond to. */
static void patches_add(const struct dt__patches *p, int first, int count, float *x)
{
    const int kernel = p->s.kernel[1], stride = p->s.in.c;
    const size_t channels = (size_t)p->channels, line = (size_t)kernel * channels;
    const float *from = p->patch;
    for (int point = first; point < first + count; point++)
        for (int ky = 0; ky < p->s.kernel[0]; ky++, from += line) {
            struct stretch s;
            if (!stretch_of(p, point, ky, &s)) continue;
            const float *restrict at = from + (size_t)s.before * channels;
            float *restrict to = x + s.at;
            for (int i = 0; i < s.count; i++, at += channels, to += stride)
                for (size_t c = 0; c < channels; c++)
                    to[c] += at[c];
        }
}

/* ---- products ------------------------------------------------------------------------------- */

/* Arguments of the product for points [first, first + count) in one group. */
struct points {
    int first, count;
    const float *x, *weight;
    const float *dy;
    float *y, *dx, *dweight;
    bool add;
};
typedef dt_status points_fn(struct dt__patches *p, const struct points *points);

static dt_status points_run(struct dt__patches *p, int rows, const struct points *whole,
                            points_fn *run)
{
    const size_t outputs = (size_t)p->s.out.c;
    for (int first = 0; first < rows * p->points; first += POINTS)
        for (int group = 0; group < p->s.groups; group++) {
            const size_t channel = (size_t)(group * p->channels);
            const size_t filter = (size_t)(group * p->filters);
            const size_t place = (size_t)first * outputs + filter;
            const int left = rows * p->points - first;
            struct points points = {.first = first, .count = left < POINTS ? left : POINTS};
            points.add = whole->add || first;
            if (whole->x) points.x = whole->x + channel;
            if (whole->dx) points.dx = whole->dx + channel;
            if (whole->weight) points.weight = whole->weight + filter;
            if (whole->dweight) points.dweight = whole->dweight + filter;
            if (whole->y) points.y = whole->y + place;
            if (whole->dy) points.dy = whole->dy + place;
            DT_TRY(run(p, &points));
        }
    return DT_OK;
}

static dt_status points_forward(struct dt__patches *p, const struct points *points)
{
    const size_t outputs = (size_t)p->s.out.c;
    patches_read(p, points->first, points->count, points->x);
    return dt__portable_gemm((struct dt__sizes){points->count, p->filters, p->depth},
                             dt__strided(p->patch, false, (size_t)p->depth),
                             dt__strided(points->weight, false, outputs), false, points->y,
                             outputs);
}

static dt_status points_input_gradient(struct dt__patches *p, const struct points *points)
{
    const size_t outputs = (size_t)p->s.out.c;
    DT_TRY(dt__portable_gemm((struct dt__sizes){points->count, p->depth, p->filters},
                             dt__strided(points->dy, false, outputs),
                             dt__strided(points->weight, true, outputs), false, p->patch,
                             (size_t)p->depth));
    patches_add(p, points->first, points->count, points->dx);
    return DT_OK;
}

static dt_status points_weight_gradient(struct dt__patches *p, const struct points *points)
{
    const size_t outputs = (size_t)p->s.out.c;
    patches_read(p, points->first, points->count, points->x);
    return dt__portable_gemm((struct dt__sizes){p->depth, p->filters, points->count},
                             dt__strided(p->patch, true, (size_t)p->depth),
                             dt__strided(points->dy, false, outputs), points->add, points->dweight,
                             outputs);
}

dt_status dt__patches_forward(struct dt__patches *p, int rows, const float *x, const float *weight,
                              float *y)
{
    return points_run(p, rows, &(struct points){.x = x, .weight = weight, .y = y}, points_forward);
}

dt_status dt__patches_input_gradient(struct dt__patches *p, int rows, const float *dy,
                                     const float *weight, float *dx)
{
    memset(dx, 0, (size_t)rows * p->x_row * sizeof *dx);
    return points_run(p, rows, &(struct points){.dy = dy, .weight = weight, .dx = dx},
                      points_input_gradient);
}

dt_status dt__patches_weight_gradient(struct dt__patches *p, int rows, const float *x,
                                      const float *dy, bool add, float *dweight)
{
    return points_run(p, rows, &(struct points){.x = x, .dy = dy, .dweight = dweight, .add = add},
                      points_weight_gradient);
}
