/* The sync exchange against a serial sum by the same tree: every kind, uneven replicas, the norm,
 * ranks that dawdle, legs of every length, and a leg that an error or a request ends.
 *
 * Would catch: a slice left out or updated twice, a gradient read before it is written or overwritten
 * before it is read, weights read while they change, an order of sums that depends on ranks, ranks
 * that leave a leg at different steps. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "comm/tree.h"
#include "comm/world.h"
#include "dtrain/comm.h"

enum { PARAMS = 150001, BUCKETS = 3, STEPS = 12, LEG = 5 };
static const size_t bucket_end[BUCKETS] = {100000, 149990, PARAMS};
static int failures;

#define EXPECT(what, ...)                                                                          \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            failures++;                                                                            \
            fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #what);                             \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
        }                                                                                          \
    } while (0)

/* Depends on the weights, so that a stale or torn read shows. */
static void make_gradient(uint64_t step, int replica, const float *weights, float *grad)
{
    uint32_t mix = (uint32_t)(step * 2654435761u) ^ (uint32_t)(replica * 40503);
    for (size_t i = 0; i < PARAMS; i++) {
        uint32_t bits = ((uint32_t)i * 2246822519u) ^ mix;
        bits ^= bits >> 15;
        grad[i] = (float)(bits & 0xffff) / 65536 - 0.5f + 0.3f * weights[i];
    }
}

static void apply(void *arg, const struct dt_update_info *info, size_t offset, size_t n,
                  const float *grad, float *const *vectors, float *out)
{
    float rate = *(const float *)arg;
    if (info->norm2 > 0) rate /= (float)sqrt(info->norm2);
    for (size_t i = offset; i < offset + n; i++) {
        vectors[1][i] = 0.9f * vectors[1][i] + grad[i - offset];
        out[i - offset] = vectors[0][i] - rate * vectors[1][i];
    }
}

/* ---- reference ------------------------------------------------------------------------------ */

static double serial_norm(const float *sum)
{
    double total = 0;
    for (size_t at = 0; at < PARAMS; at += DT__TREE_BLOCK) {
        double lane[8] = {0};
        for (size_t i = at; i < PARAMS && i < at + DT__TREE_BLOCK; i++)
            lane[(i - at) & 7] += (double)sum[i] * (double)sum[i];
        total += ((lane[0] + lane[1]) + (lane[2] + lane[3])) +
                 ((lane[4] + lane[5]) + (lane[6] + lane[7]));
    }
    return total;
}

static void serial(int replicas, int steps, bool norm, float rate, float *weights)
{
    float *vectors[2] = {weights, calloc(PARAMS, sizeof(float))};
    float **grad = calloc((size_t)replicas, sizeof *grad), *sum = calloc(PARAMS, sizeof *sum);
    struct dt__tree_scratch *scratch = aligned_alloc(64, sizeof *scratch);
    for (int r = 0; r < replicas; r++)
        grad[r] = calloc(PARAMS, sizeof **grad);
    for (int step = 0; step < steps; step++) {
        for (int r = 0; r < replicas; r++)
            make_gradient((uint64_t)step, r, weights, grad[r]);
        for (size_t at = 0; at < PARAMS; at += DT__TREE_BLOCK) {
            size_t n = PARAMS - at < DT__TREE_BLOCK ? PARAMS - at : DT__TREE_BLOCK;
            memcpy(sum + at,
                   dt__tree_sum((const float *const *)grad, NULL, 0, replicas, at, n, scratch),
                   n * sizeof *sum);
        }
        struct dt_update_info info = {(uint64_t)step, norm ? serial_norm(sum) : 0};
        apply(&rate, &info, 0, PARAMS, sum, vectors, vectors[0]);
    }
    for (int r = 0; r < replicas; r++)
        free(grad[r]);
    free(grad);
    free(sum);
    free(scratch);
    free(vectors[1]);
}

/* ---- the same, distributed ------------------------------------------------------------------ */

struct trial {
    int kind, replicas;
    bool norm;
    int stop_step, stop_ask; /* the last worker asks at this step; -1: nobody */
};

static int asks_nothing(void *arg)
{
    (void)arg;
    return DT_ASK_NONE;
}

static void dawdle(const struct dt_world *world, int step)
{
    struct dt_rng rng = dt_rng_make(7, DT_STREAM_TEST, (uint64_t)dt_world_rank(world), 0);
    if (dt_rng_uniform(&rng, (uint64_t)step) < 0.3) dt_sleep_secs(2e-3);
}

