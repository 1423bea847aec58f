/* comm: ranks and roles, collective agreement and abort, patient waiting, the sync exchange.
 *
 * Knows float vectors, not models. Every wait here sleeps after a short spin, and is
 * watched: after `stall_secs` without progress the job ends with the rank, step and phase that were
 * waited for. */
#ifndef COMM_COMM_H
#define COMM_COMM_H

#include "base/base.h"
#include "base/batch.h"
#include "config/config.h"
#include "dtrain/world.h"

/* ---- world ---------------------------------------------------------------------------------- */

enum dt_role { DT_ROLE_BANK, DT_ROLE_WORKER, DT_ROLE_EVALUATOR };

enum { DT_HOST_NAME = 64 };
struct dt_ranks; /* some of the job's, that act together */

/* This process's place in the job. To be read alone. */
struct dt_world {
    int rank, size;
    int hosts;
    char (*host_name)[DT_HOST_NAME]; /* (size) */
    int *host_of;                    /* (size) host index */
    int cores;                       /* that the ranks of this host may use together */
    struct dt_ranks *all;
    struct dt_ranks *trainers; /* the bank, then the workers by number: not for the evaluator */

    /* As dt__world_set_roles has it. */
    enum dt_role role;
    bool is_bank;
    /* it computes gradients: every rank but bank and evaluator; the bank if it is alone */
    bool is_worker;
    int workers;     /* at least 1 */
    int worker;      /* this one's number, -1: none. Host by host, those with most workers first */
    int *rank_of;    /* (workers) the rank that each one is */
    int *workers_of; /* (hosts) how many each host has */
    int worker_rank; /* of worker 0 among the trainers; worker w's is worker_rank + w */
    int evaluator;   /* its rank, -1: none */

    struct dt__world_inside *inside; /* communicators and watchdog */
};

/* Destroys the world and ends MPI behind dt_world_create, which may have failed (world: NULL), once
 * a rank has told why: launchers kill all ranks when the first has ended. Collective, and watched
 * with the patience that was set last (dt__world_watch; 600 s if none was). If a rank is
 * gone or hangs meanwhile, the others exit with the code of `status`: 10 s after a failure, else
 * after run.stall_secs (0: they wait), and no sooner than 60 s after all have come. */
void dt__world_end(struct dt_world *world, dt_status status);

/* Splits roles off: with `dedicated` the last rank is the evaluator. Collective. */
void dt__world_set_roles(struct dt_world *world, bool dedicated);
/* Replicas [*first, *first + *count) of R are those of worker `worker` of so many: contiguous, as
 * even as can be; at most one each for the first R workers, if there are more. */
void dt__replicas_assign(int workers, int worker, int replicas, int *first, int *count);

/* A world of the ranks that pass the same color, 0 or more, in the order of their ranks here; -1:
 * this rank is in none, and *out is NULL. Destroy it before `world`. Collective over the world. */
dt_status dt__world_split(struct dt_world *world, int color, struct dt_world **out);

/* Memory that the ranks of each host share, zeros at first; *out_first: this rank is the one of its
 * host that may fill it. NULL of 0 bytes. Collective over the world; each rank frees it by
 * dt__world_unshare (NULL is fine). DT_EMEMORY. */
struct dt__shared;
dt_status dt__world_share(struct dt_world *world, size_t bytes, const char *what,
                          struct dt__shared **out, bool *out_first);
void *dt__shared_memory(const struct dt__shared *shared); /* NULL of NULL */
void dt__world_unshare(struct dt__shared *shared);

/* Watchdog: from now on the job ends when a rank that has something to do makes no progress for
 * stall_secs (0: off), or no rank does. It ends at once when a process of this host is gone. */
void dt__world_watch(struct dt_world *world, double stall_secs);
/* A training has ended, or what else was watched: from now on nobody is, but for processes that are
 * gone. stopped: it has obeyed a stop request, which is taken back (dt__stop_clear); all ranks say
 * the same. */
void dt__world_rest(struct dt_world *world, bool stopped);
/* Progress: `phase` ("gradient", "evaluation", ...; at most 31 bytes are shown) has begun, or a
 * piece of it is done. Costs a few stores. */
void dt__world_heartbeat(struct dt_world *world, const char *phase, uint64_t step);
enum { DT_PHASE_TEXT = 32 };
/* What is known here of a rank: those of this host, and the first of another host (at the bank) or
 * the bank. */
