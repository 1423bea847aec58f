/* Sums over replicas in the order of the fixed tree, and the update of the weights, block by block
 * in a core's cache. The stages of a sum: the replicas of a group are added (tree_sum); the group's
 * sum is rounded (sum_round); the groups are added (tree_sum). */
#include <string.h>

#include "base/clones.h"
#include "comm/exchange.h"

DT__CLONES
static void floats_add(size_t n, const float *left, const float *right, float *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = left[i] + right[i];
}

void dt__floats_add(size_t n, const float *left, const float *right, float *out)
{
    floats_add(n, left, right, out);
}

/* ---- the fixed tree ------------------------------------------------------------------------- */

/* Returns the offset of float `at` in a rounded chunk, in bytes. */
static size_t bytes_before(const struct dt__chunk *chunk, size_t at)
{
    return dt__wire_bytes(chunk->wire, chunk->at.begin, at - chunk->at.begin);
}

/* Returns floats `of` of another node's partial sum: the address where they were received, or out,
 * into which rounded floats are read. */
static float *sum_read(struct dt_exchange *x, const struct dt__chunk *chunk, int partial,
                       struct dt__floats of, float *out)
{
    unsigned char *sum = dt__sum_at(x, chunk, partial);
    if (!x->topo->partial[partial].covers_group)
        return (float *)(void *)sum + (of.begin - chunk->at.begin);
    return dt__wire_read(chunk->wire, of.begin, of.end - of.begin,
                         sum + bytes_before(chunk, of.begin), out);
}

/* Rounds a group's sum of floats of a chunk, and keeps the error. bytes: receives the sum in the
 * form in which it is sent; NULL: it is not sent. */
static void sum_round(struct dt_exchange *x, const struct dt__chunk *chunk, int group,
                      struct dt__floats of, float *sum, unsigned char *bytes)
{
    float *error = chunk->wire ? dt__chunk_error(x, chunk, group) + of.begin : NULL;
    dt__wire_round(chunk->wire, of.begin, of.end - of.begin, sum, error,
                   bytes ? bytes + bytes_before(chunk, of.begin) : NULL);
}

/* Returns the sum of at most DT__TREE_BLOCK floats over replicas [a, b), a range of the tree. The
 * result is in block[0] or, if nothing was added, in a replica's slot or where another node's
 * partial sum was received. chunk: the chunk that contains the floats; the sum of a group is
 * rounded, even in a slot, unless another node has rounded it. chunk NULL: all replicas are on this
 * node, and nothing is rounded. block: scratch, one per level. */
static float *tree_sum(struct dt_exchange *x, const struct dt__chunk *chunk, int a, int b,
                       struct dt__floats of, float (*block)[DT__TREE_BLOCK])
{
    const int s = x->topo->partial_at[a];
    if (s >= 0 && x->topo->partial[s].end == b && x->topo->partial[s].node != x->topo->node)
        return sum_read(x, chunk, s, of, block[0]);
    float *sum = b - a == 1 ? x->memory->slot[a] + of.begin : block[0];
    if (b - a > 1) {
        const int split = dt__replicas_split(x->topo, a, b);
        /* The left sum may be in block[0]; the right one is computed in the levels below. */
        const float *left = tree_sum(x, chunk, a, split, of, block);
        const float *right = tree_sum(x, chunk, split, b, of, block + 1);
        dt__floats_add(of.end - of.begin, left, right, sum);
    }
    if (chunk && chunk->wire && dt__is_group(x->topo, a, b))
        sum_round(x, chunk, x->topo->group_of[a], of, sum, NULL);
    return sum;
}

/* ---- sums that a node sends ----------------------------------------------------------------- */

/* Sums floats over the replicas of a partial sum, into the slot of the first one. Returns that
 * slot's floats. */
static float *partial_sum(struct dt_exchange *x, const struct dt__partial_sum *partial,
                          struct dt__floats of)
{
    const float *sum = tree_sum(x, NULL, partial->first, partial->end, of, x->scratch.block);
    float *slot = x->memory->slot[partial->first] + of.begin;
    if (sum != slot) memcpy(slot, sum, (of.end - of.begin) * sizeof *slot);
    return slot;
}

