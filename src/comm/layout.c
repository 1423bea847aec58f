/* Who owns what (exchange.h has the figure). In the order of the file: replicas fall into subtrees
 * and groups; nodes get shares of the vector; buckets fall into segments; segments are cut into the
 * owners' slices, and these into chunks. All ranks make the same tables from the same facts,
 * without messages. */
#include <math.h>
#include <string.h>

#include "comm/exchange.h"

/* ---- the fixed tree ------------------------------------------------------------------------- */

int dt__tree_split(int a, int b)
{
    int half = 1;
    while (2 * half < b - a)
        half *= 2;
    return a + half;
}

int dt__replicas_split(const struct dt_exchange *x, int a, int b)
{
    const int first = x->group_of[a], last = x->group_of[b - 1];
    return first == last ? dt__tree_split(a, b) : x->group[dt__tree_split(first, last + 1)].first;
}

/* Appends the subtrees of range [first, end) of the tree: the largest ranges with one node, and of
 * one group. A node's need not stand in a row: ranks may go to hosts in turn. */
static void find_subtrees(struct dt_exchange *x, int first, int end)
{
    const int node = x->node_of[first], group = x->group_of[first];
    int r = first;
    while (r < end && x->node_of[r] == node && x->group_of[r] == group)
        r++;
    if (r == end) {
        const bool whole = dt__is_group(x, first, end), own = node == x->node;
        x->group[group].node = whole ? node : -1;
        x->subtree_at[first] = x->subtrees;
        x->subtree[x->subtrees++] =
            (struct dt__subtree){first, end, node, whole, own ? x->own_wholes : x->others};
        x->subtrees_of[node]++;
        x->own_wholes += own && whole;
        x->others += !own;
        x->others_whole &= own || whole;
        return;
    }
    const int split = dt__replicas_split(x, first, end);
    find_subtrees(x, first, split);
    find_subtrees(x, split, end);
}

/* ---- shares of nodes ------------------------------------------------------------------------ */

/* Gives each node a share of the vector such that no link carries more than `most` vectors in
 * either direction, and returns the sum of the shares; NaN: some node can have none. A node that
 * has p of all P subtrees, and owns the share s, sends p (1 - s) + (H - 1) s vectors, and receives
 * (P - p) s + 1 - s. part: 0 gives each node the least share that is possible, 1 the greatest; in
 * between it is interpolated. */
static double cut_shares_at(struct dt_exchange *x, double most, double part)
{
    bool can = true;
    for (int n = 0; n < x->nodes; n++) {
        const double subtrees = x->subtrees_of[n];
        const double sends = x->nodes - 1 - subtrees, gets = x->subtrees - subtrees - 1;
        const double least = sends < 0 && subtrees > most ? (most - subtrees) / sends : 0;
        double greatest = 1;
        if (sends > 0) greatest = fmin(greatest, (most - subtrees) / sends);
        if (gets > 0) greatest = fmin(greatest, (most - 1) / gets);
        can &= least <= greatest && (sends < 0 || subtrees <= most);
        x->cut[n + 1] = x->cut[n] + least + part * (greatest - least);
    }
    return can ? x->cut[x->nodes] : (double)NAN;
}

/* Cuts the vector into shares of the nodes, such that the busiest link carries as little as it can
 * (bisection). Where each node has one subtree the shares are equal. */
static void cut_shares(struct dt_exchange *x)
{
    double low = 0, high = x->subtrees + x->nodes;
    for (int i = 0; i < 60; i++) {
        const double middle = (low + high) / 2;
        const bool can = cut_shares_at(x, middle, 0) <= 1 && cut_shares_at(x, middle, 1) >= 1;
        *(can ? &high : &low) = middle;
    }
    const double least = cut_shares_at(x, high, 0), greatest = cut_shares_at(x, high, 1);
    cut_shares_at(x, high, greatest > least ? (1 - least) / (greatest - least) : 0);
    x->cut[x->nodes] = 1;
}

/* ---- replicas ------------------------------------------------------------------------------- */

/* Finds the node of each replica. */
static void place_replicas(struct dt_exchange *x)
{
    const int workers = x->spec.team ? x->spec.team : x->world->workers;
    const int first_rank = x->spec.team ? 0 : x->world->worker_rank;
    for (int r = 0, w = -1, end = 0; r < x->spec.replicas; r++) {
        for (int first, count; r == end && !x->spec.worker_of; end = first + count)
            dt__replicas_assign(workers, ++w, x->spec.replicas, &first, &count);
        x->node_of[r] = x->node_at[first_rank + (x->spec.worker_of ? x->spec.worker_of[r] : w)];
        x->subtree_at[r] = -1;
    }
}

