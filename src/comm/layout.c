/* Layout (exchange.h has the figure): cuts buckets into ranges of one kind (struct dt__range),
 * ranges into the owners' slices, and slices into chunks. All ranks compute the same tables from
 * the same facts, without messages. */
#include "comm/exchange.h"

/* ---- ranges ------------------------------------------------------------------------------- */

/* Returns the first range that is not whole floats and that the table, up to `end`, does not have
 * yet. If there is none, returns an empty range at the end of the vector. */
static struct dt__range special_range(const struct dt_exchange *x, const struct dt__range *end)
{
    struct dt__range first = {.at = {x->spec.params, x->spec.params}};
    for (int k = 1; x->kind[k]; k++) {
        struct dt__range next = {.kind = x->kind[k]};
        for (const struct dt__range *range = x->layout->range; range < end; range++)
            next.index += range->kind == next.kind;
        if (next.kind->range(x, next.index, &next.at) && next.at.begin < first.at.begin)
            first = next;
    }
    return first;
}

struct dt__floats dt__clip(struct dt__floats floats, struct dt__floats to)
{
    const size_t begin = floats.begin > to.begin ? floats.begin : to.begin;
    const size_t end = floats.end < to.end ? floats.end : to.end;
    return (struct dt__floats){begin < end ? begin : end, end};
}

void dt__layout_ranges(const struct dt_exchange *x, struct dt__layout *layout)
{
    struct dt__range *range = layout->range;
    for (int b = 0; b < x->spec.buckets; b++) {
        struct dt__bucket *bucket = &layout->bucket[b];
        for (size_t at = bucket->at.begin; at < bucket->at.end; at = range++->at.end) {
            *range = special_range(x, range);
            const struct dt__floats before = {at, range->at.begin};
            if (before.begin < before.end)
                *range = (struct dt__range){x->kind[0], .at = dt__clip(before, bucket->at)};
            range->bucket = b;
        }
        layout->bucket[b + 1].range = (int)(range - layout->range);
    }
}

/* ---- slices and chunks ---------------------------------------------------------------------- */

/* Returns the floats of a range from fraction `from` to fraction `to` (0 to 1), cut at multiples of
 * `grain`. */
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

/* Returns the grain of the slices of these floats. It is so large that few floats are not cut for
 * all nodes: with many nodes a message costs more than its bytes. */
static size_t slice_grain(const struct dt_exchange *x, struct dt__floats of)
{
    const bool is_short = (of.end - of.begin) / (size_t)x->topo->nodes < DT__LEAST_NODE_SLICE;
    return is_short && x->layout->grain < DT__LEAST_NODE_SLICE ? DT__LEAST_NODE_SLICE
                                                               : x->layout->grain;
}

/* Returns what agent `index` of a node owns of a range. A short range is not cut for all agents of
 * the node: only the first ones get a slice, and cut_chunk rotates which ones these are. */
static struct dt__floats slice_of(const struct dt_exchange *x, struct dt__floats range, int node,
                                  int index)
{
    const struct dt__floats all = {0, x->spec.params};
    const struct dt__floats of = x->layout->is_one_cut ? all : range;
    const size_t grain = slice_grain(x, of);
    const double *cut = x->topo->cut + node;
    const struct dt__floats all_of_node = cut_floats(of, cut[0], cut[1], grain);
    const size_t most = (all_of_node.end - all_of_node.begin) / DT__LEAST_SLICE + 1;
    const size_t agents = (size_t)dt__agents(x->topo, node);
    const int used = (int)(most < agents ? most : agents);
    if (index >= used) return (struct dt__floats){0, 0};
    return dt__clip(dt__slice(all_of_node, index, used, grain), range);
}

struct dt__floats dt__norm_slice(const struct dt_exchange *x)
{
    return slice_of(x, (struct dt__floats){0, x->spec.params}, x->topo->node, x->topo->agent);
}

int dt__chunk_rank(const struct dt_exchange *x, const struct dt__chunk *chunk, int node)
{
    return dt__agent_rank(x->topo, node, node == chunk->node ? chunk->owner_agent : chunk->helper);
}

size_t dt__sum_bytes(const struct dt__chunk *chunk, bool rounded)
{
    return rounded ? chunk->bytes : (chunk->at.end - chunk->at.begin) * sizeof(float);
}

void *dt__sum_at(const struct dt_exchange *x, const struct dt__chunk *chunk, int s)
{
    const struct dt__partial_sum *partial = &x->topo->partial[s];
    if (chunk->node == x->topo->node || partial->covers_group)
        return x->bytes + chunk->sums + (size_t)partial->place * chunk->sums_each;
    return x->memory->slot[partial->first] + chunk->at.begin;
}

