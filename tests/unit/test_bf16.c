/* bf16: rounding and layout of weights; products against f64 products of the rounded operands, with
 * the same bits at every alignment and with or without a packed copy of the weights; gradients near
 * those of f32. The tests run on the reference, which rounds in f32 on any CPU, and on the library
 * if the CPU supports it. */
#include "model/bf16_products.h"

#include <math.h>

#include "base/bf16.h"
#include "model/blas.h"
#include "model_text.h"
#include "suite.h"

static float from_bits(uint32_t bits)
{
    float out;
    memcpy(&out, &bits, sizeof out);
    return out;
}

/* Infinity, NaN and signed zeros keep their kind. */
START_TEST(values_are_rounded_to_nearest_even)
{
    static const uint32_t rows[][2] = {
        {0x3f800000, 0x3f80}, {0x3f808000, 0x3f80}, {0x3f808001, 0x3f81}, {0x3f818000, 0x3f82},
        {0x3f817fff, 0x3f81}, {0xbf808001, 0xbf81}, {0x7f7fffff, 0x7f80}, {0x7f800000, 0x7f80},
        {0xff800000, 0xff80}, {0x00000000, 0x0000}, {0x80000000, 0x8000}, {0x3fffffff, 0x4000}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const uint16_t out = dt__bf16_of(from_bits(rows[i][0]));
        ck_assert_msg(out == rows[i][1], "%08x is %04x, expected %04x", rows[i][0], out,
                      rows[i][1]);
    }
    const float nans[] = {from_bits(0x7f800001), from_bits(0xffffffff), NAN};
    for (int i = 0; i < 3; i++)
        ck_assert(isnan(dt__bf16_value(dt__bf16_of(nans[i]))));
}
END_TEST

/* ---- products ------------------------------------------------------------------------------- */

static double rounded(float value)
{
    return (double)dt__bf16_value(dt__bf16_of(value));
}

/* Compares got (m, n) with the f64 product of rounded operands: element (i, j) is before[i * n +
 * j], or 0 if `before` is NULL, plus the sum over l < k of a[i * ai + l * al] * b[l * bl + j *
 * bj]. */
static void expect_product(const char *what, const float *got, int m, int n, int k, const float *a,
                           int ai, int al, const float *b, int bl, int bj, const float *before)
{
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) {
            double sum = before ? (double)before[i * n + j] : 0.0;
            for (int l = 0; l < k; l++)
                sum += rounded(a[i * ai + l * al]) * rounded(b[l * bl + j * bj]);
            double error = fabs((double)got[i * n + j] - sum);
            if (!(error < 1e-5 * sqrt(k) + 1e-6))
                ck_abort_msg("%s %dx%dx%d: element %d, %d is off by %g", what, m, n, k, i, j,
                             error);
        }
    }
}

/* Packs the weights of all matrices tile by tile, from the last tile to the first. Returns NULL if
 * the kernel uses no copies. */
static void *copies_of(const struct dt_factored *matrix, int matrices, const float *weights)
{
    const struct dt_factored *last = &matrix[matrices - 1];
    void *copies = NULL;
    if (!last->copy_bytes) return NULL;
    EXPECT_OK(dt__alloc(last->copy + last->copy_bytes, 1, "copies", &copies));
    for (int m = 0; m < matrices; m++)
        for (size_t t = dt__tiles(&matrix[m]); t-- > 0;)
            dt__bf16_pack(&matrix[m], dt__tile_at(&matrix[m], t), weights, copies);
    return copies;
}

static void check_shape(int rows, int nin, int nout)
{
    struct dt__bf16 *bf16;
    const size_t inputs = (size_t)(rows * nin), outputs = (size_t)(rows * nout),
                 weights = (size_t)(nin * nout);
    float *x = randoms(inputs, 1), *w = randoms(weights, 2), *delta = randoms(outputs, 3);
    float *y = randoms(outputs, 4), *grad = randoms(weights, 5), *dx = randoms(inputs, 6);
    float *before = randoms(weights, 5), *again = randoms(outputs, 7);
    const struct dt_factored shape = dt__bf16_factored(nin, nout, rows, false);
    void *copy = copies_of(&shape, 1, w);
    EXPECT_OK(dt__bf16_create(nin, nout, rows, false, &bf16));
    EXPECT_OK(dt__bf16_forward(bf16, rows, x, w, NULL, y));
    expect_product("y", y, rows, nout, nin, x, nin, 1, w, nout, 1, NULL);
    EXPECT_OK(dt__bf16_backward(bf16, rows, delta, true, grad, NULL, dx));
    expect_product("sum of gradients", grad, nin, nout, rows, x, 1, nin, delta, nout, 1, before);
    expect_product("dx", dx, rows, nin, nout, delta, nout, 1, w, 1, nout, NULL);
    EXPECT_OK(dt__bf16_backward(bf16, rows, delta, false, grad, NULL, NULL));
    expect_product("gradient", grad, nin, nout, rows, x, 1, nin, delta, nout, 1, NULL);
    EXPECT_OK(dt__bf16_forward(bf16, rows, x, w, copy, again));
    ck_assert(memcmp(y, again, outputs * sizeof *y) == 0);
    if (rows > 1) EXPECT_OK(dt__bf16_forward(bf16, rows - 1, x, w, copy, again));
    dt__bf16_destroy(bf16);
    dt_free(x), dt_free(w), dt_free(delta), dt_free(y), dt_free(grad), dt_free(dx);
    dt_free(before), dt_free(again), dt_free(copy);
}

