/* The inside of the sync exchange.
 *
 * Bank and workers fall into groups: the ranks of a host, which share memory (node, ordered), or
 * each rank alone (reduce). Inside a group, gradients stand in slots, one a replica, and are summed
 * by the fixed tree in slices. If one group holds all ranks, its workers update the slices at once
 * and the bank sleeps (exchange_share.c); else each group's leader streams chunks of the group's sums
 * to the bank and weights back (exchange_stream.c). */
#ifndef DT_COMM_EXCHANGE_H
#define DT_COMM_EXCHANGE_H

#include "comm/gate.h"
#include "comm/tree.h"
#include "comm/world.h"

enum {
    DT__NORM_BLOCK = DT__TREE_BLOCK, /* floats whose squares are summed together for the norm */
    DT__CHUNK = 15 << 10, /* floats a message between hosts: 60 KiB, below TCP's eager limit */
    DT__DEPTH = 16,       /* chunks under way at once */
    DT__MAX_VECTORS = 4
};

/* How far a bucket has come. */
struct dt__bucket_gates {
    struct dt__gate ready;   /* workers whose gradients are written */
    struct dt__gate summed;  /* workers that have summed their slice for the leader's stream */
    struct dt__gate updated; /* pieces whose weights are the next step's */
};

/* Head of a group's shared memory. Counts rise by the same amounts every step: targets are products
 * with the number of steps begun. */
struct dt__control {
    struct dt__gate ended;  /* workers that ended a step: all gradients of the step are written */
    struct dt__gate normed; /* workers that have summed their slice and its norm */
    struct dt__gate judged; /* steps whose verdict is out */
    struct dt__gate rested; /* workers that have settled at the end of a leg */
    _Alignas(64) _Atomic int asks[2]; /* by parity of the step */
    int verdict[2];
    _Atomic int bank_ask;
    struct dt__bucket_gates bucket[];
};

/* A piece of a bucket that travels as one message. */
struct dt__chunk {
    int bucket;
    size_t begin, end;
};

/* A subtree of replicas whose sum one group can make alone. */
struct dt__part {
    int first, end; /* node [first, end) of the tree */
    int group;
};

struct dt__stream; /* what a leader needs to stream; NULL if one group holds all */

struct dt_exchange {
    struct dt_world *world;
    struct dt_exchange_spec spec;
    size_t *bucket_end; /* (buckets), copied */
    int kind;
    bool grouped; /* ranks of a host form a group */
    bool tree;    /* the fixed tree reaches across groups */

    MPI_Comm group, leaders;
    int group_rank, group_size;
    int groups, group_index;
    int group_workers, worker; /* workers in the group; index of this one among them, -1: bank */
    int *group_of_replica;     /* (R) */

    MPI_Win window;
    void *memory; /* of a group of one */
    struct dt__control *control;
    float *vectors[DT__MAX_VECTORS]; /* weights; in the bank's group the optimizer's state too */
    float **slot;                    /* (R) gradients of the group's replicas, else NULL */
    double *norms;                   /* (blocks) in the bank's group, if the norm is asked for */
    size_t norm_blocks;

    uint32_t tick;         /* steps begun since create, on every rank of the crew */
    uint32_t legs;         /* meetings held */
    uint32_t *pieces_done; /* (buckets) expected counts of `updated` */
    uint32_t *pieces;      /* (buckets) pieces a bucket is updated in */
    struct dt_update_info info;
    struct dt__tree_scratch *scratch;
    float *fresh; /* (DT__TREE_BLOCK) new weights of a block, before the others see them */
    struct dt__stream *stream;
    struct dt_exchange_times times;
};

/* Floats [*begin, *end) of a range that are slice `index` of `count`, cut at multiples of `grain`. */
void dt__slice(size_t from, size_t to, int index, int count, size_t grain, size_t *begin,
               size_t *end);
size_t dt__bucket_begin(const struct dt_exchange *x, int bucket);
bool dt__exchange_is_bank_group(const struct dt_exchange *x);

/* exchange_share.c: the worker's end of a step when one group holds all ranks. */
int dt__share_end(struct dt_exchange *x, int ask);
int dt__share_serve(struct dt_exchange *x, uint64_t from, dt_ask_fn *ask, void *arg,
                    uint64_t *out_step);
/* Worker: says that its step's gradients are written; true for the group's last. */
bool dt__share_arrive(struct dt_exchange *x, int ask);
void dt__share_judge(struct dt_exchange *x, int verdict);
/* Squares of floats of [begin, end) at `sum`, block by block, into x->norms. */
void dt__norm_blocks(struct dt_exchange *x, const float *sum, size_t begin, size_t end);
double dt__norm_total(const struct dt_exchange *x);

/* exchange_stream.c */
void dt__stream_ready(struct dt_exchange *x, int bucket);
dt_status dt__stream_create(struct dt_exchange *x);
void dt__stream_destroy(struct dt_exchange *x);
int dt__stream_end(struct dt_exchange *x, int ask);
int dt__stream_serve(struct dt_exchange *x, uint64_t from, uint64_t until, dt_ask_fn *ask,
                     void *arg, uint64_t *out_step);

#endif
