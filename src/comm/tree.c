/* Arithmetic of the exchange: sums over replicas in the order of the fixed tree, the norm of the
 * sum, and what the sum does to the weights. All goes block by block, in a core's cache. */
#include <string.h>

#include "base/internal.h"
#include "comm/exchange.h"

/* ---- the fixed tree ------------------------------------------------------------------------- */

/* Where float `at` begins in a rounded chunk, in bytes. */
static size_t bytes_before(const struct dt__chunk *chunk, size_t at)
{
    return dt__wire_bytes(chunk->wire, chunk->at.begin, at - chunk->at.begin);
}

/* Floats [at, at + n) of another node's sum as it came: where they stand, or, if they are rounded,
 * read into out (n). */
static float *sum_read(struct dt_exchange *x, const struct dt__chunk *chunk, int subtree, size_t at,
                       size_t n, float *out)
{
    void *sum = dt__sum_at(x, chunk, subtree);
    if (!chunk->wire || !x->topo->subtree[subtree].whole)
        return (float *)sum + (at - chunk->at.begin);
    dt__wire_read(chunk->wire, at, n, (unsigned char *)sum + bytes_before(chunk, at), out);
    return out;
}

/* The sum of floats [at, at + n) over range [a, b) of the tree, n <= DT__TREE_BLOCK: in block[0],
 * or where it stands without an addition, in a replica's slot or as another node sent it. chunk:
 * that has these floats; with a rounded wire each group's sum is rounded here, in a slot too,
 * unless another node has done so. NULL: the range is this node's, and is not rounded. block:
 * scratch, one a level. */
static float *tree_sum(struct dt_exchange *x, const struct dt__chunk *chunk, int a, int b,
                       size_t at, size_t n, float (*block)[DT__TREE_BLOCK])
{
    const int s = x->topo->subtree_at[a];
    if (s >= 0 && x->topo->subtree[s].end == b && x->topo->subtree[s].node != x->topo->node)
        return sum_read(x, chunk, s, at, n, block[0]);
    float *sum = b - a > 1 ? block[0] : x->memory->slot[a] + at;
    if (b - a > 1) {
        const int split = dt__replicas_split(x->topo, a, b);
        /* The left sum may rest in block[0] while the right one is made in the levels below. */
        const float *left = tree_sum(x, chunk, a, split, at, n, block);
        const float *right = tree_sum(x, chunk, split, b, at, n, block + 1);
        dt__floats_add(n, left, right, sum);
    }
    if (chunk && chunk->wire && dt__is_group(x->topo, a, b))
        dt__wire_round(chunk->wire, at, n, sum,
                       dt__chunk_error(x, chunk, x->topo->group_of[a]) + at, NULL);
    return sum;
}

/* ---- sums that a node sends ----------------------------------------------------------------- */

/* Sums floats [at, at + n) over a subtree's replicas, into the slot of the first one. */
static float *subtree_sum(struct dt_exchange *x, const struct dt__subtree *subtree, size_t at,
                          size_t n)
{
    const float *sum = tree_sum(x, NULL, subtree->first, subtree->end, at, n, x->scratch.block);
    float *slot = x->memory->slot[subtree->first] + at;
    if (sum != slot) memcpy(slot, sum, n * sizeof *slot);
    return slot;
}

void dt__chunk_give(struct dt_exchange *x, const struct dt__chunk *chunk)
{
    for (size_t at = chunk->at.begin, n; at < chunk->at.end; at += n) {
        n = dt__block_length(at, chunk->at.end);
        for (int s = 0; s < x->topo->subtrees; s++) {
            const struct dt__subtree *subtree = &x->topo->subtree[s];
            if (subtree->node != x->topo->node) continue;
            float *sum = subtree_sum(x, subtree, at, n);
            if (chunk->wire && subtree->whole)
                dt__wire_round(chunk->wire, at, n, sum,
                               dt__chunk_error(x, chunk, x->topo->group_of[subtree->first]) + at,
                               (unsigned char *)dt__sum_at(x, chunk, s) + bytes_before(chunk, at));
        }
    }
}

