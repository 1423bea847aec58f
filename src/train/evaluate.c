/* Evaluation in place: workers measure chunks side by side, the bank adds them up in order. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "train/run.h"

/* ---- open ----------------------------------------------------------------------------------- */

static bool in_place(const struct dt__run *run) {
    return run->eval && !run->config->eval.dedicated;
}

dt_status dt__eval_open(struct dt__run *run) {
    if (!in_place(run)) return DT_OK;
    uint64_t rows = dt_source_rows(run->eval);
    run->chunks = (rows + DT_EVAL_CHUNK - 1) / DT_EVAL_CHUNK;
    uint64_t most = (uint64_t)run->config->eval.batches;
    if (most && most < run->chunks) run->chunks = most;
    if (!dt_world_is_worker(run->world)) return DT_OK;
    uint64_t index = (uint64_t)dt_world_worker_index(run->world);
    uint64_t workers = (uint64_t)dt_world_workers(run->world);
    run->chunk_first = run->chunks * index / workers;
    run->chunk_end = run->chunks * (index + 1) / workers;
    if (run->chunk_first == run->chunk_end) return DT_OK;
    uint64_t end = run->chunk_end * DT_EVAL_CHUNK;
    DT_TRY(dt_table_create(run->config, run->eval, run->chunk_first * DT_EVAL_CHUNK,
                           end < rows ? end : rows, &run->table));
    return dt_net_create(run->model, DT_EVAL_CHUNK, &run->eval_net);
}

void dt__eval_close(struct dt__run *run) {
    dt_table_destroy(run->table);
    dt_net_destroy(run->eval_net);
}

int64_t dt__eval_interval(const struct dt__run *run) {
    int64_t every = run->config->eval.steps;
    if (!in_place(run) || every < 0) return 0;
    return every ? every : (int64_t)dt__epoch_steps(run);
}

bool dt__eval_due(const struct dt__run *run, uint64_t step) {
    if (!in_place(run)) return false;
    int64_t every = dt__eval_interval(run);
    return step == run->last_step || (every && step && step % (uint64_t)every == 0);
}

/* ---- chunks --------------------------------------------------------------------------------- */

/* What a worker sends of a chunk: the scores only where the metrics need them. */
static size_t sums_size(const struct dt__run *run) {
    bool scores = dt_metrics_classes(dt_model_get_spec(run->model)) == 2;
    return scores ? sizeof(struct dt_chunk_sums) : offsetof(struct dt_chunk_sums, score);
}

static size_t most_chunks(const struct dt__run *run) {
    uint64_t workers = (uint64_t)dt_world_workers(run->world);
    return (size_t)((run->chunks + workers - 1) / workers);
}

static dt_status measure_chunk(struct dt__run *run, uint64_t chunk, const float *weights,
                               float *logits, struct dt_chunk_sums *sums, uint64_t *confusion) {
    uint64_t begin = chunk * DT_EVAL_CHUNK, rows = dt_source_rows(run->eval);
    uint64_t count = rows - begin < DT_EVAL_CHUNK ? rows - begin : DT_EVAL_CHUNK;
    struct dt_batch batch;
    DT_TRY(dt_table_read(run->table, begin, (int)count, &batch));
    dt_net_forward(run->eval_net, weights, batch.x, batch.rows, logits);
    dt_metrics_chunk(dt_model_get_spec(run->model), logits, &batch, sums, confusion);
    return DT_OK;
}

/* This worker's chunks: sums of `size` bytes each into `out`, and its confusion counts. */
static dt_status measure_mine(struct dt__run *run, char *out, size_t size, uint64_t *confusion) {
    const struct dt_model_spec *spec = dt_model_get_spec(run->model);
    struct dt_chunk_sums *sums = NULL;
    float *logits = NULL;
    dt_status status;
    DT_GUARD(dt_alloc(1, sizeof *sums, "chunk sums", &sums));
    DT_GUARD(dt_alloc(DT_EVAL_CHUNK, (size_t)spec->nout * sizeof *logits, "logits", &logits));
    const float *weights = dt__weights_at_rest(run);
    for (uint64_t c = run->chunk_first; c < run->chunk_end; c++, out += size) {
        DT_GUARD(measure_chunk(run, c, weights, logits, sums, confusion));
        memcpy(out, sums, size);
        dt_world_beat(run->world, "evaluation", run->step);
    }
    status = DT_OK;
done:
    dt_free(logits);
    dt_free(sums);
    return status;
}