struct dt_rank_status {
    int rank;
    const char *host, *role; /* "bank", "worker", "evaluator" */
    bool known;              /* it has been heard of; else the rest is not set */
    /* what it does; what it waits for, "": it does not wait */
    char phase[DT_PHASE_TEXT], wait[DT_PHASE_TEXT];
    uint64_t step;
    uint64_t samples;       /* it has trained on, as it shows; 0: not known, as of other hosts */
    double idle_secs;       /* since it made progress, or was heard */
    double wait_share;      /* of its time lately, in [0, 1]; NaN: not known, as of other hosts */
    double samples_per_sec; /* NaN: dt__world_rank_status does not know it */
};
void dt__world_rank_status(const struct dt_world *world, int rank, struct dt_rank_status *out);
/* For dt__world_rank_status: this rank has trained on so many samples since the start, and lately
 * waited for a share of its time; below 0: not known. */
void dt__world_show(struct dt_world *world, uint64_t samples, double wait_share);
/* Nothing to do but to wait for `what`, for as long as it takes; call it every now and then. */
void dt__world_idle(struct dt_world *world, const char *what);

/* True once a host: for the rank that prints the job's error line. Where one aborts the others are
 * told to stop, and may fail at that. */
bool dt__world_claim_error(struct dt_world *world);
/* Prints "dtrain: error: [rank N on HOST] MESSAGE" once a host and ends the job at once. */
void dt__world_abort(struct dt_world *world, dt_status status) __attribute__((noreturn));

/* Patient collectives over some of the job's ranks. What fails in MPI ends the job: those that need
 * no memory cannot fail.
 *
 * Agreement: all pass their status; all return the lowest failing rank's status with its message as
 * the error text, prefixed "[rank N on HOST] " unless it is DT_EUSAGE, or the job has one rank. */
dt_status dt__ranks_agree(const struct dt_ranks *ranks, dt_status mine);
void dt__ranks_barrier(const struct dt_ranks *ranks);
void dt__ranks_bcast(const struct dt_ranks *ranks, void *bytes, size_t length, int root);
/* Bytes of any length from root; other ranks get dt__alloc'd memory. */
dt_status dt__ranks_bcast_blob(const struct dt_ranks *ranks, void *inout_bytes,
                               size_t *inout_length, int root);
/* Gathers `length` bytes of every rank at the first, in rank order; all NULL elsewhere. */
void dt__ranks_gather(const struct dt_ranks *ranks, const void *bytes, size_t length, void *all);
/* Sums of each rank's values, at the first, whose own may be NULL: zeros; the others' `out` may be
 * NULL. */
void dt__ranks_sum(const struct dt_ranks *ranks, const double *values, int count, double *out);
/* n floats from a rank, where they stand at `own`, to the first rank, where they stand at `first`,
 * or back; other ranks do nothing. The rank may be the first one itself, and the place the same. If
 * all are the same, as of a new run's state, gigabytes perhaps, one travels. */
void dt__ranks_move(const struct dt_ranks *ranks, int rank, bool to_first, float *own, float *first,
                    size_t n);

/* Messages between two ranks, of at most 1 GiB. A send of a few KiB does not wait. */
void dt__world_send(struct dt_world *world, int rank, int tag, const void *bytes, size_t length);
/* A message from `rank` with `tag` into bytes (exactly `length`); false if none is there yet. */
bool dt__world_try_recv(struct dt_world *world, int rank, int tag, void *bytes, size_t length);

/* MPI library version text and "major.minor" of the standard. */
const char *dt__world_mpi_version(void);
/* Other MPIs (MPICH, MVAPICH, Intel's) have Hydra for an mpirun. Not collective, also before MPI
 * begins. */
bool dt__world_is_open_mpi(void);
/* What was set for Open MPI, by the user or by dt_world_create: " (mpi_yield_when_idle=1,
 * osc=^ucx)", and "btl_tcp_sndbuf=BYTES" in it on several hosts under TCP's BBR; "" for another
 * MPI; into buffer, which is returned. */
enum { DT_MPI_SETTINGS = 128 };
const char *dt__world_mpi_settings(char buffer[DT_MPI_SETTINGS]);

/* ---- the exchange of a sync step ------------------------------------------------------------- */

