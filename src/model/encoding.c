/* Encodings of numbers; each kind is a row of a table. */
#include "model/encoding.h"

#include <math.h>
#include <string.h>

#include "base/clones.h"
#include "model/emitter.h"
#include "model/mean.h"
#include "model/vmath.h"

/* A column with few distinct values has fewer edges than the table has places. Multiples of this
 * value, which no z reaches, fill the other places. */
#define BEYOND 1e30f
enum { MOST_WIDTH = 1024 };

struct encoding {
    size_t edges; /* floats in the table per column, in addition to width */
    void (*make)(const struct dt_config *config, const struct dt_quantiles *quantiles, size_t c,
                 int64_t feature, size_t width, float *table);
    bool (*fits)(const float *table, size_t width);
    void (*expand)(const float *table, size_t columns, size_t width, const float *z, float *out);
    const char *(*emit)(struct dt__emitter *e, const char *z);
};

/* ---- z -------------------------------------------------------------------------------------- */

enum { BLOCK = 256 }; /* rows computed at a time */

/* Writes, for each of the numbers x (rows), how many of the ascending q (n) are below it; if
 * `equal`, how many are at most it. It is a binary search without branches, for many rows at a
 * time. */
static inline void counts_below(const float *restrict q, int32_t n, size_t rows,
                                const float *restrict x, bool equal, int32_t *restrict out)
{
    memset(out, 0, rows * sizeof *out);
    for (int32_t half; n > 1; n -= half) {
        half = n / 2;
        for (size_t r = 0; r < rows; r++) {
            const float at = q[out[r] + half - 1];
            out[r] += (equal ? at <= x[r] : at < x[r]) ? half : 0;
        }
    }
    for (size_t r = 0; r < rows; r++)
        out[r] += equal ? q[out[r]] <= x[r] : q[out[r]] < x[r];
}

/* Returns the increase of the rank per unit of the number between two adjacent quantiles. */
static inline float rank_slope(float low, float high)
{
    const float slope = 1.0f / (high - low);
    return slope < 3e38f ? slope : 3e38f;
}

/* Replaces each x (rows) by the size of its smaller tail, as a fraction of all numbers: negative
 * (maybe -0) if that is the lower tail, positive if it is the upper. from: number of quantiles
 * below x; to: number of quantiles at most x. */
static inline void signed_tails(const float *restrict q, int32_t last, size_t rows,
                                const int32_t *restrict from, const int32_t *restrict to,
                                float *restrict x)
{
    const float all = (float)last;
    for (size_t r = 0; r < rows; r++) {
        const int32_t below = to[r] > 0 ? to[r] - 1 : 0, above = to[r] <= last ? to[r] : last;
        const float slope = rank_slope(q[below], q[above]);
        const float part = dt__clampf((x[r] - q[below]) * slope, 0.0f, 1.0f);
        const float middle = 0.5f * (float)(from[r] + to[r] - 1);
        const bool inside = to[r] > 0 && to[r] <= last, equal = from[r] < to[r];
        float low = inside ? (float)below + part : to[r] > 0 ? all : 0.0f;
        float high = inside ? (float)(last - to[r]) + (1.0f - part) : all - low;
        low = equal ? middle : low;
        high = equal ? all - middle : high;
        x[r] = low < high ? -(low / all) : high / all;
    }
}

/* Replaces numbers (rows <= BLOCK) of one column by their z. q: (n) quantiles. */
DT__CLONES
static void numbers_to_normal(const float *restrict q, size_t n, size_t rows, float *restrict x)
{
    int32_t from[BLOCK], to[BLOCK], tied = 0;
    counts_below(q, (int32_t)n, rows, x, true, to);
    for (size_t r = 0; r < rows; r++) {
        from[r] = to[r] - (to[r] > 0 && q[to[r] > 0 ? to[r] - 1 : 0] == x[r]);
        tied |= to[r] > 1 && q[to[r] > 1 ? to[r] - 2 : 0] == x[r];
    }
    if (tied) counts_below(q, (int32_t)n, rows, x, false, from);
    signed_tails(q, (int32_t)n - 1, rows, from, to, x);
    for (size_t r = 0; r < rows; r++)
        x[r] = __builtin_copysignf(dt__normal_tail(__builtin_fabsf(x[r])), x[r]);
}

