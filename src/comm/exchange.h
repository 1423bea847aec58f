/* The inside of the exchange of sync training: from the gradients of replicas to new weights at
 * every rank.
 *
 * Bank and workers fall into nodes: the ranks of a host, which share memory, or, with plain
 * MPI_Reduce and where that memory is wanting, each rank alone. A node's agents do its exchange:
 * its workers, or the bank where it has none. Each agent is an owner: it sums a slice of the
 * vector, keeps the optimizer's state of it, updates it, and sends the new weights to all other
 * nodes, from where its own messages bring it their sums. No rank carries another one's traffic.
 *
 * How the flat vector is cut; here two buckets, and two nodes of three and of one agent:
 *
 *   vector  |----------------- bucket 0 -----------------|-------- bucket 1 --------|
 *   slices  |  0.0   |  0.1   |  0.2   |      1.0        | 0.0 | 0.1 | 0.2 |  1.0   |
 *   chunks  |...:....|...:....|...:....|...:....:...:....|                            messages
 *   blocks                                                  what a core's cache holds
 *
 *   bucket   the gradient of one layer; buckets get ready from the last to the first
 *   segment  of a bucket: floats that are exchanged whole, rows of which a gradient touches few, or
 *            a matrix that is updated tile by tile
 *   slice    what one owner has of a segment
 *   chunk    of a slice: one message, and what is updated at once
 *   block    DT__TREE_BLOCK floats of a chunk: the sum of a block never leaves the cache
 *
 * In each node one agent acts for a chunk: it sums what the node's replicas give to it, sends that
 * to the owner, and takes the new weights into the node's memory. On one node there are no
 * messages, and the owner sums and updates in one pass.
 *
 * The order in which gradients are summed is a tree over the replicas, whoever has them; here
 * seven of them, 0 to 3 on node 0, 4 to 6 on node 1:
 *
 *            node 0        |     node 1
 *     0     1     2     3  |   4     5     6      slots, one a replica
 *       0-1         2-3    |     4-5       6
 *             0-3          |         4-6          subtrees: the largest that one node holds
 *                         0-6
 *
 * A node sends one sum for each of its subtrees. So with H nodes of one subtree each a link carries
 * 2 (H - 1) / H of the vector's bytes each way, the bound of any all-reduce; all sends go straight
 * to where they are for, which takes two latencies a bucket at any H; and the bits are a function
 * of the replicas alone.
 *
 * With a rounded wire the sum of each group of replicas is rounded before it is added to the
 * others': by the node that holds the group, so that it travels rounded, else by the owner. There
 * is a tree of each group's replicas, and one of groups. The owner sends the rounded update, which
 * each node adds to its weights. With an f32 wire all replicas are one group.
 *
 * Where one node holds all ranks the gradient of a matrix may stay two factors a replica (struct
 * dt_factored): who updates a tile of the matrix makes the replicas' gradients there itself, and
 * sums them by the same tree. With the norm, which needs all sums before, gradients are whole, and
 * such a matrix is only updated in tiles.
 *
 * Files: exchange.c ranks, nodes, memory, and what trainers call; layout.c who owns what; tree.c
 * sums, the norm and updates; step.c messages and the life of a step; reduce.c the same step by
 * plain MPI_Reduce and MPI_Bcast; rows.c touched rows; rows_exchange.c the same where they are
 * dealt to owners; wire.c rounding.
 *
 * Source: Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter
 * models", SC 2020, section 5 (the optimizer's state at owners); reduce-scatter and all-gather of
 * Thakur et al., "Optimization of collective communication operations in MPICH", 2005, by direct
 * sends. */
#ifndef DT_COMM_EXCHANGE_H
#define DT_COMM_EXCHANGE_H

#include "base/limits.h"
#include "comm/rows.h"
#include "comm/shared.h"
#include "comm/wire.h"
#include "comm/world.h"

enum {
    DT__TREE_BLOCK = DT_MEASURE_BLOCK, /* floats that are summed at once */
    DT__TREE_DEPTH = 18 /* log2 of most replicas + 1, and one more for two trees one on the other */
};
/* Of messages between nodes in a step; dt_ranks_move has 0. */
enum { DT__TAG_ROWS = 1, DT__TAG_WEIGHTS, DT__TAG_CHUNKS };
_Static_assert(DT_EXCHANGE_REPLICAS <= 1 << (DT__TREE_DEPTH - 2), "a block a level");
_Static_assert(DT__TREE_BLOCK % DT__WIRE_BLOCK == 0, "a sum is rounded as it is made");

/* Counts in a node's shared memory. They rise by the same amounts every step: targets are products
 * with the number of steps begun. */
