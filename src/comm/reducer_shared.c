/* What the ranks of a host do in the memory that they share: say that gradients are ready, sum them in
 * slices, and, where one group holds all ranks, update them too: the workers act in the bank's stead,
 * each on its slice or tiles, and the bank sleeps. */
#include <string.h>

#include "comm/reducer.h"

/* How often a sleeping bank looks for signals and clocks. */
static const double BANK_NAP_SECS = 0.02;

/* ---- a group's step ------------------------------------------------------------------------- */

uint32_t dt__group_all(const struct dt_reducer *x)
{
    return x->tick * (uint32_t)x->group_workers;
}

bool dt__group_arrive(struct dt_reducer *x, int ask)
{
    struct dt__control *control = x->control;
    if (ask) atomic_fetch_or(&control->asks[x->tick & 1], ask);
    return dt__event_post(&control->ended, 1) == dt__group_all(x);
}

void dt__group_agreed(struct dt_reducer *x, int asked)
{
    x->agreed = true;
    x->control->agreed_ask[x->tick & 1] = asked;
    dt__event_post(&x->control->agreed, 1);
}

/* Sums of a block, by the tree: of each of the group's parts into the slot of its first replica, rounded if
 * that is all of a giver; or of all of them into the first one's. */
static void sum_block(struct dt_reducer *x, int bucket, size_t at, size_t n)
{
    const size_t begin = dt__bucket_begin(x, bucket);
    const int wire = dt__wire_at(x, begin);
    float *first = NULL;
    for (int p = 0; p < x->parts; p++) {
        struct dt__part part = x->part[p];
        if (part.group != x->group_index) continue;
        const float *sum = dt__tree_sum((const float *const *)x->slot, NULL, part.first, part.end,
                                        at, n, x->scratch->block);
        float *out = x->slot[part.first] + at;
        if (!x->one_sum || !first) {
            if (sum != out) memcpy(out, sum, n * sizeof *out);
            if (wire && part.whole)
                dt__wire_round(wire, at, n, out, x->error[part.giver] + at,
                               x->given[part.giver] + x->given_place[bucket] +
                                   dt__wire_bytes(wire, begin, at - begin));
            first = out;
            continue;
        }
        for (size_t i = 0; i < n; i++)
            first[i] += sum[i];
    }
}

bool dt__group_sum(struct dt_reducer *x)
{
    if (x->worker < 0 || x->buckets_summed == x->spec.buckets) return false;
    int bucket = x->spec.buckets - 1 - x->buckets_summed;
    struct dt__bucket_events *events = &x->control->bucket[bucket];
    if (!dt__event_reached(&events->ready, dt__group_all(x))) return false;
    for (size_t from, to = dt__bucket_begin(x, bucket); dt__stretch_next(x, bucket, &from, &to);) {
        size_t begin, end;
        dt__slice(from, to, x->worker, x->group_workers, DT__TREE_BLOCK, &begin, &end);
        for (size_t at = begin, n; at < end; at += n)
            sum_block(x, bucket, at, n = dt__block_length(at, end));
    }
    dt__rows_sum_parts(x, bucket);
    dt__event_post(&events->summed, 1);
    x->buckets_summed++;
    return true;
}

void dt__group_ready(struct dt_reducer *x, int bucket)
{
    dt__event_post(&x->control->bucket[bucket].ready, 1);
    while (dt__group_sum(x))
        continue;
}

int dt__group_follow(struct dt_reducer *x, int ask)
{
    double start = dt_clock_secs();
    dt__group_arrive(x, ask);
    for (int b = x->spec.buckets - 1 - x->buckets_summed; b >= 0; b--) {
        dt__event_wait(&x->control->bucket[b].ready, dt__group_all(x), x->world,
                       "the other workers' gradients");
        dt__group_sum(x);
    }
    dt__event_wait(&x->control->agreed, x->tick, x->world, "the other hosts' gradients");
    x->times.network += dt_clock_secs() - start;
    return x->control->agreed_ask[x->tick & 1];
}

/* ---- one group: update ---------------------------------------------------------------------- */

/* dt__giver_fn: of slots in this memory. A lone replica's is rounded where it stands. */
static const float *shared_giver(struct dt_reducer *x, const void *arg, int giver, size_t at,
                                 size_t n, float (*block)[DT__TREE_BLOCK])
{
    (void)arg;
    const int first = dt__giver_begin(x, giver), end = dt__giver_begin(x, giver + 1);
    const float *sum =
        dt__tree_sum((const float *const *)x->slot, NULL, first, end, at, n, block);
    const int wire = dt__wire_at(x, at);
    if (wire)
        dt__wire_round(wire, at, n, sum == block[0] ? block[0] : x->slot[first] + at,
                       x->error[giver] + at, NULL);
    return sum;
}

