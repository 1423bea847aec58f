/* comm: ranks and roles, collective agreement and abort, waits that sleep, the sync exchange.
 *
 * This module handles float vectors, not models. Every wait sleeps after a short spin and is
 * watched: after `stall_secs` without progress the job ends, and reports the rank, step and phase
 * that made no progress. */
#ifndef COMM_COMM_H
#define COMM_COMM_H

#include "base/base.h"
#include "base/batch.h"
#include "config/config.h"
#include "dtrain/world.h"

/* ---- world ---------------------------------------------------------------------------------- */

enum dt_role { DT_ROLE_BANK, DT_ROLE_WORKER, DT_ROLE_EVALUATOR };

enum { DT_HOST_NAME = 64 };
struct dt_ranks; /* a set of ranks that act together */

/* This process's place in the job. Callers only read it. */
struct dt_world {
    int rank, size;
    int hosts;
    char (*host_name)[DT_HOST_NAME]; /* (size) */
    int *host_of;                    /* (size) host index */
    int cores;                       /* shared by the ranks of this host */
    struct dt_ranks *all;
    struct dt_ranks *trainers; /* the bank, then the workers by number; no evaluator */

    /* Set by dt__world_set_roles. */
    enum dt_role role;
    bool is_bank;
    /* This rank computes gradients. True on every rank except bank and evaluator, and on a bank
     * that is the only rank. */
    bool is_worker;
    int workers;     /* at least 1 */
    int worker;      /* this rank's number, -1: none. Workers are numbered host by host, hosts with
                      * most workers first */
    int *rank_of;    /* (workers) rank of each worker */
    int *workers_of; /* (hosts) workers on each host */
    int worker_rank; /* worker 0's number among the trainers; worker w's is worker_rank + w */
    int evaluator;   /* rank of the evaluator, -1: none */

    struct dt__world_inside *inside; /* communicators and watchdog */
};

/* Collective over the world. Destroys a world of dt_world_create, and ends MPI; `world` is NULL if
 * dt_world_create failed. Print any error line before this call, since launchers kill all ranks
 * when the first one has ended. The wait until all ranks have arrived is watched, with the
 * stall_secs that was set last (dt__world_watch), or 600 s if none was. If a rank dies or hangs
 * after that, the other ranks exit with the code of `status`: after 10 s if it is a failure,
 * otherwise after run.stall_secs, but at least 60 s (run.stall_secs 0: they wait). */
void dt__world_end(struct dt_world *world, dt_status status);

/* Collective over the world.
 * Assigns the roles; with `dedicated` the last rank is the evaluator. */
void dt__world_set_roles(struct dt_world *world, bool dedicated);
/* Sets the replicas of worker `worker` of `workers` to [*first, *first + *count): contiguous, and
 * as even as possible. With more workers than replicas, each of the first R workers has one. */
void dt__replicas_assign(int workers, int worker, int replicas, int *first, int *count);

/* Collective over the world. Creates a world of the ranks that pass the same color, 0 or more, in
 * rank order. With color -1 this rank is in no new world, and *out is NULL. Progress in the new
 * world counts as progress in `world`. Destroy it before `world`. */
dt_status dt__world_split(struct dt_world *world, int color, struct dt_world **out);

/* Collective over the world. Creates zeroed memory that the ranks of each host share. *out_first is
 * true on one rank of each host: the one that may fill the memory. 0 bytes give NULL. Each rank
 * frees the memory with dt__world_unshare (NULL is fine). DT_EMEMORY. */
struct dt__shared;
dt_status dt__world_share(struct dt_world *world, size_t bytes, const char *what,
                          struct dt__shared **out, bool *out_first);
void *dt__shared_memory(const struct dt__shared *shared); /* NULL if shared is NULL */
void dt__world_unshare(struct dt__shared *shared);

/* Not collective. Starts the watchdog: from now on the job ends when a rank that has work makes no
 * progress for stall_secs (0: off), when no rank makes progress, or at once when a process of this
 * host dies. */
