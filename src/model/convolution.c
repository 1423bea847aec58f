#include "model/convolution.h"

#include <string.h>

#include "model/blas.h"
#include "model/onednn.h"
#include "model/patches.h"

/* Rows per call of a primitive: their pictures stay in the second-level cache between the product
 * and the pass over its result. The remaining rows are computed one at a time. */
enum { MANY_ROWS = 8, SIZES = 2 };
static const int SIZE_ROWS[SIZES] = {MANY_ROWS, 1};

/* An operand in the caller's layout and in the library's. Both are the same memory if the layouts
 * are equal; else `reorder` copies. */
struct operand {
    dnnl_memory_t caller, own;
    dnnl_primitive_t
        reorder; /* from caller to own; for a result, from own to caller; NULL: own is caller */
    bool result;
};

/* Operands of the three products; each product computes one of them from the other two. */
enum { X, Y, WEIGHT, OPERANDS };
enum { FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT, PRODUCTS };
static const struct {
    int result;
    int argument[OPERANDS]; /* oneDNN's numbers of the operands */
} ROLES[PRODUCTS] = {
    [FORWARD] = {Y, {DNNL_ARG_SRC, DNNL_ARG_DST, DNNL_ARG_WEIGHTS}},
    [INPUT_GRADIENT] = {X, {DNNL_ARG_DIFF_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS}},
    [WEIGHT_GRADIENT] = {WEIGHT, {DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS}},
};

struct product {
    dnnl_primitive_t primitive[SIZES];
    struct operand pictures[SIZES][2]; /* x and y, for MANY_ROWS rows and for one */
    struct operand weight;             /* the weight or its gradient, for both numbers of rows */
    dnnl_memory_desc_t layout;         /* the library's layout of the weight */
};

struct dt__convolution {
    struct dt__patches *patches; /* run.kernel=portable: only this and `weight` are used; NULL:
                                  * oneDNN */
    const float *weight;         /* weight of dt__convolution_pack, for patches */
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    size_t floats[OPERANDS]; /* floats in a row of x, in a row of y, in all weights */
    struct dt__convolution_shape shape;
    float *points; /* (MANY_ROWS, OH, OW, C) the points of x that the kernel reads; NULL: the
                    * library reads x itself */
    struct product product[PRODUCTS];
    float *total; /* (gradient_floats) sum of the gradients, in the library's layout with its
                   * padding */
    dnnl_memory_t gradient; /* the gradient of one call of the primitive, in the same layout */
    size_t gradient_floats;
    float *scratch; /* (weights) a gradient in the caller's layout before it is added */
};

#define TRY_DNNL(call) DT_TRY(dt__dnnl_check((call), #call))

/* ---- layouts -------------------------------------------------------------------------------- */

/* Layouts of the operands for one number of rows. f32 pictures stay channels last, which is as fast
 * as the library's layouts (measured: 177 of 180 GFLOP/s per core on Emerald Rapids; 134 in the
 * library's own layout). bf16 pictures are reordered to the library's layout, which is three times
 * as fast there. */
struct description {
    dnnl_memory_desc_t caller[OPERANDS]; /* f32, in the callers' layout */
    dnnl_memory_desc_t wanted[OPERANDS]; /* in the primitives' layout */
    dnnl_dims_t strides, before, after;
};

