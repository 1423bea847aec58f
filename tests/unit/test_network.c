/* Networks: gradients against finite differences, dropout, hooks, passes over parts of a batch, the
 * layout of tensors, and texts of layers. */
#include "model/activation.h"
#include "model/onednn.h"
#include "model_text.h"
#include "suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 7, NIN = 5 };

static struct dt_model *model;
static struct dt_network *net;
static float *params, *grad, *x, *target;
static int32_t label[ROWS];
static struct dt_rng key;

static void set_up(struct dt_model_desc desc)
{
    EXPECT_OK(dt__model_create(&desc, &model));
    EXPECT_OK(dt__network_create(model, ROWS, DT_PRECISION_F32, &net));
    const size_t count = model->params, nout = (size_t)desc.nout;
    params = randoms(count, 1);
    grad = randoms(count, 2);
    for (size_t i = 0; i < count; i++)
        params[i] *= 0.5f;
    x = randoms(ROWS * NIN, 3);
    target = randoms(ROWS * nout, 4);
    for (int r = 0; r < ROWS; r++)
        label[r] = r % (desc.nout > 1 ? desc.nout : 2);
    key = dt__rng_make(9, DT_STREAM_DROPOUT, 0, 0);
}

static void tear_down(void)
{
    dt_free(params), dt_free(grad), dt_free(x), dt_free(target);
    dt__network_destroy(net);
    dt__model_destroy(model);
}

static struct dt_batch whole_batch(void)
{
    return (struct dt_batch){.rows = ROWS, .x = x, .label = label, .target = target};
}

static double loss_at(size_t i, float value)
{
    const float saved = params[i];
    struct dt_batch batch = whole_batch();
    double loss;
    float *unused = randoms(model->params, 6);
    params[i] = value;
    EXPECT_OK(dt__network_gradient(net, params, &batch, &key, false,
                                   (struct dt_slot){.grad = unused}, &loss, NULL));
    params[i] = saved;
    dt_free(unused);
    return loss;
}

/* Compares gradients with central differences in f32: the loss has an error of about 1e-6, so a
 * step of 1e-2 gives slopes to 1e-4. */
static void check_gradient(void)
{
    struct dt_batch batch = whole_batch();
    double loss, norm = 0.0, error = 0.0;
    EXPECT_OK(dt__network_gradient(net, params, &batch, &key, false, (struct dt_slot){.grad = grad},
                                   &loss, NULL));
    for (size_t i = 0; i < model->params; i++) {
        const float h = 1e-2f, up = params[i] + h, down = params[i] - h;
        double slope = (loss_at(i, up) - loss_at(i, down)) / ((double)up - (double)down);
        norm += slope * slope;
        error += (slope - (double)grad[i]) * (slope - (double)grad[i]);
    }
    ck_assert_double_lt(sqrt(error / norm), 2e-3);
}

/* Fails if the derivative of an activation, a loss or a layer is wrong, with or without dropout.
 * relu is left out, because its kinks would give errors; the golden gradients test it to 1e-5. */
static void check_mlp(int variant)
{
    const int activation = variant % 4, task = variant / 4 % 2, nout = variant / 8 % 2 ? 1 : 3,
              drop = variant / 16;
    if (activation == DT_ACT_RELU) return;
    char layers[128], word[16];
    const char *dropout = drop ? ", dropout 0.4" : "";
    dt__config_choice(DT_ACTIVATION_CHOICES, activation, word);
    snprintf(layers, sizeof layers, "dense 6 %s%s, dense 4 %s%s", word, dropout, word, dropout);
    set_up(desc_of(layers, NIN, nout, task));
    check_gradient();
    tear_down();
}

START_TEST(gradients_agree_with_differences)
{
    for (int i = 0; i < 32; i++)
        check_mlp(i);
}
END_TEST

static void check_linear(int variant)
{
    set_up(desc_of("linear", NIN, variant / 2 ? 1 : 3, variant % 2));
    check_gradient();
    tear_down();
}

START_TEST(linear_gradients_agree_with_differences)
{
    for (int i = 0; i < 4; i++)
        check_linear(i);
}
END_TEST

/* Activations and dropout as layers of their own: first, last, and several in a row. */
START_TEST(activations_and_dropout_may_be_layers)
{
    static const char *const texts[] = {"tanh, dense 5, sigmoid",
                                        "dense 6 tanh, gelu, dropout 0.3",
                                        "dropout 0.4, dense 5 tanh, dropout 0.3, dropout 0.2",
                                        "dense 4, dropout 0.5",
                                        "dense 5 silu, silu",
                                        "scale tanh, dense 5 tanh, scale, dropout 0.3, scale"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        set_up(desc_of(texts[i], NIN, 3, DT_TASK_CLASSIFY));
        check_gradient();
        tear_down();
    }
}
END_TEST

