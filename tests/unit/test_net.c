/* Networks: gradients against finite differences, dropout, hooks, slices, layout. */
#include "dtrain/model.h"
#include "model/dropout.h"
#include "suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 7, NIN = 5 };

static struct dt_model *model;
static struct dt_net *net;
static float *params, *grad, *x, *target;
static int32_t label[ROWS];
static struct dt_rng key;

static float *randoms(size_t count, uint64_t stream)
{
    float *values;
    EXPECT_OK(dt_alloc(count, sizeof *values, "values", &values));
    struct dt_rng rng = dt_rng_make(5, DT_STREAM_TEST, stream, 0);
    for (size_t i = 0; i < count; i++)
        values[i] = (float)dt_rng_normal(&rng, i);
    return values;
}

static void set_up(struct dt_model_spec spec)
{
    EXPECT_OK(dt_model_create(&spec, &model));
    EXPECT_OK(dt_net_create(model, ROWS, &net));
    const size_t count = dt_model_params(model), nout = (size_t)spec.nout;
    params = randoms(count, 1);
    grad = randoms(count, 2);
    for (size_t i = 0; i < count; i++)
        params[i] *= 0.5f;
    x = randoms(ROWS * NIN, 3);
    target = randoms(ROWS * nout, 4);
    for (int r = 0; r < ROWS; r++)
        label[r] = r % (spec.nout > 1 ? spec.nout : 2);
    key = dt_rng_make(9, DT_STREAM_DROPOUT, 0, 0);
}

static void tear_down(void)
{
    dt_free(params), dt_free(grad), dt_free(x), dt_free(target);
    dt_net_destroy(net);
    dt_model_destroy(model);
}

static struct dt_batch whole_batch(void)
{
    return (struct dt_batch){.rows = ROWS, .x = x, .label = label, .target = target};
}

static double loss_at(size_t i, float value)
{
    const float kept = params[i];
    struct dt_batch batch = whole_batch();
    double loss;
    float *unused = randoms(dt_model_params(model), 6);
    params[i] = value;
    dt_net_gradient(net, params, &batch, &key, false, unused, &loss, NULL);
    params[i] = kept;
    dt_free(unused);
    return loss;
}

/* Central differences in f32: the loss has an error of about 1e-6, so a step of 1e-2 leaves 1e-4. */
static void check_gradient(void)
{
    struct dt_batch batch = whole_batch();
    double loss, norm = 0.0, error = 0.0;
    dt_net_gradient(net, params, &batch, &key, false, grad, &loss, NULL);
    for (size_t i = 0; i < dt_model_params(model); i++) {
        const float h = 1e-2f, up = params[i] + h, down = params[i] - h;
        double slope = (loss_at(i, up) - loss_at(i, down)) / ((double)up - (double)down);
        norm += slope * slope;
        error += (slope - (double)grad[i]) * (slope - (double)grad[i]);
    }
    ck_assert_double_lt(sqrt(error / norm), 2e-3);
}

/* A wrong derivative of any activation, loss or layer, with and without dropout. relu has kinks: its
 * error here is theirs, the golden gradients hold it to 1e-5. */
static void check_mlp(int variant)
{
    const int activation = variant % 4, task = variant / 4 % 2, nout = variant / 8 % 2 ? 1 : 3,
              drop = variant / 16;
    if (activation == DT_RELU) return;
    set_up((struct dt_model_spec){.kind = DT_KIND_MLP,
                                  .activation = activation,
                                  .task = task,
                                  .dropout = drop ? 0.4 : 0.0,
                                  .nin = NIN,
                                  .nout = nout,
                                  .nhidden = 2,
                                  .hidden = {6, 4}});
    check_gradient();
    tear_down();
}

START_TEST(gradient_is_the_slope_of_the_loss)
{
    for (int i = 0; i < 32; i++)
        check_mlp(i);
}
END_TEST

