#include "config/option.h"

struct rule {
    bool broken;
    const char *message;
};

static dt_status first_broken(const struct rule *rules, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (rules[i].broken) return dt_fail(DT_EUSAGE, "%s", rules[i].message);
    }
    return DT_OK;
}

static bool needs_task(int metric, int task)
{
    switch ((enum dt_metric)metric) {
    case DT_METRIC_AUTO:
    case DT_METRIC_LOSS:
        return false;
    case DT_METRIC_ACCURACY:
    case DT_METRIC_TOP5:
    case DT_METRIC_AUC:
        return task != DT_CLASSIFY;
    case DT_METRIC_RMSE:
    case DT_METRIC_MAE:
    case DT_METRIC_R2:
        return task != DT_REGRESS;
    }
    return true;
}

dt_status dt_config_check(const struct dt_config *config, int size)
{
    const struct dt_config *c = config;
    bool evaluates = *c->data.eval || c->data.eval_fraction > 0;
    bool bound = c->train.mode == DT_ASYNC && c->train.staleness != 0;
    const struct rule rules[] = {
        {!*c->run.dir, "run.dir: expected a directory's name"},
        {!*c->data.train, "data.train: missing; expected files or globs to train on"},
        {*c->data.eval && c->data.eval_fraction > 0,
         "data.eval and data.eval_fraction: expected one of them, not both"},
        {*c->data.eval_labels && !*c->data.eval, "data.eval_labels: expected data.eval as well"},
        {c->train.schedule != DT_CONSTANT && c->train.min_lr > c->train.lr,
         "train.min_lr: expected at most train.lr"},
        {c->run.reproducible && c->train.exchange == DT_REDUCE,
         "run.reproducible=yes: train.exchange=reduce cannot keep this promise; expected auto, "
         "node or ordered"},
        {c->run.reproducible && bound,
         "run.reproducible=yes: train.mode=async cannot keep this promise; expected sync"},
        {needs_task(c->eval.metric, c->model.task),
         "eval.metric: expected loss, accuracy, top5 or auc for model.task=classify, and loss, "
         "rmse, mae or r2 for regress"},
        {c->eval.patience > 0 && !evaluates,
         "eval.patience: expected data.eval or data.eval_fraction to measure on"},
        {c->eval.dedicated && !evaluates,
         "eval.dedicated=yes: expected data.eval or data.eval_fraction to measure on"},
        {size > 0 && size < 2 && c->train.mode == DT_ASYNC,
         "train.mode=async: expected at least 2 processes (mpirun -np 2)"},
        {size > 0 && size < 3 && c->eval.dedicated,
         "eval.dedicated=yes: expected at least 3 processes (mpirun -np 3)"},
    };
    return first_broken(rules, sizeof rules / sizeof *rules);
}
