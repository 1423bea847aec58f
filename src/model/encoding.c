/* Encodings of numbers: a row a kind. */
#include "model/encoding.h"

#include <math.h>
#include <string.h>

#include "base/clones.h"
#include "model/emitter.h"
#include "model/vmath.h"

/* Edges that no z reaches stand in for those that a column of few values lacks. */
#define BEYOND 1e30f
enum { MOST_WIDTH = 1024 };

struct encoding {
    size_t edges; /* of the table a column, besides width */
    void (*make)(const struct dt_config *config, const struct dt_quantiles *quantiles, size_t c,
                 int64_t feature, size_t width, float *table);
    bool (*fits)(const float *table, size_t width);
    void (*expand)(const float *table, size_t columns, size_t width, const float *z, float *out);
    const char *(*emit)(struct dt__emitter *e, const char *z);
};

/* ---- z -------------------------------------------------------------------------------------- */

/* Numbers in ascending q (n) that are below x, or with `equal` at most x. */
static inline size_t count_below(const float *q, size_t n, float x, bool equal)
{
    const float *at = q;
    for (size_t half; n > 1; n -= half) {
        half = n / 2;
        at += (equal ? at[half - 1] <= x : at[half - 1] < x) ? half : 0;
    }
    return (size_t)(at - q) + (equal ? *at <= x : *at < x);
}

/* From one quantile to the next: slope of the rank. */
static float rank_slope(float low, float high)
{
    const float slope = 1.0f / (high - low);
    return slope < 3e38f ? slope : 3e38f;
}

/* The share of numbers on the far side of x, which is negative (-0 too) for the lower side. */
static float signed_tail(const float *q, size_t n, float x)
{
    const size_t last = n - 1, to = count_below(q, n, x, true);
    const size_t from = to && q[to - 1] == x ? count_below(q, n, x, false) : to;
    float low = to ? (float)last : 0.0f, high = (float)last - low;
    if (from < to) {
        low = 0.5f * (float)(from + to - 1);
        high = (float)last - low;
    } else if (to && to < n) {
        const float t = dt__clampf((x - q[to - 1]) * rank_slope(q[to - 1], q[to]), 0.0f, 1.0f);
        low = (float)(to - 1) + t;
        high = (float)(last - to) + (1.0f - t);
    }
    return low < high ? -low / (float)last : high / (float)last;
}

DT__CLONES
static void tails_to_normal(size_t n, float *z)
{
    for (size_t i = 0; i < n; i++)
        z[i] = __builtin_copysignf(dt__normal_tail(__builtin_fabsf(z[i])), z[i]);
}

void dt__quantile_normal(const struct dt_quantiles *quantiles, float *inout)
{
    for (size_t c = 0; c < quantiles->columns; c++)
        inout[c] =
            signed_tail(quantiles->value + c * quantiles->count, quantiles->count, inout[c]);
    tails_to_normal(quantiles->columns, inout);
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
            out[c * width + i] = dt__cos_turns(table[c * width + i] * z[c]);
}

/* ---- piecewise linear ----------------------------------------------------------------------- */