void dt__quantile_normal(const struct dt_quantiles *quantiles, size_t rows, float *inout,
                         size_t stride)
{
    float block[BLOCK];
    for (size_t begin = 0; begin < rows; begin += BLOCK) {
        const size_t count = rows - begin < BLOCK ? rows - begin : BLOCK;
        for (size_t c = 0; c < quantiles->columns; c++) {
            float *x = inout + begin * stride + c;
            for (size_t r = 0; r < count; r++)
                block[r] = x[r * stride];
            numbers_to_normal(quantiles->value + c * quantiles->count, quantiles->count, count,
                              block);
            for (size_t r = 0; r < count; r++)
                x[r * stride] = block[r];
        }
    }
}

/* ---- cosine --------------------------------------------------------------------------------- */

static void cosine_make(const struct dt_config *config, const struct dt_quantiles *quantiles,
                        size_t c, int64_t feature, size_t width, float *table)
{
    (void)quantiles, (void)c;
    const struct dt_rng rng =
        dt__rng_make((uint64_t)config->run.seed, DT_STREAM_ENCODE, (uint64_t)feature, 0);
    for (size_t i = 0; i < width; i++)
        table[i] = (float)(config->data.encode_scale * fmax(-3, fmin(3, dt__rng_normal(&rng, i))));
}

static bool cosine_fits(const float *table, size_t width)
{
    for (size_t i = 0; i < width; i++)
        if (!(fabsf(table[i]) <= 1e5f)) return false;
    return true;
}

DT__CLONES
static void cosine_expand(const float *restrict table, size_t columns, size_t width,
                          const float *restrict z, float *restrict out)
{
    for (size_t c = 0; c < columns; c++)
        for (size_t i = 0; i < width; i++)
            out[c * width + i] = table[c * width + i] * z[c];
    for (size_t i = 0; i < columns * width; i++)
        out[i] = dt__cos_turns(out[i]);
}

/* ---- piecewise linear ----------------------------------------------------------------------- */

/* Sets the edges to the z of some of the column's distinct quantiles, chosen at equal steps. */
static void ple_make(const struct dt_config *config, const struct dt_quantiles *quantiles, size_t c,
                     int64_t feature, size_t width, float *table)
{
    (void)config, (void)feature;
    const float *value = quantiles->value + c * quantiles->count;
    const struct dt_quantiles column = {1, quantiles->count, value};
    size_t distinct = 1, next = 0, seen = 0;
    for (size_t i = 1; i < column.count; i++)
        distinct += value[i] != value[i - 1];
    const size_t edges = distinct <= width ? distinct : width + 1;
    for (size_t i = 0; i < column.count && next < edges; i++) {
        if (i && value[i] == value[i - 1]) continue;
        if (seen++ != (next * (distinct - 1) + (edges - 1) / 2) / (edges > 1 ? edges - 1 : 1))
            continue;
        table[next] = value[i];
        dt__quantile_normal(&column, 1, &table[next++], 1);
    }
    for (; next <= width; next++)
        table[next] = BEYOND * (float)next;
}

static bool ple_fits(const float *table, size_t width)
{
    for (size_t i = 0; i < width; i++)
        if (!(table[i] < table[i + 1])) return false;
    return isfinite(table[0]) && isfinite(table[width]);
}

static inline float ple_bin(const float *edge, size_t width, float z, size_t *out_bin)
{
    size_t bin = 0;
    for (size_t b = 1; b < width; b++)
        bin += edge[b] <= z;
    *out_bin = bin;
    return dt__clampf((z - edge[bin]) / (edge[bin + 1] - edge[bin]), 0.0f, 1.0f);
}

static void ple_expand(const float *table, size_t columns, size_t width, const float *z, float *out)
{
    for (size_t c = 0; c < columns; c++) {
        size_t bin;
        const float part = ple_bin(table + c * (width + 1), width, z[c], &bin);
        for (size_t b = 0; b < width; b++)
            out[c * width + b] = b < bin ? 1.0f : b > bin ? 0.0f : part;
    }
}

void dt__fractions_make(const struct dt_model_desc *desc, int rows, const float *z, size_t stride,
                        struct dt__fractions *out)
{
    for (size_t r = 0, at = 0; r < (size_t)rows; r++)
        for (size_t c = 0; c < out->columns; c++, at++) {
            size_t bin;
            out->part[at] = ple_bin(desc->encode_table + c * (out->width + 1), out->width,
                                    z[r * stride + c], &bin);
            out->bin[at] = (uint32_t)(c * out->width + bin);
        }
}

DT__CLONES
static void fractions_sum(size_t columns, size_t width, size_t nout, const float *restrict weight,
                          float *restrict sums)
{
    for (size_t c = 0; c < columns; c++, weight += width * nout, sums += width * nout) {
        memset(sums, 0, nout * sizeof *sums);
        for (size_t i = 0; i < (width - 1) * nout; i++)
            sums[nout + i] = sums[i] + weight[i];
    }
}