void dt__world_watch(struct dt_world *world, double stall_secs);
/* Not collective. Ends the watch over a training run or another operation: from now on only dead
 * processes are noticed. stopped: the operation has obeyed a stop request, which is cleared
 * (dt__stop_clear); all ranks must pass the same value. */
void dt__world_rest(struct dt_world *world, bool stopped);
/* Not collective. Records progress: `phase` ("gradient", "evaluation", ...; at most 31 bytes are
 * shown) has started or advanced. Costs a few stores. */
void dt__world_heartbeat(struct dt_world *world, const char *phase, uint64_t step);
enum { DT_PHASE_TEXT = 32 };
/* Status of a rank, as far as this rank knows it. It knows the ranks of its host; besides, the bank
 * knows the first rank of each other host, and these first ranks know the bank. */
struct dt_rank_status {
    int rank;
    const char *host, *role; /* "bank", "worker", "evaluator" */
    bool known;              /* the rank has been heard from; else the members below are not set */
    /* what the rank does; what it waits for, or "" if it does not wait */
    char phase[DT_PHASE_TEXT], wait[DT_PHASE_TEXT];
    uint64_t step;
    uint64_t samples;       /* samples trained on, as last published; 0: unknown (other hosts) */
    double idle_secs;       /* seconds since its last progress or message */
    double wait_fraction;   /* recent fraction of time spent waiting, in [0, 1]; NaN: unknown */
    double samples_per_sec; /* NaN: not set by dt__world_rank_status */
};
void dt__world_rank_status(const struct dt_world *world, int rank, struct dt_rank_status *out);
/* Not collective. Publishes two values for dt__world_rank_status: the samples that this rank has
 * trained on since the start, and its recent fraction of time spent waiting; negative: unknown. */
void dt__world_show(struct dt_world *world, uint64_t samples, double wait_fraction);
/* Not collective. Marks this rank as having nothing to do but wait for `what`, for any length of
 * time. Call it regularly. */
void dt__world_idle(struct dt_world *world, const char *what);

/* Not collective. Returns true on one rank of each host: the rank that may print the job's error
 * line. When one rank aborts, the other ranks are asked to stop, and may fail because of that. */
bool dt__world_claim_error(struct dt_world *world);
/* Not collective.
 * Prints "dtrain: error: [rank N on HOST] MESSAGE" once per host and ends the job at once. */
void dt__world_abort(struct dt_world *world, dt_status status) __attribute__((noreturn));

/* Collectives over a set of ranks, whose waits sleep. A failure in MPI ends the job, so functions
 * that allocate no memory cannot fail.
 *
 * Collective over the ranks. Agrees on a status: each rank passes its own, and all return the
 * status of the lowest rank that failed, with its message as the error text, prefixed "[rank N on
 * HOST] " unless the status is DT_EUSAGE or the job has one rank. */
dt_status dt__ranks_agree(const struct dt_ranks *ranks, dt_status mine);
void dt__ranks_barrier(const struct dt_ranks *ranks);
void dt__ranks_bcast(const struct dt_ranks *ranks, void *bytes, size_t length, int root);
/* Collective over the ranks. Broadcasts bytes of any length from root; other ranks receive them in
 * memory from dt__alloc. */
dt_status dt__ranks_bcast_blob(const struct dt_ranks *ranks, void *inout_bytes,
                               size_t *inout_length, int root);
/* Collective over the ranks. Gathers `length` bytes of every rank on the first rank, in rank order;
 * `all` is NULL on other ranks. */
void dt__ranks_gather(const struct dt_ranks *ranks, const void *bytes, size_t length, void *all);
/* Collective over the ranks. Sums each value over the ranks into `out` on the first rank. There
 * `values` may be NULL, which counts as zeros; `out` may be NULL on other ranks. */
