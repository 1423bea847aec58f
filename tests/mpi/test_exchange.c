/* The exchange against a serial sum, written out for each number of replicas: every kind, uneven
 * replicas, ranks that alternate between two hosts, the norm, ranks that are late, spans of every
 * length, and a span that ends early because of an error or a request of a worker or of the bank;
 * each wire, with groups of replicas that coincide with hosts and that do not; gradients that stay
 * factors, also where memory for the factors is missing.
 *
 * Fails if a slice is left out or updated twice, a gradient is read before it is written or
 * overwritten before it is read, weights are read while they change, the order of a sum depends on
 * ranks, ranks leave a span at different steps, or the blocks or errors of rounding depend on which
 * rank rounds. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "comm/comm.h"
#include "comm/exchange.h"
#include "comm/world.h"
#include "mpi/expect.h"
#include "mpi/serial.h"

enum {
    PARAMS = 150001,
    BUCKETS = 3,
    STEPS = 8,
    SPAN = 5,
    NORM_PARAMS = 149000,
    WIRE_PARAMS = 149990
};
static const size_t bucket_end[BUCKETS] = {100000, 149990, PARAMS};

/* Settings of the following trials: an enum dt_wire, and the number of groups of replicas. */
static struct {
    int wire, groups;
} rounding = {DT_WIRE_F32, 1};

/* The gradient depends on the weights, so that a stale or torn read shows. */
static void make_gradient(uint64_t step, int replica, const float *weights, float *grad)
{
    uint32_t mix = (uint32_t)(step * 2654435761u) ^ (uint32_t)(replica * 40503);
    for (size_t i = 0; i < PARAMS; i++) {
        uint32_t bits = ((uint32_t)i * 2246822519u) ^ mix;
        bits ^= bits >> 15;
        grad[i] = (float)(bits & 0xffff) / 65536 - 0.5f + 0.3f * weights[i];
    }
}

static size_t updated; /* floats that this rank has updated */

static void apply(void *arg, const struct dt_update_info *info, size_t offset, size_t n,
                  const float *grad, float *const *vectors, float *out)
{
    float rate = *(const float *)arg;
    updated += n;
    if (info->norm2 > 0) rate /= (float)sqrt(info->norm2);
    for (size_t i = offset; i < offset + n; i++) {
        vectors[1][i] = 0.9f * vectors[1][i] + grad[i - offset];
        out[i - offset] = vectors[0][i] - rate * vectors[1][i];
    }
}

/* ---- reference ------------------------------------------------------------------------------ */

/* Rounds the value to a multiple of 2^-7 times its power of two. */
static float round_bf16(float value)
{
    uint32_t bits;
    float power;
    memcpy(&bits, &value, sizeof bits);
    bits &= 0x7f800000u;
    memcpy(&power, &bits, sizeof power);
    return value == 0 ? 0
                      : (float)(rint((double)value / (double)power * 128) / 128 * (double)power);
}

/* Adds the errors to the values, rounds these, and keeps the new errors. Blocks end at multiples of
 * 256 and at the ends of buckets. */
static void round_vector(float *values, float *error)
{
    int bucket = 0;
    for (size_t at = 0, end; rounding.wire && at < WIRE_PARAMS; at = end) {
        float most = 0;
        while (bucket_end[bucket] <= at)
            bucket++;
        end = (at / 256 + 1) * 256 < bucket_end[bucket] ? (at / 256 + 1) * 256 : bucket_end[bucket];
        for (size_t i = at; i < end; i++)
            most = fmaxf(most, fabsf(values[i] += error[i]));
        for (size_t i = at; i < end; i++) {
            float value = values[i], scale = most / 127;
            values[i] = rounding.wire == DT_WIRE_BF16 ? round_bf16(value)
                        : most > 0                    ? rintf(value * (127 / most)) * scale
                                                      : 0;
            error[i] = value - values[i];
        }
    }
}

/* Trains serially. `vectors` are the weights, the state and, with a wire, the rounding error of the
 * update; `error` has the rounding error of each group's sum. */
