/* slots: the protocol by which workers pass gradients to the owners of weights, and read the
 * weights back, without waiting for each other.
 *
 * The flat vector is cut into slices. Each slice has an owner and a separate instance of the
 * protocol: control words, slots, versions of its weights. On one host there is a single slice, in
 * the bank's memory, which all ranks share. On several hosts each worker owns a slice, and the
 * bank's slice usually has no floats:
 *
 *            bank           worker 0        worker 1        worker 2
 *         | slice 0 |      | slice 1 |     | slice 2 |     | slice 3 |
 *         tickets, log     a third of the weights each, and of the optimizer's state
 *
 *   worker 1   info  ----------> slot            a gradient goes to all slices: each owner, also
 *              parts  ---------> slot --> slot --> slot      worker 1 itself, gets its part
 *              vector <--------- weights <- weights <- weights     weights come from all owners
 *
 * A slice applies gradients in order of arrival. Two slices may therefore have applied different
 * gradients, unless none is in flight: between spans, when checkpoints are made.
 *
 * One slice, in shared memory; the rank that holds the lock acts for the owner:
 *
 *      worker w                       the owner's memory                acting for the owner
 *
 *   begin   ---- add 1 ------------>  TICKET
 *   read    <--- buffer number -----  PUBLISHED   <-------- publish --  next version, after all
 *           ---- buffer number ---->  HAZARD[w]                         its stores
 *           <--- P floats ----------  weights     <--- P floats ------  apply: the rule on the
 *   compute                                                             newest version, into a
 *   send    ---- info, gradient --->  slot of w   ---- gradient ----->  buffer out of use
 *           ---- count, slot ------>  DOORBELL[w] ---- what waits --->  take
 *   begin   <--- slots free --------  ACK[w]      <--- applied -------  publish
 *           <--- slowest clock -----  FLOOR       <--- applied -------  publish
 *
 * One slice, in an MPI window. Loads do not reach the owner's memory: operations on its words are
 * sent as messages, which keep their order, and no other rank polls them:
 *
 *   ask     ---- count ------------>  REQUEST[w]  ---- requests ----->  when its clock may have it
 *   begin   ---- add 1 ------------>  TICKET      (of slice 0)          and a slot is free:
 *   read    <------------------- version, floor, weights -------------  answer
 *   compute                                                             apply, into another buffer
 *   send    ---- gradient, head --->  slot of w   ---- gradient ----->
 *   later   ---- count, slot ------>  DOORBELL[w] ---- what waits --->  take, if complete
 *
 * The order of files: onesided.h (transport), this, async_rows.c (touched rows: their lists in a
 * slot, and the rows that a version lacks), async_owner.c, async_worker.c (the two ends), async.c
 * (owners, memory, spans, counts).
 *
 * An owner's memory has each control word on a separate cache line:
 *
 *   TICKET     gradients begun in the job; a worker adds 1 and owns the number it got
 *   PUBLISHED  (publication << 16) | buffer of the newest weights
 *   FLOOR      gradients applied in this span from the active worker that has the fewest; all ones:
 *              the span has ended
 *   LOCK       claims to act for the owner; the first one counts, the others are taken back
 *   STEP       updates done; the last has written entry (STEP - 1) mod entries of the update log
 *   SEEN       updates whose entries in the update log the bank has read
 *   DOORBELL[w]    2 * gradients that worker w has put, over all spans, + the slot of the last
 *   ACK[w]     number of these gradients whose slots the owner has finished with
 *   HAZARD[w]  1 + the buffer that worker w reads, or that is in flight to it
 *   REQUEST[w] windows: 2 * times in this span that worker w has asked for weights, + 1 if it has
 *              left
 *   state      the owner's state, and what it knows of each worker
 *   update log    what has been applied; only slice 0 has one, for the bank's accounts
 *   row log    which rows were written, for each range of touched rows
 *   states     the optimizer's state
 *   weights    K buffers: version, floats
 *   slots      2 a worker: info, gradient (P floats), lists of touched rows. Pages of a slot that
 *              no batch reaches are never allocated
 *
 * Gradients: a worker reuses the slot of its last gradient if that one has been applied, because
 * its memory is in the cache; else it uses the other slot, once that is free. ACK[w] shows that a
 * slot is free; in windows the arrival of weights shows it. The rank acting for the owner reads
 * doorbells, then slots, and acknowledges what it has applied. Each word has one writer, so no
 * gradient can be lost or applied twice.
 *
 * Gradients in windows: a worker alternates between its slots, and has a local gradient for each,
 * so it computes one while the previous one is in flight. It rings the doorbell when all of a
 * gradient has left. Only a flush could show that it has arrived; but a flush also waits for the
 * next gradient, and serves no other rank meanwhile. Instead the owner checks the checksum in the
 * slot's head, which is put last: until number and checksum are right it retries later.
 *
 * Acting for the owner: in windows only the owner itself acts, now and then while it computes, and
 * whenever it waits. In shared memory a worker acts for the owner when it has just sent a gradient,
 * and when it waits (combining: Hendler et al., "Flat combining and the synchronization-parallelism
 * tradeoff", SPAA 2010). When it sees a doorbell ahead of its ACK, and the update log has free
 * entries, it claims the lock. If the lock was free, it applies what waits. In either case it then
 * takes its claim back and, if there is no other claim, looks once more: so no gradient is left
 * between two workers that each expect the other to apply it. A worker leaves a span only when all
 * its gradients are applied; so while a gradient waits, there is a worker to apply it.
 *
 * Weights in shared memory (hazard pointers: Michael, IEEE TPDS 2004): a reader fetches PUBLISHED,
 * points its hazard word at that buffer, and fetches PUBLISHED again. If PUBLISHED has not
 * changed, no rank has begun to write the buffer, and none will. The next weights are written to a
 * buffer that is neither the newest nor pointed at; there is one buffer more than hazard words.
 * Among several such buffers, the most recently retired one is used, which is still in the cache. A
 * reader that was overtaken tries again. It soon succeeds: a try takes two loads, but a publication
 * takes a pass over all weights. Nor can it be overtaken forever: while it sends nothing, the other
 * workers run out of tickets, or reach the staleness bound.
 *
 * Weights in windows: a worker sends a request to all owners. An owner answers once the worker's
 * clock and slots allow it, from the newest buffer, which remains pointed at until the answer has
 * left. That takes one message each way. If the worker read the weights as in shared memory, it
 * would take three operations on words and a get, all queued after the gradients on a full link.
 * The worker sends the request before it puts its last gradient: links carry both directions at
 * once. Between spans all ranks get the newest weights.
 *
 * Clocks: a worker's gradient number c of the span (from 0) is computed from weights in which every
 * worker's gradients up to clock c - staleness are applied, in every slice. In shared memory the
 * worker waits for FLOOR before it takes a ticket. In windows it takes the ticket without waiting
 * for FLOOR, and the owner delays its answer. A worker that has left the span, with all its
 * gradients applied, does not hold back the floor. The floor is raised after the publication.
 *
 * Source: Ho et al., "More effective distributed ML via a stale synchronous parallel parameter
 * server", NIPS 2013, section 2; slices: Li et al., "Scaling distributed machine learning with the
 * parameter server", OSDI 2014.
 *
 * End of a span: a worker that gets no ticket rings its last doorbells, and marks in REQUEST that
 * it leaves. In windows each owner serves until all workers have left it and all gradients whose
 * doorbells rang are applied; in shared memory the ranks first meet at a barrier. Then every slice
 * has applied every gradient. */