void dt__layout_replicas(struct dt_exchange *x)
{
    const int groups = x->spec.groups, replicas = x->spec.replicas;
    place_replicas(x);
    for (int g = 0, r = 0; g < groups; g++) {
        x->group[g].first = r;
        x->group[g + 1].first = (int)((int64_t)replicas * (g + 1) / groups);
        while (r < x->group[g + 1].first)
            x->group_of[r++] = g;
    }
    x->subtrees = x->others = x->own_wholes = 0;
    x->others_whole = true;
    memset(x->subtrees_of, 0, (size_t)x->nodes * sizeof *x->subtrees_of);
    find_subtrees(x, 0, replicas);
    cut_shares(x);
}

/* ---- segments ------------------------------------------------------------------------------- */

int dt__tiled_matrices(const struct dt_exchange *x)
{
    return x->nodes > 1 || x->spec.wire ? 0 : x->spec.matrices;
}

/* The segment of the index-th row range or matrix; if there is none, an empty one at the end. */
static struct dt__segment special_segment(const struct dt_exchange *x, int index)
{
    const size_t end = x->spec.params;
    if (x->touched && index < x->spec.row_ranges) {
        const struct dt_row_range *range = &x->spec.row_range[index];
        return (struct dt__segment){
            DT__ROWS, index, {range->offset, range->offset + range->rows * range->width}};
    }
    if (index < dt__tiled_matrices(x)) {
        const struct dt_factored *matrix = &x->factored[index];
        return (struct dt__segment){
            DT__TILED, index, {matrix->offset, matrix->offset + matrix->rows * matrix->columns}};
    }
    return (struct dt__segment){.at = {end, end}};
}

void dt__layout_segments(struct dt_exchange *x)
{
    struct dt__segment *segment = x->segment;
    for (int b = 0, i = 0; b < x->spec.buckets; b++) {
        struct dt__bucket *bucket = &x->bucket[b];
        bucket->has_shares = false;
        for (size_t at = bucket->at.begin; at < bucket->at.end; at = segment++->at.end) {
            *segment = special_segment(x, i);
            if (segment->at.begin == at) {
                bucket->has_shares = x->nodes == 1;
                i++;
                continue;
            }
            const size_t end =
                segment->at.begin < bucket->at.end ? segment->at.begin : bucket->at.end;
            *segment = (struct dt__segment){DT__WHOLE, 0, {at, end}};
        }
        x->bucket[b + 1].segment = (int)(segment - x->segment);
    }
}

/* ---- slices and chunks ---------------------------------------------------------------------- */

struct dt__floats dt__clip(struct dt__floats floats, struct dt__floats to)
{
    const size_t begin = floats.begin > to.begin ? floats.begin : to.begin;
    const size_t end = floats.end < to.end ? floats.end : to.end;
    return (struct dt__floats){begin < end ? begin : end, end};
}

/* The floats from share `from` to share `to` (0 to 1) of a range, cut at multiples of `grain`. */
static struct dt__floats cut_floats(struct dt__floats of, double from, double to, size_t grain)
{
    const size_t base = of.begin - of.begin % grain, units = (of.end - base + grain - 1) / grain;
    return dt__clip(of, (struct dt__floats){base + (size_t)((double)units * from + 0.5) * grain,
                                            base + (size_t)((double)units * to + 0.5) * grain});
}

struct dt__floats dt__slice(struct dt__floats of, int index, int count, size_t grain)
{
    return cut_floats(of, (double)index / count, (double)(index + 1) / count, grain);
}

/* Where slices of a segment may begin. A short one is not cut for all nodes: with many of them a
 * message costs more than its bytes. With the norm slices are cut out of the whole vector, for a
 * block of the norm needs one owner. */
static size_t slice_grain(const struct dt_exchange *x, struct dt__floats segment)
{
    const size_t node_floats = (segment.end - segment.begin) / (size_t)x->nodes;
    if (x->spec.norm) return DT__TREE_BLOCK;
    return x->nodes > 1 && node_floats < DT__LEAST_NODE_SLICE && x->grain < DT__LEAST_NODE_SLICE
               ? DT__LEAST_NODE_SLICE
               : x->grain;
}

/* What agent `index` of a node owns of a segment. A short segment is not cut for all agents of the
 * node: only *used of them get a slice (cut_chunk turns which ones). */
static struct dt__floats slice_of(const struct dt_exchange *x, struct dt__floats segment, int node,
                                  int index, int *used)
{
    const struct dt__floats all = {0, x->spec.params};
    const size_t grain = slice_grain(x, segment);
    const struct dt__floats nodes =
        cut_floats(x->spec.norm ? all : segment, x->cut[node], x->cut[node + 1], grain);
    const size_t most = (nodes.end - nodes.begin) / DT__LEAST_SLICE + 1;
    *used = x->spec.norm || most > (size_t)dt__agents(x, node) ? dt__agents(x, node) : (int)most;
    return index < *used ? dt__clip(dt__slice(nodes, index, *used, grain), segment)
                         : (struct dt__floats){0, 0};
}

