/* The bank of async training: applies gradients as they come, keeps records and checkpoints in
 * between, and never makes a worker wait for them. */
#include <math.h>
#include <string.h>

#include "train/run.h"

/* ---- update --------------------------------------------------------------------------------- */

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

static void update(void *arg, const struct dt_gradient *gradient, uint64_t before, size_t offset,
                   size_t n, const float *weights, float *out)
{
    struct dt__run *run = arg;
    const struct dt_note *note = gradient->note;
    float *grad = gradient->grad + offset, *state[DT_MAX_STATE];
    if (note->ask & DT_ASK_ERROR) {
        memmove(out, weights, n * sizeof *out);
        return;
    }
    for (int i = 0; i < run->optimizer.nstate; i++)
        state[i] = run->async.vectors[1 + i] + offset;
    if (gradient->seen)
        compensate(run->config->train.delay_compensation / (double)note->rows, n, weights,
                   gradient->seen + offset, grad);
    dt_optimizer_apply(&run->optimizer, before, gradient_lr(run, before, gradient->staleness),
                       gradient_scale(run, note), n, grad, weights, out, state);
}

/* ---- accounts ------------------------------------------------------------------------------- */

static int account(struct dt__run *run, const struct dt_gradient *gradient)
{
    struct dt_checkpoint *state = &run->keeper.state;
    struct dt__async *async = &run->async;
    const struct dt_note *note = gradient->note;
    if (note->ask & DT_ASK_ERROR) return note->ask;
    state->samples += note->rows;
    state->loss_rows += (double)note->rows;
    state->loss_sums[note->replica] += note->loss;
    state->draws[note->replica] = note->draw + 1;
    async->staleness_sum += (double)gradient->staleness;
    async->staleness_count++;
    if (gradient->staleness > async->staleness_max) async->staleness_max = gradient->staleness;
    return note->ask;
}

/* The clock of training runs through a leg. */
static void clock_on(struct dt__run *run)
{
    double now = dt_clock_secs();
    run->keeper.state.train_secs += now - run->async.clocked;
    run->async.clocked = now;
}

static int apply(struct dt__run *run, int n, const struct dt_gradient *gradients)
{
    int asked = DT_ASK_NONE;
    dt_world_beat(run->world, "update", run->step);
    for (int i = 0; i < n; i++)
        asked |= account(run, &gradients[i]);
    dt_async_apply(run->async.exchange, n, gradients, update, run);
    run->step = dt_async_step(run->async.exchange);
    run->keeper.state.step = run->step;
    run->keeper.state.params = dt_async_weights(run->async.exchange);
    clock_on(run);
    return asked;
}

/* ---- between two applications --------------------------------------------------------------- */

/* At most so many gradients at once, so that records and checkpoints come at their steps. */
static int room(const struct dt__run *run)
{
    uint64_t left = dt__next_record(run) - run->step;
    return left < DT__ASYNC_BATCH ? (int)left : DT__ASYNC_BATCH;
}

/* The workers are under way: what fails here ends the job. */
static void keep(struct dt__run *run)
{
    dt_status status = dt__keeper_collect(run);
    if (!status && dt__log_due(run))
        status = dt__record_train(run);
    else
        dt__show_progress(run);
    if (!status && dt__keeper_save_due(run)) status = dt__keeper_save(run, false);
    if (status) dt_world_abort(run->world, status);
}

/* Verdicts need no meeting here, but an early stop does. */
static int bank_asks(struct dt__run *run)
{
    dt_status status = dt__desk_collect(run);
    if (status) dt_world_abort(run->world, status);
    return (dt_stop_requested() ? DT_ASK_STOP : 0) |
           (run->keeper.state.best.stop ? DT_ASK_MEET : 0);
}

int dt__async_bank_leg(struct dt__run *run)
{
    struct dt_async *async = run->async.exchange;
    struct dt_gradient gradients[DT__ASYNC_BATCH];
    int asked = DT_ASK_NONE;
    double cpu = dt_clock_cpu_secs();
    run->async.clocked = dt_clock_secs();
    while (!dt_async_over(async)) {
        int n = dt_async_take(async, room(run), gradients);
        if (n) {
            asked |= apply(run, n, gradients);
            if (!(asked & DT_ASK_ERROR)) keep(run);
        }
        asked |= bank_asks(run);
        if (asked) dt_async_close(async);
    }
    run->keeper.bank_cpu_secs += dt_clock_cpu_secs() - cpu;
    return asked;
}