static dt_status describe(const struct dt__convolution_shape *s, int rows, bool bf16,
                          struct description *d)
{
    const dnnl_data_type_t type = bf16 ? dnnl_bf16 : dnnl_f32;
    /* The dimensions are in the order rows, channels, height, width; in the caller's memory the
     * channels come last. */
    const dnnl_dims_t x = {rows, s->in.c, s->in.h, s->in.w};
    const dnnl_dims_t y = {rows, s->out.c, s->out.h, s->out.w};
    /* Dimensions (groups, F / groups, C / groups, KH, KW); in memory (KH, KW, C / groups, F). */
    const dnnl_dim_t filters = s->out.c / s->groups, channels = s->in.c / s->groups;
    const dnnl_dims_t dims = {s->groups, filters, channels, s->kernel[0], s->kernel[1]};
    const dnnl_dims_t strides = {filters, 1, s->out.c, s->kernel[1] * channels * s->out.c,
                                 channels * s->out.c};
    const int skip = s->groups == 1; /* for one group the library expects no such dimension */
    TRY_DNNL(dnnl.memory_desc_init_by_tag(&d->caller[X], 4, x, dnnl_f32, dnnl_nhwc));
    TRY_DNNL(dnnl.memory_desc_init_by_tag(&d->caller[Y], 4, y, dnnl_f32, dnnl_nhwc));
    TRY_DNNL(dnnl.memory_desc_init_by_strides(&d->caller[WEIGHT], 5 - skip, dims + skip, dnnl_f32,
                                              strides + skip));
    for (int i = 0; i < OPERANDS; i++) {
        const dnnl_memory_desc_t *own = &d->caller[i];
        d->wanted[i] = *own;
        if (bf16 || i == WEIGHT)
            TRY_DNNL(dnnl.memory_desc_init_by_tag(&d->wanted[i], own->ndims, own->dims, type,
                                                  dnnl_format_tag_any));
    }
    for (int i = 0; i < 2; i++)
        d->strides[i] = s->stride[i], d->before[i] = s->before[i], d->after[i] = s->after[i];
    return DT_OK;
}

/* ---- operands ------------------------------------------------------------------------------- */

static dt_status operand_create(dnnl_engine_t engine, const dnnl_memory_desc_t *plain,
                                const dnnl_memory_desc_t *wanted, bool result, struct operand *out)
{
    out->result = result;
    TRY_DNNL(dnnl.memory_create(&out->caller, plain, engine, DNNL_MEMORY_NONE));
    out->own = out->caller;
    if (dnnl.memory_desc_equal(plain, wanted)) return DT_OK;
    TRY_DNNL(dnnl.memory_create(&out->own, wanted, engine, DNNL_MEMORY_ALLOCATE));
    const dnnl_memory_desc_t *from = result ? wanted : plain, *to = result ? plain : wanted;
    dnnl_primitive_desc_t description;
    TRY_DNNL(dnnl.reorder_primitive_desc_create(&description, from, engine, to, engine, NULL));
    dnnl_status_t status = dnnl.primitive_create(&out->reorder, description);
    dnnl.primitive_desc_destroy(description);
    return dt__dnnl_check(status, "a reorder");
}

static void operand_free(struct operand *operand)
{
    if (operand->own != operand->caller) dnnl.memory_destroy(operand->own);
    dnnl.memory_destroy(operand->caller);
    dnnl.primitive_destroy(operand->reorder);
}

/* Points the operand at the caller's floats, then reorders an input from there, or a result to
 * there. */
static dt_status operand_move(struct operand *operand, dnnl_stream_t stream, const float *floats)
{
    TRY_DNNL(dnnl.memory_set_data_handle(operand->caller, (void *)(uintptr_t)floats));
    if (!operand->reorder) return DT_OK;
    const bool out = operand->result;
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, out ? operand->own : operand->caller},
                                         {DNNL_ARG_TO, out ? operand->caller : operand->own}};
    TRY_DNNL(dnnl.primitive_execute(operand->reorder, stream, 2, arguments));
    return DT_OK;
}

/* ---- points --------------------------------------------------------------------------------- */

/* Returns true if the kernel has one point, and a stride skips points. With fewer than 16 channels,
 * oneDNN 2.6.3's weight gradient then writes outside its own memory, or is wrong. So the library
 * gets smaller pictures of only the points that are read, and no stride. */
static bool reads_points(const struct dt__convolution_shape *s)
{
    return s->kernel[0] == 1 && s->kernel[1] == 1 && (s->stride[0] > 1 || s->stride[1] > 1);
}

/* Returns true if the library computes the shape correctly in bf16. If windows skip points, or a
 * row is shorter than a stride, oneDNN 2.6.3 reads and writes outside its operands in bf16. */
static bool is_safe_in_bf16(const struct dt__convolution_shape *s)
{
    return s->kernel[0] >= s->stride[0] && s->kernel[1] >= s->stride[1] && s->in.w >= s->stride[1];
}

/* Copies the points that the kernel reads from x (rows, H, W, C) to (rows, OH, OW, C); if `back`,
 * from there to x. */
