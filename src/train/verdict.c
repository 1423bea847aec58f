/* What an evaluation means: the best so far, early stopping, the record. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "train/run.h"

size_t dt__confusion_cells(const struct dt__run *run)
{
    size_t classes = (size_t)dt_metrics_classes(dt_model_get_spec(run->model));
    return classes <= DT__RECORD_CLASSES ? classes * classes : 0;
}

void dt__verdict_make(const struct dt__run *run, uint64_t step, struct dt_metrics *metrics,
                      double start, struct dt__verdict *out)
{
    size_t cells = dt__confusion_cells(run);
    *out = (struct dt__verdict){.step = step, .secs = dt_clock_secs() - start};
    dt_metrics_values(metrics, &out->values);
    if (cells) memcpy(out->confusion, dt_metrics_confusion(metrics), cells * sizeof(uint64_t));
}

bool dt__stops_early(const struct dt__run *run, const struct dt_best *best)
{
    int64_t patience = run->config->eval.patience;
    return patience > 0 && best->since >= patience;
}

static bool is_of(const struct dt_best *best, const char *metric)
{
    return best->known && strcmp(best->metric, metric) == 0;
}

bool dt__best_beats(const struct dt__run *run, const struct dt_best *a, const struct dt_best *b)
{
    const struct dt_metric_values none = {0};
    double value;
    bool more_is_better;
    const char *name;
    if (dt_metric_pick(dt_model_get_spec(run->model), run->config->eval.metric, &none, &value,
                       &more_is_better, &name))
        return false;
    if (!is_of(a, name) || !isfinite(a->value)) return false;
    if (!is_of(b, name)) return true;
    return more_is_better ? a->value > b->value : a->value < b->value;
}

/* No step towards an early stop: what is measured again, as a resume may do, and the last step of a run
 * that goes on some day. */
dt_status dt__verdict_judge(const struct dt__run *run, const struct dt__verdict *verdict,
                            struct dt_best *best, bool *out_better)
{
    struct dt_best now = {.known = true, .step = verdict->step};
    bool again = best->seen == 1 + verdict->step;
    bool more_is_better;
    const char *name;
    DT_TRY(dt_metric_pick(dt_model_get_spec(run->model), run->config->eval.metric, &verdict->values,
                          &now.value, &more_is_better, &name));
    snprintf(now.metric, sizeof now.metric, "%s", name);
    *out_better = dt__best_beats(run, &now, best);
    if (*out_better)
        *best = now;
    else if (!verdict->extra && !again)
        best->since++;
    best->seen = 1 + verdict->step;
    best->stop = dt__stops_early(run, best);
    return DT_OK;
}

dt_status dt__verdict_take(struct dt__run *run, const struct dt__verdict *verdict, bool *out_better)
{
    DT_TRY(dt__verdict_judge(run, verdict, &run->keeper.state.best, out_better));
    return dt__record_eval(run, verdict);
}
