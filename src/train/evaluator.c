/* The evaluator rank: restores checkpoints as they appear, measures them, exports the best. */
#include <sys/resource.h>

#include "train/run.h"

/* Training goes before: it fills the gaps of busy cores. */
enum { NICENESS = 10 };
static const double LOOK_SECS = 0.1, REST_SECS = 0.01, BUSY_SECS = 1;

struct evaluator {
    struct dt__run *run;
    struct dt_metrics *metrics;
    char *ckpt_dir, *best_dir;
    struct dt_best best;    /* as the bank's, by the same verdicts */
    struct dt__order order; /* the bank's last */
    bool began, judged;     /* `step` has been seen; has its verdict */
    uint64_t step;          /* of the checkpoint seen last */
    double look_at;         /* clock of the next look for a checkpoint */
    double said_at;         /* clock of the last message */
};

/* ---- talk with the bank --------------------------------------------------------------------- */

static dt_status say(struct evaluator *evaluator, const struct dt__message *message)
{
    evaluator->said_at = dt_clock_secs();
    return dt_world_send(evaluator->run->world, 0, DT__TAG_MESSAGE, message, sizeof *message);
}

static void listen(struct evaluator *evaluator)
{
    dt_world_try_recv(evaluator->run->world, 0, DT__TAG_ORDER, &evaluator->order,
                      sizeof evaluator->order);
}

/* For the watchdogs: the host's, and the bank's own while it waits for the last verdict. */
static dt_status show_progress(struct evaluator *evaluator)
{
    struct dt__message busy = {.kind = DT__BUSY};
    bool due = dt_clock_secs() - evaluator->said_at >= BUSY_SECS;
    dt_world_beat(evaluator->run->world, "evaluation", evaluator->step);
    return due && evaluator->order.kind == DT__FINISH ? say(evaluator, &busy) : DT_OK;
}

/* The job's end makes what is under way useless, unless it is the last checkpoint. */
static bool is_overtaken(const struct evaluator *evaluator)
{
    const struct dt__order *order = &evaluator->order;
    return order->kind == DT__DISMISS ||
           (order->kind == DT__FINISH && order->step != evaluator->step);
}

/* ---- one checkpoint ------------------------------------------------------------------------- */

static dt_status measure(struct evaluator *evaluator, const struct dt_export *model)
{
    struct dt__run *run = evaluator->run;
    if (model->params_count != dt_model_params(run->model))
        return dt_fail(DT_EMISMATCH, "a checkpoint of another model");
    dt_metrics_reset(evaluator->metrics);
    for (uint64_t c = 0; c < run->chunks && !is_overtaken(evaluator); c++) {
        DT_TRY(show_progress(evaluator));
        DT_TRY(dt_measure_add(run->measure, model->params, c, evaluator->metrics));
        dt__slow_down(run);
        listen(evaluator);
    }
    return DT_OK;
}

/* Export first: what is recorded as the best has been exported. */
static dt_status export_best(struct evaluator *evaluator, struct dt_export *model)
{
    const struct dt_config *config = evaluator->run->config;
    if (!config->export.best) return DT_OK;
    model->best = evaluator->best;
    return dt_export_write(evaluator->best_dir, model, config->export.keep);
}

static dt_status conclude(struct evaluator *evaluator, struct dt_export *model, double start)
{
    struct dt__message message = {.kind = DT__VERDICT};
    bool better;
    dt__verdict_make(evaluator->run, model->step, evaluator->metrics, start, &message.verdict);
    DT_TRY(dt__verdict_judge(evaluator->run, &message.verdict, &evaluator->best, &better));
    if (better) DT_TRY(export_best(evaluator, model));
    evaluator->judged = true;
    return say(evaluator, &message);
}

static dt_status claim(struct evaluator *evaluator)
{
    struct dt__message message = {.kind = DT__CLAIM, .verdict.step = evaluator->step};
    return say(evaluator, &message);
}

/* *out_found: false if the checkpoint went before it was read, or is damaged. The last one must be
 * good. */
