/* Gradients of touched rows against the same gradients written out and added serially: weights and
 * optimizer state must have the same bits, with rules that update only touched rows and with rules
 * that update all, with the norm, for several numbers of replicas, on one host and on several.
 *
 * The cases: rows that one list has or that all have; ranges whose rows are wider than a block or a
 * single float; a replica that touches nothing; a worker's part that ends between two rows of a
 * block; a block of the norm with rows and other floats; hosts with different numbers of workers,
 * or none; blocks of several owners that meet in one block of the norm.
 *
 * Fails if a sum has another order, or -0 where the whole gradient has +0. On several hosts, fails
 * if rows are used before the rows of the last step have arrived, a host starts without the
 * optimizer's state, the bank lacks its own host's update, rows do not have the places that their
 * inputs have in the list, or rows of the previous step are used. With a rounded wire, fails if
 * some hosts round a group's sum and others do not, or if it is rounded twice or in another
 * order. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "comm/comm.h"
#include "comm/world.h"
#include "mpi/serial.h"

enum {
    RANGES = 3,
    BUCKETS = 3,
    STEPS = 6,
    SPAN = 4,
    SECOND = 130 + 500 * 45 + 77, /* the offset of the second range, and below that of the third */
    THIRD = SECOND + 9 * 2500,
    PARAMS = THIRD + 3000 + 55 + 100,
    NORM_PARAMS = PARAMS - 20
};
static struct dt_row_range range[RANGES] = {{130, 500, 45, false, .first = 5},
                                            {SECOND, 9, 2500, false, .first = 0},
                                            {THIRD, 3000, 1, false, .first = 2, .most = 400}};
enum {
    INPUTS = 3002,
    ALWAYS = 5
}; /* inputs of all ranges together, and how many rows every worker
                                     * reads */
static const size_t bucket_end[BUCKETS] = {SECOND - 27, THIRD + 3000 + 55, PARAMS};

/* The following trials round the sums of `groups` groups to bf16 if `rounds`. */
static bool rounds;
static int groups = 1;

struct rule {
    bool touched_alone; /* adagrad, which updates only touched rows; else momentum */
    int calls;          /* of apply_rows */
    bool first;         /* whether this is the first worker */
};

/* ---- several hosts -------------------------------------------------------------------------- */

/* Which ranks share memory: all; every other one; each half; none; all but the bank; each third. */
enum place { TOGETHER, IN_TURN, HALVES, ALONE, BANK_ALONE, THIRDS, PLACES } place;
int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *out)
{
    int rank, size;
    if (place == TOGETHER) return PMPI_Comm_split_type(comm, type, key, info, out);
    DT_MPI(MPI_Comm_rank(comm, &rank));
    DT_MPI(MPI_Comm_size(comm, &size));
    const int host[PLACES] = {0, rank % 2, 2 * rank / size, rank, rank > 0, 3 * rank / size};
    return MPI_Comm_split(comm, host[place], key, out);
}

/* ---- gradients and rules -------------------------------------------------------------------- */

static uint32_t mix(uint64_t step, int replica, size_t i)
{
    uint32_t bits =
        (uint32_t)i * 2246822519u ^ (uint32_t)step * 2654435761u ^ (uint32_t)replica * 40503u;
    bits = (bits ^ bits >> 15) * 2246822519u;
    return bits ^ bits >> 13;
}

/* Every fourth replica touches nothing at every third step; all others touch row 7. */
static bool touches(uint64_t step, int replica, int in, size_t row)
{
    if (replica % 4 == 1 && step % 3 == 0) return false;
    return row == 7 || mix(step + 100 * (uint64_t)(in + 1), replica, row) % 11 == 0;
}

/* The gradient depends on the weights, so that a stale or torn read shows. Every fifth value is -0
 * at all replicas. */
static float gradient(uint64_t step, int replica, const float *weights, size_t i)
{
    if (i % 5 == 0) return -0.0f;
    return (float)(mix(step, replica, i) & 0xffff) / 65536 - 0.5f + 0.3f * weights[i];
}

/* Writes a gradient: all floats if `touched` is NULL, else only touched rows, which `touched` then
 * lists, and the floats outside rows. */
