/* Async exchange under real MPI. Fails if a gradient is lost, applied twice or torn, if weights
 * change while they are read, or if spans, an early close, workers that leave before it, or clocks
 * go wrong.
 *
 * Every word of every gradient is a function of worker, number and position, and every weight
 * counts its updates, so that a torn or stale word shows anywhere.
 *
 *   test_async shared|window|rows GRADIENTS PARAMS [NAME=VALUE ...]   sets the environment for MPI
 *
 * `rows` runs in shared memory, with gradients that touch only some rows. Floats outside rows, and
 * the rows of the second range, which every gradient updates, count updates, as the state does. The
 * rows of the first range, three in four floats, hold the number of the update that touched them
 * last. So a worker detects rows that its version should not have yet, and the bank detects rows
 * that its version lacks. */
#include <stdlib.h>
#include <string.h>

#include "comm/async.h"
#include "comm/async_slots.h"
#include "mpi/expect.h"

enum { MOST_WORKERS = 64, STALENESS = 5 };

static size_t params;

/* ranges[0]: rows that only a gradient that touches them updates; ranges[1]: rows that every
 * gradient updates. */
enum { WIDTH = 7, RANGES = 2 };
static struct dt_row_range ranges[RANGES];
static bool has_rows;

/* ---- worker --------------------------------------------------------------------------------- */

static size_t range_end(int range)
{
    return ranges[range].offset + ranges[range].rows * ranges[range].width;
}

static float word_of(int worker, uint64_t number, size_t i)
{
    return (float)(((uint64_t)worker * 7919 + number * 104729 + i) & 0xffffff);
}

/* All weights of a slice must be of one version. With rows there is one slice, and its last weight
 * lies outside the rows. */
static void expect_weights(const struct dt_async *async, const float *weights, const char *when)
{
    const struct dt__slice *slice = async->slice;
    float number = 0;
    for (size_t i = 0; i < params; i++) {
        while (i == slice->offset + slice->params)
            slice++;
        number = weights[slice->offset + slice->params - 1];
        bool right = weights[i] == number;
        if (has_rows && i < range_end(0))
            right = weights[i] <= number && weights[i] == weights[i - i % WIDTH];
        if (!right) {
            EXPECT(right, "%s: weight %zu is %g, the last of the slice is %g", when, i,
                   (double)weights[i], (double)number);
            return;
        }
    }
}

/* Returns the next row after `row` that the gradient touches. */
static size_t next_row(int worker, uint64_t number, size_t row)
{
    return row + 1 + ((size_t)worker * 31 + number * 17 + row * 7) % 23;
}

/* Writes a gradient. If `touched` is not NULL, it gets the touched rows of each range, and grad
 * only their words and the words outside rows. */
static void write_gradient(const struct dt_touched *touched, int worker, uint64_t number,
                           float *grad)
{
    size_t at = 0;
    for (int r = 0; touched && r < RANGES; r++) {
        uint32_t count = 0;
        float *to = grad + ranges[r].offset;
        for (; at < ranges[r].offset; at++)
            grad[at] = word_of(worker, number, at);
        for (size_t row = number % 5; row < ranges[r].rows; row = next_row(worker, number, row)) {
            touched[r].row[count++] = (uint32_t)row;
            for (size_t i = 0; i < WIDTH; i++)
                *to++ = word_of(worker, number, ranges[r].offset + row * WIDTH + i);
        }
        *touched[r].count = count;
        at = range_end(r);
    }
    for (; at < params; at++)
        grad[at] = word_of(worker, number, at);
}

/* The world, while the last worker is the slowest and the first one is slow too; else NULL. A
 * worker that waits for the last one applies the first one's gradients meanwhile, and its status
 * must still be "waiting", or the watchdog would blame it. */
static struct dt_world *staggered;

static void expect_waits(struct dt_async *async)
{
    const double until = dt__clock_secs() + 60;
    struct dt_rank_status status;
    for (int r = staggered->worker_rank; r < staggered->size; r++) {
        do {
            dt__async_progress(async);
            dt__world_rank_status(staggered, r, &status);
        } while (r != staggered->rank && !(status.wait[0] && status.idle_secs > 0.2) &&
                 dt__clock_secs() < until);
        EXPECT(r == staggered->rank || status.wait[0], "rank %d, %s, does not appear to wait", r,
               status.phase);
    }
}

static uint64_t work(struct dt_async *async, int worker, uint64_t sent, uint64_t most)
{
    for (uint64_t n = 0; n < most && dt__async_begin(async); n++) {
        const float *weights = dt__async_read(async);
        expect_weights(async, weights, "as read");
        const struct dt_touched *touched = dt__async_touched(async);
        EXPECT(!touched == !has_rows, "a list of touched rows exists: %d", touched != NULL);
        write_gradient(touched, worker, sent, dt__async_grad(async));
        if (sent % 8 == 0) expect_weights(async, weights, "later");
        if (staggered && n < 10 && worker == 0) dt__sleep_secs(0.02);
        if (staggered && n == 2 && worker + 1 == staggered->workers) expect_waits(async);
        dt__async_progress(async);
        struct dt_gradient_info info = {
            .replica = worker, .draw = sent++, .rows = (uint64_t)(weights[params - 1])};
        dt__async_send(async, &info);
    }
    return sent;
}