/* Edges at equal steps among the z that the column's quantiles have. */
static void ple_make(const struct dt_config *config, const struct dt_quantiles *quantiles, size_t c,
                     int64_t feature, size_t width, float *table)
{
    (void)config, (void)feature;
    const float *value = quantiles->value + c * quantiles->count;
    const struct dt_quantiles one = {1, quantiles->count, value};
    size_t distinct = 1, next = 0, seen = 0;
    for (size_t i = 1; i < one.count; i++)
        distinct += value[i] != value[i - 1];
    const size_t edges = distinct <= width ? distinct : width + 1;
    for (size_t i = 0; i < one.count && next < edges; i++) {
        if (i && value[i] == value[i - 1]) continue;
        if (seen++ != (next * (distinct - 1) + (edges - 1) / 2) / (edges > 1 ? edges - 1 : 1))
            continue;
        table[next] = value[i];
        dt__quantile_normal(&one, &table[next++]);
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
    const size_t bin = width > 1 ? count_below(edge + 1, width - 1, z, true) : 0;
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

/* sums: of each bin's deltas; grad: of those times the bin's part. */
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

/* Inputs below a row's bin are 1: a bin has all deltas of the bins above it. */
DT__CLONES
static void deltas_pass_down(size_t columns, size_t width, size_t nout, float *restrict sums,
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
    deltas_pass_down(fractions->columns, fractions->width, nout, fractions->sums, grad);
}

/* ---- as nodes of ONNX ----------------------------------------------------------------------- */

static const char *emit_polynomial(struct dt__emitter *e, const char *x, size_t n,
                                   const double *coefficient)
{
    const char *y = dt__emit_scalar(e, coefficient[0]);
    for (size_t i = 1; i < n; i++)
        y = DT__NODE(e, "Add", DT__NODE(e, "Mul", y, x), dt__emit_scalar(e, coefficient[i]));
    return y;
}

/* dt__normal_tail. */
static const char *emit_normal_tail(struct dt__emitter *e, const char *p)
{
    static const double near[] = {59.10937472, 159.29113202, 50.434271938, 3.3871327179};
    static const double over[] = {67.1875636, 78.757757664, 17.895169469, 1};
    static const double far[] = {0.17023821103, 1.3067284816, 2.75681539, 1.4234372777};
    static const double under[] = {0.12021132975, 0.7370016425, 1};
    const char *q = DT__NODE(e, "Sub", dt__emit_scalar(e, 0.5), p);
    const char *r = DT__NODE(e, "Sub", dt__emit_scalar(e, 0.180625), DT__NODE(e, "Mul", q, q));
    const char *middle = DT__NODE(e, "Div", DT__NODE(e, "Mul", q, emit_polynomial(e, r, 4, near)),
                                  emit_polynomial(e, r, 4, over));
    const char *t = DT__NODE(e, "Log", DT__NODE(e, "Max", p, dt__emit_scalar(e, 9e-8)));
    t = DT__NODE(e, "Sub", DT__NODE(e, "Sqrt", DT__NODE(e, "Neg", t)), dt__emit_scalar(e, 1.6));
    const char *tail =
        DT__NODE(e, "Div", emit_polynomial(e, t, 4, far), emit_polynomial(e, t, 3, under));
    const char *is_tail = DT__NODE(e, "Greater", q, dt__emit_scalar(e, 0.425));
    return DT__NODE(e, "Min", DT__NODE(e, "Where", is_tail, tail, middle),
                    dt__emit_scalar(e, (double)DT__NORMAL_MOST));
}

/* A float of each column and step from one quantile to the next: quantile, slope of the rank, and
 * rank at the quantile, which is a half where two are equal. */
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

static const char *emit_share(struct dt__emitter *e, const char *steps)
{
    const char *inside =
        DT__NODE(e, "Clip", steps, dt__emit_scalar(e, 0), dt__emit_scalar(e, 1));
    const char *share = DT__NODE(e, "ReduceMean", inside);
    e->ints(e, "axes", 1, (const int[]){2});
    e->integer(e, "keepdims", 0);
    return share;
}

static const char *emit_deep(struct dt__emitter *e, const char *x, size_t columns)
{
    return dt__emit_reshape(e, x, 3, (const int64_t[]){-1, (int64_t)columns, 1});
}

const char *dt__emit_quantile_normal(struct dt__emitter *e, const struct dt_quantiles *quantiles,
                                     const char *x)
{
    const char *steps = DT__NODE(e, "Sub", emit_deep(e, x, quantiles->columns),
                                 emit_steps(e, quantiles, 0));
    steps = DT__NODE(e, "Mul", steps, emit_steps(e, quantiles, 1));
    steps = DT__NODE(e, "Add", steps, emit_steps(e, quantiles, 2));
    const char *low = emit_share(e, steps);
    const char *high = emit_share(e, DT__NODE(e, "Sub", dt__emit_scalar(e, 1), steps));
    const char *tail = emit_normal_tail(e, DT__NODE(e, "Min", low, high));
    return DT__NODE(e, "Where", DT__NODE(e, "Greater", high, low), DT__NODE(e, "Neg", tail), tail);
}

/* An array of the table, (columns, width), of values `from` edges on; less those before it. */
static const char *emit_table(struct dt__emitter *e, bool apart, size_t edges)
{
    const struct dt_model_desc *desc = &e->model->desc;
    const size_t columns = (size_t)desc->encode_columns, width = (size_t)desc->encode_width;
    float *values = e->scratch(e, columns * width, sizeof *values);
    for (size_t i = 0; values && i < columns * width; i++) {
        const float *at = desc->encode_table + i / width * (width + edges) + i % width;
        values[i] = apart ? at[1] - at[0] : at[0];
    }
    return e->floats(e, NULL, 2, (const int64_t[]){(int64_t)columns, (int64_t)width}, values);
}

static const char *cosine_emit(struct dt__emitter *e, const char *z)
{
    const char *turns = DT__NODE(e, "Mul", z, emit_table(e, false, 0));
    turns = DT__NODE(e, "Sub", turns, DT__NODE(e, "Round", turns));
    return DT__NODE(e, "Cos", DT__NODE(e, "Mul", turns, dt__emit_scalar(e, 6.283185307179586)));
}

static const char *ple_emit(struct dt__emitter *e, const char *z)
{
    const char *part = DT__NODE(e, "Sub", z, emit_table(e, false, 1));
    part = DT__NODE(e, "Div", part, emit_table(e, true, 1));
    return DT__NODE(e, "Clip", part, dt__emit_scalar(e, 0), dt__emit_scalar(e, 1));
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

dt_status dt__encoding_check(const struct dt_model_desc *desc, bool table)
{
    const bool known = desc->encode >= 0 && desc->encode < DT_ENCODE_AUTO;
    const struct encoding *encoding = &ENCODINGS[known ? desc->encode : DT_ENCODE_NONE];
    const int columns = desc->encode_columns, width = desc->encode_width;
    const bool plain = !encoding->make;
    bool good = known && columns >= 0 && columns <= DT_MAX_WIDTH && width >= 0 && width <= MOST_WIDTH &&
                (width > 0) == !plain && (columns > 0) == (desc->encode != DT_ENCODE_NONE);
    const size_t each = good ? (size_t)width + encoding->edges : 0;
    good = good && desc->encode_count >= 0 && desc->dense >= 0 &&
           (size_t)desc->encode_count == (plain ? 0 : (size_t)columns * each);
    for (size_t c = 0; good && table && !plain && c < (size_t)columns; c++)
        good = desc->encode_table &&
               encoding->fits(desc->encode_table + c * each, (size_t)width);
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