static const float *tree_block(struct dt_reducer *x, size_t at, size_t n)
{
    return dt__givers_sum(x, shared_giver, NULL, at, n);
}

/* Sums of what of floats [from, to) is no row of touched ones, to replica 0's slot. What is rounded at once
 * is of one bucket. */
static void sum_stretch(struct dt_reducer *x, size_t from, size_t to)
{
    int b = 0;
    for (size_t at = from, n; at < to; at += n) {
        while (x->bucket_end[b] <= at)
            b++;
        n = dt__block_length(at, to < x->bucket_end[b] ? to : x->bucket_end[b]);
        const float *sum = tree_block(x, at, n);
        float *out = x->slot[0] + at;
        for (size_t i = 0; i < n; i++)
            out[i] = sum[i];
    }
}

/* The range of touched rows that comes next; behind the last one an empty range at the end. */
static struct dt_row_range range_at(const struct dt_reducer *x, int index, size_t end)
{
    const struct dt_row_range none = {.offset = end};
    return dt__rows_are_touched(x) && index < x->spec.row_ranges ? x->spec.row_range[index] : none;
}

/* The norm needs all sums first: they stay in replica 0's slot, and its blocks give the norm. Sums of
 * touched rows stay where dt__rows_sum leaves them, and are dealt out otherwise than blocks are: all wait
 * for them before they go into the norm. */
static void sum_for_norm(struct dt_reducer *x)
{
    const bool touched = dt__rows_are_touched(x);
    const uint32_t waits = touched ? 2 : 1;
    const uint32_t all = dt__group_all(x) * waits;
    size_t begin, end;
    dt__slice(0, x->spec.params, x->worker, x->group_workers, DT__TREE_BLOCK, &begin, &end);
    size_t at = begin;
    for (int i = 0; at < end; i++) {
        const struct dt_row_range range = range_at(x, i, end);
        if (range.offset > at) sum_stretch(x, at, range.offset < end ? range.offset : end);
        const size_t behind = range.offset + range.rows * range.width;
        if (behind > at) at = behind;
    }
    if (touched) {
        dt__rows_sum(x);
        dt__event_post(&x->control->normed, 1);
        dt__event_wait(&x->control->normed, all - (uint32_t)x->group_workers, x->world, "sums");
        dt__rows_norm(x, x->slot[0], x->norms, begin, end);
    } else {
        dt__norm_blocks(x, x->norms, x->slot[0], begin, end);
    }
    dt__event_post(&x->control->normed, 1);
    dt__event_wait(&x->control->normed, all, x->world, "sums");
    x->info.norm2 = dt__norm_total(x, x->norms);
}

/* Floats [at, at + n), n <= DT__TREE_BLOCK, with the gradient's sum there.
 * New weights are made in this core's cache and go out in one run. Other cores hold the old ones, and
 * single lines would be taken back from them one by one, between those of the state: 44 us for 50,000
 * weights on cores without a common cache, 27 us in runs (measured). */
static void update_block(struct dt_reducer *x, size_t at, size_t n, const float *grad)
{
    const int wire = dt__wire_at(x, at);
    float *weights = x->vectors[0] + at;
    float *out = wire || x->group_workers > 1 ? x->fresh : weights;
    x->spec.update(x->spec.arg, &x->info, at, n, grad, x->vectors, out);
    if (wire)
        dt__wire_update(wire, at, n, out, x->vectors[x->spec.vectors - 1] + at, weights, NULL);
    else if (out != weights)
        memcpy(weights, out, n * sizeof *weights);
}

/* Sum and update of this worker's slice of floats [from, to), a block at a time: the sum never leaves the
 * cache. */
static void update_stretch(struct dt_reducer *x, size_t from, size_t to)
{
    size_t begin, end;
    dt__slice(from, to, x->worker, x->group_workers, dt__grain(x), &begin, &end);
    for (size_t at = begin, n; at < end; at += n) {
        n = dt__block_length(at, end);
        update_block(x, at, n, x->spec.norm ? x->slot[0] + at : tree_block(x, at, n));
    }
}

/* Sum over node [a, b) of a tile of a factored matrix, in level[0]: each gradient is made here, from its factors. */
static void tile_sum(struct dt_reducer *x, int matrix, int a, int b, struct dt_tile tile,
                     float *level)
{
    if (b - a == 1) {
        dt_status status = x->spec.tile(x->spec.arg, matrix, x->factors[a], tile, level);
        if (status) dt_world_abort(x->world, status);
        return;
    }
    float *right = level + x->most_tile;
    int split = dt__tree_split(a, b);
    tile_sum(x, matrix, a, split, tile, level);
    tile_sum(x, matrix, split, b, tile, right);
    dt__tree_add(tile.rows * tile.columns, level, right, level);
}

