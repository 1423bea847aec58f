/* Golden values that tests/data/make_golden.py computed with PyTorch: logits, losses and gradients
 * of every activation, task and kind of layer, the weights over several steps of every optimizer,
 * and every schedule. Fails if a formula is wrong: a missing bias or factor, or rounding whose
 * error grows. */
#include "model_text.h"
#include "suite.h"

#include <hdf5.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static hid_t open_file(const char *path)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    ck_assert_msg(file >= 0, "%s cannot be opened: run from the top of the project", path);
    return file;
}

static double attribute(hid_t group, const char *name)
{
    double value;
    hid_t attr = H5Aopen(group, name, H5P_DEFAULT);
    ck_assert_msg(attr >= 0, "no attribute %s", name);
    ck_assert_int_ge(H5Aread(attr, H5T_NATIVE_DOUBLE, &value), 0);
    H5Aclose(attr);
    return value;
}

/* Reads a whole data set into new memory; sets *count to the number of its elements. */
static void *read_set(hid_t group, const char *name, hid_t type, size_t *count)
{
    void *values;
    hid_t set = H5Dopen2(group, name, H5P_DEFAULT);
    ck_assert_msg(set >= 0, "no data set %s", name);
    hid_t space = H5Dget_space(set);
    *count = (size_t)H5Sget_simple_extent_npoints(space);
    EXPECT_OK(dt__alloc(*count, H5Tget_size(type), name, &values));
    ck_assert_int_ge(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), 0);
    H5Sclose(space);
    H5Dclose(set);
    return values;
}

static float *read_floats(hid_t group, const char *name, size_t *count)
{
    return read_set(group, name, H5T_NATIVE_FLOAT, count);
}

static hsize_t groups_in(hid_t file)
{
    H5G_info_t info;
    ck_assert_int_ge(H5Gget_info(file, &info), 0);
    ck_assert_uint_gt(info.nlinks, 0);
    return info.nlinks;
}

static hid_t open_numbered(hid_t file, hsize_t number)
{
    char name[16];
    snprintf(name, sizeof name, "%02d", (int)number);
    hid_t group = H5Gopen2(file, name, H5P_DEFAULT);
    ck_assert_int_ge(group, 0);
    return group;
}

/* Returns |a - b| / |b|, Euclidean norms. */
static double distance(size_t count, const float *a, const float *b)
{
    double norm = 0.0, error = 0.0;
    for (size_t i = 0; i < count; i++) {
        norm += (double)b[i] * (double)b[i];
        error += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    }
    return sqrt(error / norm);
}

/* ---- networks ------------------------------------------------------------------------------- */

struct golden {
    struct dt_model_desc desc;
    char layers[256];
    struct dt_batch batch;
    float *x, *target, *params, *logits, *grad;
    int32_t *label;
    size_t nparams, nlogits;
    double loss;
};

static void read_golden(hid_t group, struct golden *g)
{
    *g = (struct golden){.loss = attribute(group, "loss")};
    size_t nwidths, count;
    int *widths = read_set(group, "widths", H5T_NATIVE_INT, &nwidths);
    const bool linear = (int)attribute(group, "kind") == DT_KIND_LINEAR;
    char word[16];
    dt__config_choice(DT_ACTIVATION_CHOICES, (int)attribute(group, "activation"), word);
    int length = snprintf(g->layers, sizeof g->layers, "%s", linear ? "linear" : "");
    for (size_t i = 1; i + 1 < nwidths && !linear; i++)
        length += snprintf(g->layers + length, sizeof g->layers - (size_t)length, "%sdense %d %s",
                           i > 1 ? ", " : "", widths[i], word);
    g->desc = desc_of(g->layers, widths[0], widths[nwidths - 1], (int)attribute(group, "task"));
    dt_free(widths);
    g->x = read_floats(group, "x", &count);
    g->params = read_floats(group, "params", &g->nparams);
    g->logits = read_floats(group, "logits", &g->nlogits);
    g->grad = read_floats(group, "grad", &count);
    ck_assert_uint_eq(count, g->nparams);
    if (g->desc.task == DT_TASK_REGRESS)
        g->target = read_floats(group, "target", &count);
    else
        g->label = read_set(group, "label", H5T_NATIVE_INT32, &count);
    g->batch = (struct dt_batch){
        .rows = (int)attribute(group, "rows"), .x = g->x, .label = g->label, .target = g->target};
}

static void free_golden(struct golden *g)
{
    dt_free(g->x), dt_free(g->target), dt_free(g->params), dt_free(g->logits), dt_free(g->grad);
    dt_free(g->label);
}