static void serial(int replicas, int steps, bool norm, float rate, float **vectors, float **error)
{
    float **grad = calloc((size_t)replicas, sizeof *grad), *sum = calloc(PARAMS, sizeof *sum);
    float *given[7], *fresh = calloc(PARAMS, sizeof *fresh);
    for (int r = 0; r < replicas; r++)
        grad[r] = calloc(PARAMS, sizeof **grad);
    for (int g = 0; g < rounding.groups; g++)
        given[g] = calloc(PARAMS, sizeof(float));
    for (int step = 0; step < steps; step++) {
        for (int r = 0; r < replicas; r++)
            make_gradient((uint64_t)step, r, vectors[0], grad[r]);
        for (int g = 0; g < rounding.groups; g++) {
            int first = replicas * g / rounding.groups, end = replicas * (g + 1) / rounding.groups;
            for (size_t i = 0; i < PARAMS; i++)
                given[g][i] = tree_sum(end - first, grad + first, i);
            round_vector(given[g], error[g]);
        }
        for (size_t i = 0; i < PARAMS; i++)
            sum[i] = tree_sum(rounding.groups, given, i);
        const struct dt_update_info info = {.step = (uint64_t)step,
                                            .norm2 = norm ? serial_norm(NORM_PARAMS, sum) : 0};
        apply(&rate, &info, 0, PARAMS, sum, vectors, fresh);
        for (size_t i = 0; i < PARAMS && rounding.wire; i++)
            sum[i] = fresh[i] - vectors[0][i];
        if (rounding.wire) round_vector(sum, vectors[2]);
        for (size_t i = 0; i < PARAMS; i++)
            vectors[0][i] = rounding.wire && i < WIRE_PARAMS ? vectors[0][i] + sum[i] : fresh[i];
    }
    for (int g = 0; g < rounding.groups; g++)
        free(given[g]);
    free(fresh);
    for (int r = 0; r < replicas; r++)
        free(grad[r]);
    free(grad);
    free(sum);
}

/* ---- factors -------------------------------------------------------------------------------- */

/* A matrix in the first bucket, whose last tiles are cut at the right and lower edges. Its factors
 * are the gradient itself: the tiles that are summed must have the values that a worker gave in
 * this step. */
enum { ROWS = 300, COLUMNS = 200 };
static const struct dt_factored matrix = {.offset = 1234,
                                          .rows = ROWS,
                                          .columns = COLUMNS,
                                          .tile_rows = 64,
                                          .tile_columns = 128,
                                          .bytes = ROWS * COLUMNS * sizeof(float)};
/* The same matrix, with more bytes of factors than /dev/shm has. */
static const struct dt_factored large = {.offset = 1234,
                                         .rows = ROWS,
                                         .columns = COLUMNS,
                                         .tile_rows = 64,
                                         .tile_columns = 128,
                                         .bytes = (size_t)1 << 40};
static const struct dt_factored *factored; /* the matrix of the following trials; NULL: none */
static float *copies;                      /* (ROWS, COLUMNS) that all ranks share; NULL: gradients
                                            * of matrices are whole */

/* Moves the gradient of the matrix to the factors; the NAN in its place show if it is read from
 * there. */
static void give_factors(float *grad, float *factors)
{
    memcpy(factors, grad + matrix.offset, matrix.bytes);
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        grad[matrix.offset + i] = NAN;
}

static dt_status make_tile(void *arg, int index, const void *factors, struct dt_tile tile,
                           float *out)
{
    (void)arg;
    EXPECT(index == 0, "index of matrix: %d", index);
    for (size_t r = 0; r < tile.rows; r++)
        memcpy(out + r * tile.columns,
               (const float *)factors + (tile.row + r) * COLUMNS + tile.column,
               tile.columns * sizeof(float));
    return DT_OK;
}

/* Updates a tile row by row; the copies are the negatives of the weights. */
static void apply_tile(void *arg, const struct dt_update_info *info, int index, struct dt_tile tile,
                       const float *grad, float *const *vectors)
{
    EXPECT(index == 0, "index of matrix: %d", index);
    for (size_t r = 0; r < tile.rows; r++) {
        const size_t at = (tile.row + r) * COLUMNS + tile.column;
        float *weights = vectors[0] + matrix.offset + at;
        apply(arg, info, matrix.offset + at, tile.columns, grad + r * tile.columns, vectors,
              weights);
        for (size_t c = 0; copies && c < tile.columns; c++)
            copies[at + c] = -weights[c];
    }
}