/* ---- bank ----------------------------------------------------------------------------------- */

/* Updates a slice; the state counts the updates of each parameter. The gradient of rows that were
 * not touched must be zero. */
static void update(void *arg, const struct dt_gradient *part, uint64_t before, size_t offset,
                   size_t n, const float *weights, float *out, float *const *states)
{
    (void)arg;
    int worker = part->worker;
    uint64_t number = part->info->number, torn = 0, wrong = 0;
    const bool rows = has_rows && offset >= ranges[1].offset && offset < range_end(1);
    size_t row = rows ? (offset - ranges[1].offset) / WIDTH : 0, next = number % 5;
    while (rows && next < row)
        next = next_row(worker, number, next);
    for (size_t i = 0; i < n; i++) {
        if (rows && i && i % WIDTH == 0) {
            if (row == next) next = next_row(worker, number, row);
            row++;
        }
        const float all = (float)before;
        torn += part->grad[i] != (!rows || row == next ? word_of(worker, number, i + offset) : 0);
        wrong += weights[i] != all || states[0][i + offset] != all;
        out[i] = weights[i] + 1;
        states[0][i + offset] += 1;
    }
    EXPECT(!torn, "worker %d's gradient %d: %d torn words from %zu on", worker, (int)number,
           (int)torn, offset);
    EXPECT(offset + n < params || part->info->rows == part->info->version,
           "the gradient was not made from version %d", (int)part->info->version);
    EXPECT(part->info->gap <= STALENESS, "clock gap %d", (int)part->info->gap);
    EXPECT(!wrong, "%d of the bank's weights are not %d", (int)wrong, (int)before);
}

/* Updates touched rows; weights and state get the number of this update. */
static void update_rows(void *arg, const struct dt_gradient *part, uint64_t before,
                        const struct dt_row_range *range, const uint32_t *row, size_t count,
                        float *weights, float *const *states)
{
    const int worker = part->worker;
    const uint64_t number = part->info->number;
    uint64_t torn = 0, wrong = 0;
    (void)arg;
    EXPECT(range->offset == ranges[0].offset && range->rows == ranges[0].rows,
           "an update of another range");
    for (size_t k = 0, next = number % 5; k < count; k++) {
        torn += row[k] != next;
        next = next_row(worker, number, row[k]);
        for (size_t i = 0; i < WIDTH; i++) {
            const size_t place = range->offset + row[k] * WIDTH + i;
            torn += part->grad[k * WIDTH + i] != word_of(worker, number, place);
            wrong += weights[place] != states[0][place] || weights[place] > (float)before;
            weights[place] = states[0][place] = (float)(before + 1);
        }
    }
    EXPECT(!torn, "worker %d's gradient %d: %d torn rows or words", worker, (int)number, (int)torn);
    EXPECT(!wrong, "%d of the bank's weights are not those of the last update", (int)wrong);
}

/* Expects that weights and states are complete at the end of a span. */
static void expect_rest(struct dt_async *async, uint64_t step)
{
    const float *weights = dt__async_weights(async);
    expect_weights(async, weights, "after the span");
    EXPECT(weights[params - 1] == (float)step, "weights after the span are not of step %d",
           (int)step);
    EXPECT(!memcmp(weights, dt__async_states(async)[0], params * sizeof *weights), "a row is lost");
    for (size_t i = 0; i < params && !has_rows; i++)
        if (weights[i] != weights[0]) EXPECT(false, "slices differ at %zu", i);
}

/* Serves until the span ends, closing it at update `close_at`. Returns the number of updates
 * done. */
static uint64_t serve(struct dt_async *async, uint64_t step, uint64_t close_at)
{
    static uint64_t next[MOST_WORKERS];
    struct dt_applied applied[3];
    while (!dt__async_over(async)) {
        int n = dt__async_serve(async, 3, applied);
        for (int i = 0; i < n; i++) {
            const struct dt_gradient_info *info = &applied[i].info;
            EXPECT(info->draw == next[applied[i].worker]++, "draw %d is out of order",
                   (int)info->draw);
            EXPECT(info->gap <= STALENESS, "clock gap %d", (int)info->gap);
        }
        step += (uint64_t)n;
        if (step >= close_at) dt__async_close(async);
    }
    return step;
}

/* ---- both ----------------------------------------------------------------------------------- */

