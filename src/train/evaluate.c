/* Evaluation: what measuring is, what a result means, and how bank and workers evaluate in place.
 *
 * Held-out rows are measured in chunks of DT_EVAL_CHUNK rows of file order, and the sums of the
 * chunks are added in order: every way of evaluating gives the same digits. In place, workers
 * measure chunks side by side, and the bank adds up what they send. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "train/split_layers.h"

/* ---- measuring ------------------------------------------------------------------------------ */

struct dt_measure {
    const struct dt_model *model;
    uint64_t rows; /* of the source */
    struct dt_table *table;
    struct dt_network *network;
    float *logits; /* (DT_EVAL_CHUNK, nout) */
    double *sums;  /* of dt_measure_add */
};

uint64_t dt_measure_chunks(const struct dt_config *config, const struct dt_source *source)
{
    uint64_t all = (dt_source_rows(source) + DT_EVAL_CHUNK - 1) / DT_EVAL_CHUNK;
    uint64_t most = (uint64_t)config->eval.batches;
    return most && most < all ? most : all;
}

dt_status dt_measure_create(const struct dt_config *config, const struct dt_source *source,
                            const struct dt_model *model, uint64_t first, uint64_t end,
                            struct dt_measure **out)
{
    struct dt_measure *measure = NULL;
    size_t nout = (size_t)model->desc.nout;
    dt_status status;
    DT_GUARD(dt_alloc(1, sizeof *measure, "evaluation", &measure));
    measure->model = model;
    measure->rows = dt_source_rows(source);
    uint64_t end_row = end * DT_EVAL_CHUNK < measure->rows ? end * DT_EVAL_CHUNK : measure->rows;
    DT_GUARD(dt_table_create(config, source, first * DT_EVAL_CHUNK, end_row, &measure->table));
    DT_GUARD(dt_network_create(model, DT_EVAL_CHUNK, DT_PRECISION_F32, &measure->network));
    DT_GUARD(dt_alloc(nout, DT_EVAL_CHUNK * sizeof *measure->logits, "logits", &measure->logits));
    DT_GUARD(dt_alloc(dt_metrics_sums(model), sizeof *measure->sums, "chunk sums", &measure->sums));
    *out = measure;
    return DT_OK;
done:
    dt_measure_destroy(measure);
    return status;
}

void dt_measure_destroy(struct dt_measure *measure)
{
    if (!measure) return;
    dt_table_destroy(measure->table);
    dt_network_destroy(measure->network);
    dt_free(measure->sums);
    dt_free(measure->logits);
    dt_free(measure);
}

static dt_status measure_read(struct dt_measure *measure, uint64_t chunk, struct dt_batch *out)
{
    uint64_t begin = chunk * DT_EVAL_CHUNK, left = measure->rows - begin;
    return dt_table_read(measure->table, begin, left < DT_EVAL_CHUNK ? (int)left : DT_EVAL_CHUNK,
                         out);
}

/* Lists the inputs that a chunk reads: their rows are to be pulled. */
static dt_status measure_list(struct dt_measure *measure, uint64_t chunk,
                              const struct dt_touched *inputs)
{
    struct dt_batch batch;
    DT_TRY(measure_read(measure, chunk, &batch));
    return dt_network_list_inputs(measure->network, &batch, inputs);
}

dt_status dt_measure_chunk(struct dt_measure *measure, const float *params, uint64_t chunk,
                           double *sums, uint64_t *confusion)
{
    struct dt_batch batch;
    DT_TRY(measure_read(measure, chunk, &batch));
    DT_TRY(dt_network_forward(measure->network, params, &batch, measure->logits));
    dt_metrics_chunk(measure->model, measure->logits, &batch, sums, confusion);
    return DT_OK;
}

dt_status dt_measure_add(struct dt_measure *measure, const float *params, uint64_t chunk,
                         struct dt_metrics *metrics)
{
    DT_TRY(dt_measure_chunk(measure, params, chunk, measure->sums, dt_metrics_confusion(metrics)));
    return dt_metrics_add(metrics, measure->sums);
}

