/* Async training: legs in which bank and workers meet nowhere, and a meeting behind each. */
#include <string.h>

#include "train/run.h"

/* ---- open ----------------------------------------------------------------------------------- */

static bool has_rows(const struct dt__run *run, int worker)
{
    int first, count;
    dt_world_replicas(run->world, worker, run->replicas, &first, &count);
    for (int r = first; r < first + count; r++)
        if (dt_plan_replica_rows(run->plan, r) > 0) return true;
    return false;
}

static dt_status create_exchange(struct dt__run *run)
{
    int workers = dt_world_workers(run->world);
    bool *active;
    dt_status status = dt_alloc((size_t)workers, sizeof *active, "workers", &active);
    DT_TRY(dt_world_agree_crew(run->world, status));
    for (int w = 0; w < workers; w++)
        active[w] = has_rows(run, w);
    struct dt_async_spec spec = {.params = dt_model_params(run->model),
                                 .states = run->optimizer.nstate,
                                 .update = dt__async_update,
                                 .arg = run,
                                 .staleness = run->config->train.staleness,
                                 .keep_seen = run->config->train.delay_compensation > 0,
                                 .active = active};
    status = dt_async_create(run->world, &spec, &run->async.exchange);
    dt_free(active);
    return status;
}

/* Replicas go on with the draw that the checkpoint has them at. */
static dt_status share_draws(struct dt__run *run)
{
    size_t bytes = (size_t)run->replicas * sizeof *run->async.draws;
    dt_status status =
        dt_alloc((size_t)run->replicas, sizeof *run->async.draws, "draw counts", &run->async.draws);
    DT_TRY(dt_world_agree_crew(run->world, status));
    if (run->keeper.resumed) memcpy(run->async.draws, run->keeper.loaded.draws, bytes);
    return dt_world_crew_bcast(run->world, run->async.draws, bytes);
}

dt_status dt__async_open(struct dt__run *run)
{
    DT_TRY(create_exchange(run));
    return share_draws(run);
}

void dt__async_close(struct dt__run *run)
{
    dt_async_destroy(run->async.exchange);
    dt_free(run->async.draws);
}

/* ---- legs ----------------------------------------------------------------------------------- */

/* One leg. *out_asked: what ended it, at every rank. */
static dt_status train_leg(struct dt__run *run, int *out_asked)
{
    struct {
        uint64_t step;
        int asked;
    } end = {0};
    if (dt_world_is_bank(run->world)) {
        end.asked = dt__async_bank_leg(run);
        end.step = run->step;
    } else {
        dt__async_worker_leg(run);
    }
    DT_TRY(dt_world_crew_bcast(run->world, &end, sizeof end));
    run->step = end.step;
    *out_asked = end.asked;
    return DT_OK;
}

dt_status dt__async_train(struct dt__run *run)
{
    const uint64_t warm = (uint64_t)run->config->train.warm_start_steps;
    for (bool end = false; !end;) {
        bool alone = run->step < warm;
        int asked;
        DT_TRY(dt_async_open(run->async.exchange, run->step, dt__next_meeting(run), alone));
        DT_TRY(train_leg(run, &asked));
        DT_TRY(dt_async_count(run->async.exchange, &run->async.counts));
        DT_TRY(dt__meet(run, asked, &end));
    }
    return DT_OK;
}
