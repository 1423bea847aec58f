/* The assignment of samples to replicas and steps. */
#include "data/order.h"

#include <stdlib.h>

#include "data/source.h"

/* ==== the order of a replica ================================================================== */

enum { CHUNKS = 0, ROTATION = 1, WINDOWS = 2, REPLICA_BITS = 16 };

/* Returns the random key for one `use` in an epoch: CHUNKS, ROTATION, or WINDOWS + the window. */
static struct dt_rng order_key(const struct dt__order *order, uint64_t epoch, uint64_t use)
{
    return dt__rng_make(order->seed, DT_STREAM_SHUFFLE, order->replica | use << REPLICA_BITS,
                        epoch);
}

static uint64_t order_chunks(const struct dt__order *order)
{
    return order->rows / order->chunk;
}

/* Computes the rotation and the order of the chunks for an epoch. */
static void order_set_epoch(struct dt__order *order, uint64_t epoch)
{
    struct dt_rng rotation = order_key(order, epoch, ROTATION);
    order->epoch = epoch;
    order->at = UINT64_MAX;
    if (order_chunks(order) < 2) return;
    dt__perm_init(&order->chunks, order_chunks(order), order_key(order, epoch, CHUNKS));
    order->rotation = dt__rng_u64(&rotation, 0) % order->rows;
}

void dt__order_init(struct dt__order *order, uint64_t seed, int replica, uint64_t rows,
                    uint64_t window, uint64_t chunk)
{
    *order = (struct dt__order){.seed = seed, .replica = (uint64_t)replica, .rows = rows};
    order->window = window < rows ? window : rows;
    order->chunk = window < rows ? chunk : rows;
    if (rows) order_set_epoch(order, 0);
}

uint64_t dt__order_windows(const struct dt__order *order)
{
    return (order->rows - 1) / order->window + 1;
}

uint64_t dt__order_window_rows(const struct dt__order *order, uint64_t at)
{
    uint64_t begin = at * order->window;
    return order->rows - begin < order->window ? order->rows - begin : order->window;
}

uint64_t dt__order_slot(struct dt__order *order, uint64_t epoch, uint64_t index)
{
    const uint64_t at = index / order->window;
    if (epoch != order->epoch) order_set_epoch(order, epoch);
    if (at != order->at) {
        order->at = at;
        dt__perm_init(&order->within, dt__order_window_rows(order, at),
                      order_key(order, epoch, WINDOWS + at));
    }
    return dt__perm_at(&order->within, index % order->window);
}

uint64_t dt__order_row(struct dt__order *order, uint64_t epoch, uint64_t at, uint64_t slot,
                       uint64_t *run)
{
    uint64_t position = at * order->window + slot, chunks = order_chunks(order);
    uint64_t chunk = position / order->chunk, inside = position % order->chunk;
    if (epoch != order->epoch) order_set_epoch(order, epoch);
    uint64_t size = chunk < chunks ? order->chunk : order->rows % order->chunk;
    if (chunks > 1 && chunk < chunks) chunk = dt__perm_at(&order->chunks, chunk);
    uint64_t row = (chunk * order->chunk + inside + order->rotation) % order->rows;
    *run = size - inside < order->rows - row ? size - inside : order->rows - row;
    return row;
}

/* ==== the plan ================================================================================ */

typedef unsigned __int128 wide;

/* ---- shards --------------------------------------------------------------------------------- */

static dt_status shard_add(struct dt__shard *shard, uint64_t row, uint64_t count)
{
    if (!count) return DT_OK;
    DT_TRY(
        dt__grow(&shard->runs, &shard->capacity, shard->nruns + 1, sizeof *shard->runs, "shards"));
    shard->runs[shard->nruns++] = (struct dt__row_run){row, count};
    shard->rows += count;
    return DT_OK;
}

/* Assigns to each replica a range of equal length of the concatenated files. */
static dt_status plan_assign_ranges(struct dt_plan *plan, const struct dt__row_run *files,
                                    size_t nfiles)
{
    uint64_t at = 0, used = 0; /* rows assigned so far: of all files; of file i */
    size_t i = 0;
    for (unsigned r = 0; r < (unsigned)plan->replicas; r++) {
        struct dt__shard *shard = &plan->shards[r];
        uint64_t take, end = (uint64_t)((wide)plan->samples * (r + 1) / (unsigned)plan->replicas);
        shard->nruns = 0;
        shard->rows = 0;
        for (; at < end && i < nfiles; at += take) {
            take = files[i].count - used < end - at ? files[i].count - used : end - at;
            DT_TRY(shard_add(shard, files[i].row + used, take));
            used += take;
            if (used == files[i].count) i++, used = 0;
        }
    }
    return DT_OK;
}