DT__CLONES
static void fractions_add(const struct dt__fractions *fractions, size_t rows, size_t nout,
                          const float *restrict weight, float *restrict y)
{
    const float *restrict sums = fractions->sums;
    for (size_t r = 0, at = 0; r < rows; r++, y += nout)
        for (size_t c = 0; c < fractions->columns; c++, at++) {
            const size_t bin = fractions->bin[at] * nout;
            const float part = fractions->part[at];
            for (size_t i = 0; i < nout; i++)
                y[i] += sums[bin + i] + part * weight[bin + i];
        }
}

void dt__fractions_forward(const struct dt__fractions *fractions, int rows, const float *weight,
                           size_t nout, float *y)
{
    fractions_sum(fractions->columns, fractions->width, nout, weight, fractions->sums);
    fractions_add(fractions, (size_t)rows, nout, weight, y);
}

/* At each row's bin, adds the row's delta to `sums`, and the delta times the row's fraction to
 * `grad`. */
DT__CLONES
static void deltas_add(const struct dt__fractions *fractions, size_t rows, size_t nout,
                       const float *restrict delta, float *restrict grad)
{
    float *restrict sums = fractions->sums;
    for (size_t r = 0, at = 0; r < rows; r++, delta += nout)
        for (size_t c = 0; c < fractions->columns; c++, at++) {
            const size_t bin = fractions->bin[at] * nout;
            const float part = fractions->part[at];
            for (size_t i = 0; i < nout; i++) {
                sums[bin + i] += delta[i];
                grad[bin + i] += part * delta[i];
            }
        }
}

/* Adds to each bin's gradient the deltas of all bins above it, because inputs below a row's bin are
 * 1. */
DT__CLONES
static void deltas_accumulate(size_t columns, size_t width, size_t nout, float *restrict sums,
                              float *restrict grad)
{
    for (size_t c = 0; c < columns; c++, sums += width * nout, grad += width * nout)
        for (size_t b = width - 1; b > 0; b--) {
            float *restrict below = sums + (b - 1) * nout;
            for (size_t i = 0; i < nout; i++) {
                grad[(b - 1) * nout + i] += sums[b * nout + i];
                below[i] += sums[b * nout + i];
            }
        }
}

void dt__fractions_backward(const struct dt__fractions *fractions, int rows, const float *delta,
                            size_t nout, bool accumulate, float *grad)
{
    const size_t bytes = fractions->columns * fractions->width * nout * sizeof *grad;
    memset(fractions->sums, 0, bytes);
    if (!accumulate) memset(grad, 0, bytes);
    deltas_add(fractions, (size_t)rows, nout, delta, grad);
    deltas_accumulate(fractions->columns, fractions->width, nout, fractions->sums, grad);
}

/* ---- as nodes of ONNX ----------------------------------------------------------------------- */

/* ONNX's numbers of element types, for Cast. */
enum { FLOAT = 1, DOUBLE = 11 };
static const char *emit_cast(struct dt__emitter *e, const char *x, int64_t type)
{
    x = DT__NODE(e, "Cast", x);
    e->integer(e, "to", type);
    return x;
}

static const char *emit_scalar(struct dt__emitter *e, float value)
{
    return dt__emit_scalar(e, (double)value);
}

static const char *emit_polynomial(struct dt__emitter *e, const char *x, size_t n,
                                   const float *coefficient)
{
    const char *y = emit_scalar(e, coefficient[0]);
    for (size_t i = 1; i < n; i++)
        y = DT__NODE(e, "Add", DT__NODE(e, "Mul", y, x), emit_scalar(e, coefficient[i]));
    return y;
}

/* Emits dt__normal_tail, one node per operation. */
static const char *emit_normal_tail(struct dt__emitter *e, const char *p)
{
    const char *q = DT__NODE(e, "Sub", emit_scalar(e, 0.5f), p);
    const char *r = DT__NODE(e, "Sub", emit_scalar(e, 0.180625f), DT__NODE(e, "Mul", q, q));
    const char *near = DT__NODE(e, "Mul", q, emit_polynomial(e, r, 4, dt__normal_near[0]));
    near = DT__NODE(e, "Div", near, emit_polynomial(e, r, 4, dt__normal_near[1]));
    const char *t = DT__NODE(e, "Max", p, emit_scalar(e, DT__NORMAL_LEAST));
    t = DT__NODE(e, "Neg", DT__NODE(e, "Log", emit_cast(e, t, DOUBLE)));
    t = emit_cast(e, DT__NODE(e, "Sqrt", t), FLOAT);
    t = DT__NODE(e, "Sub", t, emit_scalar(e, 1.6f));
    const char *far = DT__NODE(e, "Div", emit_polynomial(e, t, 4, dt__normal_far[0]),
                               emit_polynomial(e, t, 4, dt__normal_far[1]));
    const char *is_far = DT__NODE(e, "Greater", q, emit_scalar(e, DT__NORMAL_NEAR));
    return DT__NODE(e, "Min", DT__NODE(e, "Where", is_far, far, near),
                    emit_scalar(e, DT__NORMAL_MOST));
}