static void check_linear(int variant)
{
    set_up((struct dt_model_spec){
        .kind = DT_KIND_LINEAR, .task = variant % 2, .nin = NIN, .nout = variant / 2 ? 1 : 3});
    check_gradient();
    tear_down();
}

START_TEST(linear_gradient_is_the_slope_of_the_loss)
{
    for (int i = 0; i < 4; i++)
        check_linear(i);
}
END_TEST

/* ---- dropout -------------------------------------------------------------------------------- */

enum { WIDE = 1000, MANY = 40 };

static struct dt_model_spec wide_spec(double dropout)
{
    return (struct dt_model_spec){.kind = DT_KIND_MLP,
                                  .activation = DT_RELU,
                                  .task = DT_REGRESS,
                                  .dropout = dropout,
                                  .nin = NIN,
                                  .nout = 1,
                                  .nhidden = 1,
                                  .hidden = {WIDE}};
}

/* The hidden units of one row: with output weights 0 the gradient by weight j is -2 * target * unit
 * j. */
static void masked_units(const struct dt_rng *rng, uint64_t first_row, float *units)
{
    double loss;
    const struct dt_layer *hidden = dt_model_layer(model, 0), *output = dt_model_layer(model, 1);
    const float row_target = -0.5f;
    struct dt_batch batch = {.rows = 1, .first_row = first_row, .x = x, .target = &row_target};
    memset(params, 0, dt_model_params(model) * sizeof *params);
    for (int i = 0; i < WIDE; i++)
        params[hidden->bias + (size_t)i] = 1.0f;
    dt_net_gradient(net, params, &batch, rng, false, grad, &loss, NULL);
    memcpy(units, grad + output->weight, WIDE * sizeof *units);
}