static void points_move(const struct dt__convolution *c, int rows, const float *from, float *into,
                        bool back)
{
    const struct dt__convolution_shape *s = &c->shape;
    const size_t channels = (size_t)s->in.c, stride = (size_t)s->stride[1] * channels;
    size_t point = 0;
    for (int line = 0; line < rows * s->out.h; line++) {
        const size_t row = (size_t)(line / s->out.h) * (size_t)s->in.h;
        const size_t y = (size_t)(line % s->out.h) * (size_t)s->stride[0];
        size_t at = (row + y) * (size_t)s->in.w * channels;
        for (int x = 0; x < s->out.w; x++, at += stride, point += channels)
            memcpy(into + (back ? at : point), from + (back ? point : at), channels * sizeof *into);
    }
}

/* Returns the input that the library reads: x (rows, H, W, C), or the points copied from it. */
static const float *points_take(const struct dt__convolution *c, int rows, const float *x)
{
    if (!c->points) return x;
    points_move(c, rows, x, c->points, false);
    return c->points;
}

/* Writes the gradient by x from the gradient by the points; it is 0 elsewhere. */
static void points_give(const struct dt__convolution *c, int rows, float *dx)
{
    memset(dx, 0, (size_t)rows * c->floats[X] * sizeof *dx);
    points_move(c, rows, c->points, dx, true);
}

/* ---- products ------------------------------------------------------------------------------- */

/* Creates the primitive of product `which` for SIZE_ROWS[size] rows, and its operands; *out is the
 * primitive's description. The weight has one layout for both sizes: the one for the larger, which
 * is created first. forward: the description of the forward product, from which oneDNN derives
 * those of the gradients. */
static dt_status product_create(struct dt__convolution *c, int which, int size,
                                const struct description *d, const_dnnl_primitive_desc_t forward,
                                dnnl_primitive_desc_t *out)
{
    struct product *product = &c->product[which];
    const dnnl_memory_desc_t *x = &d->wanted[X], *y = &d->wanted[Y];
    dnnl_memory_desc_t w = size ? product->layout : d->wanted[WEIGHT];
    dnnl_convolution_desc_t desc;
    if (!size && which == WEIGHT_GRADIENT) /* f32, in either precision */
        TRY_DNNL(dnnl.memory_desc_init_by_tag(&w, w.ndims, d->caller[WEIGHT].dims, dnnl_f32,
                                              dnnl_format_tag_any));
    if (which == FORWARD)
        TRY_DNNL(dnnl.convolution_forward_desc_init(&desc, dnnl_forward_training,
                                                    dnnl_convolution_direct, x, &w, NULL, y,
                                                    d->strides, d->before, d->after));
    else if (which == INPUT_GRADIENT)
        TRY_DNNL(dnnl.convolution_backward_data_desc_init(&desc, dnnl_convolution_direct, x, &w, y,
                                                          d->strides, d->before, d->after));
    else
        TRY_DNNL(dnnl.convolution_backward_weights_desc_init(
            &desc, dnnl_convolution_direct, x, &w, NULL, y, d->strides, d->before, d->after));
    TRY_DNNL(dnnl.primitive_desc_create(out, &desc, NULL, c->engine, forward));
    TRY_DNNL(dnnl.primitive_create(&product->primitive[size], *out));
    for (int i = 0; i < OPERANDS; i++) {
        const dnnl_memory_desc_t *layout =
            dnnl.primitive_desc_query_md(*out, dnnl_query_exec_arg_md, ROLES[which].argument[i]);
        if (i == WEIGHT && size) break;
        DT_TRY(operand_create(c->engine, &d->caller[i], layout, i == ROLES[which].result,
                              i == WEIGHT ? &product->weight : &product->pictures[size][i]));
        if (i == WEIGHT) product->layout = *layout;
    }
    return DT_OK;
}