void dt__chunk_give(struct dt_exchange *x, const struct dt__chunk *chunk)
{
    for (struct dt__floats of = dt__block_at(chunk->at, chunk->at.begin); of.begin < of.end;
         of = dt__block_at(chunk->at, of.end))
        for (int s = 0; s < x->topo->partials; s++) {
            const struct dt__partial_sum *partial = &x->topo->partial[s];
            if (partial->node != x->topo->node) continue;
            float *sum = partial_sum(x, partial, of);
            if (partial->covers_group)
                sum_round(x, chunk, x->topo->group_of[partial->first], of, sum,
                          dt__sum_at(x, chunk, s));
        }
}

void dt__floats_give(struct dt_exchange *x, struct dt__floats floats)
{
    for (struct dt__floats of = dt__block_at(floats, floats.begin); of.begin < of.end;
         of = dt__block_at(floats, of.end)) {
        float *first = NULL;
        for (int s = 0; s < x->topo->partials; s++) {
            if (x->topo->partial[s].node != x->topo->node) continue;
            float *sum = partial_sum(x, &x->topo->partial[s], of);
            if (first)
                dt__floats_add(of.end - of.begin, first, sum, first);
            else
                first = sum;
        }
    }
}

/* ---- updates -------------------------------------------------------------------------------- */

void dt__chunk_vectors(const struct dt_exchange *x, const struct dt__chunk *chunk,
                       float *out[DT_EXCHANGE_VECTORS])
{
    out[0] = x->memory->vectors[0];
    for (int v = 1; v < x->spec.vectors; v++)
        out[v] =
            x->topo->node ? x->state[v] + chunk->own_at - chunk->at.begin : x->memory->vectors[v];
}

float *dt__chunk_error(const struct dt_exchange *x, const struct dt__chunk *chunk, int group)
{
    if (!x->topo->node) return x->error[group];
    const size_t at = x->topo->group[group].node < 0 ? chunk->own_at : chunk->acted_at;
    return x->error[group] + at - chunk->at.begin;
}

void dt__chunk_sum(struct dt_exchange *x, const struct dt__chunk *chunk)
{
    for (struct dt__floats of = dt__block_at(chunk->at, chunk->at.begin); of.begin < of.end;
         of = dt__block_at(chunk->at, of.end)) {
        const float *sum = tree_sum(x, chunk, 0, x->spec.replicas, of, x->scratch.block);
        float *out = x->memory->sums + of.begin;
        if (sum != out) memcpy(out, sum, (of.end - of.begin) * sizeof *sum);
    }
}

/* A block's new weights are computed in this core's cache, and copied out at once. Other cores have
 * the old weights in their caches. If they were written directly, each cache line would be fetched
 * from these separately, between lines of the state: 44 us for 50,000 weights on cores without a
 * common cache, against 27 us with the copy (measured). */
void dt__chunk_update(struct dt_exchange *x, const struct dt__chunk *chunk)
{
    unsigned char *update = dt__update_at(x, chunk);
    float *vectors[DT_EXCHANGE_VECTORS];
    dt__chunk_vectors(x, chunk, vectors);
    for (struct dt__floats of = dt__block_at(chunk->at, chunk->at.begin); of.begin < of.end;
         of = dt__block_at(chunk->at, of.end)) {
        const size_t at = of.begin, n = of.end - of.begin;
        const float *sum = x->memory->sums
                               ? x->memory->sums + at
                               : tree_sum(x, chunk, 0, x->spec.replicas, of, x->scratch.block);
        float *out = x->scratch.fresh ? x->scratch.fresh : vectors[0] + at;
        x->spec.update(x->spec.arg, &x->step->info, at, n, sum, vectors, out);
        dt__wire_update(chunk->wire, at, n, out, vectors[x->spec.vectors - 1] + at, vectors[0] + at,
                        update ? update + bytes_before(chunk, at) : NULL);
    }
}
