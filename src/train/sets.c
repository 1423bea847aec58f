/* Named sets of rows. They are measured together with the held-out rows (evaluate.c, evaluator.c),
 * but choose nothing. The bank measures the test set once, at the end, with the best model. */
#include "train/sets.h"

#include <math.h>
#include <string.h>

#include "report/history.h"
#include "train/bank.h"

/* ---- the list ------------------------------------------------------------------------------- */

struct dt_config dt__set_config(const struct dt_config *config, const struct dt__named_set *set)
{
    struct dt_config borrowed = *config;
    borrowed.data.eval = set->files;
    borrowed.data.eval_labels = set->labels;
    borrowed.data.eval_fraction = 0;
    return borrowed;
}

dt_status dt__sets_create(struct dt_job *job, const struct dt__named_sets *named)
{
    DT_TRY(dt__alloc(named->count + 1, sizeof *job->sets.at, "sets of rows", &job->sets.at));
    job->sets.count = (int)named->count + 1;
    job->sets.at[0].source = job->eval;
    for (size_t i = 0; i < named->count; i++) {
        memcpy(job->sets.at[i + 1].name, named->items[i].name, DT__SET_NAME);
        job->sets.at[i + 1].last = !strcmp(named->items[i].name, DT__TEST_SET);
    }
    return DT_OK;
}

void dt__sets_destroy(struct dt_job *job)
{
    for (int i = 1; i < job->sets.count; i++)
        dt__source_destroy(job->sets.at[i].source);
    dt_free(job->sets.at);
}

uint64_t dt__sets_most_inputs(const struct dt_job *job)
{
    uint64_t most = 0;
    for (int i = 0; i < job->sets.count; i++) {
        const uint64_t inputs = dt__most_inputs(job, job->sets.at[i].source, DT_EVAL_CHUNK);
        if (inputs > most) most = inputs;
    }
    return most;
}

/* ---- printed lines -------------------------------------------------------------------------- */

void dt__sets_print(const struct dt_job *job)
{
    for (int i = 1; i < job->sets.count; i++) {
        const struct dt_set *set = &job->sets.at[i];
        const uint64_t unknown = dt__source_unknown(set->source);
        char extra[96] = "";
        if (unknown)
            snprintf(extra, sizeof extra,
                     ", %llu of classes that training never saw: they count as wrong",
                     (unsigned long long)unknown);
        dt__info("set '%s': %llu rows, measured %s%s", set->name,
                 (unsigned long long)dt__source_rows(set->source),
                 set->last ? "once, at the end" : "besides those held out", extra);
    }
}

/* Returns the index of the record of a set's evaluation at this step; -1: there is none. */
static int64_t record_find(const struct dt_history *history, const char *name, uint64_t step)
{
    for (size_t i = dt_history_count(history, DT_RECORD_SET); i-- > 0;)
        if (dt_history_real(history, DT_RECORD_SET, i, "step") == (double)step &&
            !strcmp(dt_history_text(history, DT_RECORD_SET, i, "set"), name))
            return (int64_t)i;
    return -1;
}

void dt__sets_print_best(const struct dt_bank *bank)
{
    const struct dt_job *job = bank->job;
    const struct dt_best *best = &job->best;
    const struct dt_metric_values none = {.rmse = NAN};
    const char *metric = dt__metric_shown(job, &none).name;
    struct dt_history *history;
    if (job->sets.count < 2) return;
    if (dt_history_read(job->config->run.dir, &history)) return;
    for (int i = 1; i < job->sets.count; i++) {
        const char *name = job->sets.at[i].name;
        const int64_t at = record_find(history, name, best->known ? best->step : job->step);
        if (at < 0) continue;
        const double loss = dt_history_real(history, DT_RECORD_SET, (size_t)at, "loss");
        const double value = dt_history_real(history, DT_RECORD_SET, (size_t)at, metric);
        char extra[64] = "";
        if (strcmp(metric, "loss")) snprintf(extra, sizeof extra, ", %s %.5g", metric, value);
        dt__info("this model on the set '%s': loss %.5g%s%s", name, loss, extra,
                 job->sets.at[i].last && job->config->predict.interval > 0
                     ? " (these rows also gave its intervals)"
                     : "");
    }
    dt_history_free(history);
}
