/* The batcher: one thread computes, and takes all requests that wait at once. Nobody waits for a batch to
 * fill: while one is computed the next gathers, so that batches grow with the load. */
#include <string.h>

#include "predict/serve.h"

struct job {
    struct job *next;
    const struct dt__version *version;
    const struct dt__request *request;
    float *out;
    int32_t *out_class;
    bool done;
    dt_status status;
    char error[DT_ERROR_MAX];
};

struct dt__batcher {
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    pthread_t thread;
    bool started, quit;
    struct job *first, *last;
    uint64_t batches, rows;
    float *x, *value, *out; /* of a batch of several jobs; made for the widest version so far */
    uint32_t *index;
    size_t x_capacity, index_capacity, value_capacity, out_capacity;
    uint64_t offsets[DT_EVAL_CHUNK + 1]; /* of any batch with entries */
    int32_t classes[DT_EVAL_CHUNK];
};

/* Rows that a batch holds. */
static size_t version_chunk(const struct dt__version *version)
{
    return dt_predictor_entries(version->predictor)
               ? DT_EVAL_CHUNK
               : (size_t)dt_predictor_chunk(version->predictor);
}

/* Takes the first job, and those behind it of the same version that fit a batch with it. */
static struct job *jobs_take(struct dt__batcher *batcher)
{
    struct job *first = batcher->first, *last = first;
    size_t rows = first->request->rows, most = version_chunk(first->version);
    while (last->next && last->next->version == first->version &&
           rows + last->next->request->rows <= most) {
        last = last->next;
        rows += last->request->rows;
    }
    batcher->first = last->next;
    if (!batcher->first) batcher->last = NULL;
    last->next = NULL;
    batcher->batches++;
    batcher->rows += rows;
    return first;
}

/* Rows [at, at + rows) of a request, at most a chunk. */
static dt_status answer_batch(struct dt__batcher *batcher, const struct dt__version *version,
                              const struct dt__request *from, size_t at, size_t rows, float *out,
                              int32_t *out_class)
{
    const size_t entries = (size_t)dt_predictor_entries(version->predictor);
    const size_t numbers = (size_t)dt_predictor_numbers(version->predictor);
    struct dt_batch batch = {
        .rows = (int)rows, .ndense = (int)numbers, .x = from->x + at * numbers};
    for (size_t r = 0; r <= rows && entries; r++)
        batcher->offsets[r] = r * entries;
    if (entries) {
        batch.offsets = batcher->offsets;
        batch.index = from->index + at * entries;
        batch.value = from->value + at * entries;
    }
    return dt_predictor_batch(version->predictor, &batch, out, out_class);
}

static dt_status answer_together(struct dt__batcher *batcher, struct job *jobs)
{
    const struct dt__version *version = jobs->version;
    const size_t width = (size_t)dt_predictor_width(version->predictor);
    const size_t numbers = (size_t)dt_predictor_numbers(version->predictor),
                 most = version_chunk(version);
    const size_t entries = (size_t)dt_predictor_entries(version->predictor);
    size_t rows = 0;
    DT_TRY(dt_grow(&batcher->x, &batcher->x_capacity, numbers * most + 1, sizeof(float), "batch"));
    DT_TRY(dt_grow(&batcher->index, &batcher->index_capacity, entries * most + 1, sizeof(uint32_t),
                   "batch"));
    DT_TRY(dt_grow(&batcher->value, &batcher->value_capacity, entries * most + 1, sizeof(float),
                   "batch"));
    DT_TRY(dt_grow(&batcher->out, &batcher->out_capacity, width * most, sizeof(float), "batch"));
    for (struct job *job = jobs; job; job = job->next) {
        const struct dt__request *from = job->request;
        memcpy(batcher->x + rows * numbers, from->x, from->rows * numbers * sizeof(float));
        if (entries) {
            memcpy(batcher->index + rows * entries, from->index,
                   from->rows * entries * sizeof *from->index);
            memcpy(batcher->value + rows * entries, from->value,
                   from->rows * entries * sizeof(float));
        }
        rows += from->rows;
    }
    const struct dt__request all = {
        .x = batcher->x, .index = batcher->index, .value = batcher->value};
    DT_TRY(answer_batch(batcher, version, &all, 0, rows, batcher->out, batcher->classes));
    rows = 0;
    for (struct job *job = jobs; job; job = job->next) {
        const size_t count = job->request->rows;
        memcpy(job->out, batcher->out + rows * width, count * width * sizeof(float));
        memcpy(job->out_class, batcher->classes + rows, count * sizeof(int32_t));
        rows += count;
    }
    return DT_OK;
}

