/* comm: ranks and roles, collective agreement and abort, patient waiting, the sync exchange.
 *
 * Knows float vectors, not models. Every wait here sleeps after a short spin, beats no core, and is
 * watched: after `stall_secs` without progress the job ends with the rank, step and phase that were
 * waited for. */
#ifndef DTRAIN_COMM_H
#define DTRAIN_COMM_H

#include "dtrain/base.h"
#include "dtrain/config.h"

/* ---- world ---------------------------------------------------------------------------------- */

enum dt_role { DT_BANK, DT_WORKER, DT_EVALUATOR };

struct dt_world; /* this process's place in the job */

/* Starts MPI (FUNNELED), after setting, unless the user did: mpi_yield_when_idle, osc=^ucx.
 * Collective. DT_EUSAGE: several processes that MPI sees as singletons (srun without PMIx). */
dt_status dt_world_create(struct dt_world **out);
/* Ends MPI. Collective. */
void dt_world_destroy(struct dt_world *world);

int dt_world_rank(const struct dt_world *world);
int dt_world_size(const struct dt_world *world);
int dt_world_hosts(const struct dt_world *world);
const char *dt_world_host(const struct dt_world *world, int rank); /* host name of a rank */

int dt_world_host_workers(const struct dt_world *world); /* workers on this rank's host */
int dt_world_cores(const struct dt_world *world); /* that the ranks of this host may use together */

/* Splits roles off: with `dedicated` the last rank is the evaluator. Collective. */
dt_status dt_world_set_roles(struct dt_world *world, bool dedicated);
enum dt_role dt_world_role(const struct dt_world *world);
bool dt_world_is_bank(const struct dt_world *world);
/* Computes gradients: every rank but bank and evaluator; the bank itself if it is alone. */
bool dt_world_is_worker(const struct dt_world *world);
int dt_world_workers(const struct dt_world *world);
int dt_world_worker_index(const struct dt_world *world); /* 0-based among workers, -1 if none */
int dt_world_worker_rank(const struct dt_world *world, int worker);
int dt_world_evaluator_rank(const struct dt_world *world); /* -1: none */
/* Replicas [*first, *first + *count) of R are this worker's: contiguous, as even as can be. */
void dt_world_replicas(const struct dt_world *world, int worker, int replicas, int *first,
                       int *count);

/* Watchdog: from now on the job ends when a rank that has something to do makes no progress for
 * stall_secs (0: off), or no rank does. */
void dt_world_watch(struct dt_world *world, double stall_secs);
/* Progress: `phase` ("gradient", "evaluation", ...; at most 31 bytes are shown) has begun, or a piece
 * of it is done. Costs a few stores. */
void dt_world_beat(struct dt_world *world, const char *phase, uint64_t step);
/* Nothing to do but to wait for `what`, for as long as it takes; call it every now and then. */
void dt_world_rest(struct dt_world *world, const char *what);

/* Agreement: all ranks pass their status; all return the lowest failing rank's status with its
 * message as the error text, prefixed "[rank N on HOST] ". Collective over all ranks. */
dt_status dt_world_agree(struct dt_world *world, dt_status mine);
/* The same over bank and workers only. */
dt_status dt_world_agree_crew(struct dt_world *world, dt_status mine);

/* Prints "dtrain: error: [rank N on HOST] MESSAGE" once a host and ends the job at once. */
void dt_world_abort(struct dt_world *world, dt_status status) __attribute__((noreturn));

/* Patient collectives over all ranks (`crew`: bank and workers only). */
dt_status dt_world_bcast(struct dt_world *world, void *bytes, size_t length, int root);
/* Bytes of any length from root; other ranks get dt_alloc'd memory. */
dt_status dt_world_bcast_blob(struct dt_world *world, void *inout_bytes, size_t *inout_length,
                              int root);
dt_status dt_world_crew_bcast(struct dt_world *world, void *bytes, size_t length);
/* Gathers `length` bytes of every crew rank at the bank, in rank order; all NULL at workers. */
dt_status dt_world_crew_gather(struct dt_world *world, const void *bytes, size_t length, void *all);
dt_status dt_world_crew_barrier(struct dt_world *world);
/* Largest of each rank's value, over the crew. */
dt_status dt_world_crew_max(struct dt_world *world, uint64_t *inout_values, int count);

/* Sums of each rank's values over the crew, at the bank; the others' `out` may be NULL. */
dt_status dt_world_crew_sum(struct dt_world *world, const double *values, int count, double *out);

/* Small messages between bank and evaluator (eager: a send does not wait). */
dt_status dt_world_send(struct dt_world *world, int rank, int tag, const void *bytes,
                        size_t length);
/* A message from `rank` with `tag` into bytes (exactly `length`); false if none is there yet. */
bool dt_world_try_recv(struct dt_world *world, int rank, int tag, void *bytes, size_t length);