static void expect_copies(const float *weights, int step)
{
    size_t wrong = 0;
    for (size_t i = 0; copies && step > 0 && i < ROWS * COLUMNS; i++)
        wrong += copies[i] != -weights[matrix.offset + i];
    EXPECT(wrong == 0, "step %d: %zu copies are not those of the weights", step, wrong);
}

/* ---- no shared memory ----------------------------------------------------------------------- */

/* The resource that is missing: none; space in /dev/shm; or, for the last rank alone, a file, or
 * pages although there seemed to be space. Each rank is then a separate node. */
static enum { SPACE, NO_SPACE, NO_FILE, NO_PAGES } memory;
static int refused; /* pages that were refused */

static bool is_refused(int what)
{
    int rank, size;
    DT_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    DT_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
    return (int)memory == what && rank == size - 1;
}

int __real_posix_fallocate(int fd, off_t at, off_t bytes);
int __wrap_posix_fallocate(int fd, off_t at, off_t bytes);
int __wrap_posix_fallocate(int fd, off_t at, off_t bytes)
{
    if (!is_refused(NO_PAGES)) return __real_posix_fallocate(fd, at, bytes);
    refused++;
    return ENOSPC;
}

int __real_statvfs(const char *path, struct statvfs *out);
int __wrap_statvfs(const char *path, struct statvfs *out);
int __wrap_statvfs(const char *path, struct statvfs *out)
{
    int result = __real_statvfs(path, out);
    if (memory == NO_SPACE) out->f_bavail = 0;
    return result;
}

int __real_open(const char *name, int flags, ...);
int __wrap_open(const char *name, int flags, ...);
int __wrap_open(const char *name, int flags, ...)
{
    if (!is_refused(NO_FILE)) return __real_open(name, flags, S_IRUSR | S_IWUSR);
    errno = EMFILE;
    return -1;
}

/* ---- several hosts -------------------------------------------------------------------------- */

/* Ranks alternate between two hosts, as with `mpirun --map-by node`, so the ranks of both hosts
 * alternate. */
static bool in_turn;
int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *out)
{
    int rank;
    if (!in_turn) return PMPI_Comm_split_type(comm, type, key, info, out);
    DT_MPI(MPI_Comm_rank(comm, &rank));
    return MPI_Comm_split(comm, rank % 2, key, out);
}

/* Bytes of sums and weights that this rank has sent. */
static size_t sent;
int MPI_Isend(const void *bytes, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *out)
{
    if (tag == DT__TAG_SUMS || tag == DT__TAG_WEIGHTS) sent += (size_t)n;
    return PMPI_Isend(bytes, n, type, to, tag, comm, out);
}

/* ---- the same, distributed ------------------------------------------------------------------ */

struct trial {
    int kind, replicas;
    bool norm;
    int stop_step, stop_ask; /* the step at which the last worker asks; -1: it does not */
    int bank_ask;            /* what the bank asks for in the first span */
    bool alone;              /* each rank is a separate node, with the fixed tree */
};

static int bank_asks(void *arg)
{
    return ((const struct trial *)arg)->bank_ask;
}

/* A step computes for a while after its gradients are ready, until the exchange between hosts has
 * finished. */
static bool long_steps;

/* Waits until the new weights arrive; they change only where a gradient is not 0. */
static void compute_on(struct dt_exchange *x, float first, float last)
{
    const float *weights = dt__exchange_weights(x);
    const double start = dt__clock_secs();
    while ((weights[0] == first || weights[PARAMS - 1] == last) && dt__clock_secs() - start < 60) {
        dt__exchange_advance(x);
        dt__sleep_secs(1e-4);
    }
    EXPECT(weights[0] != first && weights[PARAMS - 1] != last, "no new weights in a long step");
}

/* Weights must not change until all workers of a host are ready, even those without a replica. */
static void expect_rest(const struct dt_exchange *x)
{
    static float before[PARAMS];
    const float *weights = dt__exchange_weights(x);
    memcpy(before, weights, sizeof before);
    dt__sleep_secs(2e-3);
    EXPECT(!memcmp(before, weights, sizeof before), "weights changed under an idle worker");
}

