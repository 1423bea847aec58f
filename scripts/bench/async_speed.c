/* Measures the async exchange alone: gradients per second of workers on one host, by this library's
 * slots and by the textbook's way, a lock and two buffers.
 *
 *   mpirun -np 1+WORKERS ... async_speed slots PARAMS GRADIENTS MS
 *   async_speed lock PARAMS GRADIENTS MS WORKERS
 *
 * A gradient reads all weights, takes MS milliseconds of a core and is written; the update is plain
 * SGD.
 * lock: workers are children that share two buffers of weights. A worker copies the newest weights
 * under a readers' lock, computes, and under the updaters' lock writes the other buffer, which
 * becomes the newest under the readers' lock.
 * Prints one line: gradients per second and the sum of weights, a function of gradients and
 * parameters alone. */
#include "comm/async.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct bench {
    const char *how;
    size_t params;
    uint64_t gradients;
    double secs; /* duration of a gradient */
    int workers;
};

static void die(struct dt_world *world)
{
    if (world) dt__world_abort(world, DT_EUSAGE);
    fprintf(stderr, "async_speed: %s\n", dt_error_text());
    exit(1);
}

static void compute(const struct bench *bench, const float *weights, float *grad)
{
    const double until = dt__clock_secs() + bench->secs;
    for (size_t i = 0; i < bench->params; i++)
        grad[i] = 1.0f + 0.0f * weights[i];
    while (dt__clock_secs() < until)
        continue;
}

static void sgd(size_t n, const float *weights, const float *grad, float *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = weights[i] - 0.0009765625f * grad[i];
}

static void print(const struct bench *bench, double secs, const float *weights)
{
    double sum = 0;
    for (size_t i = 0; i < bench->params; i++)
        sum += (double)weights[i];
    printf("%s workers %d params %zu ms %g gradients_per_sec %.1f sum %.9g\n", bench->how,
           bench->workers, bench->params, 1e3 * bench->secs, (double)bench->gradients / secs, sum);
}

/* ---- slots ---------------------------------------------------------------------------------- */

static void update(void *arg, const struct dt_gradient *part, uint64_t before, size_t offset,
                   size_t n, const float *weights, float *out, float *const *states)
{
    (void)arg, (void)before, (void)offset, (void)states;
    sgd(n, weights, part->grad, out);
}

static void run_slots(struct bench *bench)
{
    struct dt_world *world;
    struct dt_async *async;
    struct dt_applied applied[64];
    if (dt_world_create(&world)) die(NULL);
    dt__world_set_roles(world, false);
    bench->workers = world->workers;
    bool *active = calloc((size_t)bench->workers, sizeof *active);
    if (!active) exit(1);
    memset(active, true, (size_t)bench->workers * sizeof *active);
    const struct dt_async_spec spec = {
        .params = bench->params, .update = update, .staleness = -1, .active = active};
    if (dt__async_create(world, &spec, &async)) die(world);
    dt__async_start(async, 0, bench->gradients, false);
    dt__ranks_barrier(world->trainers);
    double start = dt__clock_secs();
    if (world->is_worker)
        while (dt__async_begin(async)) {
            const float *weights = dt__async_read(async);
            compute(bench, weights, dt__async_grad(async));
            dt__async_send(async, &(struct dt_gradient_info){.rows = 1});
        }
    else
        while (!dt__async_over(async))
            (void)dt__async_serve(async, 64, applied);
    dt__ranks_barrier(world->trainers);
    if (world->is_bank) print(bench, dt__clock_secs() - start, dt__async_weights(async));
    dt__async_destroy(async);
    dt__world_end(world, DT_OK);
    free(active);
}

/* ---- lock ----------------------------------------------------------------------------------- */

struct shared {
    pthread_rwlock_t newest_lock;
    pthread_mutex_t update_lock;
    uint64_t ticket;
    int newest;
};

static void *map_shared(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) exit(1);
    memset(memory, 0, bytes);
    return memory;
}

static void work(const struct bench *bench, struct shared *shared, float *const buffer[2])
{
    const size_t bytes = bench->params * sizeof(float);
    float *weights = aligned_alloc(64, bytes + 64 - bytes % 64),
          *grad = aligned_alloc(64, bytes + 64 - bytes % 64);
    if (!weights || !grad) exit(1);
    while (__atomic_fetch_add(&shared->ticket, 1, __ATOMIC_SEQ_CST) < bench->gradients) {
        pthread_rwlock_rdlock(&shared->newest_lock);
        memcpy(weights, buffer[shared->newest], bytes);
        pthread_rwlock_unlock(&shared->newest_lock);
        compute(bench, weights, grad);
        pthread_mutex_lock(&shared->update_lock);
        sgd(bench->params, buffer[shared->newest], grad, buffer[!shared->newest]);
        pthread_rwlock_wrlock(&shared->newest_lock);
        shared->newest = !shared->newest;
        pthread_rwlock_unlock(&shared->newest_lock);
        pthread_mutex_unlock(&shared->update_lock);
    }
    free(weights);
    free(grad);
}

static void run_lock(const struct bench *bench)
{
    struct shared *shared = map_shared(sizeof *shared);
    float *buffer[2] = {map_shared(bench->params * sizeof(float)),
                        map_shared(bench->params * sizeof(float))};
    pthread_rwlockattr_t readers;
    pthread_mutexattr_t updaters;
    pthread_rwlockattr_init(&readers);
    pthread_rwlockattr_setpshared(&readers, PTHREAD_PROCESS_SHARED);
    pthread_rwlock_init(&shared->newest_lock, &readers);
    pthread_mutexattr_init(&updaters);
    pthread_mutexattr_setpshared(&updaters, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&shared->update_lock, &updaters);
    double start = dt__clock_secs();
    for (int w = 0; w < bench->workers; w++)
        if (fork() == 0) {
            work(bench, shared, buffer);
            _exit(0);
        }
    while (wait(NULL) > 0)
        continue;
    print(bench, dt__clock_secs() - start, buffer[shared->newest]);
}

int main(int argc, char **argv)
{
    struct bench bench = {0};
    if (argc > 4)
        bench = (struct bench){.how = argv[1],
                               .params = strtoul(argv[2], NULL, 10),
                               .gradients = strtoull(argv[3], NULL, 10),
                               .secs = 1e-3 * strtod(argv[4], NULL),
                               .workers = argc > 5 ? (int)strtol(argv[5], NULL, 10) : 2};
    if (!bench.params || !bench.gradients) {
        fprintf(stderr, "async_speed: expected slots|lock PARAMS GRADIENTS MS [WORKERS]\n");
        return 1;
    }
    if (strcmp(bench.how, "lock"))
        run_slots(&bench);
    else
        run_lock(&bench);
    return 0;
}
