/* Named sets of rows: they are measured with the rows held out (evaluate.c, evaluator.c) and
 * choose nothing. The test set waits for the end: the bank alone measures it, by the best model. */
#include "train/sets.h"

#include <math.h>
#include <string.h>

#include "report/history.h"
#include "train/bank.h"

/* ---- the list ------------------------------------------------------------------------------- */

struct dt_config dt__set_config(const struct dt_config *config, const struct dt__named_set *set)
{
    struct dt_config lent = *config;
    lent.data.eval = set->files;
    lent.data.eval_labels = set->labels;
    lent.data.eval_fraction = 0;
    return lent;
}

dt_status dt__sets_create(struct dt_job *job, const struct dt__named_sets *named)
{
    DT_TRY(dt__alloc(named->count + 1, sizeof *job->set, "sets of rows", &job->set));
    job->sets = (int)named->count + 1;
    job->set[0].source = job->eval;
    for (size_t i = 0; i < named->count; i++) {
        memcpy(job->set[i + 1].name, named->items[i].name, DT__SET_NAME);
        job->set[i + 1].last = !strcmp(named->items[i].name, DT__TEST_SET);
    }
    return DT_OK;
}

void dt__sets_destroy(struct dt_job *job)
{
    for (int i = 1; i < job->sets; i++)
        dt__source_destroy(job->set[i].source);
    dt_free(job->set);
}

uint64_t dt__sets_most_inputs(const struct dt_job *job)
{
    uint64_t most = 0;
    for (int i = 0; i < job->sets; i++) {
        const uint64_t inputs = dt__most_inputs(job, job->set[i].source, DT_EVAL_CHUNK);
        if (inputs > most) most = inputs;
    }
    return most;
}

/* ---- what is printed ------------------------------------------------------------------------ */

void dt__sets_print(const struct dt_job *job)
{
    for (int i = 1; i < job->sets; i++) {
        const struct dt_set *set = &job->set[i];
        const uint64_t unknown = dt__source_unknown(set->source);
        char beside[96] = "";
        if (unknown)
            snprintf(beside, sizeof beside,
                     ", %llu of classes that training never saw: they count as wrong",
                     (unsigned long long)unknown);
        dt__info("set '%s': %llu rows, measured %s%s", set->name,
                 (unsigned long long)dt__source_rows(set->source),
                 set->last ? "once, at the end" : "besides those held out", beside);
    }
}

/* Returns the index of the evaluation of a set at a step; -1: it is in no record. */
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
    if (job->sets < 2) return;
    if (dt_history_read(job->config->run.dir, &history)) return;
    for (int i = 1; i < job->sets; i++) {
        const char *name = job->set[i].name;
        const int64_t at = record_find(history, name, best->known ? best->step : job->step);
        if (at < 0) continue;
        const double loss = dt_history_real(history, DT_RECORD_SET, (size_t)at, "loss");
        const double value = dt_history_real(history, DT_RECORD_SET, (size_t)at, metric);
        char beside[64] = "";
        if (strcmp(metric, "loss")) snprintf(beside, sizeof beside, ", %s %.5g", metric, value);
        dt__info("this model on the set '%s': loss %.5g%s", name, loss, beside);
    }
    dt_history_free(history);
}

/* ---- the end -------------------------------------------------------------------------------- */

static dt_status last_measure(struct dt_bank *bank, int index, const struct dt_checkpoint *model)
{
    const struct dt_job *job = bank->job;
    const struct dt_set *set = &job->set[index];
    const uint64_t chunks = dt__measure_chunks(job->config, set->source);
    const double start = dt__clock_secs();
    struct dt_measure *measure;
    struct dt_evaluation evaluation;
    bool better;
    DT_TRY(dt__measure_create(job->config, set->source, job->model, 0, chunks, &measure));
    dt_status status = DT_OK;
    dt__metrics_reset(bank->metrics);
    for (uint64_t c = 0; c < chunks && !status; c++) {
        dt__world_heartbeat(job->world, "evaluation", job->step);
        status = dt__measure_add(measure, model->params, c, bank->metrics);
    }
    dt__measure_destroy(measure);
    if (status) return status;
    dt__evaluation_make(job, model->step, bank->metrics, start, &evaluation);
    evaluation.set = index;
    return dt__record_evaluation(bank, &evaluation, &better);
}

dt_status dt__sets_finish(struct dt_bank *bank)
{
    const struct dt_job *job = bank->job;
    struct dt_checkpoint kept = {0}, model = bank->state; /* lent */
    bool any = false;
    dt_status status = DT_OK;
    for (int i = 1; i < job->sets; i++)
        any |= job->set[i].last;
    if (!any) return DT_OK;
    if (job->best.known && job->best.step != job->step) dt__best_load(job, &job->best, &kept);
    if (kept.params)
        model = kept;
    else if (job->best.known && job->best.step != job->step)
        dt__warn("the best model, of step %llu, is in no file: the last one is tested",
                 (unsigned long long)job->best.step);
    for (int i = 1; i < job->sets && !status; i++)
        if (job->set[i].last) status = last_measure(bank, i, &model);
    dt__checkpoint_free(&kept);
    return status;
}
