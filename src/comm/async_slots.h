/* slots: the protocol by which workers hand gradients to the owners of weights, and read the
 * weights back, without waiting for each other.
 *
 * The flat vector is cut into slices. Each slice has an owner, and an instance of the protocol of
 * its own: control words, slots, versions of its weights. On one host there is a single slice, in
 * the bank's memory, which all ranks share. On several hosts each worker owns a slice, and the
 * bank's slice has, as a rule, no floats:
 *
 *            bank           worker 0        worker 1        worker 2
 *         | slice 0 |      | slice 1 |     | slice 2 |     | slice 3 |
 *         tickets, log     a third of the weights each, and of the optimizer's state
 *
 *   worker 1   note  ----------> slot            a gradient goes to all slices: each owner, also
 *              parts  ---------> slot --> slot --> slot      worker 1 itself, gets its part
 *              vector <--------- weights <- weights <- weights     weights come from all owners
 *
 * A slice applies gradients in the order in which they come to it. Two slices may therefore have
 * applied different gradients, unless none is under way: between spans, when checkpoints are made.
 *
 * One slice, in shared memory:
 *
 *      worker w                       the owner's memory                who acts for the owner
 *
 *   begin   ---- add 1 ------------>  TICKET
 *   read    <--- buffer number -----  PUBLISHED   <-------- publish --  next version, behind all
 *           ---- buffer number ---->  HAZARD[w]                         its stores
 *           <--- P floats ----------  weights     <--- P floats ------  apply: the rule on the
 *   compute                                                             newest version, into a
 *   send    ---- note, gradient --->  slot of w   ---- gradient ----->  buffer out of use
 *           ---- count, slot ------>  DOORBELL[w] ---- what waits --->  take
 *   begin   <--- slots free --------  ACK[w]      <--- applied -------  publish
 *           <--- slowest clock -----  FLOOR       <--- applied -------  publish
 *
 * One slice, in an MPI window. Loads do not reach the owner's memory: what is done to its words
 * goes as messages, which keep their order, and nobody looks at them from afar:
 *
 *   ask     ---- count ------------>  REQUEST[w]  ---- who asks ----->  when its clock may have it
 *   begin   ---- add 1 ------------>  TICKET      (of slice 0)          and a slot is free:
 *   read    <------------------- version, floor, weights -------------  answer
 *   compute                                                             apply, into another buffer
 *   send    ---- gradient, head --->  slot of w   ---- gradient ----->
 *   later   ---- count, slot ------>  DOORBELL[w] ---- what waits --->  take, if it is whole
 *
 * The order of files: onesided.h (transport), this, async_rows.c (touched rows: their lists in a
 * slot, and the rows that a version lacks), async_owner.c, async_worker.c (the two ends), async.c
 * (owners, memory, spans, counts).
 *
 * An owner's memory, control words on cache lines of their own:
 *
 *   TICKET     gradients begun in the job; a worker adds 1 and owns the number it got
 *   PUBLISHED  (publication << 16) | buffer of the newest weights
 *   FLOOR      fewest gradients of this span applied of any active worker; all ones: the span is
 *              over
 *   LOCK       claims to act for the owner; the first one counts, the others are taken back
 *   STEP       updates done; the last has written entry (STEP - 1) mod entries of the update log
 *   SEEN       updates that the bank has read of in the update log
 *   DOORBELL[w]    2 * gradients that worker w has put, over all spans, + the slot of the last
 *   ACK[w]     of those, how many slots the owner has done with
 *   HAZARD[w]  1 + the buffer that worker w reads, or that is on its way there
 *   REQUEST[w] windows: 2 * how often in this span worker w has asked for weights, + 1 if it has
 *              left
 *   state      the owner's, and its view of each worker
 *   update log    what has been applied: of slice 0, for the bank's accounts
 *   row log    of each range of touched rows, which rows were written
 *   states     the optimizer's
 *   weights    K buffers: version, floats
 *   slots      2 a worker: note, gradient (P floats), lists of touched rows. Pages of a slot that
 * no
 *              batch reaches are never allocated
 *
 * Gradients: a worker uses the slot of its last gradient again if that one has been applied, for
 * its memory is in the cache; else the other slot, once that is free. ACK[w] shows that a slot is
 * free; in windows the arrival of weights does. Who acts for the owner reads doorbells, then slots,
 * and acknowledges what it has applied. Each word has one writer, so no gradient can be lost or
 * applied twice.
 *
 * Gradients in windows: a worker takes its slots in turns, and has a gradient of its own for each;
 * so it computes one while the one before is on its way. It rings the doorbell when all of a
 * gradient has left. That it has arrived only a flush could say, which waits for the next one too,
 * and serves nobody meanwhile. The owner sees it by the checksum in the slot's head, which is put
 * last: until number and checksum are right it looks again later.
 *
 * Who acts for the owner: in windows the owner itself, now and then while it computes, and whenever
 * it waits. In shared memory any worker that has just handed in a gradient, or waits (combining:
 * Hendler et al., "Flat combining and the synchronization-parallelism tradeoff", SPAA 2010). When
 * it sees a doorbell ahead of its ACK, and the update log has room, it claims the lock. If the lock
 * was free, it applies what waits. Then it takes its claim back, and looks once more if nobody else
 * had one: so no gradient is left lying between two workers of which each believes that the other
 * has it. A worker leaves a span only when all its gradients are applied; so as long as one waits,
 * there is somebody to apply it.
 *
 * Weights in shared memory (hazard pointers: Michael, IEEE TPDS 2004): a reader fetches PUBLISHED,
 * points its hazard word at that buffer, and fetches PUBLISHED again. If it has not changed, nobody
 * has begun to write the buffer, and nobody will. The next weights are written to a buffer that is
 * neither the newest nor pointed at; there is one buffer more than hazard pointers. Of several, the
 * one that was given up last is taken, which is still in the cache. A reader that was overtaken
 * tries again. That ends: it takes two loads, a publication a pass over all weights, and while it
 * sends nothing the others have so many tickets left, or clocks within the bound.
 *
 * Weights in windows: a worker sends a request to all owners. An owner answers once the worker's
 * clock and slots allow it, out of the newest buffer, which stays pointed at until the answer has
 * left. That takes one message each way. With reads of the worker's own it would take three looks
 * and a get, each of which waits behind the gradients on a full link. The worker sends the request
 * before it puts its last gradient: links carry both directions at once. Between spans all ranks
 * get the newest weights.
 *
 * Clocks: a worker's gradient number c of the span (from 0) is computed from weights in which every
 * worker's gradients up to clock c - staleness are applied, in every slice. In shared memory the
 * worker waits for FLOOR before it takes a ticket. In windows it has a ticket, and the owner waits
 * with its answer. A worker that has left the span, with all its gradients applied, holds nobody
 * up. The floor is raised after the publication.
 * Source: Ho et al., "More effective distributed ML via a stale synchronous parallel parameter
 * server", NIPS 2013, section 2; slices: Li et al., "Scaling distributed machine learning with the
 * parameter server", OSDI 2014.
 *
 * A span's end: a worker that gets no ticket rings its last doorbells, and says in REQUEST that it
 * leaves. In windows each owner serves until all have left it and all that rang is applied; in
 * shared memory the ranks meet at a barrier first. Then every slice has applied every gradient. */