void dt__floats_give(struct dt_exchange *x, struct dt__floats floats)
{
    for (size_t at = floats.begin, n; at < floats.end; at += n) {
        float *first = NULL;
        n = dt__block_length(at, floats.end);
        for (int s = 0; s < x->topo->subtrees; s++) {
            if (x->topo->subtree[s].node != x->topo->node) continue;
            float *sum = subtree_sum(x, &x->topo->subtree[s], at, n);
            if (first)
                dt__floats_add(n, first, sum, first);
            else
                first = sum;
        }
    }
}

/* ---- norm ----------------------------------------------------------------------------------- */

/* Adds the rows of a range. Those that no gradient touched count as 0. */
static void norm_add_rows(struct dt_exchange *x, int range, struct dt__norm *norm)
{
    for (size_t at = norm->at.begin, n; at < norm->at.end; at += n) {
        double *squares = dt__edge_squares(norm, at / DT__TREE_BLOCK);
        n = dt__block_length(at, norm->at.end);
        if (squares)
            memset(squares + at % DT__TREE_BLOCK, 0, n * sizeof *squares);
        else
            norm->norms[at / DT__TREE_BLOCK] = 0;
    }
    dt__rows_norm(x, range, norm->at, norm);
}

/* Where the squares of edges stand, behind all else of an agent's. */
static size_t edges_at(const struct dt_exchange *x)
{
    return x->memory->norm_blocks + x->spec.norm.measures + x->spec.norm.squares;
}

void dt__norm_blocks(struct dt_exchange *x, double *norms, const float *sum, struct dt__floats at)
{
    const struct dt__floats counts = {0, x->spec.norm.params};
    struct dt__norm norm = {
        .norms = norms, .squares = norms + edges_at(x), .edge = dt__rows_edges(x)};
    for (int s = 0; s < x->layout->bucket[x->spec.buckets].segment; s++) {
        const struct dt__segment *segment = &x->layout->segment[s];
        const bool rows = segment->kind == DT__ROWS;
        const bool own = rows && x->dealt; /* wherever they lie */
        norm.at = own ? dt__rows_own(x, segment->index) : dt__clip(segment->at, at);
        norm.at = dt__clip(norm.at, counts);
        if (norm.at.begin == norm.at.end) continue;
        if (rows)
            norm_add_rows(x, segment->index, &norm);
        else
            dt__norm_add(&norm, sum + norm.at.begin, norm.at.begin, norm.at.end - norm.at.begin);
    }
    dt__norm_close(&norm);
}

void dt__norm_tell(struct dt_exchange *x, const double *norms)
{
    const double *squares = norms + edges_at(x);
    const struct dt_touched *edge = dt__rows_edges(x);
    const size_t edges = edge ? *edge->count : 0;
    size_t e = 0;
    double total = 0;
    for (size_t b = 0; b < x->memory->norm_blocks; b++) {
        double lane[8] = {0};
        const bool is_edge = e < edges && edge->row[e] == b;
        for (size_t i = 0; is_edge && i < DT__TREE_BLOCK; i++)
            lane[i & 7] += squares[e * DT__TREE_BLOCK + i];
        e += is_edge;
        total += is_edge ? dt__lanes_sum(lane) : norms[b];
    }
    for (size_t i = edges_at(x) - x->spec.norm.squares; i < edges_at(x); i++)
        total += norms[i];
    x->step.info.norm2 = total;
    x->step.info.measures = x->spec.norm.measure ? norms + x->memory->norm_blocks : NULL;
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
    for (size_t at = chunk->at.begin, n; at < chunk->at.end; at += n) {
        n = dt__block_length(at, chunk->at.end);
        const float *sum = tree_sum(x, chunk, 0, x->spec.replicas, at, n, x->scratch.block);
        if (sum != x->memory->sums + at) memcpy(x->memory->sums + at, sum, n * sizeof *sum);
    }
    float *vectors[DT_EXCHANGE_VECTORS];
    dt__chunk_vectors(x, chunk, vectors);
    dt__floats_measure(x, chunk->at, x->memory->sums, vectors);
}

void dt__floats_measure(struct dt_exchange *x, struct dt__floats floats, float *sum,
                        float *const *vectors)
{
    for (size_t at = floats.begin, n; x->spec.norm.measure && at < floats.end; at += n) {
        n = dt__block_length(at, floats.end);
        x->spec.norm.measure(x->spec.arg, &x->step.info, at, n, sum + at, vectors,
                             x->memory->norms + x->memory->norm_blocks);
    }
}