struct dt__bucket_events {
    struct dt__event_count ready;   /* workers whose gradients are written (several nodes) */
    struct dt__event_count updated; /* pieces whose weights are the next step's */
};

struct dt__control {
    struct dt__event_count ended;  /* workers that ended a step: all its gradients are written */
    struct dt__event_count normed; /* agents whose blocks of the norm are there */
    struct dt__event_count norm_known; /* steps of which those of all nodes are */
    struct dt__event_count agreed;     /* steps of which all know what is asked for */
    struct dt__event_count settled;    /* workers that have settled at the end of a span */
    struct dt__event_count listed;     /* workers whose inputs of the next batch are listed */
    struct dt__event_count pulled;     /* agents that have brought the rows of these */
    _Alignas(64) _Atomic int asks[2];  /* by parity of the step */
    int agreed_ask[2];
    _Atomic int bank_ask;
    struct dt__bucket_events bucket[];
};

/* Floats [begin, end) of the flat vector. */
struct dt__floats {
    size_t begin, end;
};

struct dt__segment {
    enum { DT__WHOLE, DT__ROWS, DT__TILED } kind;
    int index; /* of the range or matrix */
    struct dt__floats at;
};

struct dt__bucket {
    struct dt__floats at;
    int segment; /* its first one; the next bucket's are behind its last */
    int chunk, chunk_end;
    bool has_shares;              /* rows or tiles are in it, of which each agent has a share */
    uint32_t pieces, pieces_done; /* that it is updated in; expected count of `updated` */
};

struct dt__chunk {
    int bucket;
    bool is_tiled;     /* summed for the norm alone: its matrix is updated in tiles */
    int node, owner;   /* whose agent `owner` owns it ... */
    int agent;         /* ... and who acts for it in this node */
    int place, places; /* its place in the slice, for who acts for it in other nodes */
    int turn;          /* and by how many agents that is shifted, so that all have their turn */
    /* of a node's first subtree, and so on; behind them, of weights. The same at every node, and
     * the same for each owner: who sends and who receives says whose chunk it is */
    int tag;
    struct dt__floats at;
    int wire;     /* enum dt_wire */
    size_t bytes; /* of its floats, rounded */
    /* Places in x->bytes: own: of the sums of other nodes' subtrees, as they come, one by one; else
     * of the sums of this node's subtrees that it rounds. And of the rounded update; f32: weights
     * travel from and to where they are. */
    size_t sums, update;
    /* its place among the floats that this agent acts for; own: among those that it owns */
    size_t acted_at, own_at;
    int first_send; /* of the requests: own: its weights; else this node's sums */
    int missing;    /* own: sums that this step still waits for, the node's own as one */
};

/* The largest range of replicas, a node [first, end) of the tree, that one node holds: it can make
 * its sum alone. */
struct dt__subtree {
    int first, end;
    int node, group;
    int number; /* among those of its node */
    /* how many stand before it, if it is another node's of other nodes, else of this one: of those
     * that are all of a group, and of the others */
    int wholes, rests;
};

/* Replicas in a row whose sum is rounded before it is added to other groups' (train.groups). */
struct dt__group {
    int first, subtree; /* where its replicas, and its subtrees, begin; the next group's behind */
    int node;           /* that holds all of it, and rounds its sum; -1: the owners round it */
};

/* How a step is done. */
struct dt__way {
    /* What this rank does by itself; then, where all have, what cannot fail. */
    dt_status (*prepare)(struct dt_exchange *x);
    void (*connect)(struct dt_exchange *x);
    void (*disconnect)(struct dt_exchange *x);
    /* Agents: begins a step; does what can be done now, true if there was something; whether all
     * is done but to know what ranks ask for. */
    void (*begin)(struct dt_exchange *x);
    bool (*advance)(struct dt_exchange *x);
    bool (*done)(const struct dt_exchange *x);
};
extern const struct dt__way dt__way_owners, dt__way_reduce;

struct dt__rows;
struct dt__rows_exchange;
struct dt__messages;
struct dt__reduce;

struct dt_exchange {
    struct dt_world *world;
    struct dt_ranks all; /* the trainers; or a team of workers, whose first one is its bank */
    struct dt_exchange_spec spec;
    const struct dt__way *way;
    int exchange;          /* enum dt_exchange_kind */
    struct dt__kept *kept; /* memory that goes with it, the last first */

    /* Nodes: index, and agents, of which the first ones talk for their nodes. */
    MPI_Comm node_comm;
    struct dt_ranks firsts; /* the nodes' first agents, by node */
    MPI_Comm asks_comm;     /* the same, for what they ask for */
    int nodes, node;
    int workers, agents; /* of this node */
    int agent;           /* this one's number among them; -1: a bank that has workers */
    int *node_at;        /* (ranks) which is whose */
    int *agents_of;      /* (nodes + 1) where a node's begin in: */
    int *agent_rank;     /* (agents of all nodes) their ranks in `all` */
    int *asks;           /* (nodes) what each asks for in this step */