void dt__ranks_sum(const struct dt_ranks *ranks, const double *values, int count, double *out);
/* Moves n floats from `own` on rank `rank` to `first` on the first rank, or back; other ranks do
 * nothing. `rank` may be the first rank itself, and own and first the same address. If all floats
 * are equal, as in a new run's state (perhaps gigabytes), only one is sent. */
void dt__ranks_move(const struct dt_ranks *ranks, int rank, bool to_first, float *own, float *first,
                    size_t n);

/* Not collective. Sends a message of at most 1 GiB to a rank. Sending a few KiB does not wait. */
void dt__world_send(struct dt_world *world, int rank, int tag, const void *bytes, size_t length);
/* Not collective. Receives exactly `length` bytes of a message from `rank` with `tag`. Returns
 * false if none has arrived yet. */
bool dt__world_try_recv(struct dt_world *world, int rank, int tag, void *bytes, size_t length);

/* Return the MPI library's version text and "major.minor" of the standard. */
const char *dt__world_mpi_version(void);
/* Not collective. Returns whether MPI is Open MPI; mpirun is Hydra with other MPIs (MPICH, MVAPICH,
 * Intel's). May be called before MPI starts. */
bool dt__world_is_open_mpi(void);
/* Returns, in `buffer`, the settings made for Open MPI, by the user or by dt_world_create, such as
 * " (mpi_yield_when_idle=1, osc=^ucx)"; on several hosts under TCP's BBR "btl_tcp_sndbuf=BYTES" is
 * added. "" for another MPI. */
enum { DT_MPI_SETTINGS = 128 };
const char *dt__world_mpi_settings(char buffer[DT_MPI_SETTINGS]);

/* ---- the exchange of a sync step ------------------------------------------------------------- */

/* Returns where the fixed binary tree of sums splits range [a, b) of two or more leaves: at a plus
 * the largest power of two below b - a, so the tree is a function of the number of leaves alone. */
int dt__tree_split(int a, int b);

/* The exchange sums the workers' gradients, updates the weights, and returns the new weights to the
 * workers, bucket by bucket. There are three kinds of exchange. With `node` and `ordered`, each
 * worker owns a slice, which it sums and updates. On one host (node) it does so in memory that the
 * workers share with the bank, which sleeps meanwhile. On several hosts (ordered) the owner
 * receives the other hosts' sums, and sends the new weights back. Each host then holds only those
 * rows of row-sparse ranges that its workers need next, and the owners hold all others. With plain
 * MPI_Reduce (reduce) the bank sums and updates everything. */

/* The facts about a step that updates use. */
struct dt_update_info {
    uint64_t step; /* updates done before this one */
    double norm2;  /* squared norm of the gradient sum if spec.norm.needed; else 0 */
    /* (spec.norm.measures) what all calls of dt_measure_fn wrote; NULL: not known yet */
    const double *measures;
};

/* Applies the summed gradient of floats [offset, offset + n) to the vectors. Any trainer may call
 * it, for several slices at the same time. grad is (n). vectors[0] has the weights, the others the
 * optimizer's state; they are indexed like the whole vectors, but only floats [offset, offset + n)
 * are present. The new weights go to out (n), which may alias the old ones. Must act element by
 * element. */
typedef void dt_update_fn(void *arg, const struct dt_update_info *info, size_t offset, size_t n,
                          const float *grad, float *const *vectors, float *out);

/* Computes, before the first update, what updates must know of the whole summed gradient. It is
 * called once for each range that lies in one block of DT_MEASURE_BLOCK floats and in one bucket,
 * by the rank that will update the range or by another rank that has these floats of the vectors.
 * It may change the sum (n), which the update then receives, and the optimizer's state. At most one
 * call writes each of the spec.norm.measures doubles; the others are 0. */
typedef void dt_measure_fn(void *arg, const struct dt_update_info *info, size_t offset, size_t n,
                           float *sum, float *const *vectors, double *measures);
enum { DT_MEASURE_BLOCK = 2048 };

