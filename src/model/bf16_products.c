/* Products with bf16 operands and f32 sums, by oneDNN. On CPUs without bf16, operands are rounded
 * to bf16 and multiplied in f32.
 *
 * Products read copies of the weights in the layout that the library reads fastest (bf16_pack.c),
 * so no product reorders weights. Whoever updates the weights maintains the copies; without copies
 * a layer makes its own, with the same bits. The weight gradient is computed tile by tile, either
 * here, or from its factors by the updater of the weights. The primitives for a number of rows are
 * created when that number first occurs. */
#include "model/bf16_products.h"

#include <string.h>
#include <strings.h>

#include "base/bf16.h"
#include "base/clones.h"
#include "base/limits.h"
#include "model/blas.h"
#include "model/onednn.h"

/* ---- the kernel ----------------------------------------------------------------------------- */

/* Kernels. The library's instruction set is set once per process, before its first kernel is
 * created. */
static const struct kernel {
    const char *name;   /* follows the f32 kernel's name and "-bf16-" */
    dnnl_cpu_isa_t isa; /* 0 for the reference, which multiplies in f32 */
    bool (*pays)(void); /* returns true if the CPU supports it and it is faster than f32 */
} KERNELS[] = {
    {"amx", dnnl_cpu_isa_avx512_core_amx, dt__cpu_has_amx},
    /* Measured: 221 to 233 GFLOP/s per core against 112 in f32 on Zen 4; but 86 against 137 to 176
     * on Emerald Rapids, so not used on Intel CPUs. */
    {"avx512", dnnl_cpu_isa_avx512_core_bf16, dt__cpu_has_fast_avx512_bf16},
    {"reference", 0, NULL},
};
enum { REFERENCE = 2, KERNEL_COUNT };

static const struct kernel *chosen; /* NULL: this process has computed only in f32 so far */
static bool is_named;               /* dt__blas_kernel's name includes the bf16 kernel */

const char *dt__bf16_kernel(void)
{
    return is_named ? chosen->name : NULL;
}

bool dt__bf16_is_native(void)
{
    return chosen && chosen != &KERNELS[REFERENCE];
}

static bool is_reference(void)
{
    return chosen == &KERNELS[REFERENCE];
}

/* ---- operands ------------------------------------------------------------------------------- */

/* Returns the bytes of an element of an operand: bf16, or, for the reference, f32 rounded to
 * bf16. */
static size_t operand_size(void)
{
    return is_reference() ? sizeof(float) : sizeof(uint16_t);
}

DT__CLONES
static void round_to_f32(size_t n, const float *restrict values, float *restrict out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = dt__bf16_value(dt__bf16_of(values[i]));
}

static void operand_round(size_t n, const float *values, void *out)
{
    if (is_reference())
        round_to_f32(n, values, out);
    else
        dt__bf16_round(n, values, out);
}

/* ---- products ------------------------------------------------------------------------------- */

/* The weight gradient is computed in tiles, each contiguous: in the whole matrix the library would
 * write columns of blocks, whose rows are far apart. The factors are laid out for the tiles once:
 * the inputs transposed, and the deltas packed as the library would pack them for every tile. With
 * tiles of whole rows this took 5.8 ms rather than 9.2 for 4096-4096, and 0.32 rather than 0.43 for
 * 1024-1024, with 128 rows; 0.10 rather than 0.125 for 784-512 with 64 rows (measured with AMX, the
 * product alone; AVX512-BF16 alone is 1.0 to 1.1 times as fast). Any holder of the factors can
 * compute a tile just when it is needed; the tile, its weights and the deltas of its columns then
 * stay in the second-level cache. */
enum { TILE_GRAIN = DT__PACK_DEPTH };
_Static_assert(DT__TILE_VALUES >= DT__TILE_COLUMNS * TILE_GRAIN, "a tile has rows");
_Static_assert(DT__TILE_COLUMNS % DT__PACK_WIDTH == 0, "tiles of a copy are whole packed columns");

/* Factors of the weight gradient of a batch. */
struct factors {
    int *rows;            /* number of rows; 0: the gradient is 0 */
    void *x;              /* (nin, rows) */
    unsigned char *delta; /* for each column of tiles: (rows, columns of the tile), packed */
    size_t delta_bytes;   /* bytes for each column of tiles */
};

