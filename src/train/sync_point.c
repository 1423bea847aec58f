/* The synchronization point between two spans: bank and workers come together, the weights are at rest.
 * Losses are summed and recorded, the model is evaluated and saved where that is due, and the bank
 * decides whether the run goes on. */
#include <math.h>
#include <string.h>

#include "train/local.h"

bool dt__stop_asked(struct dt_bank *bank)
{
    const struct dt_train_options *options = bank->options;
    if (!bank->stop && options->stop) bank->stop = options->stop(options->arg);
    return bank->stop || dt_stop_requested();
}

int dt__bank_asks(void *arg)
{
    struct dt_bank *bank = arg;
    return (dt__stop_asked(bank) ? DT_ASK_STOP : 0) | dt__link_asks(bank) |
           (dt__save_time_due(bank) ? DT_ASK_SYNC : 0);
}

/* ---- losses --------------------------------------------------------------------------------- */

/* Losses add up over a log window; a replica's sum is made by its worker in order of steps, so that
 * the record has the same digits at any number of ranks. */
static dt_status sum_losses(const struct dt_trainer *trainer)
{
    static const double NO_BUDGET[DT__BUDGET_PARTS];
    struct dt_job *job = trainer->job;
    struct dt_worker *worker = trainer->worker;
    struct dt_bank *bank = trainer->bank;
    /* cppcheck-suppress nullPointerRedundantCheck ; a rank without a worker is the bank */
    dt_ranks_sum(job->world->trainers, worker ? worker->loss : bank->no_loss, job->replicas,
                          bank ? bank->state.loss_sums : NULL);
    dt_ranks_sum(job->world->trainers, worker ? worker->budget : NO_BUDGET, DT__BUDGET_PARTS,
                          bank ? bank->budget : NULL);
    bool due = dt__log_due(job);
    if (worker && due) memset(worker->loss, 0, (size_t)job->replicas * sizeof *worker->loss);
    if (!bank) return DT_OK;
    struct dt_checkpoint *state = &bank->state;
    uint64_t samples = dt__samples_at(job, job->step);
    state->loss_rows += (double)(samples - dt__samples_at(job, state->step));
    state->samples = samples;
    state->step = job->step;
    if (due) return dt__record_train(bank);
    dt__show_progress(bank);
    return DT_OK;
}

/* ---- what the bank decides ------------------------------------------------------------------ */

/* A stop waits only so long for an evaluator, which looks at the checkpoint again when the run goes on:
 * batch systems kill a job some 30 s after they ask it to stop. */
static const double STOP_PATIENCE_SECS = 5;

/* What comes behind the synchronization point. */
enum next { GO_ON, STOP, END };
struct decision {
    int status; /* dt_status; its text goes by agreement */
    enum next next;
    int64_t drops; /* of the rate so far, with train.schedule=plateau */
};

/* Whether the run goes on, and whether it is to be saved here. */
static dt_status decide(struct dt_bank *bank, int asked, enum next *out, bool *out_save)
{
    const struct dt_job *job = bank->job;
    DT_TRY(dt__saves_collect(bank));
    DT_TRY(dt__link_collect(bank));
    bool at_end = job->step == job->last_step || job->best.stop;
    if (at_end && !dt__eval_due(job))
        *out = END;
    else if ((asked & DT_ASK_STOP) || dt__stop_asked(bank)) /* a short span asks nobody */
        *out = STOP;
    *out_save = *out != GO_ON || dt__save_due(bank);
    return DT_OK;
}

