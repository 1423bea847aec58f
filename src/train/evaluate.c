/* Evaluation in place: the workers measure chunks of the held-out rows (measure.c) in parallel,
 * and the bank adds their sums in order. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "train/certify.h"
#include "train/sets.h"
#include "train/split_layers.h"

/* The layout of a worker's results, which are sent as one block: the counts of the confusion matrix
 * over its chunks, then the sums of each chunk. */
struct layout {
    size_t cells, sums; /* number of uint64_t counts; number of doubles for each chunk */
    uint64_t chunks;    /* the most chunks that one worker has */
    size_t bytes;
};

static struct layout measured_layout(const struct dt_job *job, const struct dt_source *source)
{
    struct layout of = {.cells = dt__confusion_cells(job), .sums = dt__metrics_sums(job->model)};
    const uint64_t workers = (uint64_t)(job->evaluating.end - job->evaluating.first);
    of.chunks = (dt__measure_chunks(job->config, source) + workers - 1) / workers;
    of.bytes = of.cells * sizeof(uint64_t) + (size_t)of.chunks * of.sums * sizeof(double);
    return of;
}

/* Returns the counts in a block; NULL: the model has no confusion matrix. */
static uint64_t *measured_counts(const struct layout *of, void *block)
{
    return of->cells ? block : NULL;
}

static double *measured_sums(const struct layout *of, void *block, uint64_t chunk)
{
    return (double *)(void *)((uint64_t *)block + of->cells) + (size_t)chunk * of->sums;
}

/* Adds up the results of all workers, in the order of workers and so of chunks, and records the
 * evaluation. all: (ranks) a block of each rank. */
static dt_status conclude(struct dt_bank *bank, const struct layout *of, int set, char *all,
                          double start, bool *out_better)
{
    const struct dt_job *job = bank->job;
    const uint64_t chunks = dt__measure_chunks(job->config, job->sets.at[set].source);
    struct dt_evaluation evaluation;
    dt__metrics_reset(bank->metrics);
    for (int w = 0; w < job->world->workers; w++) {
        void *block = all + (size_t)(job->world->worker_rank + w) * of->bytes;
        uint64_t first, end;
        dt__chunks_of(job, w, chunks, &first, &end);
        if (of->cells) dt__metrics_add_confusion(bank->metrics, measured_counts(of, block));
        for (uint64_t c = 0; c < end - first; c++)
            DT_TRY(dt__metrics_add(bank->metrics, measured_sums(of, block, c)));
    }
    dt__evaluation_make(job, job->step, bank->metrics, start, &evaluation);
    evaluation.set = set;
    evaluation.extra = !dt__eval_regular(job);
    return dt__record_evaluation(bank, &evaluation, out_better);
}

/* Measures this worker's chunks, into a block of zeros. If rows of weights are distributed to
 * owners, all ranks go from chunk to chunk together, and pull the rows that each chunk reads. */
static dt_status measure_own(const struct dt_job *job, const struct layout *of, int set,
                             void *block)
{
    const struct dt_worker *worker = job->worker;
    const struct dt_measured none = {0}, *own = worker ? &worker->measured[set] : &none;
    struct dt_measure *measure = own->measure;
    struct dt_exchange *pulls = job->steps->pulls;
    const struct dt_touched *needs = worker && pulls ? dt__exchange_needs(pulls) : NULL;
    dt_status status = DT_OK;
    if (measure && pulls) dt__measure_inputs(measure, dt__exchange_inputs(pulls));
    for (uint64_t i = 0; i < of->chunks; i++) {
        const uint64_t chunk = own->chunk + i;
        const bool measures = measure && chunk < own->chunk_end && !status;
        if (needs) *needs->count = 0;
        if (measures && needs) status = dt__measure_list(measure, chunk, needs);
        if (pulls) dt__exchange_pull(pulls);
        if (!measures || status) continue;
        dt__world_heartbeat(job->world, "evaluation", job->step);
        status = dt__measure_chunk(measure, job->steps->stepper->weights(job), chunk,
                                   measured_sums(of, block, i), measured_counts(of, block));
        dt__slow_down(job);
        if (!status) status = dt__stop_check();
    }
    *job->steps->times = (struct dt_exchange_times){0}; /* a span's times exclude evaluations */
    return status;
}

/* Measures one set. Collective over bank and workers. */
static dt_status evaluate_set(const struct dt_job *job, int set, bool *out_better)
{
    struct dt_bank *bank = job->bank;
    const struct layout of = measured_layout(job, job->sets.at[set].source);
    const size_t ranks = (size_t)job->world->workers + 1;
    const double start = dt__clock_secs();
    void *mine = NULL, *all = NULL;
    dt_status status = dt__alloc(1, of.bytes, "evaluation sums", &mine);
    if (!status && bank) status = dt__alloc(ranks, of.bytes, "evaluation sums", &all);
    DT_GUARD(dt__ranks_agree(job->world->trainers, status));
    status = measure_own(job, &of, set, mine);
    DT_GUARD(dt__ranks_agree(job->world->trainers, status));
    dt__ranks_gather(job->world->trainers, mine, of.bytes, all);
    if (bank) status = conclude(bank, &of, set, all, start, out_better);
    status = dt__ranks_agree(job->world->trainers, status);
done:
    dt_free(all);
    dt_free(mine);
    return status;
}

/* Set 0, the held-out rows, comes last: its record marks the evaluation as complete. */
dt_status dt__evaluate(struct dt_job *job)
{
    struct dt_bank *bank = job->bank;
    bool better = false;
    dt_status status = DT_OK;
    dt__split_gather(job, false);
    for (int i = 1; i <= job->sets.count; i++)
        if (!job->sets.at[i % job->sets.count].last)
            DT_TRY(evaluate_set(job, i % job->sets.count, &better));
    dt__ranks_bcast(job->world->trainers, &better, sizeof better, 0);
    if (better && job->mode == DT_MODE_SYNC) dt__exchange_gather(job->steps->exchange, false);
    if (better && bank) status = dt__best_found(bank);
    DT_TRY(dt__ranks_agree(job->world->trainers, status));
    job->best.seen = 1 + job->step;
    return DT_OK;
}

/* ---- the end --------------------------------------------------------------------------------- */

static dt_status last_measure(struct dt_bank *bank, int index, const struct dt_checkpoint *model)
{
    const struct dt_job *job = bank->job;
    const struct dt_set *set = &job->sets.at[index];
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
    struct dt_checkpoint saved = {0}, model = bank->state; /* borrows its memory */
    bool any = false;
    dt_status status;
    for (int i = 1; i < job->sets.count; i++)
        any |= job->sets.at[i].last;
    if (!any && !dt__config_certifies(job->config)) return DT_OK;
    if (job->best.known && job->best.step != job->step) dt__best_load(job, &job->best, &saved);
    if (saved.params)
        model = saved;
    else if (job->best.known && job->best.step != job->step)
        dt__warn("the best model, of step %llu, is in no file: the last one is tested",
                 (unsigned long long)job->best.step);
    status = dt__certify(bank, &model);
    for (int i = 1; i < job->sets.count && !status; i++)
        if (job->sets.at[i].last) status = last_measure(bank, i, &model);
    dt__checkpoint_free(&saved);
    return status;
}
