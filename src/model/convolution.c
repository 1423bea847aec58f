#include "model/convolution.h"

#include <dnnl.h>
#include <string.h>

/* Rows that a primitive takes at once: their pictures stay in the second-level cache between the
 * product and the pass over its result. Rows that are left over go one by one. */
enum { MANY_ROWS = 8, PIECES = 2 };
static const int PIECE_ROWS[PIECES] = {MANY_ROWS, 1};

/* Memory as the caller has it, and as the library wants it: the same, or brought there by `reorder`. */
struct operand {
    dnnl_memory_t caller, own;
    dnnl_primitive_t reorder; /* NULL: own is caller */
};

/* A product over pieces: of `first` with `second`, one of the two being pictures or both. */
struct product {
    dnnl_primitive_t primitive[PIECES];
    struct operand pictures[PIECES][2]; /* read and written, or both read */
};

struct dt__convolution {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    size_t x_floats, y_floats, weight_floats; /* of a row; of all weights */
    struct product forward, input_gradient, weight_gradient;
    struct operand forward_weight, input_gradient_weight;
    struct operand sum;     /* of the weight gradient: `total`, to the caller's layout */
    float *total;           /* (gradient_floats) in the library's layout, padding included */
    dnnl_memory_t gradient; /* of one piece, like it */
    size_t gradient_floats;
    float *scratch; /* (weight_floats) a gradient that is added */
};

static dt_status dnnl_check(dnnl_status_t status, const char *call)
{
    if (status == dnnl_success) return DT_OK;
    if (status == dnnl_out_of_memory) return dt_fail(DT_EMEMORY, "out of memory for a convolution");
    return dt_fail(DT_EBUG, "oneDNN: %s gives status %d", call, (int)status);
}
#define TRY_DNNL(call) DT_TRY(dnnl_check((call), #call))

/* ---- layouts -------------------------------------------------------------------------------- */

/* oneDNN names dimensions rows, channels, height, width; callers' memory has the channels last. */
static dt_status pictures_plain(int rows, int height, int width, int channels,
                                dnnl_memory_desc_t *out)
{
    const dnnl_dims_t dims = {rows, channels, height, width};
    TRY_DNNL(dnnl_memory_desc_init_by_tag(out, 4, dims, dnnl_f32, dnnl_nhwc));
    return DT_OK;
}

/* The same shape, in whatever layout and with elements of this type. */
static dt_status layout_free(const dnnl_memory_desc_t *plain, dnnl_data_type_t type,
                             dnnl_memory_desc_t *out)
{
    TRY_DNNL(
        dnnl_memory_desc_init_by_tag(out, plain->ndims, plain->dims, type, dnnl_format_tag_any));
    return DT_OK;
}

/* What a primitive needs to be described for one size of piece. f32 pictures stay as they are, channels
 * last: as fast as the library's layouts (measured: 177 GFLOP/s of 180 a core on Emerald Rapids,
 * against 134 in its own); bf16 ones go into its own, three times as fast there. */
struct description {
    dnnl_memory_desc_t x_plain, y_plain, weight_plain;        /* f32, as callers have them */
    dnnl_memory_desc_t x, y, weight_any;                      /* as primitives are to have them */
    dnnl_memory_desc_t weight, weight_input, weight_gradient; /* one a product */
    dnnl_dims_t strides, before, behind;
};