/* The last evaluation and the last record. Sync: the bank learns what the time of each worker went into. */
static dt_status finish(const struct dt_trainer *trainer, enum next next)
{
    static const double NO_BUDGET[DT__BUDGET_PARTS];
    struct dt_job *job = trainer->job;
    struct dt_bank *bank = trainer->bank;
    dt_status status = DT_OK;
    const char *word = next == STOP                 ? "stopped"
                       : job->step < job->last_step ? "early_stopped"
                                                    : "completed";
    DT_TRY(dt__link_await_last(job, bank, next == STOP ? STOP_PATIENCE_SECS : INFINITY));
    if (job->mode == DT_MODE_SYNC) {
        if (bank)
            status = dt_alloc((size_t)job->world->workers + 1, sizeof NO_BUDGET,
                              "times of the workers", &bank->budgets);
        DT_TRY(dt_ranks_agree(job->world->trainers, status));
        dt_ranks_gather(job->world->trainers, trainer->worker ? trainer->worker->budget : NO_BUDGET,
                                 sizeof NO_BUDGET, bank ? bank->budgets : NULL);
    }
    if (bank) status = dt__record_final(bank, word);
    DT_TRY(dt_ranks_agree(job->world->trainers, status));
    return next == STOP ? DT_STOPPED : DT_OK;
}

/* A round of local steps was given up: the run ends where the newest checkpoint stands. */
static dt_status give_up(const struct dt_trainer *trainer)
{
    struct dt_bank *bank = trainer->bank;
    dt_status status = bank ? dt__saves_finish(bank) : DT_OK;
    DT_TRY(dt_ranks_agree(trainer->job->world->trainers, status));
    if (bank)
        dt_info(
            "stopped in a round of local steps, which will be done again: the checkpoint of step "
            "%llu stands",
            (unsigned long long)bank->saved_step);
    return DT_STOPPED;
}

/* The optimizer's state to the bank, to be saved, where others own it. Collective. */
static void gather_state(const struct dt_trainer *trainer, bool save)
{
    struct dt_job *job = trainer->job;
    if (job->mode == DT_MODE_ASYNC) return;
    if (!job->local && !dt_reducer_is_spread(job->reducer)) return;
    dt_ranks_bcast(job->world->trainers, &save, sizeof save, 0);
    if (!save) return;
    dt_reducer_gather(job->reducer);
    if (job->local) dt__local_gather(trainer);
}

/* ---- the synchronization point -------------------------------------------------------------- */

dt_status dt__sync_point(const struct dt_trainer *trainer, int asked, bool *out_end)
{
    struct dt_job *job = trainer->job;
    struct dt_bank *bank = trainer->bank;
    struct decision decision = {.status = DT_OK};
    *out_end = false;
    dt_world_heartbeat(job->world, "synchronization", job->step);
    dt_trace_phase(job->trace, DT_PHASE_SYNC, job->step);
    if (asked & DT_ASK_ERROR)
        return dt_ranks_agree(job->world->trainers,
                                       trainer->worker ? trainer->worker->failed : DT_OK);
    if (asked & DT_ASK_GIVE_UP) return give_up(trainer);
    if (job->mode == DT_MODE_SYNC) decision.status = (int)sum_losses(trainer);
    if (dt__eval_due(job)) dt_trace_phase(job->trace, DT_PHASE_EVALUATE, job->step);
    dt_status evaluated = dt__eval_due(job) ? dt__evaluate(trainer) : DT_OK;
    dt_trace_phase(job->trace, DT_PHASE_SYNC, job->step);
    if (evaluated == DT_STOPPED)
        asked |= DT_ASK_STOP;
    else
        DT_TRY(evaluated);
    bool save = false;
    if (bank && !decision.status) decision.status = (int)decide(bank, asked, &decision.next, &save);
    gather_state(trainer, save);
    if (bank && save) {
        dt_trace_phase(job->trace, DT_PHASE_SAVE, job->step);
        decision.status = (int)dt__save(bank, decision.next != GO_ON); /* the last is waited for */
    }
    if (bank) {
        bank->span_start = dt_clock_secs();
        decision.drops = job->best.drops;
        if (decision.drops > job->schedule.drops)
            dt_info("no better evaluation: the rate falls at step %llu",
                    (unsigned long long)job->step);
    }
    dt_ranks_bcast(job->world->trainers, &decision, sizeof decision, 0);
    job->schedule.drops = decision.drops;
    if (decision.status)
        return dt_ranks_agree(job->world->trainers, bank ? (dt_status)decision.status : DT_OK);
    *out_end = decision.next != GO_ON;
    return *out_end ? finish(trainer, decision.next) : DT_OK;
}