static int worker_step(struct dt_world *world, struct dt_exchange *x, const struct trial *trial,
                       int step)
{
    int first, count;
    dt_world_replicas(world, dt_world_worker_index(world), trial->replicas, &first, &count);
    dt_exchange_begin(x, (uint64_t)step);
    for (int b = 0; b < BUCKETS; b++)
        dt_exchange_need(x, b);
    for (int r = first; r < first + count; r++)
        make_gradient((uint64_t)step, r, dt_exchange_weights(x), dt_exchange_grad(x, r));
    dawdle(world, step);
    for (int b = BUCKETS - 1; b >= 0; b--)
        dt_exchange_ready(x, b);
    bool last = dt_world_worker_index(world) == dt_world_workers(world) - 1;
    return dt_exchange_end(x, last && step == trial->stop_step ? trial->stop_ask : DT_ASK_NONE);
}

static int run_leg(struct dt_world *world, struct dt_exchange *x, const struct trial *trial,
                   uint64_t *step, uint64_t until)
{
    int asked = DT_ASK_NONE;
    if (!dt_world_is_worker(world))
        return dt_exchange_serve(x, *step, until, asks_nothing, NULL, step);
    while (*step < until && !asked) {
        asked = worker_step(world, x, trial, (int)*step);
        if (!(asked & DT_ASK_ERROR)) ++*step;
    }
    dt_exchange_settle(x);
    return asked;
}

static void compare(const struct trial *trial, const float *weights, int steps, float rate)
{
    float *expected = calloc(PARAMS, sizeof *expected);
    serial(trial->replicas, steps, trial->norm, rate, expected);
    double worst = 0;
    for (size_t i = 0; i < PARAMS; i++) {
        double off = fabs((double)expected[i] - (double)weights[i]);
        if (!(off <= worst)) worst = off;
    }
    double limit = trial->kind == DT_ORDERED || trial->kind == DT_NODE ? 0 : 1e-5;
    EXPECT(worst <= limit, "kind %d, R = %d, norm %d: off by %g", trial->kind, trial->replicas,
           trial->norm, worst);
    free(expected);
}

static void try_exchange(struct dt_world *world, const struct trial *trial)
{
    float rate = 0.01f;
    struct dt_exchange_spec spec = {.kind = trial->kind,
                                    .params = PARAMS,
                                    .buckets = BUCKETS,
                                    .bucket_end = bucket_end,
                                    .replicas = trial->replicas,
                                    .vectors = 2,
                                    .norm = trial->norm,
                                    .update = apply,
                                    .arg = &rate};
    struct dt_exchange *x;
    dt_status status = dt_exchange_create(world, &spec, &x);
    EXPECT(!status, "%s", dt_error_text());
    if (dt_world_is_bank(world))
        for (int v = 0; v < 2; v++)
            memset(dt_exchange_vectors(x)[v], 0, PARAMS * sizeof(float));
    dt_exchange_start(x);
    uint64_t step = 0;
    int asked = DT_ASK_NONE;
    while (step < STEPS && !asked) {
        uint64_t until = step + LEG < STEPS ? step + LEG : STEPS;
        asked = run_leg(world, x, trial, &step, until);
        dt_world_crew_barrier(world);
    }
    EXPECT(asked == (trial->stop_step < 0 ? DT_ASK_NONE : trial->stop_ask), "asked %d", asked);
    int expected =
        trial->stop_step < 0 ? STEPS : trial->stop_step + !(trial->stop_ask & DT_ASK_ERROR);
    EXPECT(step == (uint64_t)expected, "ended at step %d", (int)step);
    if (dt_world_is_bank(world) && !(asked & DT_ASK_ERROR))
        compare(trial, dt_exchange_weights(x), (int)step, rate);
    dt_exchange_destroy(x);
}

int main(void)
{
    struct dt_world *world;
    if (dt_world_create(&world)) return 1;
    dt_world_watch(world, 20);
    const int replicas[] = {1, 2, 3, 7};
    for (size_t i = 0; i < sizeof replicas / sizeof *replicas; i++)
        for (int kind = DT_REDUCE; kind <= DT_ORDERED; kind++)
            for (int norm = 0; norm < 2; norm++)
                try_exchange(world, &(struct trial){kind, replicas[i], norm, -1, 0});
    for (int kind = DT_REDUCE; kind <= DT_ORDERED; kind++) {
        try_exchange(world, &(struct trial){kind, 3, false, 6, DT_ASK_STOP});
        try_exchange(world, &(struct trial){kind, 3, false, 6, DT_ASK_ERROR});
    }
    int all = failures;
    DT_MPI(MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    if (dt_world_is_bank(world)) printf("test_exchange: %s\n", all ? "failed" : "passed");
    dt_world_destroy(world);
    return all != 0;
}
