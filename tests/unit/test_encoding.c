/* Encodings of numbers: z against its formula, the sums of ple against fractions written out,
 * gradients against finite differences, and networks against networks whose inputs are already
 * encoded. */
#include "model/encoding.h"
#include "model/vmath.h"
#include "model_text.h"

#include <math.h>

enum { ROWS = 37, DENSE = 3, COLUMNS = 2, KNOTS = 50, WIDTH = 5, NOUT = 4 };

/* ---- z -------------------------------------------------------------------------------------- */

/* Returns the rank of x in q as numpy.interp finds it, or, with `right`, as it does on negated,
 * reversed values. */
static double rank_of(const float *q, int n, double x, bool right)
{
    int below = -1;
    for (int i = 0; i < n; i++)
        if (right ? (double)q[i] < x : (double)q[i] <= x) below = i;
    if (below < 0) return 0;
    if (below == n - 1) return n - 1;
    return below + (x - (double)q[below]) / ((double)q[below + 1] - (double)q[below]);
}

static double normal_of(double p)
{
    double low = -6, high = 6;
    for (int i = 0; i < 80; i++) {
        const double middle = (low + high) / 2;
        *(0.5 * erfc(-middle / sqrt(2)) < p ? &low : &high) = middle;
    }
    return fmax(-5.2, fmin(5.2, low));
}

/* Fails if ranks come from one side only, if the difference of equal quantiles is a divisor, or if
 * tails are cut or lost. */
START_TEST(z_is_the_normal_quantile_of_the_mean_rank)
{
    static float q[2][KNOTS], x[3 * 300][2];
    float *draws = randoms(2 * KNOTS, 1);
    for (int c = 0; c < 2; c++)
        for (int i = 0; i < KNOTS; i++)
            q[c][i] = i ? q[c][i - 1] + (c && i % 7 ? 0 : fabsf(draws[c * KNOTS + i])) : -9;
    const struct dt_quantiles quantiles = {2, KNOTS, &q[0][0]};
    for (int i = 0; i < 900; i++)
        for (int c = 0; c < 2; c++)
            x[i][c] = i < 100 ? q[c][i % KNOTS] : q[c][i % KNOTS] + (float)(i - 400) * 1e-3f;
    static float z[900][2];
    memcpy(z, x, sizeof z);
    dt__quantile_normal(&quantiles, 900, &z[0][0], 2);
    for (int i = 0; i < 900; i++)
        for (int c = 0; c < 2; c++) {
            const double rank = rank_of(q[c], KNOTS, (double)x[i][c], false) +
                                rank_of(q[c], KNOTS, (double)x[i][c], true);
            const double expected = normal_of(rank / 2 / (KNOTS - 1));
            /* rounding x to floats changes ranks near a tail by up to 1e-7 */
            if (!(fabs((double)z[i][c] - expected) < 1e-4))
                ck_abort_msg("column %d, %.9g: z %.9g, not %.9g", c, (double)x[i][c],
                             (double)z[i][c], expected);
            float alone = x[i][c];
            const struct dt_quantiles column_quantiles = {1, KNOTS, q[c]};
            dt__quantile_normal(&column_quantiles, 1, &alone, 1);
            EXPECT(!memcmp(&alone, &z[i][c], sizeof alone));
        }
    dt_free(draws);
}
END_TEST

/* ---- encodings of a model ------------------------------------------------------------------- */

static float knots[COLUMNS * KNOTS], x_of[ROWS * (DENSE + COLUMNS)];
static struct dt_model_desc encoded;
static const int64_t FEATURE[COLUMNS] = {0, 2};

static void make_encoded(int kind, const char *layers)
{
    struct dt_config config;
    const struct dt_quantiles quantiles = {COLUMNS, KNOTS, knots};
    float *draws = randoms(COLUMNS * KNOTS + ROWS * (DENSE + COLUMNS), 7);
    for (int c = 0; c < COLUMNS; c++)
        for (int i = 0; i < KNOTS; i++)
            knots[c * KNOTS + i] = i ? knots[c * KNOTS + i - 1] + fabsf(draws[i]) : 0;
    for (int i = KNOTS / 2; i < KNOTS - 4; i++)
        knots[i] = knots[KNOTS / 2]; /* one value is frequent */
    for (int i = 0; i < ROWS * (DENSE + COLUMNS); i++)
        x_of[i] = draws[COLUMNS * KNOTS + i];
    EXPECT_OK(dt__config_init(&config));
    config.data.encode = kind;
    config.data.encode_bins = config.data.encode_width = WIDTH;
    encoded = desc_of(layers, DENSE, NOUT, DT_TASK_CLASSIFY);
    encoded.dense = DENSE;
    EXPECT_OK(dt__encoding_make(&config, &quantiles, FEATURE, &encoded));
    EXPECT_OK(dt__encoding_check(&encoded, true));
    dt_free(draws), dt__config_free(&config);
}