static dt_status load(struct evaluator *evaluator, const char *path, struct dt_export *out,
                      bool *out_found)
{
    char *file = NULL;
    dt_status status = dt_export_load(path, out, &file);
    dt_free(file);
    *out_found = status == DT_OK;
    if (!status || evaluator->order.kind == DT__FINISH) return status;
    if (dt_path_exists(path)) dt_warn("evaluation: %s", dt_error_text());
    return DT_OK;
}

static dt_status evaluate(struct evaluator *evaluator, const char *path, uint64_t step)
{
    struct dt_export model = {0};
    double start = dt_clock_secs();
    bool found;
    evaluator->began = true;
    evaluator->judged = false;
    evaluator->step = step;
    DT_TRY(claim(evaluator));
    dt_world_beat(evaluator->run->world, "load", step);
    DT_TRY(load(evaluator, path, &model, &found));
    if (!found) return DT_OK;
    dt_status status = measure(evaluator, &model);
    if (!status && !is_overtaken(evaluator)) status = conclude(evaluator, &model, start);
    dt_export_free(&model);
    return status ? dt_fail_prefix(status, "evaluation of %s: ", path) : DT_OK;
}

/* ---- which ---------------------------------------------------------------------------------- */

static dt_status evaluate_last(struct evaluator *evaluator)
{
    char name[DT_CHECKPOINT_NAME], *path;
    DT_TRY(dt_format(&path, "%s/%s", evaluator->ckpt_dir,
                     dt_checkpoint_name(evaluator->order.step, name)));
    dt_status status = evaluate(evaluator, path, evaluator->order.step);
    dt_free(path);
    return status;
}

/* The newest checkpoint, if it has not been seen; throttled from start to start. */
static dt_status look(struct evaluator *evaluator)
{
    double now = dt_clock_secs();
    uint64_t step;
    char *path;
    evaluator->look_at = now + LOOK_SECS;
    if (!dt_checkpoint_newest(evaluator->ckpt_dir, &step, &path)) return DT_OK;
    dt_status status = DT_OK;
    if (!evaluator->began || step != evaluator->step) {
        double throttle = evaluator->run->config->eval.throttle_secs;
        if (throttle > LOOK_SECS) evaluator->look_at = now + throttle;
        status = evaluate(evaluator, path, step);
    }
    dt_free(path);
    return status;
}

static dt_status rest(struct evaluator *evaluator)
{
    dt_world_rest(evaluator->run->world, "a checkpoint");
    dt_sleep_secs(REST_SECS);
    return DT_OK;
}

static dt_status do_next(struct evaluator *evaluator)
{
    const struct dt__order *order = &evaluator->order;
    bool done = evaluator->judged && order->step == evaluator->step;
    if (order->kind == DT__FINISH) return done ? rest(evaluator) : evaluate_last(evaluator);
    return dt_clock_secs() < evaluator->look_at ? rest(evaluator) : look(evaluator);
}

/* ---- the rank ------------------------------------------------------------------------------- */

static dt_status work(struct evaluator *evaluator)
{
    while (evaluator->order.kind != DT__DISMISS) {
        DT_TRY(do_next(evaluator));
        listen(evaluator);
    }
    return DT_OK;
}

static dt_status prepare(struct evaluator *evaluator)
{
    const struct dt_config *config = evaluator->run->config;
    evaluator->look_at = dt_clock_secs() + config->eval.start_delay_secs;
    if (setpriority(PRIO_PROCESS, 0, NICENESS)) dt_debug("the evaluator cannot be made nice");
    DT_TRY(dt_format(&evaluator->ckpt_dir, "%s/ckpt", config->run.dir));
    DT_TRY(dt_format(&evaluator->best_dir, "%s/export/best", config->run.dir));
    return dt_metrics_create(dt_model_get_spec(evaluator->run->model), &evaluator->metrics);
}

dt_status dt__evaluator_run(struct dt__run *run)
{
    struct evaluator evaluator = {.run = run, .best = run->keeper.state.best};
    dt_status status = prepare(&evaluator);
    if (!status) status = work(&evaluator);
    if (status) dt_world_abort(run->world, status);
    dt_metrics_destroy(evaluator.metrics);
    dt_free(evaluator.ckpt_dir);
    dt_free(evaluator.best_dir);
    return (dt_status)evaluator.order.status;
}
