/* Rounds of local steps: when they start and end, and the update at their end. Without local steps
 * each step is a round. */
#include "train/job.h"

#include "base/clones.h"

/* ---- when ----------------------------------------------------------------------------------- */

static bool is_local_at(const struct dt_job *job, const struct dt_config *config, uint64_t step)
{
    return job->mode == DT_MODE_SYNC && config->train.local_steps > 1 &&
           step >= (uint64_t)config->train.local_after;
}

bool dt__is_rounded(const struct dt_job *job)
{
    return job->mode == DT_MODE_SYNC && job->config->train.wire != DT_WIRE_F32;
}

bool dt__is_grouped(const struct dt_job *job)
{
    return job->config->train.local_steps > 1 || dt__is_rounded(job);
}

bool dt__is_local(const struct dt_job *job)
{
    return is_local_at(job, job->config, job->step);
}

bool dt__overlaps(const struct dt_job *job)
{
    return dt__is_local(job) && job->config->train.overlap;
}

/* Returns the last step up to `step` at which a round of full length starts or ends. */
static uint64_t round_floor(const struct dt_job *job, const struct dt_config *config, uint64_t step)
{
    const uint64_t length = (uint64_t)config->train.local_steps;
    const uint64_t after = (uint64_t)config->train.local_after;
    return is_local_at(job, config, step) ? after + (step - after) / length * length : step;
}

uint64_t dt__round_end(const struct dt_job *job, uint64_t step)
{
    const uint64_t length = (uint64_t)job->config->train.local_steps;
    if (!is_local_at(job, job->config, step)) return step + 1;
    const uint64_t end = round_floor(job, job->config, step) + length;
    return end < job->last_step ? end : job->last_step;
}

uint64_t dt__round_begin(const struct dt_job *job, const struct dt_config *config, uint64_t step)
{
    return step ? round_floor(job, config, step - 1) : 0;
}

bool dt__round_passed(const struct dt_job *job, int64_t every)
{
    if (every <= 0 || job->step == 0) return false;
    uint64_t begin = dt__round_begin(job, job->config, job->step), length = (uint64_t)every;
    return job->step / length > begin / length;
}

uint64_t dt__round_reach(const struct dt_job *job, uint64_t due)
{
    const uint64_t after = (uint64_t)job->config->train.local_after;
    if (dt__overlaps(job) && !job->pending)
        due = job->step + 1; /* so that an exchange is pending from then on */
    /* From step `after` on, the local stepper is in use. */
    if (job->step < after && is_local_at(job, job->config, due - 1)) return after;
    return dt__round_end(job, due - 1);
}

bool dt__round_was_cut(const struct dt_job *job, const struct dt_config *config, uint64_t step,
                       bool pending)
{
    const bool whole = dt__round_begin(job, config, step + 1) == step;
    return config->train.local_steps > 1 && step > (uint64_t)config->train.local_after &&
           (!whole || (config->train.overlap && !pending));
}

bool dt__round_is_long(const struct dt_job *job, double step_secs)
{
    const double round = step_secs * (double)job->config->train.local_steps;
    return job->steps->local && round > job->config->test.round_secs / 2;
}

/* ---- the update ----------------------------------------------------------------------------- */

/* Computes the outer update of weights that run ahead of it. grad: the mean difference or, if there
 * is none (`empty`), remainders of rounding. The new weights are those of Nesterov's rule,
 *     m <- beta m + grad,  weights <- weights - lr (grad + beta m),
 * minus what the next update will take from the momentum, lr beta^2 m (ahead = 0: minus nothing).
 * All that remains for the next update is lr (1 + beta) times its mean difference. */
DT__CLONES
static void ahead_update(size_t n, float lr, float beta, bool empty, float ahead,
                         const float *restrict grad, const float *weights, float *restrict momentum,
                         float *out)
{
    const float decay = empty ? 1 : beta;
    const float rate = lr * (1 + beta);
    for (size_t i = 0; i < n; i++) {
        momentum[i] = decay * momentum[i] + grad[i];
        out[i] = weights[i] - rate * grad[i] - ahead * momentum[i];
    }
}

float dt__ahead_rate(const struct dt_config *config)
{
    const float lr = (float)config->train.outer_lr, beta = (float)config->train.outer_momentum;
    return lr * beta * beta;
}

double dt__own_rate(const struct dt_job *job)
{
    const double rate = job->config->train.outer_lr * (1 + job->config->train.outer_momentum);
    return rate < 1 ? rate : 1;
}

void dt__update_outer(void *arg, const struct dt_update_info *info, size_t offset, size_t n,
                      const float *grad, float *const *vectors, float *out)
{
    const struct dt_job *job = arg;
    const double lr = job->config->train.outer_lr;
    const size_t all = job->model->trained, left = offset < all ? all - offset : 0;
    const size_t trained = left < n ? left : n;
    const float *weights = vectors[0] + offset;
    float *momentum = job->rules->outer.nstate ? vectors[1] + offset : NULL;
    const bool last = !dt__overlaps(job) || job->step == job->last_step;
    const float ahead = last ? 0 : dt__ahead_rate(job->config);
    const struct dt_factors factors = dt__optimizer_factors(&job->rules->outer, info->step, lr, 1);
    if (trained && momentum && (dt__overlaps(job) || job->pending))
        ahead_update(trained, (float)lr, (float)job->rules->outer.momentum, !job->pending, ahead,
                     grad, weights, momentum, out);
    else if (trained)
        dt__optimizer_apply(&job->rules->outer, &factors, trained, grad, weights, out, &momentum);
    for (size_t i = trained; i < n; i++)
        out[i] = weights[i] - grad[i];
}

void dt__apply_differences(struct dt_job *job, uint64_t step, const float *mean,
                           float *const *vectors, size_t n)
{
    const struct dt_update_info info = {.step = step};
    job->pending = true; /* dt__update_outer applies a mean difference only if one is pending */
    dt__update_outer(job, &info, 0, n, mean, vectors, vectors[0]);
    job->pending = false;
    dt__info("the pending exchange of the groups' last round is applied now: %s",
             job->config->train.overlap ? "the next step is not a local step"
                                        : "train.overlap is off");
}