/* ---- dropout -------------------------------------------------------------------------------- */

enum { WIDE = 1000, MANY = 40 };

/* Computes the hidden units of one row: with output weights 0 the gradient of weight j is -2 *
 * target * unit j. */
static void masked_units(const struct dt_rng *rng, uint64_t first_row, float *units)
{
    double loss;
    const struct dt_tensor *bias = &model->tensor[1], *output = &model->tensor[2];
    const float row_target = -0.5f;
    struct dt_batch batch = {.rows = 1, .first_row = first_row, .x = x, .target = &row_target};
    memset(params, 0, model->params * sizeof *params);
    for (int i = 0; i < WIDE; i++)
        params[bias->offset + (size_t)i] = 1.0f;
    EXPECT_OK(dt__network_gradient(net, params, &batch, rng, false, (struct dt_slot){.grad = grad},
                                   &loss, NULL));
    memcpy(units, grad + output->offset, WIDE * sizeof *units);
}

/* Fails if the rate or the scale is wrong, or if masks are correlated between draws, rows or
 * units. */
static void check_dropout(const char *layers)
{
    float units[WIDE];
    double kept = 0.0, pairs = 0.0, last = 0.0;
    const double rate = 0.3;
    set_up(desc_of(layers, NIN, 1, DT_TASK_REGRESS));
    for (uint64_t row = 0; row < MANY; row++) {
        masked_units(&key, row, units);
        for (int i = 0; i < WIDE; i++) {
            bool on = units[i] != 0.0f;
            if (on) ck_assert_float_eq_tol(units[i], (float)(1.0 / (1.0 - rate)), 1e-6f);
            kept += on;
            pairs += on * last;
            last = on;
        }
    }
    const double count = WIDE * MANY, sigma = sqrt(rate * (1.0 - rate) / count);
    ck_assert_double_eq_tol(kept / count, 1.0 - rate, 4.0 * sigma);
    ck_assert_double_eq_tol(pairs / count, (1.0 - rate) * (1.0 - rate), 8.0 * sigma);
    tear_down();
}

START_TEST(dropout_drops_at_its_rate)
{
    check_dropout("dense 1000 relu, dropout 0.3");
    check_dropout("dense 1000 relu, relu, dropout 0.3"); /* as a separate layer */
}
END_TEST

/* A range of drop numbers gives the same mask as its numbers one at a time: number n uses word n %
 * 4 of block n / 4 of the key. */
START_TEST(masks_depend_on_drop_numbers)
{
    float single, unused = 1.0f, part[WIDE], other[WIDE];
    const struct dt__dropout dropout = {.key = dt__rng_make(1, DT_STREAM_DROPOUT, 2, 3),
                                        .rate = 0.5};
    for (uint64_t start = 0; start < 9; start++) {
        for (int i = 0; i < WIDE; i++)
            part[i] = other[i] = 1.0f;
        dt__dropout_apply(&dropout, start, WIDE, part, other);
        for (int i = 0; i < WIDE; i++) {
            uint32_t words[4];
            const uint64_t number = start + (uint64_t)i;
            dt__rng_block(&dropout.key, number / 4, words);
            single = 1.0f;
            dt__dropout_apply(&dropout, number, 1, &single, &unused);
            ck_assert(part[i] == single && other[i] == single);
            ck_assert(single == (words[number % 4] < 0x80000000u ? 0.0f : 2.0f));
        }
    }
}
END_TEST

/* The same key and row give the same mask, another key or row gives another; evaluation drops
 * nothing. */
START_TEST(masks_depend_on_key_and_row)
{
    float first[WIDE], again[WIDE], out;
    struct dt_rng other = dt__rng_make(9, DT_STREAM_DROPOUT, 0, 1);
    set_up(desc_of("dense 1000 relu, dropout 0.5", NIN, 1, DT_TASK_REGRESS));
    masked_units(&key, 3, first);
    masked_units(&other, 3, again);
    ck_assert(memcmp(first, again, sizeof first) != 0);
    masked_units(&key, 4, again);
    ck_assert(memcmp(first, again, sizeof first) != 0);
    masked_units(&key, 3, again);
    ck_assert(memcmp(first, again, sizeof first) == 0);
    for (int i = 0; i < WIDE; i++)
        params[model->tensor[2].offset + (size_t)i] = 1.0f;
    const struct dt_batch single = {.rows = 1, .x = x};
    EXPECT_OK(dt__network_forward(net, params, &single, &out));
    ck_assert_float_eq(out, (float)WIDE);
    tear_down();
}
END_TEST

/* ---- calls ---------------------------------------------------------------------------------- */

#define SMALL "dense 70 gelu, dense 9 gelu"
#define SMALL_DROPPING "dense 70 gelu, dropout 0.3, dense 9 gelu, dropout 0.3"

/* A batch in parts, with first_row, must draw the masks of the whole batch, and its sums must add
 * up. */