/* One job, of any number of rows. */
static dt_status answer_alone(struct dt__batcher *batcher, const struct job *job)
{
    const size_t width = (size_t)dt_predictor_width(job->version->predictor);
    const size_t rows = job->request->rows;
    for (size_t at = 0; at < rows; at += DT_EVAL_CHUNK) {
        size_t count = rows - at < DT_EVAL_CHUNK ? rows - at : DT_EVAL_CHUNK;
        DT_TRY(answer_batch(batcher, job->version, job->request, at, count, job->out + at * width,
                            job->out_class + at));
    }
    return DT_OK;
}

static void *batcher_run(void *arg)
{
    struct dt__batcher *batcher = arg;
    pthread_mutex_lock(&batcher->lock);
    while (true) {
        while (!batcher->first && !batcher->quit)
            pthread_cond_wait(&batcher->work, &batcher->lock);
        if (!batcher->first) break;
        struct job *jobs = jobs_take(batcher);
        pthread_mutex_unlock(&batcher->lock);
        dt_status status =
            jobs->next ? answer_together(batcher, jobs) : answer_alone(batcher, jobs);
        pthread_mutex_lock(&batcher->lock);
        for (struct job *job = jobs; job; job = job->next) {
            job->status = status;
            if (status) snprintf(job->error, sizeof job->error, "%s", dt_error_text());
            job->done = true;
        }
        pthread_cond_broadcast(&batcher->done);
    }
    pthread_mutex_unlock(&batcher->lock);
    return NULL;
}

dt_status dt__batcher_create(struct dt__batcher **out)
{
    struct dt__batcher *batcher;
    DT_TRY(dt_alloc(1, sizeof *batcher, "batcher", &batcher));
    pthread_mutex_init(&batcher->lock, NULL);
    pthread_cond_init(&batcher->work, NULL);
    pthread_cond_init(&batcher->done, NULL);
    dt_status status = dt_thread_start(&batcher->thread, "dt-batcher", batcher_run, batcher);
    batcher->started = !status;
    if (status)
        dt__batcher_destroy(batcher);
    else
        *out = batcher;
    return status;
}

void dt__batcher_destroy(struct dt__batcher *batcher)
{
    if (!batcher) return;
    pthread_mutex_lock(&batcher->lock);
    batcher->quit = true;
    pthread_cond_signal(&batcher->work);
    pthread_mutex_unlock(&batcher->lock);
    if (batcher->started) pthread_join(batcher->thread, NULL);
    pthread_cond_destroy(&batcher->work);
    pthread_cond_destroy(&batcher->done);
    pthread_mutex_destroy(&batcher->lock);
    dt_free(batcher->x);
    dt_free(batcher->index);
    dt_free(batcher->value);
    dt_free(batcher->out);
    dt_free(batcher);
}

dt_status dt__batcher_answer(struct dt__batcher *batcher, const struct dt__version *version,
                             const struct dt__request *request, float *out, int32_t *out_class)
{
    struct job job = {.version = version, .request = request, .out = out, .out_class = out_class};
    pthread_mutex_lock(&batcher->lock);
    if (batcher->last)
        batcher->last->next = &job;
    else
        batcher->first = &job; /* cppcheck-suppress autoVariables ; done before this returns */
    batcher->last = &job;      /* cppcheck-suppress autoVariables ; likewise */
    pthread_cond_signal(&batcher->work);
    while (!job.done)
        pthread_cond_wait(&batcher->done, &batcher->lock);
    pthread_mutex_unlock(&batcher->lock);
    return job.status ? dt_fail(job.status, "%s", job.error) : DT_OK;
}

void dt__batcher_counts(struct dt__batcher *batcher, uint64_t *out_batches, uint64_t *out_rows)
{
    pthread_mutex_lock(&batcher->lock);
    *out_batches = batcher->batches;
    *out_rows = batcher->rows;
    pthread_mutex_unlock(&batcher->lock);
}