#ifndef DT_COMM_SLOTS_H
#define DT_COMM_SLOTS_H

#include "comm/async.h"
#include "comm/onesided.h"

enum { DT__SLOTS = 2 }; /* per worker; a doorbell has one bit for a slot's number */
enum { DT__MOST_BUFFERS = 1 << 16 };

/* The common control words; then those of each worker. */
enum { WORD_TICKET, WORD_PUBLISHED, WORD_FLOOR, WORD_LOCK, WORD_STEP, WORD_SEEN, WORD_WORKERS };
enum { WORD_DOORBELL, WORD_ACK, WORD_HAZARD, WORD_REQUEST, WORDS_A_WORKER };

static inline int dt__word(int word, int worker)
{
    return WORD_WORKERS + worker * WORDS_A_WORKER + word;
}

#define DT__SPAN_OVER UINT64_MAX /* value of FLOOR */

/* Weights in one buffer. */
struct dt__weights {
    _Alignas(64) uint64_t version; /* updates applied to the weights */
    uint64_t retired;              /* number of the publication that replaced them */
    uint64_t pinned;               /* last publication at which a hazard word pointed at this
                                    * buffer */
    _Alignas(64) float params[];
};
/* Header of a gradient in its slot. */
struct dt__slot_head {
    struct dt_gradient_info info;
    uint32_t checksum; /* windows: over info, and the gradient after the header */
};
struct dt__slot {
    _Alignas(64) struct dt__slot_head head;
    _Alignas(64) float grad[];
};

