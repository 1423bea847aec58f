/* The synchronization point between two spans, where bank and workers meet and no exchange changes
 * the weights. The ranks sum and record losses, evaluate and save where due, and the bank decides
 * whether the run continues. */
#include <math.h>
#include <string.h>

#include "train/sets.h"
#include "train/step.h"

bool dt__stop_asked(struct dt_bank *bank)
{
    const struct dt__train_options *options = bank->options;
    if (!bank->stop && options->stop) bank->stop = options->stop(options->arg);
    return bank->stop || dt__stop_requested();
}

int dt__asks(void *arg)
{
    struct dt_bank *bank = ((const struct dt_job *)arg)->bank;
    if (!bank) return dt__stop_requested() ? DT_ASK_STOP : DT_ASK_NONE;
    return (dt__stop_asked(bank) ? DT_ASK_STOP : 0) | dt__link_asks(bank) |
           (dt__save_time_due(bank) ? DT_ASK_SYNC : 0);
}

/* ---- losses --------------------------------------------------------------------------------- */

/* Sums the losses since the last train record. Each replica's worker adds its losses in the order
 * of steps, so a record has the same digits with any number of ranks. */
static dt_status sum_losses(struct dt_job *job)
{
    struct dt_worker *worker = job->worker;
    struct dt_bank *bank = job->bank;
    dt__ranks_sum(job->world->trainers, worker ? worker->loss : NULL, job->replicas,
                  bank ? bank->state.loss_sums : NULL);
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

/* The bank's decision about the run after the synchronization point. */
struct decision {
    int status; /* a dt_status; an agreement sends its text */
    enum { GO_ON, STOP, END } next;
    bool save;
    int64_t drops; /* with train.schedule=plateau, how often the rate has fallen */
    bool stop;     /* best.stop of the bank: patience has run out */
};

static struct decision decide(struct dt_bank *bank, int asked, dt_status status)
{
    const struct dt_job *job = bank->job;
    struct decision decision = {.next = GO_ON};
    if (!status) status = dt__saves_collect(bank, false);
    if (!status) status = dt__link_collect(bank);
    const bool at_end = job->step == job->last_step || job->best.stop;
    if (at_end && !dt__eval_due(job))
        decision.next = END;
    else if ((asked & DT_ASK_STOP) || dt__stop_asked(bank)) /* without steps, `asked` is empty */
        decision.next = STOP;
    decision.save = decision.next != GO_ON || dt__save_due(bank);
    decision.drops = job->best.drops;
    decision.stop = job->best.stop;
    decision.status = (int)status;
    return decision;
}

/* Gathers weights and optimizer state on the bank, which saves them. last: waits for the save.
 * Collective over bank and workers. */
static dt_status save(struct dt_job *job, bool last)
{
    job->steps->stepper->gather(job);
    if (job->bank) dt__trace_phase(job->trace, DT_PHASE_SAVE, job->step);
    const dt_status status = job->bank ? dt__save(job->bank, last) : DT_OK;
    return dt__ranks_agree(job->world->trainers, status);
}

/* Sets the number of drops of the rate, and reports a lower rate. train.min_lr may keep the rate
 * where it is. */
static void drop_rate(struct dt_job *job, int64_t drops)
{
    const double before = dt__schedule_lr(&job->rules->schedule, job->step);
    dt__rate_drop(job, drops);
    if (job->world->is_bank && dt__schedule_lr(&job->rules->schedule, job->step) < before)
        dt__info("no better evaluation: the rate falls at step %llu",
                 (unsigned long long)job->step);
}

/* Seconds that a stop waits for an evaluator: batch systems kill a job some 30 s after they ask it
 * to stop. After a resume the evaluator evaluates the checkpoint again. */
static const double STOP_PATIENCE_SECS = 5;

/* Waits for the last evaluation, measures the sets that wait for the end, and writes the final
 * record. In sync the bank first gathers each worker's time budget. Collective over bank and
 * workers. */
static dt_status finish(struct dt_job *job, bool stopped)
{
    struct dt_bank *bank = job->bank;
    const char *word = stopped                      ? "stopped"
                       : job->step < job->last_step ? "early_stopped"
                                                    : "completed";
    static const double NO_BUDGET[DT__BUDGET_PARTS]; /* of a bank without replicas */
    DT_TRY(dt__link_await_last(job, stopped ? STOP_PATIENCE_SECS : INFINITY));
    if (job->mode == DT_MODE_SYNC)
        dt__ranks_gather(job->world->trainers, job->worker ? job->worker->budget : NO_BUDGET,
                         sizeof NO_BUDGET, bank ? bank->log.budgets : NULL);
    dt_status status = bank && !stopped ? dt__sets_finish(bank) : DT_OK;
    if (bank && !status) status = dt__record_final(bank, word);
    DT_TRY(dt__ranks_agree(job->world->trainers, status));
    return stopped ? DT_STOPPED : DT_OK;
}

/* ---- the synchronization point -------------------------------------------------------------- */

dt_status dt__sync_point(struct dt_job *job, int asked, bool *out_end)
{
    struct dt_bank *bank = job->bank;
    *out_end = false;
    dt__world_heartbeat(job->world, "synchronization", job->step);
    dt__trace_phase(job->trace, DT_PHASE_SYNC, job->step);
    if (asked & DT_ASK_ERROR)
        return dt__ranks_agree(job->world->trainers, job->worker ? job->worker->failed : DT_OK);
    /* A run stopped within a round of local steps ends at its newest checkpoint. */
    if (asked & DT_ASK_GIVE_UP) {
        DT_TRY(dt__ranks_agree(job->world->trainers, bank ? dt__saves_finish(bank) : DT_OK));
        if (bank)
            dt__info("stopped in a round of local steps, which a resume repeats from the newest "
                     "checkpoint");
        return DT_STOPPED;
    }
    const dt_status summed = job->mode == DT_MODE_SYNC ? sum_losses(job) : DT_OK;
    if (dt__eval_due(job)) {
        dt__trace_phase(job->trace, DT_PHASE_EVALUATE, job->step);
        const dt_status evaluated = dt__evaluate(job);
        dt__trace_phase(job->trace, DT_PHASE_SYNC, job->step);
        if (evaluated != DT_STOPPED) DT_TRY(evaluated);
        if (evaluated == DT_STOPPED) asked |= DT_ASK_STOP;
    }
    struct decision decision = {0};
    if (bank) decision = decide(bank, asked, summed);
    dt__ranks_bcast(job->world->trainers, &decision, sizeof decision, 0);
    if (decision.status)
        return dt__ranks_agree(job->world->trainers, bank ? (dt_status)decision.status : DT_OK);
    if (decision.save) DT_TRY(save(job, decision.next != GO_ON));
    drop_rate(job, decision.drops);
    job->best.stop = decision.stop;
    *out_end = decision.next != GO_ON;
    return *out_end ? finish(job, decision.next == STOP) : DT_OK;
}
