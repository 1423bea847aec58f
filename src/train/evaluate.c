/* Evaluation in place: workers measure chunks side by side, the bank adds them up in order. */
#include <stddef.h>
#include <string.h>

#include "train/run.h"

/* ---- open ----------------------------------------------------------------------------------- */

static bool in_place(const struct dt__run *run)
{
    return run->eval && !run->config->eval.dedicated;
}

/* Whose chunks are whose: all are the evaluator's, or the workers share them. */
static void deal_chunks(struct dt__run *run)
{
    uint64_t index = (uint64_t)dt_world_worker_index(run->world);
    uint64_t workers = (uint64_t)dt_world_workers(run->world);
    run->chunks = dt_measure_chunks(run->config, run->eval);
    if (!in_place(run)) {
        run->chunk_end = dt_world_role(run->world) == DT_EVALUATOR ? run->chunks : 0;
    } else if (dt_world_is_worker(run->world)) {
        run->chunk_first = run->chunks * index / workers;
        run->chunk_end = run->chunks * (index + 1) / workers;
    }
}

dt_status dt__eval_open(struct dt__run *run)
{
    if (!run->eval) return DT_OK;
    deal_chunks(run);
    if (run->chunk_first == run->chunk_end) return DT_OK;
    return dt_measure_create(run->config, run->eval, run->model, run->chunk_first, run->chunk_end,
                             &run->measure);
}

void dt__eval_close(struct dt__run *run)
{
    dt_measure_destroy(run->measure);
}

int64_t dt__eval_interval(const struct dt__run *run)
{
    int64_t every = run->config->eval.steps;
    if (!in_place(run) || every < 0) return 0;
    return every ? every : (int64_t)dt__epoch_steps(run);
}

static bool is_regular(const struct dt__run *run)
{
    uint64_t every = (uint64_t)dt__eval_interval(run);
    return every && run->step && run->step % every == 0;
}

bool dt__eval_due(const struct dt__run *run)
{
    bool seen = run->keeper.state.best.seen == 1 + run->step;
    return in_place(run) && !seen && (run->step == run->last_step || is_regular(run));
}

/* ---- a worker's part ------------------------------------------------------------------------ */

/* What a worker sends: confusion counts, and the sums of each chunk, with scores only where the
 * metrics need them. */
struct parcel {
    size_t cells, sums, bytes;
};

static struct parcel parcel_of(const struct dt__run *run)
{
    uint64_t workers = (uint64_t)dt_world_workers(run->world);
    uint64_t most_chunks = (run->chunks + workers - 1) / workers;
    bool scores = dt_metrics_classes(dt_model_get_spec(run->model)) == 2;
    struct parcel parcel = {.cells = dt__confusion_cells(run)};
    parcel.sums = scores ? sizeof(struct dt_chunk_sums) : offsetof(struct dt_chunk_sums, score);
    parcel.bytes = parcel.cells * sizeof(uint64_t) + most_chunks * parcel.sums;
    return parcel;
}

static dt_status measure_mine(struct dt__run *run, struct parcel parcel, char *out)
{
    uint64_t *confusion = parcel.cells ? (uint64_t *)(void *)out : NULL;
    const float *weights = dt__weights_at_rest(run);
    struct dt_chunk_sums *sums;
    DT_TRY(dt_alloc(1, sizeof *sums, "chunk sums", &sums));
    out += parcel.cells * sizeof *confusion;
    dt_status status = DT_OK;
    for (uint64_t c = run->chunk_first; c < run->chunk_end && !status; c++, out += parcel.sums) {
        dt_world_beat(run->world, "evaluation", run->step);
        status = dt_measure_chunk(run->measure, weights, c, sums, confusion);
        memcpy(out, sums, parcel.sums);
        dt__slow_down(run);
        if (!status) status = dt_stop_check();
    }
    dt_free(sums);
    return status;
}

/* ---- the bank's part ------------------------------------------------------------------------ */

/* All workers' parcels, in worker order and so in chunk order. */
static dt_status merge(struct dt__run *run, struct parcel parcel, const char *all)
{
    struct dt_metrics *metrics = run->keeper.metrics;
    uint64_t workers = (uint64_t)dt_world_workers(run->world);
    struct dt_chunk_sums *sums;
    DT_TRY(dt_alloc(1, sizeof *sums, "chunk sums", &sums));
    dt_metrics_reset(metrics);
    dt_status status = DT_OK;
    for (uint64_t w = 0; w < workers; w++) {
        const char *at = all + (size_t)dt_world_worker_rank(run->world, (int)w) * parcel.bytes;
        uint64_t mine = run->chunks * (w + 1) / workers - run->chunks * w / workers;
        if (parcel.cells) dt_metrics_add_confusion(metrics, (const uint64_t *)(const void *)at);
        at += parcel.cells * sizeof(uint64_t);
        for (uint64_t c = 0; c < mine && !status; c++, at += parcel.sums) {
            memcpy(sums, at, parcel.sums);
            status = dt_metrics_add(metrics, sums);
        }
    }
    dt_free(sums);
    return status;
}

static dt_status conclude(struct dt__run *run, struct parcel parcel, const char *all, double start)
{
    struct dt__verdict verdict;
    bool better;
    DT_TRY(merge(run, parcel, all));
    dt__verdict_make(run, run->step, run->keeper.metrics, start, &verdict);
    verdict.extra = !is_regular(run);
    DT_TRY(dt__verdict_take(run, &verdict, &better));
    if (better) run->keeper.save_wanted = run->config->export.best;
    return DT_OK;
}

/* ---- together ------------------------------------------------------------------------------- */

dt_status dt__evaluate(struct dt__run *run)
{
    const bool bank = dt_world_is_bank(run->world);
    struct parcel parcel = parcel_of(run);
    double start = dt_clock_secs();
    char *mine = NULL, *all = NULL;
    dt_status status = dt_alloc(1, parcel.bytes, "evaluation sums", &mine);
    if (!status && bank)
        status = dt_alloc((size_t)dt_world_workers(run->world) + 1, parcel.bytes, "evaluation sums",
                          &all);
    if (!status && run->measure) status = measure_mine(run, parcel, mine);
    DT_GUARD(dt_world_agree_crew(run->world, status));
    DT_GUARD(dt_world_crew_gather(run->world, mine, parcel.bytes, all));
    DT_GUARD(dt_world_agree_crew(run->world, bank ? conclude(run, parcel, all, start) : DT_OK));
    run->keeper.state.best.seen = 1 + run->step;
done:
    dt_free(all);
    dt_free(mine);
    return status;
}