/* ---- what a result means --------------------------------------------------------------------- */

size_t dt__confusion_cells(const struct dt_job *job)
{
    size_t classes = (size_t)job->model->classes;
    return classes <= DT__RECORD_CLASSES ? classes * classes : 0;
}

void dt__evaluation_make(const struct dt_job *job, uint64_t step, struct dt_metrics *metrics,
                         double start, struct dt_evaluation *out)
{
    size_t cells = dt__confusion_cells(job);
    *out = (struct dt_evaluation){.step = step, .secs = dt_clock_secs() - start};
    dt_metrics_values(metrics, &out->values);
    if (cells) memcpy(out->confusion, dt_metrics_confusion(metrics), cells * sizeof(uint64_t));
}

bool dt__stops_early(const struct dt_job *job, const struct dt_best *best)
{
    int64_t patience = job->config->eval.patience;
    return patience > 0 && best->since >= patience;
}

const char *dt__metric_name(const struct dt_job *job, const struct dt_config *config)
{
    struct dt_metric_score metric = {.name = "metric"};
    (void)dt_metric_pick(job->model, config->eval.metric, NULL, &metric);
    return metric.name;
}

static bool is_of(const struct dt_best *best, const char *metric)
{
    return best->known && strcmp(best->metric, metric) == 0;
}

bool dt__best_beats(const struct dt_job *job, const struct dt_best *a, const struct dt_best *b)
{
    struct dt_metric_score metric;
    if (dt_metric_pick(job->model, job->config->eval.metric, NULL, &metric)) return false;
    if (!is_of(a, metric.name) || !isfinite(a->value) || a->era != b->era) return false;
    if (!is_of(b, metric.name)) return true;
    if (a->value == b->value) return a->loss < b->loss;
    return metric.more_is_better ? a->value > b->value : a->value < b->value;
}

/* An evaluation that is as good as the best by the metric, with a lower loss, takes the best's
 * place, but still counts towards an early stop. Not counted are evaluations that are made again,
 * as after a resume, and the one at the end of a run, which may be continued. */