    /* Layout. */
    struct dt__bucket *bucket; /* (buckets + 1): the last one says where the others end */
    struct dt__segment *segment;
    struct dt__chunk *chunk; /* of all owners, in the order in which this node sends */
    int chunks;
    struct dt__subtree
        *subtree; /* (subtrees + 1), in tree order; the last one counts all others' */
    int subtrees;
    int *subtrees_of;        /* (nodes) how many each has */
    int own_wholes;          /* this node's that are all of a group */
    int *subtree_at;         /* (R) the one that begins with this replica; -1: none */
    int *node_of;            /* (R) whose each replica is */
    struct dt__group *group; /* (groups + 1) */
    double *cut;       /* (nodes + 1) node n owns [cut[n], cut[n + 1]) of each slice; 0 to 1 */
    int tags;          /* of a chunk */
    size_t grain;      /* of a slice, the finest: a cache line, or a block of the wire */
    size_t acted, own; /* floats of the chunks for which this agent acts; that it owns */
    size_t byte_count; /* of `bytes` */
    int acted_chunks, own_chunks;

    /* Memory of the node. */
    struct dt__shared shared;
    struct dt__control *control;
    /* weights; at the bank's node the optimizer's state too. Of dealt rows those that the node has
     * pulled, one behind the other, and no state */
    float *vectors[DT_EXCHANGE_VECTORS];
    float **slot; /* (R) gradients of the node's replicas, else NULL */
    float *sums;  /* (P) where sums wait for the norm; NULL: it is not asked for */
    /* (norm_count) of this node's agents, zeros of the others'; of all nodes */
    double *norms, *all_norms;
    size_t norm_blocks;
    size_t norm_count; /* of doubles at each: behind the blocks are spec.measures, spec.squares */
    /* (spec.copies bytes) the node's; NULL: no matrix is updated tile by tile */
    void *copies;
    void **factors; /* (R) of the node's replicas; NULL each: gradients are whole */

    /* Memory of this rank. */
    float (*block)[DT__TREE_BLOCK]; /* (DT__TREE_DEPTH) scratch: a block a level of the tree */
    float *fresh; /* (DT__TREE_BLOCK) new weights of a block, before the others see them */
    struct dt_factored *factored; /* (spec.matrices), copied */
    float *tiles;                 /* (tree's levels, most_tile) scratch */
    size_t most_tile;             /* floats */
    unsigned char *bytes; /* that come or are rounded: sums and updates (struct dt__chunk) */
    float *state[DT_EXCHANGE_VECTORS]; /* (own) the optimizer's, but at the bank's node */
    /* (groups) errors of a group's rounded sum: at the bank's node (P), in its memory; at the node
     * that holds the group (acted); where no node does (own) */
    float **error;
    struct dt__rows *rows;                   /* of row-sparse ranges; NULL: there are none */
    struct dt__rows_exchange *rows_exchange; /* agents, dealt rows; else NULL */
    /* bank, dealt rows: the vectors, whole, to start from and to gather: as large as the model and
     * its state, on the bank's host alone; else NULL */
    float *books[DT_EXCHANGE_VECTORS];
    struct dt__messages *messages;
    struct dt__reduce *reduce;

    /* The step under way. */
    uint32_t tick;     /* steps begun since create, on every trainer */
    uint32_t all_done; /* what `ended` comes to when all the node's workers have done this step */
    struct dt_update_info info;
    int started; /* buckets of which this agent's work has begun */
    int summed;  /* own chunks whose sum is there */
    enum { DT__NORM_OPEN, DT__NORM_POSTED, DT__NORM_KNOWN } norm;
    MPI_Request asks_request; /* MPI_REQUEST_NULL: asks are not sent, or all are there */
    uint32_t spans;           /* synchronization points held */
    uint32_t barriers;        /* come to */
    struct dt_exchange_times times;
};

/* ---- layout --------------------------------------------------------------------------------- */

/* Node [a, b) of two or more leaves splits at a plus the largest power of two below b - a, so the
 * tree is a function of their number alone: the one order in which gradients are summed. */
int dt__tree_split(int a, int b);
/* Slice `index` of `count` of these floats, cut where offsets are multiples of `grain`. */
struct dt__floats dt__slice(struct dt__floats of, int index, int count, size_t grain);
/* What of them lies in others, too. */
struct dt__floats dt__clip(struct dt__floats floats, struct dt__floats to);
/* How the whole floats at this place are rounded: enum dt_wire. */
int dt__wire_at(const struct dt_exchange *x, size_t at);

