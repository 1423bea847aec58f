/* topology: the nodes of an exchange, their agents, the replicas, and the tree over the replicas.
 * It is computed once, without messages, from facts that all ranks know, and is const afterwards.
 *
 * The order in which gradients are summed is a binary tree over the replicas, whichever ranks have
 * them. Here are seven replicas, 0 to 3 on node 0, 4 to 6 on node 1:
 *
 *            node 0        |     node 1
 *     0     1     2     3  |   4     5     6      slots, one a replica
 *       0-1         2-3    |     4-5       6
 *             0-3          |         4-6          partial sums: the largest that one node has
 *                         0-6
 *
 * A node sends each of its partial sums. With H nodes that have one partial sum each, a link
 * carries 2 (H - 1) / H of the vector's bytes each way, the lower bound of any all-reduce. The bits
 * of the sum are a function of the replicas alone.
 *
 * With a rounded wire there is a tree over each group's replicas, and one over the groups; without
 * rounding, all replicas are one group. */
#ifndef DT_COMM_TOPOLOGY_H
#define DT_COMM_TOPOLOGY_H

#include <stdbool.h>

#include "base/arena.h"

/* A partial sum: one of the largest ranges [first, end) of the tree whose replicas are all on one
 * node, which computes the sum alone. */
struct dt__partial_sum {
    int first, end;
    int node;
    bool covers_group; /* its node rounds the sum */
    int place; /* another node's sum: its number among the sums of other nodes; this node's: among
                * this node's sums that cover a group */
};

/* Consecutive replicas whose sum is rounded before it is added to the sums of other groups
 * (train.groups). */
struct dt__group {
    int first; /* its first replica; the next group's first is its end */
    int node;  /* the node that has all of the group's replicas, and rounds their sum; -1: the
                * owners round it */
};

struct dt__topology {
    int nodes, node;     /* this rank's node */
    int rank;            /* this rank */
    int workers, agents; /* on this node */
    int agent;           /* this rank's number among the node's agents; -1: a bank whose node has
                          * workers */
    int owners, owner;   /* number of agents on all nodes, in node order; this rank's number among
                          * them */
    int *node_at;        /* (ranks) the node of each rank */
    int *agents_of;      /* (nodes + 1) index of a node's first agent in agent_rank */
    int *agent_rank;     /* (owners) the rank of each agent */

    int *node_of;                    /* (R) the node of each replica */
    int *group_of;                   /* (R) the group of each replica */
    struct dt__group *group;         /* (groups + 1) */
    struct dt__partial_sum *partial; /* (partials) in tree order */
    int *partial_at;                 /* (R) index of the partial sum that starts with this replica;
                                      * -1: none does */
    int *partials_of;                /* (nodes) number of partial sums of each node */
    int partials, others;            /* number of partial sums; of those on other nodes */
    int own_groups;                  /* number of this node's partial sums that cover a whole
                                      * group */
    bool others_cover;               /* every partial sum of other nodes covers a whole group */
    double *cut; /* (nodes + 1) node n owns fraction [cut[n], cut[n + 1]) of each range; 0 to 1 */
};

/* The placement of replicas on ranks. */
struct dt__placement {
    int replicas, groups;
    int workers, first_rank; /* ranks first_rank, first_rank + 1, ... are the workers */
    const int *worker_of;    /* (replicas) the worker of each; NULL: assigned evenly in order */
};

/* Allocates the tables, which live as long as `arena`. DT_EMEMORY. */
dt_status dt__topology_allocate(struct dt__topology *topo, struct dt__arena **arena, int ranks,
                                int replicas, int groups);
/* Numbers the agents by their ranks, node by node. `nodes` and `node_at` must be set. A bank that
 * is alone on its node is the node's agent. has_bank: rank 0 is a bank that computes no
 * gradients. */
void dt__topology_agents(struct dt__topology *topo, int ranks, int rank, bool has_bank);
/* Finds each replica's node and group, the partial sums, and the nodes' fractions of the vector. */
void dt__topology_replicas(struct dt__topology *topo, const struct dt__placement *placement);

/* Returns where range [a, b) of the tree over replicas splits: between replicas inside one group;
 * between groups if the range has several, which are then whole. */
int dt__replicas_split(const struct dt__topology *topo, int a, int b);

/* Returns whether the range is exactly one group. */
static inline bool dt__is_group(const struct dt__topology *topo, int a, int b)
{
    const struct dt__group *group = &topo->group[topo->group_of[a]];
    return a == group->first && b == group[1].first;
}
static inline int dt__agents(const struct dt__topology *topo, int node)
{
    return topo->agents_of[node + 1] - topo->agents_of[node];
}
/* Returns the rank of the node's agent number `agent`, modulo their number. */
static inline int dt__agent_rank(const struct dt__topology *topo, int node, int agent)
{
    return topo->agent_rank[topo->agents_of[node] + agent % dt__agents(topo, node)];
}

#endif