struct dt__floats dt__norm_slice(const struct dt_exchange *x)
{
    int used;
    return slice_of(x, (struct dt__floats){0, x->spec.params}, x->node, x->agent, &used);
}

int dt__chunk_rank(const struct dt_exchange *x, const struct dt__chunk *chunk, int node)
{
    return dt__agent_rank(x, node, node == chunk->node ? chunk->owner : chunk->turn);
}

size_t dt__sum_bytes(const struct dt__chunk *chunk, bool whole)
{
    return whole ? chunk->bytes : (chunk->at.end - chunk->at.begin) * sizeof(float);
}

void *dt__sum_at(const struct dt_exchange *x, const struct dt__chunk *chunk, int s)
{
    const struct dt__subtree *subtree = &x->subtree[s];
    if (chunk->node == x->node || (chunk->wire && subtree->whole))
        return x->bytes + chunk->sums + (size_t)subtree->place * chunk->sums_each;
    return x->slot[subtree->first] + chunk->at.begin;
}

/* Appends chunk `nth` of what an owner has of a segment, if there are so many. number: of the
 * segment, in the order of sending. */
static void cut_chunk(struct dt_exchange *x, int bucket, const struct dt__segment *segment,
                      int number, int owner, int nth)
{
    const int node = x->node_at[x->agent_rank[owner]], index = owner - x->agents_of[node];
    int used;
    struct dt__floats at = slice_of(x, segment->at, node, index, &used);
    size_t count = (at.end - at.begin + DT__CHUNK - 1) / DT__CHUNK;
    if (count > 1 && x->nodes == 1) count = 1; /* no message */
    if (count > DT__SLICE_CHUNKS) count = DT__SLICE_CHUNKS;
    if ((size_t)nth >= count) return;
    at = dt__slice(at, nth, (int)count, x->spec.norm ? DT__TREE_BLOCK : x->grain);
    if (at.begin == at.end) return;
    const int wire = at.begin < x->spec.wire_params ? x->spec.wire : DT_WIRE_F32;
    const int first = x->spec.norm ? 0 : number; /* all agents have their turn */
    struct dt__chunk *chunk = &x->chunk[x->chunks++];
    *chunk = (struct dt__chunk){.bucket = bucket,
                                .is_tiled = segment->kind == DT__TILED,
                                .node = node,
                                .owner = (index + first) % dt__agents(x, node),
                                .turn = owner + nth + number,
                                .at = at,
                                .wire = wire,
                                .bytes = dt__wire_bytes(wire, at.begin, at.end - at.begin),
                                .sums = x->byte_count,
                                .acted_at = x->acted,
                                .own_at = x->own};
    x->bucket[bucket].pieces += segment->kind == DT__WHOLE;
    chunk->agent = node == x->node ? chunk->owner : chunk->turn % x->agents;
    if (chunk->agent != x->agent) return;
    const bool own = node == x->node;
    const int sums = own ? x->others : wire ? x->own_wholes : 0;
    chunk->sums_each = dt__cache_lines(dt__sum_bytes(chunk, !own || x->others_whole));
    chunk->update = chunk->sums + (size_t)sums * chunk->sums_each;
    x->byte_count = chunk->update;
    if (wire && x->nodes > 1) x->byte_count += dt__cache_lines(chunk->bytes);
    x->acted += at.end - at.begin;
    if (own) x->own += at.end - at.begin;
}

/* Makes the chunks of all owners, in the order in which this node sends: bucket by bucket, and
 * owners from the next node on, so that the nodes do not all send to the same one first. */
dt_status dt__layout_chunks(struct dt_exchange *x)
{
    const int next = x->agents_of[(x->node + 1) % x->nodes];
    int number = 0;
    const size_t segments = (size_t)(x->spec.buckets + x->spec.row_ranges + 2 * x->spec.matrices);
    const size_t most = x->spec.params / DT__CHUNK + segments * (size_t)x->owners + 1;
    DT_TRY(dt__keep(&x->kept, most, sizeof *x->chunk, "chunk table", &x->chunk));
    for (int turn = 0; turn < x->spec.buckets; turn++) {
        const int b = dt__bucket_at(x, turn);
        struct dt__bucket *bucket = &x->bucket[b];
        bucket->pieces = bucket->has_shares ? (uint32_t)x->agents : 0;
        bucket->chunk = x->chunks;
        for (int s = bucket->segment; s < bucket[1].segment; s++) {
            const unsigned kind = x->segment[s].kind;
            if (kind == DT__ROWS || (kind == DT__TILED && !x->spec.norm)) continue;
            for (int nth = 0; nth < DT__SLICE_CHUNKS; nth++)
                for (int i = 0; i < x->owners; i++)
                    cut_chunk(x, b, &x->segment[s], number, (next + i) % x->owners, nth);
            number++;
        }
        bucket->chunk_end = x->chunks;
    }
    return DT_OK;
}