START_TEST(parts_of_a_batch_add_up)
{
    double whole_loss, loss, sum = 0.0;
    set_up(desc_of(SMALL_DROPPING ", scale, dense 4, sigmoid", NIN, 3, DT_TASK_CLASSIFY));
    const size_t count = model->params;
    float *whole = randoms(count, 7);
    struct dt_batch batch = whole_batch();
    EXPECT_OK(dt__network_gradient(net, params, &batch, &key, false,
                                   (struct dt_slot){.grad = whole}, &whole_loss, NULL));
    for (int r = 0; r < ROWS; r += 3) {
        struct dt_batch slice = {.rows = ROWS - r < 3 ? ROWS - r : 3,
                                 .first_row = (uint64_t)r,
                                 .x = x + r * NIN,
                                 .label = label + r};
        EXPECT_OK(dt__network_gradient(net, params, &slice, &key, r > 0,
                                       (struct dt_slot){.grad = grad}, &loss, NULL));
        sum += loss;
    }
    ck_assert_double_eq_tol(sum, whole_loss, 1e-5);
    for (size_t i = 0; i < count; i++)
        ck_assert_float_eq_tol(grad[i], whole[i], 2e-5f);
    dt_free(whole);
    tear_down();
}
END_TEST

/* A row of weight w counts as w rows. */
START_TEST(weights_count_as_repetitions)
{
    static const int source[] = {0, 0, 0, 2, 3, 3}, outputs[] = {3, 1, 2};
    const float weight[] = {3.0f, 0.0f, 1.0f, 2.0f};
    for (int kind = 0; kind < 3; kind++) {
        double loss, again_loss;
        set_up(desc_of(SMALL, NIN, outputs[kind], kind == 2 ? DT_TASK_REGRESS : DT_TASK_CLASSIFY));
        const size_t count = model->params;
        float *again = randoms(count, 7), xs[6 * NIN], targets[6 * 2];
        int32_t labels[6];
        for (int i = 0; i < 6; i++) {
            memcpy(xs + i * NIN, x + source[i] * NIN, NIN * sizeof *xs);
            for (int t = 0; t < 2; t++)
                targets[2 * i + t] = target[source[i] * 2 + t];
            labels[i] = label[source[i]];
        }
        const struct dt_batch weighted = {
            .rows = 4, .x = x, .label = label, .target = target, .weight = weight};
        const struct dt_batch repeated = {.rows = 6, .x = xs, .label = labels, .target = targets};
        EXPECT_OK(dt__network_gradient(net, params, &weighted, NULL, false,
                                       (struct dt_slot){.grad = grad}, &loss, NULL));
        EXPECT_OK(dt__network_gradient(net, params, &repeated, NULL, false,
                                       (struct dt_slot){.grad = again}, &again_loss, NULL));
        ck_assert_double_eq_tol(loss, again_loss, 1e-5);
        for (size_t i = 0; i < count; i++)
            ck_assert_float_eq_tol(grad[i], again[i], 2e-5f);
        dt_free(again);
        tear_down();
    }
}
END_TEST

/* Gradients go directly into exchange buffers and weights are read in place, so both may have any
 * address. */
START_TEST(bits_do_not_depend_on_alignment)
{
    enum { SHIFT = 16 };
    double loss, moved_loss;
    set_up(desc_of(SMALL_DROPPING, NIN, 3, DT_TASK_CLASSIFY));
    const size_t count = model->params;
    float *p = randoms(count + SHIFT, 7), *g = randoms(count + SHIFT, 8),
          *xs = randoms(ROWS * NIN + SHIFT, 9);
    struct dt_batch batch = whole_batch();
    EXPECT_OK(dt__network_gradient(net, params, &batch, &key, false, (struct dt_slot){.grad = grad},
                                   &loss, NULL));
    for (size_t shift = 1; shift < SHIFT; shift++) {
        const size_t other = shift * 5 % SHIFT;
        memcpy(p + shift, params, count * sizeof *p);
        memcpy(xs + other, x, ROWS * NIN * sizeof *x);
        batch.x = xs + other;
        EXPECT_OK(dt__network_gradient(net, p + shift, &batch, &key, false,
                                       (struct dt_slot){.grad = g + other}, &moved_loss, NULL));
        ck_assert(memcmp(grad, g + other, count * sizeof *g) == 0);
        ck_assert(memcmp(&loss, &moved_loss, sizeof loss) == 0);
    }
    dt_free(p), dt_free(g), dt_free(xs);
    tear_down();
}
END_TEST

struct calls {
    int forward[8], backward[8], nforward, nbackward;
    float *seen; /* the layer's gradient when its hook is called */
};

static void record_forward(void *arg, int layer)
{
    struct calls *calls = arg;
    ck_assert_int_eq(calls->nbackward, 0);
    calls->forward[calls->nforward++] = layer;
}

