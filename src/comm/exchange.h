/* Internals of the exchange of sync training: from the replicas' gradients to new weights on every
 * rank.
 *
 * A node is the set of ranks of one host, which share memory. (With plain MPI_Reduce, and where
 * shared memory is too small, each rank is a separate node.) The agents of a node do its part of
 * the exchange: they are its workers, or the bank if it has no workers. Every agent is also an
 * owner: the vector is cut into slices, and the owner of a slice sums its gradients, keeps its
 * optimizer state, updates it, and sends the new weights to all other nodes. Each agent sends and
 * receives its own messages; no rank forwards another rank's messages.
 *
 * This is how the flat vector is cut, in an example of two buckets and two nodes. Node 0 has three
 * agents, node 1 has one, and slice n.a belongs to agent a of node n:
 *
 *   vector  |----------------- bucket 0 -----------------|-------- bucket 1 --------|
 *   slices  |  0.0   |  0.1   |  0.2   |      1.0        | 0.0 | 0.1 | 0.2 |  1.0   |
 *   chunks  |...:....|...:....|...:....|...:....:...:....|                            messages
 *   blocks                                                                            in cache
 *
 *   bucket   the gradient of one layer; buckets become ready from the last to the first
 *   range    floats of one bucket that are exchanged in the same way (struct dt__range): all
 *            of them, only the rows of a table that a gradient touches, or a matrix tile by tile
 *   slice    the part of a range that one owner has
 *   chunk    the part of a slice that is sent as one message, and updated at once
 *   block    DT__TREE_BLOCK floats of a chunk; the sum of a block never leaves the cache
 *
 * In each node one agent acts for a chunk: it sums the gradients of the node's replicas, sends the
 * sum to the owner, and writes the new weights to the node's memory. With one node there are no
 * messages, and the owner sums and updates in one pass.
 *
 * Gradients are summed in the order of a binary tree over the replicas, whichever ranks have them
 * (topology.h). A node sends each of its partial sums directly to the owner, and the owner sends
 * the new weights directly to each node. So a bucket takes the latency of two messages, with any
 * number of nodes.
 *
 * With a rounded wire (wire.h) the tree has two levels: a tree over the replicas of each group, and
 * a tree over the groups. The sum of a group is rounded before it is added to the other groups'
 * sums. If one node holds the whole group, that node rounds the sum, so that it travels rounded;
 * otherwise the owner does. The owner sends the rounded update, which each node adds to its
 * weights. With an f32 wire all replicas are one group.
 *
 * If one node holds all ranks, each replica may leave the gradient of a matrix as two factors, not
 * multiplied (struct dt_factored). The agent that updates a tile of the matrix multiplies each
 * replica's factors for that tile, and sums the products by the same tree. If the norm is needed,
 * all sums must be known before the first update; then the replicas write whole gradients, and only
 * the update of such a matrix goes tile by tile.
 *
 * A range of the vector has a kind: whole floats (whole.c), touched rows (rows.c), distributed rows
 * (rows_exchange.c) or tiles of a matrix (tiles.c). A kind is a struct of functions; the rest of
 * the exchange does not ask which kind a range has. A backend does a step for the ranges of all
 * kinds: on one host (node.c), on several (owners.c), or by plain MPI_Reduce and MPI_Bcast
 * (reduce.c).
 *
 * Other files: exchange.c creates these structs; exchange_step.c has a step as trainers call it;
 * topology.c finds the nodes, and layout.c the owners of slices; tree.c sums and updates;
 * sum_norm.c computes the norm; wire.c rounds; requests.c tracks pending requests. Topology,
 * layout, node memory and the step's state are const except in the files that create them
 * (scripts/house.sh rules).
 *
 * Source: Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter
 * models", SC 2020, section 5 (the optimizer's state at owners); reduce-scatter and all-gather of
 * Thakur et al., "Optimization of collective communication operations in MPICH", 2005, by direct
 * sends. */
#ifndef DT_COMM_EXCHANGE_H
#define DT_COMM_EXCHANGE_H

#include "base/arena.h"
#include "base/limits.h"
#include "comm/requests.h"
#include "comm/rows.h"
#include "comm/shared.h"
#include "comm/topology.h"
#include "comm/wire.h"
#include "comm/world.h"

