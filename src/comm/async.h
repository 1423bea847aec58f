/* async: the exchange of Downpour SGD. Workers compute gradients, each at its own pace; owners of
 * weights apply them one by one, in order of arrival, and keep versions of the weights for workers
 * to read.
 *
 * The flat vector is cut into slices, each with an owner. On one host there is one slice, in memory
 * that all ranks share: a worker computes its gradient where it will be read, and then applies it,
 * unless another worker is already applying gradients; then that worker applies it. On several
 * hosts each worker owns a slice: it receives gradients by MPI_Put, and sends weights on request,
 * between the layers of its passes and while it waits. The bank counts tickets, and reads a log of
 * what was applied; between spans it has all weights.
 *
 * Training goes in spans: runs of updates between two synchronization points. Inside a span a rank
 * waits for other ranks only because of the staleness bound, for a free slot, or for the weights.
 * src/comm/async_slots.h has the protocol. */
#ifndef COMM_ASYNC_H
#define COMM_ASYNC_H

#include "base/base.h"
#include "base/batch.h"
#include "comm/comm.h"

struct dt_async;

enum { DT_ASYNC_STATES = 4 };

/* Header of a gradient message. */
struct dt_gradient_info {
    uint64_t number;  /* gradients that this worker had sent before; set by dt__async_send */
    uint64_t version; /* updates in the weights that this gradient was computed from; set by
                       * dt__async_send */
    uint64_t gap;     /* clock gap when this gradient was started; set by dt__async_send */
    uint64_t draw;    /* number of the replica's draw */
    uint64_t rows;    /* rows in the sum */
    double loss;      /* sum over the rows */
    double norm2;     /* squared norm of the gradient sum; set by dt__async_send with spec.norm2 */
    int32_t replica;
    int32_t ask; /* enum dt_ask: what the worker asks the bank for */
};

/* A gradient, or a range of one, that waits in a slot at an owner to be applied. If it has only
 * touched rows, the rows of range i are contiguous from row_range[i].offset on. */
struct dt_gradient {
    const struct dt_gradient_info *info;
    float *grad;                      /* (P) sum over the rows; the update may write to it */
    const struct dt_touched *touched; /* (row_ranges) its touched rows; NULL: the gradient is
                                       * whole */
    double norm2;       /* squared norm of the gradient sum, computed by the worker with
                         * spec.norm2 */
    uint64_t staleness; /* updates between the worker's read of the weights and this gradient's
                         * update; not bounded: spec.staleness bounds the clock gap */
    int worker;
};

/* How workers access the memory of owners. */
enum dt_async_memory {
    DT_ASYNC_AUTO,   /* shared if all ranks, including an evaluator, are on one host; otherwise
                      * windows */
    DT_ASYNC_SHARED, /* shared memory: no copies */
    DT_ASYNC_WINDOW, /* MPI puts and messages, on any hosts */
};

/* Updates floats [offset, offset + n) with one gradient. part->grad: these floats of it (n).
 * weights: the weights before the update (n); out: those after it (n), may alias weights. states:
 * whole vectors (P). before: updates done before this one. Runs on the owner or, in shared memory,
 * on any worker, one call at a time for each slice. Must act element by element. */
typedef void dt_async_update_fn(void *arg, const struct dt_gradient *part, uint64_t before,
                                size_t offset, size_t n, const float *weights, float *out,
                                float *const *states);
/* Updates `count` rows of a range in place, like dt_async_update_fn. Row numbers rise; part->grad
 * is (count, range->width); weights and states are whole vectors. */
typedef void dt_async_update_rows_fn(void *arg, const struct dt_gradient *part, uint64_t before,
                                     const struct dt_row_range *range, const uint32_t *row,
                                     size_t count, float *weights, float *const *states);

/* Returns the squared norm of a worker's gradient sum. touched: its touched rows; NULL: it is
 * whole. */
typedef double dt_async_norm2_fn(void *arg, const struct dt_touched *touched, const float *grad);

struct dt_async_spec {
    size_t params; /* P */
    int states;    /* vectors of optimizer state, at most DT_ASYNC_STATES */
    dt_async_update_fn *update;
    dt_async_norm2_fn *norm2;             /* NULL: updates need no norm */
    const struct dt_row_range *row_range; /* (row_ranges) row-sparse ranges, in rising order;
                                           * borrowed */
    int row_ranges;
    dt_async_update_rows_fn *update_rows; /* required with row-sparse ranges */
    void *arg;
    int64_t staleness;  /* the greatest clock gap; -1: no bound; 0: workers advance in lockstep */
    const bool *active; /* (workers) whether each has samples to draw; copied; the same on every
                         * rank */
    int memory;         /* enum dt_async_memory */
    int owners;         /* windows: number of ranks that own weights; 0: all workers; 1: the bank;
                         * more than the workers: all ranks */
};

