/* The bank of async training: follows the gradients as they are applied, and keeps records and
 * checkpoints on the way. */
#include "train/run.h"

/* ---- accounts ------------------------------------------------------------------------------- */

/* The clock of training runs through a leg. */
static void clock_on(struct dt__run *run, double now)
{
    run->keeper.state.train_secs += now - run->async.clocked;
    run->async.clocked = now;
}

static void account(struct dt__run *run, const struct dt_applied *applied)
{
    struct dt_checkpoint *state = &run->keeper.state;
    struct dt__async *async = &run->async;
    const struct dt_note *note = &applied->note;
    state->step = ++run->step;
    clock_on(run, applied->clock);
    if (note->ask & DT_ASK_ERROR) return;
    state->samples += note->rows;
    state->loss_rows += (double)note->rows;
    state->loss_sums[note->replica] += note->loss;
    state->draws[note->replica] = note->draw + 1;
    async->staleness_sum += (double)applied->staleness;
    async->staleness_count++;
    if (applied->staleness > async->staleness_max) async->staleness_max = applied->staleness;
}

/* The workers are under way: what fails here ends the job. */
static void require(struct dt__run *run, dt_status status)
{
    if (status) dt_world_abort(run->world, status);
}

/* ---- leg ------------------------------------------------------------------------------------ */

enum { MOST_AT_ONCE = 64 };

static bool save_waits(const struct dt__run *run)
{
    return run->step != run->keeper.saved_step && dt__keeper_save_due(run);
}

/* Lets gradients be applied up to the next checkpoint, accounts for some, and returns what their workers
 * ask for. */
static int follow(struct dt__run *run)
{
    struct dt_applied applied[MOST_AT_ONCE];
    uint64_t until = save_waits(run) ? 0 : dt__next_save(run);
    int asked = DT_ASK_NONE;
    int n = dt_async_serve(run->async.exchange, until, MOST_AT_ONCE, applied);
    for (int i = 0; i < n; i++) {
        account(run, &applied[i]);
        asked |= applied[i].note.ask;
        if (!(asked & DT_ASK_ERROR) && dt__log_due(run)) require(run, dt__record_train(run));
    }
    dt__show_progress(run);
    return asked;
}

static void save(struct dt__run *run)
{
    require(run, dt__keeper_collect(run));
    if (!save_waits(run) || !dt_async_rests(run->async.exchange)) return;
    run->keeper.state.params = dt_async_weights(run->async.exchange);
    require(run, dt__keeper_save(run, false));
}

/* Verdicts need no meeting here, but an early stop does. */
static int bank_asks(struct dt__run *run)
{
    require(run, dt__desk_collect(run));
    return (dt_stop_requested() ? DT_ASK_STOP : 0) |
           (run->keeper.state.best.stop ? DT_ASK_MEET : 0);
}

int dt__async_bank_leg(struct dt__run *run)
{
    struct dt_async *async = run->async.exchange;
    int asked = DT_ASK_NONE;
    double cpu = dt_clock_cpu_secs();
    run->async.clocked = dt_clock_secs();
    while (!dt_async_over(async)) {
        asked |= follow(run);
        if (!(asked & DT_ASK_ERROR)) save(run);
        asked |= bank_asks(run);
        if (asked) dt_async_close(async);
    }
    run->keeper.state.params = dt_async_weights(async);
    run->keeper.bank_cpu_secs += dt_clock_cpu_secs() - cpu;
    return asked;
}