enum {
    DT__TREE_BLOCK = DT_MEASURE_BLOCK, /* floats that are summed at once */
    /* log2 of the largest number of replicas, + 1 for the root, + 1 for the tree over groups */
    DT__TREE_DEPTH = 18
};
/* Tags of messages between nodes in a step; dt__ranks_move uses 0. */
enum {
    DT__TAG_ASKS = 1,
    DT__TAG_SUMS,
    DT__TAG_WEIGHTS,
    DT__TAG_ROWS,
    DT__TAG_ROW_WEIGHTS,
    DT__TAG_SPLIT
};
_Static_assert(DT_EXCHANGE_REPLICAS <= 1 << (DT__TREE_DEPTH - 2), "a block for each level");
_Static_assert(DT__TREE_BLOCK % DT__WIRE_BLOCK == 0, "no wire block crosses a tree block");

/* Event counts in a node's shared memory. An event count rises by the same amount in every step, so
 * the value that a rank waits for is this amount times the number of steps started. `asks` are what
 * ranks ask for: the bits of enum dt_ask. */
struct dt__bucket_events {
    struct dt__event_count ready; /* several nodes: workers that have written their gradients */
    /* chunks that have new weights; in ranges that every agent updates (dt__kind.by_agents),
     * agents that have written their weights */
    struct dt__event_count updated;
};

struct dt__control {
    struct dt__event_count ended;      /* workers that ended the step: all gradients are written */
    struct dt__event_count normed;     /* agents that have written their blocks of the norm */
    struct dt__event_count norm_known; /* steps whose norm over all nodes is known */
    struct dt__event_count agreed;     /* steps for which agreed_asks is set */
    struct dt__event_count settled;    /* workers that have all weights of a span's last step */
    struct dt__event_count listed;     /* workers that have listed the inputs they read next */
    struct dt__event_count pulled;     /* agents that have pulled rows between steps */
    /* [step & 1]: the asks of this node's workers, and those of all ranks */
    _Alignas(64) _Atomic int asks[2];
    int agreed_asks[2];
    _Atomic int bank_asks;
    struct dt__bucket_events bucket[];
};

struct dt__kind;

struct dt__range {
    const struct dt__kind *kind;
    int bucket, index; /* index: number among the ranges of its kind */
    struct dt__floats at;
    int chunk, chunk_end;
};

struct dt__bucket {
    struct dt__floats at;
    int range; /* its first range; its ranges end at the next bucket's first */
    int chunk, chunk_end;
    uint32_t increment; /* how much dt__bucket_events.updated rises in a step */
};

struct dt__chunk {
    int bucket;
    int node, owner_agent; /* the owner: this agent of this node */
    int agent;             /* the agent that acts for the chunk in this node */
    /* in a node that is not the owner's, agent (helper modulo the node's number of agents) acts for
     * the chunk */
    int helper;
    struct dt__floats at;
    int wire;     /* enum dt_wire */
    size_t bytes; /* size of its rounded floats */
    /* Offsets in x->bytes. First come partial sums: if this agent owns the chunk, those received
     * from other nodes, in the order of the sums; otherwise, those of this node's sums that cover a
     * whole group. Then comes the rounded update. With f32, weights are sent from and received at
     * their own addresses. */
    size_t sums, sums_each, update;
    /* floats in the earlier chunks that this agent acts for; in those of them that it owns */
    size_t acted_at, own_at;
};

struct dt__layout;

/* A kind of range: how its gradients become weights. A function is NULL if no backend with this
 * kind calls it. All kinds have range, update and move; on several hosts also create, begin,
 * advance and done. */
struct dt__kind {
    /* Finds range number `index` of the kind. Returns false if there are no more, or if this
     * exchange has no ranges of this kind and treats their floats as whole. NULL: this is the kind
     * for whole floats, which has all floats that no other kind has. */
    bool (*range)(const struct dt_exchange *x, int index, struct dt__floats *out);
    bool is_cut;    /* the range is cut into chunks, which are summed one by one */
    bool by_agents; /* every agent updates its own part; false: it is updated chunk by chunk */
    bool is_apart;  /* only all owners together have all floats: a node's vectors lack some */