dt_status dt__convolution_create(const struct dt__convolution_shape *shape, bool input_gradient,
                                 bool bf16, struct dt__convolution **out)
{
    dt_status status;
    struct dt__convolution *c = NULL;
    struct description description;
    struct dt__convolution_shape seen = *shape; /* the shape that the library computes */
    DT_TRY(dt__blas_need());
    DT_GUARD(dt__alloc(1, sizeof *c, "convolution", &c));
    if (dt__blas_is_portable()) {
        DT_GUARD(dt__patches_create(shape, &c->patches));
        *out = c;
        return DT_OK;
    }
    DT_GUARD(dt__convolutions_limit());
    c->shape = *shape;
    DT_GUARD(dt__dnnl_check(dnnl.engine_create(&c->engine, dnnl_cpu, 0), "an engine"));
    DT_GUARD(dt__dnnl_check(dnnl.stream_create(&c->stream, c->engine, dnnl_stream_default_flags),
                            "a stream"));
    c->floats[X] = dt__shape_size(shape->in);
    c->floats[Y] = dt__shape_size(shape->out);
    c->floats[WEIGHT] = (size_t)shape->kernel[0] * (size_t)shape->kernel[1] *
                        (size_t)(shape->in.c / shape->groups) * (size_t)shape->out.c;
    if (reads_points(shape)) {
        const size_t points = (size_t)shape->out.h * (size_t)shape->out.w;
        seen.in = (struct dt__shape){shape->out.h, shape->out.w, shape->in.c};
        seen.stride[0] = seen.stride[1] = 1;
        DT_GUARD(dt__alloc(MANY_ROWS * points, (size_t)shape->in.c * sizeof(float),
                           "a convolution's points", &c->points));
    }
    for (int size = 0; size < SIZES; size++) {
        dnnl_primitive_desc_t made[PRODUCTS] = {NULL};
        status = describe(&seen, SIZE_ROWS[size], bf16 && is_safe_in_bf16(&seen), &description);
        for (int i = 0; i < PRODUCTS && !status; i++)
            if (i != INPUT_GRADIENT || input_gradient)
                status = product_create(c, i, size, &description, made[FORWARD], &made[i]);
        for (int i = 0; i < PRODUCTS; i++)
            dnnl.primitive_desc_destroy(made[i]);
        if (status) goto done;
    }
    struct product *gradient = &c->product[WEIGHT_GRADIENT];
    c->gradient_floats = dnnl.memory_desc_get_size(&gradient->layout) / sizeof(float);
    DT_GUARD(dt__dnnl_check(
        dnnl.memory_create(&c->gradient, &gradient->layout, c->engine, DNNL_MEMORY_ALLOCATE),
        "a gradient"));
    DT_GUARD(dt__alloc(c->gradient_floats, sizeof(float), "a convolution's gradient", &c->total));
    /* the first call of the primitive writes to c->total; the results of later calls are added */
    DT_GUARD(dt__dnnl_check(dnnl.memory_set_data_handle(gradient->weight.own, c->total), "a sum"));
    DT_GUARD(dt__alloc(c->floats[WEIGHT], sizeof(float), "a convolution's gradient", &c->scratch));
    *out = c;
    return DT_OK;
done:
    dt__convolution_destroy(c);
    return status;
}

void dt__convolution_destroy(void *state)
{
    struct dt__convolution *c = state;
    if (!c) return;
    if (c->patches) {
        dt__patches_destroy(c->patches);
        dt_free(c);
        return;
    }
    for (int i = 0; i < PRODUCTS; i++) {
        struct product *product = &c->product[i];
        for (int size = 0; size < SIZES; size++) {
            dnnl.primitive_destroy(product->primitive[size]);
            operand_free(&product->pictures[size][X]);
            operand_free(&product->pictures[size][Y]);
        }
        operand_free(&product->weight);
    }
    dnnl.memory_destroy(c->gradient);
    dnnl.stream_destroy(c->stream);
    dnnl.engine_destroy(c->engine);
    dt_free(c->points);
    dt_free(c->total);
    dt_free(c->scratch);
    dt_free(c);
}

/* ---- a pass --------------------------------------------------------------------------------- */

dt_status dt__convolution_pack(struct dt__convolution *c, const float *weight)
{
    c->weight = weight;
    if (c->patches) return DT_OK;
    DT_TRY(operand_move(&c->product[FORWARD].weight, c->stream, weight));
    if (!c->product[INPUT_GRADIENT].weight.caller) return DT_OK;
    return operand_move(&c->product[INPUT_GRADIENT].weight, c->stream, weight);
}

