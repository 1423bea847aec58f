/* The inside of a reducer.
 *
 * Bank and workers fall into hosts' groups: the ranks of a host, which share memory (node,
 * ordered), or each rank alone (reduce). A group's first rank leads it: it alone exchanges messages
 * with other groups. Inside a group, gradients stand in slots, one a replica, and are summed by the
 * fixed tree, each worker a slice. What happens beyond that is a row of functions (struct
 * dt__reducer_strategy):
 *
 *   shared   one group holds all: its workers update the slices at once, and the bank sleeps
 *   stream   the groups' sums go to the bank by MPI_Reduce, and weights back by MPI_Bcast
 *   owners   each group owns a slice of the vector: its sum by the fixed tree, its update, and the
 *            sending of its new weights
 *
 * How the flat vector is cut, and the words for it; here two buckets and a group of three workers:
 *
 *   vector  |--------------- bucket 0 ---------------|-------- bucket 1 --------|
 *   slices  |  worker 0   |  worker 1   |  worker 2  |   0    |   1    |   2    |
 *   blocks  |....:....:...|                             what is summed at once, in a core's cache
 *
 *   bucket   the gradient of one layer; buckets get ready from the last to the first
 *   slice    of a bucket: what one worker sums (and updates, in shared), or, in owners, what one
 *   group owns
 *   chunk    of a bucket (stream) or of an owner's slice (owners): one message between groups
 *   block    DT__TREE_BLOCK floats of a slice
 *   piece    of a bucket, whose update is posted once: a worker's slice (shared), a chunk (stream,
 *   owners), and
 *            a worker's touched rows (owners)
 *
 * and how gradients are summed over replicas; here seven of them, 0 to 3 on group 0, 4 to 6 on
 * group 1:
 *
 *            group 0       |     group 1
 *     0     1     2     3  |   4     5     6      slots, one a replica
 *       0-1         2-3    |     4-5       6
 *             0-3          |         4-6          the parts: maximal subtrees that one group holds
 *                         0-6
 *
 * In shared, the gradient of a matrix may stay two factors a replica (struct dt_factored): who
 * updates a tile of the matrix makes the replicas' gradients there himself, and sums them by the
 * same tree. With the norm, which needs all sums before, gradients are whole, and such a matrix is
 * only updated in tiles.
 *
 *   part     its sum is made inside the group; owners gets one sum for each part, stream one of all
 *   parts of
 *            a group
 *   giver    replicas in a row, whose sum is rounded before it is added to other givers' (a group
 *   of replicas,
 *            in the words of train.groups): by the group that holds them all, else by the owner, a
 *            slice each.
 *            There is a tree of each giver's replicas, and one of givers. With an f32 wire all are
 *            one giver */
#ifndef DT_COMM_REDUCER_H
#define DT_COMM_REDUCER_H

#include "base/limits.h"
#include "comm/rows.h"
#include "comm/shared.h"
#include "comm/wire.h"
#include "comm/world.h"

enum {
    DT__TREE_BLOCK = 2048, /* floats that are summed at once */
    DT__TREE_DEPTH = 18 /* log2 of most replicas + 1, and one more for two trees one on the other */
};
/* Of messages between leaders in a step; dt_ranks_move has 0. */
enum { DT__TAG_COUNTS = 1, DT__TAG_ROWS, DT__TAG_CHUNKS };
_Static_assert(DT_REDUCER_REPLICAS <= 1 << (DT__TREE_DEPTH - 2), "a block a level");
_Static_assert(DT__TREE_BLOCK % DT__WIRE_BLOCK == 0, "a sum is rounded as it is made");

/* How far a bucket has come. */
struct dt__bucket_events {
    struct dt__event_count ready;  /* workers whose gradients are written */
    struct dt__event_count summed; /* workers that have summed their slice for the group's leader */
    struct dt__event_count updated; /* pieces whose weights are the next step's */
};

/* Head of a group's shared memory. Counts rise by the same amounts every step: targets are products
 * with the number of steps begun. */
struct dt__control {
    struct dt__event_count ended;     /* workers that ended a step: all its gradients are written */
    struct dt__event_count normed;    /* workers that have summed their slice and its norm */
    struct dt__event_count agreed;    /* steps of which all know what is asked for */
    struct dt__event_count settled;   /* workers that have settled at the end of a span */
    struct dt__event_count exchanged; /* steps whose touched rows have come from all groups */
    struct dt__event_count met;       /* workers that have come to a barrier */
    _Alignas(64) _Atomic int asks[2]; /* by parity of the step */
    int agreed_ask[2];
    _Atomic int bank_ask;
    double norm2; /* for updates of touched rows, of several groups */
    struct dt__bucket_events bucket[];
};