    /* Called before the node's memory is mapped: allocates the tables that determine its size. */
    dt_status (*reserve)(struct dt_exchange *x, struct dt__layout *layout);
    /* Returns how many bytes of a range, from its start, a vector of the node has. NULL: all. */
    size_t (*bytes)(const struct dt_exchange *x, const struct dt__range *range, enum dt__use use);
    /* Take this kind's part of the node's memory from shm. map: what it needs once per node;
     * map_replica: what a replica writes instead of whole gradients. */
    void (*map)(const struct dt_exchange *x, struct dt__node_memory *memory, struct dt__shm *shm);
    void (*map_replica)(const struct dt_exchange *x, struct dt__node_memory *memory, int replica,
                        struct dt__shm *shm);

    /* Phases of a step on several nodes, as in struct dt__backend. summed: returns whether all sums
     * that this agent owns are complete. */
    dt_status (*create)(struct dt_exchange *x);
    void (*begin)(struct dt_exchange *x);
    bool (*advance)(struct dt_exchange *x);
    bool (*summed)(const struct dt_exchange *x);
    bool (*done)(const struct dt_exchange *x);

    /* Sums and updates this agent's part of a range, in a step on one node. Returns how much of the
     * bucket's `increment` this completes. */
    uint32_t (*update)(struct dt_exchange *x, const struct dt__range *range);
    /* Adds to the norm the squares of the sums that this agent has of a range; of whole floats only
     * those in `at`. */
    void (*squares)(struct dt_exchange *x, const struct dt__range *range, struct dt__floats at,
                    struct dt__norm *norm);
    /* Collective over the trainers. Moves a range of the first `vectors` vectors between its owners
     * and the bank. A vector whose number is spec.vectors or more is the rounding error of a
     * group's sums. */
    void (*move)(struct dt_exchange *x, const struct dt__range *range, bool to_bank, int vectors);
};
extern const struct dt__kind dt__whole_kind, dt__touched_kind, dt__distributed_kind, dt__tiles_kind,
    dt__summed_tiles_kind;

/* How a step is done: on one host (node.c), by owners on several hosts (owners.c), or by MPI_Reduce
 * and MPI_Bcast (reduce.c). */
struct dt__backend {
    const struct dt__kind *const *kinds;          /* whole floats first; NULL at the end */
    bool (*applies)(const struct dt_exchange *x); /* NULL: always */
    /* Completes the layout, and allocates memory. */
    dt_status (*prepare)(struct dt_exchange *x, struct dt__layout *layout);
    void (*begin)(struct dt_exchange *x); /* NULL: nothing to do */
    /* Does what can be done now. Returns whether it did anything. NULL: everything is done at the
     * end of a step. */
    bool (*advance)(struct dt_exchange *x);
    /* Returns whether the step is complete, apart from the agreement on what ranks ask for. */
    bool (*done)(const struct dt_exchange *x);
    /* Does the rest of the step; returns what all ranks ask for. */
    int (*end)(struct dt_exchange *x);
};
extern const struct dt__backend dt__node_backend, dt__owners_backend, dt__reduce_backend;

/* The nodes' first agents exchange the asks of all nodes in stages. In stage i, let stride be
 * DT__ASKS_RADIX^i. Before the stage, a node knows the asks of stride nodes: its own, and those of
 * the nodes just before it. In the stage it sends these to the nodes that are k * stride after it,
 * where k is 1, 2, ..., DT__ASKS_RADIX - 1. Up to DT__ASKS_RADIX nodes take one stage, in which
 * each node sends to all others. (A tree would take several stages, and in each of them a message
 * would wait for the gradients before it in its connection.) 512 nodes take three stages, in which
 * a node sends 31 messages instead of 511. */
struct dt__asks {
    int64_t stride; /* of the next stage; 0: no stage of this step has started */
    int out, in[DT__ASKS_RADIX];
    int come, left; /* of the last stage: messages to be read from `in`; requests in flight */
};

/* Several nodes: what remains before the norm is known and updates may start. Only sum_norm.c
 * writes it. */