static dt_status describe(const struct dt__convolution_shape *s, int rows, bool bf16,
                          struct description *d)
{
    const dnnl_data_type_t type = bf16 ? dnnl_bf16 : dnnl_f32;
    DT_TRY(pictures_plain(rows, s->height, s->width, s->channels, &d->x_plain));
    DT_TRY(pictures_plain(rows, s->out_height, s->out_width, s->filters, &d->y_plain));
    /* (groups, F / groups, C / groups, KH, KW) by name; (KH, KW, C / groups, F) in memory. */
    const dnnl_dim_t filters = s->filters / s->groups, channels = s->channels / s->groups;
    const dnnl_dims_t dims = {s->groups, filters, channels, s->kernel_height, s->kernel_width};
    const dnnl_dims_t strides = {filters, 1, s->filters, s->kernel_width * channels * s->filters,
                                 channels * s->filters};
    const int skip = s->groups == 1; /* the library wants no dimension for one group */
    TRY_DNNL(dnnl_memory_desc_init_by_strides(&d->weight_plain, 5 - skip, dims + skip, dnnl_f32,
                                              strides + skip));
    d->x = d->x_plain;
    d->y = d->y_plain;
    if (bf16) {
        DT_TRY(layout_free(&d->x_plain, type, &d->x));
        DT_TRY(layout_free(&d->y_plain, type, &d->y));
    }
    DT_TRY(layout_free(&d->weight_plain, type, &d->weight_any));
    d->weight = d->weight_input = d->weight_any;
    DT_TRY(layout_free(&d->weight_plain, dnnl_f32, &d->weight_gradient));
    d->strides[0] = s->stride_height, d->strides[1] = s->stride_width;
    d->before[0] = s->pad_top, d->before[1] = s->pad_left;
    d->behind[0] = s->pad_bottom, d->behind[1] = s->pad_right;
    return DT_OK;
}

/* ---- operands ------------------------------------------------------------------------------- */

/* to_caller: a result, which is reordered behind the product. */
static dt_status operand_create(dnnl_engine_t engine, const dnnl_memory_desc_t *plain,
                                const dnnl_memory_desc_t *wanted, bool to_caller,
                                struct operand *out)
{
    TRY_DNNL(dnnl_memory_create(&out->caller, plain, engine, DNNL_MEMORY_NONE));
    out->own = out->caller;
    if (dnnl_memory_desc_equal(plain, wanted)) return DT_OK;
    TRY_DNNL(dnnl_memory_create(&out->own, wanted, engine, DNNL_MEMORY_ALLOCATE));
    const dnnl_memory_desc_t *from = to_caller ? wanted : plain, *to = to_caller ? plain : wanted;
    dnnl_primitive_desc_t description;
    TRY_DNNL(dnnl_reorder_primitive_desc_create(&description, from, engine, to, engine, NULL));
    dnnl_status_t status = dnnl_primitive_create(&out->reorder, description);
    dnnl_primitive_desc_destroy(description);
    return dnnl_check(status, "a reorder");
}

static void operand_free(struct operand *operand)
{
    if (operand->own != operand->caller) dnnl_memory_destroy(operand->own);
    dnnl_memory_destroy(operand->caller);
    dnnl_primitive_destroy(operand->reorder);
}

/* Points it at the caller's floats; what is read comes over at once. */
static dt_status operand_read(struct operand *operand, dnnl_stream_t stream, const float *floats)
{
    TRY_DNNL(dnnl_memory_set_data_handle(operand->caller, (void *)(uintptr_t)floats));
    if (!operand->reorder) return DT_OK;
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, operand->caller},
                                         {DNNL_ARG_TO, operand->own}};
    TRY_DNNL(dnnl_primitive_execute(operand->reorder, stream, 2, arguments));
    return DT_OK;
}

/* The result goes to the caller's floats. */
static dt_status operand_write(struct operand *operand, dnnl_stream_t stream, float *floats)
{
    TRY_DNNL(dnnl_memory_set_data_handle(operand->caller, floats));
    if (!operand->reorder) return DT_OK;
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, operand->own},
                                         {DNNL_ARG_TO, operand->caller}};
    TRY_DNNL(dnnl_primitive_execute(operand->reorder, stream, 2, arguments));
    return DT_OK;
}

/* ---- products ------------------------------------------------------------------------------- */

static const dnnl_memory_desc_t *wanted(const_dnnl_primitive_desc_t description, int argument)
{
    return dnnl_primitive_desc_query_md(description, dnnl_query_exec_arg_md, argument);
}