/* Floats [begin, end) of the flat vector. */
struct dt__floats {
    size_t begin, end;
};

/* What buckets are made of, in order: floats that are exchanged whole, the rows of a row-sparse
 * range whose gradients are touched rows, and matrices that are updated tile by tile. */
struct dt__segment {
    enum { DT__WHOLE, DT__ROWS, DT__TILED } kind;
    int index; /* of the range or matrix */
    struct dt__floats at;
    size_t given; /* whole floats: where their bytes begin in a rounded sum */
};

struct dt__bucket {
    struct dt__floats at;
    int segment;                  /* its first one */
    bool has_rows;                /* some of them are touched rows */
    uint32_t pieces, pieces_done; /* that it is updated in; expected count of `updated` */
};

/* A maximal subtree of replicas that one group holds: it can make its sum alone. */
struct dt__part {
    int first, end; /* node [first, end) of the tree */
    int group, giver;
};

struct dt__giver {
    int first, part; /* where its replicas, and its parts, begin; those of the next one behind */
    int group;       /* that holds all of it, and rounds its sum; -1: the owners round it */
    /* (P) of rounded sums, at the bank's group, and at the group that rounds; else NULL */
    float *error;
    /* the rounded sum for other groups, at the group that rounds; else NULL */
    unsigned char *given;
};

enum { DT__ADVANCES = 5 };
struct dt__stream;
struct dt__owners;
struct dt__rows;

struct dt__reducer_strategy {
    /* What lies behind groups and memory, with the buckets' pieces, which are one a worker at
     * first: what this rank does by itself; then, where all have, of leaders what cannot fail. */
    dt_status (*prepare)(struct dt_reducer *x);
    void (*connect)(struct dt_reducer *x);
    void (*destroy)(struct dt_reducer *x);
    /* Leaders: the optimizer's state between the bank and the owners of slices. */
    void (*move_state)(struct dt_reducer *x, bool to_bank);
    /* One group: the whole end of a worker's step, and of the bank's span. */
    int (*end)(struct dt_reducer *x, int ask);
    int (*serve)(struct dt_reducer *x, uint64_t from, uint64_t until, dt_ask_fn *ask, void *arg,
                 uint64_t *out_step);
    /* Several groups, of which each has a leader that goes through the step: begins it; each does
     * what can be done now, true if there was something; whether all is done. */
    void (*begin)(struct dt_reducer *x);
    bool (*advance[DT__ADVANCES])(struct dt_reducer *x);
    bool (*done)(const struct dt_reducer *x);
};
extern const struct dt__reducer_strategy dt__reducer_shared, dt__reducer_stream, dt__reducer_owners;

struct dt_reducer {
    struct dt_world *world;
    /* the trainers; or a team of workers, whose first one has the bank's memory */
    struct dt_ranks all;
    const struct dt__reducer_strategy *strategy;
    struct dt_reducer_spec spec;
    struct dt__bucket *bucket;   /* (buckets + 1): the last one says where the others end */
    struct dt__segment *segment; /* of all buckets */
    size_t given;                /* bytes of a rounded sum */
    int exchange;       /* enum dt_exchange_kind */
    bool grouped;       /* ranks of a host form a group */
    bool one_sum;       /* a group gives away one sum, not one a part */
    size_t grain;       /* of a slice, the finest: a cache line, or a block of the wire */

    MPI_Comm group;
    struct dt_ranks leaders; /* the first ranks of the groups */
    int group_rank, group_size;
    int groups, group_index;
    int group_workers, worker; /* workers in the group; index of this one among them, -1: bank */
    int *group_of_replica;     /* (R) */
    struct dt__part *part;     /* of all groups, in tree order */
    int parts;
    struct dt__giver *giver; /* (givers + 1) likewise */

    struct dt__shared shared;
    struct dt__control *control;
    /* weights; in the bank's group the optimizer's state too; of
     * touched rows in every group */
    float *vectors[DT_REDUCER_VECTORS];
    float **slot;                       /* (R) gradients of the group's replicas, else NULL */
    double *norms; /* (norm_blocks) in the bank's group, if the norm is asked for */
    size_t norm_blocks;