struct dt__norm_progress {
    int phases; /* remaining; 0: the norm is known */
    int left;   /* 1: the sum over the nodes is in flight */
};

/* How the vector is cut. Const after creation. */
struct dt__layout {
    struct dt__bucket *bucket; /* (buckets + 1): the last one marks the end */
    struct dt__range *range;
    struct dt__chunk *chunk; /* of all owners, in the order in which this node sends */
    int chunks;
    size_t grain;    /* of slices, in floats: a cache line, or a block of the wire or of the norm */
    bool is_one_cut; /* slices are cut from the whole vector, so each norm block has one owner */
    /* numbers of the norm blocks that have rows of several owners, ascending; NULL: none */
    const struct dt_touched *edge;
    size_t acted, own; /* floats of the chunks that this agent acts for; of those that it owns */
    size_t byte_count; /* size of x->bytes */
};

/* Memory that the ranks of a node share. Its addresses are const after creation. */
struct dt__node_memory {
    struct dt__shared shared;
    struct dt__control *control;
    /* Weights; on the bank's node also the optimizer state. Of distributed rows a node has only the
     * weights of the rows that it has pulled, one after another. */
    float *vectors[DT_EXCHANGE_VECTORS];
    float **slot; /* (R) gradients of the node's replicas; NULL for others */
    float *sums;  /* (P) sums that wait for the norm; NULL: the norm is not needed */
    /* (norm_count) norms: the values that this node's agents computed, and 0 for all others;
     * all_norms: the sum of all nodes' norms. The values are one per norm block, then
     * spec.norm.measures measures, spec.norm.squares further squares, and the squares of all floats
     * of shared blocks (layout->edge). */
    double *norms, *all_norms;
    size_t norm_count;
    /* (spec.copies bytes) shared by the node; NULL: no matrix is updated tile by tile */
    void *copies;
    void **factors; /* (R) factors of the node's replicas; entries are NULL where gradients are
                     * whole */
    /* Books are whole vectors on the bank's node, for an exchange in which only the owners together
     * have all floats (or with spec.tail). Training starts from them, and the owners' floats are
     * gathered into them. They are as large as the model and its state; large ones are in an
     * unnamed file, so the kernel keeps in memory what fits. NULL: no books. */
    struct dt__shared books_memory;
    float *books[DT_EXCHANGE_VECTORS];
};

/* Scratch memory of this rank. */
struct dt__scratch {
    float (*block)[DT__TREE_BLOCK]; /* (DT__TREE_DEPTH) one block per level of the tree */
    /* (DT__TREE_BLOCK) new weights of a block, before they are copied out; NULL: updates are in
     * place */
    float *fresh;
    float *tiles;     /* (DT__TREE_DEPTH, most_tile) one tile per level of the tree */
    size_t most_tile; /* floats */
};

/* State of a step. Only exchange_step.c writes it. */
struct dt__step {
    uint32_t tick;     /* steps started since create, on every trainer */
    uint32_t steps;    /* steps that this agent has completed */
    uint32_t all_done; /* value of `ended` when all the node's workers have done this step */
    struct dt_update_info info;
    int open;       /* 1: the step is pending; 0: it is done, and all asks are known */
    uint32_t spans; /* synchronization points passed */
    struct dt__asks asks;
};

struct dt_exchange {
    struct dt_world *world;
    struct dt_ranks all; /* the trainers, or spec.workers workers, whose first acts as the bank */
    struct dt_exchange_spec spec; /* with defaults resolved; its row ranges are copied */
    const struct dt__backend *backend;
    const struct dt__kind **kind; /* the backend's kinds that have ranges, then NULL */
    struct dt__arena *arena;
    MPI_Comm node_comm;
    struct dt_ranks firsts; /* the nodes' first agents, by node */

    /* Filled by exchange.c; const elsewhere. */
    const struct dt__topology *topo;
    const struct dt__layout *layout;
    const struct dt__node_memory *memory;
    const struct dt__step *step;