/* Returns input `i` of a column by its formula. */
static double input_of(int kind, const float *table, int i, double z)
{
    if (kind == DT_ENCODE_COSINE) return cos(2 * M_PI * (double)(float)((double)table[i] * z));
    return fmax(0, fmin(1, (z - (double)table[i]) / ((double)table[i + 1] - (double)table[i])));
}

/* Returns the rows with all encoded inputs written out. */
static float *make_whole(int kind)
{
    const size_t inputs = (size_t)encoded.encode_width, in = DENSE + COLUMNS * (1 + inputs);
    const size_t table_width = inputs + (kind == DT_ENCODE_PLE);
    float *whole;
    EXPECT_OK(dt__alloc(ROWS * in, sizeof *whole, "rows", &whole));
    for (size_t r = 0; r < ROWS; r++) {
        const float *x = x_of + r * (DENSE + COLUMNS);
        memcpy(whole + r * in, x, (DENSE + COLUMNS) * sizeof *x);
        for (size_t c = 0; c < COLUMNS; c++)
            for (size_t i = 0; i < inputs; i++)
                whole[r * in + DENSE + COLUMNS + c * inputs + i] = (float)input_of(
                    kind, encoded.encode_table + c * table_width, (int)i, (double)x[DENSE + c]);
    }
    return whole;
}

static const struct {
    int kind;
    const char *layers;
    int precision;
} NETWORKS[] = {{DT_ENCODE_PLE, "dense 70 tanh, dense 5", DT_PRECISION_F32},
                {DT_ENCODE_PLE, "linear", DT_PRECISION_F32},
                {DT_ENCODE_PLE, "dense 6 tanh, wide", DT_PRECISION_F32},
                {DT_ENCODE_PLE, "scale, dense 6 tanh, wide", DT_PRECISION_F32},
                {DT_ENCODE_COSINE, "dense 6 tanh, wide", DT_PRECISION_F32},
                {DT_ENCODE_NORMAL, "dense 6 tanh", DT_PRECISION_F32}};

/* Fails if a value falls into a neighbouring bin, an edge counts twice, sums run in the wrong
 * direction, a slice restarts at 0, or a column uses another column's weights. */
START_TEST(a_network_equals_one_on_encoded_columns)
{
    const int kind = NETWORKS[_i].kind;
    struct dt_model *model[2];
    struct dt_network *network[2];
    float *grad[2], out[2][ROWS * NOUT];
    double loss[2], part;
    int32_t label[ROWS];
    make_encoded(kind, NETWORKS[_i].layers);
    float *whole = make_whole(kind);
    const int in = DENSE + COLUMNS * (1 + encoded.encode_width);
    const struct dt_model_desc plain = desc_of(NETWORKS[_i].layers, in, NOUT, DT_TASK_CLASSIFY);
    for (int r = 0; r < ROWS; r++)
        label[r] = r % NOUT;
    struct dt_batch batch[2] = {
        {.rows = ROWS, .ndense = DENSE + COLUMNS, .x = x_of, .label = label},
        {.rows = ROWS, .ndense = in, .x = whole, .label = label}};
    for (int m = 0; m < 2; m++) {
        EXPECT_OK(dt__model_create(m ? &plain : &encoded, &model[m]));
        EXPECT_OK(dt__network_create(model[m], ROWS, NETWORKS[_i].precision, &network[m]));
    }
    const size_t count = model[0]->params;
    ck_assert_uint_eq(count, model[1]->params);
    float *params = randoms(count, 1);
    for (int m = 0; m < 2; m++) {
        grad[m] = randoms(count, 2);
        EXPECT_OK(dt__network_forward(network[m], params, &batch[m], out[m]));
        EXPECT_OK(dt__network_gradient(network[m], params, &batch[m], NULL, false,
                                       (struct dt_slot){.grad = grad[m]}, &loss[m], NULL));
    }
    for (int i = 0; i < ROWS * NOUT; i++)
        EXPECT(fabsf(out[0][i] - out[1][i]) < 2e-5f * (1 + fabsf(out[1][i])));
    ck_assert_double_eq_tol(loss[0], loss[1], 1e-4);
    for (size_t i = 0; i < count; i++)
        EXPECT(fabsf(grad[0][i] - grad[1][i]) < 2e-5f * (1 + fabsf(grad[1][i])));
    struct dt_batch first = batch[0], rest = batch[0];
    first.rows = 11, rest.rows = ROWS - 11, rest.x += 11 * (DENSE + COLUMNS), rest.label += 11;
    EXPECT_OK(dt__network_gradient(network[0], params, &first, NULL, false,
                                   (struct dt_slot){.grad = grad[0]}, &part, NULL));
    EXPECT_OK(dt__network_gradient(network[0], params, &rest, NULL, true,
                                   (struct dt_slot){.grad = grad[0]}, &part, NULL));
    for (size_t i = 0; i < count; i++)
        EXPECT(fabsf(grad[0][i] - grad[1][i]) < 2e-5f * (1 + fabsf(grad[1][i])));
    for (int m = 0; m < 2; m++)
        dt_free(grad[m]), dt__network_destroy(network[m]), dt__model_destroy(model[m]);
    dt_free(params), dt_free(whole), dt_free(encoded.encode_table);
}
END_TEST