/* A rank that continues after a wait must not appear to wait still: the watchdog would blame
 * another one. */
static void expect_awake(struct dt_world *world)
{
    struct dt_rank_status own;
    dt__world_rank_status(world, world->rank, &own);
    EXPECT(!own.wait[0], "after a step a rank appears to wait for %s", own.wait);
}

static int worker_step(struct dt_world *world, struct dt_exchange *x, const struct trial *trial,
                       int step)
{
    int first, count;
    dt__replicas_assign(world->workers, world->worker, trial->replicas, &first, &count);
    dt__exchange_begin(x, (uint64_t)step);
    for (int b = 0; b < BUCKETS; b++)
        dt__exchange_need(x, b);
    expect_copies(dt__exchange_weights(x), step);
    for (int r = first; r < first + count; r++) {
        const struct dt_slot slot = dt__exchange_slot(x, r);
        make_gradient((uint64_t)step, r, dt__exchange_weights(x), slot.grad);
        if (slot.factors) give_factors(slot.grad, slot.factors);
    }
    if (!count) expect_rest(x);
    dawdle(world, (uint64_t)step);
    const float before = dt__exchange_weights(x)[0], after = dt__exchange_weights(x)[PARAMS - 1];
    for (int b = BUCKETS - 1; b >= 0; b--) {
        dt__exchange_ready(x, b);
        if (b == BUCKETS / 2)
            dawdle(world, (uint64_t)step + STEPS); /* at this point sums exist,
                                                                      * but their norm does not */
    }
    if (long_steps) compute_on(x, before, after);
    bool last = world->worker == world->workers - 1;
    const int asked =
        dt__exchange_end(x, last && step == trial->stop_step ? trial->stop_ask : DT_ASK_NONE);
    expect_awake(world);
    return asked;
}

static int run_span(struct dt_world *world, struct dt_exchange *x, const struct trial *trial,
                    uint64_t *step, uint64_t until)
{
    int asked = DT_ASK_NONE;
    if (!world->is_worker)
        return dt__exchange_serve_span(x, *step, until, bank_asks, (void *)(uintptr_t)trial, step);
    while (*step < until && !asked) {
        asked = worker_step(world, x, trial, (int)*step);
        if (!(asked & DT_ASK_ERROR)) ++*step;
    }
    dt__exchange_settle(x);
    return asked;
}

static double distance(const float *a, const float *b)
{
    double worst = 0;
    for (size_t i = 0; i < PARAMS; i++) {
        double off = fabs((double)a[i] - (double)b[i]);
        if (!(off <= worst)) worst = off;
    }
    return worst;
}

/* Returns the vectors and errors of the serial sum, which are computed once for all trials that
 * share them. */
static float **serial_once(const struct trial *trial, int steps, float rate)
{
    struct known {
        int wire, groups, replicas, steps;
        bool norm;
        float *vectors[10];
        struct known *next;
    };
    static struct known *first;
    struct known *known = first;
    while (known && (known->wire != rounding.wire || known->groups != rounding.groups ||
                     known->steps != steps || known->replicas != trial->replicas ||
                     known->norm != trial->norm))
        known = known->next;
    if (known) return known->vectors;
    known = calloc(1, sizeof *known);
    *known = (struct known){
        rounding.wire, rounding.groups, trial->replicas, steps, trial->norm, {NULL}, first};
    for (int v = 0; v < 10; v++)
        known->vectors[v] = calloc(PARAMS, sizeof(float));
    serial(trial->replicas, steps, trial->norm, rate, known->vectors, known->vectors + 3);
    first = known;
    return known->vectors;
}