dt_status dt__evaluation_judge(struct dt_job *job, const struct dt_evaluation *evaluation,
                               bool *out_better)
{
    struct dt_best *best = &job->best;
    const struct dt_metric_values *values = &evaluation->values;
    struct dt_metric_score metric;
    DT_TRY(dt_metric_pick(job->model, job->config->eval.metric, values, &metric));
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
        best->since++;
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

/* ---- in place ------------------------------------------------------------------------------- */

/* What a worker has measured, in one block of memory, so that it travels at once: the counts of the
 * confusion matrix over its chunks, and the sums of each of these. */
struct layout {
    size_t cells, sums; /* uint64_t; doubles of a chunk */
    uint64_t chunks;    /* that a worker has at most */
    size_t bytes;
};

static struct layout measured_layout(const struct dt_job *job)
{
    struct layout of = {.cells = dt__confusion_cells(job), .sums = dt_metrics_sums(job->model)};
    int first, end;
    dt__evaluating_workers(job, &first, &end);
    const uint64_t workers = (uint64_t)(end - first);
    of.chunks = (dt_measure_chunks(job->config, job->eval) + workers - 1) / workers;
    of.bytes = of.cells * sizeof(uint64_t) + (size_t)of.chunks * of.sums * sizeof(double);
    return of;
}

/* NULL: there are none. */
static uint64_t *measured_counts(const struct layout *of, void *block)
{
    return of->cells ? block : NULL;
}

static double *measured_sums(const struct layout *of, void *block, uint64_t chunk)
{
    return (double *)(void *)((uint64_t *)block + of->cells) + (size_t)chunk * of->sums;
}

/* The bank adds up what all workers sent, in the order of workers and so of chunks, and records the
 * evaluation. all: (ranks) blocks. */
static dt_status conclude(struct dt_bank *bank, const struct layout *of, char *all, double start,
                          bool *out_better)
{
    const struct dt_job *job = bank->job;
    const uint64_t chunks = dt_measure_chunks(job->config, job->eval);
    struct dt_evaluation evaluation;
    dt_metrics_reset(bank->metrics);
    for (int w = 0; w < job->world->workers; w++) {
        void *block = all + (size_t)(job->world->worker_rank + w) * of->bytes;
        uint64_t first, end;
        dt__chunks_of(job, w, chunks, &first, &end);
        if (of->cells) dt_metrics_add_confusion(bank->metrics, measured_counts(of, block));
        for (uint64_t c = 0; c < end - first; c++)
            DT_TRY(dt_metrics_add(bank->metrics, measured_sums(of, block, c)));
    }
    dt__evaluation_make(job, job->step, bank->metrics, start, &evaluation);
    evaluation.extra = !dt__eval_regular(job);
    return dt__record_evaluation(bank, &evaluation, out_better);
}

/* The weights, between spans. */
static const float *weights_at_rest(const struct dt_job *job)
{
    if (job->mode == DT_MODE_ASYNC) return dt_async_read(job->async);
    return job->split ? dt_exchange_vectors(job->exchange)[0] : dt_exchange_weights(job->exchange);
}

/* Measures this worker's chunks, into a block of zeros. Where rows of weights are dealt to owners,
 * all ranks go from chunk to chunk together, and pull the weights that each chunk reads; with split
 * layers the bank's vectors have them all. */
static dt_status measure_own(const struct dt_job *job, const struct layout *of, void *block)
{
    const struct dt_worker *worker = job->worker;
    struct dt_measure *measure = worker ? worker->measure : NULL;
    struct dt_exchange *exchange = job->mode == DT_MODE_SYNC && !job->split ? job->exchange : NULL;
    const struct dt_touched *needs = worker && exchange ? dt_exchange_needs(exchange) : NULL;
    struct dt_exchange_times pulls = {0};
    dt_status status = DT_OK;
    if (measure && exchange) dt_network_set_inputs(measure->network, dt_exchange_inputs(exchange));
    for (uint64_t i = 0; i < of->chunks; i++) {
        const uint64_t chunk = worker ? worker->chunk + i : 0;
        const bool measures = measure && chunk < worker->chunk_end && !status;
        if (needs) *needs->count = 0;
        if (measures && needs) status = measure_list(measure, chunk, needs);
        if (exchange) dt_exchange_pull(exchange);
        if (!measures || status) continue;
        dt_world_heartbeat(job->world, "evaluation", job->step);
        status = dt_measure_chunk(measure, weights_at_rest(job), chunk, measured_sums(of, block, i),
                                  measured_counts(of, block));
        dt__slow_down(job);
        if (!status) status = dt_stop_check();
    }
    if (exchange) dt_exchange_take_times(exchange, &pulls); /* no span's */
    return status;
}

dt_status dt__evaluate(struct dt_job *job)
{
    struct dt_bank *bank = job->bank;
    const struct layout of = measured_layout(job);
    const size_t ranks = (size_t)job->world->workers + 1;
    const double start = dt_clock_secs();
    void *mine = NULL, *all = NULL;
    bool better = false;
    dt__split_gather(job, false);
    dt_status status = dt_alloc(1, of.bytes, "evaluation sums", &mine);
    if (!status && bank) status = dt_alloc(ranks, of.bytes, "evaluation sums", &all);
    DT_GUARD(dt_ranks_agree(job->world->trainers, status));
    status = measure_own(job, &of, mine);
    DT_GUARD(dt_ranks_agree(job->world->trainers, status));
    dt_ranks_gather(job->world->trainers, mine, of.bytes, all);
    if (bank) status = conclude(bank, &of, all, start, &better);
    dt_ranks_bcast(job->world->trainers, &better, sizeof better, 0);
    if (better && job->mode == DT_MODE_SYNC) dt_exchange_gather_weights(job->exchange);
    if (better && bank && !status) status = dt__best_found(bank);
    DT_GUARD(dt_ranks_agree(job->world->trainers, status));
    job->best.seen = 1 + job->step;
done:
    dt_free(all);
    dt_free(mine);
    return status;
}