/* Sums are made in the order of a fixed binary tree: range [a, b), of two or more leaves, splits at
 * a plus the largest power of two below b - a, so the tree is a function of their number alone. */
int dt__tree_split(int a, int b);

/* Sums the workers' gradients, updates the weights, and brings them back to the workers, bucket by
 * bucket. Each worker owns a slice, which it sums and updates: on one host (node) in memory that
 * the workers share with the bank, which sleeps meanwhile; on several (ordered) it gets the other
 * hosts' sums and sends them the new weights. Of row-sparse ranges workers on several hosts have
 * the rows that they need next; the others are at their owners alone. With reduce the bank sums and
 * updates all. */

/* Facts of a step for its updates. */
struct dt_update_info {
    uint64_t step; /* updates done before this one */
    double norm2;  /* squared norm of the gradient sum, if asked for; else 0 */
    /* (spec.norm.measures) what dt_measure_fn has said of all floats; NULL: it is not known yet */
    const double *measures;
};

/* Applies the summed gradient of floats [offset, offset + n) to the vectors. May run on any
 * trainer, on several slices side by side; grad is (n). vectors[0] are the weights, the others the
 * optimizer's state, indexed as the whole vectors; only floats [offset, offset + n) of them are
 * there. The new weights go to out (n), which may be their own place. Must act element by
 * element. */
typedef void dt_update_fn(void *arg, const struct dt_update_info *info, size_t offset, size_t n,
                          const float *grad, float *const *vectors, float *out);

/* What updates must know of the whole gradient, made of its sum before the first update: called
 * once for each range that lies in one block of DT_MEASURE_BLOCK floats and in one bucket, where
 * the update will be called later, or on another rank that has its floats of the vectors. It may
 * change the sum (n), which the update then gets, and the optimizer's state. Each of the
 * spec.norm.measures doubles is written by one of the calls at most; others are 0. */
typedef void dt_measure_fn(void *arg, const struct dt_update_info *info, size_t offset, size_t n,
                           float *sum, float *const *vectors, double *measures);
enum { DT_MEASURE_BLOCK = 2048 };

/* A row-sparse range of the flat vector: rows, few of which a gradient touches. */
struct dt_row_range {
    size_t offset, rows, width; /* floats [offset, offset + rows * width) */
    /* rows that no gradient touched stay as they are; else they are updated with 0 */
    bool touched_alone;
    /* row r belongs to input first + r: rows of an input have one owner; who needs any needs all
     * inputs below each range's first */
    size_t first;
    size_t most; /* rows that a replica's gradient touches at most; 0: all */
};
/* The same for `count` rows of a range, whose numbers rise: grad is (count, range->width). In
 * place. */
typedef void dt_update_rows_fn(void *arg, const struct dt_update_info *info,
                               const struct dt_row_range *range, const uint32_t *row, size_t count,
                               const float *grad, float *const *vectors);

/* The gradient of a tile of factored matrix number `matrix`, from the factors of a replica: out
 * (rows, columns) of the tile. */
typedef dt_status dt_tile_fn(void *arg, int matrix, const void *factors, struct dt_tile tile,
                             float *out);
/* dt_update_fn for a tile, in place: grad is (rows, columns) of the tile, vectors are whole. */
typedef void dt_update_tile_fn(void *arg, const struct dt_update_info *info, int matrix,
                               struct dt_tile tile, const float *grad, float *const *vectors);

enum { DT_EXCHANGE_VECTORS = 4, DT_EXCHANGE_REPLICAS = 1 << 16 }; /* at most */

/* Stage of a sum: what is sent is rounded. That is the sum of each of `groups` ranges of
 * consecutive replicas, g's from R g / groups on, and each update. Rounding errors are kept, and
 * added to what is rounded next. Sums inside a group are f32, wherever its replicas are. Touched
 * rows are rounded to bf16 whatever the wire, and no error of them is kept; their updates are not
 * rounded. */
struct dt_wire_spec {
    int kind; /* enum dt_wire; f32: nothing is rounded, and the two below are ignored */
    int groups;
    size_t params; /* floats [0, params) are rounded; the end of a bucket; 0: all */
};

/* Stage of a sum: its squared norm, and measures of a rule over whole tensors. */
struct dt_norm_spec {
    bool needed;            /* info.norm2 must be known before any update */
    size_t params;          /* floats [0, params) count for it; 0: all */
    dt_measure_fn *measure; /* NULL: none; else with `needed`, and without row_range */
    size_t measures;
    size_t squares; /* with `needed`: doubles of dt__exchange_measured, after the measures */
};

