/* Between two legs: bank and workers meet, the weights are at rest. */
#include <string.h>

#include "train/run.h"

/* ---- when ----------------------------------------------------------------------------------- */

static uint64_t next_multiple(uint64_t step, int64_t every) {
    return every > 0 ? (step / (uint64_t)every + 1) * (uint64_t)every : UINT64_MAX;
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

uint64_t dt__next_record(const struct dt__run *run)
{
    const struct dt_config *config = run->config;
    uint64_t next = least(run->last_step, next_multiple(run->step, config->run.log_steps));
    return least(next, next_multiple(run->step, config->run.checkpoint_steps));
}

/* Async: records and checkpoints are made on the way, only evaluation needs the workers. */
uint64_t dt__next_meeting(const struct dt__run *run)
{
    uint64_t next = least(run->last_step, next_multiple(run->step, dt__eval_interval(run)));
    if (run->mode == DT_SYNC) return least(next, dt__next_record(run));
    uint64_t warm = (uint64_t)run->config->train.warm_start_steps;
    return run->step < warm ? least(next, warm) : next;
}

bool dt__log_due(const struct dt__run *run) {
    return run->step == run->last_step || run->step % (uint64_t)run->config->run.log_steps == 0;
}

int dt__bank_asks(void *arg) {
    struct dt__run *run = arg;
    const struct dt__keeper *keeper = &run->keeper;
    double every = run->config->run.checkpoint_secs;
    bool due = every > 0 && dt_clock_secs() - keeper->saved_at >= every;
    return (dt_stop_requested() ? DT_ASK_STOP : 0) |
           (due && !dt_writer_busy(keeper->writer) ? DT_ASK_MEET : 0);
}

/* ---- what the bank decides ------------------------------------------------------------------ */

struct decision {
    int status; /* dt_status; its text goes by agreement */
    bool end;
};

static const char *end_word(const struct dt__run *run, dt_status status) {
    if (status == DT_STOPPED) return "stopped";
    return run->step < run->last_step ? "early_stopped" : "completed";
}

/* The last save, the last records. `status` is how the run ends. */
static dt_status finish(struct dt__run *run, dt_status status) {
    DT_TRY(dt__keeper_save(run, true));
    DT_TRY(dt__record_final(run, end_word(run, status)));
    return status;
}

static dt_status decide(struct dt__run *run, int asked, bool *out_end) {
    const struct dt_best *best = &run->keeper.state.best;
    DT_TRY(dt__keeper_collect(run, false));
    *out_end = run->step == run->last_step || best->stop;
    if (*out_end) return finish(run, DT_OK);
    if (asked & DT_ASK_STOP) return finish(run, DT_STOPPED);
    return dt__keeper_save_due(run) ? dt__keeper_save(run, false) : DT_OK;
}

/* ---- the meeting ---------------------------------------------------------------------------- */

/* Losses add up over a log window; a replica's sum is made by its worker in order of steps, so that
 * the record has the same digits at any number of ranks. */
static dt_status report_losses(struct dt__run *run) {
    struct dt_checkpoint *state = &run->keeper.state;
    DT_TRY(dt_world_crew_sum(run->world, run->loss, run->replicas, state->loss_sums));
    bool due = dt__log_due(run);
    dt_status status = DT_OK;
    if (dt_world_is_bank(run->world)) {
        state->loss_rows +=
            (double)(dt__samples_at(run, run->step) - dt__samples_at(run, state->step));
        state->samples = dt__samples_at(run, run->step);
        state->step = run->step;
        if (due) status = dt__record_train(run);
        else dt__show_progress(run);
    }
    if (due) memset(run->loss, 0, (size_t)run->replicas * sizeof *run->loss);
    return status;
}

dt_status dt__meet(struct dt__run *run, int asked, bool *out_end) {
    *out_end = false;
    dt_world_beat(run->world, "meeting", run->step);
    if (asked & DT_ASK_ERROR) return dt_world_agree_crew(run->world, run->failed);
    struct decision decision = {.status = DT_OK};
    if (run->mode == DT_SYNC) decision.status = (int)report_losses(run);
    if (dt__eval_due(run, run->step)) DT_TRY(dt__evaluate(run));
    if (dt_world_is_bank(run->world) && !decision.status)
        decision.status = (int)decide(run, asked, &decision.end);
    DT_TRY(dt_world_crew_bcast(run->world, &decision, sizeof decision));
    *out_end = decision.end;
    if (decision.status == DT_STOPPED) return DT_STOPPED;
    if (decision.status == DT_OK) return DT_OK;
    bool bank = dt_world_is_bank(run->world);
    return dt_world_agree_crew(run->world, bank ? (dt_status)decision.status : DT_OK);
}
