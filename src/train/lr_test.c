/* The learning-rate range test: a short run whose rate rises from step to step, and the rate that
 * its losses suggest. */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "train/setup.h"

static const double LOWEST = 1e-7, HIGHEST = 10;
static const double SMOOTHING = 0.95;  /* weight of the former mean */
static const double DIVERGED = 3;      /* rise above the least loss, in multiples of it */
static const double LEAST_FALL = 0.02; /* of the loss at point SETTLE; a smaller fall is noise */
enum { SETTLE = 20 };                  /* points until the smoothed loss means something */
enum { REACH = 10 }; /* points over which a fall is measured: smoothing delays it about as long */

/* ---- what the losses say -------------------------------------------------------------------- */

dt_status dt__lr_test_judge(struct dt_lr_test *test)
{
    double mean = 0; /* exponential mean; the curve corrects for its start at 0 */
    test->least = -1;
    for (int i = 0; i < test->points; i++) {
        mean = SMOOTHING * mean + (1 - SMOOTHING) * test->loss[i];
        test->smooth[i] = mean / (1 - pow(SMOOTHING, i + 1));
        if (test->least < 0 || test->smooth[i] < test->smooth[test->least]) test->least = i;
    }
    if (test->least < 0 || !isfinite(test->smooth[test->least]))
        return dt_fail(DT_ENUMERIC, "the loss is not finite at any rate from %g on", LOWEST);
    /* If losses fall below 0, their size is the larger one of the first and the least. */
    const double least = test->smooth[test->least], first = test->smooth[0];
    const double size = least > 0 ? least : fmax(fabs(least), fabs(first));
    test->diverged = test->smooth[test->points - 1] - least > DIVERGED * size;
    test->rises = test->least < 2 * SETTLE;
    double settled = test->smooth[test->rises ? 0 : SETTLE];
    test->flat = !test->rises && settled - least < LEAST_FALL * fabs(settled);
    /* Finds the point before the least at which the smoothed loss starts to fall most over REACH
     * points. */
    int steepest = SETTLE < test->least ? SETTLE : test->least;
    double most = -INFINITY;
    for (int i = SETTLE; i + REACH <= test->least; i++) {
        const double fall = test->smooth[i] - test->smooth[i + REACH];
        if (fall <= most) continue;
        most = fall;
        steepest = i;
    }
    /* The suggestion is the geometric mean of two rates: that of the steepest fall, which is too
     * low where the loss falls in steps, and a sixth of the rate of the least loss, which is too
     * high where the loss has a long floor. Of 34 suggestions (twelve tables, five sets of
     * pictures, two seeds) 31 are within 3 % of the best of eight rates, as interpolated between
     * these; with a tenth instead of a sixth, 27 are. All others are too low. */
    test->suggest = sqrt(test->lr[steepest] * test->lr[test->least] / 6);
    return DT_OK;
}

/* ---- the run -------------------------------------------------------------------------------- */

/* The settings of the run except its rates: they turn off all that a short run does not need. */
static const char *const SETTINGS[] = {"train.mode=sync",        "train.schedule=exponential",
                                       "train.warmup_steps=0",   "train.min_lr=0",
                                       "train.local_steps=1",    "train.overlap=no",
                                       "train.exchange=auto",    "train.wire=f32",
                                       "train.epochs=1e6",       "run.log_steps=1",
                                       "run.checkpoint_steps=0", "run.checkpoint_secs=0",
                                       "run.resume=never",       "data.eval=",
                                       "data.eval_labels=",      "eval.steps=-1",
                                       "eval.patience=0",        "eval.dedicated=no",
                                       "export.latest=no",       "export.best=no",
                                       "eval.metric=auto",       "report.tensorboard=no",
                                       "report.trace=no",        "report.prometheus="};

/* Takes rate and loss from a train record; each step has one. arg: struct dt_lr_test. */
static void watch_record(void *arg, const char *json)
{
    struct dt_lr_test *test = arg;
    json_t *record = json_loads(json, 0, NULL);
    const char *kind = json_string_value(json_object_get(record, "kind"));
    if (kind && !strcmp(kind, "train") && test->points < DT_LR_TEST_STEPS) {
        const int i = test->points++;
        test->lr[i] = json_number_value(json_object_get(record, "lr"));
        test->loss[i] = json_number_value(json_object_get(record, "loss"));
    }
    json_decref(record);
}

static bool has_diverged(void *arg)
{
    struct dt_lr_test *test = arg;
    return test->points > 0 && !dt__lr_test_judge(test) && test->diverged;
}

dt_status dt__lr_test(struct dt_world *world, struct dt_config *config, const char *scratch,
                      struct dt_lr_test *out)
{
    const struct dt__train_options options = {.record = watch_record,
                                              .stop = has_diverged,
                                              .arg = out,
                                              .test = true,
                                              .no_first_save = true};
    bool bank = world->is_bank;
    char *dir = NULL;
    *out = (struct dt_lr_test){0};
    dt_status status = DT_OK;
    struct dt_optimizer usual, linear;
    dt__optimizer_init(&usual, config, false);
    if (bank && usual.own_rates)
        status = dt_fail(DT_EUSAGE, "train.optimizer=ftrl: its rates fall by themselves, and this "
                                    "test needs rates that rise");
    if (bank && !status) /* before this function sets train.lr, which presets depend on */
        status = dt__config_resolve(config, dt__data_trains_on_table(config));
    for (size_t i = 0; bank && i < sizeof SETTINGS / sizeof *SETTINGS && !status; i++)
        status = dt_config_set(config, SETTINGS[i]);
    if (bank && !status) status = dt__format(&dir, "run.dir=%s", scratch);
    if (dir) status = dt_config_set(config, dir);
    dt_free(dir);
    /* The rate of the linear path rises as well, unless its rule has separate rates. */
    const double lr = config->train.lr, wide = config->train.wide_lr;
    dt__optimizer_init(&linear, config, true);
    if (linear.own_rates)
        config->train.wide_lr = wide > 0 ? wide : lr;
    else if (lr > 0)
        config->train.wide_lr = wide * LOWEST / lr;
    config->train.lr = LOWEST;
    config->train.decay_rate = HIGHEST / LOWEST;
    config->train.decay_steps = DT_LR_TEST_STEPS - 1;
    config->train.max_steps = DT_LR_TEST_STEPS;
    DT_TRY(dt__ranks_agree(world->all, status));
    status = dt__train(world, config, &options);
    if (status == DT_STOPPED) /* from has_diverged, or from a request that perhaps only one rank has
                               * seen */
        status = dt__ranks_agree(world->all, dt__stop_check());
    dt__world_rest(world, status == DT_STOPPED);
    if (status && status != DT_ENUMERIC) /* a loss that is not finite ends the range */
        return status;
    /* If the run failed before its first point, no rate caused the failure. */
    if (bank && (!status || out->points > 0)) status = dt__lr_test_judge(out);
    return dt__ranks_agree(world->all, bank ? status : DT_OK);
}
