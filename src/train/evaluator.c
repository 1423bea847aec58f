/* The dedicated evaluator, and the bank's end of the link to it. The evaluator is the last rank: it
 * loads checkpoints as they appear, measures them and exports the best one while training
 * continues. It sends the bank a claim before it loads a checkpoint, so that the bank does not
 * delete the file, and then the results. The bank sends it orders. */
#include <sys/resource.h>

#include "train/bank.h"
#include "train/incumbent.h"
#include "train/sets.h"

enum { TAG_MESSAGE = 1, TAG_ORDER = 2 };

/* Bank to evaluator. */
struct order {
    enum { NOTHING, FINISH, DISMISS } kind;
    uint64_t step;           /* FINISH: step of the last checkpoint, which is already saved */
    int status;              /* DISMISS: the job's status, ... */
    char text[DT_ERROR_MAX]; /* ... and the error text if it failed */
};

/* ---- the evaluator -------------------------------------------------------------------------- */

/* Training has priority: the evaluator runs on cores that are idle. */
enum { NICENESS = 10 };
static const double LOOK_SECS = 0.1, IDLE_SECS = 0.01;

struct dt_evaluator {
    struct dt_job *job;
    struct dt_measure **measure; /* (sets) each measures all chunks of a set; NULL: the set is
                                  * not measured here, only once, with the best model, after
                                  * training */
    struct dt_metrics *metrics;
    struct order order; /* the latest one from the bank */
    uint64_t step;      /* step of the checkpoint that was last evaluated; UINT64_MAX: none */
    bool evaluated;     /* its result for the held-out rows has been sent */
    double look_at;     /* dt__clock_secs at which to look for a checkpoint again */
};

static void evaluator_say(struct dt_evaluator *evaluator, const struct dt_message *message)
{
    dt__world_send(evaluator->job->world, 0, TAG_MESSAGE, message, sizeof *message);
}

static void evaluator_listen(struct dt_evaluator *evaluator)
{
    dt__world_try_recv(evaluator->job->world, 0, TAG_ORDER, &evaluator->order,
                       sizeof evaluator->order);
}

/* Returns whether an order has made the current evaluation useless: the job ends, and this is not
 * its last checkpoint. */
static bool evaluator_is_overtaken(const struct dt_evaluator *evaluator)
{
    const struct order *order = &evaluator->order;
    return order->kind == DISMISS || (order->kind == FINISH && order->step != evaluator->step);
}

/* Measures a checkpoint. Each chunk counts as progress for the watchdogs of all hosts. */
static dt_status evaluator_measure(struct dt_evaluator *evaluator, int set,
                                   const struct dt_checkpoint *model)
{
    const struct dt_job *job = evaluator->job;
    const uint64_t chunks = dt__measure_chunks(job->config, job->sets.at[set].source);
    if (model->params_count != job->model->params)
        return dt_fail(DT_EMISMATCH, "the checkpoint is of another model");
    dt__metrics_reset(evaluator->metrics);
    for (uint64_t c = 0; c < chunks && !evaluator_is_overtaken(evaluator); c++) {
        dt__world_heartbeat(job->world, "evaluation", evaluator->step);
        DT_TRY(dt__measure_add(evaluator->measure[set], model->params, c, evaluator->metrics));
        dt__slow_down(job);
        evaluator_listen(evaluator);
    }
    return DT_OK;
}

/* Measures one set and sends the result. The held-out rows (set 0) are measured after the other
 * sets; if the model is the best so far on them, exports it before the result is sent. */
static dt_status evaluator_set(struct dt_evaluator *evaluator, int set, struct dt_checkpoint *model)
{
    struct dt_job *job = evaluator->job;
    struct dt_message result = {.kind = DT__RESULT};
    const double start = dt__clock_secs();
    bool better = false;
    dt__trace_phase(job->trace, DT_PHASE_EVALUATE, model->step);
    const dt_status status = evaluator_measure(evaluator, set, model);
    dt__trace_phase(job->trace, DT_PHASE_SAVE, model->step);
    if (status || evaluator_is_overtaken(evaluator)) return status;
    dt__evaluation_make(job, model->step, evaluator->metrics, start, &result.evaluation);
    result.evaluation.set = set;
    if (!set) DT_TRY(dt__evaluation_judge(job, &result.evaluation, &better));
    model->best = job->best;
    if (better && dt__exports(job, &job->best))
        DT_TRY(dt__export_write(job->dirs->best_dir.text, model, job->config->export.keep));
    evaluator->evaluated |= !set;
    evaluator_say(evaluator, &result);
    return DT_OK;
}