/* A block's new weights are made in this core's cache and copied out at once. Other cores have the
 * old weights in their caches; written directly, each line would be fetched from them on its own,
 * between lines of the state: 44 us for 50,000 weights on cores without a common cache, against
 * 27 us with the copy (measured). */
void dt__chunk_update(struct dt_exchange *x, const struct dt__chunk *chunk)
{
    float *vectors[DT_EXCHANGE_VECTORS];
    dt__chunk_vectors(x, chunk, vectors);
    for (size_t at = chunk->at.begin, n; at < chunk->at.end; at += n) {
        n = dt__block_length(at, chunk->at.end);
        const float *sum = x->memory->sums
                               ? x->memory->sums + at
                               : tree_sum(x, chunk, 0, x->spec.replicas, at, n, x->scratch.block);
        float *weights = vectors[0] + at;
        float *out = chunk->wire || x->topo->agents > 1 ? x->scratch.fresh : weights;
        x->spec.update(x->spec.arg, &x->step.info, at, n, sum, vectors, out);
        if (chunk->wire) {
            dt__wire_update(chunk->wire, at, n, out, vectors[x->spec.vectors - 1] + at, weights,
                            x->topo->nodes > 1 ? x->bytes + chunk->update + bytes_before(chunk, at)
                                               : NULL);
        } else if (out != weights) {
            memcpy(weights, out, n * sizeof *weights);
        }
    }
}

/* ---- tiles ---------------------------------------------------------------------------------- */

/* Makes the sum over range [a, b) of the tree of a tile of a factored matrix, in level[0]: each
 * gradient is made here, from its factors. */
static void tile_sum(struct dt_exchange *x, int matrix, int a, int b, struct dt_tile tile,
                     float *level)
{
    if (b - a == 1) {
        dt_status status = x->spec.tile(x->spec.arg, matrix, x->memory->factors[a], tile, level);
        if (status) dt__world_abort(x->world, status);
        return;
    }
    float *right = level + x->scratch.most_tile;
    int split = dt__tree_split(a, b);
    tile_sum(x, matrix, a, split, tile, level);
    tile_sum(x, matrix, split, b, tile, right);
    dt__floats_add(tile.rows * tile.columns, level, right, level);
}

/* Copies a tile out of the sums, where gradients are whole. */
static void tile_read(const struct dt_factored *matrix, struct dt_tile tile, const float *sums,
                      float *out)
{
    const float *from = sums + matrix->offset + tile.row * matrix->columns + tile.column;
    for (size_t r = 0; r < tile.rows; r++)
        memcpy(out + r * tile.columns, from + r * matrix->columns, tile.columns * sizeof *out);
}

/* Tile by tile, so that neither the gradients that are made of factors nor their sum leave the
 * cache. */
void dt__tiles_update(struct dt_exchange *x, int index)
{
    const struct dt_factored *matrix = &x->factored[index];
    const struct dt__floats tiles = /* their numbers */
        dt__slice((struct dt__floats){0, dt__tiles(matrix)}, x->topo->agent, x->topo->agents, 1);
    for (size_t t = tiles.begin; t < tiles.end; t++) {
        const struct dt_tile tile = dt__tile_at(matrix, t);
        if (x->memory->sums)
            tile_read(matrix, tile, x->memory->sums, x->scratch.tiles);
        else
            tile_sum(x, index, 0, x->spec.replicas, tile, x->scratch.tiles);
        x->spec.update_tile(x->spec.arg, &x->step.info, index, tile, x->scratch.tiles,
                            x->memory->vectors);
    }
}

void dt__shares_update(struct dt_exchange *x, int b)
{
    const struct dt__bucket *bucket = &x->layout->bucket[b];
    if (!bucket->has_shares) return;
    for (int s = bucket->segment; s < bucket[1].segment; s++) {
        const struct dt__segment *segment = &x->layout->segment[s];
        if (segment->kind == DT__ROWS) dt__rows_update(x, segment->index);
        if (segment->kind == DT__TILED) dt__tiles_update(x, segment->index);
    }
    dt__event_post(&x->memory->control->bucket[b].updated, 1);
}