    /* Memory of this rank. */
    struct dt__scratch scratch;
    unsigned char *bytes;              /* received or rounded sums and updates (struct dt__chunk) */
    float *state[DT_EXCHANGE_VECTORS]; /* (own) optimizer state, except on the bank's node */
    /* (errors) for each group the rounding errors of its sum: on the bank's node (P) floats in the
     * node's memory; on another node that holds the whole group (layout->acted) floats; if no node
     * does, (layout->own) floats */
    float **error;
    int errors;            /* groups, if sums are rounded; else 0 */
    struct dt__rows *rows; /* row-sparse ranges; NULL: none */
    /* State of a step, each written only by the file of that name; NULL: not used in this
     * exchange. */
    struct dt__whole *whole;
    struct dt__rows_exchange *rows_exchange;
    struct dt__reduce *reduce;
    struct dt__norm_progress norm;

    struct dt__requests requests; /* all requests in flight */
};

/* ---- layout --------------------------------------------------------------------------------- */

/* Returns slice `index` of `count` equal slices of a range, cut at multiples of `grain`. */
struct dt__floats dt__slice(struct dt__floats of, int index, int count, size_t grain);
/* Returns the intersection of two ranges; an empty range if they are disjoint. */
struct dt__floats dt__clip(struct dt__floats floats, struct dt__floats to);

/* Cuts buckets into ranges of one kind each. */
void dt__layout_ranges(const struct dt_exchange *x, struct dt__layout *layout);
/* Cuts these ranges into chunks, each with its owner. DT_EMEMORY. */
dt_status dt__layout_chunks(struct dt_exchange *x, struct dt__layout *layout);
static inline int dt__ranges(const struct dt_exchange *x)
{
    return x->layout->bucket[x->spec.buckets].range;
}
/* Returns the range of whole blocks whose squares this agent adds to the norm. */
struct dt__floats dt__norm_slice(const struct dt_exchange *x);
/* Returns the nth bucket of a step: buckets become ready from the last to the first. */
static inline int dt__bucket_at(const struct dt_exchange *x, int nth)
{
    return x->spec.buckets - 1 - nth;
}
/* Returns the rank, in x->all, of the agent that acts for the chunk in a node. */
int dt__chunk_rank(const struct dt_exchange *x, const struct dt__chunk *chunk, int node);
/* Returns the bytes of a partial sum of the chunk. rounded: the sum covers a whole group, and
 * travels rounded. */
size_t dt__sum_bytes(const struct dt__chunk *chunk, bool rounded);
/* Returns the address of a partial sum of the chunk, to which another node's sum is received, and
 * from which this node's sum is sent. If this node's sum covers only part of a group, the address
 * is in the slot of the sum's first replica. */
void *dt__sum_at(const struct dt_exchange *x, const struct dt__chunk *chunk, int partial);
/* Returns the address of the chunk's new weights or, if it is rounded, of its update; messages are
 * sent from there and received there. NULL: they are not sent. */
unsigned char *dt__update_at(const struct dt_exchange *x, const struct dt__chunk *chunk);

/* ---- sums and updates ----------------------------------------------------------------------- */

/* Adds left + right into out, (n) each. out may be left or right. */
void dt__floats_add(size_t n, const float *left, const float *right, float *out);

/* Adds the squares of a sum while the sum is computed: blocks of DT__TREE_BLOCK floats, each in
 * eight accumulators. */
struct dt__norm {
    struct dt__floats at; /* floats that count in the norm */
    const float *sum;     /* the summed whole floats */
    double *norms;        /* (blocks) results */
    /* layout->edge, and (edges, DT__TREE_BLOCK) the squares of its blocks */
    const struct dt_touched *edge;
    double *squares;
    bool open; /* a block was started and is not complete */
    size_t block;
    double *shared; /* the block's address in squares; NULL: the block is not shared */
    double partial[8];
};
/* Returns the number of floats of [at, end) before the next multiple of DT__TREE_BLOCK. */
static inline size_t dt__block_length(size_t at, size_t end)
{
    const size_t n = DT__TREE_BLOCK - at % DT__TREE_BLOCK;
    return n < end - at ? n : end - at;
}
/* Returns the block of `floats` that starts at `at`; an empty block at their end. */
static inline struct dt__floats dt__block_at(struct dt__floats floats, size_t at)
{
    return (struct dt__floats){at, at + dt__block_length(at, floats.end)};
}
/* Returns the squares of a block that several agents share; NULL: one agent has all of it. */
double *dt__edge_squares(const struct dt__norm *norm, size_t block);
/* Adds the squares of those floats of [offset, offset + n) that are in norm->at. `sum` is the
 * address of float `offset`. */
