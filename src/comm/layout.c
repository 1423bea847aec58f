/* Layout (exchange.h has the figure): buckets are cut into segments, segments into the owners'
 * slices, and these into chunks. All ranks make the same tables from the same facts, without
 * messages. */
#include "comm/exchange.h"

/* ---- segments ------------------------------------------------------------------------------- */

int dt__tiled_matrices(const struct dt_exchange *x)
{
    return x->topo->nodes > 1 || x->spec.wire.kind ? 0 : x->spec.matrices;
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

void dt__layout_segments(const struct dt_exchange *x, struct dt__layout *layout)
{
    struct dt__segment *segment = layout->segment;
    for (int b = 0, i = 0; b < x->spec.buckets; b++) {
        struct dt__bucket *bucket = &layout->bucket[b];
        bucket->has_shares = false;
        for (size_t at = bucket->at.begin; at < bucket->at.end; at = segment++->at.end) {
            *segment = special_segment(x, i);
            if (segment->at.begin == at) {
                bucket->has_shares = x->topo->nodes == 1;
                i++;
                continue;
            }
            const size_t end =
                segment->at.begin < bucket->at.end ? segment->at.begin : bucket->at.end;
            *segment = (struct dt__segment){DT__WHOLE, 0, {at, end}};
        }
        layout->bucket[b + 1].segment = (int)(segment - layout->segment);
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
    const size_t node_floats = (segment.end - segment.begin) / (size_t)x->topo->nodes;
    if (x->spec.norm.needed) return DT__TREE_BLOCK;
    return x->topo->nodes > 1 && node_floats < DT__LEAST_NODE_SLICE &&
                   x->layout->grain < DT__LEAST_NODE_SLICE
               ? DT__LEAST_NODE_SLICE
               : x->layout->grain;
}

/* What agent `index` of a node owns of a segment. A short segment is not cut for all agents of the
 * node: only *used of them get a slice (cut_chunk turns which ones). */
static struct dt__floats slice_of(const struct dt_exchange *x, struct dt__floats segment, int node,
                                  int index, int *used)
{
    const struct dt__floats all = {0, x->spec.params};
    const size_t grain = slice_grain(x, segment);
    const struct dt__floats nodes = cut_floats(x->spec.norm.needed ? all : segment,
                                               x->topo->cut[node], x->topo->cut[node + 1], grain);
    const size_t most = (nodes.end - nodes.begin) / DT__LEAST_SLICE + 1;
    *used = x->spec.norm.needed || most > (size_t)dt__agents(x->topo, node)
                ? dt__agents(x->topo, node)
                : (int)most;
    return index < *used ? dt__clip(dt__slice(nodes, index, *used, grain), segment)
                         : (struct dt__floats){0, 0};
}

struct dt__floats dt__norm_slice(const struct dt_exchange *x)
{
    int used;
    return slice_of(x, (struct dt__floats){0, x->spec.params}, x->topo->node, x->topo->agent,
                    &used);
}

int dt__chunk_rank(const struct dt_exchange *x, const struct dt__chunk *chunk, int node)
{
    return dt__agent_rank(x->topo, node, node == chunk->node ? chunk->owner : chunk->turn);
}

size_t dt__sum_bytes(const struct dt__chunk *chunk, bool whole)
{
    return whole ? chunk->bytes : (chunk->at.end - chunk->at.begin) * sizeof(float);
}

void *dt__sum_at(const struct dt_exchange *x, const struct dt__chunk *chunk, int s)
{
    const struct dt__subtree *subtree = &x->topo->subtree[s];
    if (chunk->node == x->topo->node || (chunk->wire && subtree->whole))
        return x->bytes + chunk->sums + (size_t)subtree->place * chunk->sums_each;
    return x->memory->slot[subtree->first] + chunk->at.begin;
}

/* Which chunk comes next. */
struct turn {
    int bucket, number; /* number of the segment, in the order of sending */
    int owner, nth;
};

/* The floats of chunk `nth` of what an owner has of a segment; empty: it has fewer chunks. */
static struct dt__floats chunk_floats(const struct dt_exchange *x, struct dt__floats segment,
                                      const struct turn *turn)
{
    const int node = x->topo->node_at[x->topo->agent_rank[turn->owner]];
    int used;
    const struct dt__floats at =
        slice_of(x, segment, node, turn->owner - x->topo->agents_of[node], &used);
    size_t count = (at.end - at.begin + DT__CHUNK - 1) / DT__CHUNK;
    if (count > 1 && x->topo->nodes == 1) count = 1; /* no message */
    if (count > DT__SLICE_CHUNKS) count = DT__SLICE_CHUNKS;
    if ((size_t)turn->nth >= count) return (struct dt__floats){0, 0};
    return dt__slice(at, turn->nth, (int)count,
                     x->spec.norm.needed ? DT__TREE_BLOCK : x->layout->grain);
}

/* Places in x->bytes and in this agent's state for a chunk for which it acts. */
static void place_chunk(const struct dt_exchange *x, struct dt__layout *layout,
                        struct dt__chunk *chunk)
{
    const struct dt__topology *topo = x->topo;
    const size_t floats = chunk->at.end - chunk->at.begin;
    const bool own = chunk->node == topo->node;
    const int sums = own ? topo->others : chunk->wire ? topo->own_wholes : 0;
    chunk->sums_each = dt__cache_lines(dt__sum_bytes(chunk, !own || topo->others_whole));
    chunk->update = chunk->sums + (size_t)sums * chunk->sums_each;
    layout->byte_count = chunk->update;
    if (chunk->wire && topo->nodes > 1) layout->byte_count += dt__cache_lines(chunk->bytes);
    layout->acted += floats;
    if (own) layout->own += floats;
}

/* Appends the chunk whose turn it is, if there is one. */
static void cut_chunk(const struct dt_exchange *x, struct dt__layout *layout,
                      const struct dt__segment *segment, const struct turn *turn)
{
    const struct dt__topology *topo = x->topo;
    const int node = topo->node_at[topo->agent_rank[turn->owner]];
    const struct dt__floats at = chunk_floats(x, segment->at, turn);
    if (at.begin == at.end) return;
    const int wire = at.begin < x->spec.wire.params ? x->spec.wire.kind : DT_WIRE_F32;
    const int first = x->spec.norm.needed ? 0 : turn->number; /* all agents have their turn */
    const int index = turn->owner - topo->agents_of[node];
    struct dt__chunk *chunk = &layout->chunk[layout->chunks++];
    *chunk = (struct dt__chunk){.bucket = turn->bucket,
                                .is_tiled = segment->kind == DT__TILED,
                                .node = node,
                                .owner = (index + first) % dt__agents(topo, node),
                                .turn = turn->owner + turn->nth + turn->number,
                                .at = at,
                                .wire = wire,
                                .bytes = dt__wire_bytes(wire, at.begin, at.end - at.begin),
                                .sums = layout->byte_count,
                                .acted_at = layout->acted,
                                .own_at = layout->own};
    layout->bucket[turn->bucket].pieces += segment->kind == DT__WHOLE;
    chunk->agent = node == topo->node ? chunk->owner : chunk->turn % topo->agents;
    if (chunk->agent == topo->agent) place_chunk(x, layout, chunk);
}

/* Makes the chunks of all owners, in the order in which this node sends: bucket by bucket, and
 * owners from the next node on, so that the nodes do not all send to the same one first. */
dt_status dt__layout_chunks(struct dt_exchange *x, struct dt__layout *layout)
{
    const struct dt__topology *topo = x->topo;
    const int next = topo->agents_of[(topo->node + 1) % topo->nodes], owners = topo->owners;
    const size_t segments = (size_t)(x->spec.buckets + x->spec.row_ranges + 2 * x->spec.matrices);
    const size_t most = x->spec.params / DT__CHUNK + segments * (size_t)owners + 1;
    struct turn turn = {0};
    DT_TRY(dt__keep(&x->kept, most, sizeof *layout->chunk, "chunk table", &layout->chunk));
    for (int b = 0; b < x->spec.buckets; b++) {
        turn.bucket = dt__bucket_at(x, b);
        struct dt__bucket *bucket = &layout->bucket[turn.bucket];
        bucket->pieces = bucket->has_shares ? (uint32_t)topo->agents : 0;
        bucket->chunk = layout->chunks;
        for (int s = bucket->segment; s < bucket[1].segment; s++) {
            const unsigned kind = layout->segment[s].kind;
            if (kind == DT__ROWS || (kind == DT__TILED && !x->spec.norm.needed)) continue;
            for (turn.nth = 0; turn.nth < DT__SLICE_CHUNKS; turn.nth++)
                for (int i = 0; i < owners; i++) {
                    turn.owner = (next + i) % owners;
                    cut_chunk(x, layout, &layout->segment[s], &turn);
                }
            turn.number++;
        }
        bucket->chunk_end = layout->chunks;
    }
    return DT_OK;
}