/* Compares weights, optimizer state and rounding errors with those of the serial sum. */
static void compare(const struct trial *trial, struct dt_exchange *x, int steps, float rate)
{
    float **expected = serial_once(trial, steps, rate), *const *vectors = dt__exchange_vectors(x);
    double limit = trial->kind == DT_EXCHANGE_REDUCE ? 2e-5 : 0;
    for (int v = 0; v < 3 + rounding.groups; v++) {
        if (v > 1 && !rounding.wire) break;
        double off = distance(expected[v], v < 3 ? vectors[v] : dt__exchange_error(x, v - 3));
        EXPECT(off <= limit, "kind %d, R = %d, norm %d, wire %d of %d, vector %d: off by %g",
               trial->kind, trial->replicas, trial->norm, rounding.wire, rounding.groups, v, off);
    }
}

static struct dt_exchange_times times; /* not read here */

static struct dt_exchange_spec spec_of(const struct trial *trial, float *rate)
{
    memory = trial->alone ? (unsigned)(NO_SPACE + trial->replicas % 3) : SPACE;
    return (struct dt_exchange_spec){.kind = trial->alone ? DT_EXCHANGE_AUTO : trial->kind,
                                     .params = PARAMS,
                                     .times = &times,
                                     .buckets = BUCKETS,
                                     .bucket_end = bucket_end,
                                     .replicas = trial->replicas,
                                     .wire.kind = rounding.wire,
                                     .wire.groups = rounding.groups,
                                     .wire.params = WIRE_PARAMS,
                                     .vectors = rounding.wire ? 3 : 2,
                                     .norm.needed = trial->norm,
                                     .norm.params = NORM_PARAMS,
                                     .factored = factored,
                                     .matrices = factored != NULL,
                                     .tile = make_tile,
                                     .update_tile = apply_tile,
                                     .copies = factored ? ROWS * COLUMNS * sizeof *copies : 0,
                                     .update = apply,
                                     .arg = rate};
}

static void try_exchange(struct dt_world *world, const struct trial *trial)
{
    float rate = 0.01f;
    struct dt_exchange_spec spec = spec_of(trial, &rate);
    struct dt_exchange *x;
    dt_status status = dt__exchange_create(world, &spec, &x);
    EXPECT(!status, "%s", dt_error_text());
    copies = dt__exchange_copies(x);
    for (int v = 0; v < spec.vectors && world->is_bank; v++)
        memset(dt__exchange_vectors(x)[v], 0, PARAMS * sizeof(float));
    for (int g = 0; g < spec.wire.groups && spec.wire.kind && world->is_bank; g++)
        memset(dt__exchange_error(x, g), 0, PARAMS * sizeof(float));
    dt__exchange_start(x);
    uint64_t step = 0;
    int asked = DT_ASK_NONE;
    while (step < STEPS && !asked) {
        uint64_t until = step + SPAN < STEPS ? step + SPAN : STEPS;
        asked = run_span(world, x, trial, &step, until);
        if (step >= STEPS || asked) dt__exchange_gather(x, true);
        dt__ranks_barrier(world->trainers);
    }
    EXPECT(asked == (trial->stop_step < 0 ? DT_ASK_NONE : trial->stop_ask), "asked %d", asked);
    int expected =
        trial->stop_step < 0 ? STEPS : trial->stop_step + !(trial->stop_ask & DT_ASK_ERROR);
    EXPECT(step == (uint64_t)expected, "ended at step %d", (int)step);
    if (world->is_bank && !(asked & DT_ASK_ERROR)) compare(trial, x, (int)step, rate);
    dt__exchange_destroy(x);
}

/* The first rank of a node writes between two barriers; all read after the second one. */
static void try_barrier(struct dt_world *world)
{
    float rate = 0;
    const struct trial trial = {.kind = DT_EXCHANGE_NODE, .replicas = 1};
    struct dt_exchange_spec spec = spec_of(&trial, &rate);
    struct dt_exchange *x;
    if (!world->is_worker) return;
    spec.workers = world->workers;
    dt_status status = dt__exchange_create(world, &spec, &x);
    EXPECT(!status, "%s", dt_error_text());
    EXPECT(dt__exchange_is_first(x) == (world->worker == 0), "the wrong rank is first");
    for (int i = 1; i <= 200; i++) {
        dt__exchange_barrier(x);
        if (i % 20 == 0) dawdle(world, (uint64_t)i);
        if (dt__exchange_is_first(x)) dt__exchange_vectors(x)[0][PARAMS - 1] = (float)i;
        dt__exchange_barrier(x);
        float seen = dt__exchange_weights(x)[PARAMS - 1];
        EXPECT(seen == (float)i, "value %g after barrier %d", (double)seen, i);
    }
    dt__exchange_destroy(x);
}

