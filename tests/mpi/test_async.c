/* Async exchange under real MPI: none lost, none applied twice, none torn, weights that rest while
 * they are read, spans, an early close, workers that leave before it, clocks.
 *
 * Every word of every gradient is a function of worker, number and place, and every weight is the
 * number of updates in it, so that a torn or stale word anywhere shows.
 *
 *   test_async shared|window GRADIENTS PARAMS [NAME=VALUE ...]   sets variables before MPI starts */
#include <stdlib.h>
#include <string.h>

#include "dtrain/async.h"

enum { MOST_WORKERS = 64, STALENESS = 5, RESTS = 50 };

static int failures;
static size_t params;

#define EXPECT(what, ...)                                                                          \
    do {                                                                                           \
        if (!(what) && failures++ < 20) {                                                          \
            fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #what);                             \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
        }                                                                                          \
    } while (0)

/* ---- worker --------------------------------------------------------------------------------- */

static float word_of(int worker, uint64_t number, size_t i)
{
    return (float)(((uint64_t)worker * 7919 + number * 104729 + i) & 0xffffff);
}

static void expect_weights(const float *weights, const char *when)
{
    for (size_t i = 1; i < params; i++)
        if (weights[i] != weights[0]) {
            EXPECT(weights[i] == weights[0], "%s: weight %zu is %g, the first is %g", when, i,
                   (double)weights[i], (double)weights[0]);
            return;
        }
}

static uint64_t work(struct dt_async *async, int worker, uint64_t sent, uint64_t most)
{
    for (uint64_t n = 0; n < most && dt_async_begin(async); n++) {
        const float *weights = dt_async_read(async);
        expect_weights(weights, "as read");
        float *grad = dt_async_grad(async);
        for (size_t i = 0; i < params; i++)
            grad[i] = word_of(worker, sent, i);
        if (sent % 8 == 0) expect_weights(weights, "later");
        struct dt_note note = {.replica = worker, .draw = sent++, .rows = (uint64_t)weights[0]};
        dt_async_send(async, &note);
    }
    return sent;
}

/* ---- bank ----------------------------------------------------------------------------------- */

/* The state counts the updates of each parameter. */
static void update(void *arg, const struct dt_gradient *gradient, uint64_t before, size_t offset,
                   size_t n, const float *weights, float *out, float *const *states)
{
    (void)arg;
    int worker = gradient->worker;
    uint64_t number = gradient->note->number, torn = 0, wrong = 0;
    for (size_t i = 0; i < n; i++) {
        torn += gradient->grad[i + offset] != word_of(worker, number, i + offset);
        wrong += weights[i] != (float)before || states[0][i + offset] != (float)before;
        out[i] = weights[i] + 1;
        states[0][i + offset] += 1;
    }
    EXPECT(!torn, "worker %d's gradient %d: %d words at %zu", worker, (int)number, (int)torn,
           offset);
    EXPECT(!wrong, "%d of the bank's weights are not %d", (int)wrong, (int)before);
}

/* Every so many updates the weights must rest. */
static void expect_rest(struct dt_async *async, uint64_t step)
{
    expect_weights(dt_async_weights(async), "at rest");
    EXPECT(dt_async_weights(async)[0] == (float)step, "at rest, step %d", (int)step);
}

/* Returns the updates done. */
static uint64_t serve(struct dt_async *async, uint64_t step, uint64_t close_at)
{
    static uint64_t next[MOST_WORKERS];
    struct dt_applied applied[3];
    uint64_t rest = step + RESTS;
    while (!dt_async_over(async)) {
        int n = dt_async_serve(async, rest, 3, applied);
        for (int i = 0; i < n; i++) {
            const struct dt_note *note = &applied[i].note;
            EXPECT(note->draw == next[applied[i].worker]++, "draw %d", (int)note->draw);
            EXPECT(note->rows == note->version, "version %d", (int)note->version);
            EXPECT(note->gap <= STALENESS, "gap %d", (int)note->gap);
        }
        step += (uint64_t)n;
        if (dt_async_quiescent(async)) {
            expect_rest(async, step);
            rest = step + RESTS;
        }
        if (step >= close_at) dt_async_close(async);
    }
    return step;
}