/* Computes pictures (y or dx) from pictures (x or dy), MANY_ROWS or one at a time. */
static dt_status pictures_run(struct dt__convolution *c, int which, int rows, const float *in,
                              float *out)
{
    struct product *product = &c->product[which];
    const int to = ROLES[which].result, from = to == X ? Y : X;
    for (int done = 0, size; done < rows; done += SIZE_ROWS[size]) {
        size = rows - done >= MANY_ROWS ? 0 : 1;
        struct operand *read = &product->pictures[size][from];
        struct operand *written = &product->pictures[size][to];
        const float *operand = in + (size_t)done * c->floats[from];
        float *pictures = out + (size_t)done * c->floats[to];
        float *result = to == X && c->points ? c->points : pictures;
        if (from == X) operand = points_take(c, SIZE_ROWS[size], operand);
        DT_TRY(operand_move(read, c->stream, operand));
        TRY_DNNL(dnnl.memory_set_data_handle(written->caller, result));
        const dnnl_exec_arg_t arguments[] = {{ROLES[which].argument[from], read->own},
                                             {DNNL_ARG_WEIGHTS, product->weight.own},
                                             {ROLES[which].argument[to], written->own}};
        TRY_DNNL(dnnl.primitive_execute(product->primitive[size], c->stream, 3, arguments));
        DT_TRY(operand_move(written, c->stream, result));
        if (result != pictures) points_give(c, SIZE_ROWS[size], pictures);
    }
    return DT_OK;
}

dt_status dt__convolution_forward(struct dt__convolution *c, int rows, const float *x, float *y)
{
    if (c->patches) return dt__patches_forward(c->patches, rows, x, c->weight, y);
    return pictures_run(c, FORWARD, rows, x, y);
}

dt_status dt__convolution_input_gradient(struct dt__convolution *c, int rows, const float *dy,
                                         float *dx)
{
    if (c->patches) return dt__patches_input_gradient(c->patches, rows, dy, c->weight, dx);
    return pictures_run(c, INPUT_GRADIENT, rows, dy, dx);
}

/* Sums the gradients of all rows in the library's layout, then reorders the total to the
 * caller's. */
dt_status dt__convolution_weight_gradient(struct dt__convolution *c, int rows, const float *x,
                                          const float *dy, bool add, float *dweight)
{
    if (c->patches) return dt__patches_weight_gradient(c->patches, rows, x, dy, add, dweight);
    struct product *product = &c->product[WEIGHT_GRADIENT];
    for (int done = 0, size; done < rows; done += SIZE_ROWS[size]) {
        size = rows - done >= MANY_ROWS ? 0 : 1;
        struct operand *pictures = product->pictures[size];
        dnnl_memory_t into = done ? c->gradient : product->weight.own; /* its memory is c->total */
        const float *own = points_take(c, SIZE_ROWS[size], x + (size_t)done * c->floats[X]);
        DT_TRY(operand_move(&pictures[X], c->stream, own));
        DT_TRY(operand_move(&pictures[Y], c->stream, dy + (size_t)done * c->floats[Y]));
        const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, pictures[X].own},
                                             {DNNL_ARG_DIFF_DST, pictures[Y].own},
                                             {DNNL_ARG_DIFF_WEIGHTS, into}};
        TRY_DNNL(dnnl.primitive_execute(product->primitive[size], c->stream, 3, arguments));
        if (!done) continue;
        void *gradient;
        TRY_DNNL(dnnl.memory_get_data_handle(c->gradient, &gradient));
        const float *restrict from = gradient;
        float *restrict total = c->total;
        for (size_t i = 0; i < c->gradient_floats; i++)
            total[i] += from[i];
    }
    float *to = add ? c->scratch : dweight;
    if (product->weight.reorder)
        DT_TRY(operand_move(&product->weight, c->stream, to));
    else
        memcpy(to, c->total, c->floats[WEIGHT] * sizeof *to);
    for (size_t i = 0; add && i < c->floats[WEIGHT]; i++)
        dweight[i] += c->scratch[i];
    return DT_OK;
}