/* Overwrites the layer's weights: if they were read later, the gradient would differ. */
static void record_backward(void *arg, int layer)
{
    struct calls *calls = arg;
    const size_t *ends = model->bucket_end, begin = layer ? ends[layer - 1] : 0;
    calls->backward[calls->nbackward++] = layer;
    memcpy(calls->seen + begin, grad + begin, (ends[layer] - begin) * sizeof *grad);
    for (size_t i = begin; i < ends[layer]; i++)
        params[i] = NAN;
}

/* Checks the hooks: at a layer's hook the exchange sends the layer's bucket and may change its
 * weights. */
static void check_hooks(int variant)
{
    double loss;
    const bool empty = variant;
    set_up(desc_of(SMALL, NIN, 3, DT_TASK_CLASSIFY));
    const size_t count = model->params;
    float *plain = randoms(count, 7);
    struct calls calls = {.seen = randoms(count, 8)};
    const struct dt_network_hooks hooks = {record_forward, record_backward, &calls};
    struct dt_batch batch = whole_batch();
    if (empty) batch.rows = 0;
    EXPECT_OK(dt__network_gradient(net, params, &batch, NULL, false,
                                   (struct dt_slot){.grad = plain}, &loss, NULL));
    EXPECT_OK(dt__network_gradient(net, params, &batch, NULL, false, (struct dt_slot){.grad = grad},
                                   &loss, &hooks));
    ck_assert_int_eq(calls.nforward, 3);
    ck_assert_int_eq(calls.nbackward, 3);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(calls.forward[i], i);
        ck_assert_int_eq(calls.backward[i], 2 - i);
    }
    ck_assert(memcmp(plain, calls.seen, count * sizeof *plain) == 0);
    ck_assert(memcmp(plain, grad, count * sizeof *plain) == 0);
    if (empty)
        for (size_t i = 0; i < count; i++)
            ck_assert(grad[i] == 0.0f);
    dt_free(plain), dt_free(calls.seen);
    tear_down();
}

START_TEST(hooks_are_called_when_a_layer_is_done)
{
    for (int i = 0; i < 2; i++)
        check_hooks(i);
}
END_TEST

START_TEST(no_rows_add_nothing)
{
    double loss = 1.0;
    set_up(desc_of(SMALL_DROPPING, NIN, 3, DT_TASK_CLASSIFY));
    const struct dt_batch none = {.rows = 0};
    float *saved = randoms(model->params, 2);
    EXPECT_OK(dt__network_gradient(net, params, &none, &key, true, (struct dt_slot){.grad = grad},
                                   &loss, NULL));
    ck_assert(loss == 0.0);
    ck_assert(memcmp(saved, grad, model->params * sizeof *grad) == 0);
    dt_free(saved);
    tear_down();
}
END_TEST

/* NaN must reach the loss through every activation, because the caller checks the loss. */
static void check_nan(int variant)
{
    double loss;
    char layers[64], word[16];
    snprintf(layers, sizeof layers, "dense 70 %s, dense 9",
             dt__config_choice(DT_ACTIVATION_CHOICES, variant, word));
    set_up(desc_of(layers, NIN, 3, DT_TASK_CLASSIFY));
    struct dt_batch batch = whole_batch();
    params[model->tensor[1].offset] = NAN;
    EXPECT_OK(dt__network_gradient(net, params, &batch, NULL, false, (struct dt_slot){.grad = grad},
                                   &loss, NULL));
    ck_assert(isnan(loss));
    tear_down();
}

START_TEST(nan_reaches_the_loss)
{
    for (int i = 0; i < 4; i++)
        check_nan(i);
}
END_TEST

/* ---- model ---------------------------------------------------------------------------------- */

START_TEST(tensors_are_contiguous)
{
    static const struct {
        const char *name;
        int layer, rank;
        size_t shape[2];
    } tensors[] = {{"layers/0/weight", 0, 2, {NIN, 70}}, {"layers/0/bias", 0, 1, {70}},
                   {"layers/1/weight", 1, 2, {70, 9}},   {"layers/1/bias", 1, 1, {9}},
                   {"layers/2/weight", 2, 2, {9, 3}},    {"layers/2/bias", 2, 1, {3}}};
    set_up(desc_of(SMALL_DROPPING, NIN, 3, DT_TASK_CLASSIFY));
    ck_assert_uint_eq(model->tensors, 6);
    ck_assert_int_eq(model->buckets, 3);
    size_t at = 0;
    for (size_t i = 0; i < 6; i++) {
        const struct dt_tensor *tensor = &model->tensor[i];
        ck_assert_str_eq(tensor->name, tensors[i].name);
        ck_assert_int_eq(tensor->layer, tensors[i].layer);
        ck_assert_int_eq(tensor->rank, tensors[i].rank);
        ck_assert_uint_eq(tensor->shape[0], tensors[i].shape[0]);
        ck_assert_uint_eq(tensor->shape[1], tensors[i].shape[1]);
        ck_assert_uint_eq(tensor->offset, at);
        at += tensor->count;
        if (i % 2) ck_assert_uint_eq(model->bucket_end[i / 2], at);
    }
    ck_assert_uint_eq(model->params, at);
    ck_assert_uint_eq(model->trained, at);
    ck_assert_uint_eq(model->features, NIN);
    tear_down();
}
END_TEST