/* A row-sparse range of the flat vector: each gradient touches few of its rows. */
struct dt_row_range {
    size_t offset, rows, width; /* floats [offset, offset + rows * width) */
    /* untouched rows do not change; false: they are updated with a gradient of 0 */
    bool touched_alone;
    /* Row r belongs to input first + r. All rows of an input have one owner. A worker that needs
     * any row needs all inputs below every range's `first`. */
    size_t first;
    size_t most; /* upper bound on the rows that a replica's gradient touches; 0: all rows */
};
/* Updates `count` rows of a range in place, like dt_update_fn. Row numbers rise; grad is (count,
 * range->width). */
typedef void dt_update_rows_fn(void *arg, const struct dt_update_info *info,
                               const struct dt_row_range *range, const uint32_t *row, size_t count,
                               const float *grad, float *const *vectors);

/* Computes the gradient of a tile of factored matrix number `matrix` from a replica's factors; out
 * is (rows, columns) of the tile. */
typedef dt_status dt_tile_fn(void *arg, int matrix, const void *factors, struct dt_tile tile,
                             float *out);
/* Updates a tile in place, like dt_update_fn: grad is (rows, columns) of the tile, vectors are
 * whole. */
typedef void dt_update_tile_fn(void *arg, const struct dt_update_info *info, int matrix,
                               struct dt_tile tile, const float *grad, float *const *vectors);

enum { DT_EXCHANGE_VECTORS = 4, DT_EXCHANGE_REPLICAS = 1 << 16 }; /* upper bounds */

/* How an exchange rounds what it sends. It rounds each update, and the sum of each of `groups`
 * groups of consecutive replicas (group g starts at R g / groups). Rounding errors are kept, and
 * added before the next rounding. Sums inside a group are f32, whichever ranks its replicas are on.
 * With any wire that rounds, the sums of touched rows are rounded to bf16, no errors are kept for
 * them, and their updates are not rounded. */
struct dt_wire_spec {
    int kind;      /* enum dt_wire, not with reduce; f32: no rounding, other members are ignored */
    int groups;    /* 1 to R */
    size_t params; /* floats [0, params) are rounded; must be a bucket's end; 0: all */
};

/* How an exchange computes the squared norm of a sum, and measures for an update rule that looks at
 * whole tensors. */
struct dt_norm_spec {
    bool needed;            /* info.norm2 must be known before any update */
    size_t params;          /* floats [0, params) count in the norm; 0: all */
    dt_measure_fn *measure; /* NULL: no measures; else `needed` is true, and row_ranges 0 */
    size_t measures;
    size_t squares; /* with `needed`: number of doubles that follow the measures in
                     * dt__exchange_measured */
};

/* Seconds that a rank spent in steps. */
struct dt_exchange_times {
    double wait, reduce, update, network;
};

struct dt_exchange_spec {
    /* This many workers from first_worker on take part, without the bank. workers 0: all trainers
     * take part. */
    int first_worker, workers;
    const int *worker_of; /* (R) worker of each replica; NULL: as in dt__replicas_assign */
    int kind;             /* enum dt_exchange_kind; dt__exchange_create resolves auto */
    size_t params;        /* P */
    int buckets;
    const size_t *bucket_end; /* (buckets) bucket b has floats [bucket_end[b-1], bucket_end[b]) */
    int replicas;             /* R, at most DT_EXCHANGE_REPLICAS */
    struct dt_wire_spec wire;
    /* Number of vectors: weights, optimizer state and, with a rounded wire, the rounding error of
     * updates as the last one. At most DT_EXCHANGE_VECTORS. */
    int vectors;
    struct dt_norm_spec norm;
    /* The bank's books are the whole vectors, each followed by `tail` floats for the caller's use.
     * The bank has books if rows are distributed, or `tail` is not 0. They are in an unnamed file
     * in the directory `books` if they are large (dt__is_backed) or /dev/shm is small. books NULL:
     * they are in memory. */
    size_t tail;
    const char *books;
    dt_update_fn *update;
    /* (row_ranges) row-sparse ranges in rising order; each in one bucket */
    const struct dt_row_range *row_range;
    int row_ranges;
    size_t most_inputs;             /* upper bound on the inputs that a worker needs at once; 0:
                                     * all */
    dt_update_rows_fn *update_rows; /* required with row-sparse ranges */
    /* (matrices) in rising order, each in one bucket; not with row_range; borrowed by the
     * exchange */
    const struct dt_factored *factored;
    int matrices;
    dt_tile_fn *tile; /* required with factored matrices */
    dt_update_tile_fn *update_tile;
    size_t copies; /* bytes, shared by all ranks, for the caller's update_tile */
    void *arg;
    struct dt_exchange_times *times; /* the caller's; the exchange adds this rank's seconds */
};