/* Evaluates a checkpoint. If it was deleted or cannot be read, the evaluator waits for the next
 * one, but the last checkpoint must be readable. The result goes to the bank after the export, so
 * every recorded best model has been exported. */
static dt_status evaluator_evaluate(struct dt_evaluator *evaluator, uint64_t step)
{
    struct dt_job *job = evaluator->job;
    const struct dt__path path = dt__step_path(job->dirs->ckpt_dir.text, step);
    const struct dt_message claim = {.kind = DT__CLAIM, .evaluation.step = step};
    struct dt_checkpoint model = {0};
    evaluator->evaluated = false;
    evaluator->step = step;
    evaluator_say(evaluator, &claim);
    dt__world_heartbeat(job->world, "load", step);
    dt__trace_phase(job->trace, DT_PHASE_LOAD, step);
    dt_status status = dt__file_load(path.text, DT__WANT_MODEL, &model, NULL);
    if (status && evaluator->order.kind != FINISH) {
        if (dt__path_exists(path.text)) dt__warn("evaluation: %s", dt_error_text());
        return DT_OK;
    }
    for (int i = 1; i <= job->sets.count && !status; i++)
        if (evaluator->measure[i % job->sets.count])
            status = evaluator_set(evaluator, i % job->sets.count, &model);
    dt__checkpoint_free(&model);
    return status ? dt_fail_prefix(status, "evaluation of %s: ", path.text) : DT_OK;
}

/* Returns whether there is a checkpoint to evaluate now. After FINISH this is the last one, once.
 * Before FINISH it is the newest one if it has not been tried yet, but at most one checkpoint per
 * eval.throttle_secs. */
static bool evaluator_next(struct dt_evaluator *evaluator, uint64_t *step)
{
    const struct dt_job *job = evaluator->job;
    const double now = dt__clock_secs(), throttle = job->config->eval.throttle_secs;
    if (evaluator->order.kind == FINISH) {
        *step = evaluator->order.step;
        return !evaluator->evaluated || *step != evaluator->step;
    }
    if (now < evaluator->look_at) return false;
    evaluator->look_at = now + LOOK_SECS;
    if (!dt__checkpoint_newest(job->dirs->ckpt_dir.text, step) || *step == evaluator->step)
        return false;
    if (throttle > LOOK_SECS) evaluator->look_at = now + throttle;
    return true;
}

dt_status dt__evaluator_open(struct dt_job *job, struct dt_evaluator **out)
{
    struct dt_evaluator *evaluator;
    DT_TRY(dt__alloc(1, sizeof *evaluator, "evaluator", &evaluator));
    *out = evaluator;
    evaluator->job = job;
    evaluator->step = UINT64_MAX;
    DT_TRY(dt__metrics_create(job->model, job->config, &evaluator->metrics));
    if (!job->sets.count) return DT_OK;
    DT_TRY(dt__alloc((size_t)job->sets.count, sizeof(struct dt_measure *), "sets of rows",
                     &evaluator->measure));
    for (int i = 0; i < job->sets.count; i++) {
        const struct dt_source *source = job->sets.at[i].source;
        if (!job->sets.at[i].last)
            DT_TRY(dt__measure_create(job->config, source, job->model, 0,
                                      dt__measure_chunks(job->config, source),
                                      &evaluator->measure[i]));
    }
    return DT_OK;
}

void dt__evaluator_close(struct dt_evaluator *evaluator)
{
    if (!evaluator) return;
    for (int i = 0; evaluator->measure && i < evaluator->job->sets.count; i++)
        dt__measure_destroy(evaluator->measure[i]);
    dt_free(evaluator->measure);
    dt__metrics_destroy(evaluator->metrics);
    dt_free(evaluator);
}