/* Wrong rate or scale; masks of draws, rows or units that hang together. */
START_TEST(dropout_keeps_its_share)
{
    float units[WIDE];
    double kept = 0.0, pairs = 0.0, last = 0.0;
    const double rate = 0.3;
    set_up(wide_spec(rate));
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
END_TEST

/* Any piece of a run of drop numbers is masked as the whole is: words 0 to 3 of blocks of the key. */
START_TEST(mask_follows_drop_numbers)
{
    float one, unused = 1.0f, piece[WIDE], other[WIDE];
    const struct dt__dropout dropout = {.key = dt_rng_make(1, DT_STREAM_DROPOUT, 2, 3),
                                        .rate = 0.5};
    for (uint64_t start = 0; start < 9; start++) {
        for (int i = 0; i < WIDE; i++)
            piece[i] = other[i] = 1.0f;
        dt__dropout_apply(&dropout, start, WIDE, piece, other);
        for (int i = 0; i < WIDE; i++) {
            uint32_t words[4];
            const uint64_t number = start + (uint64_t)i;
            dt_rng_block(&dropout.key, number / 4, words);
            one = 1.0f;
            dt__dropout_apply(&dropout, number, 1, &one, &unused);
            ck_assert(piece[i] == one && other[i] == one);
            ck_assert(one == (words[number % 4] < 0x80000000u ? 0.0f : 2.0f));
        }
    }
}
END_TEST

/* The same key gives the same mask, another key or row another; evaluation drops nothing. */
START_TEST(mask_is_a_function_of_the_key)
{
    float first[WIDE], again[WIDE], out;
    struct dt_rng other = dt_rng_make(9, DT_STREAM_DROPOUT, 0, 1);
    set_up(wide_spec(0.5));
    masked_units(&key, 3, first);
    masked_units(&other, 3, again);
    ck_assert(memcmp(first, again, sizeof first) != 0);
    masked_units(&key, 4, again);
    ck_assert(memcmp(first, again, sizeof first) != 0);
    masked_units(&key, 3, again);
    ck_assert(memcmp(first, again, sizeof first) == 0);
    for (int i = 0; i < WIDE; i++)
        params[dt_model_layer(model, 1)->weight + (size_t)i] = 1.0f;
    dt_net_forward(net, params, x, 1, &out);
    ck_assert_float_eq(out, (float)WIDE);
    tear_down();
}
END_TEST

/* ---- calls ---------------------------------------------------------------------------------- */

static struct dt_model_spec small_spec(double dropout)
{
    return (struct dt_model_spec){.kind = DT_KIND_MLP,
                                  .activation = DT_GELU,
                                  .task = DT_CLASSIFY,
                                  .dropout = dropout,
                                  .nin = NIN,
                                  .nout = 3,
                                  .nhidden = 2,
                                  .hidden = {70, 9}};
}

/* Slices with first_row must draw the masks of the whole; sums must add up. */
START_TEST(slices_add_up)
{
    double whole_loss, loss, sum = 0.0;
    set_up(small_spec(0.3));
    const size_t count = dt_model_params(model);
    float *whole = randoms(count, 7);
    struct dt_batch batch = whole_batch();
    dt_net_gradient(net, params, &batch, &key, false, whole, &whole_loss, NULL);
    for (int r = 0; r < ROWS; r += 3) {
        struct dt_batch slice = {.rows = ROWS - r < 3 ? ROWS - r : 3,
                                 .first_row = (uint64_t)r,
                                 .x = x + r * NIN,
                                 .label = label + r};
        dt_net_gradient(net, params, &slice, &key, r > 0, grad, &loss, NULL);
        sum += loss;
    }
    ck_assert_double_eq_tol(sum, whole_loss, 1e-5);
    for (size_t i = 0; i < count; i++)
        ck_assert_float_eq_tol(grad[i], whole[i], 2e-5f);
    dt_free(whole);
    tear_down();
}
END_TEST

/* Gradients go straight into exchange buffers, weights are read in place: any address will do. */
START_TEST(bits_do_not_depend_on_alignment)
{
    enum { SHIFT = 16 };
    double loss, moved_loss;
    set_up(small_spec(0.3));
    const size_t count = dt_model_params(model);
    float *p = randoms(count + SHIFT, 7), *g = randoms(count + SHIFT, 8),
          *xs = randoms(ROWS * NIN + SHIFT, 9);
    struct dt_batch batch = whole_batch();
    dt_net_gradient(net, params, &batch, &key, false, grad, &loss, NULL);
    for (size_t shift = 1; shift < SHIFT; shift++) {
        const size_t other = shift * 5 % SHIFT;
        memcpy(p + shift, params, count * sizeof *p);
        memcpy(xs + other, x, ROWS * NIN * sizeof *x);
        batch.x = xs + other;
        dt_net_gradient(net, p + shift, &batch, &key, false, g + other, &moved_loss, NULL);
        ck_assert(memcmp(grad, g + other, count * sizeof *g) == 0);
        ck_assert(memcmp(&loss, &moved_loss, sizeof loss) == 0);
    }
    dt_free(p), dt_free(g), dt_free(xs);
    tear_down();
}
END_TEST

struct calls {
    int forward[8], backward[8], nforward, nbackward;
    float *seen; /* the layer's gradient at its hook */
};

static void note_forward(void *arg, int layer)
{
    struct calls *calls = arg;
    ck_assert_int_eq(calls->nbackward, 0);
    calls->forward[calls->nforward++] = layer;
}

/* Spoils the layer's weights: whoever reads them later gives another gradient. */
static void note_backward(void *arg, int layer)
{
    struct calls *calls = arg;
    const struct dt_layer *range = dt_model_layer(model, layer);
    calls->backward[calls->nbackward++] = layer;
    memcpy(calls->seen + range->begin, grad + range->begin,
           (range->end - range->begin) * sizeof *grad);
    for (size_t i = range->begin; i < range->end; i++)
        params[i] = NAN;
}

/* The exchange sends a bucket and takes new weights at the hook. */
static void check_hooks(int variant)
{
    double loss;
    const bool empty = variant;
    set_up(small_spec(0.0));
    const size_t count = dt_model_params(model);
    float *plain = randoms(count, 7);
    struct calls calls = {.seen = randoms(count, 8)};
    const struct dt_net_hooks hooks = {note_forward, note_backward, &calls};
    struct dt_batch batch = whole_batch();
    if (empty) batch.rows = 0;
    dt_net_gradient(net, params, &batch, NULL, false, plain, &loss, NULL);
    dt_net_gradient(net, params, &batch, NULL, false, grad, &loss, &hooks);
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

START_TEST(hooks_come_when_a_layer_is_done)
{
    for (int i = 0; i < 2; i++)
        check_hooks(i);
}
END_TEST

START_TEST(no_rows_add_nothing)
{
    double loss = 1.0;
    set_up(small_spec(0.3));
    const struct dt_batch none = {.rows = 0};
    float *kept = randoms(dt_model_params(model), 2);
    dt_net_gradient(net, params, &none, &key, true, grad, &loss, NULL);
    ck_assert(loss == 0.0);
    ck_assert(memcmp(kept, grad, dt_model_params(model) * sizeof *grad) == 0);
    dt_free(kept);
    tear_down();
}
END_TEST

/* NaN must reach the loss through every activation: the caller stops on it. */
static void check_nan(int variant)
{
    double loss;
    struct dt_model_spec spec = small_spec(0.0);
    spec.activation = variant;
    set_up(spec);
    struct dt_batch batch = whole_batch();
    params[dt_model_layer(model, 0)->bias] = NAN;
    dt_net_gradient(net, params, &batch, NULL, false, grad, &loss, NULL);
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

START_TEST(layers_lie_one_behind_the_other)
{
    char text[64];
    set_up(small_spec(0.25));
    ck_assert_int_eq(dt_model_layers(model), 3);
    size_t at = 0;
    const int widths[] = {NIN, 70, 9, 3};
    for (int i = 0; i < 3; i++) {
        const struct dt_layer *layer = dt_model_layer(model, i);
        ck_assert_int_eq(layer->nin, widths[i]);
        ck_assert_int_eq(layer->nout, widths[i + 1]);
        ck_assert_uint_eq(layer->begin, at);
        ck_assert_uint_eq(layer->weight, at);
        ck_assert_uint_eq(layer->bias, at + (size_t)(layer->nin * layer->nout));
        at = layer->end;
        ck_assert_uint_eq(at, layer->bias + (size_t)layer->nout);
    }
    ck_assert_uint_eq(dt_model_params(model), at);
    ck_assert_str_eq(dt_model_describe(model, text, sizeof text), "5-70-9-3 gelu dropout 0.25");
    ck_assert_str_eq(dt_model_describe(model, text, 5), "5-70");
    tear_down();
}
END_TEST

static void check_spread(int variant)
{
    struct dt_model_spec spec = wide_spec(0.0);
    spec.nin = 400, spec.nhidden = 2, spec.hidden[0] = 300, spec.hidden[1] = 200;
    spec.activation = variant;
    EXPECT_OK(dt_model_create(&spec, &model));
    params = randoms(dt_model_params(model), 1);
    dt_model_init(model, 77, params);
    for (int i = 0; i < 3; i++) {
        const struct dt_layer *layer = dt_model_layer(model, i);
        const bool he = i < 2 && (variant == DT_RELU || variant == DT_GELU);
        const double expected = he ? 2.0 / layer->nin : 2.0 / (layer->nin + layer->nout);
        const double count = (double)(layer->bias - layer->weight);
        double sum = 0.0, square = 0.0, most = 0.0;
        for (size_t j = layer->weight; j < layer->bias; j++) {
            double w = (double)params[j];
            sum += w, square += w * w;
            if (fabs(w) > most) most = fabs(w);
        }
        ck_assert_double_eq_tol(square / count / expected, 1.0, 8.0 / sqrt(count));
        ck_assert_double_eq_tol(sum / count, 0.0, 5.0 * sqrt(expected / count));
        if (!he) ck_assert_double_le(most, sqrt(3.0 * expected) * 1.000001);
        for (size_t j = layer->bias; j < layer->end; j++)
            ck_assert(params[j] == 0.0f);
    }
    const float first = params[0];
    dt_model_init(model, 78, params);
    ck_assert(params[0] != first);
    dt_free(params);
    dt_model_destroy(model);
}

START_TEST(initial_weights_have_their_spread)
{
    for (int i = 0; i < 4; i++)
        check_spread(i);
}
END_TEST

START_TEST(hidden_widths_are_parsed)
{
    static const struct {
        const char *text;
        int nhidden, first, last; /* nhidden 0: refused */
    } rows[] = {{"512,256", 2, 512, 256},
                {" 16 ", 1, 16, 16},
                {"1,2 , 3", 3, 1, 3},
                {"", 0, 0, 0},
                {"0", 0, 0, 0},
                {"12,", 0, 0, 0},
                {",3", 0, 0, 0},
                {"3 4", 0, 0, 0},
                {"-3", 0, 0, 0},
                {"1048577", 0, 0, 0},
                {"99999999999999999999", 0, 0, 0},
                {"7x", 0, 0, 0},
                {"1048576", 1, 1048576, 1048576}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct dt_config config;
        struct dt_model_spec spec = {.nin = 4, .nout = 2};
        EXPECT_OK(dt_config_init(&config));
        dt_free(config.model.hidden);
        EXPECT_OK(dt_strdup(rows[i].text, &config.model.hidden));
        dt_status status = dt_model_spec_init(&spec, &config);
        ck_assert_msg(status == (rows[i].nhidden ? DT_OK : DT_EUSAGE), "'%s': %d", rows[i].text,
                      status);
        if (!status) {
            ck_assert_int_eq(spec.nhidden, rows[i].nhidden);
            ck_assert_int_eq(spec.hidden[0], rows[i].first);
            ck_assert_int_eq(spec.hidden[spec.nhidden - 1], rows[i].last);
            ck_assert(spec.nin == 4 && spec.nout == 2);
        }
        dt_config_free(&config);
    }
}
END_TEST

/* Specs come from checkpoints: hostile until checked. */
START_TEST(bad_specs_are_refused)
{
    for (int i = 0; i < 10; i++) {
        struct dt_model_spec spec = small_spec(0.1);
        struct dt_model *made = NULL;
        if (i == 0) spec.kind = 7;
        if (i == 1) spec.activation = -1;
        if (i == 2) spec.task = 2;
        if (i == 3) spec.dropout = 1.0;
        if (i == 4) spec.dropout = NAN;
        if (i == 5) spec.nin = 0;
        if (i == 6) spec.nout = -4;
        if (i == 7) spec.nhidden = DT_MAX_LAYERS;
        if (i == 8) spec.hidden[1] = 0;
        if (i == 9) spec.hidden[0] = DT_MAX_WIDTH + 1;
        ck_assert_int_eq(dt_model_create(&spec, &made), DT_EUSAGE);
        ck_assert_ptr_null(made);
    }
}
END_TEST

SUITE("net", gradient_is_the_slope_of_the_loss, linear_gradient_is_the_slope_of_the_loss,
      dropout_keeps_its_share, mask_follows_drop_numbers, mask_is_a_function_of_the_key,
      slices_add_up, bits_do_not_depend_on_alignment, hooks_come_when_a_layer_is_done,
      no_rows_add_nothing, nan_reaches_the_loss, layers_lie_one_behind_the_other,
      initial_weights_have_their_spread, hidden_widths_are_parsed, bad_specs_are_refused)
