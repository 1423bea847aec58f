/* Layers for pictures, normalisation and residuals: gradients against finite differences, valid
 * texts and shapes, and the tensors of each layer. */
#include "model_text.h"
#include "suite.h"

#include <limits.h>
#include <math.h>

enum { ROWS = 9, MAX_ROWS = 16 };

struct net {
    struct dt_model *model;
    struct dt_network *network;
    size_t params, trained, features;
    float *weights, *grad, *unused, *x, *target;
    int32_t label[ROWS];
    struct dt_rng key;
};

static struct dt_model_desc picture_desc(const char *layers, int h, int w, int c, int nout,
                                         int task)
{
    struct dt_model_desc desc = desc_of(layers, c, nout, task);
    desc.shape[0] = h, desc.shape[1] = w;
    return desc;
}

static void net_open(struct net *net, const struct dt_model_desc *desc)
{
    EXPECT_OK(dt__model_create(desc, &net->model));
    EXPECT_OK(dt__network_create(net->model, MAX_ROWS, DT_PRECISION_F32, &net->network));
    net->params = net->model->params;
    net->trained = net->model->trained;
    net->features = net->model->features;
    net->weights = randoms(net->params, 1);
    for (size_t i = 0; i < net->trained; i++)
        net->weights[i] *= 0.5f;
    for (size_t i = net->trained; i < net->params; i++)
        net->weights[i] = fabsf(net->weights[i]) + 0.5f; /* also a variance, so above 0 */
    net->grad = randoms(net->params, 2);
    net->unused = randoms(net->params, 3);
    net->x = randoms(ROWS * net->features, 4);
    net->target = randoms(ROWS * (size_t)desc->nout, 5);
    for (int r = 0; r < ROWS; r++)
        net->label[r] = r % (desc->nout > 1 ? desc->nout : 2);
    net->key = dt__rng_make(9, DT_STREAM_DROPOUT, 0, 0);
}

static void net_close(struct net *net)
{
    float *all[] = {net->weights, net->grad, net->unused, net->x, net->target};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        dt_free(all[i]);
    dt__network_destroy(net->network);
    dt__model_destroy(net->model);
}

static double net_gradient(struct net *net, int rows, float *grad)
{
    const struct dt_batch batch = {
        .rows = rows, .x = net->x, .label = net->label, .target = net->target};
    double loss;
    EXPECT_OK(dt__network_gradient(net->network, net->weights, &batch, &net->key, false,
                                   (struct dt_slot){.grad = grad}, &loss, NULL));
    return loss;
}

/* Returns the loss after weight i moves by h. */
static double net_moved(struct net *net, size_t i, float h, int rows)
{
    const float saved = net->weights[i];
    net->weights[i] += h;
    double loss = net_gradient(net, rows, net->unused);
    net->weights[i] = saved;
    return loss;
}

/* Compares the gradient with central differences of up to 300 weights, spread over all of them. */
static void check_slope(const char *text, struct net *net, int rows)
{
    const float h = 4e-3f;
    double norm = 0, error = 0;
    net_gradient(net, rows, net->grad);
    size_t stride = net->trained / 300 + 1;
    for (size_t i = 0; i < net->trained; i += stride) {
        const float up = net->weights[i] + h, down = net->weights[i] - h;
        double slope = (net_moved(net, i, h, rows) - net_moved(net, i, -h, rows)) /
                       ((double)up - (double)down);
        norm += slope * slope;
        error += (slope - (double)net->grad[i]) * (slope - (double)net->grad[i]);
    }
    ck_assert_msg(sqrt(error / norm) < 6e-3, "'%s': gradient off by %g", text, sqrt(error / norm));
}

