/* Sums over replicas and their rounding, without messages: the test copies what nodes would send.
 * Fails if a sum follows the order of nodes, a rounding error is lost or added twice, a group is
 * rounded twice or not at all, or weights depend on who owns them. */
#include <math.h>

#include "views.h"

enum { PARAMS = 30000, STEPS = 3 };
static float gradients[8][PARAMS];

static void subtract(void *arg, const struct dt_update_info *info, size_t offset, size_t n,
                     const float *grad, float *const *vectors, float *out)
{
    (void)arg, (void)info;
    for (size_t i = 0; i < n; i++)
        out[i] = vectors[0][offset + i] - 0.1f * grad[i];
}

static void gradients_make(const struct setup *setup, int step, int ranks)
{
    for (int r = 0; r < setup->replicas; r++) {
        const struct dt_rng rng = dt__rng_make(7, DT_STREAM_TEST, (uint64_t)(100 * step + r), 0);
        for (size_t i = 0; i < PARAMS; i++)
            gradients[r][i] = (float)dt__rng_normal(&rng, i);
        for (int v = 0; v < ranks; v++)
            if (view[v].memory.slot[r])
                memcpy(view[v].memory.slot[r], gradients[r], sizeof *gradients);
    }
}

/* Copies the partial sums of a rank's node for a chunk to the chunk's owner. */
static void sums_send(struct view *from, const struct dt__chunk *chunk)
{
    struct view *to = &view[dt__chunk_rank(&from->x, chunk, chunk->node)];
    const struct dt__chunk *peer_chunk = view_chunk(to, chunk->at.begin);
    for (int s = 0; s < from->topo.partials; s++)
        if (from->topo.partial[s].node == from->topo.node)
            memcpy(dt__sum_at(&to->x, peer_chunk, s), dt__sum_at(&from->x, chunk, s),
                   dt__sum_bytes(chunk, from->topo.partial[s].covers_group));
}

/* Copies the owner's new weights, or its update, to the agent that handles the chunk on another
 * node. */
static void weights_send(struct view *to, const struct dt__chunk *chunk)
{
    struct view *from = &view[dt__chunk_rank(&to->x, chunk, chunk->node)];
    const struct dt__chunk *peer_chunk = view_chunk(from, chunk->at.begin);
    memcpy(dt__update_at(&to->x, chunk), dt__update_at(&from->x, peer_chunk), chunk->bytes);
    dt__wire_add(chunk->wire, chunk->at.begin, chunk->at.end - chunk->at.begin,
                 dt__update_at(&to->x, chunk), to->memory.vectors[0] + chunk->at.begin);
}

/* Calls a function for each rank and each chunk that it handles: chunks owned by its node if
 * `is_owner`, else chunks owned by other nodes. */
static void each_chunk(int ranks, bool is_owner,
                       void (*call)(struct view *v, const struct dt__chunk *c))
{
    for (struct view *v = view; v < view + ranks; v++)
        for (int c = 0; c < v->layout.chunks; c++)
            if (v->layout.chunk[c].agent == v->topo.agent &&
                (v->layout.chunk[c].node == v->topo.node) == is_owner)
                call(v, &v->layout.chunk[c]);
}

static void chunk_give(struct view *v, const struct dt__chunk *chunk)
{
    dt__chunk_give(&v->x, chunk);
}

static void chunk_update(struct view *v, const struct dt__chunk *chunk)
{
    dt__chunk_update(&v->x, chunk);
}

/* Computes the weights after some steps, which must be the same on all nodes. */
static void train(const struct setup *setup, float *out)
{
    const int ranks = views_make(setup, subtract);
    for (int step = 0; step < STEPS; step++) {
        gradients_make(setup, step, ranks);
        each_chunk(ranks, false, chunk_give);
        each_chunk(ranks, false, sums_send);
        each_chunk(ranks, true, chunk_update);
        each_chunk(ranks, false, weights_send);
    }
    memcpy(out, view[0].memory.vectors[0], PARAMS * sizeof *out);
    for (int r = 0; r < ranks; r++)
        ck_assert_mem_eq(view[r].memory.vectors[0], out, PARAMS * sizeof *out);
    views_free(ranks);
}

/* Any number of nodes and agents gives the bits of one rank, for each wire, and for groups within
 * and across nodes. */
START_TEST(bits_do_not_depend_on_nodes)
{
    static const int NODES[][2] = {{1, 4}, {2, 1}, {2, 2}, {3, 1}, {3, 2}, {5, 1}};
    static float single_rank[PARAMS], many_ranks[PARAMS];
    for (int wire = DT_WIRE_F32; wire <= DT_WIRE_Q8; wire++)
        for (int replicas = 1; replicas <= 7; replicas += 3)
            for (int groups = 1; groups <= (wire ? replicas : 1); groups += 2) {
                struct setup setup = {1,    1,     replicas, groups,
                                      wire, false, PARAMS,   {20000, 20003, PARAMS}};
                train(&setup, single_rank);
                for (size_t i = 0; i < sizeof NODES / sizeof *NODES; i++) {
                    setup.nodes = NODES[i][0], setup.agents = NODES[i][1];
                    train(&setup, many_ranks);
                    ck_assert_mem_eq(many_ranks, single_rank, sizeof single_rank);
                }
            }
}
END_TEST

/* A step of one rank applies the tree's sum with f32: ((0 + 1) + (2 + 3)) + 4. */
START_TEST(the_sum_has_a_fixed_tree)
{
    const struct setup setup = {1, 1, 5, 1, DT_WIRE_F32, false, PARAMS, {PARAMS}};
    views_make(&setup, subtract);
    gradients_make(&setup, 0, 1);
    each_chunk(1, true, chunk_update);
    for (size_t i = 0; i < PARAMS; i++) {
        float(*const g)[PARAMS] = gradients;
        const float sum = ((g[0][i] + g[1][i]) + (g[2][i] + g[3][i])) + g[4][i];
        EXPECT(view[0].memory.vectors[0][i] == -0.1f * sum);
    }
    views_free(1);
}
END_TEST

/* Rounding errors are not lost: after some steps the weights and the errors of both directions add
 * up to the exact sums. */
START_TEST(rounding_errors_are_added_later)
{
    const struct setup setup = {1, 1, 4, 2, DT_WIRE_Q8, false, PARAMS, {PARAMS}};
    static double exact[PARAMS];
    views_make(&setup, subtract);
    for (int step = 0; step < STEPS; step++) {
        gradients_make(&setup, step, 1);
        for (size_t i = 0; i < PARAMS; i++)
            for (int r = 0; r < setup.replicas; r++)
                exact[i] -= 0.1 * (double)gradients[r][i];
        each_chunk(1, true, chunk_update);
    }
    for (size_t i = 0; i < PARAMS; i++) {
        const double errors = (double)view[0].x.error[0][i] + (double)view[0].x.error[1][i];
        const double weight = (double)view[0].memory.vectors[0][i];
        EXPECT(fabs(weight + (double)view[0].memory.vectors[1][i] - 0.1 * errors - exact[i]) <
               1e-5);
    }
    views_free(1);
}
END_TEST

SUITE("sums", bits_do_not_depend_on_nodes, the_sum_has_a_fixed_tree,
      rounding_errors_are_added_later)