static void make_gradient(uint64_t step, int replica, const float *weights,
                          const struct dt_touched *touched, float *grad)
{
    size_t at = 0;
    for (int in = 0; in < RANGES; in++) {
        const struct dt_row_range *r = &range[in];
        for (; at < r->offset; at++)
            grad[at] = gradient(step, replica, weights, at);
        uint32_t count = 0;
        for (size_t row = 0; row < r->rows; row++, at += r->width) {
            const bool touch = touches(step, replica, in, row);
            float *to = grad + r->offset + (touched ? count : row) * r->width;
            for (size_t i = 0; i < r->width && (touch || !touched); i++)
                to[i] = touch ? gradient(step, replica, weights, at + i) : 0;
            if (touched && touch) touched[in].row[count++] = (uint32_t)row;
        }
        if (touched) *touched[in].count = count;
    }
    for (; at < PARAMS; at++)
        grad[at] = gradient(step, replica, weights, at);
}

static void apply_floats(const struct rule *rule, double norm2, size_t n, const float *grad,
                         const float *weights, float *state, float *out)
{
    const float scale = norm2 > 0 ? (float)(1 / sqrt(norm2)) : 1;
    for (size_t i = 0; i < n; i++) {
        const float g = grad[i] * scale;
        /* The sign of momentum shows that of a zero gradient. */
        state[i] = rule->touched_alone ? state[i] + g * g
                                       : copysignf(0.9f * fabsf(state[i]) + fabsf(g), g);
        out[i] =
            weights[i] - 0.1f * (rule->touched_alone ? g / (sqrtf(state[i]) + 1e-10f) : state[i]);
    }
}

/* The first worker is late with the last update, for which a bank on its host must wait. */
static void be_late(const struct rule *rule, const struct dt_update_info *info, size_t offset)
{
    if (rule->first && info->step == STEPS - 1 && offset == THIRD) dt__sleep_secs(20e-3);
}

static void apply(void *arg, const struct dt_update_info *info, size_t offset, size_t n,
                  const float *grad, float *const *vectors, float *out)
{
    be_late(arg, info, offset);
    apply_floats(arg, info->norm2, n, grad, vectors[0] + offset, vectors[1] + offset, out);
}

static void apply_rows(void *arg, const struct dt_update_info *info, const struct dt_row_range *in,
                       const uint32_t *row, size_t count, const float *grad, float *const *vectors)
{
    struct rule *rule = arg;
    be_late(rule, info, in->offset);
    for (size_t i = 0; i < count; i++) {
        const size_t at = in->offset + row[i] * in->width;
        apply_floats(rule, info->norm2, in->width, grad + i * in->width, vectors[0] + at,
                     vectors[1] + at, vectors[0] + at);
    }
    rule->calls++;
}

/* ---- reference ------------------------------------------------------------------------------ */

/* Sets the initial weights and state. */
static void fill(float *weights, float *state)
{
    for (size_t i = 0; i < PARAMS; i++) {
        weights[i] = (float)(mix(77, 0, i) & 0xff) / 1024;
        state[i] = (float)(mix(78, 0, i) & 0xff) / 256;
    }
}

static bool in_rows(size_t at)
{
    for (int in = 0; in < RANGES; in++)
        if (at >= range[in].offset && at < range[in].offset + range[in].rows * range[in].width)
            return true;
    return false;
}

/* Returns the value, plus *error unless `error` is NULL, rounded to a multiple of 2^-7 times its
 * power of two; *error gets the new error. */
static float rounded(float value, float *error)
{
    uint32_t bits;
    float power;
    if (error) value += *error;
    memcpy(&bits, &value, sizeof bits);
    bits &= 0x7f800000u;
    memcpy(&power, &bits, sizeof power);
    const float result =
        value == 0 ? 0 : (float)(rint((double)value / (double)power * 128) / 128 * (double)power);
    if (error) *error = value - result;
    return result;
}

/* Sums over the replicas of each group and rounds: in rows without, elsewhere with the errors of
 * earlier steps. */
static void sum_groups(int replicas, float **grad, float **error, float **given, float *sum)
{
    for (size_t i = 0; i < PARAMS; i++) {
        for (int g = 0; g < groups; g++) {
            const int first = replicas * g / groups, end = replicas * (g + 1) / groups;
            given[g][i] =
                rounded(tree_sum(end - first, grad + first, i), in_rows(i) ? NULL : &error[g][i]);
        }
        sum[i] = tree_sum(groups, given, i);
    }
}