/* ---- merge ---------------------------------------------------------------------------------- */

/* Bank: all ranks' chunk sums, in worker order and so in chunk order, and confusion counts. */
static dt_status merge(struct dt__run *run, const char *all, size_t size, size_t counts) {
    struct dt_metrics *metrics = run->keeper.metrics;
    size_t stride = most_chunks(run) * size + counts * sizeof(uint64_t);
    uint64_t workers = (uint64_t)dt_world_workers(run->world);
    struct dt_chunk_sums *sums;
    DT_TRY(dt_alloc(1, sizeof *sums, "chunk sums", &sums));
    dt_metrics_reset(metrics);
    dt_status status = DT_OK;
    for (uint64_t w = 0; w < workers; w++) {
        const char *at = all + (size_t)dt_world_worker_rank(run->world, (int)w) * stride;
        uint64_t mine = run->chunks * (w + 1) / workers - run->chunks * w / workers;
        if (counts) dt_metrics_add_confusion(metrics, (const uint64_t *)(const void *)at);
        at += counts * sizeof(uint64_t);
        for (uint64_t c = 0; c < mine && !status; c++, at += size) {
            memcpy(sums, at, size);
            status = dt_metrics_add(metrics, sums);
        }
    }
    dt_free(sums);
    return status;
}

/* ---- best ----------------------------------------------------------------------------------- */

/* Bank: keeps the best value and the state of early stopping. */
static dt_status judge(struct dt__run *run, const struct dt_metric_values *values) {
    struct dt_best *best = &run->keeper.state.best;
    double value;
    bool more_is_better;
    const char *name;
    DT_TRY(dt_metric_pick(dt_model_get_spec(run->model), run->config->eval.metric, values, &value,
                          &more_is_better, &name));
    bool same_metric = best->known && strcmp(best->metric, name) == 0;
    bool better = !same_metric || (more_is_better ? value > best->value : value < best->value);
    if (better && isfinite(value)) {
        *best = (struct dt_best){.known = true, .value = value, .step = run->step};
        snprintf(best->metric, sizeof best->metric, "%s", name);
        run->keeper.save_wanted = run->config->export.best;
    } else {
        best->since++;
    }
    int64_t patience = run->config->eval.patience;
    best->stop = patience > 0 && best->since >= patience;
    return DT_OK;
}

static dt_status conclude(struct dt__run *run, const char *all, size_t size, size_t counts) {
    struct dt_metric_values values;
    DT_TRY(merge(run, all, size, counts));
    dt_metrics_values(run->keeper.metrics, &values);
    DT_TRY(judge(run, &values));
    return dt__record_eval(run, &values);
}

dt_status dt__evaluate(struct dt__run *run) {
    const bool bank = dt_world_is_bank(run->world);
    size_t size = sums_size(run), classes = (size_t)dt_metrics_classes(dt_model_get_spec(run->model));
    size_t counts = classes * classes;
    size_t stride = most_chunks(run) * size + counts * sizeof(uint64_t);
    char *mine = NULL, *all = NULL;
    dt_status status = dt_alloc(1, stride, "evaluation sums", &mine);
    if (!status && bank)
        status = dt_alloc((size_t)dt_world_workers(run->world) + 1, stride, "evaluation sums", &all);
    if (!status && run->table)
        status = measure_mine(run, mine + counts * sizeof(uint64_t), size,
                              counts ? (uint64_t *)(void *)mine : NULL);
    DT_GUARD(dt_world_agree_crew(run->world, status));
    DT_GUARD(dt_world_crew_gather(run->world, mine, stride, all));
    status = dt_world_agree_crew(run->world, bank ? conclude(run, all, size, counts) : DT_OK);
done:
    dt_free(all);
    dt_free(mine);
    return status;
}