    uint32_t tick;         /* steps begun since create, on every trainer */
    /* what `ended` and the like come to when all the group's workers have done this step */
    uint32_t group_done;
    uint32_t spans;        /* synchronization points held */
    uint32_t barriers;     /* come to */
    int buckets_summed;    /* of this step: of which this worker has summed its slice */
    int bank_ask;          /* leader: what the bank asks for, if it is this rank */
    bool agreed;           /* leader: what all ask for in this step is known */
    struct dt_update_info info;
    float (*block)[DT__TREE_BLOCK]; /* (DT__TREE_DEPTH) scratch: a block a level of the tree */
    float *fresh; /* (DT__TREE_BLOCK) new weights of a block, before the others see them */
    struct dt__stream *stream;
    struct dt__owners *owners;
    struct dt__rows *rows; /* of row-sparse ranges; NULL: there are none */
    struct dt__rows_exchange *rows_exchange; /* leader, owners with touched rows; else NULL */
    struct dt_factored *factored; /* (spec.matrices), copied */
    void **factors;               /* (R) of the group's replicas; NULL: gradients are whole */
    /* (spec.copies bytes) the group's; NULL: no matrix is updated tile by tile */
    void *copies;
    float *tiles;                 /* (tree's levels, most_tile) scratch */
    size_t most_tile;             /* floats */
    struct dt_reducer_times times;
};

/* ---- the fixed tree ------------------------------------------------------------------------- */

/* Node [a, b) of two or more leaves splits at a plus the largest power of two below b - a, so the
 * tree is a function of their number alone: the one order in which gradients are summed. */
int dt__tree_split(int a, int b);
/* Where floats [at, at + n) of the sum over node [a, b) stand: block[0], or elsewhere. NULL: it is
 * to be made of the node's halves. */
typedef const float *dt__leaf_fn(struct dt_reducer *x, const void *arg, int a, int b, size_t at,
                                 size_t n, float (*block)[DT__TREE_BLOCK]);
/* The same, made; n <= DT__TREE_BLOCK. block: scratch, one a level. */
const float *dt__tree_sum(struct dt_reducer *x, dt__leaf_fn *leaf, const void *arg, int a, int b,
                          size_t at, size_t n, float (*block)[DT__TREE_BLOCK]);
/* How the whole floats at this place are rounded: enum dt_wire. */
int dt__wire_at(const struct dt_reducer *x, size_t at);

/* Squares of a block of floats under way: blocks of DT__TREE_BLOCK floats, in eight lanes each. */
struct dt__norm {
    struct dt__floats at; /* that count */
    double *norms;        /* (blocks) */
    size_t block;
    double lane[8];
};
/* Adds floats [offset, offset + n), as far as they count, which stand at sum. */
void dt__norm_add(struct dt__norm *norm, const float *sum, size_t offset, size_t n);
/* Squares of those floats of [begin, end), which are whole blocks, that count for the norm, into
 * norms. Floats that are exchanged whole stand at their place in sum; rows, of one group, where
 * dt__rows_sum leaves them. */
void dt__norm_blocks(struct dt_reducer *x, double *norms, const float *sum, struct dt__floats at);
double dt__norm_total(const struct dt_reducer *x, const double *norms);

/* ---- slices --------------------------------------------------------------------------------- */

/* Slice `index` of `count` of these floats, cut where offsets are multiples of `grain`. */
struct dt__floats dt__slice(struct dt__floats of, int index, int count, size_t grain);
/* What of them lies in others, too. */
struct dt__floats dt__clip(struct dt__floats floats, struct dt__floats to);

/* ---- sums and updates ----------------------------------------------------------------------- */

/* Sums over all givers, of which `giver` knows the sums, to the floats' place in out. */
void dt__floats_sum(struct dt_reducer *x, dt__leaf_fn *giver, const void *arg,
                    struct dt__floats floats, float *out);
/* Updates floats by these sums, (P), or, if that is NULL, by such as dt__floats_sum makes. bytes:
 * where the rounded update goes; NULL: nowhere. */
void dt__floats_update(struct dt_reducer *x, dt__leaf_fn *giver, const void *arg,
                       struct dt__floats floats, const float *sums, float *const *vectors,
                       unsigned char *bytes);

/* The bank's floats to all other leaders, which call it too. */
void dt__leaders_bcast(struct dt_reducer *x, float *floats, size_t n);

/* Shared memory as it is dealt out; without memory it is only counted. */
struct dt__room {
    unsigned char *memory;
    size_t used;   /* SIZE_MAX: more than can be */
    size_t filled; /* of these, from the first on, those that are written all over */
};
/* The next bytes, from a cache line on; NULL without memory. */
void *dt__room_take(struct dt__room *room, size_t count, size_t size);

/* ---- inside a group ------------------------------------------------------------------------- */

/* Worker: says that its step's gradients are written; true for the group's last. */
bool dt__group_arrive(struct dt_reducer *x, int ask);
/* All ranks ask for this, all together. */
void dt__group_agreed(struct dt_reducer *x, int asked);
/* Worker: sums its slice, and its share of touched rows, of the next bucket that all workers of the
 * group have ready; false: there is none. The sum of each of the group's parts goes to the slot of
 * its first replica, or, with one_sum, of all to the first part's. */
bool dt__group_sum(struct dt_reducer *x);

#endif