/* Assigns each file, in permuted order, to the replica that has the fewest rows so far. If a
 * replica then has more than 1.1 times the mean number of rows, assigns equal ranges of rows
 * instead. */
static dt_status plan_assign(struct dt_plan *plan, const struct dt_source *source)
{
    struct dt__row_run *files;
    struct dt_perm perm;
    uint64_t most = 0;
    dt_status status = DT_OK;
    DT_TRY(dt__alloc(source->nfiles, sizeof *files, "files", &files));
    dt__perm_init(&perm, source->nfiles, dt__rng_make(plan->seed, DT_STREAM_FILES, 0, 0));
    for (size_t i = 0; i < source->nfiles && !status; i++) {
        struct dt__shard *least = &plan->shards[0];
        dt__source_file_rows(source, (size_t)dt__perm_at(&perm, i), &files[i].row, &files[i].count);
        for (int r = 1; r < plan->replicas; r++)
            if (plan->shards[r].rows < least->rows) least = &plan->shards[r];
        status = shard_add(least, files[i].row, files[i].count);
        if (least->rows > most) most = least->rows;
    }
    if (!status && (wide)most * (unsigned)plan->replicas * 10 > (wide)plan->samples * 11)
        status = plan_assign_ranges(plan, files, source->nfiles);
    dt_free(files);
    return status;
}

struct dt__row_run dt__shard_run(const struct dt__shard *shard, uint64_t local)
{
    size_t i = 0;
    while (local >= shard->runs[i].count)
        local -= shard->runs[i++].count;
    return (struct dt__row_run){shard->runs[i].row + local, shard->runs[i].count - local};
}

/* ---- the plan ------------------------------------------------------------------------------- */

static int by_rows_order(const void *a, const void *b)
{
    const struct dt__by_rows *x = a, *y = b;
    return x->rows != y->rows ? (x->rows > y->rows) - (x->rows < y->rows) : x->replica - y->replica;
}

/* Sorts the replicas by their number of rows, and lists the kinds. */
static dt_status plan_list_kinds(struct dt_plan *plan)
{
    const size_t replicas = (size_t)plan->replicas;
    DT_TRY(dt__alloc(replicas, sizeof *plan->by_rows, "shards", &plan->by_rows));
    DT_TRY(dt__alloc(replicas, sizeof *plan->kind, "shards", &plan->kind));
    for (int r = 0; r < plan->replicas; r++)
        plan->by_rows[r] = (struct dt__by_rows){plan->shards[r].rows, r};
    qsort(plan->by_rows, replicas, sizeof *plan->by_rows, by_rows_order);
    for (int i = 0; i < plan->replicas; i++) {
        const uint64_t rows = plan->by_rows[i].rows;
        if (i == 0 || rows != plan->by_rows[i - 1].rows)
            plan->kind[plan->kinds++] = (struct dt__kind){.rows = rows, .begin = i};
        plan->kind[plan->kinds - 1].end = i + 1;
    }
    return DT_OK;
}

dt_status dt__plan_create(const struct dt_source *source, uint64_t seed, int replicas,
                          int64_t batch, struct dt_plan **out)
{
    struct dt_plan *plan;
    uint64_t samples = source->rows, rows = (uint64_t)batch;
    if (!samples || replicas < 1 || batch < 0) return dt_fail(DT_EMISMATCH, "no training rows");
    DT_TRY(dt__alloc(1, sizeof *plan, "plan", &plan));
    *plan = (struct dt_plan){.samples = samples, .seed = seed, .replicas = replicas};
    plan->batch = !rows || rows > samples ? samples : rows;
    plan->steps = (samples - 1) / plan->batch + 1;
    dt_status status = dt__alloc((size_t)replicas, sizeof *plan->shards, "shards", &plan->shards);
    if (!status) status = plan_assign(plan, source);
    if (!status) status = plan_list_kinds(plan);
    if (status)
        dt__plan_destroy(plan);
    else
        *out = plan;
    return status;
}

