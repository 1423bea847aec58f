/* The arithmetic of an update: what a gradient's sum does to the weights, in sync and in async.
 *
 * Both act element by element on any range of the flat vector, on whichever rank has it. */
#include <math.h>
#include <string.h>

#include "base/clones.h"
#include "train/local.h"

DT__CLONES
double dt__norm2(const float *values, size_t n)
{
    double lane[8] = {0};
    for (size_t i = 0; i < n; i++)
        lane[i & 7] += (double)values[i] * (double)values[i];
    return ((lane[0] + lane[1]) + (lane[2] + lane[3])) +
           ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

/* From the sum over so many rows to their mean, clipped as torch.nn.utils.clip_grad_norm_ does; norm2: of
 * the sum. */
static double mean_scale(const struct dt_job *job, uint64_t rows, double norm2)
{
    double scale = 1 / (double)rows, clip_norm = job->config->train.clip_norm;
    double factor = clip_norm / (sqrt(norm2) * scale + 1e-6);
    return clip_norm > 0 && factor < 1 ? scale * factor : scale;
}

/* The rule of a tensor at `offset`, and its rate at the moment: ftrl's rates fall by themselves. */
static const struct dt_optimizer *rule_at(const struct dt_job *job, size_t offset, double lr,
                                          double *out_lr)
{
    const bool wide = offset >= job->wide_begin && offset < job->wide_end;
    const double base = job->config->train.lr, own = job->config->train.wide_lr;
    *out_lr = lr;
    if (!wide) return &job->optimizer;
    if (job->wide.kind == DT_OPT_FTRL)
        *out_lr = own > 0 ? own : base;
    else if (own > 0)
        *out_lr = base > 0 ? lr * (own / base) : own;
    return &job->wide;
}

/* The next floats from `offset` on, at most n, that have one rule. */
static size_t rule_extent(const struct dt_job *job, size_t offset, size_t n)
{
    const size_t end = offset < job->wide_begin ? job->wide_begin
                       : offset < job->wide_end ? job->wide_end
                                                : SIZE_MAX;
    return end - offset < n ? end - offset : n;
}

/* Floats [offset, offset + n): what is trained goes to the optimizer; what is a state moves by the mean
 * over the rows. grad, weights and out are (n), states the whole vectors. */
static void update_range(const struct dt_job *job, uint64_t step, double lr, uint64_t rows,
                         double norm2, size_t offset, size_t n, const float *grad,
                         const float *weights, float *out, float *const *states)
{
    const size_t all = dt_model_trained(job->model), left = offset < all ? all - offset : 0;
    const size_t trained = left < n ? left : n;
    const float share = (float)(1 / (double)rows);
    float *state[DT_MAX_STATE];
    for (size_t at = 0, part; at < trained; at += part) {
        double rate;
        const struct dt_optimizer *rule = rule_at(job, offset + at, lr, &rate);
        part = rule_extent(job, offset + at, trained - at);
        for (int i = 0; i < job->optimizer.nstate; i++)
            state[i] = states[i] + offset + at;
        dt_optimizer_apply(rule, step, rate, mean_scale(job, rows, norm2), part, grad + at,
                           weights + at, out + at, state);
    }
    for (size_t i = trained; i < n; i++)
        out[i] = weights[i] + share * grad[i];
}

void dt__update_sync(void *arg, const struct dt_update_info *info, size_t offset, size_t n,
                     const float *grad, float *const *vectors, float *out)
{
    const struct dt_job *job = arg;
    update_range(job, info->step, dt_schedule_lr(&job->schedule, info->step),
                 dt_plan_step_rows(job->plan, info->step), info->norm2, offset, n, grad,
                 vectors[0] + offset, out, vectors + 1);
    if (job->rounded) dt_bf16_round(n, out, job->rounded + offset);
}

void dt__update_rows_sync(void *arg, const struct dt_update_info *info,
                          const struct dt_row_range *range, const uint32_t *row, size_t count,
                          const float *grad, float *const *vectors)
{
    const struct dt_job *job = arg;
    const double scale = mean_scale(job, dt_plan_step_rows(job->plan, info->step), info->norm2);
    float *state[DT_MAX_STATE];
    for (int i = 0; i < job->optimizer.nstate; i++)
        state[i] = vectors[1 + i] + range->offset;
    double rate;
    const struct dt_optimizer *rule =
        rule_at(job, range->offset, dt_schedule_lr(&job->schedule, info->step), &rate);
    dt_optimizer_apply_rows(rule, info->step, rate, scale, range->width, count, row, grad,
                            vectors[0] + range->offset, state);
    for (size_t i = 0; job->rounded && i < count; i++) {
        const size_t at = range->offset + row[i] * range->width;
        dt_bf16_round(range->width, vectors[0] + at, job->rounded + at);
    }
}

/* ---- local steps ---------------------------------------------------------------------------- */

void dt__update_group(void *arg, const struct dt_update_info *info, size_t offset, size_t n,
                      const float *grad, float *const *vectors, float *out)
{
    const struct dt_group *group = arg;
    const float *weights = (group->start ? group->start : vectors[0]) + offset;
    if (group->rows == 0) /* none of its replicas has a sample in this step */
        memmove(out, weights, n * sizeof *out);
    else
        update_range(group->job, info->step, dt_schedule_lr(&group->job->schedule, info->step),
                     group->rows, info->norm2, offset, n, grad, weights, out, vectors + 1);
}

void dt__update_outer(void *arg, const struct dt_update_info *info, size_t offset, size_t n,
                      const float *grad, float *const *vectors, float *out)
{
    const struct dt_job *job = arg;
    const size_t all = dt_model_trained(job->model), left = offset < all ? all - offset : 0;
    const size_t trained = left < n ? left : n;
    const float *weights = vectors[0] + offset;
    float *momentum = job->outer.nstate ? vectors[1] + offset : NULL;
    if (trained)
        dt_optimizer_apply(&job->outer, info->step, job->config->train.outer_lr, 1, trained, grad,
                           weights, out, &momentum);
    for (size_t i = trained; i < n; i++)
        out[i] = weights[i] - grad[i];
}

/* ---- async ---------------------------------------------------------------------------------- */

/* DC-ASGD: what the gradient would be at the weights as they are now, to first order, with g * g for
 * the Hessian. On sums over rows: G + lambda / rows * G * G * (now - seen).
 * Source: Zheng et al., "Asynchronous stochastic gradient descent with delay compensation", ICML
 * 2017, algorithm 2. */
static void compensate_delay(const struct dt_job *job, uint64_t rows, size_t n, const float *now,
                             const float *seen, float *grad)
{
    float factor = (float)(job->config->train.delay_compensation / (double)rows);
    for (size_t i = 0; i < n; i++)
        grad[i] += factor * grad[i] * grad[i] * (now[i] - seen[i]);
}

static void compensate_whole(void *arg, struct dt_gradient *gradient, const float *weights)
{
    const struct dt_job *job = arg;
    size_t n = dt_model_trained(job->model);
    if (gradient->note->ask & DT_ASK_ERROR) return;
    compensate_delay(job, gradient->note->rows, n, weights, gradient->seen, gradient->grad);
    gradient->seen = NULL;
    gradient->norm2 = dt__norm2(gradient->grad, n);
}

dt_async_prepare_fn *dt__async_prepare_fn(const struct dt_job *job)
{
    bool both = job->config->train.clip_norm > 0 && job->config->train.delay_compensation > 0;
    return both ? compensate_whole : NULL;
}

void dt__update_async(void *arg, const struct dt_gradient *gradient, uint64_t before, size_t offset,
                      size_t n, const float *weights, float *out, float *const *states)
{
    const struct dt_job *job = arg;
    const struct dt_note *note = gradient->note;
    float *grad = gradient->grad + offset;
    if (note->ask & DT_ASK_ERROR) {
        memmove(out, weights, n * sizeof *out);
        return;
    }
    const size_t all = dt_model_trained(job->model), left = offset < all ? all - offset : 0;
    if (gradient->seen)
        compensate_delay(job, note->rows, left < n ? left : n, weights, gradient->seen + offset,
                         grad);
    /* Source of the staleness rule: Zhang et al., "Staleness-aware async-SGD for distributed deep
     * learning", IJCAI 2016. */
    double lr = dt_schedule_lr(&job->schedule, before);
    if (job->config->train.staleness_lr) lr /= 1 + (double)gradient->staleness;
    update_range(job, before, lr, note->rows, gradient->norm2, offset, n, grad, weights, out, states);
}