/* The bank's request ends a span long before its last step. */
static void try_bank_ask(struct dt_world *world, int kind, bool alone)
{
    float rate = 0.01f;
    const struct trial trial = {kind, 3, false, -1, 0, DT_ASK_SYNC, alone};
    struct dt_exchange_spec spec = spec_of(&trial, &rate);
    struct dt_exchange *x;
    uint64_t step = 0;
    const uint64_t far = 100000;
    EXPECT(!dt__exchange_create(world, &spec, &x), "%s", dt_error_text());
    copies = dt__exchange_copies(x);
    dt__exchange_start(x);
    int asked = run_span(world, x, &trial, &step, far);
    EXPECT(asked == DT_ASK_SYNC, "asked %d", asked);
    EXPECT(step < far, "the span ended only at step %d", (int)step);
    dt__exchange_destroy(x);
}

/* A rank's request is granted once: the next span continues to its end. */
static void try_ask_once(struct dt_world *world, int kind, bool alone)
{
    float rate = 0.01f;
    const struct trial trial = {kind, 3, false, 2, DT_ASK_SYNC, 0, alone};
    struct dt_exchange_spec spec = spec_of(&trial, &rate);
    struct dt_exchange *x;
    uint64_t step = 0;
    EXPECT(!dt__exchange_create(world, &spec, &x), "%s", dt_error_text());
    copies = dt__exchange_copies(x);
    dt__exchange_start(x);
    int asked = run_span(world, x, &trial, &step, STEPS);
    EXPECT(asked == DT_ASK_SYNC && step == 3, "asked %d at step %d", asked, (int)step);
    dt__ranks_barrier(world->trainers);
    asked = run_span(world, x, &trial, &step, STEPS);
    EXPECT(asked == DT_ASK_NONE && step == STEPS, "asked %d at step %d", asked, (int)step);
    dt__exchange_destroy(x);
}

/* Tries each wire on one host, on two hosts between which ranks alternate, and with each rank as a
 * separate node. */