static void check_net(struct golden *g, int number)
{
    struct dt_model *model;
    struct dt_network *net;
    float *grad, *logits;
    double loss;
    EXPECT_OK(dt__model_create(&g->desc, &model));
    ck_assert_uint_eq(model->params, g->nparams);
    EXPECT_OK(dt__network_create(model, g->batch.rows, DT_PRECISION_F32, &net));
    EXPECT_OK(dt__alloc(g->nparams, sizeof *grad, "gradient", &grad));
    EXPECT_OK(dt__alloc(g->nlogits, sizeof *logits, "logits", &logits));
    EXPECT_OK(dt__network_gradient(net, g->params, &g->batch, NULL, false,
                                   (struct dt_slot){.grad = grad}, &loss, NULL));
    EXPECT_OK(dt__network_forward(net, g->params, &g->batch, logits));
    double loss_error = fabs(loss / g->loss - 1.0);
    double grad_error = distance(g->nparams, grad, g->grad);
    double logits_error = distance(g->nlogits, logits, g->logits);
    ck_assert_msg(loss_error < 1e-6, "net %d: loss differs by %g", number, loss_error);
    ck_assert_msg(grad_error < 1e-6, "net %d: gradient differs by %g", number, grad_error);
    ck_assert_msg(logits_error < 1e-6, "net %d: logits differ by %g", number, logits_error);
    dt_free(grad), dt_free(logits);
    dt__network_destroy(net);
    dt__model_destroy(model);
}

START_TEST(networks_agree_with_pytorch)
{
    hid_t file = open_file("tests/data/golden_net.h5");
    for (hsize_t i = 0; i < groups_in(file); i++) {
        hid_t group = open_numbered(file, i);
        struct golden golden;
        read_golden(group, &golden);
        check_net(&golden, (int)i);
        free_golden(&golden);
        H5Gclose(group);
    }
    H5Fclose(file);
}
END_TEST

/* ---- optimizers ----------------------------------------------------------------------------- */

/* Returns the factor of torch.nn.utils.clip_grad_norm_. */
static double clip_factor(double clip, size_t count, const float *grad)
{
    double square = 0.0;
    for (size_t i = 0; i < count; i++)
        square += (double)grad[i] * (double)grad[i];
    return clip > 0.0 ? fmin(1.0, clip / (sqrt(square) + 1e-6)) : 1.0;
}

/* The optimizer gets the golden gradients as sums over 4 samples, as in a training step. */
static void check_optimizer(hid_t group, int number)
{
    struct dt_config config;
    struct dt_optimizer optimizer;
    size_t count, all_count;
    float *params = read_floats(group, "start", &count);
    float *grads = read_floats(group, "grads", &all_count),
          *path = read_floats(group, "path", &all_count);
    float *state[DT_MAX_STATE];
    const double lr = attribute(group, "lr"), clip = attribute(group, "clip");
    EXPECT_OK(dt__config_init(&config));
    config.train.optimizer = (int)attribute(group, "optimizer");
    config.train.momentum = attribute(group, "momentum");
    config.train.weight_decay = attribute(group, "weight_decay");
    dt__optimizer_init(&optimizer, &config, false);
    for (int i = 0; i < DT_MAX_STATE; i++)
        EXPECT_OK(dt__alloc(count, sizeof(float), "state", &state[i]));
    for (size_t step = 0; step < all_count / count; step++) {
        float *grad = grads + step * count;
        double scale = clip_factor(clip, count, grad) / 4.0;
        for (size_t i = 0; i < count; i++)
            grad[i] *= 4.0f;
        const struct dt_factors factors = dt__optimizer_factors(&optimizer, step, lr, scale);
        dt__optimizer_apply(&optimizer, &factors, count, grad, params, params, state);
        double error = distance(count, params, path + step * count);
        ck_assert_msg(error < 5e-7, "optimizer %d, step %zu: differs by %g", number, step, error);
    }
    for (int i = 0; i < DT_MAX_STATE; i++)
        dt_free(state[i]);
    dt_free(params), dt_free(grads), dt_free(path);
    dt__config_free(&config);
}

START_TEST(optimizers_agree_with_pytorch)
{
    hid_t file = open_file("tests/data/golden_optimizer.h5");
    for (hsize_t i = 0; i < groups_in(file); i++) {
        hid_t group = open_numbered(file, i);
        check_optimizer(group, (int)i);
        H5Gclose(group);
    }
    H5Fclose(file);
}
END_TEST

/* ---- schedules ------------------------------------------------------------------------------ */

START_TEST(schedules_agree_with_pytorch)
{
    hid_t file = open_file("tests/data/golden_schedule.h5");
    struct dt_config config;
    EXPECT_OK(dt__config_init(&config));
    config.train.lr = attribute(file, "lr");
    config.train.min_lr = attribute(file, "min_lr");
    config.train.decay_rate = attribute(file, "decay_rate");
    config.train.decay_steps = (int64_t)attribute(file, "decay_steps");
    for (int kind = DT_SCHED_CONSTANT; kind <= DT_SCHED_STEP; kind++) {
        char word[16];
        struct dt_schedule schedule;
        size_t count;
        double *path = read_set(file, dt__config_choice(DT_SCHEDULE_CHOICES, kind, word),
                                H5T_NATIVE_DOUBLE, &count);
        config.train.schedule = kind;
        dt__schedule_init(&schedule, &config, 1000);
        for (size_t step = 0; step < count; step++) {
            /* PyTorch has no lower bound on the rate of two of the schedules */
            double expected = path[step] < config.train.min_lr ? config.train.min_lr : path[step];
            double error = fabs(dt__schedule_lr(&schedule, step) - expected);
            ck_assert_msg(error < 1e-12, "%s, step %zu: differs by %g", word, step, error);
        }
        dt_free(path);
    }
    dt__config_free(&config);
    H5Fclose(file);
}
END_TEST

SUITE("golden", networks_agree_with_pytorch, optimizers_agree_with_pytorch,
      schedules_agree_with_pytorch)
