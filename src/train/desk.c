/* The bank's side of a dedicated evaluator: it takes verdicts as they come, and waits for the last. */
#include "train/run.h"

static const double ROUND_SECS = 1, PAUSE_SECS = 0.002;
/* Beyond run.stall_secs: by then the watchdog has named an evaluator that does not get on. */
static const double GRACE_SECS = 15;

static int evaluator_of(const struct dt__run *run)
{
    return dt_world_evaluator_rank(run->world);
}

/* ---- while training goes on ----------------------------------------------------------------- */

static void take_message(struct dt__run *run)
{
    struct dt__desk *desk = &run->keeper.desk;
    char name[DT_CHECKPOINT_NAME];
    desk->heard_at = dt_clock_secs();
    switch (desk->message.kind) {
    case DT__CLAIM:
        dt_writer_spare(run->keeper.writer, dt_checkpoint_name(desk->message.verdict.step, name));
        break;
    case DT__BUSY:
        break;
    case DT__VERDICT:
        desk->waits = true;
        break;
    }
}

/* Verdicts wait for a meeting, which they ask for; the rest is done at once. */
int dt__desk_asks(struct dt__run *run)
{
    struct dt__desk *desk = &run->keeper.desk;
    if (evaluator_of(run) < 0) return DT_ASK_NONE;
    while (!desk->waits && dt_world_try_recv(run->world, evaluator_of(run), DT__TAG_MESSAGE,
                                             &desk->message, sizeof desk->message))
        take_message(run);
    return desk->waits ? DT_ASK_MEET : DT_ASK_NONE;
}

dt_status dt__desk_collect(struct dt__run *run)
{
    struct dt__desk *desk = &run->keeper.desk;
    bool better;
    while (dt__desk_asks(run) & DT_ASK_MEET) {
        desk->waits = false;
        desk->judged = true;
        desk->judged_step = desk->message.verdict.step;
        dt_writer_spare(run->keeper.writer, NULL);
        DT_TRY(dt__verdict_take(run, &desk->message.verdict, &better));
    }
    return DT_OK;
}

/* ---- the end -------------------------------------------------------------------------------- */

static bool has_last_verdict(const struct dt__run *run)
{
    return run->keeper.desk.judged && run->keeper.desk.judged_step == run->step;
}

static dt_status give_order(struct dt__run *run, const struct dt__order *order)
{
    return dt_world_send(run->world, evaluator_of(run), DT__TAG_ORDER, order, sizeof *order);
}

static dt_status ask_for_last(struct dt__run *run)
{
    struct dt__order order = {.kind = DT__FINISH, .step = run->step};
    run->keeper.desk.heard_at = dt_clock_secs();
    return give_order(run, &order);
}

static void check_stall(struct dt__run *run)
{
    double stall = run->config->run.stall_secs;
    int rank = evaluator_of(run);
    if (stall <= 0 || dt_clock_secs() - run->keeper.desk.heard_at < stall + GRACE_SECS) return;
    dt_world_abort(run->world,
                   dt_fail(DT_ECOMM,
                           "no progress for %g s (run.stall_secs) while waiting for the last "
                           "evaluation from rank %d on %s",
                           stall, rank, dt_world_host(run->world, rank)));
}

/* Waits a while for the last verdict. */
static dt_status await_round(struct dt__run *run)
{
    double end = dt_clock_secs() + ROUND_SECS;
    dt_world_beat(run->world, "evaluation", run->step);
    DT_TRY(dt__desk_collect(run));
    while (!has_last_verdict(run) && dt_clock_secs() < end) {
        dt_sleep_secs(PAUSE_SECS);
        DT_TRY(dt__desk_collect(run));
    }
    check_stall(run);
    return DT_OK;
}

/* In rounds, so that the workers hear from the bank and know that it is alive. */
dt_status dt__desk_await(struct dt__run *run, double most_secs)
{
    if (evaluator_of(run) < 0) return DT_OK;
    const bool bank = dt_world_is_bank(run->world);
    double end = dt_clock_secs() + most_secs;
    dt_status status = bank ? ask_for_last(run) : DT_OK;
    for (bool over = false; !over;) {
        if (bank && !status) status = await_round(run);
        DT_TRY(dt_world_agree_crew(run->world, status));
        over = has_last_verdict(run) || dt_clock_secs() >= end;
        DT_TRY(dt_world_crew_bcast(run->world, &over, sizeof over));
    }
    return DT_OK;
}

void dt__desk_dismiss(struct dt__run *run, dt_status status)
{
    struct dt__order order = {.kind = DT__DISMISS, .status = (int)status};
    if (evaluator_of(run) < 0 || !dt_world_is_bank(run->world)) return;
    dt_status failed = give_order(run, &order);
    if (failed) dt_world_abort(run->world, failed);
}