/* Emits (columns, quantiles - 1) floats, one for each step from a quantile to the next. What they
 * are depends on `part`. 0: the step's first quantile. 1: the slope of the rank. 2: how much of the
 * step a number equal to that quantile has passed: one half if the step's two quantiles are equal,
 * else 0. */
static const char *emit_steps(struct dt__emitter *e, const struct dt_quantiles *quantiles, int part)
{
    const size_t steps = quantiles->count - 1;
    float *values = e->scratch(e, quantiles->columns * steps, sizeof *values);
    for (size_t i = 0; values && i < quantiles->columns * steps; i++) {
        const float *q = quantiles->value + i / steps * quantiles->count + i % steps;
        values[i] = part == 0 ? q[0] : part == 1 ? rank_slope(q[0], q[1]) : q[0] == q[1] ? 0.5f : 0;
    }
    return e->floats(e, NULL, 2, (const int64_t[]){(int64_t)quantiles->columns, (int64_t)steps},
                     values);
}

static const char *emit_fraction(struct dt__emitter *e, const char *steps)
{
    const char *inside = DT__NODE(e, "Clip", steps, emit_scalar(e, 0), emit_scalar(e, 1));
    const char *fraction = DT__NODE(e, "ReduceMean", inside);
    e->ints(e, "axes", 1, (const int[]){2});
    e->integer(e, "keepdims", 0);
    return fraction;
}

static const char *emit_deep(struct dt__emitter *e, const char *x, size_t columns)
{
    return dt__emit_reshape(e, x, 3, (const int64_t[]){-1, (int64_t)columns, 1});
}

const char *dt__emit_quantile_normal(struct dt__emitter *e, const struct dt_quantiles *quantiles,
                                     const char *x)
{
    const char *steps =
        DT__NODE(e, "Sub", emit_deep(e, x, quantiles->columns), emit_steps(e, quantiles, 0));
    steps = DT__NODE(e, "Mul", steps, emit_steps(e, quantiles, 1));
    steps = DT__NODE(e, "Add", steps, emit_steps(e, quantiles, 2));
    const char *low = emit_fraction(e, steps);
    const char *high = emit_fraction(e, DT__NODE(e, "Sub", emit_scalar(e, 1), steps));
    const char *tail = emit_normal_tail(e, DT__NODE(e, "Min", low, high));
    return DT__NODE(e, "Where", DT__NODE(e, "Greater", high, low), DT__NODE(e, "Neg", tail), tail);
}

/* The table has width + edges values per column. Emits the first `width` of each column, as
 * (columns, width); if `differences`, emits for each of them the next value minus it. */
static const char *emit_table(struct dt__emitter *e, bool differences, size_t edges)
{
    const struct dt_model_desc *desc = &e->model->desc;
    const size_t columns = (size_t)desc->encode_columns, width = (size_t)desc->encode_width;
    float *values = e->scratch(e, columns * width, sizeof *values);
    for (size_t i = 0; values && i < columns * width; i++) {
        const float *at = desc->encode_table + i / width * (width + edges) + i % width;
        values[i] = differences ? at[1] - at[0] : at[0];
    }
    return e->floats(e, NULL, 2, (const int64_t[]){(int64_t)columns, (int64_t)width}, values);
}

/* Emits dt__cos_turns, one node per operation. */
static const char *cosine_emit(struct dt__emitter *e, const char *z)
{
    const char *u = DT__NODE(e, "Mul", z, emit_table(e, false, 0));
    u = DT__NODE(e, "Abs", DT__NODE(e, "Sub", u, DT__NODE(e, "Round", u)));
    const char *s = DT__NODE(e, "Sub", emit_scalar(e, 0.25f), u);
    const char *p = emit_polynomial(e, DT__NODE(e, "Mul", s, s), DT__COS_TERMS, dt__cos_term);
    return DT__NODE(e, "Mul", s, p);
}

static const char *ple_emit(struct dt__emitter *e, const char *z)
{
    const char *part = DT__NODE(e, "Sub", z, emit_table(e, false, 1));
    part = DT__NODE(e, "Div", part, emit_table(e, true, 1));
    return DT__NODE(e, "Clip", part, emit_scalar(e, 0), emit_scalar(e, 1));
}

