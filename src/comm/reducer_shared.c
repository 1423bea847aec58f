/* What the ranks of a host do in the memory that they share: say that gradients are ready, sum them
 * in slices, and, where one group holds all ranks, update them too: the workers act in the bank's
 * stead, each on its slice or tiles, and the bank sleeps. */
#include <string.h>

#include "base/clones.h"
#include "comm/reducer.h"

/* How often a sleeping bank looks for signals and clocks. */
static const double BANK_NAP_SECS = 0.02;

/* ---- the fixed tree ------------------------------------------------------------------------- */

int dt__tree_split(int a, int b)
{
    int half = 1;
    while (2 * half < b - a)
        half *= 2;
    return a + half;
}

/* out = left + right, (n) each; out may be one of them. */
DT__CLONES
static void floats_add(size_t n, const float *left, const float *right, float *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = left[i] + right[i];
}

const float *dt__tree_sum(struct dt_reducer *x, dt__leaf_fn *leaf, const void *arg, int a, int b,
                          size_t at, size_t n, float (*block)[DT__TREE_BLOCK])
{
    const float *there = leaf(x, arg, a, b, at, n, block);
    if (there) return there;
    int split = dt__tree_split(a, b);
    /* The left sum may rest in block[0] while the right one is made in the levels below. */
    const float *left = dt__tree_sum(x, leaf, arg, a, split, at, n, block);
    const float *right = dt__tree_sum(x, leaf, arg, split, b, at, n, block + 1);
    floats_add(n, left, right, block[0]);
    return block[0];
}

/* dt__leaf_fn: the gradients of replicas of this group. */
static const float *slot_leaf(struct dt_reducer *x, const void *arg, int a, int b, size_t at,
                              size_t n, float (*block)[DT__TREE_BLOCK])
{
    (void)arg, (void)n, (void)block;
    return b - a == 1 ? x->slot[a] + at : NULL;
}

/* dt__leaf_fn: sums of givers, all of them in slots. A lone replica's is rounded where it
 * stands. */
static const float *giver_leaf(struct dt_reducer *x, const void *arg, int a, int b, size_t at,
                               size_t n, float (*block)[DT__TREE_BLOCK])
{
    const int first = x->giver[a].first, end = x->giver[a + 1].first, wire = dt__wire_at(x, at);
    if (b - a > 1) return NULL;
    const float *sum = dt__tree_sum(x, slot_leaf, arg, first, end, at, n, block);
    if (wire)
        dt__wire_round(wire, at, n, sum == block[0] ? block[0] : x->slot[first] + at,
                       x->giver[a].error + at, NULL);
    return sum;
}

int dt__wire_at(const struct dt_reducer *x, size_t at)
{
    return at < x->spec.wire_params ? x->spec.wire : DT_WIRE_F32;
}

/* ---- slices --------------------------------------------------------------------------------- */

struct dt__floats dt__slice(struct dt__floats of, int index, int count, size_t grain)
{
    const size_t base = of.begin - of.begin % grain, units = (of.end - base + grain - 1) / grain;
    return dt__clip(
        of, (struct dt__floats){base + units * (size_t)index / (size_t)count * grain,
                                base + units * ((size_t)index + 1) / (size_t)count * grain});
}

struct dt__floats dt__clip(struct dt__floats floats, struct dt__floats to)
{
    const size_t begin = floats.begin > to.begin ? floats.begin : to.begin;
    const size_t end = floats.end < to.end ? floats.end : to.end;
    return (struct dt__floats){begin < end ? begin : end, end};
}

/* Floats of [at, end) up to the next multiple of DT__TREE_BLOCK. */
static size_t block_length(size_t at, size_t end)
{
    size_t n = DT__TREE_BLOCK - at % DT__TREE_BLOCK;
    return n < end - at ? n : end - at;
}

/* ---- norm ----------------------------------------------------------------------------------- */

static void norm_close(struct dt__norm *norm)
{
    const double *lane = norm->lane;
    norm->norms[norm->block] =
        ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
    memset(norm->lane, 0, sizeof norm->lane);
}

DT__CLONES
void dt__norm_add(struct dt__norm *norm, const float *sum, size_t offset, size_t n)
{
    const struct dt__floats add = dt__clip((struct dt__floats){offset, offset + n}, norm->at);
    for (size_t at = add.begin, end; at < add.end; at = end) {
        end = at + block_length(at, add.end);
        if (at / DT__TREE_BLOCK != norm->block) {
            norm_close(norm);
            norm->block = at / DT__TREE_BLOCK;
        }
        for (size_t i = at; i < end; i++) /* a block begins at a multiple of 8 */
            norm->lane[i & 7] += (double)sum[i - offset] * (double)sum[i - offset];
    }
}