void dt__norm_add(struct dt__norm *norm, const float *sum, size_t offset, size_t n);
/* Computes the blocks of the norm for this agent's rows, and for the whole floats in `at`, which
 * must be whole blocks. sum: indexed like the whole vector. */
void dt__norm_blocks(struct dt_exchange *x, const float *sum, struct dt__floats at);
/* Computes the norm from the blocks of all agents, and passes norm and measures to the updates. */
void dt__norm_publish(struct dt_exchange *x, const double *norms);
/* Takes memory for the norm from shm, if the norm is needed. */
void dt__norm_map(const struct dt_exchange *x, struct dt__node_memory *memory, struct dt__shm *shm);
/* If the norm is needed, sums an owned chunk and measures the sum; otherwise does nothing. */
void dt__norm_sum(struct dt_exchange *x, const struct dt__chunk *chunk);
/* For several nodes. _begin starts a step; _advance does what can be done now, and returns whether
 * it did anything. */
void dt__norm_begin(struct dt_exchange *x);
bool dt__norm_advance(struct dt_exchange *x);

/* Writes this node's partial sums of another node's chunk to dt__sum_at. */
void dt__chunk_give(struct dt_exchange *x, const struct dt__chunk *chunk);
/* Calls spec.norm.measure, if set, for summed floats. sum: indexed like the whole vector. */
void dt__floats_measure(struct dt_exchange *x, struct dt__floats floats, float *sum,
                        float *const *vectors);
/* Sums an owned chunk over all replicas, into x->memory->sums. */
void dt__chunk_sum(struct dt_exchange *x, const struct dt__chunk *chunk);
/* Updates the weights of an owned chunk, from x->memory->sums or, without the norm, from the sum
 * that it computes in the same pass. */
void dt__chunk_update(struct dt_exchange *x, const struct dt__chunk *chunk);
/* Functions for the kinds of range whose floats each node has all. */
void dt__whole_squares(struct dt_exchange *x, const struct dt__range *range, struct dt__floats at,
                       struct dt__norm *norm);
void dt__whole_move(struct dt_exchange *x, const struct dt__range *range, bool to_bank,
                    int vectors);
/* Return the vectors of an owned chunk, and the error of a group's sum. The pointers are shifted so
 * that the chunk's floats are at their offsets in the whole vector. */
void dt__chunk_vectors(const struct dt_exchange *x, const struct dt__chunk *chunk,
                       float *out[DT_EXCHANGE_VECTORS]);
float *dt__chunk_error(const struct dt_exchange *x, const struct dt__chunk *chunk, int group);
/* Adds all partial sums of this node into the slot of the first one. The result is the node's
 * operand of MPI_Reduce. */
void dt__floats_give(struct dt_exchange *x, struct dt__floats floats);

/* ---- a step --------------------------------------------------------------------------------- */

/* Passes norm2 and measures, of the whole gradient, to the updates. */
void dt__step_publish(struct dt_exchange *x, double norm2, const double *measures);
/* Counts the step as done, unless it has no effect (DT_ASK_VOID). Returns what all ranks ask
 * for. */
int dt__step_close(struct dt_exchange *x);

/* Publishes what all ranks ask for to the waiting ranks of this node. */
void dt__asks_publish(struct dt_exchange *x, int asked);
/* Collects and resets what this node's workers ask for, and reads what its bank asks for. */
int dt__asks_of_node(struct dt_exchange *x);
/* The `end` function of the backends for several nodes. */
int dt__step_end(struct dt_exchange *x);

/* Waits for an event of the node; the time counts as wait. */
void dt__exchange_wait(struct dt_exchange *x, struct dt__event_count *event, uint32_t target,
                       const char *what);
/* Advances the exchange until *left is 0; returns at once on one node. The time counts as network,
 * except for sums and updates. */
void dt__exchange_finish(struct dt_exchange *x, const int *left, const char *what);

#endif