/* Sum and update of this worker's tiles of a factored matrix: neither sum nor gradients leave the cache. */
static void update_factored(struct dt_reducer *x, int index)
{
    const struct dt_factored *matrix = &x->factored[index];
    size_t begin, end;
    dt__slice(0, dt_tiles(matrix), x->worker, x->group_workers, 1, &begin, &end);
    for (size_t t = begin; t < end; t++) {
        const struct dt_tile tile = dt_tile_at(matrix, t);
        const size_t floats = tile.rows * tile.columns;
        const size_t run = tile.columns < matrix->columns ? tile.columns : floats;
        tile_sum(x, index, 0, x->spec.replicas, tile, x->tiles);
        for (size_t i = 0, n; i < floats; i += n) {
            const size_t left = run - i % run;
            const size_t row = tile.row + i / tile.columns, column = tile.column + i % tile.columns;
            n = left < DT__TREE_BLOCK ? left : DT__TREE_BLOCK;
            update_block(x, matrix->offset + row * matrix->columns + column, n, x->tiles + i);
        }
    }
}

/* Where the factored matrix that comes next begins; behind the last one `end`. */
static size_t factored_at(const struct dt_reducer *x, int index, size_t end)
{
    const bool more = dt_reducer_factors(x, 0) && index < x->spec.matrices;
    return more && x->factored[index].offset < end ? x->factored[index].offset : end;
}

static void update_slices(struct dt_reducer *x)
{
    int i = 0, factored = 0; /* the next range of rows, and factored matrix */
    if (x->spec.norm) sum_for_norm(x);
    for (int b = 0; b < x->spec.buckets; b++) {
        size_t at = dt__bucket_begin(x, b);
        const size_t end = x->bucket_end[b];
        for (struct dt_row_range range; (range = range_at(x, i, end)).offset < end; i++) {
            update_stretch(x, at, range.offset);
            dt__rows_update(x, i);
            at = range.offset + range.rows * range.width;
        }
        for (size_t next; (next = factored_at(x, factored, end)) < end; factored++) {
            update_stretch(x, at, next);
            update_factored(x, factored);
            at = next + x->factored[factored].rows * x->factored[factored].columns;
        }
        update_stretch(x, at, end);
        dt__event_post(&x->control->bucket[b].updated, 1);
    }
}

/* The last to arrive speaks for all: what was asked by then ends the span behind this step. */
static int shared_end(struct dt_reducer *x, int ask)
{
    struct dt__control *control = x->control;
    double start = dt_clock_secs();
    if (dt__group_arrive(x, ask)) {
        int asked = atomic_exchange(&control->asks[x->tick & 1], 0);
        dt__group_agreed(x, asked | atomic_load(&control->bank_ask));
    } else {
        dt__event_wait(&control->agreed, x->tick, x->world, "the other workers' gradients");
    }
    int asked = control->agreed_ask[x->tick & 1];
    double met = dt_clock_secs();
    if (!(asked & DT_ASK_VOID)) update_slices(x);
    x->times.wait += met - start;
    x->times.update += dt_clock_secs() - met;
    return asked;
}

/* ---- one group: bank ------------------------------------------------------------------------ */

static int shared_serve(struct dt_reducer *x, uint64_t from, uint64_t until, dt_ask_fn *ask,
                        void *arg, uint64_t *out_step)
{
    (void)until; /* the workers know it */
    struct dt__control *control = x->control;
    uint32_t all_settled = x->spans * (uint32_t)x->group_workers;
    uint32_t before = x->tick; /* steps before this span */
    dt_world_heartbeat(x->world, "serving", from);
    dt__watchdog_wait(x->world, "the workers");
    while (!dt__event_wait_for(&control->settled, all_settled, BANK_NAP_SECS))
        atomic_store(&control->bank_ask, ask(arg));
    dt__watchdog_progress(x->world);
    atomic_store(&control->bank_ask, 0);
    x->tick = atomic_load(&control->agreed.count);
    int asked = x->tick == before ? DT_ASK_NONE : control->agreed_ask[x->tick & 1];
    *out_step = from + (x->tick - before) - (asked & DT_ASK_VOID ? 1 : 0);
    return asked;
}

const struct dt__reducer_strategy dt__reducer_shared = {.end = shared_end, .serve = shared_serve};