static size_t whole_lines(size_t bytes)
{
    enum { LINE = 64 };
    return (bytes + LINE - 1) / LINE * LINE;
}

static size_t delta_bytes(const struct dt_factored *shape, int max_rows)
{
    enum { PAD = 64 }; /* the library pads packed matrices to multiples of this */
    return whole_lines(((size_t)max_rows + PAD) * (shape->tile_columns + PAD) * sizeof(float));
}

struct dt_factored dt__bf16_factored(int nin, int nout, int max_rows, bool first)
{
    struct dt_factored shape = {.rows = (size_t)nin, .columns = (size_t)nout, .first = first};
    shape.tile_columns = nout < DT__TILE_COLUMNS ? shape.columns : DT__TILE_COLUMNS;
    shape.tile_rows = DT__TILE_VALUES / shape.tile_columns / TILE_GRAIN * TILE_GRAIN;
    if (shape.tile_rows > shape.rows) shape.tile_rows = shape.rows;
    const size_t across = (shape.columns + shape.tile_columns - 1) / shape.tile_columns;
    shape.bytes = whole_lines(sizeof(int)) +
                  whole_lines(shape.rows * (size_t)max_rows * sizeof(float)) +
                  across * delta_bytes(&shape, max_rows);
    if (!dt__bf16_is_native()) return shape;
    shape.copy_bytes = dt__bf16_packed_bytes(shape.rows, shape.columns);
    if (!first) shape.copy_bytes += dt__bf16_packed_bytes(shape.columns, shape.rows);
    return shape;
}

/* A product, or a reorder from src to dst. */
struct operation {
    dnnl_primitive_t primitive;
    dnnl_memory_t src, weights, dst; /* weights: NULL for a reorder */
};

/* Indices of operations. TILE + 1 is for the last tile of each column, TILE + 2 for the last column
 * of tiles, TILE + 3 for the last tile of that. PACK packs the deltas of a column of tiles, PACK +
 * 1 those of the last column. */
enum { FORWARD, INPUT_GRAD, TRANSPOSE, PACK, TILE = PACK + 2, OPERATIONS = TILE + 4 };

/* Operations for batches of `rows` rows; a list. */
struct plan {
    int rows;
    struct operation operation[OPERATIONS];
    struct plan *next;
};

struct dt__bf16 {
    int nin, nout, max_rows;
    struct dt_factored shape; /* of the weight gradient */
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    struct plan *plans;
    /* The layers that round the inputs and the gradient by the outputs for this one: itself, or an
     * earlier one. */
    const struct dt__bf16 *x_of, *delta_of;
    void *x, *delta;    /* (max_rows, nin), (max_rows, nout) rounded; NULL before the first product,
                         * or if another layer rounds */
    void *factors;      /* factors of a gradient that is computed here ... */
    float *tile;        /* ... and a tile of that gradient; NULL before the first gradient */
    void *own;          /* the layer's own copy of the weights; NULL: none so far */
    const void *weight; /* the copy of the weights in this step: own or the caller's; for the
                         * reference (nin, nout) rounded */
};

/* Describes a matrix (rows, columns), row-major, or column-major if `transposed`. */
static dt_status matrix_init(int rows, int columns, dnnl_data_type_t type, bool transposed,
                             dnnl_memory_desc_t *out)
{
    const dnnl_dims_t dims = {rows, columns};
    const dnnl_dims_t strides = {transposed ? 1 : columns, transposed ? rows : 1};
    return dt__dnnl_check(dnnl.memory_desc_init_by_strides(out, 2, dims, type, strides), "a shape");
}

static dt_status operation_init(const struct dt__bf16 *bf16, struct operation *operation,
                                dnnl_primitive_desc_t desc, const dnnl_memory_desc_t *src,
                                const dnnl_memory_desc_t *weights, const dnnl_memory_desc_t *dst)
{
    DT_TRY(dt__dnnl_check(dnnl.primitive_create(&operation->primitive, desc), "a primitive"));
    DT_TRY(
        dt__dnnl_check(dnnl.memory_create(&operation->src, src, bf16->engine, NULL), "a matrix"));
    if (weights)
        DT_TRY(dt__dnnl_check(dnnl.memory_create(&operation->weights, weights, bf16->engine, NULL),
                              "a matrix"));
    return dt__dnnl_check(dnnl.memory_create(&operation->dst, dst, bf16->engine, NULL), "a matrix");
}