unsigned char *dt__update_at(const struct dt_exchange *x, const struct dt__chunk *chunk)
{
    if (!chunk->wire) return (unsigned char *)(x->memory->vectors[0] + chunk->at.begin);
    return x->bytes ? x->bytes + chunk->update : NULL;
}

/* The chunk to be cut next. */
struct next_chunk {
    int bucket, number; /* number of the range, in the order of sending */
    int owner, nth;
};

/* Sets a chunk's offsets in x->bytes and in this agent's state, if this agent acts for the
 * chunk. */
static void place_chunk(const struct dt_exchange *x, struct dt__layout *layout,
                        struct dt__chunk *chunk)
{
    const struct dt__topology *topo = x->topo;
    const size_t floats = chunk->at.end - chunk->at.begin;
    const bool own = chunk->node == topo->node;
    const int places = own ? topo->others : topo->own_groups;
    chunk->sums_each = dt__cache_lines(dt__sum_bytes(chunk, !own || topo->others_cover));
    chunk->update = chunk->sums + (size_t)places * chunk->sums_each;
    layout->byte_count = chunk->update;
    if (chunk->wire) layout->byte_count += dt__cache_lines(chunk->bytes);
    layout->acted += floats;
    if (own) layout->own += floats;
}

/* Appends chunk `nth` of the owner's slice of a range, if the slice has that many. */
static void cut_chunk(const struct dt_exchange *x, struct dt__layout *layout,
                      struct dt__floats range, const struct next_chunk *next)
{
    const struct dt__topology *topo = x->topo;
    const int node = topo->node_at[topo->agent_rank[next->owner]];
    const int index = next->owner - topo->agents_of[node];
    const struct dt__floats slice = slice_of(x, range, node, index);
    size_t count = (slice.end - slice.begin + DT__CHUNK - 1) / DT__CHUNK;
    if (count > DT__SLICE_CHUNKS) count = DT__SLICE_CHUNKS;
    if ((size_t)next->nth >= count) return;
    const struct dt__floats at = dt__slice(slice, next->nth, (int)count, layout->grain);
    if (at.begin == at.end) return;
    const int wire = at.begin < x->spec.wire.params ? x->spec.wire.kind : DT_WIRE_F32;
    struct dt__chunk *chunk = &layout->chunk[layout->chunks++];
    *chunk = (struct dt__chunk){.bucket = next->bucket,
                                .node = node,
                                .owner_agent = (index + next->number) % dt__agents(topo, node),
                                .helper = next->owner + next->nth + next->number,
                                .at = at,
                                .wire = wire,
                                .bytes = dt__wire_bytes(wire, at.begin, at.end - at.begin),
                                .sums = layout->byte_count,
                                .acted_at = layout->acted,
                                .own_at = layout->own};
    chunk->agent = node == topo->node ? chunk->owner_agent : chunk->helper % topo->agents;
    if (chunk->agent == topo->agent) place_chunk(x, layout, chunk);
}

/* Cuts the chunks of all owners, in the order in which this node sends: bucket by bucket, and the
 * owners from the next node on, so that not all nodes send to the same node first. */
dt_status dt__layout_chunks(struct dt_exchange *x, struct dt__layout *layout)
{
    const struct dt__topology *topo = x->topo;
    const int begin = topo->agents_of[(topo->node + 1) % topo->nodes], owners = topo->owners;
    const size_t most = x->spec.params / DT__CHUNK + (size_t)(dt__ranges(x) * owners + 1);
    struct next_chunk next = {0};
    DT_TRY(DT__ARENA_ALLOC(&x->arena, "chunk table", DT__TABLE(layout->chunk, most)));
    for (int b = 0; b < x->spec.buckets; b++) {
        next.bucket = dt__bucket_at(x, b);
        struct dt__bucket *bucket = &layout->bucket[next.bucket];
        bucket->chunk = layout->chunks;
        for (int s = bucket->range; s < bucket[1].range; s++) {
            struct dt__range *range = &layout->range[s];
            range->chunk = layout->chunks;
            for (next.nth = 0; next.nth < DT__SLICE_CHUNKS && range->kind->is_cut; next.nth++)
                for (int i = 0; i < owners; i++) {
                    next.owner = (begin + i) % owners;
                    cut_chunk(x, layout, range->at, &next);
                }
            range->chunk_end = layout->chunks;
            bucket->increment +=
                (uint32_t)(range->kind->by_agents ? topo->agents : range->chunk_end - range->chunk);
            next.number += !layout->is_one_cut; /* rotates the agents from range to range */
        }
        bucket->chunk_end = layout->chunks;
    }
    return DT_OK;
}