void dt__norm_blocks(struct dt_reducer *x, double *norms, const float *sum, struct dt__floats at)
{
    at = dt__clip(at, (struct dt__floats){0, x->spec.norm_params});
    struct dt__norm norm = {.at = at, .norms = norms, .block = at.begin / DT__TREE_BLOCK};
    const size_t blocks = (at.end + DT__TREE_BLOCK - 1) / DT__TREE_BLOCK - norm.block;
    if (at.begin == at.end) return;
    memset(norms + norm.block, 0, blocks * sizeof *norms);
    for (int s = 0; s < x->bucket[x->spec.buckets].segment; s++) {
        const struct dt__segment *segment = &x->segment[s];
        const struct dt__floats here = dt__clip(segment->at, at);
        if (here.begin == here.end) continue;
        if (segment->kind == DT__ROWS)
            dt__rows_norm(x, segment->index, here, &norm);
        else
            dt__norm_add(&norm, sum + here.begin, here.begin, here.end - here.begin);
    }
    norm_close(&norm);
}

double dt__norm_total(const struct dt_reducer *x, const double *norms)
{
    double total = 0;
    for (size_t b = 0; b < x->norm_blocks; b++)
        total += norms[b];
    return total;
}

/* ---- sums and updates ----------------------------------------------------------------------- */

static const float *sum_all(struct dt_reducer *x, dt__leaf_fn *giver, const void *arg, size_t at,
                            size_t n)
{
    return dt__tree_sum(x, giver, arg, 0, x->spec.givers, at, n, x->block);
}

void dt__floats_sum(struct dt_reducer *x, dt__leaf_fn *giver, const void *arg,
                    struct dt__floats floats, float *out)
{
    for (size_t at = floats.begin, n; at < floats.end; at += n) {
        n = block_length(at, floats.end);
        const float *sum = sum_all(x, giver, arg, at, n);
        if (sum != out + at) memcpy(out + at, sum, n * sizeof *sum);
    }
}

/* Of floats [at, at + n), n <= DT__TREE_BLOCK, with their sum at grad. New weights are made in this
 * core's cache and go out in one run. Other cores hold the old ones, and single lines would be
 * taken back from them one by one, between those of the state: 44 us for 50,000 weights on cores
 * without a common cache, 27 us in runs (measured). */
static void update_block(struct dt_reducer *x, float *const *vectors, size_t at, size_t n,
                         const float *grad, unsigned char *bytes)
{
    const int wire = dt__wire_at(x, at);
    float *weights = vectors[0] + at;
    float *out = wire || x->group_workers > 1 ? x->fresh : weights;
    x->spec.update(x->spec.arg, &x->info, at, n, grad, vectors, out);
    if (wire)
        dt__wire_update(wire, at, n, out, vectors[x->spec.vectors - 1] + at, weights, bytes);
    else if (out != weights)
        memcpy(weights, out, n * sizeof *weights);
}

/* The sum never leaves the cache. */
void dt__floats_update(struct dt_reducer *x, dt__leaf_fn *giver, const void *arg,
                       struct dt__floats floats, const float *sums, float *const *vectors,
                       unsigned char *bytes)
{
    const int wire = dt__wire_at(x, floats.begin);
    for (size_t at = floats.begin, n; at < floats.end; at += n) {
        n = block_length(at, floats.end);
        const float *sum = sums ? sums + at : sum_all(x, giver, arg, at, n);
        unsigned char *to =
            bytes ? bytes + dt__wire_bytes(wire, floats.begin, at - floats.begin) : NULL;
        update_block(x, vectors, at, n, sum, to);
    }
}

/* ---- a group's step ------------------------------------------------------------------------- */

bool dt__group_arrive(struct dt_reducer *x, int ask)
{
    struct dt__control *control = x->control;
    if (ask) atomic_fetch_or(&control->asks[x->tick & 1], ask);
    return dt__event_post(&control->ended, 1) == x->group_done;
}

void dt__group_agreed(struct dt_reducer *x, int asked)
{
    x->agreed = true;
    x->control->agreed_ask[x->tick & 1] = asked;
    dt__event_post(&x->control->agreed, 1);
}

/* Sums of a block, by the tree: of each of the group's parts into the slot of its first replica,
 * rounded if that is all of a giver; or of all of them into the first one's. */
static void sum_block(struct dt_reducer *x, const struct dt__segment *segment, size_t at, size_t n)
{
    const size_t begin = segment->at.begin;
    const int wire = dt__wire_at(x, begin);
    float *first = NULL;
    for (int p = 0; p < x->parts; p++) {
        const struct dt__part part = x->part[p];
        if (part.group != x->group_index) continue;
        const float *sum = dt__tree_sum(x, slot_leaf, NULL, part.first, part.end, at, n, x->block);
        if (x->one_sum && first) {
            floats_add(n, first, sum, first);
            continue;
        }
        const struct dt__giver *giver = &x->giver[part.giver];
        first = x->slot[part.first] + at;
        if (sum != first) memcpy(first, sum, n * sizeof *first);
        if (wire && giver->group == x->group_index)
            dt__wire_round(wire, at, n, first, giver->error + at,
                           giver->given + segment->given + dt__wire_bytes(wire, begin, at - begin));
    }
}

