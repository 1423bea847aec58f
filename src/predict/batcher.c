/* The batcher: of all threads that have rows, one computes a batch of everything that is waiting at
 * that moment. When it is done, the first of the threads that arrived in the meantime computes the
 * next batch. No thread waits for a batch to fill up: the next batch collects rows while the
 * current one is computed, so batches grow with the load. */
#include <string.h>

#include "predict/serve.h"

struct job {
    struct job *next;
    const struct dt__version *version;
    const struct dt__request *request;
    size_t first, count; /* range of the request's rows */
    float *out;
    int32_t *out_class;
    pthread_cond_t wake;
    bool leads; /* the thread of this job computes the next batch */
    bool done;
    dt_status status;
    char error[DT_ERROR_MAX];
};

struct dt__batcher {
    pthread_mutex_t lock;
    bool busy;   /* a thread computes a batch, or is about to */
    int threads; /* threads of each matrix product */
    struct job *first, *last;
    uint64_t batches, rows;
    /* inputs of the current batch; sized for the widest version so far */
    struct dt_inputs inputs;
    float *out;
    size_t out_capacity;
    int32_t classes[DT_EVAL_CHUNK];
};

/* Takes the first job, and the jobs after it that have the same version and fit in the same
 * batch. */
static struct job *jobs_take(struct dt__batcher *batcher, size_t *out_rows)
{
    struct job *first = batcher->first, *last = first;
    size_t rows = first->count, most = first->version->predictor->chunk;
    while (last->next && last->next->version == first->version &&
           rows + last->next->count <= most) {
        last = last->next;
        rows += last->count;
    }
    batcher->first = last->next;
    if (!batcher->first) batcher->last = NULL;
    last->next = NULL;
    batcher->batches++;
    batcher->rows += rows;
    *out_rows = rows;
    return first;
}

/* Predicts the jobs' rows as one batch. */
static dt_status jobs_answer(struct dt__batcher *batcher, struct job *jobs, size_t rows)
{
    struct dt_predictor *predictor = jobs->version->predictor;
    const size_t width = predictor->width;
    size_t at = 0;
    dt__blas_set_threads(batcher->threads); /* OpenMP keeps this setting per thread */
    DT_TRY(dt__inputs_reserve(&batcher->inputs, predictor, rows));
    DT_TRY(dt__grow(&batcher->out, &batcher->out_capacity, width * rows, sizeof(float), "batch"));
    for (const struct job *job = jobs; job; at += job->count, job = job->next)
        DT_TRY(dt__request_inputs(job->request, job->first, job->count, predictor, &batcher->inputs,
                                  at));
    DT_TRY(dt__predictor_inputs(predictor, &batcher->inputs, rows, batcher->out, batcher->classes));
    at = 0;
    for (struct job *job = jobs; job; at += job->count, job = job->next) {
        memcpy(job->out, batcher->out + at * width, job->count * width * sizeof(float));
        memcpy(job->out_class, batcher->classes + at, job->count * sizeof(int32_t));
    }
    return DT_OK;
}

dt_status dt__batcher_create(int threads, struct dt__batcher **out)
{
    struct dt__batcher *batcher;
    DT_TRY(dt__alloc(1, sizeof *batcher, "batcher", &batcher));
    batcher->threads = threads;
    pthread_mutex_init(&batcher->lock, NULL);
    *out = batcher;
    return DT_OK;
}

void dt__batcher_destroy(struct dt__batcher *batcher)
{
    if (!batcher) return;
    pthread_mutex_destroy(&batcher->lock);
    dt__inputs_free(&batcher->inputs);
    dt_free(batcher->out);
    dt_free(batcher);
}

dt_status dt__batcher_answer(struct dt__batcher *batcher, const struct dt__version *version,
                             const struct dt__request *request, size_t first, size_t count,
                             float *out, int32_t *out_class)
{
    struct job job = {.version = version,
                      .request = request,
                      .first = first,
                      .count = count,
                      .out = out,
                      .out_class = out_class,
                      .wake = PTHREAD_COND_INITIALIZER};
    pthread_mutex_lock(&batcher->lock);
    if (batcher->last)
        batcher->last->next = &job;
    else
        batcher->first = &job; /* cppcheck-suppress autoVariables ; it is out of the list before
                                * this returns */
    batcher->last = &job;      /* cppcheck-suppress autoVariables ; it is out of the list before
                                * this returns */
    while (batcher->busy && !job.done && !job.leads)
        pthread_cond_wait(&job.wake, &batcher->lock);
    if (!job.done) {
        batcher->busy = true;
        size_t rows;
        struct job *jobs = jobs_take(batcher, &rows);
        pthread_mutex_unlock(&batcher->lock);
        const dt_status status = jobs_answer(batcher, jobs, rows);
        pthread_mutex_lock(&batcher->lock);
        for (struct job *each = jobs; each; each = each->next) { /* their threads go on once the
                                                                  * lock is free */
            each->status = status;
            if (status) snprintf(each->error, sizeof each->error, "%s", dt_error_text());
            each->done = true;
            pthread_cond_signal(&each->wake);
        }
        batcher->busy = batcher->first != NULL;
        if (batcher->busy) {
            batcher->first->leads = true;
            pthread_cond_signal(&batcher->first->wake);
        }
    }
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