/* Offsets in an owner's memory, and sizes, in bytes. */
struct dt__places {
    size_t state, log, row_log, states, weights, slots, end;
    size_t vector; /* size of the slice's floats, without padding to a cache line */
    size_t weights_each, slot_each;
    size_t lists; /* offset of the lists of touched rows in a slot */
};

/* A worker, as known to the rank that acts for the owner. */
struct dt__slots_peer {
    bool active;
    int slot;         /* slot of its last gradient when its doorbell was last read */
    uint64_t rung;    /* gradients that it had put by then, over all spans */
    uint64_t served;  /* gradients applied, over all spans */
    uint64_t applied; /* gradients applied in this span */
    uint64_t answers; /* answers in this span, which is the clock of the worker's next read */
};

/* State of a slice, in the owner's memory, for the rank that acts for the owner. */
struct dt__slots_state {
    uint64_t step;    /* updates done */
    uint64_t applied; /* gradients applied since create */
    uint64_t publication, floor;
    int current, target; /* buffers: of the newest weights, and of the next ones */
    int next;            /* worker whose gradients are looked at first */
    struct dt__slots_peer peer[];
};

/* One slice, with its instance of the protocol, as a rank sees it: floats [offset, offset +
 * params). */
struct dt__slice {
    struct dt_async *async;
    int index, owner; /* rank of the owner among the trainers */
    bool mine;        /* this rank acts for the owner */
    size_t offset, params;
    uint64_t log_entries; /* 0: no update log; only the first slice has one */
    int buffers;          /* K, the number of buffers */
    struct dt__places at;
    struct dt__onesided *remote;

    /* Set if this rank acts for the owner. */
    struct dt__slots_state *state;
    struct dt_applied *log;
    float *states[DT_ASYNC_STATES]; /* indexed like the whole vectors */
    struct dt__answer *answers;     /* (workers) windows */

    /* Set on a worker, in windows. */
    struct dt__answer answer;                 /* comes with the weights that were read last */
    struct dt__slot_head put_head[DT__SLOTS]; /* headers of the gradients in flight */
};

/* The gradients of this rank's worker. Only async_worker.c writes them. */
struct dt__own_gradients {
    uint64_t sent;    /* gradients sent, over all spans */
    uint64_t started; /* gradients started in this span */
    uint64_t asked;   /* windows: reads of weights that were requested in this span */
    uint64_t gap;     /* clock gap of the gradient that was started last */
    uint64_t ticket;
    int put[DT__SLOTS], fetch;      /* windows, in flight: puts of each slot; fetch of the ticket */
    int slot;                       /* slot of the pending gradient, or of the last one */
    bool pending;                   /* a gradient was started and not sent */
    bool awaits;                    /* weights were requested and have not been read */
    uint64_t rung;                  /* windows: sent gradients whose doorbells were rung */
    const struct dt__weights *read; /* shared memory: the weights that were read last */
    float *gradient;                /* (DT__SLOTS, P) windows */
};

/* Counts of one rank. */
struct dt__own_counts {
    uint64_t sent, wait_ms, applied;
    double busy_secs;
};

struct dt_async {
    /* Set before dt__slice_lay_out is called. */
    struct dt__arena *arena;
    struct dt_world *world;
    struct dt_async_spec spec; /* without row ranges in windows */
    int workers, worker;       /* number of workers; this rank's number among them, -1 on the
                                * bank */
    bool shared;               /* workers access the bank's memory, and act for the bank as owner */
    int at_once;               /* upper bound on gradients applied in one pass */

    /* (slices) the first is the bank's, and has tickets and log; in shared memory it is the only
     * one */
    struct dt__slice *slice;
    int slices;
    bool *active;   /* (workers) takes part in this span */
    uint64_t until; /* updates done at the end of the span; on the bank, once it has closed the
                     * span, the number of tickets taken */
    bool closed;    /* the bank has ended the span early */
    bool begun;     /* owners have received the initial weights and state from the bank */

    /* Set if this rank acts for an owner. */
    struct dt_touched *touched; /* (workers, slots, ranges) lists of touched rows; NULL: gradients
                                 * are whole */
    size_t block;               /* size of `fresh` and `grad` in floats: DT__ASYNC_BLOCK, or the
                                 * widest row */
    float *fresh;               /* new weights of a block, before other ranks see them */
    float *grad;                /* one block of a gradient that has only touched rows, expanded */