static dt_status forward_describe(dnnl_engine_t engine, const struct description *d,
                                  dnnl_primitive_desc_t *out)
{
    dnnl_convolution_desc_t c;
    TRY_DNNL(dnnl_convolution_forward_desc_init(&c, dnnl_forward_training, dnnl_convolution_direct,
                                                &d->x, &d->weight, NULL, &d->y, d->strides,
                                                d->before, d->behind));
    TRY_DNNL(dnnl_primitive_desc_create(out, &c, NULL, engine, NULL));
    return DT_OK;
}

/* `hint`: the forward product's description, which the backward ones are derived from. */
static dt_status input_gradient_describe(dnnl_engine_t engine, const struct description *d,
                                         const_dnnl_primitive_desc_t hint,
                                         dnnl_primitive_desc_t *out)
{
    dnnl_convolution_desc_t c;
    TRY_DNNL(dnnl_convolution_backward_data_desc_init(&c, dnnl_convolution_direct, &d->x,
                                                      &d->weight_input, &d->y, d->strides,
                                                      d->before, d->behind));
    TRY_DNNL(dnnl_primitive_desc_create(out, &c, NULL, engine, hint));
    return DT_OK;
}

static dt_status weight_gradient_describe(dnnl_engine_t engine, const struct description *d,
                                          const_dnnl_primitive_desc_t hint,
                                          dnnl_primitive_desc_t *out)
{
    dnnl_convolution_desc_t c;
    TRY_DNNL(dnnl_convolution_backward_weights_desc_init(&c, dnnl_convolution_direct, &d->x,
                                                         &d->weight_gradient, NULL, &d->y,
                                                         d->strides, d->before, d->behind));
    TRY_DNNL(dnnl_primitive_desc_create(out, &c, NULL, engine, hint));
    return DT_OK;
}

/* The primitive of one size of piece, and its two operands that are pictures. */
static dt_status product_create(dnnl_engine_t engine, const_dnnl_primitive_desc_t description,
                                const dnnl_memory_desc_t *first, int first_argument,
                                const dnnl_memory_desc_t *second, int second_argument,
                                bool second_is_result, struct product *product, int piece)
{
    TRY_DNNL(dnnl_primitive_create(&product->primitive[piece], description));
    DT_TRY(operand_create(engine, first, wanted(description, first_argument), false,
                          &product->pictures[piece][0]));
    return operand_create(engine, second, wanted(description, second_argument), second_is_result,
                          &product->pictures[piece][1]);
}

static void product_free(struct product *product)
{
    for (int piece = 0; piece < PIECES; piece++) {
        dnnl_primitive_destroy(product->primitive[piece]);
        for (int i = 0; i < 2; i++)
            operand_free(&product->pictures[piece][i]);
    }
}

/* Weights have one layout for both sizes of piece: the one that suits the larger. */
static dt_status weight_layout(dnnl_engine_t engine, const struct description *d,
                               const_dnnl_primitive_desc_t description, int piece,
                               dnnl_memory_desc_t *layout, struct operand *weight)
{
    if (piece) return DT_OK;
    *layout = *wanted(description, DNNL_ARG_WEIGHTS);
    return operand_create(engine, &d->weight_plain, layout, false, weight);
}

static dt_status gradient_layout(struct dt__convolution *c, struct description *d,
                                 const_dnnl_primitive_desc_t description)
{
    d->weight_gradient = *wanted(description, DNNL_ARG_DIFF_WEIGHTS);
    c->gradient_floats = dnnl_memory_desc_get_size(&d->weight_gradient) / sizeof(float);
    TRY_DNNL(
        dnnl_memory_create(&c->gradient, &d->weight_gradient, c->engine, DNNL_MEMORY_ALLOCATE));
    return operand_create(c->engine, &d->weight_plain, &d->weight_gradient, true, &c->sum);
}

/* The primitives for pieces of one size. Those of one row follow the layouts of weights that `before`
 * holds from those of many. */