/* Runs all spans. Returns how many gradients this worker has sent. */
static uint64_t run(struct dt_world *world, struct dt_async *async, uint64_t gradients)
{
    const bool bank = world->is_bank;
    const uint64_t end[8] = {gradients / 20,    gradients / 2,      gradients / 2 + 1,
                             gradients / 2 + 5, gradients / 2 + 40, gradients / 2 + 41,
                             gradients / 4 * 3, gradients};
    uint64_t step = 0, sent = 0;
    for (int span = 0; span < 8; span++) {
        dt__async_start(async, step, end[span], span == 0);
        bool close = span == 1;
        staggered = span == 6 ? world : NULL;
        if (bank)
            step = serve(async, step, close ? gradients / 4 : UINT64_MAX);
        else
            sent = work(async, world->worker, sent, UINT64_MAX);
        if (bank) EXPECT(step == end[span] || close, "span %d ended early or late", span);
        dt__async_end(async);
        dt__async_gather(async);
        if (bank) expect_rest(async, step);
        dt__ranks_bcast(world->trainers, &step, sizeof step, 0);
        if (!bank) expect_weights(async, dt__async_read(async), "after the span");
        if (!bank)
            EXPECT(dt__async_read(async)[params - 1] == (float)step, "not the newest weights");
    }
    return sent;
}

static void expect_counts(struct dt_async *async, uint64_t gradients)
{
    const struct dt_async_counts *counts = dt__async_count(async);
    if (!counts) return;
    uint64_t histogram = 0;
    for (int i = 0; i < DT_STALENESS_BINS; i++)
        histogram += counts->staleness_histogram[i];
    EXPECT(counts->sent == gradients && counts->applied == gradients && histogram == gradients,
           "%d sent, %d applied", (int)counts->sent, (int)counts->applied);
    for (size_t i = 0; i < counts->slices; i++)
        EXPECT(counts->slice_applied[i] == gradients, "slice %d: %d gradients applied", (int)i,
               (int)counts->slice_applied[i]);
    EXPECT(counts->gap_max <= STALENESS, "clock gap %d", (int)counts->gap_max);
    printf("%s: %d gradients of %zu floats%s, clock gap %d\n", dt__async_memory_name(async),
           (int)counts->applied, params, has_rows ? ", touched rows" : "", (int)counts->gap_max);
}

/* Each worker leaves the span after one gradient, which must not be lost, whether the bank starts
 * to serve at once or `late`; no rank waits for the workers that left. Returns how many gradients
 * this worker has sent. */
static uint64_t leave_early(struct dt_world *world, struct dt_async *async, bool late,
                            uint64_t *step, uint64_t sent)
{
    dt__async_start(async, *step, *step + 1000, false);
    if (world->is_bank) {
        if (late) dt__sleep_secs(0.05);
        uint64_t end = *step;
        for (struct dt_applied applied; end == *step;)
            end += (uint64_t)dt__async_serve(async, 1, &applied);
        dt__async_close(async);
        while (!dt__async_over(async)) {
            struct dt_applied applied;
            end += (uint64_t)dt__async_serve(async, 1, &applied);
        }
        *step = end;
    } else {
        sent = work(async, world->worker, sent, 1);
    }
    dt__async_end(async);
    dt__ranks_bcast(world->trainers, step, sizeof *step, 0);
    return sent;
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
    if (world->workers > 4) active[1] = false;
    has_rows = strcmp(argv[1], "rows") == 0;
    const bool shared = has_rows || strcmp(argv[1], "shared") == 0;
    const size_t rows = params / (4 * WIDTH) - 1;
    ranges[0] = (struct dt_row_range){.rows = 3 * rows, .width = WIDTH, .touched_alone = true};
    ranges[1] = (struct dt_row_range){.offset = range_end(0) + 3, .rows = rows, .width = WIDTH};
    struct dt_async_spec spec = {.params = params,
                                 .states = 1,
                                 .update = update,
                                 .row_range = ranges,
                                 .row_ranges = has_rows ? RANGES : 0,
                                 .update_rows = update_rows,
                                 .staleness = STALENESS,
                                 .active = active,
                                 .owners =
                                     getenv("OWNERS") ? (int)strtol(getenv("OWNERS"), NULL, 10) : 0,
                                 .memory = shared ? DT_ASYNC_SHARED : DT_ASYNC_WINDOW};
    struct dt_async *async;
    double start = dt__clock_secs();
    dt_status status = dt__async_create(world, &spec, &async);
    EXPECT(!status, "%s", dt_error_text());
    if (!status) {
        uint64_t sent = run(world, async, gradients);
        expect_counts(async, gradients);
        sent = leave_early(world, async, false, &gradients, sent);
        leave_early(world, async, true, &gradients, sent);
        expect_counts(async, gradients);
        dt__async_destroy(async);
    }
    if (world->is_bank) printf("%.2f s\n", dt__clock_secs() - start);
    dt_status all = dt__ranks_agree(world->trainers, failures ? DT_EBUG : DT_OK);
    if (world->is_bank) printf("%s\n", all ? "FAILED" : "passed");
    dt_world_destroy(world);
    return all ? 1 : 0;
}