static const struct {
    const char *layers;
    int h, w, c;
} NETS[] = {
    {"conv 4 3x3 pad same tanh", 5, 7, 2},
    {"conv 4 3x2 stride 2 tanh, conv 3 2x2 gelu", 9, 8, 3},
    {"conv 6 3x3 pad 1 groups 3 tanh, conv 3 1x1", 5, 5, 3},
    {"conv 4 2x2 stride 1x2 pad same tanh, dropout 0.3, conv 2 3x3 tanh", 6, 6, 1},
    {"conv1d 5 5 stride 2 pad same tanh, conv1d 3 3 tanh", 1, 20, 2},
    {"conv1d 5 7 tanh", 1, 1, 24},
    {"conv1d 4 3 tanh, avgpool 2, conv1d 3 2 tanh", 1, 16, 1},
    {"conv 4 3x3 tanh, avgpool 2, dense 5 tanh", 8, 8, 1},
    {"conv 4 3x3 tanh, avgpool 3 stride 2, globalpool", 9, 9, 1},
    {"conv 4 3x3, upsample 2, conv 2 2x2 tanh", 5, 5, 1},
    {"avgpool 2, conv 3 2x2 tanh, flatten, dense 4 tanh", 8, 6, 2},
    {"conv 4 3x3, batchnorm tanh, dense 4", 6, 6, 1},
    {"dense 6, batchnorm tanh, dense 4 tanh", 1, 1, 7},
    {"batchnorm, dense 4 tanh", 1, 1, 7},
    {"conv 4 3x3, layernorm tanh, layernorm, dropout 0.2", 5, 5, 2},
    {"dense 6, layernorm gelu, dense 4 tanh", 1, 1, 7},
    {"residual(conv 3 3x3 pad same tanh, conv 2 3x3 pad same), tanh, dense 4", 5, 5, 2},
    {"conv 3 3x3 tanh, residual(conv 5 3x3 stride 2 pad same tanh, conv 5 3x3 pad same) tanh", 9, 8,
     1},
    {"dense 6 tanh, residual(dense 5 tanh, dense 6, layernorm), tanh, residual(dense 4 tanh)", 1, 1,
     5},
    {"residual(conv 2 3x3 pad same, residual(batchnorm tanh, conv 2 1x1), tanh), globalpool", 4, 4,
     2},
    {"conv 2 3x3 pad same silu, conv 2 1x1 softplus, dense 5 softplus", 5, 5, 1},
};