/* Collective over the trainers. Creates the exchange, with at least one worker apart from the bank.
 * The weights are zeros. DT_EMEMORY: the slots and versions (2 gradients and 1 to 3 copies of the
 * weights for each worker) do not fit. In shared memory, a gradient with row-sparse ranges needs
 * pages only for the rows that batches touch. DT_EUSAGE: ranges that do not rise, too many states,
 * or a kind of memory that does not fit the other settings. DT_ECOMM: MPI has no one-sided
 * component for these hosts; the message says what to do. */
dt_status dt__async_create(struct dt_world *world, const struct dt_async_spec *spec,
                           struct dt_async **out);
/* Collective over the trainers. */
void dt__async_destroy(struct dt_async *async);
/* Returns the memory that dt__async_create chose: "shared" or "window". */
const char *dt__async_memory_name(const struct dt_async *async);

/* Collective over the trainers. Starts a span of updates [from, until): until - from gradients will
 * be started, unless the bank closes the span. alone: only by the first active worker (warm start).
 * Clocks start at 0. All ranks must have left the previous span. */
void dt__async_start(struct dt_async *async, uint64_t from, uint64_t until, bool alone);

/* Collective over the trainers. Ends the span. A worker calls it when it will start no more
 * gradients in the span, perhaps before other workers; the bank calls it once dt__async_over
 * returns true. Afterwards all owners have applied all gradients that were sent, and all ranks can
 * read the newest weights. */
void dt__async_end(struct dt_async *async);

/* Collective over the trainers. Gathers the optimizer state that other ranks own into the bank's
 * dt__async_states, which stay as they are until the next call. Call it between spans. */
void dt__async_gather(struct dt_async *async);

/* ---- worker --------------------------------------------------------------------------------- */

/* Not collective. Waits until a slot is free and the clock gap allows another gradient, and takes a
 * ticket for it. Returns false if no gradient is left to be started in this span. A rank that has
 * waited here, or in the functions below, is shown as waiting until its next
 * dt__world_heartbeat. */
bool dt__async_begin(struct dt_async *async);
/* Returns the newest weights (P), which do not change until the worker's next send or read. */
const float *dt__async_read(struct dt_async *async);
/* Returns where to write the gradient (P) that dt__async_begin started. */
float *dt__async_grad(struct dt_async *async);
/* Returns where to list the rows that the gradient touches, one list for each row-sparse range. The
 * gradient then has only these rows of the range, contiguous from the range's offset on. NULL:
 * gradients are whole, as without such ranges and in windows. Whether it is NULL never changes, and
 * is the same on every rank, including the bank. */
const struct dt_touched *dt__async_touched(const struct dt_async *async);
/* Not collective.
 * Sends the gradient to all owners. In shared memory it also applies this and other waiting
 * gradients, unless another worker is doing so. */
void dt__async_send(struct dt_async *async, const struct dt_gradient_info *info);
/* Not collective. Serves the slice that this worker owns. With windows, call it every few ms while
 * a gradient is computed (the network's hooks do). */
void dt__async_progress(struct dt_async *async);

/* ---- bank ----------------------------------------------------------------------------------- */

/* Return the newest weights (P), and the optimizer state (states), (P) each. Read them between
 * spans; write them only before the first one. */
float *dt__async_weights(struct dt_async *async);
float *const *dt__async_states(struct dt_async *async);

/* A gradient that has been applied. */
struct dt_applied {
    struct dt_gradient_info info;
    uint64_t staleness; /* as in struct dt_gradient */
    double clock;       /* dt__clock_secs after the update, on the bank's host */
    int worker;
};

/* Writes the next applied gradients, in order, to out (limit), and returns their number. 0: there
 * is none yet; the call has waited a little. */
int dt__async_serve(struct dt_async *async, int limit, struct dt_applied *out);

/* Stops new gradients in this span; those that have been started are still applied. */
void dt__async_close(struct dt_async *async);
/* Returns whether every gradient of the span has been applied, and returned by dt__async_serve. */
bool dt__async_over(struct dt_async *async);

/* ---- counts --------------------------------------------------------------------------------- */

enum { DT_STALENESS_BINS = 65 }; /* the last bin counts this staleness and more */

struct dt_async_counts {
    uint64_t staleness_histogram[DT_STALENESS_BINS];
    uint64_t gap_max;
    uint64_t sent, applied;
    double busy_secs; /* spent applying gradients */
    /* (workers) each. Waits are for a slot, the clock, the weights, and other workers at the end of
     * a span. */
    uint64_t *worker_sent, *worker_applied, *worker_wait_ms;
    uint64_t *slice_applied; /* (slices) gradients applied to the bank's slice, then to each
                              * owner's */
    size_t slices;
};
/* Collective over the trainers. Returns the counts since create on the bank, NULL on workers. Call
 * it between spans. A slice that has not applied all that was sent is an internal error, which ends
 * the job. */
const struct dt_async_counts *dt__async_count(struct dt_async *async);

#endif
