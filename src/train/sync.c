/* Sync training: legs of steps, and a meeting of bank and workers behind each. */
#include "train/run.h"

/* ---- worker --------------------------------------------------------------------------------- */

/* What the hooks of a step know. */
struct passage {
    struct dt_exchange *exchange;
    int unready; /* layers whose gradients are still to come, the first ones */
};

static void need_layer(void *arg, int layer)
{
    const struct passage *passage = arg;
    dt_exchange_need(passage->exchange, layer);
}

static void layer_ready(void *arg, int layer)
{
    struct passage *passage = arg;
    dt_exchange_ready(passage->exchange, layer);
    passage->unready = layer;
}

static int worker_asks(struct dt__run *run)
{
    if (run->failed) return DT_ASK_ERROR;
    int ask = dt_stop_requested() ? DT_ASK_STOP : DT_ASK_NONE;
    return dt_world_is_bank(run->world) ? ask | dt__bank_asks(run) : ask;
}

/* One step: each replica's gradient into its slot, then the exchange. The others wait for each layer of
 * a rank that has no replica, or failed, as well. */
static int worker_step(struct dt__run *run)
{
    struct dt_exchange *exchange = run->exchange;
    struct passage passage = {exchange, dt_model_layers(run->model)};
    dt_exchange_begin(exchange, run->step);
    for (int i = 0; i < run->count; i++) {
        int replica = run->first + i;
        bool last = i == run->count - 1;
        struct dt_net_hooks hooks = {need_layer, last ? layer_ready : NULL, &passage};
        dt__replica_gradient(run, replica, run->step, dt_exchange_weights(exchange),
                             dt_exchange_grad(exchange, replica), &hooks);
    }
    while (passage.unready > 0)
        layer_ready(&passage, passage.unready - 1);
    dt__slow_down(run);
    return dt_exchange_end(exchange, worker_asks(run));
}

static int worker_leg(struct dt__run *run, uint64_t until)
{
    int asked = DT_ASK_NONE;
    double start = dt_clock_secs();
    while (run->step < until && !asked) {
        asked = worker_step(run);
        if (!(asked & DT_ASK_ERROR)) run->step++;
    }
    dt_exchange_settle(run->exchange);
    dt__budget_leg(run, dt_clock_secs() - start);
    return asked;
}

/* ---- bank ----------------------------------------------------------------------------------- */

static int bank_leg(struct dt__run *run, uint64_t until)
{
    struct dt__keeper *keeper = &run->keeper;
    double cpu = dt_clock_cpu_secs();
    int asked;
    if (dt_world_is_worker(run->world))
        asked = worker_leg(run, until);
    else
        asked = dt_exchange_serve(run->exchange, run->step, until, dt__bank_asks, run, &run->step);
    keeper->state.train_secs += dt_clock_secs() - keeper->leg_start;
    keeper->bank_cpu_secs += dt_clock_cpu_secs() - cpu;
    return asked;
}

/* ---- both ----------------------------------------------------------------------------------- */

dt_status dt__sync_train(struct dt__run *run)
{
    run->keeper.leg_start = dt_clock_secs();
    for (bool end = false; !end;) {
        uint64_t until = dt__next_meeting(run);
        bool bank = dt_world_is_bank(run->world);
        int asked = bank ? bank_leg(run, until) : worker_leg(run, until);
        DT_TRY(dt__meet(run, asked, &end));
    }
    return DT_OK;
}