bool dt__group_sum(struct dt_reducer *x)
{
    if (x->worker < 0 || x->buckets_summed == x->spec.buckets) return false;
    const int b = x->spec.buckets - 1 - x->buckets_summed;
    const struct dt__bucket *bucket = &x->bucket[b];
    if (!dt__event_reached(&x->control->bucket[b].ready, x->group_done)) return false;
    for (int s = bucket->segment; s < bucket[1].segment; s++) {
        const struct dt__segment *segment = &x->segment[s];
        const struct dt__floats slice =
            dt__slice(segment->at, x->worker, x->group_workers, DT__TREE_BLOCK);
        if (segment->kind == DT__ROWS) {
            dt__rows_sum_parts(x, segment->index);
            continue;
        }
        for (size_t at = slice.begin, n; at < slice.end; at += n)
            sum_block(x, segment, at, n = block_length(at, slice.end));
    }
    dt__event_post(&x->control->bucket[b].summed, 1);
    x->buckets_summed++;
    return true;
}

/* ---- one group: update ---------------------------------------------------------------------- */

/* The norm needs all sums first: they stay in replica 0's slot, and its blocks give the norm. Sums
 * of touched rows stay where dt__rows_sum leaves them, and are dealt out otherwise than blocks are:
 * all wait for them before they go into the norm. */
static void sum_for_norm(struct dt_reducer *x)
{
    const bool touched = dt__rows_are_touched(x);
    const uint32_t all = x->group_done * (touched ? 2 : 1);
    const struct dt__floats slice = dt__slice((struct dt__floats){0, x->spec.params}, x->worker,
                                              x->group_workers, DT__TREE_BLOCK);
    for (int s = 0; s < x->bucket[x->spec.buckets].segment; s++) {
        const struct dt__floats here = dt__clip(x->segment[s].at, slice);
        if (x->segment[s].kind != DT__ROWS) dt__floats_sum(x, giver_leaf, NULL, here, x->slot[0]);
    }
    if (touched) {
        dt__rows_sum(x);
        dt__event_post(&x->control->normed, 1);
        dt__event_wait(&x->control->normed, all - (uint32_t)x->group_workers, x->world, "sums");
    }
    dt__norm_blocks(x, x->norms, x->slot[0], slice);
    dt__event_post(&x->control->normed, 1);
    dt__event_wait(&x->control->normed, all, x->world, "sums");
    x->info.norm2 = dt__norm_total(x, x->norms);
}

/* Sum over node [a, b) of a tile of a factored matrix, in level[0]: each gradient is made here,
 * from its factors. */
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
    floats_add(tile.rows * tile.columns, level, right, level);
}

/* With the norm it is there already: a tile of what sum_for_norm left. */
static void tile_read(const struct dt_factored *matrix, struct dt_tile tile, const float *sums,
                      float *out)
{
    const float *from = sums + matrix->offset + tile.row * matrix->columns + tile.column;
    for (size_t r = 0; r < tile.rows; r++)
        memcpy(out + r * tile.columns, from + r * matrix->columns, tile.columns * sizeof *out);
}

/* Sum and update of this worker's tiles of a matrix: neither factors' gradients nor their sum leave
 * the cache. */
static void update_tiles(struct dt_reducer *x, int index)
{
    const struct dt_factored *matrix = &x->factored[index];
    const struct dt__floats tiles = /* their numbers */
        dt__slice((struct dt__floats){0, dt_tiles(matrix)}, x->worker, x->group_workers, 1);
    for (size_t t = tiles.begin; t < tiles.end; t++) {
        const struct dt_tile tile = dt_tile_at(matrix, t);
        if (x->spec.norm)
            tile_read(matrix, tile, x->slot[0], x->tiles);
        else
            tile_sum(x, index, 0, x->spec.replicas, tile, x->tiles);
        x->spec.update_tile(x->spec.arg, &x->info, index, tile, x->tiles, x->vectors);
    }
}

/* Sum and update of this worker's share of a segment. */
static void update_segment(struct dt_reducer *x, const struct dt__segment *segment)
{
    const struct dt__floats slice = dt__slice(segment->at, x->worker, x->group_workers, x->grain);
    if (segment->kind == DT__ROWS)
        dt__rows_update(x, segment->index);
    else if (segment->kind == DT__TILED)
        update_tiles(x, segment->index);
    else
        dt__floats_update(x, giver_leaf, NULL, slice, x->spec.norm ? x->slot[0] : NULL, x->vectors,
                          NULL);
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
    const int asked = control->agreed_ask[x->tick & 1];
    double met = dt_clock_secs();
    x->times.wait += met - start;
    if (asked & DT_ASK_VOID) return asked;
    if (x->spec.norm) sum_for_norm(x);
    for (int b = 0; b < x->spec.buckets; b++) {
        for (int s = x->bucket[b].segment; s < x->bucket[b + 1].segment; s++)
            update_segment(x, &x->segment[s]);
        dt__event_post(&control->bucket[b].updated, 1);
    }
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