/* MPI library version text and "major.minor" of the standard. */
const char *dt_world_mpi_version(void);
/* What was set for MPI, by the user or by dt_world_create: "mpi_yield_when_idle=1, osc=^ucx"; into
 * buffer, which is returned. */
enum { DT_MPI_SETTINGS = 128 };
const char *dt_world_mpi_settings(char buffer[DT_MPI_SETTINGS]);

/* ---- sync exchange -------------------------------------------------------------------------- */

/* What every step's update is told. */
struct dt_update_info {
    uint64_t step; /* updates done before this one */
    double norm2;  /* squared norm of the gradient sum, if asked for; else 0 */
};

/* Applies the summed gradient of floats [offset, offset + n) to the vectors. May run on any rank of
 * the bank's host, on several slices side by side; grad is (n). vectors[0] are the weights, the
 * others the optimizer's state; the whole vectors, not the slice. The new weights go to out (n), which
 * may be their own place. Must act element by element. */
typedef void dt_update_fn(void *arg, const struct dt_update_info *info, size_t offset, size_t n,
                          const float *grad, float *const *vectors, float *out);

struct dt_exchange_spec {
    int kind;          /* enum dt_exchange_kind; auto is resolved by create */
    bool reproducible; /* fixed tree everywhere */
    size_t params;     /* P */
    int buckets;
    const size_t *bucket_end; /* (buckets) bucket b is [bucket_end[b-1], bucket_end[b]) */
    int replicas;             /* R */
    int vectors;              /* weights and optimizer state: 1 + nstate */
    bool norm;                /* info.norm2 is needed before any update */
    dt_update_fn *update;
    void *arg;
};

struct dt_exchange;
/* Collective over the crew. DT_EUSAGE: reproducible with reduce; DT_EMEMORY: shared memory too small
 * for an explicit node or ordered (auto takes reduce and says so). */
dt_status dt_exchange_create(struct dt_world *world, const struct dt_exchange_spec *spec,
                             struct dt_exchange **out);
void dt_exchange_destroy(struct dt_exchange *exchange);   /* collective over the crew */
int dt_exchange_kind(const struct dt_exchange *exchange); /* what runs */

/* Bank: the vectors, whole, to fill before dt_exchange_start and to read between legs. */
float *const *dt_exchange_vectors(struct dt_exchange *exchange);
/* Sends the bank's weights to every worker. Collective over the crew; once, before the first leg. */
dt_status dt_exchange_start(struct dt_exchange *exchange);

/* A leg is a run of steps [from, until) between two meetings of bank and workers. It ends early, at
 * the same step everywhere, when any rank asks (stop, error, a due checkpoint). */
enum dt_ask { DT_ASK_NONE = 0, DT_ASK_MEET = 1, DT_ASK_STOP = 2, DT_ASK_ERROR = 4 };
/* Asked of this rank once a step (workers) or every few ms (bank): what does it want? */
typedef int dt_ask_fn(void *arg);

/* Worker: where to read weights, where to write replica `replica`'s gradient (P floats). */
const float *dt_exchange_weights(const struct dt_exchange *exchange);
float *dt_exchange_grad(struct dt_exchange *exchange, int replica);
/* Worker: begins step `step`. */
void dt_exchange_begin(struct dt_exchange *exchange, uint64_t step);
/* Worker: waits until the weights of `bucket` are those of this step. */
void dt_exchange_need(struct dt_exchange *exchange, int bucket);
/* Worker: the gradients of `bucket` of all its replicas are written and its weights are no longer
 * read in this step. From the last bucket to the first. */
void dt_exchange_ready(struct dt_exchange *exchange, int bucket);
/* Worker: ends the step with what it asks for. Returns what all ranks asked for: not NONE ends the
 * leg behind this step on every rank (ERROR: the weights are no longer those of any step). */
int dt_exchange_end(struct dt_exchange *exchange, int ask);
/* Bank: serves steps [from, until); `ask` is polled. Returns the asks that ended the leg (NONE: until
 * was reached) and in *out_step the updates done. All weights are at rest when it returns.
 * With one process alone there is no serve: the rank is worker and does the steps itself. */
int dt_exchange_serve(struct dt_exchange *exchange, uint64_t from, uint64_t until, dt_ask_fn *ask,
                      void *arg, uint64_t *out_step);
/* Worker: the last step's updates have all been made (before a meeting). */
void dt_exchange_settle(struct dt_exchange *exchange);

/* The step's budget of this rank, seconds since the last call: for the bench. */
struct dt_exchange_times {
    double wait, reduce, update, network;
};
void dt_exchange_take_times(struct dt_exchange *exchange, struct dt_exchange_times *out);

#endif
