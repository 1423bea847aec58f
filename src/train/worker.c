/* The computation of a worker: the gradient of one replica, in sync and in async. */
#include "train/replicas.h"
#include "train/sets.h"

#include <limits.h>
#include <math.h>

/* Returns how many of `rows` rows go through the network at once: all, if a layer computes
 * statistics over its rows (only batchnorm has state tensors) or if the model has split layers,
 * which take the rows of all replicas together; else at most DT__SLICE_ROWS. */
static int slice_rows(const struct dt_job *job, uint64_t rows)
{
    uint64_t most = job->model->splits ? INT_MAX : DT__SLICE_ROWS;
    for (size_t i = 0; i < job->model->tensors; i++)
        if (job->model->tensor[i].role == DT_TENSOR_STATE) most = INT_MAX;
    return (int)(rows < most ? rows : most);
}

void dt__chunks_of(const struct dt_job *job, int worker, uint64_t chunks, uint64_t *first,
                   uint64_t *end)
{
    const int begin = job->evaluating.first;
    const uint64_t count = (uint64_t)(job->evaluating.end - begin);
    *first = *end = 0;
    if (worker < begin || worker >= job->evaluating.end) return;
    *first = chunks * (uint64_t)(worker - begin) / count;
    *end = chunks * (uint64_t)(worker - begin + 1) / count;
}

static dt_status measured_open(struct dt_job *job, struct dt_worker *worker)
{
    DT_TRY(DT__ARENA_ALLOC(&job->arena, "sets of rows",
                           DT__TABLE(worker->measured, (size_t)job->sets.count)));
    worker->sets = job->sets.count;
    for (int i = 0; i < job->sets.count; i++) {
        struct dt_measured *of = &worker->measured[i];
        const struct dt_source *source = job->sets.at[i].source;
        if (job->sets.at[i].last) continue;
        dt__chunks_of(job, job->world->worker, dt__measure_chunks(job->config, source), &of->chunk,
                      &of->chunk_end);
        if (of->chunk < of->chunk_end)
            DT_TRY(dt__measure_create(job->config, source, job->model, of->chunk, of->chunk_end,
                                      &of->measure));
    }
    return DT_OK;
}

dt_status dt__worker_open(struct dt_job *job, struct dt_worker *worker)
{
    const int index = job->world->worker;
    size_t replicas = (size_t)job->replicas;
    dt__worker_replicas(job, index, &worker->first, &worker->count);
    DT_TRY(DT__ARENA_ALLOC(&job->arena, "loss sums", DT__TABLE(worker->loss, replicas),
                           DT__TABLE(worker->draws, replicas)));
    const int rows = slice_rows(job, dt__plan_max_local_batch(job->plan));
    DT_TRY(dt__network_create(job->model, rows ? rows : 1, (int)job->config->run.precision,
                              &worker->network));
    DT_TRY(dt__network_reserve(worker->network,
                               (size_t)dt__source_most_entries(job->train, (uint64_t)rows)));
    uint64_t draw = job->mode == DT_MODE_SYNC ? job->step : job->step / (uint64_t)job->replicas;
    const int each = job->model->splits ? 1 : worker->count;
    worker->readers = each ? worker->count / each : 0;
    DT_TRY(DT__ARENA_ALLOC(&job->arena, "readers",
                           DT__TABLE(worker->reader, (size_t)worker->readers)));
    for (int i = 0; i < worker->readers; i++)
        DT_TRY(dt__loader_create(job->config, job->train, job->plan, worker->first + i, each,
                                 worker->readers, rows, draw, &worker->reader[i].loader));
    return dt__evaluates_in_place(job) ? measured_open(job, worker) : DT_OK;
}

void dt__worker_close(struct dt_worker *worker)
{
    for (int i = 0; worker->measured && i < worker->sets; i++)
        dt__measure_destroy(worker->measured[i].measure);
    for (int i = 0; worker->reader && i < worker->readers; i++)
        dt__loader_destroy(worker->reader[i].loader);
    dt__network_destroy(worker->network);
}

/* ---- gradient ------------------------------------------------------------------------------- */

dt_status dt__list_factored(struct dt_job *job, struct dt_steps *steps)
{
    const struct dt_schema *schema = dt__source_schema(job->train);
    const uint64_t rows = dt__plan_max_local_batch(job->plan);
    const int precision = (int)job->config->run.precision;
    if (dt__is_rounded(job)) return DT_OK;
    if (schema->dense < schema->features || !rows || rows > DT__SLICE_ROWS) return DT_OK;
    const int count = dt__model_factored(job->model, precision, (int)rows, NULL);
    DT_TRY(DT__ARENA_ALLOC(&job->arena, "factored gradients",
                           DT__TABLE(steps->factored, (size_t)count)));
    steps->matrices = dt__model_factored(job->model, precision, (int)rows, steps->factored);
    return DT_OK;
}

dt_status dt__read_rows(struct dt_worker *worker, int replica, struct dt_local_batch rows,
                        struct dt_batch *out)
{
    struct dt_reader *reader = &worker->reader[worker->readers > 1 ? replica - worker->first : 0];
    const struct dt_local_batch *last = &reader->local;
    const double asked = dt__clock_secs();
    if (reader->replica != replica || last->epoch != rows.epoch || last->begin != rows.begin ||
        last->count != rows.count || !rows.count) {
        reader->local = (struct dt_local_batch){0};
        DT_TRY(dt__loader_read(reader->loader, replica, rows.epoch, rows.begin, (int)rows.count,
                               &reader->batch));
        reader->local = rows;
        reader->replica = replica;
    }
    worker->data_secs += dt__clock_secs() - asked;
    *out = reader->batch;
    return DT_OK;
}