/* Known values of an activation at -2, 0 and 3. */
START_TEST(activations_have_their_values)
{
    static const struct {
        const char *text;
        double at[3];
    } rows[] = {
        {"leaky_relu, output dense 3", {-0.02, 0, 3}},
        {"softplus, output dense 3", {0.126928011, 0.693147181, 3.048587352}},
        {"silu, output dense 3", {-0.238405844, 0, 2.857722380}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct net net;
        const struct dt_model_desc desc = picture_desc(rows[i].text, 1, 1, 3, 3, DT_TASK_REGRESS);
        net_open(&net, &desc);
        float out[3];
        for (int k = 0; k < 12; k++)
            net.weights[k] = k < 9 && k % 4 == 0 ? 1.0f : 0.0f;
        net.x[0] = -2, net.x[1] = 0, net.x[2] = 3;
        const struct dt_batch batch = {.rows = 1, .x = net.x};
        EXPECT_OK(dt__network_forward(net.network, net.weights, &batch, out));
        for (int k = 0; k < 3; k++)
            ck_assert_double_eq_tol((double)out[k], rows[i].at[k], 2e-6);
        net_close(&net);
    }
}
END_TEST

/* No difference can decide at the kink, so the expected slope is PyTorch's: 0. The network is y =
 * relu(0 * x + 0) + 0. */
START_TEST(relu_is_flat_at_zero)
{
    struct net net;
    const struct dt_model_desc desc = picture_desc("dense 1 relu", 1, 1, 1, 1, DT_TASK_REGRESS);
    net_open(&net, &desc);
    const float weights[] = {0, 0, 1, 0};
    ck_assert_uint_eq(net.params, 4);
    memcpy(net.weights, weights, sizeof weights);
    net.target[0] = 1;
    net_gradient(&net, 1, net.grad);
    ck_assert_double_eq((double)net.grad[0], 0);
    ck_assert_double_eq((double)net.grad[1], 0);
    ck_assert_double_lt((double)net.grad[3], 0);
    net_close(&net);
}
END_TEST

START_TEST(gradients_agree_with_differences)
{
    struct net net;
    const struct dt_model_desc desc =
        picture_desc(NETS[_i].layers, NETS[_i].h, NETS[_i].w, NETS[_i].c, 3, DT_TASK_CLASSIFY);
    net_open(&net, &desc);
    check_slope(NETS[_i].layers, &net, ROWS);
    net_close(&net);
}
END_TEST

/* A maximum has kinks, so the backward pass of pooling is tested by itself, with one input far
 * above the others. */
START_TEST(maxpool_returns_the_maximum_and_its_gradient)
{
    struct net net;
    const struct dt_model_desc desc =
        picture_desc("conv 1 1x1, maxpool 2, output conv 1 1x1", 4, 4, 1, 4, DT_TASK_REGRESS);
    net_open(&net, &desc);
    float out[4];
    const float identity[] = {1, 0, 1, 0};
    memcpy(net.weights, identity, sizeof identity);
    for (int i = 0; i < 16; i++)
        net.x[i] = (float)(i % 7);
    const struct dt_batch batch = {.rows = 1, .x = net.x};
    EXPECT_OK(dt__network_forward(net.network, net.weights, &batch, out));
    const float greatest[] = {5, 6, 6, 4}; /* maxima of 0 1 4 5 | 2 3 6 0 | 1 2 5 6 | 3 4 0 1 */
    ck_assert_mem_eq(out, greatest, sizeof out);
    /* the gradient of the loss is 2 (i + 1) / 4 */
    for (int i = 0; i < 4; i++)
        net.target[i] = greatest[i] - (float)(i + 1);
    net_gradient(&net, 1, net.grad);
    double weight = 0; /* expected gradient of the first convolution's weight: sum of gradients
                        * times maxima */
    for (int i = 0; i < 4; i++)
        weight += (double)greatest[i] * 2 * (i + 1) / 4;
    ck_assert_double_eq_tol((double)net.grad[0], weight, 1e-5);
    net_close(&net);
}
END_TEST

/* A window of 400 positions, and channels that do not fill a vector. The maximum of each channel is
 * beyond position 255: one byte could not store it. */
START_TEST(maxpool_stores_positions_in_large_windows)
{
    enum { SIDE = 20, CHANNELS = 11 };
    struct net net;
    const struct dt_model_desc desc =
        picture_desc("conv 11 1x1, maxpool 20, output dense 1", SIDE, SIDE, 1, 1, DT_TASK_REGRESS);
    net_open(&net, &desc);
    memset(net.weights, 0, net.params * sizeof *net.weights);
    for (int c = 0; c < CHANNELS; c++) {
        net.weights[c] = c % 2 ? -1.0f : 1.0f;
        net.weights[2 * CHANNELS + c] = 1; /* weights of the output layer */
    }
    for (int i = 0; i < SIDE * SIDE; i++)
        net.x[i] = (float)(i % 13) / 100;
    net.x[300] = 3;
    net.x[390] = -5;
    net.target[0] = 6 * 3 + 5 * 5 - 0.5f; /* then the gradient of the loss is 1 */
    net_gradient(&net, 1, net.grad);
    for (int c = 0; c < CHANNELS; c++)
        ck_assert_double_eq_tol((double)net.grad[c], (c % 2 ? -5 : 3), 1e-4);
    net_close(&net);
}
END_TEST

/* ---- batchnorm's statistics ----------------------------------------------------------------- */

static const struct dt_tensor *tensor_of(const struct dt_model *model, const char *name)
{
    for (size_t i = 0; i < model->tensors; i++)
        if (!strcmp(model->tensor[i].name, name)) return &model->tensor[i];
    ck_abort_msg("no tensor %s", name);
}

enum { MAX_WIDTH = 130 };
static const int WIDTHS[] = {64, 65, MAX_WIDTH};

static double normal(const struct net *net, size_t at, size_t c, double mean, double variance)
{
    const float *gain = net->weights, *offset = gain + net->features;
    return (double)gain[c] * ((double)net->x[at] - mean) / sqrt(variance + 1e-5) +
           (double)offset[c];
}

static void expect_near(const char *what, size_t at, float got, double expected)
{
    ck_assert_msg(fabs((double)got - expected) <= 2e-4 * fmax(1, fabs(expected)),
                  "%s %zu is %g, not %g", what, at, (double)got, expected);
}

/* The two columns of x have the means 3 and 10. The running mean and (unbiased) variance move by a
 * tenth of the way, times the number of rows. */
START_TEST(batchnorm_updates_its_statistics)
{
    struct net net;
    const struct dt_model_desc desc = picture_desc("batchnorm", 1, 1, 2, 3, DT_TASK_CLASSIFY);
    net_open(&net, &desc);
    const float x[] = {1, 10, 2, 10, 3, 13, 6, 7};
    memcpy(net.x, x, sizeof x);
    const struct dt_tensor *mean = tensor_of(net.model, "layers/0/running_mean");
    const struct dt_tensor *variance = tensor_of(net.model, "layers/0/running_var");
    ck_assert_uint_eq(mean->offset, net.trained);
    ck_assert_uint_eq(variance->offset, net.trained + 2);
    const float seen[] = {0.5f, 4, 1, 2};
    memcpy(net.weights + net.trained, seen, sizeof seen);
    net_gradient(&net, 4, net.grad);
    const double expected[] = {4 * 0.1 * (3 - 0.5), 4 * 0.1 * (10 - 4.0), 4 * 0.1 * (14.0 / 3 - 1),
                               4 * 0.1 * (18.0 / 3 - 2)};
    for (int i = 0; i < 4; i++)
        ck_assert_double_eq_tol((double)net.grad[net.trained + (size_t)i], expected[i], 1e-5);
    net_close(&net);
}
END_TEST

/* There are more channels than one block sums at a time. Checks the gradients of gain and offset
 * under the batch's statistics, through a linear layer and a squared error; the update of the
 * running statistics; and the outputs under these. Fails if a block of channels uses another
 * block's sums. */
START_TEST(batchnorm_agrees_with_the_formula_in_every_block)
{
    const size_t width = (size_t)WIDTHS[_i];
    struct net net;
    const struct dt_model_desc desc =
        picture_desc("batchnorm", 1, 1, WIDTHS[_i], 1, DT_TASK_REGRESS);
    net_open(&net, &desc);
    const float *gain = net.weights, *offset = gain + width, *out_weight = offset + width;
    const float *seen_mean = net.weights + net.trained, *seen_variance = seen_mean + width;
    double mean[MAX_WIDTH], variance[MAX_WIDTH], dgain[MAX_WIDTH] = {0}, doffset[MAX_WIDTH] = {0};
    for (size_t c = 0; c < width; c++) {
        mean[c] = variance[c] = 0;
        for (size_t r = 0; r < ROWS; r++)
            mean[c] += (double)net.x[r * width + c] / ROWS;
        for (size_t r = 0; r < ROWS; r++)
            variance[c] += pow((double)net.x[r * width + c] - mean[c], 2) / ROWS;
    }
    for (size_t r = 0; r < ROWS; r++) {
        double predicted = (double)out_weight[width];
        for (size_t c = 0; c < width; c++)
            predicted +=
                (double)out_weight[c] * normal(&net, r * width + c, c, mean[c], variance[c]);
        const double slope = 2 * (predicted - (double)net.target[r]);
        for (size_t c = 0; c < width; c++) {
            const double d = slope * (double)out_weight[c];
            dgain[c] += d * ((double)net.x[r * width + c] - mean[c]) / sqrt(variance[c] + 1e-5);
            doffset[c] += d;
        }
    }
    net_gradient(&net, ROWS, net.grad);
    for (size_t c = 0; c < width; c++) {
        const float *change = net.grad + net.trained;
        expect_near("gain", c, net.grad[c], dgain[c]);
        expect_near("offset", c, net.grad[width + c], doffset[c]);
        expect_near("mean", c, change[c], ROWS * 0.1 * (mean[c] - (double)seen_mean[c]));
        expect_near("variance", c, change[width + c],
                    ROWS * 0.1 * (variance[c] * ROWS / (ROWS - 1.0) - (double)seen_variance[c]));
    }
    float out[ROWS];
    const struct dt_batch batch = {.rows = ROWS, .x = net.x};
    EXPECT_OK(dt__network_forward(net.network, net.weights, &batch, out));
    for (size_t r = 0; r < ROWS; r++) {
        double predicted = (double)out_weight[width];
        for (size_t c = 0; c < width; c++)
            predicted +=
                (double)out_weight[c] *
                normal(&net, r * width + c, c, (double)seen_mean[c], (double)seen_variance[c]);
        expect_near("output", r, out[r], predicted);
    }
    net_close(&net);
}
END_TEST

/* A single value cannot be normalised by its own statistics. */
START_TEST(batchnorm_of_one_row_uses_running_statistics)
{
    struct net net;
    const struct dt_model_desc desc = picture_desc("batchnorm", 1, 1, 2, 2, DT_TASK_REGRESS);
    net_open(&net, &desc);
    float first_out[2], second_out[2];
    const struct dt_batch batch = {.rows = 1, .x = net.x, .target = net.target};
    net_gradient(&net, 1, net.grad);
    for (size_t i = net.trained; i < net.params; i++)
        ck_assert(net.grad[i] == 0.0f);
    EXPECT_OK(dt__network_forward(net.network, net.weights, &batch, first_out));
    check_slope("one row", &net, 1);
    /* evaluation must not depend on an earlier training batch */
    net_gradient(&net, ROWS, net.grad);
    EXPECT_OK(dt__network_forward(net.network, net.weights, &batch, second_out));
    ck_assert_mem_eq(first_out, second_out, sizeof first_out);
    net_close(&net);
}
END_TEST

/* ---- text ----------------------------------------------------------------------------------- */

static const struct {
    const char *layers, *message;
} WRONG[] = {
    {"konv 3 3x3", "item 1: 'konv' is no layer"},
    {"conv 3", "'conv 3': expected conv FILTERS"},
    {"conv 3 3x", "expected conv FILTERS"},
    {"conv 0 3x3", "expected conv FILTERS"},
    {"conv 3 3x3 stride", "expected conv FILTERS"},
    {"conv 3 3x3 stride 0", "expected conv FILTERS"},
    {"conv 3 3x3 pad some", "expected conv FILTERS"},
    {"conv 3 9x9", "'conv 3 9x9' of 8 x 8 x 2: a kernel of 9 x 9 does not fit"},
    {"conv 3 3x3 pad 3", "not larger than its padding"},
    {"conv 3 3x3 groups 2", "2 groups do not divide 2 channels and 3 filters"},
    {"conv 4 3x3, maxpool 7", "'maxpool 7' of 6 x 6 x 4: a window of 7 x 7 does not fit"},
    {"maxpool", "expected maxpool K"},
    {"dense 4, conv 3 3x3",
     "'conv 3 3x3' of 1 x 1 x 4: a convolution needs rows of height x width"},
    {"conv1d 3 3", "conv1d needs rows of 1 x length x channels"},
    {"residual(dense 3", "item 1: a bracket that is not closed"},
    {"residual", "'residual': expected residual(ITEM, ...)"},
    {"resid(dense 3)", "expected residual(ITEM, ...)"},
    {"conv 3 3x3, residual()", "item 2: item 1: an empty item"},
    {"residual(conv 3 3x3, upsample 3)", "has no stride"},
    {"output conv 1 3x3, dense 3", "item 2: there is an item after the output layer"},
    {"output conv 1 3x3 pad same", "the output is 8 x 8 x 1, expected 3 values in all"},
    {"output dense 3 relu", "without activation in the output layer"},
    {"dense 3, output dropout 0.3", "'output dropout 0.3': expected dropout P"},
    {"batchnorm 3", "'batchnorm 3': expected batchnorm"},
    {"wide", "'wide': expected layers besides the linear path"},
    {"dense 3, wide", "a linear path besides the layers goes with rows of plain features, not"},
    {"embedding 4, dense 3", "the data has no categories to embed"},
    {"dense 3, embedding 4", "an embedding is the first layer"},
};

START_TEST(wrong_texts_are_refused)
{
    struct dt_model *model;
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        const struct dt_model_desc desc =
            picture_desc(WRONG[i].layers, 8, 8, 2, 3, DT_TASK_CLASSIFY);
        EXPECT_FAIL(dt__model_create(&desc, &model), DT_EUSAGE, WRONG[i].message);
    }
}
END_TEST