/* Trains serially; `out` (2 PARAMS) gets weights and state. */
static void serial(int replicas, bool norm, const struct rule *rule, float *out)
{
    float *grad[7], *given[7], *error[8], *sum = calloc(PARAMS, sizeof *sum),
                                          *fresh = calloc(PARAMS, sizeof *sum);
    for (int r = 0; r < replicas; r++)
        grad[r] = calloc(PARAMS, sizeof(float));
    for (int g = 0; g < groups; g++)
        given[g] = calloc(PARAMS, sizeof(float));
    for (int g = 0; g <= groups; g++) /* the last one is the error of the update */
        error[g] = calloc(PARAMS, sizeof(float));
    fill(out, out + PARAMS);
    for (uint64_t step = 0; step < STEPS; step++) {
        for (int r = 0; r < replicas; r++)
            make_gradient(step, r, out, NULL, grad[r]);
        if (rounds) sum_groups(replicas, grad, error, given, sum);
        for (size_t i = 0; i < PARAMS && !rounds; i++)
            sum[i] = tree_sum(replicas, grad, i);
        apply_floats(rule, norm ? serial_norm(NORM_PARAMS, sum) : 0, PARAMS, sum, out, out + PARAMS,
                     fresh);
        for (size_t i = 0; i < PARAMS; i++)
            out[i] = !rounds || in_rows(i) ? fresh[i]
                                           : out[i] + rounded(fresh[i] - out[i], &error[groups][i]);
    }
    for (int r = 0; r < replicas; r++)
        free(grad[r]);
    for (int g = 0; g < groups; g++)
        free(given[g]);
    for (int g = 0; g <= groups; g++)
        free(error[g]);
    free(sum);
    free(fresh);
}

/* ---- the same, distributed ------------------------------------------------------------------ */

/* Lists the inputs whose rows this worker reads in `step`; at STEPS it lists none. */
static void list_needs(struct dt_world *world, struct dt_exchange *x, int replicas, uint64_t step)
{
    const struct dt_touched *needs = dt__exchange_needs(x);
    int first, count;
    if (!needs) return;
    *needs->count = 0;
    dt__replicas_assign(world->workers, world->worker, replicas, &first, &count);
    for (uint32_t input = 0; input < INPUTS && step < STEPS && count; input++) {
        bool needed = input < ALWAYS;
        for (int k = 0; k < count * RANGES; k++) {
            const size_t begin = range[k % RANGES].first;
            if (input >= begin && input < begin + range[k % RANGES].rows)
                needed |= touches(step, first + k / RANGES, k % RANGES, input - begin);
        }
        if (needed) needs->row[(*needs->count)++] = input;
    }
}

/* Writes the weights to their places in the flat vector, and NAN where this worker has none. */
static void view_weights(const struct dt_exchange *x, float *view)
{
    const struct dt_touched *inputs = dt__exchange_inputs(x);
    memcpy(view, dt__exchange_weights(x), PARAMS * sizeof *view);
    for (int in = 0; in < RANGES && inputs; in++) {
        const struct dt_row_range *r = &range[in];
        for (size_t i = 0; i < r->rows * r->width; i++)
            view[r->offset + i] = NAN;
        for (uint32_t k = 0; k < *inputs->count; k++)
            if (inputs->row[k] >= r->first && inputs->row[k] < r->first + r->rows)
                memcpy(view + r->offset + (inputs->row[k] - r->first) * r->width,
                       dt__exchange_weights(x) + r->offset + (k - r->first) * r->width,
                       r->width * sizeof *view);
    }
}

static void step_once(struct dt_world *world, struct dt_exchange *x, int replicas, uint64_t step,
                      uint64_t until)
{
    int first, count;
    float *view = malloc(PARAMS * sizeof *view);
    dt__replicas_assign(world->workers, world->worker, replicas, &first, &count);
    dt__exchange_begin(x, step);
    for (int b = 0; b < BUCKETS; b++)
        dt__exchange_need(x, b);
    view_weights(x, view);
    for (int r = first; r < first + count; r++)
        make_gradient(step, r, view, dt__exchange_slot(x, r).touched, dt__exchange_slot(x, r).grad);
    free(view);
    dawdle(world, step);
    for (int b = BUCKETS - 1; b >= 0; b--)
        dt__exchange_ready(x, b);
    list_needs(world, x, replicas, step + 1 < until ? step + 1 : STEPS);
    dt__exchange_end(x, DT_ASK_NONE);
}

static int bank_ask_nothing(void *arg)
{
    (void)arg;
    return DT_ASK_NONE;
}

static struct dt_exchange_times times; /* not read here */