/* Entries of the sparse part come after the encoded columns, also in the list of touched rows. */
START_TEST(sparse_inputs_come_after_encodings)
{
    enum { SPARSE = 7 };
    struct dt_model *model;
    struct dt_network *network;
    uint64_t offsets[ROWS + 1] = {0};
    uint32_t index[ROWS], listed = 0, row[64];
    int32_t label[ROWS];
    double loss;
    make_encoded(DT_ENCODE_PLE, "dense 6 tanh");
    encoded.shape[2] = DENSE + SPARSE;
    for (uint32_t r = 0; r < ROWS; r++) {
        index[r] = DENSE + r % 3;
        offsets[r + 1] = r + 1;
        label[r] = (int32_t)r % NOUT;
    }
    const struct dt_batch batch = {.rows = ROWS,
                                   .ndense = DENSE + COLUMNS,
                                   .x = x_of,
                                   .offsets = offsets,
                                   .index = index,
                                   .label = label};
    EXPECT_OK(dt__model_create(&encoded, &model));
    EXPECT_OK(dt__network_create(model, ROWS, DT_PRECISION_F32, &network));
    const size_t dense = DENSE + COLUMNS * (1 + WIDTH), count = model->params;
    ck_assert_uint_eq(model->inputs, dense + SPARSE);
    float *params = randoms(count, 1), *whole = randoms(count, 2), *listed_grad = randoms(count, 3);
    const struct dt_touched touched = {row, &listed};
    EXPECT_OK(dt__network_gradient(network, params, &batch, NULL, false,
                                   (struct dt_slot){.grad = whole}, &loss, NULL));
    EXPECT_OK(dt__network_gradient(network, params, &batch, NULL, false,
                                   (struct dt_slot){.grad = listed_grad, .touched = &touched},
                                   &loss, NULL));
    ck_assert_uint_eq(listed, dense + 3);
    ck_assert_int_eq(memcmp(whole, listed_grad, (dense + 3) * 6 * sizeof *listed_grad), 0);
    for (size_t i = (dense + 3) * 6; i < (dense + SPARSE) * 6; i++)
        EXPECT(whole[i] == 0);
    listed = 0;
    EXPECT_OK(dt__network_list_inputs(network, &batch, &touched));
    ck_assert_uint_eq(listed, dense + 3);
    for (uint32_t i = 0; i < listed; i++)
        EXPECT(row[i] == i);
    dt_free(params), dt_free(whole), dt_free(listed_grad), dt_free(encoded.encode_table);
    dt__network_destroy(network), dt__model_destroy(model);
}
END_TEST