START_TEST(table_lists_shapes_and_costs)
{
    char *table;
    struct dt_model_desc desc =
        desc_of("dense 10 relu, dropout 0.5, tanh, batchnorm", 6, 4, DT_TASK_CLASSIFY);
    desc.shape[0] = 3, desc.shape[1] = 2, desc.shape[2] = 1;
    EXPECT_OK(dt__model_create(&desc, &model));
    EXPECT_OK(dt__model_table(model, &table));
    ck_assert_str_eq(
        table,
        "layer                                          output   parameters  multiply-adds\n"
        "input                                       3 x 2 x 1            0              0\n"
        "dense 10 relu, dropout 0.5                         10           70             60\n"
        "tanh                                               10            0              0\n"
        "batchnorm                                          10           40             20\n"
        "output                                              4           44             40\n"
        "all                                                            154            120\n");
    dt_free(table);
    dt__model_destroy(model);
}
END_TEST

static void check_spread(int variant)
{
    char layers[64], word[16];
    dt__config_choice(DT_ACTIVATION_CHOICES, variant, word);
    snprintf(layers, sizeof layers, "dense 300 %s, dense 200 %s", word, word);
    struct dt_model_desc desc = desc_of(layers, 400, 1, DT_TASK_REGRESS);
    EXPECT_OK(dt__model_create(&desc, &model));
    params = randoms(model->params, 1);
    dt__model_init(model, 77, params);
    for (size_t i = 0; i < 6; i += 2) {
        const struct dt_tensor *weight = &model->tensor[i], *bias = weight + 1;
        const bool he = i < 4 && (variant == DT_ACT_RELU || variant == DT_ACT_GELU);
        const double nin = (double)weight->shape[0], nout = (double)weight->shape[1];
        const double expected = he ? 2.0 / nin : 2.0 / (nin + nout);
        const double count = (double)weight->count;
        double sum = 0.0, square = 0.0, greatest = 0.0;
        for (size_t j = weight->offset; j < bias->offset; j++) {
            double w = (double)params[j];
            sum += w, square += w * w;
            if (fabs(w) > greatest) greatest = fabs(w);
        }
        ck_assert_double_eq_tol(square / count / expected, 1.0, 8.0 / sqrt(count));
        ck_assert_double_eq_tol(sum / count, 0.0, 5.0 * sqrt(expected / count));
        if (!he) ck_assert_double_le(greatest, sqrt(3.0 * expected) * 1.000001);
        for (size_t j = bias->offset; j < bias->offset + bias->count; j++)
            ck_assert(params[j] == 0.0f);
    }
    const float first = params[0];
    dt__model_init(model, 78, params);
    ck_assert(params[0] != first);
    dt_free(params);
    dt__model_destroy(model);
}

START_TEST(initial_weights_have_the_right_variance)
{
    for (int i = 0; i < 4; i++)
        check_spread(i);
}
END_TEST

/* ---- a library that fails ------------------------------------------------------------------- */

static dnnl_cpu_isa_t any_isa(void)
{
    return dnnl_cpu_isa_avx512_core;
}

static dnnl_status_t failing_sgemm(char ta, char tb, dnnl_dim_t m, dnnl_dim_t n, dnnl_dim_t k,
                                   float alpha, const float *a, dnnl_dim_t lda, const float *b,
                                   dnnl_dim_t ldb, float beta, float *c, dnnl_dim_t ldc)
{
    (void)ta, (void)tb, (void)m, (void)n, (void)k, (void)alpha, (void)a, (void)lda;
    (void)b, (void)ldb, (void)beta, (void)c, (void)ldc;
    return dnnl_out_of_memory;
}

/* Fails if oneDNN cannot compute a product and training goes on with the earlier contents of
 * memory. */
START_TEST(a_product_that_fails_is_an_error)
{
    double loss;
    float out[3 * ROWS];
    set_up(desc_of(SMALL, NIN, 3, DT_TASK_CLASSIFY));
    const struct dt_batch batch = whole_batch();
    EXPECT_OK(dt__onednn_load());
    dnnl.get_effective_cpu_isa = any_isa;
    dnnl.sgemm = failing_sgemm;
    ck_assert(dt__blas_choose("oneDNN"));
    EXPECT_FAIL(dt__network_gradient(net, params, &batch, NULL, false,
                                     (struct dt_slot){.grad = grad}, &loss, NULL),
                DT_EMEMORY, "oneDNN: the product (7, 5) x (5, 70) failed");
    EXPECT_FAIL(dt__network_forward(net, params, &batch, out), DT_EMEMORY, "oneDNN");
    tear_down();
}
END_TEST