struct dt_exchange_spec {
    /* collective over so many workers, without the bank; team 0: over the trainers */
    int first_worker, team;
    const int *worker_of; /* (R) whose each replica is; NULL: as dt__replicas_assign has it */
    int kind;             /* enum dt_exchange_kind; auto is resolved by create */
    size_t params;        /* P */
    int buckets;
    const size_t *bucket_end; /* (buckets) bucket b is [bucket_end[b-1], bucket_end[b]) */
    int replicas;             /* R, at most DT_EXCHANGE_REPLICAS */
    struct dt_wire_spec wire;
    /* weights, optimizer state and what else updates keep, with a wire the error of rounded
     * updates as the last; at most DT_EXCHANGE_VECTORS */
    int vectors;
    struct dt_norm_spec norm;
    size_t behind; /* floats that the bank's books have behind each vector, for the caller's use */
    /* Where the bank's books are, the vectors whole, of dealt rows and with such floats: if they
     * are large (dt__is_backed), or /dev/shm is small, in a file without a name in this directory;
     * NULL: in memory. */
    const char *books;
    dt_update_fn *update;
    /* (row_ranges) row-sparse ones, rising; each in one bucket */
    const struct dt_row_range *row_range;
    int row_ranges;
    size_t most_inputs;             /* that a worker needs at once; 0: all */
    dt_update_rows_fn *update_rows; /* if there are such ranges */
    /* (matrices) rising, each in one bucket; not with row_range */
    const struct dt_factored *factored;
    int matrices;
    dt_tile_fn *tile; /* if there are such matrices */
    dt_update_tile_fn *update_tile;
    size_t copies; /* bytes that all ranks share, for what update_tile keeps beside the vectors */
    void *arg;
};

struct dt_exchange;
/* Collective over the trainers or the team (which has its bank's memory at its first worker).
 * DT_EUSAGE: rounded with reduce, or a spec beyond the bounds above; DT_EMEMORY:
 * shared memory too small for an explicit node or ordered (auto does without, and says so). */
dt_status dt__exchange_create(struct dt_world *world, const struct dt_exchange_spec *spec,
                              struct dt_exchange **out);
void dt__exchange_destroy(struct dt_exchange *exchange);    /* collective over the trainers */
int dt__exchange_which(const struct dt_exchange *exchange); /* what runs */

/* Bank, and where one host holds all, workers: the vectors, whole, to fill before
 * dt__exchange_start and to read between spans (NULL: not in the memory of this rank; elsewhere not
 * for use). At the bank the weights always, and the optimizer's state behind dt__exchange_gather;
 * its node's books, if it has some, are as they were gathered. */
float *const *dt__exchange_vectors(struct dt_exchange *exchange);
/* Workers, with norm: (measures + squares) this node's share of what updates must know: each double
 * is one caller's at most, who writes it before its last bucket of a step is ready; the squares are
 * added to info.norm2. NULL without. */
double *dt__exchange_measured(struct dt_exchange *exchange);
/* Returns the facts that updates of the last step had. */
struct dt_update_info dt__exchange_info(const struct dt_exchange *exchange);
/* The bytes for copies, at a whole cache line; NULL: none are asked for, or no matrix is updated
 * tile by tile, as where one host does not hold all ranks, with a wire, and where shared memory has
 * no room for it. */
void *dt__exchange_copies(struct dt_exchange *exchange);
/* Bank: what rounding has left of a group's sums, (params); NULL: nothing is rounded. */
float *dt__exchange_error(struct dt_exchange *exchange, int group);
/* Sends the bank's weights to every worker, and its optimizer state and errors to those who keep
 * them. Collective over the trainers; once, before the first span. */
void dt__exchange_start(struct dt_exchange *exchange);

/* Between spans: brings the optimizer's state of slices that other hosts own, and the errors that
 * they keep, to the bank's vectors; of distributed rows the weights too.
 * Fills the bank's books, where it has some. Collective over the trainers. */
void dt__exchange_gather(struct dt_exchange *exchange);
/* The weights alone. */
void dt__exchange_gather_weights(struct dt_exchange *exchange);
/* Returns whether the ranks of a host share its memory; else each rank is a separate node. */
bool dt__exchange_is_shared(const struct dt_exchange *exchange);