static void try_wires(struct dt_world *world)
{
    const struct {
        int wire, replicas, groups;
        bool norm;
    } cases[] = {{DT_WIRE_BF16, 5, 2, false}, {DT_WIRE_BF16, 7, 7, true},
                 {DT_WIRE_Q8, 1, 1, false},   {DT_WIRE_Q8, 6, 3, true},
                 {DT_WIRE_Q8, 7, 1, false},   {DT_WIRE_Q8, 5, 2, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int place = 0; place < 3; place++) {
            rounding.wire = cases[i].wire;
            rounding.groups = cases[i].groups;
            in_turn = place == 1;
            try_exchange(world, &(struct trial){DT_EXCHANGE_ORDERED, cases[i].replicas,
                                                cases[i].norm, -1, 0, 0, place == 2});
        }
    rounding.wire = DT_WIRE_F32;
    rounding.groups = 1;
    in_turn = false;
}

/* Gradients that stay factors: with one and with several replicas per worker, with idle workers,
 * with the norm, on two hosts, where gradients are whole, and without memory for factors, where
 * gradients are whole too. */
static void try_factors(struct dt_world *world)
{
    const int replicas[] = {1, 3, 7};
    for (size_t i = 0; i < sizeof replicas / sizeof *replicas; i++)
        for (int norm = 0; norm < 2; norm++) {
            factored = &matrix;
            try_exchange(world,
                         &(struct trial){DT_EXCHANGE_NODE, replicas[i], norm, -1, 0, 0, false});
            factored = &large;
            if (world->size > 1) /* alone, a process needs no shared memory */
                try_exchange(world,
                             &(struct trial){DT_EXCHANGE_NODE, replicas[i], norm, -1, 0, 0, false});
        }
    factored = &matrix;
    try_exchange(world, &(struct trial){DT_EXCHANGE_NODE, 3, false, 6, DT_ASK_ERROR, 0, false});
    in_turn = true;
    try_exchange(world, &(struct trial){DT_EXCHANGE_ORDERED, 5, false, -1, 0, 0, false});
    in_turn = false;
    factored = NULL;
}

/* Checks that all workers of two hosts with two workers each, between which replicas alternate,
 * update the same number of floats and send the same number of bytes: the sums of two partial sums
 * per host, and weights. The bank sends nothing. */
static void share_work(struct dt_world *world)
{
    if (world->workers != 4) return;
    in_turn = true;
    for (int norm = 0; norm < 2; norm++) {
        updated = sent = 0;
        try_exchange(world, &(struct trial){DT_EXCHANGE_ORDERED, 4, norm, -1, 0, 0, false});
        const double floats = (double)updated / STEPS / PARAMS,
                     vectors = (double)sent / STEPS / (4 * PARAMS);
        const double fraction =
            world->is_worker ? 0.25 : 0; /* the bank's serial reference updates all */
        EXPECT(!world->is_worker || fabs(floats - fraction) < 0.025,
               "this rank updates %g of the vector", floats);
        EXPECT(fabs(vectors - 3 * fraction) < 0.05, "this rank sends %g vectors per step", vectors);
    }
    in_turn = false;
}

int main(void)
{
    struct dt_world *world;
    if (dt_world_create(&world)) return 1;
    dt__world_watch(world, 60);
    const int replicas[] = {1, 2, 3, 5, 6, 7};
    for (size_t i = 0; i < sizeof replicas / sizeof *replicas; i++)
        for (int kind = DT_EXCHANGE_REDUCE; kind <= DT_EXCHANGE_ORDERED; kind++)
            for (int norm = 0; norm < 2; norm++)
                try_exchange(world, &(struct trial){kind, replicas[i], norm, -1, 0, 0, false});
    for (int kind = DT_EXCHANGE_REDUCE; kind <= DT_EXCHANGE_ORDERED; kind++) {
        try_ask_once(world, kind, false);
        try_exchange(world, &(struct trial){kind, 3, false, 6, DT_ASK_STOP, 0, false});
        try_exchange(world, &(struct trial){kind, 3, false, 6, DT_ASK_ERROR, 0, false});
    }
    for (int kind = DT_EXCHANGE_REDUCE; kind <= DT_EXCHANGE_ORDERED && world->size > 1; kind++)
        try_bank_ask(world, kind, false);
    for (size_t i = 0; i < sizeof replicas / sizeof *replicas; i++)
        for (int norm = 0; norm < 2; norm++)
            try_exchange(world,
                         &(struct trial){DT_EXCHANGE_ORDERED, replicas[i], norm, -1, 0, 0, true});
    try_exchange(world, &(struct trial){DT_EXCHANGE_ORDERED, 3, false, 6, DT_ASK_STOP, 0, true});
    try_exchange(world, &(struct trial){DT_EXCHANGE_ORDERED, 3, true, 6, DT_ASK_ERROR, 0, true});
    try_ask_once(world, DT_EXCHANGE_ORDERED, true);
    if (world->size > 1) try_bank_ask(world, DT_EXCHANGE_ORDERED, true);
    long_steps = world->size > 2; /* with one worker, the update comes only at the end of the
                                   * step */
    for (int norm = 0; norm < 2 && long_steps; norm++)
        try_exchange(world, &(struct trial){DT_EXCHANGE_ORDERED, 5, norm, -1, 0, 0, true});
    long_steps = false;
    memory = SPACE;
    EXPECT(world->rank < world->size - 1 || world->size == 1 || refused, "no pages were reserved");
    share_work(world);
    try_barrier(world);
    try_wires(world);
    try_factors(world);
    in_turn = true;
    for (size_t i = 0; i < sizeof replicas / sizeof *replicas; i++)
        for (int norm = 0; norm < 2; norm++)
            try_exchange(world,
                         &(struct trial){DT_EXCHANGE_ORDERED, replicas[i], norm, -1, 0, 0, false});
    int all = failures;
    DT_MPI(MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    if (world->is_bank) printf("test_exchange: %s\n", all ? "failed" : "passed");
    dt_world_destroy(world);
    return all != 0;
}