/* A network without weights is refused. Fails if its first weight is looked for beyond its last
 * layer. */
START_TEST(a_network_has_weights)
{
    static const char *const without[] = {"output flatten", "relu, output globalpool"};
    struct dt_model *model;
    for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
        const struct dt_model_desc desc = picture_desc(without[i], 1, 1, 3, 3, DT_TASK_REGRESS);
        EXPECT_FAIL(dt__model_create(&desc, &model), DT_EUSAGE, "no layer has weights");
    }
}
END_TEST

/* A row as long as an int can express, which a hostile file may declare. */
START_TEST(long_rows_do_not_overflow)
{
    struct dt_model *model;
    struct dt_model_desc desc = picture_desc("conv1d 1 1 stride 2 pad same, globalpool", 1, 1,
                                             INT_MAX, 3, DT_TASK_CLASSIFY);
    EXPECT_OK(dt__model_create(&desc, &model));
    ck_assert_uint_eq(tensor_of(model, "layers/0/weight")->count, 1);
    ck_assert_uint_eq(tensor_of(model, "layers/1/weight")->count, 3);
    dt__model_destroy(model);
    desc = picture_desc("conv1d 1 3 pad 2", 1, 1, INT_MAX, 3, DT_TASK_CLASSIFY);
    EXPECT_FAIL(dt__model_create(&desc, &model), DT_EUSAGE, "a kernel of 1 x 3 does not fit");
}
END_TEST