#ifndef DT_COMM_SLOTS_H
#define DT_COMM_SLOTS_H

#include "comm/async.h"
#include "comm/onesided.h"

enum { DT__SLOTS = 2 }; /* a worker; a doorbell has one bit for them */
enum { DT__MOST_BUFFERS = 1 << 16 };

/* Control words; behind those of all, each worker's. */
enum { WORD_TICKET, WORD_PUBLISHED, WORD_FLOOR, WORD_LOCK, WORD_STEP, WORD_SEEN, WORD_WORKERS };
enum { WORD_DOORBELL, WORD_ACK, WORD_HAZARD, WORD_REQUEST, WORDS_A_WORKER };

static inline int dt__word(int word, int worker)
{
    return WORD_WORKERS + worker * WORDS_A_WORKER + word;
}

#define DT__SPAN_OVER UINT64_MAX /* as the floor */

/* A buffer of weights. */
struct dt__weights {
    _Alignas(64) uint64_t version; /* updates in them */
    uint64_t retired;              /* publication that took their place */
    uint64_t pinned;               /* publication that a hazard pointer kept it out of, last */
    _Alignas(64) float params[];
};
/* What stands before a gradient in its slot. */
struct dt__slot_head {
    struct dt_note note;
    uint32_t checksum; /* windows: of the note, and of what stands behind the head */
};
struct dt__slot {
    _Alignas(64) struct dt__slot_head head;
    _Alignas(64) float grad[];
};