struct dt_exchange;
/* Collective over the trainers, or over spec.workers workers (the first acts as the bank).
 * DT_EUSAGE: the spec exceeds the bounds above. DT_EMEMORY: shared memory is too small for a kind
 * that was asked for, node or ordered (auto does without it, and prints that). */
dt_status dt__exchange_create(struct dt_world *world, const struct dt_exchange_spec *spec,
                              struct dt_exchange **out);
void dt__exchange_destroy(struct dt_exchange *exchange);    /* collective over the trainers */
int dt__exchange_which(const struct dt_exchange *exchange); /* the kind in use */

/* Returns the whole vectors, to fill before dt__exchange_start and to read between spans. They are
 * valid on the bank and, if one host has all ranks, on workers; a vector that is not in this rank's
 * memory is NULL. On the bank's node they are the books, if there are any. The books, and the
 * bank's optimizer state, are those of the last dt__exchange_gather; without books, the bank's
 * weights are always current. */
float *const *dt__exchange_vectors(struct dt_exchange *exchange);
/* Returns on workers (measures + squares) doubles, this node's contribution to what updates must
 * know; NULL unless spec.norm.needed. At most one rank writes each of them in a step, before its
 * last bucket is ready. The squares are added to info.norm2. */
double *dt__exchange_measured(struct dt_exchange *exchange);
/* Returns what the updates of the last step knew. */
struct dt_update_info dt__exchange_info(const struct dt_exchange *exchange);
/* Returns the spec.copies bytes, aligned to a cache line. NULL: spec.copies is 0, or no matrix is
 * updated tile by tile, as with several hosts, with a rounded wire, or if shared memory is too
 * small. */
void *dt__exchange_copies(struct dt_exchange *exchange);
/* Returns, on the bank, the rounding error of a group's sums, (params); NULL: nothing is
 * rounded. */
float *dt__exchange_error(struct dt_exchange *exchange, int group);
/* Collective over the trainers.
 * Sends the bank's weights to every worker, and its optimizer state and errors to the ranks that
 * keep them. Call it once, before the first span. */
void dt__exchange_start(struct dt_exchange *exchange);

/* Collective over the trainers. Gathers the weights of distributed rows into the bank's vectors;
 * with `all` also the optimizer state of slices that other hosts own, and the rounding errors that
 * they keep. Fills the bank's books, if any. Call it between spans. */
void dt__exchange_gather(struct dt_exchange *exchange, bool all);
/* Returns whether the ranks of each host share memory; otherwise each rank is a separate node. */
bool dt__exchange_is_shared(const struct dt_exchange *exchange);

/* A span is the steps [from, until) between two synchronization points of bank and workers. It ends
 * early, at the same step on every rank, if any rank asks for that (stop, error, a due
 * checkpoint). */
