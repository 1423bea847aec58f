/* Topology of an exchange, in this order: agents of nodes; the tree, with partial sums and groups;
 * the fractions of the vector that nodes own; replicas. No MPI. */
#include "comm/topology.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "comm/comm.h"

/* ---- agents --------------------------------------------------------------------------------- */

dt_status dt__topology_allocate(struct dt__topology *topo, struct dt__arena **arena, int ranks,
                                int replicas, int groups)
{
    const size_t all = (size_t)ranks, r = (size_t)replicas;
    return DT__ARENA_ALLOC(arena, "exchange", DT__TABLE(topo->node_at, all),
                           DT__TABLE(topo->agents_of, all + 1), DT__TABLE(topo->agent_rank, all),
                           DT__TABLE(topo->partials_of, all), DT__TABLE(topo->cut, all + 1),
                           DT__TABLE(topo->node_of, r), DT__TABLE(topo->partial_at, r),
                           DT__TABLE(topo->partial, r), DT__TABLE(topo->group, (size_t)groups + 1),
                           DT__TABLE(topo->group_of, r));
}

void dt__topology_agents(struct dt__topology *topo, int ranks, int rank, bool has_bank)
{
    int agents = 0;
    for (int n = 0; n < topo->nodes; n++) {
        topo->agents_of[n] = agents;
        for (int r = has_bank; r < ranks; r++)
            if (topo->node_at[r] == n) topo->agent_rank[agents++] = r;
        if (agents == topo->agents_of[n]) topo->agent_rank[agents++] = 0; /* a bank alone */
    }
    topo->agents_of[topo->nodes] = topo->owners = agents;
    topo->rank = rank;
    topo->node = topo->node_at[rank];
    topo->agents = dt__agents(topo, topo->node);
    topo->workers = has_bank && dt__agent_rank(topo, topo->node, 0) == 0 ? 0 : topo->agents;
    topo->agent = -1;
    for (int a = 0; a < topo->agents; a++)
        if (dt__agent_rank(topo, topo->node, a) == rank) topo->agent = a;
    topo->owner = topo->agents_of[topo->node] + topo->agent;
}

/* ---- the fixed tree ------------------------------------------------------------------------- */

int dt__tree_split(int a, int b)
{
    int half = 1;
    while (2 * half < b - a)
        half *= 2;
    return a + half;
}

int dt__replicas_split(const struct dt__topology *topo, int a, int b)
{
    const int first = topo->group_of[a], last = topo->group_of[b - 1];
    return first == last ? dt__tree_split(a, b)
                         : topo->group[dt__tree_split(first, last + 1)].first;
}

/* Appends the partial sums of range [first, end) of the tree: the largest ranges whose replicas are
 * on one node and in one group. The replicas of a node need not be contiguous, since ranks may be
 * assigned to hosts in turn. */
static void find_partials(struct dt__topology *topo, int first, int end)
{
    const int node = topo->node_of[first], group = topo->group_of[first];
    int r = first;
    while (r < end && topo->node_of[r] == node && topo->group_of[r] == group)
        r++;
    if (r == end) {
        const bool covers = dt__is_group(topo, first, end), own = node == topo->node;
        topo->group[group].node = covers ? node : -1;
        topo->partial_at[first] = topo->partials;
        topo->partial[topo->partials++] = (struct dt__partial_sum){
            first, end, node, covers, own ? topo->own_groups : topo->others};
        topo->partials_of[node]++;
        topo->own_groups += own && covers;
        topo->others += !own;
        topo->others_cover &= own || covers;
        return;
    }
    const int split = dt__replicas_split(topo, first, end);
    find_partials(topo, first, split);
    find_partials(topo, split, end);
}

/* ---- fractions of nodes ---------------------------------------------------------------------- */

/* Assigns each node a fraction of the vector such that no link carries more than `most` vectors in
 * either direction. Returns the sum of the fractions; NaN: there is no such fraction for some node.
 * A node that has p of all P partial sums, and owns the fraction s, sends p (1 - s) + (H - 1) s
 * vectors, and receives (P - p) s + 1 - s. part: 0 gives each node the least possible fraction, 1
 * the greatest; values between interpolate. */
static double cut_fractions_at(struct dt__topology *topo, double most, double part)
{
    bool can = true;
    for (int n = 0; n < topo->nodes; n++) {
        const double partials = topo->partials_of[n];
        const double sends = topo->nodes - 1 - partials, gets = topo->partials - partials - 1;
        const double least = sends < 0 && partials > most ? (most - partials) / sends : 0;
        double greatest = 1;
        if (sends > 0) greatest = fmin(greatest, (most - partials) / sends);
        if (gets > 0) greatest = fmin(greatest, (most - 1) / gets);
        can &= least <= greatest && (sends < 0 || partials <= most);
        topo->cut[n + 1] = topo->cut[n] + least + part * (greatest - least);
    }
    return can ? topo->cut[topo->nodes] : (double)NAN;
}

/* Cuts the vector into fractions of the nodes such that the busiest link carries as little as
 * possible (bisection). If each node has one partial sum, the fractions are equal. */
static void cut_fractions(struct dt__topology *topo)
{
    double low = 0, high = topo->partials + topo->nodes;
    for (int i = 0; i < 60; i++) {
        const double middle = (low + high) / 2;
        const bool can =
            cut_fractions_at(topo, middle, 0) <= 1 && cut_fractions_at(topo, middle, 1) >= 1;
        *(can ? &high : &low) = middle;
    }
    const double least = cut_fractions_at(topo, high, 0),
                 greatest = cut_fractions_at(topo, high, 1);
    cut_fractions_at(topo, high, greatest > least ? (1 - least) / (greatest - least) : 0);
    topo->cut[topo->nodes] = 1;
}

/* ---- replicas ------------------------------------------------------------------------------- */

static void place_replicas(struct dt__topology *topo, const struct dt__placement *placement)
{
    const int *worker_of = placement->worker_of;
    for (int r = 0, w = -1, end = 0; r < placement->replicas; r++) {
        for (int first, count; r == end && !worker_of; end = first + count)
            dt__replicas_assign(placement->workers, ++w, placement->replicas, &first, &count);
        topo->node_of[r] = topo->node_at[placement->first_rank + (worker_of ? worker_of[r] : w)];
        topo->partial_at[r] = -1;
    }
}

void dt__topology_replicas(struct dt__topology *topo, const struct dt__placement *placement)
{
    const int groups = placement->groups, replicas = placement->replicas;
    place_replicas(topo, placement);
    for (int g = 0, r = 0; g < groups; g++) {
        topo->group[g].first = r;
        topo->group[g + 1].first = (int)((int64_t)replicas * (g + 1) / groups);
        while (r < topo->group[g + 1].first)
            topo->group_of[r++] = g;
    }
    topo->partials = topo->others = topo->own_groups = 0;
    topo->others_cover = true;
    memset(topo->partials_of, 0, (size_t)topo->nodes * sizeof *topo->partials_of);
    find_partials(topo, 0, replicas);
    cut_fractions(topo);
}