/* ---- text ----------------------------------------------------------------------------------- */

/* Makes a configuration with the assignments (up to NULL), and resolves its layers. */
static dt_status resolve(const char *const *assignments, struct dt_config *config)
{
    EXPECT_OK(dt__config_init(config));
    for (; *assignments; assignments++)
        EXPECT_OK(dt_config_set(config, *assignments));
    return dt__model_resolve(config);
}

static const struct {
    const char *given[4], *text; /* text: the resolved layers or, if `wrong`, a part of the
                                  * message */
    bool wrong;
} given_texts[] = {
    {{NULL}, "dense 512 relu, dense 256 relu", false},
    {{"model.hidden= 16 ", "model.dropout=0.25"}, "dense 16 relu, dropout 0.25", false},
    {{"model.hidden=1,2 , 3", "model.activation=tanh"},
     "dense 1 tanh, dense 2 tanh, dense 3 tanh",
     false},
    {{"model.hidden=1048576"}, "dense 1048576 relu", false},
    {{"model.kind=linear", "model.dropout=0.5"}, "linear", false},
    {{"model.layers=linear"}, "linear", false},
    {{"model.layers= dense  7\ttanh ,dropout 0.1,dense 3 "},
     "dense 7 tanh, dropout 0.1, dense 3",
     false},
    {{"model.layers=dense 7, relu, dropout 0.1, sigmoid"},
     "dense 7, relu, dropout 0.1, sigmoid",
     false},
    {{"model.hidden=5", "model.embedding=4", "model.wide=yes"},
     "embedding 4, dense 5 relu, wide",
     false},
    {{"model.kind=linear", "model.embedding=4"}, "embedding 4", false},
    {{"model.layers=embedding 8,dense 3,wide"}, "embedding 8, dense 3, wide", false},
    {{"model.layers=embedding 8, dense 3", "model.embedding=8", "model.wide=yes"},
     "embedding 8, dense 3, wide",
     false},
    {{"model.layers=embedding 8", "model.embedding=4"},
     "model.embedding=4 and model.layers, which begins with embedding 8",
     true},
    {{"model.layers=dense 3, wide", "model.wide=no"}, "model.wide=no and model.layers", true},
    {{"model.kind=linear", "model.wide=yes"}, "model.wide=yes: expected layers besides", true},
    {{"model.layers=wide, dense 3"}, "item 2: there is an item after 'wide'", true},
    {{"model.layers=residual(dense 3, wide)"}, "an output layer inside a residual", true},
    {{"model.layers=dense 3, output wide"}, "'output wide': expected wide, without", true},
    {{"model.layers=embedding 0"}, "'embedding 0': expected embedding WIDTH", true},
    {{"model.layers=dense 64, dropout 0.2 relu"}, "expected dropout", true},
    {{"model.layers=embedding 8 relu, dense 16"}, "expected embedding WIDTH", true},
    {{"model.layers=dense 8, wide relu, dense 4"}, "expected wide", true},
    {{"model.layers=dense 8, wide, residual(dense 8)"}, "there is an item after 'wide'", true},
    {{"model.layers=output dense 3, residual(dense 3)"}, "there is an item after the output", true},
    {{"model.layers=residual(dense 8) dense 16"}, "expected a comma or an activation", true},
    {{"model.layers=conv1d 8 3 stride 2x5"}, "expected conv1d", true},
    {{"model.layers=conv1d 8 3 pad 1x2"}, "expected conv1d", true},
    {{"model.hidden="}, "expected widths from 1 to 1048576", true},
    {{"model.hidden=0"}, "expected widths", true},
    {{"model.hidden=12,"}, "expected widths", true},
    {{"model.hidden=,3"}, "expected widths", true},
    {{"model.hidden=3 4"}, "expected widths", true},
    {{"model.hidden=-3"}, "expected widths", true},
    {{"model.hidden=1048577"}, "expected widths", true},
    {{"model.hidden=99999999999999999999"}, "expected widths", true},
    {{"model.hidden=7x"}, "expected widths", true},
    {{"model.hidden=000000000000064000"}, "expected widths", true},
    {{"model.layers=dense 7, dens 5"},
     "item 2: 'dens' is no layer: expected one of dense, conv,",
     true},
    {{"model.layers=dense"}, "'dense': expected dense N [activation]", true},
    {{"model.layers=dense 0"}, "'dense 0': expected dense N", true},
    {{"model.layers=dense 5 relu tanh"}, "'dense 5 relu tanh': expected dense N", true},
    {{"model.layers=dense 5,"}, "item 2: an empty item", true},
    {{"model.layers=dropout 1"}, "'dropout 1': expected dropout P", true},
    {{"model.layers=dropout nan"}, "expected dropout P", true},
    {{"model.layers=relu 3"}, "'relu 3': expected", true},
    {{"model.layers=dense 5 relu", "model.hidden=6"},
     "model.hidden and model.layers: expected one",
     true},
};