/* Places in an owner's memory, in bytes. */
struct dt__places {
    size_t state, log, row_log, states, weights, slots, end;
    size_t vector; /* the slice's floats, without what fills a cache line */
    size_t weights_each, slot_each;
    size_t lists; /* in a slot, from its start */
};

/* Of one worker, as who acts for the owner sees it. */
struct dt__slots_peer {
    bool active;
    int slot;         /* of its last gradient, as of the last look at its doorbell, */
    uint64_t rung;    /* and how many it had put, over all spans */
    uint64_t served;  /* over all spans */
    uint64_t applied; /* in this span */
    uint64_t answers; /* reads of weights, in this span: the clock of the next */
};

/* In the owner's memory, for whoever acts for it. */
struct dt__slots_state {
    uint64_t step;    /* updates done */
    uint64_t applied; /* since create */
    uint64_t publication, floor;
    int current, target; /* buffers of the newest weights and of the next */
    int next;            /* worker that is served first */
    struct dt__slots_peer peer[];
};

/* One instance of the protocol, as a rank sees it: floats [offset, offset + params). */
struct dt__slice {
    struct dt_async *async;
    int index, owner; /* a rank of the trainers */
    bool mine;        /* this rank acts for the owner */
    size_t offset, params;
    uint64_t log_entries; /* 0: no update log, but at the first slice */
    int buffers;          /* K */
    struct dt__places at;
    struct dt__onesided *remote;

    /* Where this rank acts for the owner. */
    struct dt__slots_state *state;
    struct dt_applied *log;
    float *states[DT_ASYNC_STATES]; /* so placed that its floats are where the whole has them */
    struct dt__answer *answers;     /* (workers), windows */

    /* A worker's, of windows. */
    struct dt__answer answer;                 /* with the weights that were read last */
    struct dt__slot_head put_head[DT__SLOTS]; /* of the gradients that are put */
};

/* A worker's gradients. async_worker.c writes them. */
struct dt__own_gradients {
    uint64_t sent;    /* over all spans */
    uint64_t started; /* in this span */
    uint64_t asked;   /* reads of weights over windows, in this span */
    uint64_t gap;     /* clock gap of the gradient that was begun */
    uint64_t ticket;
    int put[DT__SLOTS], fetch;      /* windows: in flight of each gradient, of the ticket */
    int slot;                       /* of the last, or of the one that was begun */
    bool under_way;                 /* a gradient was begun, and is not sent */
    bool awaits;                    /* weights were asked for, and are not read */
    uint64_t rung;                  /* windows: of the sent ones those whose doorbells rang */
    const struct dt__weights *read; /* what was read last, in shared memory */
    float *gradient;                /* (DT__SLOTS, P) windows */
};

/* A rank's own counts. */
struct dt__own_counts {
    uint64_t sent, wait_ms, applied;
    double busy_secs;
};

struct dt_async {
    /* From before dt__slice_lay_out on. */
    struct dt__kept *kept;
    struct dt_world *world;
    struct dt_async_spec spec; /* no ranges of rows in windows */
    int workers, worker;       /* this rank's number among them; the bank: -1 */
    bool shared;               /* workers reach the bank's memory, and act for it */
    int at_once;               /* gradients applied in one pass, at most */