void dt__list_inputs(const struct dt_job *job, struct dt_worker *worker, uint64_t step,
                     const struct dt_touched *inputs)
{
    dt_status status = DT_OK;
    struct dt_batch batch;
    *inputs->count = 0;
    dt__trace_phase(job->trace, DT_PHASE_DATA, step);
    for (int r = worker->first; r < worker->first + worker->count; r++) {
        const struct dt_local_batch mine = dt__plan_local_batch(job->plan, step, r);
        for (uint64_t done = 0, rows; done < mine.count && !status; done += rows) {
            rows = (uint64_t)slice_rows(job, mine.count - done);
            const struct dt_local_batch slice = {mine.epoch, mine.begin + done, rows};
            status = dt__read_rows(worker, r, slice, &batch);
            if (!status) status = dt__network_list_inputs(worker->network, &batch, inputs);
        }
    }
    dt__step_fail(worker, step, status);
}

void dt__step_fail(struct dt_worker *worker, uint64_t step, dt_status status)
{
    if (status && !worker->failed)
        worker->failed = dt_fail_prefix(status, "step %llu: ", (unsigned long long)step);
}

dt_status dt__loss_check(const struct dt_job *job, int replica, double loss)
{
    if (isfinite(loss)) return DT_OK;
    const struct dt_config *config = job->config;
    const bool preset = config->run.preset != DT_PRESET_TABLE && dt__trains_on_table(job);
    return dt_fail(
        DT_ENUMERIC,
        "the loss of replica %d is %s: %s%sa lower train.lr, or train.clip_norm, may help", replica,
        isnan(loss) ? "not a number" : "infinite", preset ? "run.preset=table, " : "",
        config->data.normalize ? "" : "data.normalize=standard, ");
}

bool dt__replica_gradient(const struct dt_job *job, struct dt_worker *worker, int replica,
                          uint64_t draw, const float *weights, struct dt_slot slot,
                          const struct dt_network_hooks *hooks)
{
    struct dt_local_batch mine = dt__plan_local_batch(job->plan, draw, replica);
    const struct dt_network_hooks forward_only = {hooks ? hooks->before_forward : NULL, NULL,
                                                  hooks ? hooks->arg : NULL};
    const struct dt_rng dropout =
        dt__rng_make((uint64_t)job->config->run.seed, DT_STREAM_DROPOUT, (uint64_t)replica, draw);
    uint64_t done = 0;
    do { /* passes over the local batch; only the last pass runs all hooks */
        const uint64_t left = mine.count - done;
        const int rows = slice_rows(job, left);
        const bool last = (uint64_t)rows == left;
        const struct dt_local_batch slice = {mine.epoch, mine.begin + done, (uint64_t)rows};
        struct dt_batch batch;
        double loss = 0;
        dt__trace_phase(job->trace, DT_PHASE_DATA, draw);
        dt_status status = dt__read_rows(worker, replica, slice, &batch);
        if (!status) {
            dt__trace_phase(job->trace, DT_PHASE_COMPUTE, draw);
            batch.first_row = done;
            status = dt__network_gradient(worker->network, weights, &batch, &dropout, done > 0,
                                          slot, &loss, last ? hooks : &forward_only);
        }
        if (!status) worker->loss[replica] += loss;
        if (!status) status = dt__loss_check(job, replica, loss);
        dt__step_fail(worker, draw, status);
        done += (uint64_t)rows;
        worker->samples += (uint64_t)rows;
        dt__work_progress(); /* a local batch may take longer than run.stall_secs */
    } while (done < mine.count && !worker->failed);
    return worker->failed == DT_OK;
}

/* ---- async ---------------------------------------------------------------------------------- */

int dt__next_replica(const struct dt_job *job, const struct dt_worker *worker)
{
    int next = -1;
    for (int r = worker->first; r < worker->first + worker->count; r++) {
        if (dt__plan_replica_rows(job->plan, r) == 0) continue;
        while (dt__plan_local_batch(job->plan, worker->draws[r], r).count == 0)
            worker->draws[r]++;
        if (next < 0 || worker->draws[r] < worker->draws[next]) next = r;
    }
    return next;
}

/* Serves requests for the weights that the worker owns, while it computes. */
static void bucket_passed(void *arg, int bucket)
{
    (void)bucket;
    if (arg) dt__async_progress(arg);
}

struct dt_gradient_info dt__async_gradient(const struct dt_job *job, struct dt_worker *worker,
                                           int replica, const float *weights, float *grad,
                                           const struct dt_touched *touched)
{
    uint64_t draw = worker->draws[replica]++;
    worker->loss[replica] = 0;
    const struct dt_slot slot = {.grad = grad, .touched = touched};
    const struct dt_network_hooks hooks = {bucket_passed, bucket_passed, job->steps->async};
    bool good = dt__replica_gradient(job, worker, replica, draw, weights, slot, &hooks);
    for (int i = 0; touched && !good && i < job->steps->row_ranges; i++)
        *touched[i].count = 0; /* the counts may be those of an earlier gradient */
    return (struct dt_gradient_info){.replica = replica,
                                     .draw = draw,
                                     .rows = dt__plan_local_batch(job->plan, draw, replica).count,
                                     .loss = worker->loss[replica],
                                     .ask = good ? DT_ASK_NONE : DT_ASK_ERROR};
}