/* Compares gradients with differences of the loss along random directions. */
START_TEST(gradients_agree_with_differences)
{
    struct dt_model *model;
    struct dt_network *network;
    int32_t label[ROWS];
    double loss, side_loss[2];
    make_encoded(DT_ENCODE_PLE, "dense 6 tanh");
    for (int r = 0; r < ROWS; r++)
        label[r] = r % NOUT;
    const struct dt_batch batch = {
        .rows = ROWS, .ndense = DENSE + COLUMNS, .x = x_of, .label = label};
    EXPECT_OK(dt__model_create(&encoded, &model));
    EXPECT_OK(dt__network_create(model, ROWS, DT_PRECISION_F32, &network));
    const size_t count = model->params;
    float *params = randoms(count, 1), *moved = randoms(count, 2), *grad = randoms(count, 3);
    float *other = randoms(count, 4);
    EXPECT_OK(dt__network_gradient(network, params, &batch, NULL, false,
                                   (struct dt_slot){.grad = grad}, &loss, NULL));
    for (uint64_t direction = 10; direction < 20; direction++) {
        float *direction_values = randoms(count, direction);
        double expected = 0;
        for (size_t i = 0; i < count; i++)
            expected += (double)grad[i] * (double)direction_values[i];
        for (int side = 0; side < 2; side++) {
            for (size_t i = 0; i < count; i++)
                moved[i] = params[i] + (side ? 1e-3f : -1e-3f) * direction_values[i];
            EXPECT_OK(dt__network_gradient(network, moved, &batch, NULL, false,
                                           (struct dt_slot){.grad = other}, &side_loss[side],
                                           NULL));
        }
        ck_assert_double_eq_tol((side_loss[1] - side_loss[0]) / 2e-3, expected,
                                1e-2 * fabs(expected) + 0.05);
        dt_free(direction_values);
    }
    dt_free(params), dt_free(moved), dt_free(grad), dt_free(other), dt_free(encoded.encode_table);
    dt__network_destroy(network), dt__model_destroy(model);
}
END_TEST

/* A column with few values has few bins, whose edges are these values. Frequencies depend only on
 * seed and feature. */
START_TEST(tables_fit_their_columns)
{
    struct dt_config config;
    float q[2 * 10] = {1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    const struct dt_quantiles quantiles = {2, 10, q};
    struct dt_model_desc desc = {.dense = 4}, again = {.dense = 4};
    EXPECT_OK(dt__config_init(&config));
    config.data.encode = DT_ENCODE_PLE;
    config.data.encode_bins = 4;
    EXPECT_OK(dt__encoding_make(&config, &quantiles, FEATURE, &desc));
    float z[3] = {1, 2, 3};
    dt__quantile_normal(&(struct dt_quantiles){1, 10, q}, 3, z, 1);
    for (int i = 0; i < 3; i++)
        ck_assert_float_eq(desc.encode_table[i], z[i]);
    ck_assert(desc.encode_table[3] > 1e29f && desc.encode_table[4] > desc.encode_table[3]);
    ck_assert_float_eq(desc.encode_table[5], -5.2f);
    ck_assert_float_eq(desc.encode_table[9], 5.2f);
    EXPECT_OK(dt__encoding_check(&desc, true));
    desc.encode_table[2] = desc.encode_table[1];
    EXPECT_FAIL(dt__encoding_check(&desc, true), DT_EFORMAT, "malformed");
    dt_free(desc.encode_table);
    desc = again;
    config.data.encode = DT_ENCODE_COSINE;
    EXPECT_OK(dt__encoding_make(&config, &quantiles, FEATURE, &desc));
    EXPECT_OK(dt__encoding_make(&config, &quantiles, (const int64_t[]){2, 0}, &again));
    const size_t width = (size_t)config.data.encode_width;
    ck_assert_int_eq(memcmp(desc.encode_table, again.encode_table + width, width * sizeof(float)),
                     0);
    ck_assert_int_ne(memcmp(desc.encode_table, again.encode_table, width * sizeof(float)), 0);
    for (size_t i = 0; i < 2 * width; i++)
        EXPECT(fabs((double)desc.encode_table[i]) <= 3 * config.data.encode_scale * (1 + 1e-6));
    desc.encode_columns = 3;
    EXPECT_FAIL(dt__encoding_check(&desc, false), DT_EFORMAT, "malformed");
    dt_free(desc.encode_table), dt_free(again.encode_table), dt__config_free(&config);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("encoding");
    tcase_add_test(tests, z_is_the_normal_quantile_of_the_mean_rank);
    tcase_add_loop_test(tests, a_network_equals_one_on_encoded_columns, 0,
                        sizeof NETWORKS / sizeof *NETWORKS);
    tcase_add_test(tests, sparse_inputs_come_after_encodings);
    tcase_add_test(tests, gradients_agree_with_differences);
    tcase_add_test(tests, tables_fit_their_columns);
    return suite_run_case("encoding", tests);
}