/* ---- both ----------------------------------------------------------------------------------- */

/* Returns how many this worker has sent. */
static uint64_t run(struct dt_world *world, struct dt_async *async, uint64_t gradients)
{
    const bool bank = dt_world_is_bank(world);
    const uint64_t end[3] = {gradients / 20, gradients / 2, gradients};
    uint64_t step = 0, sent = 0;
    for (int span = 0; span < 3; span++) {
        dt_async_open(async, step, end[span], span == 0);
        bool close = span == 1;
        if (bank)
            step = serve(async, step, close ? gradients / 4 : UINT64_MAX);
        else
            sent = work(async, dt_world_worker_index(world), sent, UINT64_MAX);
        if (bank) EXPECT(step == end[span] || close, "span %d", span);
        dt_world_trainers_bcast(world, &step, sizeof step);
        if (!bank) expect_weights(dt_async_read(async), "at rest");
        if (!bank) EXPECT(dt_async_read(async)[0] == (float)step, "not the newest weights");
    }
    return sent;
}

static void expect_counts(struct dt_async *async, uint64_t gradients)
{
    const struct dt_async_counts *counts = dt_async_count(async);
    if (!counts) return;
    uint64_t histogram = 0;
    for (int i = 0; i < DT_STALENESS_BINS; i++)
        histogram += counts->staleness_histogram[i];
    EXPECT(counts->sent == gradients && counts->applied == gradients && histogram == gradients,
           "%d sent, %d applied", (int)counts->sent, (int)counts->applied);
    EXPECT(counts->gap_max <= STALENESS, "gap %d", (int)counts->gap_max);
    printf("%s: %d gradients of %zu floats, clock gap %d\n", dt_async_memory_name(async),
           (int)counts->applied, params, (int)counts->gap_max);
}

/* A worker that leaves the span after one gradient, which nothing lets in until it was sent, does not
 * leave it behind. */
static void leave_early(struct dt_world *world, struct dt_async *async, uint64_t step,
                        uint64_t sent)
{
    dt_async_open(async, step, step + 1000, false);
    const bool bank = dt_world_is_bank(world);
    if (!bank) work(async, dt_world_worker_index(world), sent, 1);
    dt_world_trainers_barrier(world);
    if (bank) {
        dt_async_close(async);
        uint64_t end = serve(async, step, UINT64_MAX);
        EXPECT(end > step, "none was applied");
    } else {
        dt_async_leave(async);
    }
    dt_world_trainers_barrier(world);
}

int main(int argc, char **argv)
{
    if (argc < 4) return 2;
    for (int i = 4; i < argc; i++)
        putenv(argv[i]);
    uint64_t gradients = strtoull(argv[2], NULL, 10);
    params = strtoull(argv[3], NULL, 10);
    struct dt_world *world;
    if (dt_world_create(&world)) return 1;
    bool active[MOST_WORKERS];
    memset(active, 1, sizeof active);
    if (dt_world_workers(world) > 4) active[1] = false;
    bool shared = strcmp(argv[1], "shared") == 0;
    struct dt_async_spec spec = {.params = params,
                                 .states = 1,
                                 .update = update,
                                 .staleness = STALENESS,
                                 .active = active,
                                 .memory = shared ? DT_ASYNC_SHARED : DT_ASYNC_WINDOW};
    struct dt_async *async;
    double start = dt_clock_secs();
    dt_status status = dt_async_create(world, &spec, &async);
    EXPECT(!status, "%s", dt_error_text());
    if (!status) {
        uint64_t sent = run(world, async, gradients);
        expect_counts(async, gradients);
        leave_early(world, async, gradients, sent);
        dt_async_destroy(async);
    }
    if (dt_world_is_bank(world)) printf("%.2f s\n", dt_clock_secs() - start);
    dt_status all = dt_world_agree_trainers(world, failures ? DT_EBUG : DT_OK);
    if (dt_world_is_bank(world)) printf("%s\n", all ? "FAILED" : "passed");
    dt_world_destroy(world);
    return all ? 1 : 0;
}