/* A span is a run of steps [from, until) between two synchronization points of bank and workers. It
 * ends early, at the same step everywhere, when any rank asks (stop, error, a due checkpoint). */
enum dt_ask {
    DT_ASK_NONE = 0,
    DT_ASK_SYNC = 1,
    DT_ASK_STOP = 2,
    DT_ASK_ERROR = 4,
    DT_ASK_GIVE_UP = 8, /* the step is not done: as ERROR, but the ranks are well */
    DT_ASK_VOID = DT_ASK_ERROR | DT_ASK_GIVE_UP
};
/* Asked of this rank once a step (a worker, and a bank that is alone on its host) or every 20 ms
 * (another bank): what does it want? */
typedef int dt_ask_fn(void *arg);

/* Worker: where to read weights. */
const float *dt__exchange_weights(const struct dt_exchange *exchange);
/* Worker: where replica `replica`'s gradient goes. Its rows are whole without row-sparse ranges,
 * and with reduce; touched is NULL at all ranks or at none. Its matrices are whole without factored
 * ones, with the norm, where one host does not hold all ranks, and where shared memory has no room
 * for factors too. */
struct dt_slot dt__exchange_slot(const struct dt_exchange *exchange, int replica);
/* Distributed rows: those of row-sparse ranges on several hosts. Each worker lists, rising, the
 * inputs whose rows it will read next: before dt__exchange_end for the step that follows, or before
 * a dt__exchange_pull; then these are there, in the order of dt__exchange_inputs, one behind the
 * other from a range's offset on. NULL, all of them: rows are whole. */
const struct dt_touched *dt__exchange_needs(const struct dt_exchange *exchange);
/* Worker: the inputs whose rows its host has, until the step's end or the next pull. The same
 * pointer always. */
const struct dt_touched *dt__exchange_inputs(const struct dt_exchange *exchange);
/* Brings the rows of what workers have listed, between steps. Collective over the trainers. */
void dt__exchange_pull(struct dt_exchange *exchange);
/* Worker: begins step `step`. */
void dt__exchange_begin(struct dt_exchange *exchange, uint64_t step);
/* Worker: waits until the weights of `bucket` are those of this step. */
void dt__exchange_need(struct dt_exchange *exchange, int bucket);
/* Worker: the gradients of `bucket` of all its replicas are written and its weights are no longer
 * read in this step. From the last bucket to the first. */
void dt__exchange_ready(struct dt_exchange *exchange, int bucket);
/* Worker, in a long step whose gradients are ready: carries on with the exchange, without waiting.
 * Messages travel while some rank of each host calls this every few ms. */
void dt__exchange_work(struct dt_exchange *exchange);
/* Worker: ends the step with what it asks for. Returns what all ranks asked for: not NONE ends the
 * span after this step on every rank (VOID: the weights are no longer those of any step). */
int dt__exchange_end(struct dt_exchange *exchange, int ask);
/* Worker, in a long step: asks at once; returns what the ranks of this host have asked for so
 * far. */
int dt__exchange_consult(struct dt_exchange *exchange, int ask);
/* Bank: serves steps [from, until); `ask` is polled. Returns the asks that ended the span (NONE:
 * until was reached) and in *out_step the updates done. All weights are at rest when it returns.
 * With one process alone there is no serve: the rank is worker and does the steps itself. */
int dt__exchange_serve_span(struct dt_exchange *exchange, uint64_t from, uint64_t until,
                            dt_ask_fn *ask, void *arg, uint64_t *out_step);
/* Worker: the last step's updates have all been made (before a synchronization point). */
void dt__exchange_settle(struct dt_exchange *exchange);
/* Worker, of a team: all its ranks wait for each other. On each node one of them is the first, and
 * may write the node's weights between two steps, and two barriers. */
void dt__exchange_barrier(struct dt_exchange *exchange);
bool dt__exchange_is_first(const struct dt_exchange *exchange);

/* The step's budget of this rank, seconds. */
struct dt_exchange_times {
    double wait, reduce, update, network;
};
/* Adds those since the last call to *out. */
void dt__exchange_take_times(struct dt_exchange *exchange, struct dt_exchange_times *out);
/* Returns wait and network of them, without taking them. */
double dt__exchange_waited(const struct dt_exchange *exchange);

#endif
