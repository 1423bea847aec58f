#include "dtrain/model.h"

#include <math.h>

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

/* The rate `t` intervals (whole schedules for linear and cosine) behind the warm-up. */
static double decayed(const struct dt_schedule *schedule, double t)
{
    const double pi = 3.14159265358979323846, lr = schedule->lr, low = schedule->min_lr;
    const double done = fmin(t, 1.0);
    switch (schedule->kind) {
    case DT_LINEAR:
        return lr + (low - lr) * done;
    case DT_COSINE: /* Loshchilov and Hutter 2017, eq. 5 */
        return low + 0.5 * (lr - low) * (1.0 + cos(pi * done));
    case DT_EXPONENTIAL:
        return fmax(low, lr * pow(schedule->decay_rate, t));
    case DT_STEP:
        return fmax(low, lr * pow(schedule->decay_rate, floor(t)));
    default:
        return lr;
    }
}

double dt_schedule_lr(const struct dt_schedule *schedule, uint64_t step)
{
    const uint64_t warmup = schedule->warmup_steps;
    if (step < warmup) return schedule->lr * (double)(step + 1) / (double)warmup;
    return decayed(schedule, (double)(step - warmup) / (double)schedule->decay_steps);
}
