/* The effect of an evaluation on the best model, on early stopping, and on the rate with
 * train.schedule=plateau. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "train/evaluation.h"

size_t dt__confusion_cells(const struct dt_job *job)
{
    size_t classes = (size_t)job->model->classes;
    return classes <= DT__RECORD_CLASSES ? classes * classes : 0;
}

void dt__evaluation_make(const struct dt_job *job, uint64_t step, struct dt_metrics *metrics,
                         double start, struct dt_evaluation *out)
{
    size_t cells = dt__confusion_cells(job);
    *out = (struct dt_evaluation){.step = step, .secs = dt__clock_secs() - start};
    dt__metrics_values(metrics, &out->values);
    if (cells) memcpy(out->confusion, dt__metrics_confusion(metrics), cells * sizeof(uint64_t));
}

bool dt__stops_early(const struct dt_job *job, const struct dt_best *best)
{
    int64_t patience = job->config->eval.patience;
    return patience > 0 && best->since >= patience;
}

const char *dt__metric_name(const struct dt_job *job, const struct dt_config *config)
{
    struct dt_metric_score metric = {.name = "metric"};
    (void)dt__metric_pick(job->model, config->eval.metric, NULL, &metric);
    return metric.name;
}

static bool is_of(const struct dt_best *best, const char *metric)
{
    return best->known && strcmp(best->metric, metric) == 0;
}

bool dt__best_beats(const struct dt_job *job, const struct dt_best *a, const struct dt_best *b)
{
    struct dt_metric_score metric;
    if (dt__metric_pick(job->model, job->config->eval.metric, NULL, &metric)) return false;
    if (!is_of(a, metric.name) || !isfinite(a->value) || a->era != b->era) return false;
    if (!is_of(b, metric.name)) return true;
    if (a->value == b->value) return a->loss < b->loss;
    return metric.more_is_better ? a->value > b->value : a->value < b->value;
}

/* Returns whether the rate will still fall so far that evaluations without improvement mean little:
 * before the fraction PATIENT of a linear or cosine schedule is over. Most of the gain of such a
 * run comes later. */
static bool patience_waits(const struct dt_job *job, uint64_t step)
{
    static const double PATIENT = 0.6;
    const struct dt_schedule *schedule = &job->rules->schedule;
    const bool falls = schedule->kind == DT_SCHED_LINEAR || schedule->kind == DT_SCHED_COSINE;
    return falls &&
           (double)step < (double)schedule->warmup_steps + PATIENT * (double)schedule->decay_steps;
}

/* An evaluation that equals the best by the metric, with a lower loss, becomes the best but still
 * counts towards an early stop. Two kinds of evaluations do not count: a repeated one, as after a
 * resume, and one that takes place only because the run ends, since the run may be continued. */
dt_status dt__evaluation_judge(struct dt_job *job, const struct dt_evaluation *evaluation,
                               bool *out_better)
{
    struct dt_best *best = &job->best;
    const struct dt_metric_values *values = &evaluation->values;
    struct dt_metric_score metric;
    DT_TRY(dt__metric_pick(job->model, job->config->eval.metric, values, &metric));
    struct dt_best now = {.known = true,
                          .value = metric.value,
                          .loss = values->loss,
                          .step = evaluation->step,
                          .era = best->era};
    snprintf(now.metric, sizeof now.metric, "%s", metric.name);
    *out_better = dt__best_beats(job, &now, best);
    const bool tie = is_of(best, metric.name) && now.value == best->value;
    const bool again = best->seen == 1 + evaluation->step;
    if (*out_better) {
        now.drops = best->drops;
        now.since = tie ? best->since : 0;
        now.plateau = tie ? best->plateau : 0;
        *best = now;
    }
    if ((!*out_better || tie) && !evaluation->extra && !again) {
        best->since += !patience_waits(job, evaluation->step);
        best->plateau++;
    }
    if (job->config->train.schedule == DT_SCHED_PLATEAU &&
        best->plateau >= job->config->train.plateau_evals) {
        best->drops++;
        best->plateau = 0;
    }
    best->seen = 1 + evaluation->step;
    best->stop = dt__stops_early(job, best);
    return DT_OK;
}