/* ---- the table ------------------------------------------------------------------------------ */

static const struct encoding ENCODINGS[] = {
    [DT_ENCODE_NORMAL] = {.edges = 0},
    [DT_ENCODE_PLE] = {1, ple_make, ple_fits, ple_expand, ple_emit},
    [DT_ENCODE_COSINE] = {0, cosine_make, cosine_fits, cosine_expand, cosine_emit},
};

dt_status dt__encoding_make(const struct dt_config *config, const struct dt_quantiles *quantiles,
                            const int64_t *feature, struct dt_model_desc *inout)
{
    const int kind = config->data.encode;
    const struct encoding *encoding = &ENCODINGS[kind];
    const int64_t width = kind == DT_ENCODE_PLE      ? config->data.encode_bins
                          : kind == DT_ENCODE_COSINE ? config->data.encode_width
                                                     : 0;
    if (kind == DT_ENCODE_NONE || !quantiles->columns) return DT_OK;
    inout->encode = kind;
    inout->encode_columns = (int)quantiles->columns;
    inout->encode_width = (int)width;
    if (!encoding->make) return DT_OK;
    const size_t each = (size_t)width + encoding->edges;
    inout->encode_count = (int)(quantiles->columns * each);
    DT_TRY(dt__alloc((size_t)inout->encode_count, sizeof *inout->encode_table, "encoding",
                     &inout->encode_table));
    for (size_t c = 0; c < quantiles->columns; c++)
        encoding->make(config, quantiles, c, feature[c], (size_t)width,
                       inout->encode_table + c * each);
    return DT_OK;
}

size_t dt__encoding_inputs(const struct dt_model_desc *desc)
{
    return (size_t)desc->encode_columns * (1 + (size_t)desc->encode_width);
}

size_t dt__encoding_count(const struct dt_model_desc *desc)
{
    const struct encoding *encoding = &ENCODINGS[desc->encode];
    if (!encoding->make || desc->encode_width < 0 || desc->encode_columns < 0) return 0;
    return (size_t)desc->encode_columns * ((size_t)desc->encode_width + encoding->edges);
}

dt_status dt__encoding_check(const struct dt_model_desc *desc, bool table)
{
    const bool mean = desc->layers && dt__is_mean(desc->layers);
    struct dt_model *model;
    const bool known = desc->encode >= 0 && desc->encode < DT_ENCODE_AUTO;
    const struct encoding *encoding = &ENCODINGS[known ? desc->encode : DT_ENCODE_NONE];
    const int columns = desc->encode_columns, width = desc->encode_width;
    const bool plain = !encoding->make;
    bool good = known && columns >= 0 && columns <= DT_MAX_WIDTH && width >= 0 &&
                width <= MOST_WIDTH && (width > 0) == !plain &&
                (columns > 0) == (desc->encode != DT_ENCODE_NONE);
    const size_t each = good ? (size_t)width + encoding->edges : 0;
    if (mean && table) { /* check the members' tables */
        DT_TRY(dt__model_create(desc, &model));
        dt__model_destroy(model);
    }
    if (mean && good && plain && desc->encode_count >= 0 && desc->dense >= 0) return DT_OK;
    good = good && desc->encode_count >= 0 && (!columns || desc->dense >= 0) &&
           (size_t)desc->encode_count == (plain ? 0 : (size_t)columns * each);
    for (size_t c = 0; good && table && !plain && c < (size_t)columns; c++)
        good = desc->encode_table && encoding->fits(desc->encode_table + c * each, (size_t)width);
    return good ? DT_OK : dt_fail(DT_EFORMAT, "/model: its encoding of numbers is malformed");
}

void dt__encoding_expand(const struct dt_model_desc *desc, int rows, const float *z, size_t stride,
                         float *out, size_t out_stride)
{
    const struct encoding *encoding = &ENCODINGS[desc->encode];
    for (size_t r = 0; encoding->expand && r < (size_t)rows; r++)
        encoding->expand(desc->encode_table, (size_t)desc->encode_columns,
                         (size_t)desc->encode_width, z + r * stride, out + r * out_stride);
}

const char *dt__emit_encoding(struct dt__emitter *e, const char *z)
{
    const struct dt_model_desc *desc = &e->model->desc;
    const struct encoding *encoding = &ENCODINGS[desc->encode];
    const int64_t columns = desc->encode_columns, width = desc->encode_width;
    if (!encoding->emit) return NULL;
    return dt__emit_reshape(e, encoding->emit(e, emit_deep(e, z, (size_t)columns)), 2,
                            (const int64_t[]){-1, columns * width});
}