/* Trains with the exchange; on the bank, `out` gets weights and state. */
static int train(struct dt_world *world, int replicas, bool norm, struct rule *rule, float *out)
{
    const struct dt_exchange_spec spec = {.kind = place == TOGETHER ? DT_EXCHANGE_NODE
                                                                    : DT_EXCHANGE_ORDERED,
                                          .params = PARAMS,
                                          .times = &times,
                                          .buckets = BUCKETS,
                                          .bucket_end = bucket_end,
                                          .replicas = replicas,
                                          .wire.kind = rounds ? DT_WIRE_BF16 : DT_WIRE_F32,
                                          .wire.groups = groups,
                                          .vectors = rounds ? 3 : 2,
                                          .norm.needed = norm,
                                          .norm.params = NORM_PARAMS,
                                          .update = apply,
                                          .row_range = range,
                                          .row_ranges = RANGES,
                                          .update_rows = apply_rows,
                                          .arg = rule};
    struct dt_exchange *x;
    for (int i = 0; i < RANGES; i++)
        range[i].touched_alone = rule->touched_alone;
    if (dt__exchange_create(world, &spec, &x)) return 1;
    int failed = !dt__exchange_slot(x, 0).touched;
    if (world->is_bank) fill(dt__exchange_vectors(x)[0], dt__exchange_vectors(x)[1]);
    if (world->is_bank && rounds) memset(dt__exchange_vectors(x)[2], 0, PARAMS * sizeof(float));
    for (int g = 0; g < groups && world->is_bank && rounds; g++)
        memset(dt__exchange_error(x, g), 0, PARAMS * sizeof(float));
    dt__exchange_start(x);
    for (uint64_t step = 0, until; step < STEPS; step = until) {
        until = step + SPAN < STEPS ? step + SPAN : STEPS;
        if (world->is_worker) list_needs(world, x, replicas, step);
        dt__exchange_pull(x);
        if (world->is_worker) {
            for (uint64_t s = step; s < until; s++)
                step_once(world, x, replicas, s, until);
            dt__exchange_settle(x);
        } else {
            dt__exchange_serve_span(x, step, until, bank_ask_nothing, NULL, &step);
        }
        /* the bank may save its values: no rank waits for the others first */
        dt__exchange_gather(x, true);
        for (int v = 0; v < 2 && world->is_bank; v++)
            memcpy(out + v * PARAMS, dt__exchange_vectors(x)[v], PARAMS * sizeof(float));
        dt__ranks_barrier(world->trainers);
    }
    dt__exchange_destroy(x);
    return failed;
}

/* Compares a run with the serial one; *expected caches the result of the latter for all places. */
static int compare(struct dt_world *world, int replicas, bool norm, bool touched_alone,
                   float **expected)
{
    float *out = calloc(2 * PARAMS, sizeof *out);
    struct rule rule = {touched_alone, 0, world->worker == 0};
    int failed = train(world, replicas, norm, &rule, out);
    /* A bank updates rows only if it has no worker on its host. */
    if (world->is_worker || place == BANK_ALONE || place == ALONE)
        failed |= (rule.calls > 0) != touched_alone;
    if (world->is_bank) {
        if (!*expected) {
            *expected = calloc(2 * PARAMS, sizeof **expected);
            serial(replicas, norm, &rule, *expected);
        }
        for (size_t i = 0; i < 2 * PARAMS && !failed; i++) {
            failed = memcmp(*expected + i, out + i, sizeof *out) != 0;
            if (failed)
                fprintf(stderr, "float %zu: %g, expected %g\n", i, (double)out[i],
                        (double)(*expected)[i]);
        }
        failed |= fabsf((*expected)[130 + 7 * 45 + 1] -
                        (float)(mix(77, 0, 130 + 7 * 45 + 1) & 0xff) / 1024) < 1e-4f;
    }
    if (failed)
        fprintf(stderr,
                "place %d, R = %d, norm %d, touched alone %d, %d groups, rounded %d: failed\n",
                place, replicas, norm, touched_alone, groups, rounds);
    free(out);
    return failed;
}

int main(void)
{
    enum { CASES = 4, VARIANTS = 4 };
    static const int replicas[CASES] = {1, 3, 5, 7};
    static float *expected[CASES][VARIANTS][2]; /* kept until the process ends */
    struct dt_world *world;
    int failures = 0, all;
    if (dt_world_create(&world)) return 1;
    dt__world_watch(world, 60);
    for (place = TOGETHER; place < (world->size > 1 ? PLACES : IN_TURN); place++)
        for (int i = 0; i < CASES; i++)
            for (int variant = 0; variant < VARIANTS; variant++) {
                rounds = false, groups = 1;
                failures +=
                    compare(world, replicas[i], variant & 1, variant & 2, &expected[i][variant][0]);
                rounds = true, groups = 1 + (i + variant) % replicas[i];
                failures +=
                    compare(world, replicas[i], variant & 1, variant & 2, &expected[i][variant][1]);
            }
    all = failures;
    DT_MPI(MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    if (world->is_bank) printf("test_rows: %s\n", all ? "failed" : "passed");
    dt_world_destroy(world);
    return all != 0;
}