/* Layouts of a matrix (k, n): PACKED is the one of dt__bf16_pack; ANY lets the library choose, for
 * the weights of a product. */
static const dnnl_format_tag_t PACKED = dnnl_BA16a64b2a, ANY = dnnl_format_tag_any;
static dt_status layout_init(int k, int n, dnnl_format_tag_t tag, dnnl_memory_desc_t *out)
{
    const dnnl_dims_t dims = {k, n};
    return dt__dnnl_check(dnnl.memory_desc_init_by_tag(out, 2, dims, dnnl_bf16, tag), "a layout");
}

/* Creates the product C (m, n), f32, = A (m, k) B (k, n). If the layout of *b is ANY, *b is set to
 * the chosen layout. */
static dt_status product_init(const struct dt__bf16 *bf16, struct operation *product,
                              const dnnl_memory_desc_t *a, dnnl_memory_desc_t *b)
{
    dnnl_memory_desc_t c;
    dnnl_matmul_desc_t matmul;
    dnnl_primitive_desc_t desc;
    DT_TRY(matrix_init((int)a->dims[0], (int)b->dims[1], dnnl_f32, false, &c));
    DT_TRY(dt__dnnl_check(dnnl.matmul_desc_init(&matmul, a, b, NULL, &c), "a product"));
    DT_TRY(dt__dnnl_check(dnnl.primitive_desc_create(&desc, &matmul, NULL, bf16->engine, NULL),
                          "a product"));
    *b = *dnnl.primitive_desc_query_md(desc, dnnl_query_weights_md, 0);
    dt_status status = operation_init(bf16, product, desc, a, b, &c);
    dnnl.primitive_desc_destroy(desc);
    return status;
}

static dt_status reorder_init(const struct dt__bf16 *bf16, struct operation *reorder,
                              const dnnl_memory_desc_t *from, const dnnl_memory_desc_t *to)
{
    dnnl_primitive_desc_t desc;
    DT_TRY(dt__dnnl_check(
        dnnl.reorder_primitive_desc_create(&desc, from, bf16->engine, to, bf16->engine, NULL),
        "a layout"));
    dt_status status = operation_init(bf16, reorder, desc, from, NULL, to);
    dnnl.primitive_desc_destroy(desc);
    return status;
}

static void operation_destroy(const struct operation *operation)
{
    dnnl.memory_destroy(operation->src);
    dnnl.memory_destroy(operation->weights);
    dnnl.memory_destroy(operation->dst);
    dnnl.primitive_destroy(operation->primitive);
}

static void plan_destroy(struct plan *plan)
{
    for (int i = 0; i < OPERATIONS; i++)
        operation_destroy(&plan->operation[i]);
    dt_free(plan);
}

/* Creates the operations for a column of tiles with `columns` columns; last: they are those of the
 * last, narrower column. */
static dt_status plan_tiles(const struct dt__bf16 *bf16, struct plan *plan, int columns, bool last)
{
    const int rows = plan->rows, nin = bf16->nin, height = (int)bf16->shape.tile_rows;
    const int last_height = nin % height;
    const dnnl_dims_t dims = {rows, columns}, strides = {bf16->nout, 1};
    struct operation *p = &plan->operation[TILE + 2 * last];
    dnnl_memory_desc_t delta, packed, x;
    DT_TRY(layout_init(rows, columns, ANY, &packed));
    DT_TRY(matrix_init(height, rows, dnnl_bf16, false, &x));
    DT_TRY(product_init(bf16, &p[0], &x, &packed));
    if (last_height) {
        DT_TRY(matrix_init(last_height, rows, dnnl_bf16, false, &x));
        DT_TRY(product_init(bf16, &p[1], &x, &packed));
    }
    DT_TRY(dt__dnnl_check(dnnl.memory_desc_init_by_strides(&delta, 2, dims, dnnl_bf16, strides),
                          "a shape"));
    DT_TRY(reorder_init(bf16, &plan->operation[PACK + last], &delta, &packed));
    if (dnnl.memory_desc_get_size(&packed) <= delta_bytes(&bf16->shape, bf16->max_rows))
        return DT_OK;
    return dt_fail(DT_EBUG, "oneDNN: %d x %d packed takes %zu bytes", rows, columns,
                   dnnl.memory_desc_get_size(&packed));
}