static void choose_kernel(const char *kernel)
{
    bool native;
    EXPECT_OK(dt__bf16_select(kernel, &native));
    EXPECT_OK(dt__blas_select(kernel));
}

static void check_products(void)
{
    static const int shapes[][3] = {{1, 1, 1},     {7, 5, 3},    {64, 33, 17}, {31, 130, 65},
                                    {2, 300, 2},   {16, 64, 48}, {3, 1, 70},   {9, 95, 97},
                                    {5, 40, 1100}, {4, 33, 2050}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        check_shape(shapes[i][0], shapes[i][1], shapes[i][2]);
}

/* Checks y, gradients and dx of two parts of a split layer. The inputs are in three blocks, whose
 * last one is the longest. */
static void check_parts(uint64_t seed, struct dt_split_part **part, const int *columns)
{
    enum { N = 6, IN = 1030, PARTS = 2 };
    const size_t blocks = dt__split_blocks(IN);
    float *x = randoms(N * IN, seed), *rows = randoms(N * IN, 0), *w[PARTS], *delta[PARTS];
    for (size_t b = 0, at; b < blocks; b++)
        for (size_t i = at = dt__split_cut(IN, b, blocks), end = dt__split_cut(IN, b + 1, blocks);
             i < end; i++)
            for (size_t r = 0; r < N; r++)
                rows[r * IN + i] = x[N * at + r * (end - at) + i - at];
    for (int p = 0; p < PARTS; p++) {
        const size_t n = (size_t)columns[p];
        float *y = randoms(N * n, 0), *bias = randoms(n, seed + 3), *before = randoms(N * n, 0);
        w[p] = randoms(IN * n, seed + 1);
        delta[p] = randoms(N * n, seed + 2);
        for (size_t r = 0; r < N; r++)
            memcpy(before + r * n, bias, n * sizeof *bias);
        EXPECT_OK(dt__split_part_forward(part[p], N, x, w[p], bias, y));
        expect_product("y of a part", y, N, columns[p], IN, rows, IN, 1, w[p], columns[p], 1,
                       before);
        dt_free(y), dt_free(bias), dt_free(before);
    }
    for (size_t b = 0; b < blocks; b++)
        for (int p = 0; p < PARTS; p++) {
            const int n = columns[p];
            const size_t at = dt__split_cut(IN, b, blocks),
                         depth = dt__split_cut(IN, b + 1, blocks) - at;
            const float *block = x + N * at, *tile = w[p] + at * (size_t)n;
            float *grad = randoms(depth * (size_t)n, 0), *dx = randoms(N * depth, 0);
            EXPECT_OK(dt__split_part_backward(part[p], b, N, block, tile, delta[p], grad, dx));
            expect_product("gradient of a part", grad, (int)depth, n, N, block, 1, (int)depth,
                           delta[p], n, 1, NULL);
            expect_product("dx of a part", dx, N, (int)depth, n, delta[p], n, 1, tile, 1, n, NULL);
            dt_free(grad), dt_free(dx);
        }
    for (int p = 0; p < PARTS; p++)
        dt_free(w[p]), dt_free(delta[p]);
    dt_free(x), dt_free(rows);
}

/* Fails if inputs or gradients are read from an earlier step, another block or another part. */
static void check_split(void)
{
    static const int columns[] = {40, 41};
    const struct dt_split_layer layer = {.nin = 1030, .nout = 81, .inputs = true};
    struct dt_split_part *part[2];
    for (int p = 0; p < 2; p++)
        EXPECT_OK(dt__split_part_create(&layer, (size_t)columns[p], 6, DT_PRECISION_BF16,
                                        p ? part[0] : NULL, &part[p]));
    check_parts(1, part, columns);
    check_parts(11, part, columns);
    dt__split_part_destroy(part[0]), dt__split_part_destroy(part[1]);
}

START_TEST(reference_products_are_right)
{
    choose_kernel("auto-bf16-reference");
    ck_assert_ptr_nonnull(strstr(dt__blas_kernel(), "-bf16-reference"));
    check_products();
    check_split();
}
END_TEST

START_TEST(library_products_are_right)
{
    choose_kernel("auto");
    check_products();
    check_split();
}
END_TEST

/* ---- networks ------------------------------------------------------------------------------- */

enum { ROWS = 9, NIN = 20, SHIFT = 16 };

static struct dt_model *model;
static struct dt_network *network;
static float *params, *x;
static int32_t label[ROWS];
static struct dt_rng key;

static void set_up(bool bf16)
{
    const struct dt_model_desc desc =
        desc_of("dense 70 gelu, dropout 0.3, dense 33 tanh", NIN, 3, DT_TASK_CLASSIFY);
    EXPECT_OK(dt__model_create(&desc, &model));
    EXPECT_OK(
        dt__network_create(model, ROWS, bf16 ? DT_PRECISION_BF16 : DT_PRECISION_F32, &network));
    params = randoms(model->params, 1);
    for (size_t i = 0; i < model->params; i++)
        params[i] *= 0.2f;
    x = randoms(ROWS * NIN, 2);
    for (int r = 0; r < ROWS; r++)
        label[r] = r % 3;
    key = dt__rng_make(9, DT_STREAM_DROPOUT, 0, 0);
}

static void tear_down(void)
{
    dt__network_destroy(network);
    dt__model_destroy(model);
    dt_free(params), dt_free(x);
}

static float *gradient_of(bool bf16, float *out)
{
    double loss;
    set_up(bf16);
    const struct dt_batch batch = {.rows = ROWS, .x = x, .label = label};
    float *grad = randoms(model->params, 3);
    EXPECT_OK(dt__network_gradient(network, params, &batch, &key, false,
                                   (struct dt_slot){.grad = grad}, &loss, NULL));
    EXPECT_OK(dt__network_forward(network, params, &batch, out));
    return grad;
}

/* The gradient is close to that of f32 but not equal; evaluation has the bits of f32. */
START_TEST(gradients_are_near_and_evaluation_is_f32)
{
    float out32[3 * ROWS], out16[3 * ROWS];
    choose_kernel("auto-bf16-reference");
    float *exact = gradient_of(false, out32);
    tear_down();
    float *grad = gradient_of(true, out16);
    double error = 0, norm = 0;
    for (size_t i = 0; i < model->params; i++) {
        error += pow((double)grad[i] - (double)exact[i], 2);
        norm += pow((double)exact[i], 2);
    }
    ck_assert_double_lt(sqrt(error / norm), 2e-2);
    ck_assert_double_gt(sqrt(error / norm), 1e-4);
    ck_assert(memcmp(out32, out16, sizeof out32) == 0);
    dt_free(exact), dt_free(grad);
    tear_down();
}
END_TEST

/* Inputs and gradients are placed at each alignment. */
START_TEST(bits_do_not_depend_on_alignment)
{
    double loss, again;
    choose_kernel("auto");
    set_up(true);
    const size_t count = model->params;
    struct dt_batch batch = {.rows = ROWS, .x = x, .label = label};
    float *grad = randoms(count, 3), *moved = randoms(count + SHIFT, 4), *xs;
    EXPECT_OK(dt__alloc(ROWS * NIN + SHIFT, sizeof *xs, "rows", &xs));
    EXPECT_OK(dt__network_gradient(network, params, &batch, &key, false,
                                   (struct dt_slot){.grad = grad}, &loss, NULL));
    for (size_t shift = 0; shift < SHIFT; shift++) {
        memcpy(xs + shift, x, ROWS * NIN * sizeof *x);
        batch.x = xs + shift;
        float *out = moved + shift * 5 % SHIFT;
        EXPECT_OK(dt__network_gradient(network, params, &batch, &key, false,
                                       (struct dt_slot){.grad = out}, &again, NULL));
        ck_assert(memcmp(grad, out, count * sizeof *grad) == 0);
        ck_assert(memcmp(&loss, &again, sizeof loss) == 0);
    }
    dt_free(grad), dt_free(moved), dt_free(xs);
    tear_down();
}
END_TEST

/* Makes layers wide enough for factors: the first two tiles wide, the second two tiles high. */
static void set_up_wide(void)
{
    const struct dt_model_desc desc =
        desc_of("dense 1100 relu, dense 33 tanh", NIN, 3, DT_TASK_CLASSIFY);
    EXPECT_OK(dt__model_create(&desc, &model));
    EXPECT_OK(dt__network_create(model, ROWS, DT_PRECISION_BF16, &network));
    params = randoms(model->params, 1);
    x = randoms(ROWS * NIN, 2);
    for (int r = 0; r < ROWS; r++)
        label[r] = r % 3;
}

/* Every tile made from factors has the bits of the whole gradient at its place. The gradient
 * outside these matrices is unchanged. With `rows` 0 all tiles are zero. */
static void check_tiles(const struct dt_factored *matrix, int matrices, const void *factors,
                        float *whole, int rows)
{
    double loss;
    const struct dt_batch batch = {.rows = rows, .x = x, .label = label};
    const size_t count = model->params;
    float *pieced = randoms(count, 4);
    EXPECT_OK(dt__network_gradient(network, params, &batch, NULL, false,
                                   (struct dt_slot){.grad = whole}, &loss, NULL));
    const struct dt_slot slot = {.grad = pieced, .factors = (void *)(uintptr_t)factors};
    EXPECT_OK(dt__network_gradient(network, params, &batch, NULL, false, slot, &loss, NULL));
    for (int m = 0; m < matrices; m++) {
        float *tile_values = randoms(matrix[m].tile_rows * matrix[m].tile_columns, 5);
        for (size_t t = 0; t < dt__tiles(&matrix[m]); t++) {
            const struct dt_tile tile = dt__tile_at(&matrix[m], t);
            EXPECT_OK(dt__network_tile(network, m, factors, tile, tile_values));
            for (size_t r = 0; r < tile.rows; r++)
                memcpy(pieced + matrix[m].offset + (tile.row + r) * matrix[m].columns + tile.column,
                       tile_values + r * tile.columns, tile.columns * sizeof(float));
        }
        dt_free(tile_values);
    }
    ck_assert(memcmp(whole, pieced, count * sizeof *whole) == 0);
    dt_free(pieced);
}

static void check_factors(const char *kernel)
{
    struct dt_factored matrix[2];
    void *factors;
    choose_kernel(kernel);
    set_up_wide();
    ck_assert_int_eq(dt__model_factored(model, DT_PRECISION_F32, ROWS, NULL), 0);
    ck_assert_int_eq(dt__model_factored(model, DT_PRECISION_BF16, 4000, NULL), 0);
    ck_assert_int_eq(dt__model_factored(model, DT_PRECISION_BF16, ROWS, matrix), 2);
    for (int m = 0; m < 2; m++)
        ck_assert_uint_gt(dt__tiles(&matrix[m]), 1);
    EXPECT_OK(dt__alloc(matrix[1].place + matrix[1].bytes, 1, "factors", &factors));
    float *whole = randoms(model->params, 3);
    check_tiles(matrix, 2, factors, whole, ROWS);
    void *copies = copies_of(matrix, 2, params);
    dt__network_set_copies(network, copies);
    float *again = randoms(model->params, 3);
    check_tiles(matrix, 2, factors, again, ROWS);
    ck_assert(memcmp(whole, again, model->params * sizeof *whole) == 0);
    check_tiles(matrix, 2, factors, whole, 0);
    check_tiles(matrix, 2, factors, whole, ROWS - 2);
    dt_free(whole), dt_free(again), dt_free(factors), dt_free(copies);
    tear_down();
}

START_TEST(tiles_from_factors_have_the_bits_of_whole_gradients)
{
    check_factors("auto");
}
END_TEST

START_TEST(reference_tiles_have_the_bits_of_whole_gradients)
{
    check_factors("auto-bf16-reference");
}
END_TEST

START_TEST(unknown_kernels_are_refused)
{
    bool native;
    EXPECT_FAIL(dt__bf16_select("oneDNN-bf16-vnni", &native), DT_EUSAGE,
                "run.kernel=oneDNN-bf16-vnni: expected");
    ck_assert_ptr_null(strstr(dt__blas_kernel(), "bf16"));
}
END_TEST

SUITE("bf16", values_are_rounded_to_nearest_even, reference_products_are_right,
      library_products_are_right, gradients_are_near_and_evaluation_is_f32,
      bits_do_not_depend_on_alignment, tiles_from_factors_have_the_bits_of_whole_gradients,
      reference_tiles_have_the_bits_of_whole_gradients, unknown_kernels_are_refused)
