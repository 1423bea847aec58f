/* Gradients of touched rows against the same gradients written out: weights and optimizer state have the same
 * bits, with rules that update the touched rows alone and with those that update all, with the norm, at
 * several numbers of replicas.
 *
 * Would catch a row that one list alone has, or all; rows of two ranges, wider than a block, or of a single
 * float; a replica that touches nothing; a worker's part that ends between two rows of a block; a block of
 * the norm that rows and other floats share; a sum in another order. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "comm/world.h"
#include "dtrain/comm.h"

enum { RANGES = 3, BUCKETS = 2, STEPS = 6, PARAMS = 130 + 500 * 45 + 77 + 9 * 2500 + 3000 + 55 };
static struct dt_row_range range[RANGES] = {
    {130, 500, 45, false},
    {130 + 500 * 45 + 77, 9, 2500, false},
    {130 + 500 * 45 + 77 + 9 * 2500, 3000, 1, false}};
static const size_t bucket_end[BUCKETS] = {130 + 500 * 45 + 50, PARAMS};

struct rule {
    bool touched_alone; /* adagrad; else momentum */
    int calls;          /* of updates of rows */
};

static uint32_t mix(uint64_t step, int replica, size_t i)
{
    uint32_t bits = (uint32_t)i * 2246822519u ^ (uint32_t)step * 2654435761u ^
                    (uint32_t)replica * 40503u;
    bits = (bits ^ bits >> 15) * 2246822519u;
    return bits ^ bits >> 13;
}

/* Every 4th replica touches nothing at every third step; row 7 is touched by all others. */
static bool touches(uint64_t step, int replica, int in, size_t row)
{
    if (replica % 4 == 1 && step % 3 == 0) return false;
    return row == 7 || mix(step + 100 * (uint64_t)(in + 1), replica, row) % 11 == 0;
}

static float gradient(uint64_t step, int replica, size_t i)
{
    return (float)(mix(step, replica, i) & 0xffff) / 65536 - 0.5f;
}

/* touched: NULL, or where to list rows. */
static void make_gradient(uint64_t step, int replica, const struct dt_touched *touched, float *grad)
{
    size_t at = 0;
    for (int in = 0; in < RANGES; in++) {
        const struct dt_row_range *r = &range[in];
        for (; at < r->offset; at++)
            grad[at] = gradient(step, replica, at);
        uint32_t count = 0;
        for (size_t row = 0; row < r->rows; row++, at += r->width) {
            const bool touch = touches(step, replica, in, row);
            float *to = grad + r->offset + (touched ? count : row) * r->width;
            for (size_t i = 0; i < r->width && (touch || !touched); i++)
                to[i] = touch ? gradient(step, replica, at + i) : 0;
            if (touched && touch) touched[in].row[count++] = (uint32_t)row;
        }
        if (touched) *touched[in].count = count;
    }
    for (; at < PARAMS; at++)
        grad[at] = gradient(step, replica, at);
}

static void apply_floats(const struct rule *rule, double norm2, size_t n, const float *grad,
                         const float *weights, float *state, float *out)
{
    const float scale = norm2 > 0 ? (float)(1 / sqrt(norm2)) : 1;
    for (size_t i = 0; i < n; i++) {
        const float g = grad[i] * scale;
        state[i] = rule->touched_alone ? state[i] + g * g : 0.9f * state[i] + g;
        out[i] = weights[i] - 0.1f * (rule->touched_alone ? g / (sqrtf(state[i]) + 1e-10f) : state[i]);
    }
}

static void apply(void *arg, const struct dt_update_info *info, size_t offset, size_t n,
                  const float *grad, float *const *vectors, float *out)
{
    apply_floats(arg, info->norm2, n, grad, vectors[0] + offset, vectors[1] + offset, out);
}

static void apply_rows(void *arg, const struct dt_update_info *info,
                       const struct dt_row_range *in, const uint32_t *row, size_t count,
                       const float *grad, float *const *vectors)
{
    struct rule *rule = arg;
    for (size_t i = 0; i < count; i++) {
        const size_t at = in->offset + row[i] * in->width;
        apply_floats(rule, info->norm2, in->width, grad + i * in->width, vectors[0] + at,
                     vectors[1] + at, vectors[0] + at);
    }
    rule->calls++;
}

