/* Topology: agents, partial sums, groups and the nodes' parts of the vector, for many placements.
 * Fails if a sum lacks a replica or has one twice, a partial sum spans two nodes, or a link carries
 * more than necessary. */
#include <math.h>

#include "comm/topology.h"
#include "suite.h"

enum { MAX_RANKS = 64 };

/* A placement is the node of each rank and the worker of each replica. */
static struct dt__arena *arena;
static struct dt__topology topo;

static void topology_make(const int *node_at, int ranks, int rank, bool has_bank,
                          const struct dt__placement *placement)
{
    topo = (struct dt__topology){0};
    ck_assert_int_eq(
        dt__topology_allocate(&topo, &arena, ranks, placement->replicas, placement->groups), DT_OK);
    for (int r = 0; r < ranks; r++) {
        topo.node_at[r] = node_at[r];
        if (node_at[r] >= topo.nodes) topo.nodes = node_at[r] + 1;
    }
    dt__topology_agents(&topo, ranks, rank, has_bank);
    dt__topology_replicas(&topo, placement);
}

static void topology_free(void)
{
    dt__arena_free(&arena);
}

/* The figure in topology.h: replicas 0 to 3 on node 0, replicas 4 to 6 on node 1. */
START_TEST(the_figure_in_the_header_is_right)
{
    const int node_at[] = {0, 0, 1}, worker_of[] = {0, 0, 0, 0, 1, 1, 1};
    const struct dt__placement placement = {7, 1, 2, 1, worker_of};
    topology_make(node_at, 3, 1, true, &placement);
    ck_assert_int_eq(dt__replicas_split(&topo, 0, 7), 4);
    ck_assert_int_eq(dt__replicas_split(&topo, 4, 7), 6);
    ck_assert_int_eq(topo.partials, 2);
    ck_assert_int_eq(topo.partial[0].first, 0);
    ck_assert_int_eq(topo.partial[0].end, 4);
    ck_assert_int_eq(topo.partial[1].end, 7);
    ck_assert_int_eq(topo.others, 1);
    ck_assert_int_eq(topo.agent, 0);
    ck_assert_double_eq_tol(topo.cut[1], 0.5, 1e-9);
    topology_free();
}
END_TEST

/* A bank with workers on its node sums nothing; a bank that is alone on its node is that node's
 * agent. */
START_TEST(banks_without_local_workers_are_agents)
{
    const int together[] = {0, 0, 1}, apart[] = {0, 1, 1};
    const struct dt__placement placement = {2, 1, 2, 1, NULL};
    topology_make(together, 3, 0, true, &placement);
    ck_assert_int_eq(topo.agent, -1);
    ck_assert_int_eq(topo.workers, 1);
    ck_assert_int_eq(topo.owners, 2);
    topology_free();
    topology_make(apart, 3, 0, true, &placement);
    ck_assert_int_eq(topo.agent, 0);
    ck_assert_int_eq(topo.workers, 0);
    ck_assert_int_eq(topo.owners, 3);
    topology_free();
}
END_TEST

/* Walks the tree of the sum: counts each replica, and checks that each partial sum has one node and
 * one group. */
static void walk(int a, int b, int *seen)
{
    const int s = topo.partial_at[a];
    if (s >= 0 && topo.partial[s].end == b) {
        const struct dt__partial_sum *partial = &topo.partial[s];
        for (int r = a; r < b; r++) {
            seen[r]++;
            ck_assert_int_eq(topo.node_of[r], partial->node);
            ck_assert_int_eq(topo.group_of[r], topo.group_of[a]);
        }
        ck_assert_int_eq(partial->covers_group, dt__is_group(&topo, a, b));
        return;
    }
    ck_assert_int_gt(b - a, 1);
    const int split = dt__replicas_split(&topo, a, b);
    ck_assert(split > a && split < b);
    walk(a, split, seen);
    walk(split, b, seen);
}

/* Returns the most vectors that a node sends or receives in a step, as topology.c counts them. */
static double busiest_link(void)
{
    double busiest = 0;
    for (int n = 0; n < topo.nodes; n++) {
        const double fraction = topo.cut[n + 1] - topo.cut[n], sums = topo.partials_of[n];
        busiest = fmax(busiest, sums * (1 - fraction) + (topo.nodes - 1) * fraction);
        busiest = fmax(busiest, (topo.partials - sums) * fraction + 1 - fraction);
    }
    return busiest;
}

/* Ranks are placed on nodes in turn or contiguously, with more replicas than workers or fewer, and
 * with groups. */
START_TEST(placements_are_summed_once)
{
    for (int nodes = 1; nodes <= 5; nodes++)
        for (int workers = nodes; workers <= 9; workers += 2)
            for (int replicas = 1; replicas <= 17; replicas += 4)
                for (int variant = 0; variant < 4; variant++) {
                    int node_at[MAX_RANKS] = {0}, seen[MAX_RANKS] = {0};
                    const int groups = variant < 2 || replicas < 3 ? 1 : 3;
                    for (int w = 0; w < workers; w++)
                        node_at[1 + w] = variant % 2 ? w % nodes : w * nodes / workers;
                    const struct dt__placement placement = {replicas, groups, workers, 1, NULL};
                    topology_make(node_at, 1 + workers, 1, true, &placement);
                    walk(0, replicas, seen);
                    for (int r = 0; r < replicas; r++)
                        ck_assert_int_eq(seen[r], 1);
                    ck_assert_double_eq_tol(topo.cut[0], 0, 1e-12);
                    ck_assert_double_eq_tol(topo.cut[topo.nodes], 1, 1e-12);
                    bool has_one_each = true; /* each node has one partial sum */
                    for (int n = 0; n < topo.nodes; n++) {
                        ck_assert_double_ge(topo.cut[n + 1] - topo.cut[n], -1e-9);
                        has_one_each &= topo.partials_of[n] == 1;
                    }
                    ck_assert_double_le(busiest_link(),
                                        has_one_each ? 2.0 * (topo.nodes - 1) / topo.nodes + 1e-6
                                                     : MAX_RANKS);
                    topology_free();
                }
}
END_TEST

SUITE("topology", the_figure_in_the_header_is_right, banks_without_local_workers_are_agents,
      placements_are_summed_once)
