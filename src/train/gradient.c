/* A worker's gradient of one replica, and the update that a gradient sum makes. */
#include <math.h>

#include "train/run.h"

/* ---- gradient ------------------------------------------------------------------------------- */

/* A slice of a share, behind the first `done` of its rows, through the network. */
static dt_status slice_gradient(struct dt__run *run, int replica, struct dt_share slice,
                                uint64_t done, const struct dt_rng *dropout, const float *weights,
                                float *grad, const struct dt_net_hooks *hooks)
{
    struct dt_batch batch;
    double asked = dt_clock_secs();
    DT_TRY(
        dt_loader_read(run->loader, replica, slice.epoch, slice.begin, (int)slice.count, &batch));
    run->data_secs += dt_clock_secs() - asked;
    batch.first_row = done;
    double loss = 0;
    dt_net_gradient(run->net, weights, &batch, dropout, done > 0, grad, &loss, hooks);
    run->loss[replica] += loss;
    if (isfinite(loss)) return DT_OK;
    return dt_fail(DT_ENUMERIC,
                   "the loss of replica %d is %g: a lower train.lr, or "
                   "train.clip_norm, may help",
                   replica, loss);
}

bool dt__replica_gradient(struct dt__run *run, int replica, uint64_t step, const float *weights,
                          float *grad, const struct dt_net_hooks *hooks)
{
    struct dt_share share = dt_plan_share(run->plan, step, replica);
    const struct dt_net_hooks forward_only = {hooks ? hooks->before_forward : NULL, NULL,
                                              hooks ? hooks->arg : NULL};
    const struct dt_rng dropout =
        dt_rng_make((uint64_t)run->config->run.seed, DT_STREAM_DROPOUT, (uint64_t)replica, step);
    uint64_t done = 0;
    do { /* the hooks with the last slice only */
        uint64_t left = share.count - done;
        bool last = left <= DT__SLICE_ROWS;
        struct dt_share slice = {share.epoch, share.begin + done, last ? left : DT__SLICE_ROWS};
        dt_status status = slice_gradient(run, replica, slice, done, &dropout, weights, grad,
                                          last ? hooks : &forward_only);
        if (status) run->failed = dt_fail_prefix(status, "step %llu: ", (unsigned long long)step);
        done += slice.count;
    } while (done < share.count);
    return run->failed == DT_OK;
}

void dt__slow_down(const struct dt__run *run)
{
    if (run->config->test.slow_rank == dt_world_rank(run->world))
        dt_sleep_secs(run->config->test.slow_secs);
}

/* ---- update --------------------------------------------------------------------------------- */

/* As torch.nn.utils.clip_grad_norm_ has it. */
double dt__clip_factor(double clip_norm, double norm)
{
    double factor = clip_norm / (norm + 1e-6);
    return factor < 1 ? factor : 1;
}

void dt__update(void *arg, const struct dt_update_info *info, size_t offset, size_t n,
                const float *grad, float *const *vectors, float *out)
{
    const struct dt__run *run = arg;
    double scale = 1 / (double)dt_plan_step_rows(run->plan, info->step);
    if (run->config->train.clip_norm > 0)
        scale *= dt__clip_factor(run->config->train.clip_norm, sqrt(info->norm2) * scale);
    float *state[DT_MAX_STATE];
    for (int i = 0; i < run->optimizer.nstate; i++)
        state[i] = vectors[1 + i] + offset;
    dt_optimizer_apply(&run->optimizer, info->step, dt_schedule_lr(&run->schedule, info->step),
                       scale, n, grad, vectors[0] + offset, out, state);
}