dt_status dt__evaluator_run(struct dt_evaluator *evaluator)
{
    const struct dt_job *job = evaluator->job;
    const int niceness = getpriority(PRIO_PROCESS, 0); /* this thread's; restored at the end */
    evaluator->look_at = dt__clock_secs() + job->config->eval.start_delay_secs;
    if (niceness < NICENESS && setpriority(PRIO_PROCESS, 0, NICENESS))
        dt__debug("the evaluator cannot lower its priority");
    while (evaluator->order.kind != DISMISS) {
        uint64_t step;
        if (evaluator_next(evaluator, &step)) {
            const dt_status status = evaluator_evaluate(evaluator, step);
            if (status) dt__world_abort(job->world, status);
        } else {
            dt__trace_phase(job->trace, DT_PHASE_IDLE, evaluator->step);
            dt__world_idle(job->world, "a checkpoint");
            dt__sleep_secs(IDLE_SECS);
        }
        evaluator_listen(evaluator);
    }
    evaluator_say(evaluator, &(const struct dt_message){.kind = DT__LAST});
    if (niceness < NICENESS && setpriority(PRIO_PROCESS, 0, niceness))
        dt__debug("the evaluator keeps its low priority: only a privileged process may raise it");
    const struct order *order = &evaluator->order;
    return order->status ? dt_fail((dt_status)order->status, "%s", order->text) : DT_OK;
}

/* ---- the bank's end of the link ------------------------------------------------------------- */

static const double PAUSE_SECS = 0.002;

/* Receives the evaluator's messages. Claims are handled at once. A result stays in link->message
 * until the next synchronization point; this function asks for one while a result waits there. */
int dt__link_asks(struct dt_bank *bank)
{
    struct dt_evaluator_link *link = &bank->link;
    int rank = bank->job->world->evaluator;
    char name[DT_CHECKPOINT_NAME];
    while (rank >= 0 && !link->waits &&
           dt__world_try_recv(bank->job->world, rank, TAG_MESSAGE, &link->message,
                              sizeof link->message)) {
        link->waits = link->message.kind == DT__RESULT;
        if (link->message.kind == DT__CLAIM)
            dt__writer_protect(bank->files.writer,
                               dt__checkpoint_name(link->message.evaluation.step, name));
    }
    return link->waits ? DT_ASK_SYNC : DT_ASK_NONE;
}

dt_status dt__link_collect(struct dt_bank *bank)
{
    struct dt_evaluator_link *link = &bank->link;
    bool better;
    while (dt__link_asks(bank) & DT_ASK_SYNC) {
        link->waits = false;
        if (!link->message.evaluation.set) {
            link->evaluated = 1 + link->message.evaluation.step;
            dt__writer_protect(bank->files.writer, NULL);
        }
        DT_TRY(dt__record_evaluation(bank, &link->message.evaluation, &better));
    }
    return DT_OK;
}

static void link_order(struct dt_bank *bank, struct order order)
{
    struct dt_world *world = bank->job->world;
    dt__world_send(world, world->evaluator, TAG_ORDER, &order, sizeof order);
}

/* The bank and workers wait here. If the evaluator makes no progress, the watchdog reports it. */
dt_status dt__link_await_last(struct dt_job *job, double most_secs)
{
    struct dt_bank *bank = job->bank;
    const double end = dt__clock_secs() + most_secs;
    dt_status status = DT_OK;
    if (job->world->evaluator < 0) return DT_OK;
    if (bank) link_order(bank, (struct order){.kind = FINISH, .step = job->step});
    if (bank) status = dt__link_collect(bank);
    while (bank && !status && bank->link.evaluated != 1 + job->step && dt__clock_secs() < end) {
        dt__world_idle(job->world, "the last evaluation");
        dt__sleep_secs(PAUSE_SECS);
        status = dt__link_collect(bank);
    }
    if (bank) dt__world_heartbeat(job->world, "synchronization", job->step);
    return dt__ranks_agree(job->world->trainers, status);
}

void dt__link_dismiss(struct dt_bank *bank, dt_status status)
{
    struct order order = {.kind = DISMISS, .status = (int)status};
    if (bank->job->world->evaluator < 0) return;
    if (status) snprintf(order.text, sizeof order.text, "%s", dt_error_text());
    link_order(bank, order);
    bank->link.dismissed = true;
}

/* Receives all messages that the evaluator has sent, up to its last one. Otherwise the next run in
 * this process would receive them. */
void dt__link_close(struct dt_bank *bank)
{
    struct dt_evaluator_link *link = &bank->link;
    while (link->dismissed && link->message.kind != DT__LAST) {
        struct dt_world *world = bank->job->world;
        if (dt__world_try_recv(world, world->evaluator, TAG_MESSAGE, &link->message,
                               sizeof link->message))
            continue;
        dt__world_idle(world, "the evaluator");
        dt__sleep_secs(PAUSE_SECS);
    }
}