static dt_status piece_create(struct dt__convolution *c, struct description *d,
                              const struct description *before, int piece, bool input_gradient)
{
    dt_status status;
    dnnl_primitive_desc_t forward = NULL, input = NULL, weight = NULL;
    if (piece) d->weight = before->weight;
    DT_GUARD(forward_describe(c->engine, d, &forward));
    DT_GUARD(weight_layout(c->engine, d, forward, piece, &d->weight, &c->forward_weight));
    DT_GUARD(product_create(c->engine, forward, &d->x_plain, DNNL_ARG_SRC, &d->y_plain,
                            DNNL_ARG_DST, true, &c->forward, piece));
    if (piece) d->weight_gradient = before->weight_gradient;
    DT_GUARD(weight_gradient_describe(c->engine, d, forward, &weight));
    if (!piece) DT_GUARD(gradient_layout(c, d, weight));
    DT_GUARD(product_create(c->engine, weight, &d->x_plain, DNNL_ARG_SRC, &d->y_plain,
                            DNNL_ARG_DIFF_DST, false, &c->weight_gradient, piece));
    if (!input_gradient) goto done;
    d->weight_input = piece ? before->weight_input : d->weight_any;
    DT_GUARD(input_gradient_describe(c->engine, d, forward, &input));
    DT_GUARD(
        weight_layout(c->engine, d, input, piece, &d->weight_input, &c->input_gradient_weight));
    DT_GUARD(product_create(c->engine, input, &d->y_plain, DNNL_ARG_DIFF_DST, &d->x_plain,
                            DNNL_ARG_DIFF_SRC, true, &c->input_gradient, piece));
done:
    dnnl_primitive_desc_destroy(input);
    dnnl_primitive_desc_destroy(weight);
    dnnl_primitive_desc_destroy(forward);
    return status;
}

dt_status dt__convolution_create(const struct dt__convolution_shape *shape, bool input_gradient,
                                 bool bf16, struct dt__convolution **out)
{
    dt_status status;
    struct dt__convolution *c = NULL;
    struct description of[PIECES];
    DT_GUARD(dt_alloc(1, sizeof *c, "convolution", &c));
    DT_GUARD(dnnl_check(dnnl_engine_create(&c->engine, dnnl_cpu, 0), "an engine"));
    DT_GUARD(dnnl_check(dnnl_stream_create(&c->stream, c->engine, dnnl_stream_default_flags),
                        "a stream"));
    c->x_floats = (size_t)shape->height * (size_t)shape->width * (size_t)shape->channels;
    c->y_floats = (size_t)shape->out_height * (size_t)shape->out_width * (size_t)shape->filters;
    c->weight_floats = (size_t)shape->kernel_height * (size_t)shape->kernel_width *
                       (size_t)(shape->channels / shape->groups) * (size_t)shape->filters;
    for (int piece = 0; piece < PIECES; piece++) {
        DT_GUARD(describe(shape, PIECE_ROWS[piece], bf16, &of[piece]));
        DT_GUARD(piece_create(c, &of[piece], &of[0], piece, input_gradient));
    }
    DT_GUARD(dt_alloc(c->gradient_floats, sizeof(float), "a convolution's gradient", &c->total));
    DT_GUARD(dnnl_check(dnnl_memory_set_data_handle(c->sum.own, c->total), "a sum"));
    DT_GUARD(dt_alloc(c->weight_floats, sizeof(float), "a convolution's gradient", &c->scratch));
    *out = c;
    return DT_OK;
done:
    dt__convolution_destroy(c);
    return status;
}

void dt__convolution_destroy(struct dt__convolution *c)
{
    if (!c) return;
    product_free(&c->forward);
    product_free(&c->input_gradient);
    product_free(&c->weight_gradient);
    operand_free(&c->forward_weight);
    operand_free(&c->input_gradient_weight);
    operand_free(&c->sum);
    dnnl_memory_destroy(c->gradient);
    dnnl_stream_destroy(c->stream);
    dnnl_engine_destroy(c->engine);
    dt_free(c->total);
    dt_free(c->scratch);
    dt_free(c);
}