static void step_once(struct dt_world *world, struct dt_reducer *x, int replicas, uint64_t step)
{
    int first, count;
    dt_world_replicas(world, dt_world_worker_index(world), replicas, &first, &count);
    dt_reducer_begin(x, step);
    for (int b = 0; b < BUCKETS; b++)
        dt_reducer_need(x, b);
    for (int r = first; r < first + count; r++)
        make_gradient(step, r, dt_reducer_touched(x, r), dt_reducer_grad(x, r));
    for (int b = BUCKETS - 1; b >= 0; b--)
        dt_reducer_ready(x, b);
    dt_reducer_end(x, DT_ASK_NONE);
}

static int bank_ask_nothing(void *arg)
{
    (void)arg;
    return DT_ASK_NONE;
}

/* Trains; at the bank, out has weights and state. */
static int train(struct dt_world *world, int replicas, bool norm, bool rows, struct rule *rule,
                 float *out)
{
    const struct dt_reducer_spec spec = {.kind = DT_REDUCER_NODE,
                                         .params = PARAMS,
                                         .buckets = BUCKETS,
                                         .bucket_end = bucket_end,
                                         .replicas = replicas,
                                         .vectors = 2,
                                         .norm = norm,
                                         .norm_params = PARAMS - 20,
                                         .update = apply,
                                         .row_range = range,
                                         .row_ranges = rows ? RANGES : 0,
                                         .update_rows = apply_rows,
                                         .arg = rule};
    struct dt_reducer *x;
    uint64_t done;
    for (int i = 0; i < RANGES; i++)
        range[i].touched_alone = rule->touched_alone;
    if (dt_reducer_create(world, &spec, &x)) return 1;
    if (dt_world_is_bank(world))
        for (int v = 0; v < 2; v++)
            memset(dt_reducer_vectors(x)[v], 0, PARAMS * sizeof(float));
    dt_reducer_start(x);
    if (dt_world_is_worker(world)) {
        for (uint64_t step = 0; step < STEPS; step++)
            step_once(world, x, replicas, step);
        dt_reducer_settle(x);
    } else {
        dt_reducer_serve(x, 0, STEPS, bank_ask_nothing, NULL, &done);
    }
    dt_world_trainers_barrier(world);
    for (int v = 0; v < 2 && dt_world_is_bank(world); v++)
        memcpy(out + v * PARAMS, dt_reducer_vectors(x)[v], PARAMS * sizeof(float));
    dt_world_trainers_barrier(world);
    dt_reducer_destroy(x);
    return 0;
}

static int compare(struct dt_world *world, int replicas, bool norm, bool touched_alone)
{
    float *whole = calloc(2 * PARAMS, sizeof *whole), *rows = calloc(2 * PARAMS, sizeof *rows);
    struct rule rule = {touched_alone, 0};
    int failed = train(world, replicas, norm, false, &rule, whole);
    failed |= rule.calls != 0;
    failed |= train(world, replicas, norm, true, &rule, rows);
    if (dt_world_is_worker(world)) failed |= (rule.calls > 0) != touched_alone;
    failed |= memcmp(whole, rows, 2 * PARAMS * sizeof *whole) != 0;
    if (dt_world_is_bank(world)) failed |= fabsf(whole[130 + 7 * 45]) < 1e-4f;
    if (failed)
        fprintf(stderr, "R = %d, norm %d, touched alone %d: other bits\n", replicas, norm,
                touched_alone);
    free(whole);
    free(rows);
    return failed;
}

int main(void)
{
    static const int replicas[] = {1, 2, 3, 7};
    struct dt_world *world;
    int failures = 0, all;
    if (dt_world_create(&world)) return 1;
    dt_world_watch(world, 20);
    for (size_t i = 0; i < sizeof replicas / sizeof *replicas; i++)
        for (int way = 0; way < 4; way++)
            failures += compare(world, replicas[i], way & 1, way & 2);
    all = failures;
    DT_MPI(MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    if (dt_world_is_bank(world)) printf("test_rows: %s\n", all ? "failed" : "passed");
    dt_world_destroy(world);
    return all != 0;
}
