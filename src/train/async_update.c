/* What one gradient does to the weights in async training, on the bank or on a worker of its host. */
#include <math.h>
#include <string.h>

#include "train/run.h"

/* DC-ASGD: what the gradient would be at the weights as they are now, to first order, with g * g for
 * the Hessian. On sums over rows: G + lambda / rows * G * G * (now - seen).
 * Source: Zheng et al., "Asynchronous stochastic gradient descent with delay compensation", ICML
 * 2017, algorithm 2. */
static void compensate(double lambda, size_t n, const float *now, const float *seen, float *grad)
{
    float factor = (float)lambda;
    for (size_t i = 0; i < n; i++)
        grad[i] += factor * grad[i] * grad[i] * (now[i] - seen[i]);
}

static double gradient_scale(const struct dt__run *run, const struct dt_note *note)
{
    double scale = 1 / (double)note->rows, clip_norm = run->config->train.clip_norm;
    return clip_norm > 0 ? scale * dt__clip_factor(clip_norm, sqrt(note->norm2) * scale) : scale;
}

/* Source of the staleness rule: Zhang et al., "Staleness-aware async-SGD for distributed deep
 * learning", IJCAI 2016. */
static double gradient_lr(const struct dt__run *run, uint64_t before, uint64_t staleness)
{
    double lr = dt_schedule_lr(&run->schedule, before);
    return run->config->train.staleness_lr ? lr / (1 + (double)staleness) : lr;
}

void dt__async_update(void *arg, const struct dt_gradient *gradient, uint64_t before, size_t offset,
                      size_t n, const float *weights, float *out, float *const *states)
{
    const struct dt__run *run = arg;
    const struct dt_note *note = gradient->note;
    float *grad = gradient->grad + offset, *state[DT_MAX_STATE];
    if (note->ask & DT_ASK_ERROR) {
        memmove(out, weights, n * sizeof *out);
        return;
    }
    for (int i = 0; i < run->optimizer.nstate; i++)
        state[i] = states[i] + offset;
    if (gradient->seen)
        compensate(run->config->train.delay_compensation / (double)note->rows, n, weights,
                   gradient->seen + offset, grad);
    dt_optimizer_apply(&run->optimizer, before, gradient_lr(run, before, gradient->staleness),
                       gradient_scale(run, note), n, grad, weights, out, state);
}