/* Finds or creates the plan for batches of `rows` rows. */
static dt_status plan_of(struct dt__bf16 *bf16, int rows, struct plan **out)
{
    const int nin = bf16->nin, nout = bf16->nout;
    const int width = (int)bf16->shape.tile_columns;
    dnnl_memory_desc_t x, copy, delta, transposed;
    struct plan *plan;
    dt_status status;
    for (*out = bf16->plans; *out; *out = (*out)->next)
        if ((*out)->rows == rows) return DT_OK;
    DT_TRY(dt__alloc(1, sizeof *plan, "products in bf16", &plan));
    plan->rows = rows;
    DT_GUARD(matrix_init(rows, nin, dnnl_bf16, false, &x));
    DT_GUARD(layout_init(nin, nout, PACKED, &copy));
    DT_GUARD(product_init(bf16, &plan->operation[FORWARD], &x, &copy));
    DT_GUARD(matrix_init(rows, nout, dnnl_bf16, false, &delta));
    DT_GUARD(layout_init(nout, nin, PACKED, &copy));
    if (!bf16->shape.first)
        DT_GUARD(product_init(bf16, &plan->operation[INPUT_GRAD], &delta, &copy));
    DT_GUARD(matrix_init(nin, rows, dnnl_bf16, true, &x));
    DT_GUARD(matrix_init(nin, rows, dnnl_bf16, false, &transposed));
    DT_GUARD(reorder_init(bf16, &plan->operation[TRANSPOSE], &x, &transposed));
    DT_GUARD(plan_tiles(bf16, plan, width, false));
    if (nout % width) DT_GUARD(plan_tiles(bf16, plan, nout % width, true));
    plan->next = bf16->plans;
    *out = bf16->plans = plan;
    return DT_OK;
done:
    plan_destroy(plan);
    return status;
}

/* Runs an operation; weights: NULL for a reorder. The library does not write to operands, so
 * dropping const is safe. */
static dt_status operation_run(const struct dt__bf16 *bf16, const struct operation *o,
                               const void *src, const void *weights, void *dst)
{
    const dnnl_exec_arg_t args[] = {
        {DNNL_ARG_SRC, o->src}, {DNNL_ARG_DST, o->dst}, {DNNL_ARG_WEIGHTS, o->weights}};
    DT_TRY(
        dt__dnnl_check(dnnl.memory_set_data_handle(o->src, (void *)(uintptr_t)src), "an operand"));
    DT_TRY(dt__dnnl_check(dnnl.memory_set_data_handle(o->dst, dst), "a result"));
    if (weights)
        DT_TRY(dt__dnnl_check(dnnl.memory_set_data_handle(o->weights, (void *)(uintptr_t)weights),
                              "an operand"));
    DT_TRY(dt__dnnl_check(dnnl.primitive_execute(o->primitive, bf16->stream, weights ? 3 : 2, args),
                          "a product or layout"));
    return dt__dnnl_check(dnnl.stream_wait(bf16->stream), "a product or layout");
}

/* Runs operation FORWARD or INPUT_GRAD. */
static dt_status product_run(struct dt__bf16 *bf16, int rows, int which, const void *operand,
                             const void *weight, float *out)
{
    const bool back = which == INPUT_GRAD;
    const int from = back ? bf16->nout : bf16->nin, to = back ? bf16->nin : bf16->nout;
    struct plan *plan;
    if (is_reference())
        return dt__gemm((struct dt__product){.m = rows, .n = to, .k = from, .tb = back}, operand,
                        weight, out);
    DT_TRY(plan_of(bf16, rows, &plan));
    return operation_run(bf16, &plan->operation[which], operand, weight, out);
}

/* ---- the weight gradient -------------------------------------------------------------------- */

static struct factors factors_at(const struct dt__bf16 *bf16, const void *memory)
{
    unsigned char *at = (unsigned char *)(uintptr_t)memory;
    struct factors factors = {.rows = (int *)(void *)at,
                              .delta_bytes = delta_bytes(&bf16->shape, bf16->max_rows)};
    factors.x = at += whole_lines(sizeof(int));
    factors.delta = at + whole_lines(bf16->shape.rows * (size_t)bf16->max_rows * sizeof(float));
    return factors;
}