enum dt_ask {
    DT_ASK_NONE = 0,
    DT_ASK_SYNC = 1,
    DT_ASK_STOP = 2,
    DT_ASK_ERROR = 4,
    DT_ASK_GIVE_UP = 8, /* the step has no effect, as for ERROR, but the ranks are healthy */
    DT_ASK_VOID = DT_ASK_ERROR | DT_ASK_GIVE_UP
};
/* Returns what this rank asks for. Workers, and a bank that is alone on its host, call it once a
 * step; another bank calls it every 20 ms. */
typedef int dt_ask_fn(void *arg);

/* Worker: returns the weights to read. */
const float *dt__exchange_weights(const struct dt_exchange *exchange);
/* Worker: returns where to write a replica's gradient. Without row-sparse ranges, and with reduce,
 * the gradient has all rows, and `touched` is NULL on all ranks. Without factored matrices, with
 * the norm, with several hosts, and if shared memory is too small for factors, it has whole
 * matrices. */
struct dt_slot dt__exchange_slot(const struct dt_exchange *exchange, int replica);
/* Worker: returns the list to fill, in rising order, with the inputs whose rows the worker reads
 * next. NULL: rows are not distributed (they are with row-sparse ranges on several hosts). Fill the
 * list before dt__exchange_end, for the step that follows, or before dt__exchange_pull. After that
 * call these rows are contiguous, from each range's offset on, in the order of
 * dt__exchange_inputs. */
const struct dt_touched *dt__exchange_needs(const struct dt_exchange *exchange);
/* Worker: returns the inputs whose rows its host has until the end of the step or the next pull.
 * The pointer never changes. */
const struct dt_touched *dt__exchange_inputs(const struct dt_exchange *exchange);
/* Collective over the trainers. Pulls the rows of the inputs that workers have listed. Call it
 * between steps. */
void dt__exchange_pull(struct dt_exchange *exchange);
/* Worker: starts step `step`. */
void dt__exchange_begin(struct dt_exchange *exchange, uint64_t step);
/* Worker: waits until the weights of `bucket` are those of this step. */
void dt__exchange_need(struct dt_exchange *exchange, int bucket);
/* Worker: marks the gradients of `bucket` of all this worker's replicas as written, and the weights
 * of the bucket as no longer read in this step. Call it from the last bucket to the first. */
void dt__exchange_ready(struct dt_exchange *exchange, int bucket);
/* Worker: advances the exchange without waiting, in a long step whose gradients are ready. Messages
 * advance only while some rank of each host calls it every few ms. Returns whether it did
 * anything. */
bool dt__exchange_advance(struct dt_exchange *exchange);
/* Worker: ends the step, and passes on what this worker asks for. Returns what all ranks asked for;
 * anything but DT_ASK_NONE ends the span after this step on every rank. After DT_ASK_VOID the
 * weights are not those of any step. */
int dt__exchange_end(struct dt_exchange *exchange, int ask);
/* Worker: asks during a long step, without waiting for its end. Returns what the ranks of this host
 * have asked for so far. */
int dt__exchange_consult(struct dt_exchange *exchange, int ask);
/* Bank: serves steps [from, until), and calls `ask` regularly. Returns the asks that ended the span
 * (DT_ASK_NONE: `until` was reached), and sets *out_step to the updates done. No weights change
 * after it returns. A process alone does not call it: it is its own worker, and does the steps
 * itself. */
int dt__exchange_serve_span(struct dt_exchange *exchange, uint64_t from, uint64_t until,
                            dt_ask_fn *ask, void *arg, uint64_t *out_step);
/* Worker: waits until all updates of the last step are done, and releases the bank's
 * dt__exchange_serve_span. Call it once for each call of dt__exchange_serve_span. */
void dt__exchange_settle(struct dt_exchange *exchange);
/* Collective over the exchange's workers. Waits until all have arrived. On one rank of each node,
 * its first, dt__exchange_is_first returns true. Between two steps this rank may write the node's
 * weights, after one barrier and before another. */
void dt__exchange_barrier(struct dt_exchange *exchange);
bool dt__exchange_is_first(const struct dt_exchange *exchange);

#endif