void dt__plan_destroy(struct dt_plan *plan)
{
    if (!plan) return;
    for (int r = 0; plan->shards && r < plan->replicas; r++)
        dt_free(plan->shards[r].runs);
    dt_free(plan->shards);
    dt_free(plan->by_rows);
    dt_free(plan->kind);
    dt_free(plan);
}

uint64_t dt__plan_samples(const struct dt_plan *plan)
{
    return plan->samples;
}

uint64_t dt__plan_steps_per_epoch(const struct dt_plan *plan)
{
    return plan->steps;
}

uint64_t dt__plan_batch(const struct dt_plan *plan)
{
    return plan->batch;
}

uint64_t dt__plan_replica_rows(const struct dt_plan *plan, int replica)
{
    return plan->shards[replica].rows;
}

/* ---- Webster's order ------------------------------------------------------------------------ */

/* Returns how many replicas of a kind have a replica number above r. */
static uint64_t kind_after(const struct dt_plan *plan, const struct dt__kind *kind, int r)
{
    int from = kind->begin, to = kind->end;
    while (from < to) {
        const int middle = from + (to - from) / 2;
        if (plan->by_rows[middle].replica <= r)
            from = middle + 1;
        else
            to = middle;
    }
    return (uint64_t)(kind->end - from);
}

/* Returns the position of sample j of replica r: the number of samples before it. Sample k of
 * another replica, which has s rows, is before it if (2k+1)/(2 s) < (2j+1)/(2 rows), or if the two
 * are equal and the other replica has the lower number. Apart from ties, all replicas of a kind
 * have the same number of such samples. */
static uint64_t webster_position(const struct dt_plan *plan, int r, uint64_t j)
{
    const uint64_t rows = plan->shards[r].rows;
    uint64_t position = j;
    for (int i = 0; i < plan->kinds; i++) {
        const struct dt__kind *kind = &plan->kind[i];
        const wide product = (wide)(2 * j + 1) * kind->rows;
        const uint64_t odd = (uint64_t)(product / rows); /* the greatest 2k+1, or one more */
        const uint64_t others = (uint64_t)(kind->end - kind->begin) - (kind->rows == rows);
        /* Equal keys: the lower replica's comes first, so replicas above r lose ties with r. */
        const uint64_t lost = product % rows == 0 ? kind_after(plan, kind, r) : 0;
        position += (others - lost) * ((odd + 1) / 2) + lost * (odd / 2);
    }
    return position;
}

/* Returns, by binary search, how many of the first n positions of an epoch are samples of replica
 * r. That number differs from the quota n * s_r / S by at most 1 + R * s_r / S, so the search is
 * short. */
static uint64_t webster_count(const struct dt_plan *plan, int r, uint64_t n)
{
    uint64_t rows = plan->shards[r].rows;
    uint64_t quota = (uint64_t)((wide)n * rows / plan->samples);
    uint64_t slack = (uint64_t)((wide)rows * (unsigned)plan->replicas / plan->samples) + 2;
    uint64_t low = quota > slack ? quota - slack : 0;
    uint64_t high = rows - quota > slack ? quota + slack : rows;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (webster_position(plan, r, middle) < n)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint64_t dt__plan_step_rows(const struct dt_plan *plan, uint64_t step)
{
    uint64_t begin = step % plan->steps * plan->batch;
    return plan->samples - begin < plan->batch ? plan->samples - begin : plan->batch;
}

struct dt_local_batch dt__plan_local_batch(const struct dt_plan *plan, uint64_t step, int replica)
{
    uint64_t begin = step % plan->steps * plan->batch;
    uint64_t first = webster_count(plan, replica, begin);
    uint64_t last = webster_count(plan, replica, begin + dt__plan_step_rows(plan, step));
    return (struct dt_local_batch){step / plan->steps, first, last - first};
}

/* The keys of B consecutive positions differ by less than (B + R) / S. So replica r has at most
 * (B + R) s_r / S + 1 of them. */
uint64_t dt__plan_max_local_batch(const struct dt_plan *plan)
{
    uint64_t most = 0;
    for (int r = 0; r < plan->replicas; r++) {
        uint64_t rows = plan->shards[r].rows;
        wide bound = (wide)(plan->batch + (unsigned)plan->replicas) * rows / plan->samples + 1;
        uint64_t count = bound < rows ? (uint64_t)bound : rows;
        if (count > most) most = count;
    }
    return most < plan->batch ? most : plan->batch;
}