/* Writes the transposed inputs to x, which for the reference has f32 elements. */
static dt_status factor_x_write(struct dt__bf16 *bf16, int rows, float *x)
{
    const size_t nin = bf16->shape.rows, count = (size_t)rows;
    const float *wide = bf16->x_of->x;
    struct plan *plan;
    if (!is_reference()) {
        DT_TRY(plan_of(bf16, rows, &plan));
        return operation_run(bf16, &plan->operation[TRANSPOSE], bf16->x_of->x, NULL, x);
    }
    for (size_t r = 0; r < count; r++)
        for (size_t i = 0; i < nin; i++)
            x[i * count + r] = wide[r * nin + i];
    return DT_OK;
}

static dt_status factor_delta_write(struct dt__bf16 *bf16, int rows, struct factors factors)
{
    const size_t nout = bf16->shape.columns, width = bf16->shape.tile_columns;
    const unsigned char *from = bf16->delta_of->delta;
    struct plan *plan = NULL;
    if (!is_reference()) DT_TRY(plan_of(bf16, rows, &plan));
    for (size_t c = 0; c < nout; c += width, factors.delta += factors.delta_bytes) {
        const size_t columns = nout - c < width ? nout - c : width;
        const size_t bytes = columns * operand_size(), row = nout * operand_size();
        if (plan)
            DT_TRY(operation_run(bf16, &plan->operation[PACK + (columns < width)], from, NULL,
                                 factors.delta));
        for (size_t r = 0; r < (size_t)rows && !plan; r++)
            memcpy(factors.delta + r * bytes, from + r * row, bytes);
        from += bytes;
    }
    return DT_OK;
}

static dt_status factors_write(struct dt__bf16 *bf16, int rows, void *memory)
{
    const struct factors factors = factors_at(bf16, memory);
    *factors.rows = rows;
    DT_TRY(factor_x_write(bf16, rows, factors.x));
    return factor_delta_write(bf16, rows, factors);
}

/* Writes the factors that this layer rounds to its memory, and sets *out to the factors of this
 * batch. Some of them may be in an earlier layer's memory. A layer that rounds neither factor
 * allocates nothing. */
static dt_status factors_make(struct dt__bf16 *bf16, int rows, struct factors *out)
{
    const bool own = bf16->x_of == bf16 || bf16->delta_of == bf16;
    if (own && !bf16->factors)
        DT_TRY(dt__alloc(bf16->shape.bytes, 1, "rows in bf16", &bf16->factors));
    *out = factors_at(bf16->x_of, bf16->x_of->factors);
    out->delta = factors_at(bf16->delta_of, bf16->delta_of->factors).delta;
    *out->rows = rows;
    if (bf16->x_of == bf16) DT_TRY(factor_x_write(bf16, rows, out->x));
    return bf16->delta_of == bf16 ? factor_delta_write(bf16, rows, *out) : DT_OK;
}

static dt_status tile_product(struct dt__bf16 *bf16, const struct factors *factors,
                              struct dt_tile tile, float *out)
{
    const struct dt_factored *shape = &bf16->shape;
    const int rows = *factors->rows;
    const void *x = (const unsigned char *)factors->x + tile.row * (size_t)rows * operand_size();
    const void *delta = factors->delta + tile.column / shape->tile_columns * factors->delta_bytes;
    struct plan *plan;
    const struct dt__product product = {.m = (int)tile.rows, .n = (int)tile.columns, .k = rows};
    if (is_reference()) return dt__gemm(product, x, delta, out);
    DT_TRY(plan_of(bf16, rows, &plan));
    const int which =
        TILE + (tile.rows < shape->tile_rows) + 2 * (tile.columns < shape->tile_columns);
    return operation_run(bf16, &plan->operation[which], x, delta, out);
}

/* Computes the whole gradient, from the same tiles as an updater would, so that the bits are the
 * same. */