    struct dt__own_gradients own;   /* on a worker */
    float *weights;                 /* windows: (P) this rank's copy */
    float *states[DT_ASYNC_STATES]; /* windows, on the bank: (P) each, as last gathered */

    double wait_secs, busy_secs; /* seconds that this rank spent waiting, and applying gradients */
    struct dt_async_counts counts;
    struct dt__own_counts *gathered; /* on the bank: (ranks) */
};

static inline uint64_t dt__fetch(const struct dt__slice *slice, int word)
{
    return slice->remote->ops->fetch_op(slice->remote, word, DT__NO_OP, 0);
}
static inline void dt__replace(struct dt__slice *slice, int word, uint64_t value)
{
    slice->remote->ops->fetch_op(slice->remote, word, DT__REPLACE, value);
}
static inline uint64_t dt__add(struct dt__slice *slice, int word, uint64_t delta)
{
    return slice->remote->ops->fetch_op(slice->remote, word, DT__SUM, delta);
}
static inline void dt__sync(struct dt__slice *slice)
{
    slice->remote->ops->sync(slice->remote);
}
static inline size_t dt__slot_at(const struct dt__slice *slice, int worker, int slot)
{
    return slice->at.slots + (size_t)(worker * DT__SLOTS + slot) * slice->at.slot_each;
}
/* Returns the weights of a buffer, where this rank reaches the owner's memory. */
static inline struct dt__weights *dt__weights_in(const struct dt__slice *slice, int buffer)
{
    return (struct dt__weights *)(slice->remote->memory + slice->at.weights +
                                  (size_t)buffer * slice->at.weights_each);
}
/* Returns the newest weights, where this rank reaches the owner's memory. */
static inline float *dt__newest(const struct dt__slice *slice)
{
    return dt__weights_in(slice, slice->state->current)->params;
}

/* Returns, in windows, the checksum of a slot's header: over the info and the slice's gradient. */
static inline uint32_t dt__slot_checksum(const struct dt__slice *slice,
                                         const struct dt_gradient_info *info, const float *gradient)
{
    return dt__crc32c(dt__crc32c(0, info, sizeof *info), gradient, slice->at.vector);
}

/* Defined in async.c. Lays out a slice's memory: computes the offsets from the spec and the members
 * before them. DT_EMEMORY: the sizes overflow. DT_EUSAGE: more workers than a buffer's number can
 * count, or ranges of rows that do not rise. */
dt_status dt__slice_lay_out(struct dt__slice *slice);
/* Allocates this rank's private memory, once each slice's `remote` is open. */
dt_status dt__async_allocate(struct dt_async *async);

/* Defined in async_owner.c. Sets the control words of this rank's slices for a span; no rank may be
 * in one. from: updates done. */
void dt__async_open_span(struct dt_async *async, uint64_t from);
/* Not collective.
 * Applies waiting gradients at the slices that this rank acts for, unless another rank is doing so,
 * and answers requests for their weights. */
void dt__async_serve_own(struct dt_async *async);
/* Waits until all gradients that workers send are applied at the slices that this rank acts for.
 * Call it after this rank, and in shared memory every rank, has left the span. */
void dt__async_drain(struct dt_async *async);

/* Defined in async_worker.c. Leaves the span: returns when no other worker waits for this one. */
void dt__async_leave(struct dt_async *async);

/* Defined in async_rows.c. Returns the bytes of a slot's lists of touched rows. */
size_t dt__lists_bytes(const struct dt__slice *slice);
/* Fills async->touched with the addresses of every slot's lists in this rank's memory. */
void dt__lists_map(struct dt__slice *slice);
/* Returns touched rows of a range, expanded to their positions with zeros between: floats [at, at +
 * n) of the vector, which are whole rows. Valid until the next call. */
float *dt__rows_expand(struct dt_async *async, const struct dt_row_range *range,
                       const struct dt_gradient *gradient, size_t at, size_t n);

/* Returns the bytes of the row log, for ranges in which updates change only the touched rows. */
size_t dt__row_log_bytes(const struct dt__slice *slice);
/* Gives all buffers the rows of the newest weights, before the first span. */
void dt__row_log_fill(struct dt__slice *slice);
/* Copies to the target buffer those rows of a range in which it differs from the newest weights. */
void dt__row_log_copy(struct dt__slice *slice, int range);
/* Logs the rows of the target that these gradients have written. */
void dt__row_log_append(struct dt__slice *slice, int range, int n,
                        const struct dt_gradient *gradients);

#endif