    /* (slices) the first is the bank's, with tickets and accounts; in shared memory the only one */
    struct dt__slice *slice;
    int slices;
    bool *active;   /* (workers) in this span */
    uint64_t until; /* of the span; of the bank once closed: the last ticket */
    bool closed;    /* the bank: the span ends before its time */
    bool begun;     /* owners have what the bank began with */

    /* Where this rank acts for an owner. */
    struct dt_touched *touched; /* (workers, slots, ranges) lists; NULL: gradients are whole */
    size_t block;               /* floats of those below: DT__ASYNC_BLOCK, or the widest row */
    float *fresh;               /* new weights of a block, before other ranks see them */
    float *grad;                /* a block of a gradient that has only touched rows */

    struct dt__own_gradients own;   /* a worker's */
    float *weights;                 /* (P) windows: this rank's copy */
    float *states[DT_ASYNC_STATES]; /* (P) the bank's, gathered: windows */

    double wait_secs, busy_secs; /* this rank's: waited, applied */
    struct dt_async_counts counts;
    struct dt__own_counts *gathered; /* bank: (ranks) */
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
/* Where the memory is in reach. */
static inline struct dt__weights *dt__weights_in(const struct dt__slice *slice, int buffer)
{
    return (struct dt__weights *)(slice->remote->memory + slice->at.weights +
                                  (size_t)buffer * slice->at.weights_each);
}
/* The newest weights there. */
static inline float *dt__newest(const struct dt__slice *slice)
{
    return dt__weights_in(slice, slice->state->current)->params;
}

/* Windows: returns the checksum of a slot's head: of the note and the slice's gradient. */
static inline uint32_t dt__slot_checksum(const struct dt__slice *slice, const struct dt_note *note,
                                         const float *gradient)
{
    return dt__crc32c(dt__crc32c(0, note, sizeof *note), gradient, slice->at.vector);
}

/* async.c. Places, from the spec and what stands before them in the structs.
 * DT_EMEMORY: the sizes overflow. DT_EUSAGE: more workers than a buffer's number can count, or
 * ranges of rows that do not rise. */
dt_status dt__slice_lay_out(struct dt__slice *slice);
/* Allocates what this rank needs of its own, once each slice's `remote` is open. */
dt_status dt__async_allocate(struct dt_async *async);

/* async_owner.c. Sets the control words of own slices for a span; nobody may be in one. from:
 * updates done. */
void dt__async_open_span(struct dt_async *async, uint64_t from);
/* Applies what waits at the slices that this rank acts for, unless another is at it, and answers
 * who asks for their weights. */
void dt__async_serve_own(struct dt_async *async);
/* This rank has left the span, and in shared memory all have: until all that workers send is
 * applied at own slices. */
void dt__async_drain(struct dt_async *async);

/* async_worker.c. Leaves the span: returns when no other worker waits for this one. */
void dt__async_leave(struct dt_async *async);

/* async_rows.c. Returns the bytes of a slot's lists of touched rows. */
size_t dt__lists_bytes(const struct dt__slice *slice);
/* Fills async->touched with the places of every slot's lists in this rank's memory. */
void dt__lists_map(struct dt__slice *slice);
/* Returns touched rows of a range, spread to their places with zeros between: floats [at, at + n)
 * of the vector, which are whole rows. Valid until the next call. */
float *dt__rows_expand(struct dt_async *async, const struct dt_row_range *range,
                       const struct dt_gradient *gradient, size_t at, size_t n);

/* The row log, for ranges in which updates change only the touched rows. Returns its bytes. */
size_t dt__row_log_bytes(const struct dt__slice *slice);
/* Before the first span: gives all buffers the rows of the newest weights. */
void dt__row_log_fill(struct dt__slice *slice);
/* Makes a range's rows in the target those of the newest weights. */
void dt__row_log_copy(struct dt__slice *slice, int range);
/* Notes that applying these gradients has written the target's rows. */
void dt__row_log_append(struct dt__slice *slice, int range, int n,
                        const struct dt_gradient *gradients);

#endif
