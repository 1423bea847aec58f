/* Between two legs: bank and workers meet, the weights are at rest. */
#include <math.h>
#include <string.h>

#include "train/run.h"

/* ---- when ----------------------------------------------------------------------------------- */

static uint64_t next_multiple(uint64_t step, int64_t every)
{
    return every > 0 ? (step / (uint64_t)every + 1) * (uint64_t)every : UINT64_MAX;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t dt__next_save(const struct dt__run *run)
{
    return next_multiple(run->step, run->config->run.checkpoint_steps);
}

/* Async: records and checkpoints are made on the way, only evaluation needs the workers. */
uint64_t dt__next_meeting(const struct dt__run *run)
{
    uint64_t next = least(run->last_step, next_multiple(run->step, dt__eval_interval(run)));
    /* At a start: the end is due, or an evaluation that a stop forestalled. */
    if (run->keeper.state.best.stop || dt__eval_due(run)) return run->step;
    if (run->mode == DT_SYNC) {
        uint64_t record = next_multiple(run->step, run->config->run.log_steps);
        return least(next, least(record, dt__next_save(run)));
    }
    uint64_t warm = (uint64_t)run->config->train.warm_start_steps;
    return run->step < warm ? least(next, warm) : next;
}

bool dt__log_due(const struct dt__run *run)
{
    return run->step == run->last_step || run->step % (uint64_t)run->config->run.log_steps == 0;
}

int dt__bank_asks(void *arg)
{
    struct dt__run *run = arg;
    const struct dt__keeper *keeper = &run->keeper;
    double every = run->config->run.checkpoint_secs;
    bool due = every > 0 && dt_clock_secs() - keeper->saved_at >= every;
    return (dt_stop_requested() ? DT_ASK_STOP : 0) | dt__desk_asks(run) |
           (due && !dt_writer_busy(keeper->writer) ? DT_ASK_MEET : 0);
}

/* ---- what the bank decides ------------------------------------------------------------------ */

/* A stop waits only so long for an evaluator, which looks at the checkpoint again when the run goes on:
 * batch systems kill a job some 30 s after they ask it to stop. */
static const double STOP_PATIENCE_SECS = 5;

enum course { GO_ON, STOP, END };
struct decision {
    int status; /* dt_status; its text goes by agreement */
    enum course course;
};

/* The last save is waited for. */
static dt_status decide(struct dt__run *run, int asked, enum course *out)
{
    DT_TRY(dt__keeper_collect(run));
    DT_TRY(dt__desk_collect(run));
    bool at_end = run->step == run->last_step || run->keeper.state.best.stop;
    if (at_end && !dt__eval_due(run))
        *out = END;
    else if (asked & DT_ASK_STOP)
        *out = STOP;
    if (*out == GO_ON && !dt__keeper_save_due(run)) return DT_OK;
    return dt__keeper_save(run, *out != GO_ON);
}

/* ---- the meeting ---------------------------------------------------------------------------- */

/* Losses add up over a log window; a replica's sum is made by its worker in order of steps, so that
 * the record has the same digits at any number of ranks. */
static dt_status report_losses(struct dt__run *run)
{
    struct dt_checkpoint *state = &run->keeper.state;
    DT_TRY(dt_world_crew_sum(run->world, run->loss, run->replicas, state->loss_sums));
    DT_TRY(dt__budget_share(run));
    bool due = dt__log_due(run);
    dt_status status = DT_OK;
    if (dt_world_is_bank(run->world)) {
        state->loss_rows +=
            (double)(dt__samples_at(run, run->step) - dt__samples_at(run, state->step));
        state->samples = dt__samples_at(run, run->step);
        state->step = run->step;
        if (due)
            status = dt__record_train(run);
        else
            dt__show_progress(run);
    }
    if (due) memset(run->loss, 0, (size_t)run->replicas * sizeof *run->loss);
    return status;
}

/* The last evaluation and the last record. Collective over the crew. */
static dt_status finish(struct dt__run *run, enum course course)
{
    const char *word = course == STOP               ? "stopped"
                       : run->step < run->last_step ? "early_stopped"
                                                    : "completed";
    DT_TRY(dt__desk_await(run, course == STOP ? STOP_PATIENCE_SECS : INFINITY));
    bool bank = dt_world_is_bank(run->world);
    DT_TRY(dt_world_agree_crew(run->world, bank ? dt__record_final(run, word) : DT_OK));
    return course == STOP ? DT_STOPPED : DT_OK;
}

dt_status dt__meet(struct dt__run *run, int asked, bool *out_end)
{
    *out_end = false;
    dt_world_beat(run->world, "meeting", run->step);
    if (asked & DT_ASK_ERROR) return dt_world_agree_crew(run->world, run->failed);
    struct decision decision = {.status = DT_OK};
    if (run->mode == DT_SYNC) decision.status = (int)report_losses(run);
    dt_status evaluated = dt__eval_due(run) ? dt__evaluate(run) : DT_OK;
    if (evaluated == DT_STOPPED)
        asked |= DT_ASK_STOP;
    else
        DT_TRY(evaluated);
    bool bank = dt_world_is_bank(run->world);
    if (bank && !decision.status) decision.status = (int)decide(run, asked, &decision.course);
    run->keeper.leg_start = dt_clock_secs();
    DT_TRY(dt_world_crew_bcast(run->world, &decision, sizeof decision));
    if (decision.status)
        return dt_world_agree_crew(run->world, bank ? (dt_status)decision.status : DT_OK);
    *out_end = decision.course != GO_ON;
    return *out_end ? finish(run, decision.course) : DT_OK;
}