START_TEST(texts_get_their_canonical_form)
{
    for (size_t i = 0; i < sizeof given_texts / sizeof *given_texts; i++) {
        struct dt_config config;
        dt_status status = resolve(given_texts[i].given, &config);
        ck_assert_msg(status == (given_texts[i].wrong ? DT_EUSAGE : DT_OK), "%s: %d",
                      given_texts[i].text, status);
        if (given_texts[i].wrong)
            ck_assert_msg(strstr(dt_error_text(), given_texts[i].text), "'%s' without '%s'",
                          dt_error_text(), given_texts[i].text);
        else
            ck_assert_str_eq(config.model.layers, given_texts[i].text);
        if (!status) EXPECT_OK(dt__model_resolve(&config));
        dt__config_free(&config);
    }
}
END_TEST

/* config.ini of a run is read back as the same network, and lists its layers once. */
START_TEST(resolved_layers_are_printed_alone)
{
    struct dt_config config, again;
    char *text;
    EXPECT_OK(resolve((const char *const[]){"model.hidden=7", NULL}, &config));
    EXPECT_OK(dt_config_print(&config, &text));
    ck_assert_ptr_nonnull(strstr(text, "layers = dense 7 relu\n"));
    ck_assert_ptr_null(strstr(text, "hidden"));
    EXPECT_OK(dt__config_init(&again));
    EXPECT_OK(dt_config_read_text(&again, "config.ini", text));
    EXPECT_OK(dt__model_resolve(&again));
    ck_assert_str_eq(again.model.layers, config.model.layers);
    EXPECT_OK(dt__config_match(&config, &again));
    dt_free(text);
    dt__config_free(&config);
    dt__config_free(&again);
}
END_TEST

/* A description may come from a hostile checkpoint. */
START_TEST(bad_descriptions_are_refused)
{
    char many[30000] = "dense 1";
    for (size_t at = strlen(many); at + 6 < sizeof many; at += 5)
        memcpy(many + at, ",relu", 6);
    const char *const texts[] = {"",
                                 "dense",
                                 "dense -1",
                                 "dense 1048577",
                                 "conv",
                                 many,
                                 "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18"};
    for (size_t i = 0; i < 8 + sizeof texts / sizeof *texts; i++) {
        struct dt_model_desc desc = desc_of(SMALL, NIN, 3, DT_TASK_CLASSIFY);
        struct dt_model *made = NULL;
        if (i == 0) desc.task = 3;
        if (i == 1) desc.task = -1;
        if (i == 2) desc.nout = -4;
        if (i == 3) desc.nout = DT_MAX_WIDTH + 1;
        if (i < 7 && i > 3) desc.shape[i - 4] = 0;
        if (i == 7) desc.shape[0] = desc.shape[1] = 65536;
        if (i > 7) desc.layers = (char *)(uintptr_t)texts[i - 8];
        ck_assert_msg(dt__model_create(&desc, &made) == DT_EUSAGE, "description %zu", i);
        ck_assert_ptr_null(made);
    }
}
END_TEST

/* Fails if a softmax of parts overflows: e^x of these outputs exceeds a float, and the largest
 * output may be in any part. */
START_TEST(parts_of_a_softmax_make_the_whole)
{
    enum { PARTS = 3, OUTPUTS = 2, CLASSES = PARTS * OUTPUTS };
    static const float logits[CLASSES] = {-150, -148, 1, 140, 138, 141};
    static const float weights[CLASSES] = {1, 2, 0.5f, 3, 1, 1};
    /* z of each part, row and output: the parts take turns, and each class is a label once */
    float z[PARTS][CLASSES][OUTPUTS];
    int32_t labels[CLASSES];
    struct dt_softmax_part part[PARTS * CLASSES];
    const struct dt_batch batch = {.rows = CLASSES, .weight = weights};
    double loss = 0;
    for (int p = 0; p < PARTS; p++)
        for (int r = 0; r < CLASSES; r++)
            for (int i = 0; i < OUTPUTS; i++)
                z[p][r][i] = logits[((p + r) % PARTS) * OUTPUTS + i];
    for (int r = 0; r < CLASSES; r++)
        labels[r] = r;
    for (int p = 0; p < PARTS; p++)
        dt__softmax_part(CLASSES, OUTPUTS, p * OUTPUTS, labels, z[p][0],
                         part + (size_t)p * CLASSES);
    const double got = dt__softmax_join(&batch, PARTS, CLASSES, part);
    for (int p = 0; p < PARTS; p++)
        dt__softmax_part_gradient(CLASSES, OUTPUTS, p * OUTPUTS, labels, z[p][0],
                                  part + (size_t)p * CLASSES);
    for (int r = 0; r < CLASSES; r++) {
        double sum = 0;
        for (int i = 0; i < CLASSES; i++)
            sum += exp((double)logits[i] - 141);
        for (int i = 0; i < CLASSES; i++) {
            const double logit = logits[((i / OUTPUTS + r) % PARTS) * OUTPUTS + i % OUTPUTS];
            const double probability = exp(logit - 141) / sum;
            if (i == r) loss += (double)weights[r] * -(logit - 141 - log(sum));
            ck_assert_double_eq_tol((double)z[i / OUTPUTS][r][i % OUTPUTS],
                                    (double)weights[r] * (probability - (i == r)), 1e-6);
        }
    }
    ck_assert_double_eq_tol(got, loss, 1e-4);
}
END_TEST