START_TEST(texts_are_printed_in_one_form)
{
    static const char *const forms[][2] = {
        {" conv  4 3x3   pad same relu ,maxpool 2", "conv 4 3x3 pad same relu, maxpool 2"},
        {"residual( conv 2 3x3 pad same ,batchnorm ) relu, flatten",
         "residual(conv 2 3x3 pad same, batchnorm), relu, flatten"},
        {"residual(residual(dense 3), tanh)", "residual(residual(dense 3), tanh)"},
        {"dense 3, output dense 2", "dense 3, output dense 2"},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct dt_config config;
        char assignment[128];
        snprintf(assignment, sizeof assignment, "model.layers=%s", forms[i][0]);
        EXPECT_OK(dt__config_init(&config));
        EXPECT_OK(dt_config_set(&config, assignment));
        for (int again = 0; again < 2; again++) {
            EXPECT_OK(dt__model_resolve(&config));
            ck_assert_str_eq(config.model.layers, forms[i][1]);
        }
        dt__config_free(&config);
    }
}
END_TEST

START_TEST(tensors_have_names_and_shapes)
{
    struct dt_model *model;
    const struct dt_model_desc desc =
        picture_desc("conv 4 3x5 groups 2, residual(conv 6 1x1 stride 2), batchnorm", 8, 8, 2, 3,
                     DT_TASK_CLASSIFY);
    EXPECT_OK(dt__model_create(&desc, &model));
    const struct dt_tensor *weight = tensor_of(model, "layers/0/weight");
    ck_assert_int_eq(weight->rank, 4);
    ck_assert_uint_eq(weight->shape[0], 3);
    ck_assert_uint_eq(weight->shape[1], 5);
    ck_assert_uint_eq(weight->shape[2], 1);
    ck_assert_uint_eq(weight->shape[3], 4);
    /* the projection of the residual */
    ck_assert_uint_eq(tensor_of(model, "layers/2/weight")->count, 4 * 6);
    ck_assert_uint_eq(tensor_of(model, "layers/3/bias")->count, 6);
    ck_assert_uint_eq(tensor_of(model, "layers/4/weight")->shape[0], 3 * 2 * 6);
    ck_assert_int_eq(model->buckets, 6); /* five layers and the statistics */
    ck_assert_uint_eq(model->params - model->trained, 12);
    dt__model_destroy(model);
}
END_TEST

int main(void)
{
    TCase *test_case = tcase_create("layers");
    tcase_add_loop_test(test_case, gradients_agree_with_differences, 0, sizeof NETS / sizeof *NETS);
    tcase_add_test(test_case, activations_have_their_values);
    tcase_add_test(test_case, relu_is_flat_at_zero);
    tcase_add_test(test_case, maxpool_returns_the_maximum_and_its_gradient);
    tcase_add_test(test_case, maxpool_stores_positions_in_large_windows);
    tcase_add_test(test_case, batchnorm_updates_its_statistics);
    tcase_add_loop_test(test_case, batchnorm_agrees_with_the_formula_in_every_block, 0, 3);
    tcase_add_test(test_case, batchnorm_of_one_row_uses_running_statistics);
    tcase_add_test(test_case, wrong_texts_are_refused);
    tcase_add_test(test_case, a_network_has_weights);
    tcase_add_test(test_case, long_rows_do_not_overflow);
    tcase_add_test(test_case, texts_are_printed_in_one_form);
    tcase_add_test(test_case, tensors_have_names_and_shapes);
    return suite_run_case("layers", test_case);
}
