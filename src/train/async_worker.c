/* A worker of async training: goes round its replicas, each at its own draw. */
#include <stdlib.h>

#include "train/run.h"

/* The next replica in turn, at its next draw that has rows. */
static int next_replica(struct dt__run *run)
{
    struct dt__async *async = &run->async;
    int replica;
    do
        replica = run->first + async->turn++ % run->count;
    while (dt_plan_replica_rows(run->plan, replica) == 0);
    while (dt_plan_share(run->plan, async->draws[replica], replica).count == 0)
        async->draws[replica]++;
    return replica;
}

static double norm2_of(const struct dt__run *run, const float *grad)
{
    if (run->config->train.clip_norm <= 0) return 0;
    double lane[8] = {0};
    for (size_t i = 0; i < dt_model_params(run->model); i++)
        lane[i & 7] += (double)grad[i] * (double)grad[i];
    return ((lane[0] + lane[1]) + (lane[2] + lane[3])) +
           ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

/* One replica's gradient over its share of a batch. One that failed goes to the bank as well, which ends
 * the leg for all. */
static struct dt_note compute(struct dt__run *run, const float *weights, float *grad)
{
    int replica = next_replica(run);
    uint64_t draw = run->async.draws[replica]++;
    run->loss[replica] = 0;
    dt_world_beat(run->world, "gradient", draw);
    int ask = dt_stop_requested() ? DT_ASK_STOP : DT_ASK_NONE;
    if (!dt__replica_gradient(run, replica, draw, weights, grad, NULL)) ask = DT_ASK_ERROR;
    dt__slow_down(run);
    return (struct dt_note){.replica = replica,
                            .draw = draw,
                            .rows = dt_plan_share(run->plan, draw, replica).count,
                            .loss = run->loss[replica],
                            .norm2 = norm2_of(run, grad),
                            .ask = ask};
}

void dt__async_worker_leg(struct dt__run *run)
{
    struct dt_async *async = run->async.exchange;
    while (!run->failed && dt_async_begin(async)) {
        const float *weights = dt_async_read(async);
        struct dt_note note = compute(run, weights, dt_async_grad(async));
        dt_async_send(async, &note);
    }
}