/* ---- independent rows ----------------------------------------------------------------------- */

enum { MANY_ROWS = 300, INPUTS = 36 };
static const char *const KERNELS[] = {"auto",    "oneDNN",      "SkylakeX", "Haswell", "Zen",
                                      "Nehalem", "Sandybridge", "Prescott", "portable"};

/* Predicts the first `rows` of the MANY_ROWS rows alone, then the last `rows`. */
static void check_independent(const char *kernel, const float *rows_x, const float *expected,
                              int rows, int nout)
{
    float out[MANY_ROWS * 3];
    for (int end = 0; end < 2; end++) {
        const int first = end ? MANY_ROWS - rows : 0;
        const struct dt_batch batch = {
            .rows = rows, .ndense = INPUTS, .x = rows_x + (size_t)first * INPUTS};
        EXPECT_OK(dt__network_forward(net, params, &batch, out));
        if (memcmp(out, expected + first * nout, (size_t)(rows * nout) * sizeof *out))
            ck_abort_msg("%s: %d rows from %d on, other bits", kernel, rows, first);
    }
}

/* Fails if the last digits of a prediction depend on how many rows, or which, are predicted
 * together. */
START_TEST(rows_are_independent_under_each_kernel)
{
    static const struct {
        const char *layers;
        int shape[3], nout;
    } nets[] = {{"dense 50 relu, dense 20 tanh", {1, 1, INPUTS}, 3},
                {"dense 9 gelu, layernorm, wide", {1, 1, INPUTS}, 1},
                {"conv 6 3x3 pad same relu, maxpool 2, flatten, dense 40 relu", {6, 6, 1}, 3}};
    float expected[MANY_ROWS * 3], *rows_x = randoms(MANY_ROWS * INPUTS, 8);
    for (size_t k = 0; k < sizeof KERNELS / sizeof *KERNELS; k++)
        for (size_t n = 0; n < sizeof nets / sizeof *nets; n++) {
            struct dt_model_desc desc =
                desc_of(nets[n].layers, INPUTS, nets[n].nout, DT_TASK_CLASSIFY);
            memcpy(desc.shape, nets[n].shape, sizeof desc.shape);
            if (dt__blas_select(KERNELS[k])) continue; /* the CPU cannot run it */
            EXPECT_OK(dt__model_create(&desc, &model));
            EXPECT_OK(dt__network_create(model, MANY_ROWS, DT_PRECISION_F32, &net));
            dt__network_set_rowwise(net);
            params = randoms(model->params, 1);
            const struct dt_batch all = {.rows = MANY_ROWS, .ndense = INPUTS, .x = rows_x};
            EXPECT_OK(dt__network_forward(net, params, &all, expected));
            for (int rows = 1; rows <= MANY_ROWS; rows += k + n ? 23 : 1)
                check_independent(KERNELS[k], rows_x, expected, rows, nets[n].nout);
            dt_free(params);
            dt__network_destroy(net);
            dt__model_destroy(model);
        }
    dt_free(rows_x);
}
END_TEST

SUITE("network", gradients_agree_with_differences, linear_gradients_agree_with_differences,
      activations_and_dropout_may_be_layers, dropout_drops_at_its_rate,
      masks_depend_on_drop_numbers, masks_depend_on_key_and_row, parts_of_a_batch_add_up,
      weights_count_as_repetitions, bits_do_not_depend_on_alignment,
      hooks_are_called_when_a_layer_is_done, no_rows_add_nothing, nan_reaches_the_loss,
      tensors_are_contiguous, table_lists_shapes_and_costs, initial_weights_have_the_right_variance,
      a_product_that_fails_is_an_error, texts_get_their_canonical_form,
      resolved_layers_are_printed_alone, bad_descriptions_are_refused,
      parts_of_a_softmax_make_the_whole, rows_are_independent_under_each_kernel)