/* ---- a pass --------------------------------------------------------------------------------- */

dt_status dt__convolution_pack(struct dt__convolution *c, const float *weight)
{
    DT_TRY(operand_read(&c->forward_weight, c->stream, weight));
    if (!c->input_gradient_weight.caller) return DT_OK;
    return operand_read(&c->input_gradient_weight, c->stream, weight);
}

/* Pictures in, pictures out, piece after piece. */
static dt_status product_run(struct dt__convolution *c, struct product *product, int rows,
                             const struct operand *weight, int argument_in, const float *in,
                             size_t in_floats, int argument_out, float *out, size_t out_floats)
{
    for (int done = 0, piece; done < rows; done += PIECE_ROWS[piece]) {
        piece = rows - done >= MANY_ROWS ? 0 : 1;
        struct operand *read = &product->pictures[piece][0];
        struct operand *written = &product->pictures[piece][1];
        float *to = out + (size_t)done * out_floats;
        DT_TRY(operand_read(read, c->stream, in + (size_t)done * in_floats));
        TRY_DNNL(dnnl_memory_set_data_handle(written->caller, to));
        const dnnl_exec_arg_t arguments[] = {{argument_in, read->own},
                                             {DNNL_ARG_WEIGHTS, weight->own},
                                             {argument_out, written->own}};
        TRY_DNNL(dnnl_primitive_execute(product->primitive[piece], c->stream, 3, arguments));
        DT_TRY(operand_write(written, c->stream, to));
    }
    return DT_OK;
}

dt_status dt__convolution_forward(struct dt__convolution *c, int rows, const float *x, float *y)
{
    return product_run(c, &c->forward, rows, &c->forward_weight, DNNL_ARG_SRC, x, c->x_floats,
                       DNNL_ARG_DST, y, c->y_floats);
}

dt_status dt__convolution_input_gradient(struct dt__convolution *c, int rows, const float *dy,
                                         float *dx)
{
    return product_run(c, &c->input_gradient, rows, &c->input_gradient_weight, DNNL_ARG_DIFF_DST,
                       dy, c->y_floats, DNNL_ARG_DIFF_SRC, dx, c->x_floats);
}

dt_status dt__convolution_weight_gradient(struct dt__convolution *c, int rows, const float *x,
                                          const float *dy, bool add, float *dweight)
{
    for (int done = 0, piece; done < rows; done += PIECE_ROWS[piece]) {
        piece = rows - done >= MANY_ROWS ? 0 : 1;
        /* Adds a piece's gradient to the total, in the library's layout. */
        bool first = done == 0;
        struct product *product = &c->weight_gradient;
        struct operand *pictures = product->pictures[piece];
        DT_TRY(operand_read(&pictures[0], c->stream, (x + (size_t)done * c->x_floats)));
        DT_TRY(operand_read(&pictures[1], c->stream, (dy + (size_t)done * c->y_floats)));
        dnnl_memory_t into = first ? c->sum.own : c->gradient;
        const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, pictures[0].own},
                                             {DNNL_ARG_DIFF_DST, pictures[1].own},
                                             {DNNL_ARG_DIFF_WEIGHTS, into}};
        TRY_DNNL(dnnl_primitive_execute(product->primitive[piece], c->stream, 3, arguments));
        if (!first) {
            void *gradient;
            TRY_DNNL(dnnl_memory_get_data_handle(c->gradient, &gradient));
            const float *restrict from = gradient;
            float *restrict total = c->total;
            for (size_t i = 0; i < c->gradient_floats; i++)
                total[i] += from[i];
        }
    }
    float *to = add ? c->scratch : dweight;
    if (c->sum.reorder)
        DT_TRY(operand_write(&c->sum, c->stream, to));
    else
        memcpy(to, c->total, c->weight_floats * sizeof *to);
    if (add)
        for (size_t i = 0; i < c->weight_floats; i++)
            dweight[i] += c->scratch[i];
    return DT_OK;
}
