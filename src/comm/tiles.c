/* Tiles of a matrix, a kind of range on one node without rounding: each agent updates some tiles of
 * the matrix.
 *
 * Without the norm a replica provides two factors in place of the matrix's gradient (struct
 * dt_factored). The agent that updates a tile multiplies each replica's factors for that tile, in
 * its cache. With the norm, gradients are whole and cut into chunks, whose sums are kept; each tile
 * is copied from these sums. */
#include <string.h>

#include "comm/exchange.h"

static bool matrix_range(const struct dt_exchange *x, int index, struct dt__floats *out)
{
    if (x->spec.wire.kind || index >= x->spec.matrices) return false;
    const struct dt_factored *matrix = &x->spec.factored[index];
    *out = (struct dt__floats){matrix->offset, matrix->offset + matrix->rows * matrix->columns};
    return true;
}

static bool tiles_range(const struct dt_exchange *x, int index, struct dt__floats *out)
{
    return !x->spec.norm.needed && matrix_range(x, index, out);
}

static bool summed_tiles_range(const struct dt_exchange *x, int index, struct dt__floats *out)
{
    return x->spec.norm.needed && matrix_range(x, index, out);
}

static void tiles_map(const struct dt_exchange *x, struct dt__node_memory *memory,
                      struct dt__shm *shm)
{
    if (x->spec.copies) memory->copies = dt__shm_take(shm, x->spec.copies, 1);
}

static void factors_map(const struct dt_exchange *x, struct dt__node_memory *memory, int replica,
                        struct dt__shm *shm)
{
    const struct dt_factored *last = &x->spec.factored[x->spec.matrices - 1];
    memory->factors[replica] = dt__shm_take(shm, last->place + last->bytes, 1);
}

/* Sums a tile over range [a, b) of the tree, into level[0]. Computes each replica's gradient of the
 * tile from its factors. */
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

/* Copies a tile from the sums. */
static void tile_read(const struct dt_factored *matrix, struct dt_tile tile, const float *sums,
                      float *out)
{
    const float *from = sums + matrix->offset + tile.row * matrix->columns + tile.column;
    for (size_t r = 0; r < tile.rows; r++)
        memcpy(out + r * tile.columns, from + r * matrix->columns, tile.columns * sizeof *out);
}

/* Updates tile by tile, so that the gradients computed from factors, and their sum, never leave the
 * cache. */
static uint32_t tiles_update(struct dt_exchange *x, const struct dt__range *range)
{
    const struct dt_factored *matrix = &x->spec.factored[range->index];
    const struct dt__floats tiles = /* [first, end) of the tiles' numbers */
        dt__slice((struct dt__floats){0, dt__tiles(matrix)}, x->topo->agent, x->topo->agents, 1);
    for (size_t t = tiles.begin; t < tiles.end; t++) {
        const struct dt_tile tile = dt__tile_at(matrix, t);
        if (x->memory->sums)
            tile_read(matrix, tile, x->memory->sums, x->scratch.tiles);
        else
            tile_sum(x, range->index, 0, x->spec.replicas, tile, x->scratch.tiles);
        x->spec.update_tile(x->spec.arg, &x->step->info, range->index, tile, x->scratch.tiles,
                            x->memory->vectors);
    }
    return 1;
}

const struct dt__kind dt__tiles_kind = {
    .range = tiles_range,
    .by_agents = true,
    .map = tiles_map,
    .map_replica = factors_map,
    .move = dt__whole_move,
    .update = tiles_update,
};
const struct dt__kind dt__summed_tiles_kind = {
    .range = summed_tiles_range,
    .is_cut = true,
    .by_agents = true,
    .map = tiles_map,
    .move = dt__whole_move,
    .squares = dt__whole_squares,
    .update = tiles_update,
};
