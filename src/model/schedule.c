/* Schedules: the learning rate over the steps, each a function of t, the steps behind the warm-up
 * over decay_steps: linear and cosine end at t = 1, the others decay for each unit of t. */
#include "dtrain/model.h"

#include <math.h>

static double constant(const struct dt_schedule *schedule, double t)
{
    (void)t;
    return schedule->lr;
}

static double linear(const struct dt_schedule *schedule, double t)
{
    return schedule->lr + (schedule->min_lr - schedule->lr) * fmin(t, 1.0);
}

/* Source: Loshchilov and Hutter 2017, eq. 5. */
static double cosine(const struct dt_schedule *schedule, double t)
{
    const double pi = 3.14159265358979323846, low = schedule->min_lr;
    return low + 0.5 * (schedule->lr - low) * (1.0 + cos(pi * fmin(t, 1.0)));
}

static double exponential(const struct dt_schedule *schedule, double t)
{
    return fmax(schedule->min_lr, schedule->lr * pow(schedule->decay_rate, t));
}

static double step(const struct dt_schedule *schedule, double t)
{
    return exponential(schedule, floor(t));
}

static double plateau(const struct dt_schedule *schedule, double t)
{
    (void)t;
    return exponential(schedule, (double)schedule->drops);
}

static double (*const RATES[])(const struct dt_schedule *schedule, double t) = {
    [DT_SCHED_CONSTANT] = constant,       [DT_SCHED_LINEAR] = linear, [DT_SCHED_COSINE] = cosine,
    [DT_SCHED_EXPONENTIAL] = exponential, [DT_SCHED_STEP] = step,     [DT_SCHED_PLATEAU] = plateau,
};

void dt_schedule_init(struct dt_schedule *schedule, const struct dt_config *config,
                      uint64_t total_steps)
{
    const uint64_t warmup = (uint64_t)config->train.warmup_steps;
    uint64_t decay = (uint64_t)config->train.decay_steps;
    if (!decay) decay = total_steps > warmup ? total_steps - warmup : 1;
    *schedule = (struct dt_schedule){.kind = config->train.schedule,
                                     .lr = config->train.lr,
                                     .min_lr = config->train.min_lr,
                                     .decay_rate = config->train.decay_rate,
                                     .warmup_steps = warmup,
                                     .decay_steps = decay};
}

double dt_schedule_lr(const struct dt_schedule *schedule, uint64_t done)
{
    const uint64_t warmup = schedule->warmup_steps;
    if (done < warmup) return schedule->lr * (double)(done + 1) / (double)warmup;
    return RATES[schedule->kind](schedule, (double)(done - warmup) / (double)schedule->decay_steps);
}