static dt_status weight_gradient(struct dt__bf16 *bf16, int rows, bool add, float *weight_grad)
{
    const struct dt_factored *shape = &bf16->shape;
    const size_t most = shape->tile_rows * shape->tile_columns;
    struct factors factors;
    /* a tile that is as wide as the gradient is contiguous in it */
    const bool direct = !add && shape->tile_columns == shape->columns;
    if (!bf16->tile && !direct)
        DT_TRY(dt__alloc(most, sizeof(float), "gradients in bf16", &bf16->tile));
    DT_TRY(factors_make(bf16, rows, &factors));
    for (size_t t = 0; t < dt__tiles(shape); t++) {
        const struct dt_tile tile = dt__tile_at(shape, t);
        float *out = weight_grad + tile.row * shape->columns + tile.column;
        DT_TRY(tile_product(bf16, &factors, tile, direct ? out : bf16->tile));
        for (size_t r = 0; r < tile.rows && !direct; r++) {
            const float *restrict from = bf16->tile + r * tile.columns;
            float *restrict to = out + r * shape->columns;
            for (size_t c = 0; c < tile.columns; c++)
                to[c] = add ? to[c] + from[c] : from[c];
        }
    }
    return DT_OK;
}

/* ---- choice of the kernel ------------------------------------------------------------------- */

/* Sets *out to true if the library's fast kernels read the layout of dt__bf16_pack; a future
 * release might not. */
static dt_status reads_copies(bool *out)
{
    enum { SIDE = 2 * DT__PACK_WIDTH };
    struct dt__bf16 bf16 = {0};
    struct operation product = {0};
    const_dnnl_primitive_desc_t desc = NULL;
    const char *name = "";
    dnnl_memory_desc_t a, b;
    dt_status status;
    DT_GUARD(dt__dnnl_check(dnnl.engine_create(&bf16.engine, dnnl_cpu, 0), "an engine"));
    DT_GUARD(matrix_init(SIDE, SIDE, dnnl_bf16, false, &a));
    DT_GUARD(layout_init(SIDE, SIDE, PACKED, &b));
    status = product_init(&bf16, &product, &a, &b);
    if (status == DT_EMEMORY) goto done;
    if (!status && !dnnl.primitive_get_primitive_desc(product.primitive, &desc))
        dnnl.primitive_desc_query(desc, dnnl_query_impl_info_str, 0, (void *)&name);
    *out = !strncmp(name, "brg", 3);
    status = DT_OK;
done:
    operation_destroy(&product);
    dnnl.engine_destroy(bf16.engine);
    return status;
}

/* Chooses the kernel that `option` names, or else the first that pays. */
dt_status dt__bf16_select(const char *option, bool *out_native)
{
    is_named = false;
    if (!option) return DT_OK;
    DT_TRY(dt__onednn_load());
    const char *suffix = strstr(option, DT__BF16_SUFFIX);
    const char *name = suffix ? suffix + strlen(DT__BF16_SUFFIX) : NULL;
    const struct kernel *const reference = &KERNELS[REFERENCE];
    for (int i = 0; i < KERNEL_COUNT && !chosen; i++) {
        const struct kernel *kernel = &KERNELS[i];
        bool reads = false;
        if (name ? strcasecmp(kernel->name, name) != 0 : kernel->pays && !kernel->pays()) continue;
        if (kernel != reference && dnnl.set_max_cpu_isa(kernel->isa) == dnnl_success &&
            dnnl.get_effective_cpu_isa() == kernel->isa)
            DT_TRY(reads_copies(&reads));
        if (reads || kernel == reference) chosen = kernel;
    }
    if (name && (!chosen || strcasecmp(chosen->name, name)))
        return dt_fail(DT_EUSAGE,
                       "run.kernel=%s: expected products in bf16 that this machine has: "
                       "...-bf16-amx, -avx512 or -reference",
                       option);
    is_named = true;
    *out_native = name || chosen != reference;
    return DT_OK;
}

/* ---- a layer -------------------------------------------------------------------------------- */

/* Allocates the rounded operands. Called at the first product, because a layer with sparse inputs
 * never needs them. */
static dt_status bf16_reserve(struct dt__bf16 *bf16)
{
    const size_t rows = (size_t)bf16->max_rows;
    if (bf16->x_of == bf16 && !bf16->x)
        DT_TRY(dt__alloc(rows * bf16->shape.rows, operand_size(), "rows in bf16", &bf16->x));
    if (bf16->delta_of == bf16 && !bf16->delta)
        DT_TRY(dt__alloc(rows * bf16->shape.columns, operand_size(), "gradients in bf16",
                         &bf16->delta));
    return DT_OK;
}