/* Which node has each replica, and what that makes of the trees. */
void dt__layout_replicas(struct dt_exchange *x);
/* What buckets are made of. */
void dt__layout_segments(struct dt_exchange *x);
/* Who owns what. DT_EMEMORY; DT_EUSAGE: MPI has too few tags. */
dt_status dt__layout_chunks(struct dt_exchange *x);
/* Whose floats of the norm are this agent's: whole blocks. */
struct dt__floats dt__norm_slice(const struct dt_exchange *x);
/* The rank, of x->all, that acts for the chunk in a node. */
int dt__chunk_rank(const struct dt_exchange *x, const struct dt__chunk *chunk, int node);
static inline bool dt__is_own(const struct dt_exchange *x, const struct dt__chunk *chunk)
{
    return chunk->node == x->node && chunk->agent == x->agent;
}
/* The matrices that are updated tile by tile. */
int dt__tiled_matrices(const struct dt_exchange *x);
/* The subtree is all of a group: its node rounds the sum. */
static inline bool dt__is_whole(const struct dt_exchange *x, const struct dt__subtree *subtree)
{
    return x->group[subtree->group].node >= 0;
}
/* Bytes of a subtree's sum of the chunk. */
size_t dt__sum_bytes(const struct dt__chunk *chunk, bool whole);
/* That sum: another node's, as it comes; this node's, rounded if it is all of a group. */
void *dt__sum_at(const struct dt_exchange *x, const struct dt__chunk *chunk, int subtree);

/* ---- sums and updates ----------------------------------------------------------------------- */

/* Squares of a block of floats under way: blocks of DT__TREE_BLOCK floats, in eight lanes each. */
struct dt__norm {
    struct dt__floats at; /* that count */
    double *norms;        /* (blocks) */
    /* (edges) blocks whose squares several agents have, rising, and (edges, DT__TREE_BLOCK) these;
     * dealt rows alone */
    const size_t *edge;
    double *squares;
    size_t edges;
    bool open; /* a block is under way: */
    size_t block;
    double *shared; /* its place in squares; NULL: it is no edge */
    double lane[8];
};
/* Adds floats [offset, offset + n), as far as they count, which stand at sum. */
void dt__norm_add(struct dt__norm *norm, const float *sum, size_t offset, size_t n);
/* Squares of those floats of [begin, end), which are whole blocks, that count for the norm, into
 * norms. Floats that are exchanged whole stand at their place in sum. */
void dt__norm_blocks(struct dt_exchange *x, double *norms, const float *sum, struct dt__floats at);
double dt__norm_total(const struct dt_exchange *x, const double *norms);

/* Another node's chunk: sums of this node's subtrees, to dt__sum_at. */
void dt__chunk_give(struct dt_exchange *x, const struct dt__chunk *chunk);
/* What spec.measure says of these sums, which stand at their place in sum, if it is asked. */
void dt__floats_measure(struct dt_exchange *x, struct dt__floats floats, float *sum,
                        float *const *vectors);
/* Own chunk: the sum over all replicas to its place in x->sums, measured. */
void dt__chunk_sum(struct dt_exchange *x, const struct dt__chunk *chunk);
/* Own chunk: updates the weights, by x->sums or, where there is no norm, by the sum that is made
 * on the way. */
void dt__chunk_update(struct dt_exchange *x, const struct dt__chunk *chunk);
/* Sum and update of this agent's tiles of a matrix. */
void dt__tiles_update(struct dt_exchange *x, int matrix);
/* The optimizer's state of an own chunk: the vectors so placed that its floats are where they would
 * be in the whole; likewise the error of a group's sum. */
void dt__chunk_vectors(const struct dt_exchange *x, const struct dt__chunk *chunk,
                       float *out[DT_EXCHANGE_VECTORS]);
float *dt__chunk_error(const struct dt_exchange *x, const struct dt__chunk *chunk, int group);
/* Sums over each of this node's subtrees, added one to the other, to the first one's slot: what the
 * node gives to MPI_Reduce. */
void dt__floats_give(struct dt_exchange *x, struct dt__floats floats);

/* ---- memory and events ---------------------------------------------------------------------- */

/* dt_alloc of what goes with the exchange. */
dt_status dt__keep(struct dt_exchange *x, size_t count, size_t size, const char *what, void *out);

/* n floats between the bank and a rank; the others do nothing. */
void dt__move_floats(const struct dt_exchange *x, int rank, bool to_bank, float *at, size_t n);

/* First agent, several nodes: what the node asks for goes to all others once its workers have ended
 * the step. True if it is known now what all ask for. */
bool dt__asks_advance(struct dt_exchange *x);

#endif