dt_status dt__bf16_create(int nin, int nout, int max_rows, bool first, struct dt__bf16 **out)
{
    struct dt__bf16 *bf16 = NULL;
    bool native;
    dt_status status;
    DT_GUARD(dt__bf16_select("auto", &native));
    DT_GUARD(dt__alloc(1, sizeof *bf16, "products in bf16", &bf16));
    bf16->nin = nin;
    bf16->nout = nout;
    bf16->max_rows = max_rows;
    bf16->shape = dt__bf16_factored(nin, nout, max_rows, first);
    bf16->x_of = bf16->delta_of = bf16;
    DT_GUARD(dt__dnnl_check(dnnl.engine_create(&bf16->engine, dnnl_cpu, 0), "an engine"));
    DT_GUARD(dt__dnnl_check(
        dnnl.stream_create(&bf16->stream, bf16->engine, dnnl_stream_default_flags), "a stream"));
    *out = bf16;
    return DT_OK;
done:
    dt__bf16_destroy(bf16);
    return status;
}

void dt__bf16_share(struct dt__bf16 *bf16, const struct dt__bf16 *x_of,
                    const struct dt__bf16 *delta_of)
{
    if (x_of) bf16->x_of = x_of;
    if (delta_of) bf16->delta_of = delta_of;
}

void dt__bf16_destroy(void *state)
{
    struct dt__bf16 *bf16 = state;
    if (!bf16) return;
    for (struct plan *plan = bf16->plans, *next; plan; plan = next) {
        next = plan->next;
        plan_destroy(plan);
    }
    dnnl.stream_destroy(bf16->stream);
    dnnl.engine_destroy(bf16->engine);
    dt_free(bf16->x);
    dt_free(bf16->delta);
    dt_free(bf16->factors);
    dt_free(bf16->tile);
    dt_free(bf16->own);
    dt_free(bf16);
}

/* Sets bf16->weight to the layer's own copy of the weights, made from `weight`. */
static dt_status pack_own(struct dt__bf16 *bf16, const float *weight)
{
    const size_t weights = bf16->shape.rows * bf16->shape.columns;
    const size_t bytes = is_reference() ? weights * operand_size() : bf16->shape.copy_bytes;
    if (!bf16->own) DT_TRY(dt__alloc(bytes, 1, "weights in bf16", &bf16->own));
    if (is_reference())
        operand_round(weights, weight, bf16->own);
    else
        dt__bf16_pack_all(&bf16->shape, 1, weight, bf16->own);
    bf16->weight = bf16->own;
    return DT_OK;
}

dt_status dt__bf16_forward(struct dt__bf16 *bf16, int rows, const float *x, const float *weight,
                           const void *copy, float *y)
{
    DT_TRY(bf16_reserve(bf16));
    if (bf16->x_of == bf16) operand_round((size_t)rows * bf16->shape.rows, x, bf16->x);
    bf16->weight = copy;
    if (!copy || is_reference()) DT_TRY(pack_own(bf16, weight));
    return product_run(bf16, rows, FORWARD, bf16->x_of->x, bf16->weight, y);
}

dt_status dt__bf16_backward(struct dt__bf16 *bf16, int rows, const float *delta, bool add,
                            float *weight_grad, void *factors, float *dx)
{
    const struct dt_factored *shape = &bf16->shape;
    if (bf16->delta_of == bf16) operand_round((size_t)rows * shape->columns, delta, bf16->delta);
    if (factors)
        DT_TRY(factors_write(bf16, rows, factors));
    else
        DT_TRY(weight_gradient(bf16, rows, add, weight_grad));
    if (!dx) return DT_OK;
    const size_t transposed =
        is_reference() ? 0 : dt__bf16_packed_bytes(shape->rows, shape->columns);
    return product_run(bf16, rows, INPUT_GRAD, bf16->delta_of->delta,
                       (const unsigned char *)bf16->weight + transposed, dx);
}

dt_status dt__bf16_tile(void *state, const void *memory, struct dt_tile tile, float *out)
{
    struct dt__bf16 *bf16 = state;
    const struct factors factors = factors_at(bf16, memory);
    if (*factors.rows) return tile_product(bf16, &factors, tile, out);
    memset(out, 0, tile.rows * tile.columns * sizeof *out);
    return DT_OK;
}
